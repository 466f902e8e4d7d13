"""The standings of round robins (K1) and leagues (K3), and what they share with a ladder's.

Standings take outcomes one at a time and can be read at any moment. They are pure and depend on
outcomes alone, so they can be computed again from the record. Offenders are struck from everyone's
standings and listed at the end (J3). `error` is one standard error of the mean score of matches;
see `arena/games/statistics.py`. `interval` is what people are shown: it contains the true mean in
19 of 20 cases; `arena/formats/intervals.py` says what it is computed from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import sqrt
from typing import Any, TypeVar

import msgspec

from arena.formats.intervals import (
    IntervalUnit,
    MatchTally,
    UnitKind,
    interval_of,
    interval_of_league,
)
from arena.formats.schedule import Outcome
from arena.games.match import Result
from arena.games.rules import Measure
from arena.games.statistics import Bounds, Interval, Sample, UnitSums, error_of_sum
from protocol.messages import Ending, Termination
from protocol.vocabulary import Settings

__all__ = [
    "Cell",
    "League",
    "LeagueRow",
    "RoundRobin",
    "Row",
    "RunningStandings",
    "league_value",
    "ranked",
]

Key = TypeVar("Key", float, tuple[int, int], tuple[float, float])


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """How one bot has done against another."""

    played: int = 0  # matches that count
    completed: int = 0  # the others ended by a forgiven offence (J3)
    wins: int = 0
    draws: int = 0
    losses: int = 0  # both bots lose a match if neither came
    forgiven: int = 0  # losses by the bot's own offences
    score: int = 0  # in the unit of the rulebook's "Scores" paragraph
    mean: float | None = None  # score per completed match; None if there is none
    error: float | None = None  # standard, of `mean`; None if it met every opponent only once
    points: int = 0  # of games that count points beside the score (G15)
    interval: Bounds | None = None  # of `mean`; None while there are too few values
    level: float | None = None  # the confidence of `interval`: 0.95
    method: str | None = None  # how `interval` was computed


class Row(Cell, frozen=True, kw_only=True):
    """A bot's line in a round robin: its results over all opponents."""

    rank: int | None  # shared by equals (1, 1, 3); None if eliminated or nothing counts
    name: str
    eliminated: Termination | None = None  # its offence
    not_there: bool = False  # it does not take part, as it was absent at the start
    version: str | None = None  # the latest that has played a match that counts; None without any


class LeagueRow(msgspec.Struct, frozen=True, kw_only=True):
    """A bot's line in a league.

    `value` ranks: the mean of the league's measure over the matches that count; None if there are
    none. A match lost by an offence counts as a failure: it adds nothing to a share, and no gain.
    """

    rank: int | None  # shared by equals (1, 1, 3); None if eliminated or nothing counts
    name: str
    played: int = 0  # matches that count
    forgiven: int = 0  # those lost by an offence that was forgiven (J3)
    value: float | None = None
    error: float | None = None  # standard, of `value`, from completed matches; None if unknown
    score: int = 0  # won or lost in all matches
    eliminated: Termination | None = None  # its offence
    not_there: bool = False  # it does not take part, as it was absent at the start
    version: str | None = None  # the latest that has played a match that counts; None without any
    interval: Bounds | None = None  # of `value`; None while there are too few matches
    level: float | None = None  # the confidence of `interval`: 0.95
    method: str | None = None  # how `interval` was computed


class RunningStandings(ABC):
    """What all forms share: who takes part, who is out, which outcomes count, how rows are ranked.

    `not_there` are the bots that were absent at the start; they are listed at the end.
    """

    line: type[Any]  # the type of the rows
    strikes = True  # whether an offence that is not forgiven eliminates

    def __init__(self, players: Sequence[str], not_there: Sequence[str] = ()) -> None:
        self._players = tuple(players)
        self._not_there = tuple(not_there)
        self._eliminated: dict[str, Termination] = {}

    def add(self, outcome: Outcome) -> None:
        """Count an outcome if it was played and is not void; an unforgiven offence eliminates."""
        result = outcome.result
        if result is None or result.termination.kind is Ending.VOID:
            return
        out = [seat for seat in result.out if self.strikes and seat not in outcome.forgiven]
        for seat in out:
            self.eliminate(outcome.pairing.players[seat], result.termination)
        if not out:
            self._count(outcome.pairing.players, result, outcome.units)

    def eliminate(self, name: str, termination: Termination) -> None:
        """Strike a bot for an offence, in a match or outside; only the first is listed (J2)."""
        self._eliminated.setdefault(name, termination)

    @property
    def unit(self) -> IntervalUnit | None:
        """What the intervals in the rows are computed from; None if they have none."""
        return None

    def cross_table(self) -> dict[str, dict[str, Cell]]:
        """Row bot → column bot → results of the first against the second; only in a round robin."""
        return {}

    def rows(self) -> tuple[Any, ...]:
        """The rows, best first; at the end bots without a match, the eliminated, the absent."""
        remaining = self._remaining()
        lines = {name: self._line(name, remaining) for name in remaining}
        played = [name for name in remaining if lines[name].played]
        return (
            *(self._placed(lines[name], rank) for rank, name in self._ranked(played, lines)),
            *(lines[name] for name in remaining if name not in played),
            *(
                self.line(rank=None, name=name, eliminated=ended)
                for name, ended in self._eliminated.items()
            ),
            *(self.line(rank=None, name=name, not_there=True) for name in self._not_there),
        )

    @abstractmethod
    def _count(self, players: tuple[str, ...], result: Result, units: UnitSums | None) -> None:
        """Count a match that was completed, or was ended by an offence that strikes nobody."""

    @abstractmethod
    def _line(self, name: str, remaining: Collection[str]) -> Any:
        """Make the row of a bot, without its rank."""

    @abstractmethod
    def _ranked(self, played: list[str], lines: Mapping[str, Any]) -> list[tuple[int, str]]:
        """The ranks and names of the bots that have played."""

    def _placed(self, line: Any, rank: int) -> Any:
        return msgspec.structs.replace(line, rank=rank)

    def _remaining(self) -> list[str]:
        return [name for name in self._players if name not in self._eliminated]


class RoundRobin(RunningStandings):
    """The standings of a round robin (K1): by wins, then score.

    A bot's match against itself is in the cross table, from its first seat's view, and in no row.
    """

    line = Row

    def __init__(
        self,
        players: Sequence[str],
        not_there: Sequence[str] = (),
        kind: UnitKind = UnitKind(),  # noqa: B008
    ) -> None:
        super().__init__(players, not_there)
        self._tallies: dict[tuple[str, str], MatchTally] = {}
        self._kind = kind
        self._without = 0  # completed matches that lack sums of units, though the game has units

    @property
    def unit(self) -> IntervalUnit:
        return IntervalUnit(self._kind.name, self._kind.block, self._without)

    def cross_table(self) -> dict[str, dict[str, Cell]]:
        """Row bot → column bot → results of the first against the second; no eliminated bots."""
        remaining = self._remaining()
        return {
            name: {
                other: Cell(**self._total([tally]))
                for other in remaining
                if (tally := self._tallies.get((name, other)))
            }
            for name in remaining
        }

    def _count(self, players: tuple[str, ...], result: Result, units: UnitSums | None) -> None:
        first, second = players
        if self._kind.is_match:
            units = None  # the rules that define the units may be missing
        elif units is None and not result.out:
            self._without += 1
        self._tally(first, second).add(result, 0, units)
        if first != second:
            self._tally(second, first).add(result, 1, units)

    def _tally(self, name: str, other: str) -> MatchTally:
        tally = self._tallies.get((name, other))
        if tally is None:
            tally = self._tallies[name, other] = MatchTally()
        return tally

    def _met(self, name: str, remaining: Collection[str]) -> list[MatchTally]:
        """A bot's results against each opponent that it has met."""
        return [
            tally
            for other in remaining
            if other != name and (tally := self._tallies.get((name, other)))
        ]

    def _line(self, name: str, remaining: Collection[str]) -> Any:
        return self.line(rank=None, name=name, **self._total(self._met(name, remaining)))

    def _ranked(self, played: list[str], lines: Mapping[str, Any]) -> list[tuple[int, str]]:
        return ranked(played, lambda name: (lines[name].wins, lines[name].score))

    def _total(self, tallies: Sequence[MatchTally]) -> dict[str, Any]:
        """The sum over opponents; differences between opponents are no chance, so no error."""
        samples = [tally.matches for tally in tallies if tally.matches.count]
        completed = sum(sample.count for sample in samples)
        error = error_of_sum(sample.error_of_total for sample in samples)
        sums = ("played", "wins", "draws", "losses", "forgiven", "score", "points")
        return {
            **{name: sum(getattr(tally, name) for tally in tallies) for name in sums},
            "completed": completed,
            "mean": sum(sample.total for sample in samples) / completed if samples else None,
            "error": None if error is None else error / completed,
            **_said(interval_of(tallies, self._kind)),
        }


class League(RunningStandings):
    """The standings of a league (K3): by the mean of its measure."""

    line = LeagueRow

    def __init__(
        self,
        players: Sequence[str],
        measure: Measure,
        settings: Settings,
        not_there: Sequence[str] = (),
    ) -> None:
        super().__init__(players, not_there)
        self._measure = measure
        self._settings = settings
        self._tallies = {name: MatchTally() for name in players}

    @property
    def unit(self) -> IntervalUnit:
        return IntervalUnit()

    def _count(self, players: tuple[str, ...], result: Result, units: UnitSums | None) -> None:
        value = league_value(self._measure, self._settings, result)
        self._tallies[players[0]].add(result, 0, value=value)

    def _line(self, name: str, remaining: Collection[str]) -> Any:
        tally, is_share = self._tallies[name], self._measure.is_share
        sample, played = tally.matches, tally.played
        error = _error_of_share(sample) if is_share else sample.standard_error
        return self.line(
            rank=None,
            name=name,
            played=played,
            forgiven=tally.forgiven,
            value=(sample.total + tally.lost) / played if played else None,
            error=None if error is None else error * sample.count / played,
            score=tally.score,
            **_said(interval_of_league(tally, is_share=is_share)),
        )

    def _ranked(self, played: list[str], lines: Mapping[str, Any]) -> list[tuple[int, str]]:
        return ranked(played, lambda name: lines[name].value or 0.0)


def league_value(measure: Measure, settings: Settings, result: Result) -> float:
    """The value of a match in a league; a match lost by an offence reached nothing (J3).

    Nobody may gain by leaving a match: against the dealer the whole stake is already lost then.
    """
    [score] = result.scores
    if not result.out:
        return measure.value(settings, score)
    return 0.0 if measure.is_share else measure.value(settings, min(0, score))


def _said(interval: Interval | None) -> dict[str, Any]:
    """The fields of a row for the interval of its mean."""
    if interval is None:
        return {}
    return {"interval": interval.bounds, "level": interval.level, "method": interval.method}


def _error_of_share(sample: Sample) -> float | None:
    # As if one more match had reached the goal and one more had not (T10): none of a few does not
    # prove that none will.
    if not sample.count:
        return None
    smoothed = (sample.total + 1) / (sample.count + 2)
    return sqrt(smoothed * (1 - smoothed) / sample.count)


def ranked(names: Iterable[str], key: Callable[[str], Key]) -> list[tuple[int, str]]:
    """(rank, name) pairs, the greatest key first; equals share a rank, in the order of entry."""
    places: list[tuple[int, str]] = []
    for place, name in enumerate(sorted(names, key=key, reverse=True), start=1):
        level = bool(places) and key(places[-1][1]) == key(name)
        places.append((places[-1][0] if level else place, name))
    return places
