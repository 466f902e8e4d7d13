"""Counts a bot's hits by total and up-card, for blackjack's chart."""

from __future__ import annotations

from typing import Any

from arena.games.analysis import Chart, ChartCell
from arena.games.blackjack.layout import Cell, laid_out
from arena.games.chart_cells import counted_cell
from arena.games.extra import has_analysis
from protocol.blackjack import POINTS, Draw
from protocol.vocabulary import News, Question

__all__ = ["BlackjackHabits"]


class BlackjackHabits:
    """Counts over any number of matches, whatever cards were gone.

    A cell in which the bot was never asked counts as played best.
    """

    def __init__(self) -> None:
        self.asked: dict[Cell, tuple[int, int]] = {}

    def begin(self, settings: Any, seat: int) -> None:
        """Go on counting: a hand is the same in every match."""

    def heard(self, news: News) -> None:
        """Count nothing: all that counts stands in the question."""

    def decided(self, question: Question[Any], answer: Any) -> None:
        """Count a hit or a stand."""
        if type(question) is Draw:
            cell = question.soft, question.total, POINTS[question.upcard]
            hits, of = self.asked.get(cell, (0, 0))
            self.asked[cell] = hits + (answer == "hit"), of + 1

    def charts(self) -> tuple[Chart, ...]:
        """The charts of hard and soft hands; without costs where numpy and scipy are missing."""
        if not has_analysis():
            return laid_out(self._cell)
        from arena.games.blackjack.charts import Chartable
        from arena.games.blackjack.values import fresh_deck

        fresh = fresh_deck()
        chartable = Chartable(fresh)
        return chartable.charts(fresh.played(chartable.seen(self.asked)), self.asked)

    def _cell(self, is_soft: bool, total: int, upcard: int) -> ChartCell:
        return counted_cell(*self.asked.get((is_soft, total, upcard), (0, 0)))
