"""A counted share as a cell of a chart, with its 95 % interval."""

from __future__ import annotations

from arena.games.analysis import ChartCell
from arena.games.interval import wilson

__all__ = ["counted_cell"]


def counted_cell(
    count: int, of: int, *, mark: float | None = None, cost: float | None = None
) -> ChartCell:
    """What a bot did `count` of `of` times; "not seen" if it was never asked."""
    if not of:
        return ChartCell(mark=mark)
    low, high = wilson(count / of, of).bounds
    return ChartCell(share=count / of, count=count, of=of, low=low, high=high, mark=mark, cost=cost)
