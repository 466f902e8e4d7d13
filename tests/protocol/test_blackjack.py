"""What a blackjack hand is worth, and what the game says on the wire (rules B)."""

from __future__ import annotations

from itertools import product
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.blackjack import (
    NEW_DECK,
    VOCABULARY,
    Bet,
    BlackjackSettings,
    Draw,
    Exposed,
    HandOver,
    Shuffled,
    hand_value,
)
from protocol.errors import BadDeck, BadSettings, IllegalAnswer
from protocol.vocabulary import Range


def test_B1_a_new_deck_is_spades_hearts_clubs_diamonds_each_two_to_ace() -> None:
    assert " ".join(NEW_DECK) == (
        "2s 3s 4s 5s 6s 7s 8s 9s Ts Js Qs Ks As "
        "2h 3h 4h 5h 6h 7h 8h 9h Th Jh Qh Kh Ah "
        "2c 3c 4c 5c 6c 7c 8c 9c Tc Jc Qc Kc Ac "
        "2d 3d 4d 5d 6d 7d 8d 9d Td Jd Qd Kd Ad"
    )


@pytest.mark.parametrize(
    ("hand", "value"),
    [
        ("", (0, False)),
        ("As", (11, True)),
        ("2s", (2, False)),
        ("Ts Jh", (20, False)),
        ("As Ah", (12, True)),
        ("As Kd", (21, True)),
        ("As 7d", (18, True)),
        ("As 7d 3c", (21, True)),
        ("As 7d 4c", (12, False)),
        ("As Ah Ac Ad", (14, True)),
        ("As Ah Ac Ad 7s", (21, True)),
        ("As Ah Ac Ad 8s", (12, False)),
        ("9s Th Ac Ad", (21, False)),
        ("Ts Qh 2c", (22, False)),
        ("Ts Qh Ac Ad", (22, False)),
        ("As Ah Ac Ad Ts 9h", (23, False)),
    ],
)
def test_B4_a_hand_counts_the_highest_total_not_above_21(
    hand: str, value: tuple[int, bool]
) -> None:
    assert hand_value(hand.split()) == value


@given(st.lists(st.sampled_from(NEW_DECK), unique=True, max_size=12))
def test_B4_agrees_with_trying_every_ace_as_1_and_as_11(hand: list[str]) -> None:
    worth = [(1, 11) if card[0] == "A" else (_face_value(card),) for card in hand]
    totals = {sum(counts) for counts in product(*worth)}
    playable = [total for total in totals if total <= 21]
    best = max(playable) if playable else min(totals)

    count, soft = hand_value(hand)

    assert count == best
    assert soft == (best != min(totals))


def _face_value(card: str) -> int:
    return int(card[0]) if card[0].isdigit() else 10


def test_B5_defaults_are_a_bankroll_of_100_and_1000_hands() -> None:
    assert VOCABULARY.read_settings(None) == BlackjackSettings(
        bankroll=100, hands=1000, shuffle="riffle"
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"bankroll": -1},
        {"bankroll": 5.5},
        {"hands": -1},
        {"hands": "10"},
        {"shuffle": "none"},
        {"minimum": 5},
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(BadSettings, match="settings of blackjack"):
        VOCABULARY.read_settings(settings)


def test_B6_a_bet_is_a_whole_number_of_chips_within_the_bankroll() -> None:
    question = Bet(1, 12, Range(5, 12))

    assert [question.check(bet) for bet in (5, 9, 12)] == [5, 9, 12]


@pytest.mark.parametrize("value", [4, 13, 5.0, "5", True, None, [5], -5])
def test_B6_any_other_bet_is_illegal(value: object) -> None:
    with pytest.raises(IllegalAnswer, match="to bet; legal: 5 to 12"):
        Bet(1, 12, Range(5, 12)).check(value)


@pytest.mark.parametrize("value", [True, False, 0, "HIT", "hits", "", None, ["hit"]])
def test_B9_only_hit_and_stand_are_legal(value: object) -> None:
    question = Draw("9h", ("Ts", "2d"), 12, False)

    assert (question.check("hit"), question.check("stand")) == ("hit", "stand")
    with pytest.raises(IllegalAnswer, match="to draw; legal: hit, stand"):
        question.check(value)


@pytest.mark.parametrize(
    ("message", "wire"),
    [
        (
            Bet(3, 42, Range(5, 42)),
            '{"kind":"bet","round":3,"bankroll":42,"legal":{"min":5,"max":42}}',
        ),
        (
            Draw("9h", ("As", "7d"), 18, True),
            '{"kind":"draw","upcard":"9h","hand":["As","7d"],"total":18,"soft":true,'
            '"legal":["hit","stand"]}',
        ),
        (Shuffled(), '{"kind":"shuffled"}'),
        (Exposed("As", "dealer"), '{"kind":"exposed","card":"As","to":"dealer"}'),
        (
            HandOver(5, ("As", "Kd"), ("9h",), "natural", 7, 107),
            '{"kind":"hand_over","bet":5,"player":["As","Kd"],"dealer":["9h"],'
            '"outcome":"natural","payoff":7,"bankroll":107}',
        ),
    ],
)
def test_messages_have_the_names_of_the_wire_table(message: object, wire: str) -> None:
    encoded = msgspec.json.encode(message)

    assert encoded.decode() == wire
    assert msgspec.json.decode(encoded, type=type(message)) == message
    packed = msgspec.msgpack.encode(message)
    assert msgspec.msgpack.decode(packed) == msgspec.json.decode(encoded)


@pytest.mark.parametrize("hand", [["Xx"], ["As", "10h"], [["As"]], [None], None, 5])
def test_B4_what_is_no_card_is_refused(hand: Any) -> None:
    with pytest.raises(BadDeck, match="expected cards such as 'As', got"):
        hand_value(hand)
