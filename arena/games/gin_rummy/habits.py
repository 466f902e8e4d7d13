"""What a bot does in gin rummy, counted: `GAME.habits` (rulebook, section G)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from arena.games.analysis import Chart, ChartCell
from arena.games.chart_cells import counted_cell
from protocol.gin_melds import arrange, deadwood, discard_deadwoods, points
from protocol.gin_rummy import Dealt, Draw, GinRummySettings, Offer, RoundOver, Turn
from protocol.vocabulary import News, Question

__all__ = ["GinRummyHabits"]

_DEADWOODS = {
    "0 (gin)": range(1),
    "1 to 3": range(1, 4),
    "4 to 6": range(4, 7),
    "7 to 10": range(7, 11),
}
_TURNS = {
    "1 to 3": range(1, 4),
    "4 to 6": range(4, 7),
    "7 to 9": range(7, 10),
    "10 to 12": range(10, 13),
    "13 and later": range(13, 1000),
}
_GOOD = ("goes into a meld", "lowers the deadwood only", "does neither")
_PILES = ("up-card", "discard")


class GinRummyHabits:
    """Counts knocks and what is taken from the discards (see `HabitMeter`)."""

    def __init__(self) -> None:
        self._seat = self._turn = self._rounds = 0
        self._deadwoods: list[int] = []
        self._turns: list[int] = []
        self._taken = [[0, 0] for _ in _GOOD]  # by what a card is good for, of up-card and discard
        self._seen = [[0, 0] for _ in _GOOD]

    def begin(self, settings: GinRummySettings, seat: int) -> None:
        """A match begins."""
        self._seat = seat

    def heard(self, news: News) -> None:
        """Count the end of a round."""
        if type(news) is Dealt:
            self._turn = 0
        elif type(news) is RoundOver:
            self._rounds += 1
            if news.knocker == self._seat:
                hand, melds = news.hands[self._seat], news.melds[self._seat]
                self._deadwoods.append(points(hand) - sum(map(points, melds)))
                self._turns.append(self._turn)

    def decided(self, question: Question[Any], answer: Any) -> None:
        """Count a turn, or a card that was offered."""
        if type(question) is Turn:
            self._turn += 1
        elif type(question) is Offer:
            self._offered(question.hand, question.upcard, 0, answer == "take")
        elif type(question) is Draw:
            self._offered(question.hand, question.discard, 1, answer == "discard")

    def charts(self) -> tuple[Chart, ...]:
        """Deadwood at the knock, cards taken, turns to the knock."""
        return (
            _knocks("Deadwood at the knock", "points", _DEADWOODS, self._deadwoods, self._rounds),
            Chart(
                title="Up-cards and discards taken",
                what="how often it takes the card that lies open",
                rows=_GOOD,
                columns=_PILES,
                cells=tuple(
                    tuple(map(counted_cell, taken, seen))
                    for taken, seen in zip(self._taken, self._seen, strict=True)
                ),
            ),
            _knocks("Turns to the knock", "own turn", _TURNS, self._turns, self._rounds),
        )

    def _offered(self, hand: Sequence[str], card: str, pile: int, took: bool) -> None:
        with_card = [*hand, card]
        if any(card in meld for meld in arrange(with_card)[0]):
            good = 0
        else:
            good = 1 if min(discard_deadwoods(with_card)) < deadwood(hand) else 2
        self._seen[good][pile] += 1
        self._taken[good][pile] += took


def _knocks(
    title: str, column: str, bins: dict[str, range], values: list[int], rounds: int
) -> Chart:
    """How the knocks are spread over some bins, with their mean and their share of the rounds."""
    cells = [
        counted_cell(sum(value in bin_ for value in values), len(values)) for bin_ in bins.values()
    ]
    mean = f"{fmean(values):.1f}" if values else ""
    of_rounds = counted_cell(len(values), rounds)
    return Chart(
        title=title,
        what="of its knocks",
        rows=(*bins, "on average", "it knocks at all"),
        columns=(column,),
        cells=(*((cell,) for cell in cells), (ChartCell(of=len(values), text=mean),), (of_rounds,)),
        line=len(bins),
    )
