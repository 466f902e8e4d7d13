"""Swaps and bids of a bot in high-low, counted by card."""

from __future__ import annotations

from arena.games.analysis import Chart, ChartCell
from arena.games.catalogue import GAMES
from protocol.high_low import Bid, Dealt, HighLowSettings, Swap
from tests.support.not_none import not_none


def cell(chart: Chart, row: str, column: str) -> ChartCell:
    return not_none(chart.cells[chart.rows.index(row)][chart.columns.index(column)])


def counted() -> tuple[Chart, Chart]:
    make = not_none(GAMES["high_low"].habits)
    meter = make()
    meter.begin(HighLowSettings(), 2)
    meter.heard(Dealt(1, 1, 0, "Tc", "As"))
    meter.decided(Swap("Tc", "As"), "swap")
    meter.decided(Swap("Th", "2d"), "keep")
    meter.decided(Swap("Th", "8c"), "keep")
    for bid in "quit", 4, 4, 10:
        meter.decided(Bid("Kd", "8c", (None,) * 4, ("quit", 2, 4, 6, 8, 10)), bid)
    swaps, bids = meter.charts()
    return swaps, bids


def test_swaps_are_counted_by_card_and_by_what_there_is_to_take() -> None:
    swaps, _ = counted()
    nearer, other = swaps.columns

    assert (cell(swaps, "10", nearer).count, cell(swaps, "10", nearer).of) == (1, 2)
    assert (cell(swaps, "10", other).count, cell(swaps, "10", other).of) == (0, 1)


def test_bids_are_counted_by_card() -> None:
    _, bids = counted()
    king = {column: cell(bids, "K", column).share for column in bids.columns}

    assert king == {"quit": 0.25, "2": 0, "4": 0.5, "6": 0, "8": 0, "10": 0.25}
    low, high = cell(bids, "K", "4").low, cell(bids, "K", "4").high
    assert low is not None
    assert high is not None
    assert 0 < low < 0.5 < high < 1


def test_a_card_that_it_never_had_was_not_seen() -> None:
    swaps, bids = counted()

    assert cell(swaps, "A", swaps.columns[0]) == ChartCell()
    assert cell(bids, "A", bids.columns[0]) == ChartCell()
