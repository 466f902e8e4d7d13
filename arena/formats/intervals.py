"""How sure the mean of a bot's scores is: from the units of its matches where they were added up.

A unit, such as a game or a block of hands, is what a match repeats. There are many more units than
matches, so they say sooner how far chance reaches. Where a match has no sums of its units, as an
arena of before wrote it or it is shorter than one block, the match is the unit. Units of one match
may hang together, as bots adapt. So from `ENOUGH` matches on the wider of both intervals counts.
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

_MOST_DIGITS = 6  # of the ends of an interval that people are shown
ENOUGH = 10
"""Completed matches from which on their own spread is known well enough to be looked at."""

_MATCH = "match"
_FAR = 0.84  # standard deviations that are not passed by chance in 4 of 5 cases


class UnitKind(msgspec.Struct, frozen=True):
    """What the units of a competition's matches are.

    Attributes:
        name: what one is called; `match` if the game has no smaller one.
        block: so many are one value.
        is_share: whether a unit is won, which is 1, or not, which is 0.
        rest: what part of a block is left at the end of a match, and in no sum.
    """

    name: str = _MATCH
    block: int = 1
    is_share: bool = False
    rest: float = 0.0

    @property
    def is_match(self) -> bool:
        return self.name == _MATCH


class IntervalUnit(msgspec.Struct, frozen=True):
    """Of what the intervals of a competition are made.

    `without` is the number of completed matches that have no sums: there the match is the unit.
    """

    name: str = _MATCH
    block: int = 1
    without: int = 0

    def in_words(self) -> str:
        """The line below a table: what the ranges in it are."""
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
    `units` those of their units, and `lost` is the sum of the values of the others.
    """

    wins: int = 0
    draws: int = 0
    losses: int = 0  # both have lost a match to which neither came
    forgiven: int = 0  # losses by offences of its own
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
        """Add a match as a seat saw it; its `value` is the score, if none is given."""
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

    `say` writes a number with so many digits after the point: at least `digits`, and as many as the
    width of the interval needs, so that its ends never look the same.
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
    """Of the mean score per completed match, over all `parts`; None if there are too few values.

    The parts have the weights that they have in the mean: their matches.
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
    """Of a league's measure per match that counts; None if there are too few to say anything.

    Bankrolls are skewed, so that a mean of fewer than `FEWEST` says nothing.
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
    """How many units a part has, and the variance that one has in its mean score per match."""
    units, matches = part.units or Sample(), part.matches.count
    variance = units.variance
    if kind.is_share:  # smoothed, as `share_of` does it
        won = (units.total + 1) / (units.count + 2)
        variance = won * (1 - won)
    if variance is not None:
        # Of the units of all matches, also of what is left of each after its last block.
        variance *= (units.count + kind.rest * matches) * units.count / matches**2
    return units.count, variance


def _hang_together(matches: Sequence[MeanPart], units: Sequence[MeanPart], completed: int) -> bool:
    """Whether matches spread further than independent units let expect in 4 of 5 cases."""
    if completed < ENOUGH or completed == sum(part.count for part in units):
        return False
    degrees = completed - len(matches)
    found, expected = _variance(matches), _variance(units)
    if not degrees or found is None or expected is None:
        return False
    return found > expected * (1 + _FAR * sqrt(2 / degrees))


def _variance(parts: Sequence[MeanPart]) -> float | None:
    """Of the mean over the parts; None if one of them is not known."""
    total = 0.0
    for part in parts:
        if part.variance is None:
            return None
        total += part.weight**2 * part.variance / part.count
    return total


def _mean(parts: Sequence[MeanPart]) -> Interval | None:
    if len(parts) != 1:
        return mean_of(parts)
    [part] = parts  # the same, and at once
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
