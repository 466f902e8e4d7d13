"""The median of several rounds, how far the rounds lie apart, and how sure a median is."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import msgspec

__all__ = ["Compared", "Range", "Spread", "compared", "spread"]

Range = tuple[float, float]
"""The lowest and the highest figure of all rounds."""

_LEVEL = 0.95  # that an interval should have at least


class Spread(msgspec.Struct, frozen=True):
    """The median of all rounds, with the lowest and the highest."""

    median: float
    low: float
    high: float

    @property
    def range(self) -> Range:
        return self.low, self.high


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """The median of ratios of pairs, and an interval that contains the true one.

    Attributes:
        level: with what probability the interval contains the true median.
    """

    ratio: float
    low: float
    high: float
    level: float

    @property
    def verdict(self) -> str:
        """What follows for costs: below 1 is faster."""
        if self.level < _LEVEL:
            return "too few rounds to say"
        if self.high < 1:
            return "faster"
        return "slower" if self.low > 1 else "no difference seen"


def spread(values: Sequence[float]) -> Spread:
    """The spread of at least one value."""
    return Spread(statistics.median(values), min(values), max(values))


def compared(ratios: Sequence[float]) -> Compared:
    """The interval for the median by the sign test, which needs no assumption about the noise.

    Each ratio is above the true median with probability 1/2. So the k-th lowest and the k-th
    highest of n miss it on the same side with the probability that fewer than k of n coins show
    heads. The narrowest interval of at least 95 % is taken; fewer than six ratios have none, and
    get the widest one with its lower level, and no verdict.
    """
    ordered = sorted(ratios)
    count, left_out, miss = len(ordered), 0, 0.5 ** len(ordered)
    while left_out + 1 < (count + 1) // 2:
        more = miss + math.comb(count, left_out + 1) * 0.5**count
        if 1 - 2 * more < _LEVEL:
            break
        left_out, miss = left_out + 1, more
    return Compared(
        ratio=statistics.median(ordered),
        low=ordered[left_out],
        high=ordered[-1 - left_out],
        level=1 - 2 * miss,
    )
