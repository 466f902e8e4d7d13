"""Decides which of two bots is better: takes values one by one, and has a verdict after each.

The sequences of `arena/strength/interval.py` hold however often one looks, so that a comparison may
end as soon as its verdict is there. Pure: `arena/lab/compare.py` plays.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from arena.engine.statistics import Sample
from arena.strength.interval import LEVEL, Interval, beta_sequence, normal_sequence

__all__ = ["Comparison", "Standpoint"]

_ALIKE = 100  # values without any difference, after which two bots are taken to play alike
_FARTHEST = 1000  # times as many values as there are: nobody plays more to settle it


class Standpoint(StrEnum):
    """What is known of two bots."""

    FIRST = "first"  # the first is better
    SECOND = "second"
    LEVEL = "level"  # the better one is better by less than the level
    ALIKE = "alike"  # no value differed: on the same cards each got what the other got
    OPEN = "open"


class Comparison:
    """Adds up values that say how far the first of two bots is ahead.

    Args:
        is_share: whether a value is a part of a game won, in [0, 1], a draw half; else it is a gain
            without bounds.
        level: bots that differ by less than this are called level; in the same unit.
    """

    def __init__(self, *, is_share: bool, level: float) -> None:
        self.is_share, self.level = is_share, level
        self.values = Sample()
        self._even = 0.5 if is_share else 0.0

    def add(self, value: float) -> None:
        self.values.add(value)

    @property
    def interval(self) -> Interval | None:
        """The interval of the value; None while there are too few, or all are the same."""
        mean = self.values.mean
        return None if mean is None else self._interval(mean, self.values.count)

    @property
    def standpoint(self) -> Standpoint:
        values = self.values
        if not self.is_share and values.count >= _ALIKE and not values.mean and not values.variance:
            return Standpoint.ALIKE
        return self._standpoint(self.interval)

    def more_needed(self) -> int | None:
        """About how many more values would settle it at this rate; None stands for too many."""
        count, mean = self.values.count, self.values.mean
        if mean is None:
            return None

        def is_settled(more: int) -> bool:
            found = self._interval(mean, count + more)
            return self._standpoint(found) is not Standpoint.OPEN

        return _first(is_settled, _FARTHEST * count)

    def _interval(self, mean: float, count: int) -> Interval | None:
        if self.is_share:
            return beta_sequence(mean * count, count)
        # Values that are all the same say nothing of their spread: as if one were 0.
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


def _first(holds: Callable[[int], bool], most: int) -> int | None:
    """The first whole number up to `most` from which on a condition holds; None without one."""
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
