"""Means and their standard errors, from values that come one at a time.

A `Sample` holds four numbers, whatever its size, and its spread by Welford's recurrence: a sum of
squares loses all digits when the mean is large beside the spread, as a bankroll's is. Samples of
different pairings are never pooled to get an error: the pairings differ on purpose, and only the
spread within each is chance. `error_of_sum` joins their errors instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt

import msgspec

__all__ = ["Sample", "error_of_sum"]


class Sample(msgspec.Struct, gc=False):
    """The mean of the values added so far, and how far chance may have moved it.

    `total` is their sum, exact for integers. The mean is None without values; the unbiased variance
    and the standard errors are None (unknown) with fewer than two.
    """

    count: int = 0
    total: float = 0
    _mean: float = 0.0
    _squares: float = 0.0  # the sum of (value − mean)²

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        before = value - self._mean
        self._mean += before / self.count
        self._squares += before * (value - self._mean)

    def merge(self, other: Sample) -> None:
        """Add all values of another sample."""
        if not other.count:
            return
        count = self.count + other.count
        shift = other._mean - self._mean
        self._squares += other._squares + shift * shift * self.count * other.count / count
        self._mean += shift * other.count / count
        self.count, self.total = count, self.total + other.total

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None

    @property
    def variance(self) -> float | None:
        return self._squares / (self.count - 1) if self.count > 1 else None

    @property
    def standard_error(self) -> float | None:
        variance = self.variance
        return None if variance is None else sqrt(variance / self.count)

    @property
    def error_of_total(self) -> float | None:
        variance = self.variance
        return None if variance is None else sqrt(variance * self.count)


def error_of_sum(errors: Iterable[float | None]) -> float | None:
    """The standard error of a sum of independent terms; None without terms or if one is unknown."""
    known = list(errors)
    if not known:
        return None
    squares = 0.0
    for error in known:
        if error is None:
            return None
        squares += error * error
    return sqrt(squares)
