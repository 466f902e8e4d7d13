"""Means and their standard errors, from values that come one at a time.

A `Sample` keeps four numbers, whatever its size, its spread by Welford's recurrence: summing squares instead loses all digits when the mean is large
beside the spread, as a bankroll's is. Samples of different pairings are never pooled to get an error: the pairings differ on
purpose, and only the spread within each is chance. `error_of_sum` joins their errors instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt

__all__ = ["Sample", "error_of_sum"]


class Sample:
    """The mean of the values added so far, and how far chance may have moved it.

    Attributes:
        count: how many there are.
        total: their sum, exact for integers.
    """

    __slots__ = ("_mean", "_squares", "count", "total")

    def __init__(self, values: Iterable[float] = ()) -> None:
        self.count = 0
        self.total: float = 0
        self._mean = 0.0
        self._squares = 0.0  # the sum of (value − mean)²
        for value in values:
            self.add(value)

    def add(self, value: float) -> None:
        """Take one more value into account."""
        self.count += 1
        self.total += value
        before = value - self._mean
        self._mean += before / self.count
        self._squares += before * (value - self._mean)

    @property
    def mean(self) -> float | None:
        """The mean; None if there are no values."""
        return self.total / self.count if self.count else None

    @property
    def variance(self) -> float | None:
        """The unbiased variance of a value; None if there are fewer than two."""
        return self._squares / (self.count - 1) if self.count > 1 else None

    @property
    def standard_error(self) -> float | None:
        """The standard error of the mean; None, which is unknown, if there are fewer than two values."""
        variance = self.variance
        return None if variance is None else sqrt(variance / self.count)

    @property
    def error_of_total(self) -> float | None:
        """The standard error of the sum; None, which is unknown, if there are fewer than two values."""
        variance = self.variance
        return None if variance is None else sqrt(variance * self.count)


def error_of_sum(errors: Iterable[float | None]) -> float | None:
    """The standard error of a sum of independent terms with these errors; None if one is unknown or there are none."""
    known = list(errors)
    if not known:
        return None
    squares = 0.0
    for error in known:
        if error is None:
            return None
        squares += error * error
    return sqrt(squares)
