"""What the outcomes of a competition add up to: tables of round robins (K1) and of leagues (K3).

Standings take outcomes one at a time and can be read at any moment. They are pure and depend on outcomes alone, so that they
can be computed again from the record. Offenders are struck from everyone's standings and listed at the end (J3); what the
errors mean is said in `arena/statistics.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import sqrt
from typing import Any, TypeVar

import msgspec

from arena.match import Result
from arena.schedule import Outcome
from arena.statistics import Sample, error_of_sum
from protocol.errors import UsageError
from protocol.messages import Ending, Termination

__all__ = [
    "MEASURES",
    "Cell",
    "League",
    "LeagueRow",
    "Measure",
    "RoundRobin",
    "Row",
    "measure_for",
]

Key = TypeVar("Key", float, tuple[int, int])


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """How one bot has done against another.

    Attributes:
        played: matches that count.
        wins, draws, losses: how they ended.
        score: in all, in the unit of the rulebook's "Scores" paragraph.
        mean: score per match; None if none was played.
        error: the standard error of `mean`; None, which is unknown, while any opponent was met fewer than twice.
        points: in all, in gin (G15).
    """

    played: int = 0
    wins: int = 0
    draws: int = 0
    losses: int = 0
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
        value: what ranks, the mean of the league's measure; None if nothing was played.
        error: the standard error of `value`; None if it is unknown.
        score: chips won or lost in all.
        eliminated: the word and text of its offence, or None.
        not_there: whether it does not take part, as it had not come when the competition started.
    """

    rank: int | None
    name: str
    played: int = 0
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
        """Count an outcome; unplayed and void ones count for nothing, an offence eliminates its bot."""
        result = outcome.result
        if result is None or result.termination.kind is Ending.VOID:
            return
        for seat in result.out:
            self.eliminate(outcome.pairing.players[seat], result.termination)
        if not result.out:
            self._count(outcome.pairing.players, result)

    def eliminate(self, name: str, termination: Termination) -> None:
        """Strike a bot, for what it did in a match or outside; only its first offence is told (J2)."""
        self._eliminated.setdefault(name, termination)

    @abstractmethod
    def _count(self, players: tuple[str, ...], result: Result) -> None:
        """Count a match that ran its course."""

    def _remaining(self) -> list[str]:
        return [name for name in self._players if name not in self._eliminated]


class _Tally:
    """One bot against another, while it is being counted."""

    __slots__ = ("draws", "losses", "points", "sample", "score", "wins")

    def __init__(self) -> None:
        self.wins = self.draws = self.losses = self.score = self.points = 0
        self.sample = Sample()

    def add(self, result: Result, seat: int) -> None:
        """Count a match from this seat's side."""
        if result.winner is None:
            self.draws += 1
        elif result.winner == seat:
            self.wins += 1
        else:
            self.losses += 1
        self.score += result.scores[seat]
        self.points += result.points[seat]
        self.sample.add(result.scores[seat])


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

    def rows(self) -> tuple[LeagueRow, ...]:
        """The table: by the measure's mean, then who has not played, the eliminated, and who was not there."""
        means = {name: self._samples[name].mean for name in self._remaining()}
        values = {name: mean for name, mean in means.items() if mean is not None}
        return (
            *(self._row(*place) for place in _ranked([*values], values.__getitem__)),
            *(self._row(None, name) for name in means if name not in values),
            *(
                LeagueRow(rank=None, name=name, eliminated=ended)
                for name, ended in self._eliminated.items()
            ),
            *(
                LeagueRow(rank=None, name=name, not_there=True)
                for name in self._not_there
            ),
        )

    def _count(self, players: tuple[str, ...], result: Result) -> None:
        (player,) = players
        self._samples[player].add(self.measure.value(self._settings, result))
        self._scores[player] += result.scores[0]

    def _row(self, rank: int | None, name: str) -> LeagueRow:
        sample = self._samples[name]
        return LeagueRow(
            rank=rank,
            name=name,
            played=sample.count,
            value=sample.mean,
            error=self.measure.error(sample),
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
    "blackjack": Measure(
        "final bankroll", _final_bankroll, lambda sample: sample.standard_error
    ),
}
"""By game."""


def _total(tallies: Iterable[_Tally]) -> Cell:
    """Several opponents in one sum; the error leaves out how much they differ, which is no chance."""
    counted = list(tallies)
    played = sum(tally.sample.count for tally in counted)
    score = sum(tally.score for tally in counted)
    error = error_of_sum(tally.sample.error_of_total for tally in counted)
    return Cell(
        played=played,
        wins=sum(tally.wins for tally in counted),
        draws=sum(tally.draws for tally in counted),
        losses=sum(tally.losses for tally in counted),
        score=score,
        mean=score / played if played else None,
        error=None if error is None else error / played,
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
