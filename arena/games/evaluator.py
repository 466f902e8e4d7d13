"""How a game values answers and chance: each game has one `Evaluator`, and all else follows.

An evaluator follows one match and hears what a viewer hears: one seat, or everybody. It says what
the answers to a question are worth (`worths`), what a chance event gave each seat (`luck`), and in
which cells of the charts an event counts (`cells`). This module turns that into marks, luck per
round and counts, in the same way for all games.

`Evaluated` names a game's evaluator by its module, which is loaded at its first use. Playing a game
loads neither the evaluator nor numpy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from math import inf, sqrt
from operator import add
from statistics import fmean, variance
from typing import Any, TypeAlias

import msgspec

from arena.games.analysis import (
    Analyser,
    Analysing,
    Analysis,
    Chart,
    ChartCell,
    HabitMeter,
    Judge,
    Judgement,
    Judging,
    SeatMatch,
    counted_cell,
)
from arena.games.rules import AskSeat, Luck, LuckMeter, LuckRound, TellSeat
from protocol.vocabulary import News, Question

__all__ = [
    "Answered",
    "Cell",
    "CellMeter",
    "ChanceMeter",
    "Evaluated",
    "Evaluator",
    "Tally",
    "Worths",
    "judgement",
]

_ROUNDING = 1e-9
_SUSPECT = 0.5  # standard errors: an answer less far behind the best is not sampled again
_SURE = 2.5  # standard errors from which a difference counts as real

Cell: TypeAlias = Hashable
"""A place of a game's charts."""


class Answered(msgspec.Struct, frozen=True, gc=False):
    """A seat answered a question."""

    seat: int
    question: Question[Any]
    answer: Any


class Worths(msgspec.Struct, frozen=True, kw_only=True):
    """The values of the answers to a question.

    Attributes:
        values: by answer, its exact value or samples of it. Samples with the same index have the
            same hidden cards for all answers, so that their differences are most precise.
        unit: of the values.
        grades: a mistake is a `?!`, a `?` or a `??` if it costs more than these times `scale`.
        scale: the unit of `grades`, such as the bet.
        least: a cost up to this is level, even a cost of 0; None if every cost is a mistake.
        seen: by answer, how few observations its samples are drawn from; missing if unlimited.
        again: computes the values a second time, by other means, where the answer is not the best;
            None if that is not possible. With samples, the first values only choose the best answer
            and the second ones measure its lead, as the best of several estimates is too high on
            average. With exact values, a mistake is level if the second ones deny it.
    """

    values: Mapping[Any, Sequence[float]]
    unit: str
    grades: Sequence[float]
    scale: float = 1.0
    least: float | None = None
    seen: Mapping[Any, int] = {}
    again: Callable[[], Worths | None] | None = None

    @property
    def is_exact(self) -> bool:
        return all(len(values) == 1 for values in self.values.values())

    def gap(self, one: Any, other: Any) -> tuple[float, float]:
        """The mean lead of one answer over another by its samples, and its standard error.

        The error is an upper bound: all chance is taken to be in the samples and in the
        observations of the answer that was observed least (Hoeffding's decomposition). It counts
        one more observation with a lead of 0, so the error is never 0 with few observations.
        """
        gaps = [a - b for a, b in zip(self.values[one], self.values[other], strict=True)]
        mean, seen = fmean(gaps), min(self.seen.get(one, inf), self.seen.get(other, inf))
        unseen = mean / (seen + 1)
        return mean, sqrt(variance(gaps) * (1 / seen + 1 / len(gaps)) + unseen * unseen)


def judgement(worths: Worths, answer: Any) -> Judgement | None:
    """What an answer costs, given the values of all answers; None if its own value is unknown."""
    if answer not in worths.values:
        return None
    means = {each: fmean(values) for each, values in worths.values.items()}
    best = max(means, key=means.__getitem__)
    error: float | None = None
    if worths.is_exact:
        cost = means[best] - means[answer]
        cost = cost if cost > _ROUNDING else 0.0
        is_level = worths.least is not None and cost <= worths.least
        if not cost or is_level:
            best = answer
        elif worths.again is not None and (again := worths.again()) is not None:
            is_level = again.gap(best, answer)[0] <= 0
    else:
        best, cost, error = _estimated(worths, means, best, answer)
        is_level = best != answer and (cost <= _SURE * (error or 0.0) or cost < (worths.least or 0))
    grade = 0 if is_level else sum(cost > least * worths.scale for least in worths.grades)
    return Judgement(
        cost=cost, best=best, unit=worths.unit, error=error, is_level=is_level, grade=grade
    )


def _estimated(
    worths: Worths, means: Mapping[Any, float], best: Any, answer: Any
) -> tuple[Any, float, float | None]:
    """The best answer by samples, the cost of the given answer, and the cost's standard error."""
    if worths.again is None:
        best = answer if means[answer] == means[best] else best
        # The best answer is as certain as its lead over the second best.
        next_best = max((each for each in means if each != best), key=means.__getitem__)
        cost, error = worths.gap(best, next_best if best == answer else answer)
        return best, 0.0 if best == answer else cost, error
    if best == answer:
        return best, 0.0, None
    cost, error = worths.gap(best, answer)
    if cost > _SUSPECT * error and (again := worths.again()) is not None:
        cost, error = again.gap(best, answer)
    return best, max(cost, 0.0), error


class Evaluator:
    """Follows one match as a viewer hears it; a game overrides the methods that it has answers for.

    `luck` and `cells` are called for an event before `heard` is, and `worths` for a question before
    its answer is heard. These three do not change the evaluator.

    Args:
        settings: of the match.
        seat: whose view it has; None for all seats and all cards.
    """

    def __init__(self, settings: Any, seat: int | None = None) -> None:
        self.settings, self.seat = settings, seat

    @staticmethod
    def refuses(settings: Any) -> str | None:
        """Why decisions are not judged with these settings; None if they are."""

    def prepare(self) -> None:
        """Prepare for calls of `worths`; raises `UsageError` if a package is not installed."""

    def heard(self, event: TellSeat | AskSeat | Answered) -> None:
        """Follow the match."""

    def worths(self, question: Question[Any], answer: Any) -> Worths | None:
        """The values of the answers to a question of this seat, the given one if it can be valued
        among them; None if they are unknown.
        """

    def luck(self, event: TellSeat | AskSeat) -> Sequence[float] | None:
        """By seat, the luck of an event: its gain minus the mean gain of all possible events.

        None if the event is not chance. The luck of a round is the sum over its events.
        """

    def gains(self, news: News) -> Sequence[float] | None:
        """By seat, the payoff of the round, or other stretch of luck, that this news ends; None for
        news that ends none.
        """

    def cells(self, event: TellSeat | Answered) -> Iterable[tuple[Cell, float]]:
        """The cells of the charts in which an event counts, each with a value to add to the tally.

        In a cell that shows a share, it is 1 if the seat did it, and 0 if it only could have.
        """
        return ()

    @staticmethod
    def charts(tally: Tally) -> tuple[Chart, ...]:
        """The counts of a bot as charts; every bot gets the same charts with the same labels."""
        return ()


class Tally:
    """Counts what a bot did over any number of matches, by cell.

    Attributes:
        done: how often the bot did it, or the sum of the values.
        asked: how often it could have done it.
    """

    def __init__(self) -> None:
        self.done: Counter[Cell] = Counter()
        self.asked: Counter[Cell] = Counter()

    def add(self, cell: Cell, done: float) -> None:
        self.asked[cell] += 1
        self.done[cell] += done  # type: ignore[assignment]  # a sum of floats is one

    def count(self, cell: Cell) -> tuple[int, int]:
        """How often the bot did something, and how often it could have done it."""
        return self.done[cell], self.asked[cell]

    def cell(
        self, cell: Cell, *, mark: float | None = None, cost: float | None = None
    ) -> ChartCell:
        """A cell of a chart, with the interval of its share."""
        return counted_cell(*self.count(cell), mark=mark, cost=cost)


class WorthJudge:
    """Judges a seat's decisions by an evaluator's `worths` (see `Judge`)."""

    def __init__(self, evaluator: Evaluator, seat: int) -> None:
        self._evaluator, self._seat = evaluator, seat

    def heard(self, news: News) -> None:
        self._evaluator.heard(TellSeat(self._seat, news))

    def judged(self, question: Question[Any], answer: Any) -> Judgement | None:
        worths = self._evaluator.worths(question, answer)
        return None if worths is None else judgement(worths, answer)

    def decided(self, question: Question[Any], answer: Any) -> None:
        self._evaluator.heard(Answered(self._seat, question, answer))


class ChanceMeter(LuckMeter):
    """Adds up the luck that an evaluator reports, round by round."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.rounds: list[LuckRound] = []
        self._evaluator = evaluator
        self._luck: Sequence[float] = ()

    def told(self, told: TellSeat) -> None:
        self._happened(told)
        if (gains := self._evaluator.gains(told.news)) is not None:
            luck = tuple(self._luck) or (0.0,) * len(gains)
            self.rounds.append(LuckRound(tuple(gains), luck))
            self._luck = ()

    def asked(self, asked: AskSeat) -> None:
        self._happened(asked)

    def answered(self, asked: AskSeat, answer: Any) -> None:
        self._evaluator.heard(Answered(asked.seat, asked.question, answer))

    def _happened(self, event: TellSeat | AskSeat) -> None:
        if (luck := self._evaluator.luck(event)) is not None:
            self._luck = [*map(add, self._luck, luck)] if self._luck else luck
        self._evaluator.heard(event)


class CellMeter:
    """Counts what a bot did in the cells that an evaluator reports (see `HabitMeter`)."""

    def __init__(self, evaluator: type[Evaluator]) -> None:
        self._class, self.tally = evaluator, Tally()

    def begin(self, settings: Any, seat: int) -> None:
        self._evaluator, self._seat = self._class(settings, seat), seat

    def heard(self, news: News) -> None:
        self._count(TellSeat(self._seat, news))

    def decided(self, question: Question[Any], answer: Any) -> None:
        self._count(Answered(self._seat, question, answer))

    def charts(self) -> tuple[Chart, ...]:
        return self._class.charts(self.tally)

    def _count(self, event: TellSeat | Answered) -> None:
        for cell, done in self._evaluator.cells(event):
            self.tally.add(cell, done)
        self._evaluator.heard(event)


class Evaluated(msgspec.Struct, frozen=True):
    """A game's evaluator by name, and the parts of a `Game` that are made from it.

    A part is None if its module is not installed; the game can be played without it.

    Attributes:
        name: `package.module:Class`.
        analysis_module: the module with `probe` and `watch`, if bots are analysed.
    """

    name: str
    analysis_module: str = ""

    def luck(
        self, unit: str, refuses: Callable[[Any], str | None] = lambda settings: None
    ) -> Luck | None:
        """How luck is measured; arguments as for `Luck`."""
        if not self._is_here:
            return None
        return Luck(unit, lambda settings: ChanceMeter(self._class()(settings)), refuses)

    def judging(self, version: int, **more: Any) -> Judging | None:
        """How decisions are judged; arguments as for `Judging`."""
        return Judging(version=version, judge=self._judge, **more) if self._is_here else None

    def analysing(self, version: int, **more: Any) -> Analysing | None:
        """How bots are analysed; arguments as for `Analysing`."""
        if find_spec(self.analysis_module) is None:
            return None
        return Analysing(version=version, probe=self._probe, watch=self._watch, **more)

    @property
    def habits(self) -> Callable[[], HabitMeter] | None:
        """The factory of the meter that counts what bots do."""
        return (lambda: CellMeter(self._class())) if self._is_here else None

    def refuses(self, settings: Any) -> str | None:
        """Why the evaluator judges no decisions with these settings."""
        return self._class().refuses(settings)

    @property
    def _is_here(self) -> bool:
        return find_spec(self.name.partition(":")[0]) is not None

    def _class(self) -> type[Evaluator]:
        module, _, name = self.name.partition(":")
        evaluator: type[Evaluator] = getattr(import_module(module), name)
        return evaluator

    def _judge(self, settings: Any, seat: int) -> Judge:
        evaluator = self._class()(settings, seat)
        evaluator.prepare()
        return WorthJudge(evaluator, seat)

    def _probe(self, settings: Any, seed: int, against: Sequence[str]) -> Analyser:
        analyser: Analyser = import_module(self.analysis_module).probe(settings, seed, against)
        return analyser

    def _watch(self, matches: Iterable[SeatMatch]) -> Analysis:
        analysis: Analysis = import_module(self.analysis_module).watch(matches)
        return analysis
