"""The chart of a bot's hits in blackjack, and what its cells cost."""

from __future__ import annotations

from itertools import product

import msgspec
import pytest

from arena.games.analysis import Chart, ChartCell
from arena.games.blackjack.habits import BlackjackHabits
from arena.games.blackjack.rules import GAME
from arena.games.blackjack.values import fresh_deck
from arena.games.interval import wilson
from protocol.blackjack import NEW_DECK, Bet, Draw, hand_value
from protocol.vocabulary import Range
from tests.support.not_none import not_none


def charts_of(*draws: tuple[str, str, int, bool, str]) -> tuple[Chart, ...]:
    habits = BlackjackHabits()
    habits.decided(Bet(1, 100, Range(5, 100)), 5)
    for upcard, hand, total, is_soft, answer in draws:
        habits.decided(Draw(upcard, tuple(hand.split()), total, is_soft), answer)
    return habits.charts()


def cell(chart: Chart, row: str, column: str) -> ChartCell:
    return not_none(chart.cells[chart.rows.index(row)][chart.columns.index(column)])


def test_hits_are_counted_by_total_and_upcard_hard_and_soft() -> None:
    hard, soft = charts_of(
        ("Th", "Ts 6s", 16, False, "hit"),
        ("Kh", "9s 7s", 16, False, "stand"),
        ("Kd", "9s 7d", 16, False, "stand"),
        ("Ah", "As 5s", 16, True, "hit"),
    )
    tens = cell(hard, "16", "10")
    aces = cell(soft, "16", "A")

    assert (tens.count, tens.of, tens.share) == (1, 3, 1 / 3)
    assert (tens.low, tens.high) == wilson(1 / 3, 3).bounds
    assert (aces.count, aces.of, aces.share) == (1, 1, 1.0)
    assert (aces.cost, aces.mark) == (0.0, 1.0)
    assert cell(hard, "16", "9").share is None
    assert cell(hard, "16", "9").cost is None


def test_without_numpy_hits_are_counted_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = ("Th", "Ts 6s", 16, False, "hit"), ("Kh", "9s 7s", 16, False, "stand")
    full = charts_of(*draws)
    monkeypatch.setattr("arena.games.extra.find_spec", lambda name: None)
    plain = charts_of(*draws)

    tens, whole = (cell(charts[0], "16", "10") for charts in (plain, full))
    assert (tens.mark, tens.cost) == (None, None)
    assert tens == msgspec.structs.replace(whole, mark=None, cost=None)
    assert cell(plain[0], "16", "9") == ChartCell()
    for one, other in zip(plain, full, strict=True):
        assert (one.title, one.rows, one.columns) == (other.title, other.rows, other.columns)


def test_marks_are_the_best_play_which_may_depend_on_the_cards() -> None:
    hard, soft = charts_of()

    assert [cell(hard, total, "7").mark for total in ("11", "17", "21")] == [1.0, 0.0, 0.0]
    assert cell(soft, "18", "9").mark == 1.0
    assert 0 < (cell(hard, "16", "10").mark or 0) < 1
    assert (len(hard.rows), len(soft.rows), len(hard.columns)) == (18, 10, 10)


def test_the_costs_of_the_cells_sum_to_the_distance_from_the_best_play() -> None:
    assert GAME.habits is not None
    habits = GAME.habits()
    for upcard, first, second in product(NEW_DECK[:13], NEW_DECK[13:26], NEW_DECK[26:39]):
        total, is_soft = hand_value((first, second))
        if total < 21:
            habits.decided(Draw(upcard, (first, second), total, is_soft), "stand")
    charts = habits.charts()
    cells = [cell for chart in charts for row in chart.cells for cell in row if cell is not None]
    fresh = fresh_deck()
    stands = fresh.best.copy()
    stands[fresh.is_asked] = 0.0
    distance = 100 * (fresh.value(fresh.best) - fresh.value(stands))

    assert sum(cell.cost or 0 for cell in cells) == pytest.approx(distance)
    assert distance > 10
    assert {cell.share for cell in cells} == {0.0, None}
