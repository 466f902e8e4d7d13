"""Where the cells of blackjack's charts stand; it needs no numpy, as hits are counted without."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from arena.games.analysis import Chart, ChartCell

__all__ = ["COLUMNS", "LABELS", "Cell", "laid_out"]

Cell: TypeAlias = tuple[bool, int, int]
"""Whether it is soft, the total, the points of the up-card."""

COLUMNS = (*range(2, 11), 1)
LABELS = tuple("A" if card == 1 else str(card) for card in COLUMNS)
_HARD, _SOFT = range(4, 22), range(12, 22)


def laid_out(
    cell: Callable[[bool, int, int], ChartCell], cost_unit: str = "", note: str = ""
) -> tuple[Chart, Chart]:
    """The charts of hard and soft hands, of these cells."""

    def chart(title: str, is_soft: bool, totals: range) -> Chart:
        return Chart(
            title=title,
            what="hits",
            rows=tuple(map(str, totals)),
            columns=LABELS,
            cells=tuple(
                tuple(cell(is_soft, total, upcard) for upcard in COLUMNS) for total in totals
            ),
            cost_unit=cost_unit,
            note=note,
        )

    return chart("Hard hands", False, _HARD), chart("Soft hands", True, _SOFT)
