"""The standings of round robins (K1) and of leagues (K3), and what they share with a ladder's.

Standings take outcomes one at a time and can be read at any moment. They are pure and depend on
outcomes alone, so that they can be computed again from the record. Offenders are struck from
everyone's standings and listed at the end (J3). `error` is one standard error, from the scores of
matches; `arena/games/statistics.py` says what it means. `interval` is what people are shown: it
holds the true mean in 19 of 20 cases, and `arena/formats/intervals.py` says of what it is made.
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
    completed: int = 0  # the others ended by an offence that was forgiven (J3)
    wins: int = 0
    draws: int = 0
    losses: int = 0  # both have lost a match to which neither came
    forgiven: int = 0  # losses by offences of its own
    score: int = 0  # in the unit of the rulebook's "Scores" paragraph
    mean: float | None = None  # score per completed match; None if there is none
    error: float | None = None  # standard, of `mean`; None while it met any opponent only once
    points: int = 0  # of games that count points beside the score (G15)
    interval: Bounds | None = None  # of `mean`; None while there are too few values to say
    level: float | None = None  # how sure `interval` is: 0.95
    method: str | None = None  # by which `interval` was computed


class Row(Cell, frozen=True, kw_only=True):
    """A bot's line in a round robin: what it has done in all."""

    rank: int | None  # shared by equals (1, 1, 3); None if eliminated or nothing counts
    name: str
    eliminated: Termination | None = None  # its offence
    not_there: bool = False  # it does not take part, as it had not come when this started
    version: str | None = None  # the latest that has played a match that counts; None without any


class LeagueRow(msgspec.Struct, frozen=True, kw_only=True):
    """A bot's line in a league.

    `value` ranks: the league's measure per match that counts; None if there is none. A match lost
    by an offence counts as one without success: it is in no share, and has no gain.
    """

    rank: int | None  # shared by equals (1, 1, 3); None if eliminated or nothing counts
    name: str
    played: int = 0  # matches that count
    forgiven: int = 0  # of these, lost by an offence that was forgiven (J3)
    value: float | None = None
    error: float | None = None  # standard, of `value`, from completed matches; None if unknown
    score: int = 0  # won or lost in all matches
    eliminated: Termination | None = None  # its offence
    not_there: bool = False  # it does not take part, as it had not come when this started
    version: str | None = None  # the latest that has played a match that counts; None without any
    interval: Bounds | None = None  # of `value`; None while there are too few matches to say
    level: float | None = None  # how sure `interval` is: 0.95
    method: str | None = None  # by which `interval` was computed


class RunningStandings(ABC):
    """What all forms share: who takes part, who is out, which outcomes count, how rows are ranked.

    `not_there` are those who had not come when it started; they are listed at the end.
    """

    line: type[Any]  # of what the rows are
    strikes = True  # whether an offence that is not forgiven eliminates

    def __init__(self, players: Sequence[str], not_there: Sequence[str] = ()) -> None:
        self._players = tuple(players)
        self._not_there = tuple(not_there)
        self._eliminated: dict[str, Termination] = {}

    def add(self, outcome: Outcome) -> None:
        """Count an outcome, unless unplayed or void; an offence that is not forgiven eliminates."""
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
        """Of what the intervals in the rows are made; None where there are none."""
        return None

    def cross_table(self) -> dict[str, dict[str, Cell]]:
        """Row bot → column bot → how the first did against the second; only of a round robin."""
        return {}

    def rows(self) -> tuple[Any, ...]:
        """Best first; at the end those without a match, the eliminated, the absent."""
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
        """Count a match that was completed, or ended by offences that strike nobody."""

    @abstractmethod
    def _line(self, name: str, remaining: Collection[str]) -> Any:
        """The row of a bot, as yet without a rank."""

    @abstractmethod
    def _ranked(self, played: list[str], lines: Mapping[str, Any]) -> list[tuple[int, str]]:
        """The names of those who have played, with their ranks."""

    def _placed(self, line: Any, rank: int) -> Any:
        return msgspec.structs.replace(line, rank=rank)

    def _remaining(self) -> list[str]:
        return [name for name in self._players if name not in self._eliminated]


class RoundRobin(RunningStandings):
    """The standings of a round robin (K1): by wins, then score.

    A match of a bot against itself is in the cross table as its first seat saw it, and in no row.
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
        self._without = 0  # completed matches without sums of units that the game has

    @property
    def unit(self) -> IntervalUnit:
        return IntervalUnit(self._kind.name, self._kind.block, self._without)

    def cross_table(self) -> dict[str, dict[str, Cell]]:
        """Row bot → column bot → how the first did against the second, without the eliminated."""
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
            units = None  # the rules that say what the units are may be missing
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
        """What a bot has done against each opponent that it has met."""
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
        """The sum over opponents; error and interval leave out how these differ: no chance."""
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
    """The standings of a league (K3): by its measure's mean, with the settings of all matches."""

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
    """What a match of a league counts; one that was lost by an offence reached nothing (J3).

    Nobody may gain by leaving a match. Against the dealer the whole stake is lost by now.
    """
    [score] = result.scores
    if not result.out:
        return measure.value(settings, score)
    return 0.0 if measure.is_share else measure.value(settings, min(0, score))


def _said(interval: Interval | None) -> dict[str, Any]:
    """The fields of a row that say how sure its mean is."""
    if interval is None:
        return {}
    return {"interval": interval.bounds, "level": interval.level, "method": interval.method}


def _error_of_share(sample: Sample) -> float | None:
    # As if one more match had reached the goal and one more had not (T10): if none of a few has,
    # that does not prove that none will.
    if not sample.count:
        return None
    smoothed = (sample.total + 1) / (sample.count + 2)
    return sqrt(smoothed * (1 - smoothed) / sample.count)


def ranked(names: Iterable[str], key: Callable[[str], Key]) -> list[tuple[int, str]]:
    """(rank, name) by the key, the greatest first; equals share a rank, in the order of entry."""
    places: list[tuple[int, str]] = []
    for place, name in enumerate(sorted(names, key=key, reverse=True), start=1):
        level = bool(places) and key(places[-1][1]) == key(name)
        places.append((places[-1][0] if level else place, name))
    return places
