"""What a bot does with its cards in high-low: when it swaps, and what it bids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from arena.games.analysis import Chart
from arena.games.chart_cells import counted_cell
from arena.games.high_low.luck import extremity
from protocol.high_low import BIDS, Bid, HighLowSettings, Swap
from protocol.vocabulary import News, Question

__all__ = ["HighLowHabits"]

_RANKS = "23456789TJQKA"  # the lowest first (H1)
_CASES = (True, False)  # whether the dealer-card is nearer to an end of the order


class HighLowHabits:
    """Counts swaps and bids by card (see `HabitMeter`)."""

    def __init__(self) -> None:
        self._asked: Counter[Hashable] = Counter()
        self._done: Counter[Hashable] = Counter()

    def begin(self, settings: HighLowSettings, seat: int) -> None:
        """Nothing: a card is the same in every match."""

    def heard(self, news: News) -> None:
        """Nothing: what others do is not counted."""

    def decided(self, question: Question[Any], answer: Any) -> None:
        """Count an answer."""
        if type(question) is Swap:
            better = extremity(question.dealer_card) > extremity(question.card)
            self._count((question.card[0], better), answer == "swap")
        else:
            assert type(question) is Bid, "rules H ask nothing else"
            for bid in BIDS:
                self._count((question.card[0], bid), answer == bid)

    def charts(self) -> tuple[Chart, ...]:
        """Swaps, and bids."""
        return (
            self._chart(
                "Swaps",
                "how often it swaps",
                ("for a card nearer to an end", "for another"),
                _CASES,
                "An end is the two of clubs or the ace of spades.",
            ),
            self._chart(
                "Bids",
                "how often it answers so",
                tuple(bid if bid == "quit" else str(bid) for bid in BIDS),
                BIDS,
                "A number must be at least every number before it, so that low ones are rarer.",
            ),
        )

    def _count(self, cell: Hashable, done: bool) -> None:
        self._asked[cell] += 1
        self._done[cell] += done

    def _chart(
        self, title: str, what: str, columns: tuple[str, ...], cases: Sequence[Any], note: str
    ) -> Chart:
        return Chart(
            title=title,
            what=what,
            rows=tuple("10" if rank == "T" else rank for rank in _RANKS),
            columns=columns,
            cells=tuple(
                tuple(
                    counted_cell(self._done[rank, case], self._asked[rank, case]) for case in cases
                )
                for rank in _RANKS
            ),
            note=note,
        )
