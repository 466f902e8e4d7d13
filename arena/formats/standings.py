"""What the outcomes of a competition add up to: tables of round robins (K1) and of leagues (K3).

Standings take outcomes one at a time and can be read at any moment. They are pure and depend on outcomes alone, so that they
can be computed again from the record. Offenders are struck from everyone's standings and listed at the end (J3); what the
errors mean is said in `arena/engine/statistics.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import sqrt
from typing import Any, TypeVar

import msgspec

from arena.engine.match import Result
from arena.engine.statistics import Sample, error_of_sum
from arena.formats.schedule import Outcome
from protocol.errors import UsageError
from protocol.messages import Ending, Termination

__all__ = ["MEASURES", "Cell", "League", "LeagueRow", "Measure", "RoundRobin", "Row", "measure_for"]

Key = TypeVar("Key", float, tuple[int, int])


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """How one bot has done against another.

    Attributes:
        played: matches that count.
        completed: how many of them ran their course; the others ended by an offence that was forgiven (J3).
        wins, draws, losses: how they ended; of a match to which neither came both have lost.
        forgiven: how many of the losses are by offences of its own.
        score: in all, in the unit of the rulebook's "Scores" paragraph.
        mean: score per match that ran its course; None if none did.
        error: the standard error of `mean`; None, which is unknown, while any opponent was met fewer than twice.
        points: in all, in gin (G15).
    """

    played: int = 0
    completed: int = 0
    wins: int = 0
    draws: int = 0
    losses: int = 0
    forgiven: int = 0
    score: int = 0
    mean: float | None = None
    error: float | None = None
    points: int = 0


class Row(Cell, frozen=True, kw_only=True):
    """A bot's line in a round robin: what it has done in all.

    Attributes:
        rank: shared by those who are level (1, 1, 3); None for the eliminated, and for who has played nothing that counts.
        name: of the bot.
        eliminated: the word and text of its offence, or None.
        not_there: whether it does not take part, as it had not come when the competition started.
    """

    rank: int | None
    name: str
    eliminated: Termination | None = None
    not_there: bool = False


class LeagueRow(msgspec.Struct, frozen=True, kw_only=True):
    """A bot's line in a league.

    Attributes:
        rank: shared by those who are level (1, 1, 3); None for the eliminated, and for who has played nothing that counts.
        name: of the bot.
        played: matches that count.
        forgiven: how many of them were lost by an offence that was forgiven (J3).
        value: what ranks, the league's measure per match that counts; None if nothing was played. It is 0 of a match that was
            lost by an offence, so that nobody gains by leaving one that goes badly.
        error: the standard error of `value`, from the matches that ran their course; None if it is unknown.
        score: chips won or lost in all.
        eliminated: the word and text of its offence, or None.
        not_there: whether it does not take part, as it had not come when the competition started.
    """

    rank: int | None
    name: str
    played: int = 0
    forgiven: int = 0
    value: float | None = None
    error: float | None = None
    score: int = 0
    eliminated: Termination | None = None
    not_there: bool = False


class _Standings(ABC):
    """What both forms share: who takes part, who is out, which outcomes count.

    Args:
        players: who takes part.
        not_there: who would have, but had not come when it started; listed at the end.
    """

    def __init__(self, players: Sequence[str], not_there: Sequence[str] = ()) -> None:
        self._players = tuple(players)
        self._not_there = tuple(not_there)
        self._eliminated: dict[str, Termination] = {}

    def add(self, outcome: Outcome) -> None:
        """Count an outcome; unplayed and void ones count for nothing, an offence that is not forgiven eliminates its bot."""
        result = outcome.result
        if result is None or result.termination.kind is Ending.VOID:
            return
        out = [seat for seat in result.out if seat not in outcome.forgiven]
        for seat in out:
            self.eliminate(outcome.pairing.players[seat], result.termination)
        if not out:
            self._count(outcome.pairing.players, result)

    def eliminate(self, name: str, termination: Termination) -> None:
        """Strike a bot, for what it did in a match or outside; only its first offence is told (J2)."""
        self._eliminated.setdefault(name, termination)

    @abstractmethod
    def _count(self, players: tuple[str, ...], result: Result) -> None:
        """Count a match that ran its course, or that ended by offences that were all forgiven."""

    def _remaining(self) -> list[str]:
        return [name for name in self._players if name not in self._eliminated]


class _Tally:
    """One bot against another, while it is being counted."""

    __slots__ = ("draws", "forgiven", "losses", "points", "sample", "score", "wins")

    def __init__(self) -> None:
        self.wins = self.draws = self.losses = self.score = self.points = 0
        self.forgiven = 0
        self.sample = Sample()

    def add(self, result: Result, seat: int) -> None:
        """Count a match from this seat's side."""
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
            self.sample.add(result.scores[seat])

    @property
    def played(self) -> int:
        """All matches that were counted."""
        return self.wins + self.draws + self.losses


class RoundRobin(_Standings):
    """The standings of a competition of matches of two (K1).

    A match of a bot against itself stands in the cross table, as its first seat saw it, and in nobody's row.
    """

    def __init__(self, players: Sequence[str], not_there: Sequence[str] = ()) -> None:
        super().__init__(players, not_there)
        self._tallies: dict[tuple[str, str], _Tally] = {}

    def rows(self) -> tuple[Row, ...]:
        """The table: by wins, then score, then who has met nobody, the eliminated, and who was not there."""
        remaining = self._remaining()
        totals = {
            name: _total(
                tally
                for other in remaining
                if other != name and (tally := self._tallies.get((name, other)))
            )
            for name in remaining
        }
        met = {name: _decided(totals[name]) > 0 for name in remaining}
        ranked = _ranked(
            [name for name in remaining if met[name]],
            lambda name: (totals[name].wins, totals[name].score),
        )
        return (
            *(
                Row(rank=rank, name=name, **msgspec.structs.asdict(totals[name]))
                for rank, name in ranked
            ),
            *(Row(rank=None, name=name) for name in remaining if not met[name]),
            *(
                Row(rank=None, name=name, eliminated=ended)
                for name, ended in self._eliminated.items()
            ),
            *(Row(rank=None, name=name, not_there=True) for name in self._not_there),
        )

    def cross_table(self) -> dict[str, dict[str, Cell]]:
        """Row bot → column bot → how the first has done against the second; the eliminated are not in it (A10)."""
        remaining = self._remaining()
        return {
            name: {
                other: _total([tally])
                for other in remaining
                if (tally := self._tallies.get((name, other)))
            }
            for name in remaining
        }

    def _count(self, players: tuple[str, ...], result: Result) -> None:
        first, second = players
        self._tally(first, second).add(result, 0)
        if first != second:
            self._tally(second, first).add(result, 1)

    def _tally(self, name: str, other: str) -> _Tally:
        return self._tallies.setdefault((name, other), _Tally())


class Measure(msgspec.Struct, frozen=True):
    """What a league ranks by.

    Attributes:
        title: of its column in a table.
        value: (settings of the competition's matches, result) → of one match.
        error: the standard error of the mean of such values.
    """

    title: str
    value: Callable[[Mapping[str, Any], Result], float]
    error: Callable[[Sample], float | None]


class League(_Standings):
    """The standings of a competition in which every bot plays the dealer (K3).

    Args:
        players: the bots.
        measure: what ranks them.
        settings: of all matches, defaults included.
        not_there: who would have played, but had not come when it started.
    """

    def __init__(
        self,
        players: Sequence[str],
        measure: Measure,
        settings: Mapping[str, Any],
        not_there: Sequence[str] = (),
    ) -> None:
        super().__init__(players, not_there)
        self.measure = measure
        self._settings = settings
        self._samples = {name: Sample() for name in players}
        self._scores = dict.fromkeys(players, 0)
        self._forgiven = dict.fromkeys(players, 0)

    def rows(self) -> tuple[LeagueRow, ...]:
        """The table: by the measure's mean, then who has not played, the eliminated, and who was not there."""
        remaining = self._remaining()
        played = [name for name in remaining if self._played(name)]
        return (
            *(self._row(*place) for place in _ranked(played, self._value)),
            *(self._row(None, name) for name in remaining if name not in played),
            *(
                LeagueRow(rank=None, name=name, eliminated=ended)
                for name, ended in self._eliminated.items()
            ),
            *(LeagueRow(rank=None, name=name, not_there=True) for name in self._not_there),
        )

    def _count(self, players: tuple[str, ...], result: Result) -> None:
        (player,) = players
        self._scores[player] += result.scores[0]
        if result.out:  # its stake is lost, which makes 0 by either measure
            self._forgiven[player] += 1
        else:
            self._samples[player].add(self.measure.value(self._settings, result))

    def _value(self, name: str) -> float:
        return self._samples[name].total / self._played(name)

    def _played(self, name: str) -> int:
        return self._samples[name].count + self._forgiven[name]

    def _row(self, rank: int | None, name: str) -> LeagueRow:
        sample, played = self._samples[name], self._played(name)
        error = self.measure.error(sample)
        return LeagueRow(
            rank=rank,
            name=name,
            played=played,
            forgiven=self._forgiven[name],
            value=self._value(name) if played else None,
            error=None if error is None else error * sample.count / played,
            score=self._scores[name],
        )


def measure_for(game: str) -> Measure:
    """What a league of that game ranks by (K3).

    Raises:
        UsageError: no league is played in it.
    """
    if game not in MEASURES:
        raise UsageError(f"expected a league of {' or '.join(MEASURES)}, got {game!r}")
    return MEASURES[game]


def _reached_goal(settings: Mapping[str, Any], result: Result) -> float:
    """1 if a match of three card poker reached its goal, by default twice the stake, else 0 (K3)."""
    goal, stake = settings["goal"], settings["stake"]
    return float(stake + result.scores[0] >= (2 * stake if goal is None else goal))


def _error_of_share(sample: Sample) -> float | None:
    """As if one match more had reached the goal and one more had not, as in T10: none of a few is no proof that none ever will."""
    if not sample.count:
        return None
    smoothed = (sample.total + 1) / (sample.count + 2)
    return sqrt(smoothed * (1 - smoothed) / sample.count)


def _final_bankroll(settings: Mapping[str, Any], result: Result) -> float:
    """What a match of blackjack left of its bankroll (K3)."""
    return float(settings["bankroll"] + result.scores[0])


MEASURES = {
    "three_card_poker": Measure("reached the goal", _reached_goal, _error_of_share),
    "blackjack": Measure("final bankroll", _final_bankroll, lambda sample: sample.standard_error),
}
"""By game."""


def _total(tallies: Iterable[_Tally]) -> Cell:
    """Several opponents in one sum; the error leaves out how much they differ, which is no chance."""
    counted = list(tallies)
    samples = [tally.sample for tally in counted if tally.sample.count]
    completed = sum(sample.count for sample in samples)
    error = error_of_sum(sample.error_of_total for sample in samples)
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
    )


def _decided(cell: Cell) -> int:
    """How many matches of a bot have been won, drawn or lost."""
    return cell.wins + cell.draws + cell.losses


def _ranked(names: list[str], key: Callable[[str], Key]) -> list[tuple[int, str]]:
    """The names by their key, the greatest first, with their ranks; equal keys share one, in the order of entry."""
    ranked: list[tuple[int, str]] = []
    for place, name in enumerate(sorted(names, key=key, reverse=True), start=1):
        level = bool(ranked) and key(ranked[-1][1]) == key(name)
        ranked.append((ranked[-1][0] if level else place, name))
    return ranked
