"""Which answers the questions of gin rummy accept, and which they refuse (rules G, J1)."""

from __future__ import annotations

import random
import re
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol import gin_melds
from protocol.cards import PACK
from protocol.errors import IllegalAnswer
from protocol.gin_rummy import Draw, Melds, Turn, TurnAnswer, arrange, turn_answers
from protocol.gin_words import to_draw, turn_answer

RUNS = "As 2s 3s 4h 5h 6h"  # two runs of three
ELEVEN = f"{RUNS} Ac 2d 3c 4d Kd"  # 10 left without the king
TOO_MUCH = f"{RUNS} Ac 2d 3c 5d Kd"  # 11
NINES = f"{RUNS} 9s 9h 9d 3d Kd"  # 3 left without the king
FOURS = f"{RUNS} 4s 4d 4c Tc Kd"  # the fours may take 4s from no run, or 4h from one
DEFENDER = Melds(tuple(NINES.split()[:10]))


def turn(hand: str) -> Turn:
    cards = tuple(hand.split())
    return Turn(cards[-1], cards, turn_answers(cards))


def melds(text: str) -> list[list[str]]:
    return [meld.split() for meld in text.split(",") if meld]


def tuples(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(map(tuple, melds(text)))


def knock(discard: str, declared: str) -> dict[str, object]:
    return {"discard": discard, "knock": True, "melds": melds(declared)}


# ---- Turns: what is listed


def test_G7_every_discard_is_listed_and_every_knock_that_leaves_ten_or_less() -> None:
    question = turn(ELEVEN)

    assert [answer.discard for answer in question.legal if not answer.knock] == ELEVEN.split()
    assert [answer.discard for answer in question.legal if answer.knock] == ["Kd"]
    assert all(answer.melds is None for answer in question.legal)
    assert not any(answer.knock for answer in turn(TOO_MUCH).legal)


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


def test_G6_what_was_picked_from_the_list_is_accepted_as_it_is() -> None:
    question = turn(ELEVEN)

    assert question.drawn == "Kd"
    assert all(question.check(choice) is choice for choice in question.legal)


@pytest.mark.parametrize(
    ("value", "is_knock"),
    [
        (TurnAnswer("Kd"), False),
        (TurnAnswer("Kd", False, None), False),
        ({"discard": "Kd"}, False),
        ({"discard": "Kd", "knock": False}, False),
        ({"discard": "Kd", "melds": None}, False),
        ({"discard": "Kd", "knock": False, "melds": None}, False),
        (TurnAnswer("Kd", True), True),
        ({"discard": "Kd", "knock": True}, True),
    ],
)
def test_G6_an_answer_in_every_shape(value: object, is_knock: bool) -> None:
    assert turn(ELEVEN).check(value) == TurnAnswer("Kd", is_knock, None)


@pytest.mark.parametrize(
    ("hand", "declared"),
    [
        (ELEVEN, "6h 4h 5h, As 2s 3s"),  # in any order, which stays
        (f"{RUNS} 9s 9h 9d 2c Kd", "4h 5h 6h, 9s 9h 9d"),  # worse than minimal: it leaves A 2 3 2
        (FOURS, "As 2s 3s, 4h 5h 6h, 4s 4d 4c"),
    ],
)
def test_G9_any_melds_that_leave_little_may_be_declared(hand: str, declared: str) -> None:
    for value in (knock("Kd", declared), TurnAnswer("Kd", True, cast(Any, tuples(declared)))):
        assert turn(hand).check(value) == TurnAnswer("Kd", True, cast(Any, tuples(declared)))


# ---- Turns: what is refused


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 4, "Kd", ["Kd", False, None], ("Kd", False, None), {}, {"knock": False}),
        *({"discard": wrong} for wrong in (None, ["Kd"], "kd", "Kh")),  # the last: not in the hand
        *({"discard": "Kd", "knock": wrong} for wrong in (0, None, 1, 1.0, "true")),
        # null unless knocking
        *({"discard": "Kd", "melds": wrong} for wrong in ([], [["As", "2s", "3s"]])),
        *({"discard": "Kd", "why": "high"}, {"Discard": "Kd"}, {1: "Kd"}, TurnAnswer("Kh")),
        *(TurnAnswer(cast(Any, 4)), TurnAnswer("Kd", cast(Any, 1)), TurnAnswer("Kd", False, ())),
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
        turn(TOO_MUCH).check(TurnAnswer("Kd", True))


@pytest.mark.parametrize(
    ("declared", "fault"),
    [
        ("", r"these melds leave \d+ deadwood, and a knock at most 10 \(G7\)"),
        ("As 2s 3s", r"these melds leave 45 deadwood, .*\(G7\)"),
        ("As 2s 3s, 4h 5h 6h, Kd", r"Kd: .*"),  # no meld, and the discard
        ("As 2s 3s, 4h 5h 6h, 9s 9h Kd", r"9s 9h Kd: Kd is not among .*\(G9\)"),
        ("As 2s 3s, 4h 5h 6h, 9s 9h 9c", r"9s 9h 9c: 9c is not among .*\(G9\)"),
        ("As 2s 3s, 4h 5h 6h, 9s 9h 9d, 3s", r"3s: .*"),
        ("As 2s 3s, 4h 5h 6h, 4h 5h 6h", r"4h 5h 6h: 4h is declared twice \(G9\)"),
        ("As 2s 3s, 4h 5h 6h, 9s 9h 9d 9d", r"9s 9h 9d 9d: 9d is declared twice \(G9\)"),
        ("As 2s 3s, 4h 5h, 9s 9h 9d", r"4h 5h: a meld has three cards or more \(G2\)"),
        ("9s 9h 9h", r"9s 9h 9h: 9h is declared twice \(G9\)"),
        ("As 2s 9s", r"As 2s 9s: a run is cards of one suit .*\(G1, G2\)"),
        ("As 2s 4h", r"As 2s 4h: a meld is three or four cards .*\(G2\)"),
    ],
)
def test_G9_a_refusal_says_what_is_wrong_with_the_melds(declared: str, fault: str) -> None:
    question, answer = turn(NINES), knock("Kd", declared)

    with pytest.raises(IllegalAnswer, match=f"; {fault}$"):
        question.check(answer)
    assert re.fullmatch(fault, str(question.fault(answer)))


THREE = ["As", "2s", "3s"]


@pytest.mark.parametrize(
    ("declared", "fault"),
    [
        ("As2s3s", "melds are a list of lists of cards"),
        (7, "melds are a list of lists of cards"),
        (True, "melds are a list of lists of cards"),
        ({}, "melds are a list of lists of cards"),
        ({"As": 1}, "melds are a list of lists of cards"),
        (THREE, "every meld is a list of cards"),
        ([THREE, "4h5h6h"], "every meld is a list of cards"),
        ([THREE, {"4h": 1, "5h": 1, "6h": 1}], "every meld is a list of cards"),
        ([THREE, ["4h", "5h", 6]], ""),
        ([THREE, ["4h", "5h", ["6h"]]], ""),
        ([THREE, ["4h", "5h", "6h"], None], "every meld is a list of cards"),
        ([THREE, ["4h", "5h", "6h"], []], "no card: a meld has three cards or more (G2)"),
        ([["As"] * 100_000], "100,000 cards"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_J1_melds_of_another_type_are_refused(declared: Any, fault: str) -> None:
    with pytest.raises(IllegalAnswer):
        turn(NINES).check({"discard": "Kd", "knock": True, "melds": declared})
    with pytest.raises(IllegalAnswer):
        DEFENDER.check(declared)
    assert fault in str(DEFENDER.fault(declared))


def test_G9_other_answers_have_no_such_fault() -> None:
    question = turn(NINES)
    silent = {**knock("Kd", "As 2s 3s, 4h 5h 6h, 9s 9h 9d"), "knock": False}

    assert question.fault({**silent, "knock": True}) is None
    assert question.fault(TurnAnswer("Kd", True)) is None
    assert question.fault(knock("Kc", "As 2s 3s")) is None
    assert question.fault("Kd") is None
    assert question.fault(silent) == "melds are declared with a knock only (G9)"
    with pytest.raises(IllegalAnswer):
        question.check(silent)


# ---- The defender's melds


@pytest.mark.parametrize("declared", ["", "As 2s 3s", "9d 9s 9h, 4h 6h 5h, As 2s 3s"])
def test_G9_the_defender_may_declare_any_legal_melds_or_none(declared: str) -> None:
    assert DEFENDER.legal == (None,)
    assert (DEFENDER.check(None), DEFENDER.fault(None)) == (None, None)
    assert DEFENDER.check(melds(declared)) == tuples(declared)
    assert DEFENDER.check(tuples(declared)) == tuples(declared)
    assert DEFENDER.fault(melds(declared)) is None


@pytest.mark.parametrize("declared", ["9d 9s 9c", "9d 9s", "9d 9s 9h, 9d 9s 9h", "Kd"])
def test_G9_the_defenders_melds_must_be_melds_of_its_own(declared: str) -> None:
    with pytest.raises(IllegalAnswer, match="to melds; legal: null, or sets and runs"):
        DEFENDER.check(melds(declared))


# ---- Words


def test_the_arithmetic_of_melds_is_found_here_too() -> None:
    assert arrange is gin_melds.arrange


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
    assert "declare sets of 3 or 4" in DEFENDER.advice([["As", "4h", "9s"]])
    assert "type and all" in DEFENDER.advice("null")


def test_a_hand_that_nobody_can_hold_is_put_into_words_at_once() -> None:
    """Anybody may ask the page for words: melding all cards would take for ever."""
    asked = Turn(PACK[-1], PACK, ())

    assert to_draw("ann", Draw("Kd", PACK)).startswith(f"ann has {' '.join(PACK)}; on the pile")
    assert turn_answer(asked, TurnAnswer(PACK[0])) == f"discards {PACK[0]}"
