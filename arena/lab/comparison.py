"""Decides which of two bots is better: takes values one by one, with a verdict after each.

The confidence sequences of `arena/games/statistics.py` stay valid however often they are checked,
so that a comparison may stop as soon as it has a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

from arena.games.statistics import (
    LEVEL,
    Interval,
    Sample,
    beta_sequence,
    normal_sequence,
    plural,
    several,
    with_interval,
)
from arena.lab.compare import Matchup, MatchupPart
from arena.lab.matches import Offence, unit
from arena.storage.recent_matches import LabMatches

__all__ = ["LEVEL_WITHIN", "MOST_BLOCKS", "Comparison", "Standpoint"]

MOST_BLOCKS = 20_000  # blocks or matches by default: level within 2 of 100 takes 10,000 games
LEVEL_WITHIN = 2.0
"""Bots that differ by less than this are level: in games of 100, or in per cent."""

_ALIKE = 100  # two bots play alike if this many values show no difference
_FARTHEST = 1000  # estimate up to this many times the values so far; nobody plays more


class Standpoint(StrEnum):
    """What is known of two bots."""

    FIRST = "first"  # the first is better
    SECOND = "second"
    LEVEL = "level"  # they differ by less than the level
    ALIKE = "alike"  # no value showed a difference: with the same cards both got the same
    OPEN = "open"


class Comparison:
    """Adds up the parts of a comparison; each value says how far the first bot is ahead.

    Args:
        level: two bots that differ by less are called level: games in 100, or per cent.
        most: the number of units after which the comparison ends; None for `MOST_BLOCKS`.
    """

    def __init__(
        self,
        matchup: Matchup,
        names: tuple[str, ...],
        seed: int | None,
        *,
        level: float,
        most: int | None,
    ) -> None:
        self.matchup, self.names, self.seed, self.level = matchup, names, seed, level / 100
        block = 1 if matchup.game.unit is None else matchup.game.unit.block
        self.most = most or MOST_BLOCKS * block
        self.values = Sample()
        self.recent = LabMatches()
        self.units = 0
        self.offence: Offence | None = None
        self._measures = Sample(), Sample()
        self._even = 0.5 if matchup.is_share else 0.0

    def add_part(self, part: MatchupPart) -> bool:
        """Add a part; return whether it was the last one needed."""
        for match in part.matches:
            self.recent.add(match.seats, match.record)
        if part.offence is not None:
            self.offence = part.offence
            return True
        for value in part.values:
            self.values.add(value)
        for sample, measure in zip(self._measures, part.measures, strict=True):
            sample.add(measure)
        self.units += part.units
        return self.standpoint is not Standpoint.OPEN or self.units >= self.most

    @property
    def interval(self) -> Interval | None:
        """The interval of the mean value; None while there are too few values, or all are equal."""
        mean = self.values.mean
        return None if mean is None else self._interval(mean, self.values.count)

    @property
    def standpoint(self) -> Standpoint:
        values = self.values
        if (
            not self.matchup.is_share
            and values.count >= _ALIKE
            and not values.mean
            and not values.variance
        ):
            return Standpoint.ALIKE
        return self._standpoint(self.interval)

    def more_needed(self) -> int | None:
        """Estimate how many more values give a verdict if the mean stays; None for too many."""
        count, mean = self.values.count, self.values.mean
        if mean is None:
            return None

        def is_settled(more: int) -> bool:
            found = self._interval(mean, count + more)
            return self._standpoint(found) is not Standpoint.OPEN

        return _first(is_settled, _FARTHEST * count)

    def _interval(self, mean: float, count: int) -> Interval | None:
        if self.matchup.is_share:
            return beta_sequence(mean * count, count)
        # Equal values show no spread, so take the variance as if one of them were 0.
        variance = self.values.variance or mean * mean / max(1, self.values.count)
        return normal_sequence(mean, variance, count, 1 - LEVEL)

    def _standpoint(self, interval: Interval | None) -> Standpoint:
        if interval is None:
            return Standpoint.OPEN
        if interval.low > self._even:
            return Standpoint.FIRST
        if interval.high < self._even:
            return Standpoint.SECOND
        if max(interval.high - self._even, self._even - interval.low) <= self.level:
            return Standpoint.LEVEL
        return Standpoint.OPEN

    @property
    def measured(self) -> tuple[float, ...] | None:
        """What a league ranks the two bots by, in a game against the dealer; else None."""
        means = [sample.mean for sample in self._measures]
        known = tuple(mean for mean in means if mean is not None)
        return known if self.matchup.game.seats == 1 and len(known) == len(means) else None

    def more(self) -> int | None:
        """Estimate how many more units give a verdict; None for too many."""
        needed, count = self.more_needed(), self.values.count
        return None if needed is None else -(-needed * self.units // count)

    def sentence(self) -> str:
        """Say in one sentence what is known."""
        first, second = self._told_apart
        done = self._units()
        mean, interval = self.values.mean, self.interval
        standpoint = self.standpoint
        if mean is None:
            return f"Nothing is known of {first} and {second} yet."
        if standpoint is Standpoint.ALIKE:
            return (
                f"{first} and {second} play alike: on the same cards each got what the other got, "
                f"in {done}."
            )
        if standpoint is Standpoint.LEVEL:
            return (
                f"{first} and {second} are level within {self._level()}: "
                f"the better one is better by less than that, after {done}."
            )
        is_first = mean >= (0.5 if self.matchup.is_share else 0)
        ahead, behind = (first, second) if is_first else (second, first)
        so_far = self._amount(mean if is_first else self._turned(mean))
        does, has = ("wins", "has won") if self.matchup.game.seats == 2 else ("gains", "has gained")
        if interval is None or standpoint is Standpoint.OPEN:
            more = self.more()
            take = "many times as many" if more is None else f"about {self._units(more)} more"
            return (
                f"{done} are too few to say which is better: {ahead} {has} {so_far}; "
                f"if it goes on like this it would take {take}."
            )
        if self.matchup.is_share:
            won = 100 * (mean if is_first else self._turned(mean))
            found = f"it won {won:.1f} % of {done}; surely more than half."
            return f"{ahead} is better than {behind}: {found}"
        least = self._amount(interval.low if is_first else self._turned(interval.high))
        found = f"it {does} at least {least}, and {has} {so_far}, in {done}."
        return f"{ahead} is better than {behind}: {found}"

    def notes(self) -> Sequence[str]:
        """List the interval in figures, and further notes."""
        matchup = self.matchup
        first, second = self._told_apart
        lines = []
        interval, mean = self.interval, self.values.mean
        if interval is not None and mean is not None:
            about = "about " if "about" in interval.method else ""
            what = f"won by {first}" if self.matchup.is_share else f"{first} ahead of {second}"
            shown = with_interval(f"{mean:.3f}", interval, "{:.3f}".format)
            lines.append(
                f"{what}: {shown}, a range that is wrong {about}once in 20 times at most, "
                "however often one looks"
            )
        if self.measured is not None:
            one, other = (
                f"{100 * value:.1f} %" if matchup.game.measure.is_share else f"{value:,.1f}"
                for value in self.measured
            )
            lines.append(f"{matchup.game.measure.title}: {one} of {first}, {other} of {second}")
        if matchup.game.seats != 2 and matchup.no_luck is not None:
            lines.append(f"luck is not taken out: {matchup.no_luck}")
        return lines

    @property
    def _told_apart(self) -> tuple[str, str]:
        first, second = self.names
        return (first, second) if first != second else (f"{first} (1)", f"{second} (2)")

    def _units(self, count: int | None = None) -> str:
        return plural(self.units if count is None else count, unit(self.matchup.game))

    def _turned(self, value: float) -> float:
        """Return a value as seen from the second bot."""
        return 1 - value if self.matchup.is_share else -value

    def _amount(self, value: float) -> str:
        if self.matchup.is_share:
            return f"{100 * value:.1f} of 100 {several(unit(self.matchup.game))}"
        gain, of = self.matchup.gain_of
        more = "" if self.matchup.game.seats == 2 else " more"
        if gain == "ante":
            return f"{100 * value:.2f} % of an ante{more} a {of}"
        shown = f"{value:,.3f}" if abs(value) >= 0.001 else f"{value:.1g}"
        return f"{shown} {several(gain)}{more} a {of}"

    def _level(self) -> str:
        level = self.level
        if self.matchup.is_share:
            return f"{100 * level:g} of 100 {several(unit(self.matchup.game))}"
        return self._amount(level).replace(" more", "")


def _first(holds: Callable[[int], bool], most: int) -> int | None:
    """Return the first whole number up to `most` from which on `holds` is true, or None."""
    high = 1
    while not holds(high):
        high *= 2
        if high > most:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
