"""The standings of round robins (K1) and of leagues (K3).

Standings take outcomes one at a time and can be read at any moment. They are pure and depend on
outcomes alone, so that they can be computed again from the record. Offenders are struck from
everyone's standings and listed at the end (J3). `error` is one standard error, from the scores of
matches; `arena/games/statistics.py` says what it means. `interval` is what people are shown: it
holds the true mean in 19 of 20 cases, and `arena/formats/intervals.py` says of what it is made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from math import sqrt
from typing import TypeVar

import msgspec

from arena.formats.intervals import (
    IntervalUnit,
    PairingScores,
    UnitKind,
    interval_of,
    interval_of_league,
)
from arena.formats.schedule import Outcome
from arena.games.match import Result
from arena.games.rules import Measure
from arena.games.statistics import Bounds, Sample, UnitSums, error_of_sum
from protocol.messages import Ending, Termination
from protocol.vocabulary import Settings

__all__ = ["Cell", "League", "LeagueRow", "RoundRobin", "Row", "ranked"]

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


class _Standings(ABC):
    """What both forms share: who takes part, who is out, which outcomes count.

    `not_there` are those who had not come when it started; they are listed at the end.
    """

    def __init__(self, players: Sequence[str], not_there: Sequence[str] = ()) -> None:
        self._players = tuple(players)
        self._not_there = tuple(not_there)
        self._eliminated: dict[str, Termination] = {}

    def add(self, outcome: Outcome) -> None:
        """Count an outcome, unless unplayed or void; an offence that is not forgiven eliminates."""
        result = outcome.result
        if result is None or result.termination.kind is Ending.VOID:
            return
        out = [seat for seat in result.out if seat not in outcome.forgiven]
        for seat in out:
            self.eliminate(outcome.pairing.players[seat], result.termination)
        if not out:
            self._count(outcome.pairing.players, result, outcome.units)

    def eliminate(self, name: str, termination: Termination) -> None:
        """Strike a bot for an offence, in a match or outside; only the first is listed (J2)."""
        self._eliminated.setdefault(name, termination)

    @abstractmethod
    def _count(self, players: tuple[str, ...], result: Result, units: UnitSums | None) -> None:
        """Count a match that was completed, or ended by offences that were all forgiven."""

    def _remaining(self) -> list[str]:
        return [name for name in self._players if name not in self._eliminated]


class _Tally(msgspec.Struct, gc=False):
    """One bot against another, while it is counted; a large competition has a million of these."""

    wins: int = 0
    draws: int = 0
    losses: int = 0
    forgiven: int = 0
    score: int = 0
    points: int = 0
    scores: PairingScores = msgspec.field(default_factory=PairingScores)

    def add(self, result: Result, seat: int, units: UnitSums | None) -> None:
        offended = seat in result.out
        if offended:  # also where the other one did not come either
            self.losses += 1
        elif result.winner is None:
            self.draws += 1
        elif result.winner == seat:
            self.wins += 1
        else:
            self.losses += 1
        self.forgiven += offended
        self.score += result.scores[seat]
        self.points += result.points[seat]
        if not result.out:
            self.scores.add(result.scores[seat], units, seat)

    @property
    def played(self) -> int:
        return self.wins + self.draws + self.losses


class RoundRobin(_Standings):
    """The standings of a round robin (K1).

    A match of a bot against itself is in the cross table as its first seat saw it, and in no row.
    """

    def __init__(
        self,
        players: Sequence[str],
        not_there: Sequence[str] = (),
        kind: UnitKind = UnitKind(),  # noqa: B008
    ) -> None:
        super().__init__(players, not_there)
        self._tallies: dict[tuple[str, str], _Tally] = {}
        self._kind = kind
        self._without = 0  # completed matches without sums of units that the game has

    @property
    def unit(self) -> IntervalUnit:
        return IntervalUnit(self._kind.name, self._kind.block, self._without)

    def rows(self) -> tuple[Row, ...]:
        """By wins, then score; at the end those without a match, the eliminated, the absent."""
        remaining = self._remaining()
        totals = {
            name: self._total(
                tally
                for other in remaining
                if other != name and (tally := self._tallies.get((name, other)))
            )
            for name in remaining
        }
        played = [name for name in remaining if totals[name].played]
        return (
            *(
                Row(rank=rank, name=name, **msgspec.structs.asdict(totals[name]))
                for rank, name in ranked(
                    played, lambda name: (totals[name].wins, totals[name].score)
                )
            ),
            *(Row(rank=None, name=name) for name in remaining if name not in played),
            *(
                Row(rank=None, name=name, eliminated=ended)
                for name, ended in self._eliminated.items()
            ),
            *(Row(rank=None, name=name, not_there=True) for name in self._not_there),
        )

    def cross_table(self) -> dict[str, dict[str, Cell]]:
        """Row bot → column bot → how the first did against the second, without the eliminated."""
        remaining = self._remaining()
        return {
            name: {
                other: self._total([tally])
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

    def _tally(self, name: str, other: str) -> _Tally:
        tally = self._tallies.get((name, other))
        if tally is None:
            tally = self._tallies[name, other] = _Tally()
        return tally

    def _total(self, tallies: Iterable[_Tally]) -> Cell:
        """The sum over opponents; error and interval leave out how these differ: no chance."""
        counted = list(tallies)
        samples = [tally.scores.matches for tally in counted if tally.scores.matches.count]
        completed = sum(sample.count for sample in samples)
        error = error_of_sum(sample.error_of_total for sample in samples)
        interval = interval_of((tally.scores for tally in counted), self._kind)
        return Cell(
            played=sum(tally.played for tally in counted),
            completed=completed,
            wins=sum(tally.wins for tally in counted),
            draws=sum(tally.draws for tally in counted),
            losses=sum(tally.losses for tally in counted),
            forgiven=sum(tally.forgiven for tally in counted),
            score=sum(tally.score for tally in counted),
            mean=sum(sample.total for sample in samples) / completed if samples else None,
            error=None if error is None else error / completed,
            points=sum(tally.points for tally in counted),
            interval=None if interval is None else interval.bounds,
            level=None if interval is None else interval.level,
            method=None if interval is None else interval.method,
        )


class League(_Standings):
    """The standings of a league (K3); `settings` are those of all matches."""

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
        self._samples = {name: Sample() for name in players}
        self._lost = dict.fromkeys(players, 0.0)  # the values of matches lost by an offence
        self._scores = dict.fromkeys(players, 0)
        self._forgiven = dict.fromkeys(players, 0)

    def rows(self) -> tuple[LeagueRow, ...]:
        """By the measure's mean; at the end those without a match, the eliminated, the absent."""
        remaining = self._remaining()
        played = [name for name in remaining if self._played(name)]
        return (
            *(self._row(*place) for place in ranked(played, self._value)),
            *(self._row(None, name) for name in remaining if name not in played),
            *(
                LeagueRow(rank=None, name=name, eliminated=ended)
                for name, ended in self._eliminated.items()
            ),
            *(LeagueRow(rank=None, name=name, not_there=True) for name in self._not_there),
        )

    @property
    def unit(self) -> IntervalUnit:
        return IntervalUnit()

    def _count(self, players: tuple[str, ...], result: Result, units: UnitSums | None) -> None:
        (player,) = players
        self._scores[player] += result.scores[0]
        value, score = self._measure.value, result.scores[0]
        if not result.out:
            self._samples[player].add(value(self._settings, score))
            return
        self._forgiven[player] += 1
        # Nobody may gain by leaving a match. Against the dealer the whole stake is lost by now.
        if not self._measure.is_share:
            self._lost[player] += value(self._settings, min(0, score))

    def _value(self, name: str) -> float:
        return (self._samples[name].total + self._lost[name]) / self._played(name)

    def _played(self, name: str) -> int:
        return self._samples[name].count + self._forgiven[name]

    def _row(self, rank: int | None, name: str) -> LeagueRow:
        sample, played = self._samples[name], self._played(name)
        error = _error_of_share(sample) if self._measure.is_share else sample.standard_error
        interval = interval_of_league(
            sample, self._lost[name], played, is_share=self._measure.is_share
        )
        return LeagueRow(
            rank=rank,
            name=name,
            played=played,
            forgiven=self._forgiven[name],
            value=self._value(name) if played else None,
            error=None if error is None else error * sample.count / played,
            score=self._scores[name],
            interval=None if interval is None else interval.bounds,
            level=None if interval is None else interval.level,
            method=None if interval is None else interval.method,
        )


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
