"""What three cards are worth (rules T1-T4, T6), and the messages' own checks."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.cards import PACK, RANKS
from protocol.errors import BadDeck
from protocol.three_card_poker import (
    CATEGORIES,
    category,
    compare,
    dealer_qualifies,
    outcome_of_play,
    strength,
)

hands = st.lists(st.sampled_from(PACK), min_size=3, max_size=3, unique=True)


def cards(text: str) -> list[str]:
    """`Qs 3h 2d` as a list; bare ranks (`Q32`) get suits that make no flush."""
    if " " in text:
        return text.split()
    return [rank + suit for rank, suit in zip(text, "shd", strict=True)]


def better(a: str, b: str, pair_kicker: bool = False) -> bool:
    """Whether `a` beats `b`, seen from both sides of the table."""
    there = compare(cards(a), cards(b), pair_kicker)
    back = compare(cards(b), cards(a), pair_kicker)
    assert there == -back
    return there == 1


def level(a: str, b: str, pair_kicker: bool = False) -> bool:
    """Whether neither hand is better."""
    return compare(cards(a), cards(b), pair_kicker) == 0


# T1, T2: the categories


def test_T2_all_22100_hands_fall_into_the_six_categories() -> None:
    counts = Counter(category(hand) for hand in combinations(PACK, 3))

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
        ("7s 7h 7d", "Three of a Kind"),
        ("5c 4c 6c", "Straight Flush"),
    ],
)
def test_T2_one_hand_of_each_category(text: str, expected: str) -> None:
    assert category(cards(text)) == expected


def test_T2_each_category_beats_the_one_below_it() -> None:
    lowest_of_each = ["532", "223", "5s 3s 2s", "A23", "222", "As 2s 3s"]
    highest_of_each = ["AKJ", "AAK", "As Ks Js", "QKA", "AAA"]

    for low, high in zip(highest_of_each, lowest_of_each[1:], strict=True):
        assert better(high, low)


def test_T2_ace_two_three_is_a_straight() -> None:
    assert category(cards("A23")) == "Straight"
    assert category(cards("Ah 2h 3h")) == "Straight Flush"


def test_T2_queen_king_ace_is_a_straight() -> None:
    assert category(cards("QKA")) == "Straight"
    assert category(cards("Qh Kh Ah")) == "Straight Flush"


def test_T2_king_ace_two_is_no_straight() -> None:
    assert category(cards("KA2")) == "Nothing"
    assert category(cards("Kh Ah 2h")) == "Flush"


@given(hands, st.permutations("shdc"))
def test_T1_suits_have_no_order(hand: list[str], suits: list[str]) -> None:
    renamed = dict(zip("shdc", suits, strict=True))

    assert strength(hand) == strength([card[0] + renamed[card[1]] for card in hand])


@given(hands.flatmap(lambda hand: st.tuples(st.just(hand), st.permutations(hand))))
def test_T1_the_order_of_the_cards_does_not_matter(pair: tuple[list[str], list[str]]) -> None:
    hand, other = pair

    assert strength(hand, True) == strength(other, True)
    assert compare(hand, other) == 0


# T3: the same category


def test_T3_straights_compare_by_their_highest_card() -> None:
    assert better("9TJ", "89T")
    assert level("89T", "T89")
    assert better("9s Ts Js", "8h 9h Th")


def test_T3_ace_two_three_counts_as_three_high() -> None:
    assert better("234", "A23")
    assert better("2s 3s 4s", "Ah 2h 3h")


def test_T3_queen_king_ace_counts_as_ace_high() -> None:
    assert better("QKA", "JQK")
    assert better("Qs Ks As", "Jh Qh Kh")


def test_T3_three_of_a_kind_compares_by_rank() -> None:
    ranked = [rank * 3 for rank in RANKS]

    assert all(better(high, low) for low, high in combinations(ranked, 2))


@pytest.mark.parametrize("suits", ["shd", "sss"])
@pytest.mark.parametrize(("high", "low"), [("AT2", "KQT"), ("AQ2", "AJ9"), ("AQ3", "AQ2")])
def test_T3_flush_and_nothing_compare_rank_by_rank(high: str, low: str, suits: str) -> None:
    high, low = (
        " ".join(rank + suit for rank, suit in zip(ranks, suits, strict=True))
        for ranks in (high, low)
    )

    assert better(high, low)
    assert level(low, low)


# T4: two pairs of the same rank


@pytest.mark.parametrize("pair_kicker", [False, True])
def test_T4_the_paired_rank_comes_first(pair_kicker: bool) -> None:
    assert better("992", "88A", pair_kicker)
    assert better("992", "A88", pair_kicker)


def test_T4_nine_nine_five_ties_nine_nine_four_by_default() -> None:
    assert level("995", "994")


def test_T4_nine_nine_five_beats_nine_nine_four_with_pair_kicker() -> None:
    assert better("995", "994", pair_kicker=True)


def test_T4_an_odd_card_above_the_pair_is_the_highest_of_its_hand() -> None:
    assert better("99A", "99K")
    assert better("99T", "992")


@pytest.mark.parametrize("pair_kicker", [False, True])
def test_T4_the_same_pair_and_odd_card_tie(pair_kicker: bool) -> None:
    assert level("9s 9h 5d", "9d 9c 5s", pair_kicker)


# Comparing is a total preorder


def related(hand: list[str]) -> st.SearchStrategy[list[str]]:
    """Hands of the same ranks but for one card: where ties and kickers are common."""
    kept = [card[0] for card in hand[:2]]
    return st.tuples(st.sampled_from(RANKS), st.permutations("shdc")).map(
        lambda drawn: [rank + suit for rank, suit in zip([*kept, drawn[0]], drawn[1], strict=False)]
    )


triples = hands.flatmap(
    lambda hand: st.tuples(*[st.one_of(hands, st.just(hand), related(hand))] * 3)
)


@given(triples, st.booleans())
def test_compare_is_antisymmetric(
    three: tuple[list[str], list[str], list[str]], pair_kicker: bool
) -> None:
    for a, b in combinations(three, 2):
        assert compare(a, b, pair_kicker) == -compare(b, a, pair_kicker)


@given(triples, st.booleans())
def test_compare_is_transitive(
    three: tuple[list[str], list[str], list[str]], pair_kicker: bool
) -> None:
    for a, b, c in permutations(three):
        first, second = compare(a, b, pair_kicker), compare(b, c, pair_kicker)
        if first >= 0 and second >= 0:
            assert compare(a, c, pair_kicker) == max(first, second)


# T6: the dealer's least hand


@pytest.mark.parametrize("text", ["Q32", "K32", "A42", "223", "2h 3h 5h"])
def test_T6_the_dealer_qualifies_with_queen_high_or_better(text: str) -> None:
    assert dealer_qualifies(cards(text))


@pytest.mark.parametrize("text", ["JT8", "JT7", "532"])
def test_T6_the_dealer_does_not_qualify_below_queen_high(text: str) -> None:
    assert not dealer_qualifies(cards(text))


def test_T6_queen_three_two_is_the_least_that_qualifies_and_jack_ten_eight_the_next() -> None:
    order = sorted(combinations(PACK, 3), key=strength)
    first = next(i for i, hand in enumerate(order) if dealer_qualifies(hand))

    assert level(" ".join(order[first]), "Q32")
    assert level(" ".join(order[first - 1]), "JT8")
    assert all(dealer_qualifies(hand) for hand in order[first:])


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
