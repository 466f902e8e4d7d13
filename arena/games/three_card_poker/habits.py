"""How often a bot of three card poker plays its hands, by groups, and what that gives away."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import sqrt

import msgspec

from arena.games.analysis import Chart, ChartCell, Weakness
from arena.games.chart_cells import counted_cell
from arena.games.three_card_poker.luck import DEALERS_HANDS
from arena.games.three_card_poker.table import (
    CLASSES,
    GROUPS,
    LINE,
    HandClass,
    class_of,
    hand_classes,
)
from protocol.three_card_poker import Decision, Hand, Play, ThreeCardPokerSettings
from protocol.vocabulary import News, Question

__all__ = ["UNIT", "HandTally", "ThreeCardPokerHabitMeter"]

UNIT = "% of the ante"
_PERCENT = Fraction(100, DEALERS_HANDS)  # of the ante, in what a `HandClass` counts costs in


class HandTally:
    """Counts what a bot did with its hands, by classes and by groups.

    Attributes:
        played, asked: by class.
    """

    def __init__(self) -> None:
        self.played, self.asked = [0] * CLASSES, [0] * CLASSES
        self._played, self._asked, self._costs = ([0] * len(GROUPS) for _ in range(3))
        self._squares = 0

    def add(self, classes: tuple[HandClass, ...], hand: Hand, decision: Decision) -> None:
        """Count an answer; `classes` are those of the match's settings."""
        number, plays = class_of(hand), decision == "play"
        one = classes[number]
        cost = one.cost_of[plays]
        self.asked[number] += 1
        self.played[number] += plays
        self._asked[one.group] += 1
        self._played[one.group] += plays
        self._costs[one.group] += cost
        self._squares += cost * cost

    @property
    def hands(self) -> int:
        return sum(self._asked)

    @property
    def given_away(self) -> Fraction:
        """What its mistakes cost on average, in `UNIT`; there must be a hand."""
        return self._percent(sum(self._costs))

    @property
    def error(self) -> float:
        """The standard error of `given_away`, if the hands were dealt at random."""
        mean = float(self.given_away)
        square = float(_PERCENT) ** 2 * self._squares / self.hands
        return sqrt(max(0.0, square - mean * mean) / self.hands)

    def weaknesses(self) -> tuple[Weakness, ...]:
        """The groups in which it gives something away; costs sum to `given_away`."""
        found = [
            Weakness(
                spot=GROUPS[group],
                played=_shown("plays", self._played[group] / self._asked[group]),
                best="plays" if group < LINE else "folds",
                cost=float(self._percent(cost)),
            )
            for group, cost in enumerate(self._costs)
            if cost
        ]
        return tuple(sorted(found, key=lambda one: -one.cost))

    def chart(self, is_sample: bool = True) -> Chart:
        """How often it plays the hands of each group; the shares of a sample have intervals."""
        return Chart(
            title="Hands played",
            what="plays",
            rows=GROUPS,
            columns=("plays",),
            cells=tuple((cell,) for cell in self._cells(is_sample)),
            line=LINE,
            cost_unit=f"{UNIT} a hand",
            note="The best play is to play Q-6-4 or better and to fold the rest.",
        )

    def _cells(self, is_sample: bool) -> Iterator[ChartCell]:
        for group, (played, asked) in enumerate(zip(self._played, self._asked, strict=True)):
            cost = float(self._percent(self._costs[group])) if asked else None
            cell = counted_cell(played, asked, mark=float(group < LINE), cost=cost)
            yield cell if is_sample else msgspec.structs.replace(cell, low=None, high=None)

    def _percent(self, cost: int) -> Fraction:
        """A cost as a mean over all hands."""
        return _PERCENT * cost / self.hands


def _shown(what: str, share: float) -> str:
    return what if share == 1 else "folds" if share == 0 else f"{what} {100 * share:.1f} %"


class ThreeCardPokerHabitMeter:
    """Counts the hands that a bot plays; a `HabitMeter`.

    Attributes:
        classes: by the settings of the match that began last.
    """

    def __init__(self) -> None:
        self.tally = HandTally()
        self.classes: tuple[HandClass, ...] = ()

    def begin(self, settings: ThreeCardPokerSettings, seat: int) -> None:
        self.classes = hand_classes(settings.pair_kicker)

    def heard(self, news: News) -> None:
        return

    def decided(self, question: Question[object], answer: Decision) -> None:
        if type(question) is Play:
            self.tally.add(self.classes, question.hand, answer)

    def charts(self) -> tuple[Chart, ...]:
        return (self.tally.chart(),)
