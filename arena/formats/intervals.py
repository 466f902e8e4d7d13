"""Tallies of matches, and the confidence interval of a mean score, from the units of matches.

A unit, such as a game or a block of hands, is what a match repeats. There are many more units than
matches, so they show sooner how large chance is. The match itself is the unit if it has no sums of
its units, because an older arena wrote it or because it is shorter than one block. Units of one
match may depend on each other, as bots adapt. So from `ENOUGH` matches on the wider of both
intervals counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import floor, log10, sqrt

import msgspec

from arena.formats.spec import Plan
from arena.games.match import Result
from arena.games.rules import Game
from arena.games.statistics import (
    FEWEST,
    Bounds,
    Interval,
    MeanPart,
    Sample,
    SharePart,
    UnitSums,
    mean_of,
    share_of,
    student,
    wider,
    wilson,
)

__all__ = [
    "ENOUGH",
    "IntervalUnit",
    "MatchTally",
    "UnitKind",
    "interval_of",
    "interval_of_league",
    "unit_kind",
    "with_interval",
]

_MOST_DIGITS = 6  # of the ends of an interval, as shown
ENOUGH = 10
"""The fewest completed matches whose own spread is a usable estimate."""

_MATCH = "match"
_FAR = 0.84  # standard deviations: chance exceeds them in 1 of 5 cases


class UnitKind(msgspec.Struct, frozen=True):
    """What the units of a competition's matches are.

    Attributes:
        name: the word for a unit; `match` if the game has no smaller one.
        block: how many units make one value.
        is_share: whether the value of a unit is 1 if it is won and 0 if not.
        rest: the part of a block that is left at the end of a match and is in no sum.
    """

    name: str = _MATCH
    block: int = 1
    is_share: bool = False
    rest: float = 0.0

    @property
    def is_match(self) -> bool:
        return self.name == _MATCH


class IntervalUnit(msgspec.Struct, frozen=True):
    """What the intervals of a competition are computed from.

    `without` is the number of completed matches that have no sums: for these the match is the unit.
    """

    name: str = _MATCH
    block: int = 1
    without: int = 0

    def in_words(self) -> str:
        """The line below a table that explains the ranges in it."""
        what = _several(self.name) if self.block == 1 else f"blocks of {self.block} {self.name}s"
        line = (
            "[…]: 95 % intervals, made so that at most 1 in 20 such ranges is wrong; "
            f"each is computed from {what}"
        )
        if self.without:
            matches = "1 match" if self.without == 1 else f"{self.without:,} matches"
            line += (
                f"; of {matches} without sums of the {self.name}s the unit is the match "
                "(they are too short, or an older arena wrote them and `arena luck` adds the sums)"
            )
        return line


class MatchTally(msgspec.Struct, gc=False):
    """The matches of one bot against another, or against the dealer, added up one at a time.

    A large competition has a million of these. `matches` has the values of the completed matches,
    `units` those of their units, and `lost` is the sum of the values of the other matches.
    """

    wins: int = 0
    draws: int = 0
    losses: int = 0  # both bots lose a match if neither came
    forgiven: int = 0  # losses by the bot's own offences
    score: int = 0
    points: int = 0
    lost: float = 0.0
    matches: Sample = msgspec.field(default_factory=Sample)
    units: Sample | None = None
    is_whole: bool = True  # every completed match has sums of its units

    @property
    def played(self) -> int:
        return self.wins + self.draws + self.losses

    def add(
        self, result: Result, seat: int, units: UnitSums | None = None, value: float | None = None
    ) -> None:
        """Add a match from the view of a seat; its `value` is the score if None is given."""
        value = result.scores[seat] if value is None else value
        is_forgiven = seat in result.out
        if is_forgiven or result.winner not in (None, seat):
            self.losses += 1
        elif result.winner is None:
            self.draws += 1
        else:
            self.wins += 1
        self.forgiven += is_forgiven
        self.score += result.scores[seat]
        self.points += result.points[seat]
        if result.out:
            self.lost += value
            return
        self.matches.add(value)
        if units is None:
            self.is_whole = False
            return
        if self.units is None:
            self.units = Sample()
        self.units.add_sums(units.count, units.sums[seat], units.squares[seat])


def with_interval(
    value: float | None, interval: Bounds | None, say: Callable[[float, int], str], digits: int = 0
) -> str:
    """`0.645 [0.610, 0.680]`, `3.0 (too few)` without an interval, or a dash without a value.

    `say` writes a number with the given digits after the point: at least `digits`, and more if the
    ends of a narrow interval would look the same.
    """
    if value is None:
        return "–"
    if interval is None:
        return f"{say(value, digits)} (too few)"
    low, high = interval
    if high > low:
        digits = max(digits, min(_MOST_DIGITS, 1 - floor(log10(high - low))))
    return f"{say(value, digits)} [{say(low, digits)}, {say(high, digits)}]"


def unit_kind(plan: Plan) -> UnitKind:
    """The units of a competition's matches; the match itself if the game's rules are missing."""
    if plan.missing is not None:
        return UnitKind()
    game: Game = plan.rules
    unit = game.unit
    if unit is None:
        return UnitKind()
    length = plan.settings.get(unit.setting)
    rest = length % unit.block / unit.block if isinstance(length, int) else 0.0
    return UnitKind(unit.name, unit.block, game.is_count and unit.block == 1, rest)


def interval_of(parts: Iterable[MatchTally], kind: UnitKind) -> Interval | None:
    """The interval of the mean score per completed match over `parts`; None with too few values.

    Each part has the weight that it has in the mean: its number of matches.
    """
    parts = [part for part in parts if part.matches.count]
    completed = sum(part.matches.count for part in parts)

    def mean_part(part: MatchTally, values: int, variance: float | None) -> MeanPart:
        matches = part.matches
        return MeanPart(matches.count / completed, matches.total / matches.count, variance, values)

    matches = [mean_part(part, part.matches.count, part.matches.variance) for part in parts]
    if not parts or not all(part.is_whole for part in parts):
        return _mean(matches)
    units = [mean_part(part, *_units(part, kind)) for part in parts]
    by_units = _share(parts, completed) if kind.is_share else _mean(units)
    if by_units is None:
        return _mean(matches)
    return (
        wider(by_units, _mean(matches)) if _hang_together(matches, units, completed) else by_units
    )


def interval_of_league(tally: MatchTally, *, is_share: bool) -> Interval | None:
    """The interval of a league's measure per match that counts; None with too few values.

    Bankrolls are skewed, so fewer than `FEWEST` of them give no interval.
    """
    sample, played = tally.matches, tally.played
    if is_share:
        return wilson(sample.total / played, played) if played else None
    mean, error = sample.mean, sample.standard_error
    if mean is None or error is None or sample.count < FEWEST:
        return None
    found = student(mean, error, sample.count - 1)
    if found is None:
        return None
    low, high = ((end * sample.count + tally.lost) / played for end in (found.low, found.high))
    return Interval(low, high, found.method, found.level)


def _units(part: MatchTally, kind: UnitKind) -> tuple[int, float | None]:
    """The number of units of a part, and their variance scaled to its mean score per match."""
    units, matches = part.units or Sample(), part.matches.count
    variance = units.variance
    if kind.is_share:  # smoothed, as `share_of` does it
        won = (units.total + 1) / (units.count + 2)
        variance = won * (1 - won)
    if variance is not None:
        # The mean is over all units, also those after the last block of each match.
        variance *= (units.count + kind.rest * matches) * units.count / matches**2
    return units.count, variance


def _hang_together(matches: Sequence[MeanPart], units: Sequence[MeanPart], completed: int) -> bool:
    """Whether matches spread more than independent units would in 4 of 5 cases."""
    if completed < ENOUGH or completed == sum(part.count for part in units):
        return False
    degrees = completed - len(matches)
    found, expected = _variance(matches), _variance(units)
    if not degrees or found is None or expected is None:
        return False
    return found > expected * (1 + _FAR * sqrt(2 / degrees))


def _variance(parts: Sequence[MeanPart]) -> float | None:
    """The variance of the mean over the parts; None if that of a part is unknown."""
    total = 0.0
    for part in parts:
        if part.variance is None:
            return None
        total += part.weight**2 * part.variance / part.count
    return total


def _mean(parts: Sequence[MeanPart]) -> Interval | None:
    if len(parts) != 1:
        return mean_of(parts)
    [part] = parts  # a faster way to the same result
    if part.variance is None:
        return None
    return student(part.mean, sqrt(part.variance / part.count), part.count - 1)


def _share(parts: Sequence[MatchTally], completed: int) -> Interval | None:
    units = [part.units or Sample() for part in parts]
    played = sum(sample.count for sample in units)
    found = share_of(
        SharePart(sample.count / played, sample.total, sample.count) for sample in units
    )
    return None if found is None else found.scaled(played / completed)


def _several(noun: str) -> str:
    return f"{noun}es" if noun.endswith("ch") else f"{noun}s"
