"""Which answers the questions of gin rummy accept, and which they refuse (rules G, J1)."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol import gin_melds
from protocol.cards import PACK
from protocol.errors import IllegalAnswer
from protocol.gin_rummy import Draw, Meld, Melds, Turn, TurnAnswer, arrange, turn_answers
from protocol.gin_words import to_draw, turn_answer

RUNS = "As 2s 3s 4h 5h 6h"  # two runs of three
ELEVEN = f"{RUNS} Ac 2d 3c 4d Kd"  # 10 left without the king
NINES = f"{RUNS} 9s 9h 9d 3d Kd"  # 3 left without the king
FOURS = f"{RUNS} 4s 4d 4c Tc Kd"  # the fours may take 4s from no run, or 4h from one


def turn(hand: str) -> Turn:
    cards = tuple(hand.split())
    return Turn(cards[-1], cards, turn_answers(cards))


def melds(text: str) -> list[list[str]]:
    return [meld.split() for meld in text.split(",") if meld]


def knock(discard: str, declared: str) -> dict[str, object]:
    return {"discard": discard, "knock": True, "melds": melds(declared)}


def tuples(lists: Sequence[Sequence[str]]) -> tuple[Meld, ...]:
    return tuple(tuple(meld) for meld in lists)


# ---- Offers and draws


# ---- Turns: what is listed


def test_G7_every_discard_is_listed_and_every_knock_that_leaves_ten_or_less() -> None:
    question = turn(ELEVEN)

    discards = [answer.discard for answer in question.legal if not answer.knock]
    assert discards == ELEVEN.split()
    knocks = [answer.discard for answer in question.legal if answer.knock]
    assert knocks == ["Kd"]
    assert all(answer.melds is None for answer in question.legal)


def test_G7_eleven_deadwood_may_not_knock() -> None:
    question = turn(f"{RUNS} Ac 2d 3c 5d Kd")

    assert not any(answer.knock for answer in question.legal)


@given(st.randoms(use_true_random=False), st.sampled_from([4, 5, 7, 13]))
def test_G7_the_list_is_what_full_search_allows(rng: random.Random, ranks: int) -> None:
    deck = [card for card in PACK if card[0] in "A23456789TJQK"[:ranks]]
    hand = rng.sample(deck, 11)

    allowed = [card for card in hand if arrange([c for c in hand if c != card])[1] <= 10]
    assert turn_answers(hand) == (
        *(TurnAnswer(card) for card in hand),
        *(TurnAnswer(card, True) for card in allowed),
    )


# ---- Turns: what is accepted


@pytest.mark.parametrize(
    "value",
    [
        TurnAnswer("Kd"),
        TurnAnswer("Kd", False, None),
        {"discard": "Kd"},
        {"discard": "Kd", "knock": False},
        {"discard": "Kd", "melds": None},
        {"discard": "Kd", "knock": False, "melds": None},
    ],
)
def test_G6_a_discard_in_every_shape(value: object) -> None:
    assert turn(ELEVEN).check(value) == TurnAnswer("Kd", False, None)


def test_G6_the_card_just_drawn_may_be_discarded() -> None:
    question = turn(ELEVEN)

    assert question.drawn == "Kd"
    assert question.check(TurnAnswer("Kd")) == TurnAnswer("Kd")


def test_G6_what_was_picked_from_the_list_is_accepted_as_it_is() -> None:
    question = turn(ELEVEN)

    assert all(question.check(choice) is choice for choice in question.legal)


@pytest.mark.parametrize("value", [TurnAnswer("Kd", True), {"discard": "Kd", "knock": True}])
def test_G7_a_knock_that_leaves_the_melds_to_the_referee(value: object) -> None:
    assert turn(ELEVEN).check(value) == TurnAnswer("Kd", True, None)


def test_G9_declared_melds_become_tuples_in_the_order_given() -> None:
    declared = "6h 4h 5h, As 2s 3s"

    answer = turn(ELEVEN).check(knock("Kd", declared))

    assert answer == TurnAnswer("Kd", True, tuples(melds(declared)))


def test_G9_a_struct_may_declare_too() -> None:
    given = TurnAnswer("Kd", True, (("As", "2s", "3s"), ("4h", "5h", "6h")))

    assert turn(ELEVEN).check(given) == given


def test_G9_a_declaration_may_be_worse_than_minimal() -> None:
    hand = f"{RUNS} 9s 9h 9d 2c Kd"

    answer = turn(hand).check(knock("Kd", "4h 5h 6h, 9s 9h 9d"))  # leaves A 2 3 and 2

    assert answer.melds == (("4h", "5h", "6h"), ("9s", "9h", "9d"))


def test_G9_the_discard_may_break_what_would_be_minimal() -> None:
    answer = turn(FOURS).check(knock("Kd", "As 2s 3s, 4h 5h 6h, 4s 4d 4c"))

    assert answer.melds is not None
    assert len(answer.melds) == 3


# ---- Turns: what is refused


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        4,
        "Kd",
        ["Kd", False, None],
        ("Kd", False, None),
        {},
        {"knock": False},
        {"discard": None},
        {"discard": ["Kd"]},
        {"discard": "kd"},
        {"discard": "Kh"},  # not in the hand
        {"discard": "Kd", "knock": 0},
        {"discard": "Kd", "knock": None},
        {"discard": "Kd", "knock": 1},
        {"discard": "Kd", "knock": 1.0},
        {"discard": "Kd", "knock": "true"},
        {"discard": "Kd", "melds": []},  # null unless knocking
        {"discard": "Kd", "melds": [["As", "2s", "3s"]]},
        {"discard": "Kd", "why": "high"},
        {"Discard": "Kd"},
        {1: "Kd"},
        TurnAnswer("Kh"),
        TurnAnswer("Kd", 1),  # type: ignore[arg-type]
        TurnAnswer(4),  # type: ignore[arg-type]
        TurnAnswer("Kd", False, ()),
    ],
    ids=repr,
)
def test_J1_anything_else_is_refused(value: object) -> None:
    with pytest.raises(IllegalAnswer, match=r"^answered .* to turn; legal: discard one"):
        turn(ELEVEN).check(value)


@pytest.mark.parametrize("discard", RUNS.split())
def test_G7_a_knock_that_leaves_more_than_ten_is_refused(discard: str) -> None:
    with pytest.raises(IllegalAnswer, match="knock discarding Kd, with melds that"):
        turn(ELEVEN).check(TurnAnswer(discard, True))
    with pytest.raises(IllegalAnswer, match=r"; no knock$"):
        turn(f"{RUNS} Ac 2d 3c 5d Kd").check(TurnAnswer("Kd", True))


@pytest.mark.parametrize(
    "declared",
    [
        "",  # leaves everything
        "As 2s 3s",  # leaves 25
        "As 2s 3s, 4h 5h 6h, Kd",  # no meld, and the discard
        "As 2s 3s, 4h 5h 6h, 9s 9h Kd",
        "As 2s 3s, 4h 5h 6h, 9s 9h 9c",  # not in the hand
        "As 2s 3s, 4h 5h 6h, 9s 9h 9d, 3s",
        "As 2s 3s, 4h 5h 6h, 4h 5h 6h",  # twice
        "As 2s 3s, 4h 5h 6h, 9s 9h 9d 9d",
        "As 2s 3s, 4h 5h, 9s 9h 9d",
    ],
)
def test_G9_illegal_melds_are_refused(declared: str) -> None:
    with pytest.raises(IllegalAnswer):
        turn(NINES).check(knock("Kd", declared))


@pytest.mark.parametrize(
    "declared",
    [
        "As2s3s",
        7,
        True,
        {},
        {"As": 1},
        ["As", "2s", "3s"],
        [["As", "2s", "3s"], "4h5h6h"],
        [["As", "2s", "3s"], {"4h": 1, "5h": 1, "6h": 1}],
        [["As", "2s", "3s"], ["4h", "5h", 6]],
        [["As", "2s", "3s"], ["4h", "5h", ["6h"]]],
        [["As", "2s", "3s"], ["4h", "5h", "6h"], None],
        [["As", "2s", "3s"], ["4h", "5h", "6h"], []],
        [["As"] * 100_000],
    ],
    ids=lambda value: repr(value)[:40],
)
def test_J1_melds_of_another_type_are_refused(declared: Any) -> None:
    with pytest.raises(IllegalAnswer):
        turn(NINES).check({"discard": "Kd", "knock": True, "melds": declared})
    with pytest.raises(IllegalAnswer):
        Melds(tuple(NINES.split()[:10])).check(declared)


@pytest.mark.parametrize(
    ("declared", "fault"),
    [
        ("", r"these melds leave \d+ deadwood, and a knock at most 10 \(G7\)"),
        ("As 2s 3s", r"these melds leave 45 deadwood, .*\(G7\)"),
        ("As 2s 3s, 4h 5h 6h, 9s 9h Kd", r"9s 9h Kd: Kd is not among .*\(G9\)"),
        ("As 2s 3s, 4h 5h 6h, 9s 9h 9c", r"9s 9h 9c: 9c is not among .*\(G9\)"),
        ("As 2s 3s, 4h 5h 6h, 4h 5h 6h", r"4h 5h 6h: 4h is declared twice \(G9\)"),
        ("9s 9h 9h", r"9s 9h 9h: 9h is declared twice \(G9\)"),
        ("4h 5h", r"4h 5h: a meld has three cards or more \(G2\)"),
        ("As 2s 9s", r"As 2s 9s: a run is cards of one suit .*\(G1, G2\)"),
        ("As 2s 4h", r"As 2s 4h: a meld is three or four cards .*\(G2\)"),
    ],
)
def test_G9_a_refusal_says_what_is_wrong_with_the_melds(declared: str, fault: str) -> None:
    question, answer = turn(NINES), knock("Kd", declared)

    with pytest.raises(IllegalAnswer, match=f"; {fault}$"):
        question.check(answer)
    assert re.fullmatch(fault, str(question.fault(answer)))


def test_G9_a_refusal_says_that_melds_of_another_type_are_none() -> None:
    question = Melds(tuple(NINES.split()[:10]))

    assert question.fault({}) == "melds are a list of lists of cards"
    assert question.fault(["As"]) == "every meld is a list of cards"
    assert question.fault([[]]) == "no card: a meld has three cards or more (G2)"
    assert "100,000 cards" in str(question.fault([["As"] * 100_000]))
    assert question.fault(None) is None
    assert question.fault(melds("As 2s 3s")) is None


def test_G9_other_answers_have_no_such_fault() -> None:
    question = turn(NINES)

    assert question.fault(knock("Kd", "As 2s 3s, 4h 5h 6h, 9s 9h 9d")) is None
    assert question.fault(TurnAnswer("Kd", True)) is None
    assert question.fault(knock("Kc", "As 2s 3s")) is None
    assert question.fault("Kd") is None
    silent = {**knock("Kd", "As 2s 3s"), "knock": False}
    assert question.fault(silent) == "melds are declared with a knock only (G9)"


def test_G9_no_melds_may_be_declared_without_a_knock() -> None:
    value = {**knock("Kd", "As 2s 3s, 4h 5h 6h, 9s 9h 9d"), "knock": False}

    with pytest.raises(IllegalAnswer):
        turn(NINES).check(value)


# ---- The defender's melds


def test_G9_the_defender_may_leave_it_to_the_referee() -> None:
    question = Melds(tuple(NINES.split()[:10]))

    assert question.legal == (None,)
    assert question.check(None) is None


@pytest.mark.parametrize("declared", ["", "As 2s 3s", "9d 9s 9h, 4h 6h 5h, As 2s 3s"])
def test_G9_the_defender_may_declare_any_legal_melds(declared: str) -> None:
    question = Melds(tuple(NINES.split()[:10]))

    assert question.check(melds(declared)) == tuples(melds(declared))
    assert question.check(tuples(melds(declared))) == tuples(melds(declared))


@pytest.mark.parametrize("declared", ["9d 9s 9c", "9d 9s", "9d 9s 9h, 9d 9s 9h", "Kd"])
def test_G9_the_defenders_melds_must_be_melds_of_its_own(declared: str) -> None:
    with pytest.raises(IllegalAnswer, match="to melds; legal: null, or sets and runs"):
        Melds(tuple(NINES.split()[:10])).check(melds(declared))


# ---- Settings, and the words themselves


def test_the_arithmetic_of_melds_is_found_here_too() -> None:
    assert arrange is gin_melds.arrange
    assert arrange(["As", "2s", "3s", "Kd"]) == ((("As", "2s", "3s"),), 10)


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        ({"discard": "Kd", "knock": True, "melds": [["As", "2s"]]}, "declare sets of 3 or 4"),
        ({"discard": "Kd", "knock": True, "melds": "null"}, "type and all"),
        (
            {"discard": None, "knock": False, "melds": None},
            "through `take_turn` end with `return`?",
        ),
        (TurnAnswer(cast(Any, None)), "through `take_turn` end with `return`?"),
        ({"discard": "Ks", "knock": False, "melds": None}, "as it stands in this very question"),
    ],
)
def test_advice_about_melds_is_for_melds_that_are_none(answer: object, advice: str) -> None:
    assert advice in turn("As 2s 3s 4h 5h 6h 7c 8c 9c Ad Kd").advice(answer)


def test_advice_to_a_defender_is_about_melds_or_their_type() -> None:
    question = Melds(tuple("As 2s 3s 4h 5h 6h 7c 8c 9c Ad".split()))

    assert "declare sets of 3 or 4" in question.advice([["As", "4h", "7c"]])
    assert "type and all" in question.advice("null")


def test_a_hand_that_nobody_can_hold_is_put_into_words_at_once() -> None:
    """Anybody may ask the page for words: melding all cards would take for ever."""
    asked = Turn(PACK[-1], PACK, ())

    assert to_draw("ann", Draw("Kd", PACK)).startswith(f"ann has {' '.join(PACK)}; on the pile")
    assert turn_answer(asked, TurnAnswer(PACK[0])) == f"discards {PACK[0]}"
