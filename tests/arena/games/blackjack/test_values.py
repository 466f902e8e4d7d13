"""What hands of blackjack are worth, against a program that deals card after card."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from arena.games.blackjack.values import FULL, UPCARDS, best_play, counted, fresh_deck
from protocol.blackjack import NEW_DECK
from tests.support.long import LONG

Deck = tuple[int, ...]


def without(deck: Deck, card: int) -> Deck:
    return tuple(count - (points == card) for points, count in enumerate(deck, 1))


def total_of(points: int, has_ace: bool) -> int:
    return points + 10 if has_ace and points < 12 else points


@cache
def dealers(deck: Deck, points: int, has_ace: bool) -> tuple[float, ...]:
    """How likely the dealer ends at 17 to 21 or, last, busts; rules B10, card after card."""
    ends = [0.0] * 6
    total = total_of(points, has_ace)
    if total > 16:
        ends[min(total, 22) - 17] = 1.0
        return tuple(ends)
    left = sum(deck)
    for card, count in enumerate(deck, 1):
        if count:
            rest = (*deck[: card - 1], count - 1, *deck[card:])
            for end, likely in enumerate(dealers(rest, points + card, has_ace or card == 1)):
                ends[end] += likely * count / left
    return tuple(ends)


def stood(deck: Deck, total: int, upcard: int) -> float:
    *ends, bust = dealers(deck, upcard, upcard == 1)
    wins = sum(likely for dealer, likely in enumerate(ends, 17) if dealer < total)
    return bust + wins - sum(likely for dealer, likely in enumerate(ends, 17) if dealer > total)


def table_hits(total: int, is_soft: bool, upcard: int) -> bool:
    """Rule B12, as the rulebook has it."""
    if is_soft:
        return total <= 17 or (total == 18 and upcard not in (2, 7, 8))
    if total == 12:
        return upcard not in (4, 5, 6)
    return total <= 11 or (13 <= total <= 16 and upcard not in (2, 3, 4, 5, 6))


@cache
def worths(deck: Deck, points: int, has_ace: bool, upcard: int) -> tuple[float, float, float]:
    """What a hand is worth that stands, that hits and then does its best, and by rule B12."""
    total = total_of(points, has_ace)
    stands = stood(deck, total, upcard) if total > 11 else -1.0  # no worse than to hit
    hits = by_table = 0.0
    left = sum(deck)
    for card, count in enumerate(deck, 1):
        best = table = -1.0
        if count and points + card <= 21:
            rest = (*deck[: card - 1], count - 1, *deck[card:])
            *either, table = worths(rest, points + card, has_ace or card == 1, upcard)
            best = max(either)
        hits += best * count / left
        by_table += table * count / left
    return stands, hits, by_table if table_hits(total, total > points, upcard) else stands


def by_recursion() -> tuple[float, float]:
    """What a chip brings from a fresh deck: with the best play, and by rule B12."""
    best = table = 0.0
    for upcard in range(1, 11):
        rest = without(FULL, upcard)
        for first in range(1, 11):
            second_rest = without(rest, first)
            for second, count in enumerate(second_rest, 1):
                likely = FULL[upcard - 1] / 52 * rest[first - 1] / 51 * count / 50
                if {first, second} == {1, 10}:
                    best += 1.5 * likely
                    table += 1.5 * likely
                elif count:
                    hand = without(second_rest, second), first + second, 1 in (first, second)
                    *either, by_table = worths(*hand, upcard)
                    best += likely * max(either)
                    table += likely * by_table
    dealers.cache_clear()  # hundreds of megabytes
    worths.cache_clear()
    return best, table


def table_shares() -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    fresh = fresh_deck()
    hands = fresh.hands
    rows = [
        [table_hits(*hand, upcard) for hand in zip(hands.totals, hands.soft, strict=True)]
        for upcard in UPCARDS
    ]
    return np.where(fresh.is_asked, np.array(rows, float), fresh.best)


def test_the_best_play_and_rule_B12_are_worth_what_card_after_card_gives() -> None:
    fresh = fresh_deck()
    worth = fresh.value(fresh.best), fresh.value(table_shares())

    assert [f"{100 * each:.10f}" for each in worth] == ["-1.2861886484", "-1.3592453927"]
    if LONG:  # those figures are what it gives, in ten seconds and hundreds of megabytes
        assert worth == pytest.approx(by_recursion(), abs=1e-13)


def test_what_hands_lose_sums_to_the_distance_from_the_best_play() -> None:
    fresh = fresh_deck()
    shares = table_shares()
    half = (shares + fresh.best) / 2

    for each in (shares, half, np.where(fresh.is_asked, 0.5, fresh.best)):
        lost = float(fresh.played(each).losses.sum())
        assert lost == pytest.approx(fresh.value(fresh.best) - fresh.value(each), abs=1e-14)
        assert lost > 1e-4


def test_hands_come_as_often_as_cards_do() -> None:
    fresh = fresh_deck()
    tens = fresh.hands.index[(0,) * 9 + (2,)]
    two_aces_and_a_ten = fresh.hands.index[(2, *(0,) * 8, 1)]

    assert fresh.naturals == pytest.approx(2 * 4 * 16 / (52 * 51))
    assert fresh.likely[:, tens].sum() == pytest.approx(16 * 15 / (52 * 51))
    # In two of three orders the hand was a natural before.
    assert fresh.likely[:, two_aces_and_a_ten].sum() == pytest.approx(4 * 3 * 16 / (52 * 51 * 50))


def test_bounds_meet_where_nothing_is_open_and_hold_what_lies_between() -> None:
    fresh = fresh_deck()
    shares = table_shares()
    low = np.where(fresh.is_asked, 0.9 * shares, fresh.best)
    high = np.where(fresh.is_asked, 0.9 * shares + 0.1, fresh.best)
    least, most = fresh.bounds(low, high)

    assert fresh.bounds(shares, shares) == pytest.approx((fresh.value(shares),) * 2)
    assert least < fresh.value(shares) < most < fresh.value(fresh.best)


@pytest.mark.stats
@pytest.mark.parametrize("gone", [0, 15, 29])
@pytest.mark.parametrize(
    ("upcard", "hand"), [("9h", "Ts 6s"), ("Ah", "As 2s"), ("6h", "5s 5h 2d"), ("Th", "9s 9h 3d")]
)
def test_a_hand_is_worth_what_card_after_card_gives_when_others_are_gone(
    gone: int, upcard: str, hand: str
) -> None:
    cards = hand.split()
    points = [*map(counted, [[card] for card in cards])]
    rest = [card for card in NEW_DECK if card not in (upcard, *cards)]
    unseen = counted(rest[gone:])
    shown = counted([upcard]).index(1) + 1
    worth = best_play(shown, counted(cards), unseen)
    low = sum(each.index(1) + 1 for each in points)
    stands, hits, _ = worths(unseen, low, counted(cards)[0] > 0, shown)

    assert worth[(0,) * 10][1] == pytest.approx(hits, abs=1e-12)
    if total_of(low, counted(cards)[0] > 0) > 11:
        assert worth[(0,) * 10][0] == pytest.approx(stands, abs=1e-12)
    if unseen[1] and low <= 19:
        again = worths(without(unseen, 2), low + 2, counted(cards)[0] > 0, shown)
        assert worth[(0, 1, *(0,) * 8)][1] == pytest.approx(again[1], abs=1e-12)


def test_hitting_21_and_more_is_no_hand() -> None:
    [(_, hit)] = best_play(9, counted(["Ts", "9s", "2s"]), FULL).values()

    assert hit == -1
