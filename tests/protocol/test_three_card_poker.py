"""What three cards are worth (rules T1-T4, T6), and the messages' own checks."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise
from typing import Any

import pytest

from protocol.cards import PACK
from protocol.errors import BadDeck
from protocol.three_card_poker import (
    CATEGORIES,
    category,
    compare,
    dealer_qualifies,
    outcome_of_play,
)
from tests.support.poker_hands import worth

ALL_HANDS = list(combinations(PACK, 3))


def cards(text: str) -> list[str]:
    """`Qs 3h 2d` as a list; bare ranks (`Q32`) get suits that make no flush."""
    if " " in text:
        return text.split()
    return [rank + suit for rank, suit in zip(text, "shd", strict=True)]


# T1, T2: the categories


def test_T2_all_22100_hands_fall_into_the_six_categories() -> None:
    counts = Counter(category(hand) for hand in ALL_HANDS)

    assert counts == {
        "Nothing": 16440,
        "Pair": 3744,
        "Flush": 1096,
        "Straight": 720,
        "Three of a Kind": 52,
        "Straight Flush": 48,
    }
    assert list(CATEGORIES) == sorted(counts, key=lambda label: -counts[label])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Qs 6h 4d", "Nothing"),
        ("9s 9h 5d", "Pair"),
        ("5d 9s 9h", "Pair"),
        ("2h 9h Kh", "Flush"),
        ("Ts 8h 9d", "Straight"),
        ("As 2h 3d", "Straight"),
        ("Qs Kh Ad", "Straight"),
        ("Ks Ah 2d", "Nothing"),
        ("Kh Ah 2h", "Flush"),
        ("Ah 2h 3h", "Straight Flush"),
        ("7s 7h 7d", "Three of a Kind"),
        ("5c 4c 6c", "Straight Flush"),
    ],
)
def test_T2_one_hand_of_each_category(text: str, expected: str) -> None:
    assert category(cards(text)) == expected


# T2 to T4, T6: how hands compare


@pytest.mark.stats
@pytest.mark.parametrize("pair_kicker", [False, True])
def test_T1_to_T4_all_hands_are_in_the_order_of_the_rulebook(pair_kicker: bool) -> None:
    order = sorted(ALL_HANDS, key=lambda hand: worth(hand, pair_kicker))

    for low, high in pairwise(order):
        is_level = worth(low, pair_kicker) == worth(high, pair_kicker)
        assert compare(high, low, pair_kicker) == (0 if is_level else 1)
        assert compare(low, high[::-1], pair_kicker) == (0 if is_level else -1)


def test_T6_the_dealer_qualifies_from_queen_three_two_on() -> None:
    for hand in ALL_HANDS:
        assert dealer_qualifies(hand) == (worth(hand, False) >= worth(("Qs", "3h", "2d"), False))


# What is no hand


NO_HANDS: list[Any] = [
    [],
    ["As", "Kd"],
    ["As", "Kd", "2c", "3c"],
    ["As", "As", "Kd"],
    ["As", "Kd", "As"],
    ["Kd", "As", "As"],
    ["9s", "9s", "9s"],
    ["As", "Kd", "1c"],
    ["As", "Kd", "10c"],
    ["As", "Kd", "kc"],
    ["As", "Kd", 2],
    ["As", "Kd", ["2c"]],
    ["As", "Kd", None],
    "AsKd2c",
    "AKQ",
    None,
    7,
]


@pytest.mark.parametrize("bad", NO_HANDS, ids=repr)
def test_anything_but_three_different_cards_is_refused(bad: Any) -> None:
    good = cards("Q32")

    for refused in (
        lambda: category(bad),
        lambda: compare(bad, good),
        lambda: compare(good, bad, pair_kicker=True),
        lambda: dealer_qualifies(bad),
    ):
        with pytest.raises(BadDeck, match="expected three different cards, got"):
            refused()


# The messages


@pytest.mark.parametrize(
    ("hand", "dealer", "outcome"),
    [
        ("7s 5h 2d", "Jc Td 8c", 1),
        ("9s 9h 5d", "Qc 3c 2h", 2),
        ("7s 5h 2d", "Qc 3c 2h", -2),
        ("9s 9h 5d", "9d 9c 4s", 0),
    ],
)
def test_T6_what_playing_on_nets(hand: str, dealer: str, outcome: int) -> None:
    assert outcome_of_play(hand.split(), dealer.split()) == outcome


def test_T6_the_odd_card_decides_if_the_setting_says_so() -> None:
    assert outcome_of_play(("9s", "9h", "5d"), ("9d", "9c", "4s"), True) == 2
