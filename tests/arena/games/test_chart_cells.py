"""Counted shares as cells of a chart."""

from __future__ import annotations

from arena.games.analysis import ChartCell
from arena.games.chart_cells import counted_cell
from arena.games.interval import wilson


def test_a_share_has_its_count_and_its_interval() -> None:
    low, high = wilson(0.25, 8).bounds

    cell = counted_cell(2, 8, mark=0.5, cost=1.5)

    expected = ChartCell(share=0.25, count=2, of=8, low=low, high=high, mark=0.5, cost=1.5)
    assert cell == expected


def test_what_was_never_asked_has_the_mark_alone() -> None:
    assert counted_cell(0, 0, mark=0.5, cost=1.5) == ChartCell(mark=0.5)
