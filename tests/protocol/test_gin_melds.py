"""Rules G1, G2, G7, G9 and G10 as arithmetic, against brute force and by hand."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from functools import cache

import pytest

from protocol.gin_melds import (
    Layoff,
    Meld,
    arrange,
    best_defence,
    card_mask,
    deadwood,
    deadwood_value,
    discard_deadwoods,
    is_meld,
    lay_off,
    mask_deadwood,
    points,
)

Cards = frozenset[str]
Deal = tuple[list[str], list[Cards]]  # a defender's hand, the knocker's melds

RANKS = "A23456789TJQK"
SUITS = "shdc"
DECK = [rank + suit for suit in SUITS for rank in RANKS]


# ---- The same rules once more, as slow and plain as can be.


def every_meld() -> Iterator[Cards]:
    for rank in RANKS:
        four = frozenset(rank + suit for suit in SUITS)
        yield four
        for card in four:
            yield four - {card}
    for suit in SUITS:
        for first in range(13):
            for end in range(first + 3, 14):
                yield frozenset(rank + suit for rank in RANKS[first:end])


MELDS = list(every_meld())
ALL_MELDS = frozenset(MELDS)


def count(cards: Iterable[str]) -> int:
    pips = {"A": 1, "T": 10, "J": 10, "Q": 10, "K": 10}
    return sum(pips.get(card[0]) or int(card[0]) for card in cards)


def leftovers(hand: Cards, melds: list[Cards]) -> Iterator[Cards]:
    """What is unmelded, for every combination of disjoint melds, none included."""
    yield hand
    for place, meld in enumerate(melds):
        if meld <= hand:
            yield from leftovers(hand - meld, melds[place + 1 :])


def every_leftover(hand: Iterable[str]) -> set[Cards]:
    cards = frozenset(hand)
    return set(leftovers(cards, [meld for meld in MELDS if meld <= cards]))


def brute_deadwood(hand: Iterable[str]) -> int:
    return min(map(count, every_leftover(hand)))


@cache
def brute_lay_off(left: Cards, table: tuple[Cards, ...]) -> int:
    """The least left after any card is tried on any meld, in any order, or not."""
    tries = [count(left)]
    for card in left:
        for index, meld in enumerate(table):
            if meld | {card} in ALL_MELDS:
                grown = (*table[:index], meld | {card}, *table[index + 1 :])
                tries.append(brute_lay_off(left - {card}, grown))
    return min(tries)


# ---- Hands, and what must hold of any answer.


def narrow_deck(rng: random.Random, ranks: int) -> list[str]:
    """A few neighbouring ranks in all suits: sets and runs share nearly every card."""
    lowest = rng.randrange(14 - ranks)
    return [rank + suit for rank in RANKS[lowest : lowest + ranks] for suit in SUITS]


def random_hands(size: int, number: int) -> Iterator[list[str]]:
    rng = random.Random(f"random {size}")
    return (rng.sample(DECK, size) for _ in range(number))


def overlapping_hands(size: int, number: int) -> Iterator[list[str]]:
    rng = random.Random(f"overlapping {size}")
    return (rng.sample(narrow_deck(rng, rng.choice((4, 5, 6))), size) for _ in range(number))


def knocks(number: int) -> Iterator[Deal]:
    """Ten cards against one to three melds out of the same narrow deck."""
    rng = random.Random("knocks")
    for _ in range(number):
        deck = frozenset(narrow_deck(rng, rng.choice((6, 7, 9))))
        table: list[Cards] = []
        for _ in range(rng.choice((1, 2, 3))):
            free = deck.difference(*table)
            table.append(rng.choice([meld for meld in MELDS if meld <= free and len(meld) < 5]))
        yield rng.sample(sorted(deck.difference(*table)), 10), table


def lay(layoffs: Iterable[Layoff], table: Iterable[Iterable[str]]) -> Cards:
    """Lay card after card and check that each one is legal when it is laid."""
    melds = [frozenset(meld) for meld in table]
    laid = []
    for card, index in layoffs:
        assert card not in melds[index]
        melds[index] |= {card}
        assert melds[index] in ALL_MELDS
        laid.append(card)
    assert len(set(laid)) == len(laid)
    return frozenset(laid)


def unmelded(hand: Iterable[str], melds: Iterable[Meld]) -> Cards:
    """Take legal, disjoint melds out of the hand."""
    left = frozenset(hand)
    for meld in melds:
        assert frozenset(meld) in ALL_MELDS
        assert len(set(meld)) == len(meld)
        assert left >= frozenset(meld)
        left -= frozenset(meld)
    return left


def held(text: str) -> list[str]:
    """Cards from text: `held("As Td")`."""
    return text.split()


def melds(text: str) -> tuple[Meld, ...]:
    """Melds from text: `melds("As 2s 3s, 9h 9d 9c")`."""
    return tuple(tuple(meld.split()) for meld in text.split(",") if meld)


# ---- G1, G2


def test_G1_deadwood_values() -> None:
    values = [deadwood_value(rank + "h") for rank in RANKS]

    assert values == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10]


def test_G1_points_are_the_sum_of_the_values() -> None:
    assert points(["As", "Td", "Kc", "7h"]) == 28
    assert points(DECK) == 340
    assert points([]) == 0


@pytest.mark.parametrize(
    "text", ["7s 7h 7d", "7c 7d 7s 7h", "As 2s 3s", "3d Ad 2d", "Jc Qc Kc", "9h 6h 8h 7h"]
)
def test_G2_melds_in_any_order(text: str) -> None:
    assert is_meld(text.split())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7s",
        "7s 7h",
        "5s 6s",
        "5s 6s 7h",  # two suits
        "5s 6s 8s",  # a gap
        "7s 7h 8s",
        "7s 7h 7d 8d",
        "7s 7h 7s",  # repeated
        "5s 6s 7s 7s",
        "7s 7h 7x",  # unknown
        "7s7 h7 d",
    ],
)
def test_G2_not_melds(text: str) -> None:
    assert not is_meld(text.split())


@pytest.mark.parametrize("text", ["Qs Ks Ah", "Qs Ks As", "Ks As 2s", "Kh Ad 2d", "Ks Ah 2h"])
def test_G1_no_run_goes_round_the_ace_or_from_suit_to_suit(text: str) -> None:
    cards = text.split()

    assert not is_meld(cards)
    assert arrange(cards) == ((), count(cards))


def test_G2_there_are_65_sets_and_264_runs() -> None:
    assert len(MELDS) == len(ALL_MELDS) == 65 + 264
    assert all(map(is_meld, MELDS))


def test_G2_any_three_or_four_cards_are_judged_as_by_brute_force() -> None:
    rng = random.Random("is_meld")
    for _ in range(2_000):
        cards = rng.sample(narrow_deck(rng, 4), rng.choice((3, 4)))

        assert is_meld(cards) == (frozenset(cards) in ALL_MELDS)


# ---- G9: minimal deadwood


@pytest.mark.parametrize(
    ("hand", "expected", "left"),
    [
        ("", "", 0),
        ("Kh", "", 10),
        ("As 2s 3s", "As 2s 3s", 0),
        # The longest run, 4-5-6-7, would leave 7h 7d and count 14.
        ("4s 5s 6s 7s 7h 7d", "7s 7h 7d, 4s 5s 6s", 0),
        # The run of four takes a card from a set, and is still right.
        ("4s 5s 6s 7s 4h 7h", "4s 5s 6s 7s", 11),
        # A set of four gives its spade to the run.
        ("7s 7h 7d 7c 8s 9s Kh Qd 2c 3d", "7h 7d 7c, 7s 8s 9s", 25),
        # Three sets would leave the eight.
        ("5s 6s 7s 8s 5h 6h 7h 5d 6d 7d", "5s 6s 7s 8s, 5h 6h 7h, 5d 6d 7d", 0),
        ("As Ah Ad 2s 3s 4s Jc Qc Kc Tc", "As Ah Ad, 2s 3s 4s, Tc Jc Qc Kc", 0),
    ],
)
def test_G9_hand_worked_arrangements(hand: str, expected: str, left: int) -> None:
    assert arrange(hand.split()) == (melds(expected), left)


def test_G9_eleven_cards_count_all_that_is_unmelded() -> None:
    hand = held("As 2s 3s 7h 7d 7c Ts Js Qs 9d Kh")

    assert arrange(hand) == (melds("7h 7d 7c, As 2s 3s, Ts Js Qs"), 19)
    assert min(discard_deadwoods(hand)) == 9


@pytest.mark.parametrize(
    ("hand", "expected"),
    [
        # A set before a run that leaves as much.
        ("7s 7h 7d 5s 6s 5h 6h 5d 6d", "5s 5h 5d, 6s 6h 6d, 7s 7h 7d"),
        # A set of four before one of three: the run is good without the seven.
        ("7s 7h 7d 7c 8c 9c Tc", "7s 7h 7d 7c, 8c 9c Tc"),
        # Of two threes the one with the earlier suits.
        ("7s 7h 7d 7c 5d 6d 5c 6c", "7s 7h 7d, 5c 6c 7c"),
        # The lower rank decides: the set of fives and 2-3-4 would leave 14 too.
        ("2s 2d 2c 3d 4d 5d 6d 5s 5c 4c", "2s 2d 2c, 3d 4d 5d 6d"),
        # Neighbours are one run, not two, but not from suit to suit.
        ("As 2s 3s Jd Qd Kd Ac 2c 3c", "As 2s 3s, Jd Qd Kd, Ac 2c 3c"),
        ("9h 8h 7h 6h 5h 4h", "4h 5h 6h 7h 8h 9h"),
        # Sets by rank, then runs by suit and rank.
        ("Kd Qd Jd 3d 2d Ad Ks Kh Kc 2h", "Ks Kh Kc, Ad 2d 3d, Jd Qd Kd"),
    ],
)
def test_G9_the_choice_among_equals(hand: str, expected: str) -> None:
    cards = hand.split()

    assert arrange(cards)[0] == melds(expected)
    assert arrange(cards[::-1]) == arrange(cards)


@pytest.mark.stats
@pytest.mark.parametrize("hands", [random_hands, overlapping_hands])
@pytest.mark.parametrize(("size", "number"), [(5, 500), (10, 1_250), (11, 1_250)])
def test_G9_minimal_deadwood_equals_brute_force(
    hands: Callable[[int, int], Iterator[list[str]]], size: int, number: int
) -> None:
    for hand in hands(size, number):
        arranged, left = arrange(hand)

        assert left == brute_deadwood(hand), hand
        assert left == deadwood(hand) == mask_deadwood(card_mask(hand))
        assert left == count(unmelded(hand, arranged))


@pytest.mark.parametrize("hands", [random_hands, overlapping_hands])
def test_G7_each_discard_leaves_the_least_of_the_other_ten(
    hands: Callable[[int, int], Iterator[list[str]]],
) -> None:
    for hand in hands(11, 1_000):
        tens = [hand[:place] + hand[place + 1 :] for place in range(11)]

        assert discard_deadwoods(hand) == tuple(map(deadwood, tens)), hand


def test_G7_hand_worked_discards() -> None:
    # The best of all eleven is 7s 7h 7d and 4s 5s 6s; the rest count 35.
    changes = {
        "4s": +11,  # 5s and 6s are left
        "5s": +10,
        "6s": +9,
        "7s": +14,  # 7h and 7d are left
        "7h": +7,  # 4s 5s 6s 7s, and 7d is left
        "7d": +7,
        "Kc": -10,
        "Qh": -10,
        "Td": -10,
        "2c": -2,
        "3h": -3,
    }

    assert deadwood(changes) == 35
    assert discard_deadwoods(list(changes)) == tuple(35 + change for change in changes.values())


def test_G7_no_cards_no_discards() -> None:
    assert discard_deadwoods([]) == ()


# ---- G10: layoffs


@pytest.mark.parametrize(
    ("cards", "knocker", "layoffs", "left"),
    [
        # The rulebook's chain: 4 then 3 onto 5-6-7.
        ("3h 4h Kc", "5h 6h 7h", [("4h", 0), ("3h", 0)], "Kc"),
        ("3h 4h 8h 9h", "5h 6h 7h", [("4h", 0), ("8h", 0), ("3h", 0), ("9h", 0)], ""),
        ("2h 3h 9h", "5h 6h 7h", [], "2h 3h 9h"),  # no link to the run
        ("4s 8d", "5h 6h 7h", [], "4s 8d"),  # another suit
        # A set of three takes the fourth card, a set of four none.
        ("7c 8c", "7s 7h 7d", [("7c", 0)], "8c"),
        ("6c 8c", "7s 7h 7d 7c", [], "6c 8c"),
        # The ace is low only, and no run goes on in the next suit.
        ("As", "2s 3s 4s", [("As", 0)], ""),
        ("As Ah", "Js Qs Ks", [], "As Ah"),
        ("Ks Kh", "Ah 2h 3h", [], "Ks Kh"),
        # The seven goes onto the run, though a set before it would take it too.
        ("7h 8h", "7s 7d 7c, 4h 5h 6h", [("7h", 1), ("8h", 1)], ""),
        ("7h 6h", "7s 7d 7c, 8h 9h Th", [("7h", 1), ("6h", 1)], ""),
        # Only where no run reaches does it go onto the set.
        ("7h 8h", "3h 4h 5h, 7s 7d 7c", [("7h", 1)], "8h"),
        # Two runs may both reach a card: the first has it.
        ("6h", "7h 8h 9h, 3h 4h 5h", [("6h", 0)], ""),
        ("6h 7h", "3h 4h 5h, 8h 9h Th", [("6h", 0), ("7h", 0)], ""),
        ("9s Kc", "", [], "9s Kc"),
        ("", "5h 6h 7h", [], ""),
    ],
)
def test_G10_hand_worked_layoffs(
    cards: str, knocker: str, layoffs: list[Layoff], left: str
) -> None:
    expected = (tuple(layoffs), tuple(left.split()))

    assert lay_off(cards.split(), melds(knocker)) == expected
    assert lay_off(cards.split()[::-1], melds(knocker)) == expected


def test_G10_the_knocker_may_declare_a_meld_in_any_order() -> None:
    assert lay_off(["4h", "8h"], melds("7h 5h 6h")) == ((("4h", 0), ("8h", 0)), ())


def test_G10_layoffs_leave_the_least_as_by_brute_force() -> None:
    for cards, table in knocks(1_000):
        layoffs, left = lay_off(cards, [tuple(meld) for meld in table])

        assert lay(layoffs, table) == frozenset(cards).difference(left)
        assert len(layoffs) + len(left) == len(cards)
        assert count(left) == brute_lay_off(frozenset(cards), tuple(table)), cards


# ---- G9, G10, G11: the best defence


def test_G9_the_defender_may_do_better_than_its_minimal_deadwood() -> None:
    hand = held("7s 7h 7d 7c 8h 2s 2d 2c Jd Qd")
    knocker = melds("4h 5h 6h, Ks Kh Kc")

    assert arrange(hand) == (melds("2s 2d 2c, 7s 7h 7d 7c"), 28)
    assert best_defence(hand, knocker) == (
        # Without the seven of hearts, the eight could not be laid off.
        melds("2s 2d 2c, 7s 7d 7c"),
        (("7h", 0), ("8h", 0)),
        20,
    )


def test_G9_of_equal_defences_it_takes_the_one_that_arrange_prefers() -> None:
    hand = held("7s 7h 7d 7c")

    assert best_defence(hand, melds("4h 5h 6h")) == (melds("7s 7h 7d 7c"), (), 0)


def test_G11_against_no_melds_the_best_defence_is_to_arrange() -> None:
    for hand in overlapping_hands(10, 200):
        arranged, left = arrange(hand)

        assert best_defence(hand, ()) == (arranged, (), left)


@pytest.mark.stats
def test_G11_the_best_defence_equals_brute_force() -> None:
    better = 0
    for hand, table in knocks(1_500):
        arranged, layoffs, left = best_defence(hand, [tuple(meld) for meld in table])

        rest = unmelded(hand, arranged)
        assert lay(layoffs, table) <= rest
        assert left == count(rest - lay(layoffs, table))
        assert left == min(brute_lay_off(cards, tuple(table)) for cards in every_leftover(hand)), (
            hand,
            table,
        )
        first = lay_off(tuple(unmelded(hand, arrange(hand)[0])), table)
        better += left < count(first[1])
    assert better > 10  # or these deals would not tell the search from `arrange`


# ---- Cards and melds that are none


@pytest.mark.parametrize("function", [points, card_mask, deadwood, discard_deadwoods, arrange])
@pytest.mark.parametrize("card", ["", "1s", "10s", "as", "AS", "sA", "A", "Ax"])
def test_G1_an_unknown_card_is_refused(function: Callable[[list[str]], object], card: str) -> None:
    with pytest.raises(ValueError, match=f"expected a card such as .*, got '{card}'$"):
        function(["2s", card, "3s"])
    with pytest.raises(ValueError, match="expected a card"):
        deadwood_value(card)


@pytest.mark.parametrize("function", [card_mask, deadwood, discard_deadwoods, arrange])
@pytest.mark.parametrize("text", ["2s 2s", "As 2s As", "Kc Kc Kc Kc", "3s 2s As As"])
def test_G2_a_repeated_card_is_refused(function: Callable[[list[str]], object], text: str) -> None:
    with pytest.raises(ValueError, match=f"expected different cards, got {text}$"):
        function(text.split())


@pytest.mark.parametrize("function", [lay_off, best_defence])
@pytest.mark.parametrize(
    ("cards", "knocker", "message"),
    [
        ("9s 9s", "4h 5h 6h", "expected different cards"),
        ("9s 5h", "4h 5h 6h", "expected different cards"),
        ("9s", "4h 5h 6h, 6h 7h 8h", "expected different cards"),
        ("9s 9x", "4h 5h 6h", "got '9x'"),
        ("9s", "4h 5h 6x", "got '6x'"),
        ("9s", "4h 5h 7h", "expected a set or a run, got 4h 5h 7h"),
        ("9s", "4h 5h 6h, 9h 9d", "expected a set or a run, got 9h 9d"),
    ],
)
def test_G10_wrong_cards_and_wrong_melds_are_refused(
    function: Callable[[list[str], tuple[Meld, ...]], object],
    cards: str,
    knocker: str,
    message: str,
) -> None:
    with pytest.raises(ValueError, match=message):
        function(cards.split(), melds(knocker))
