"""How often a bot bets and calls with each card in Ace-King-Queen, beside the equilibrium."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from arena.games.ace_king_queen.values import EQUILIBRIUM, SPOTS
from arena.games.analysis import Chart
from arena.games.chart_cells import counted_cell
from protocol.ace_king_queen import CARDS, OPENINGS, RESPONSES, AceKingQueenSettings, Open, Respond
from protocol.vocabulary import News, Question

__all__ = ["ANSWERS", "AceKingQueenHabits", "Count", "frequencies", "spot_of"]

Count: TypeAlias = tuple[int, int]
"""How often something was done, and how often it could be."""

ANSWERS: tuple[tuple[str, ...], ...] = (*[OPENINGS] * len(CARDS), *[RESPONSES] * len(CARDS))
"""By spot, to bet or call, and not to."""

_ROWS = ("ace", "king", "queen")


def spot_of(question: Question[Any]) -> int:
    """The number in `SPOTS` of what is asked."""
    if type(question) is Open:
        return CARDS.index(question.card)
    assert type(question) is Respond, "rules A ask nothing else"
    return len(CARDS) + CARDS.index(question.card)


def frequencies(counts: Sequence[Count], costs: Sequence[float] | None = None) -> Chart:
    """The six shares as a chart, with what they cost if that is known."""
    cells = [
        counted_cell(
            done, asked, mark=float(EQUILIBRIUM[spot]), cost=None if costs is None else costs[spot]
        )
        for spot, (done, asked) in enumerate(counts)
    ]
    half = len(CARDS)
    return Chart(
        title="Bets and calls",
        what="how often it bets, or calls a bet",
        rows=_ROWS,
        columns=("bets", "calls"),
        cells=tuple(zip(cells[:half], cells[half:], strict=True)),
        cost_unit="" if costs is None else "chips a hand",
        note="The marks are the equilibrium, which loses to nobody.",
    )


class AceKingQueenHabits:
    """Counts bets and calls (see `HabitMeter`)."""

    def __init__(self) -> None:
        self._done = [0] * len(SPOTS)
        self._asked = [0] * len(SPOTS)

    def begin(self, settings: AceKingQueenSettings, seat: int) -> None:
        """Nothing: a spot is the same in every match."""

    def heard(self, news: News) -> None:
        """Nothing: what others do is not counted."""

    def decided(self, question: Question[Any], answer: Any) -> None:
        """Count an answer."""
        spot = spot_of(question)
        self._asked[spot] += 1
        self._done[spot] += answer == ANSWERS[spot][0]

    def counts(self) -> list[Count]:
        """By spot, how often it bet or called, and how often it could."""
        return list(zip(self._done, self._asked, strict=True))

    def charts(self) -> tuple[Chart, ...]:
        """The six frequencies."""
        return (frequencies(self.counts()),)
