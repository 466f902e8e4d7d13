"""Means and their standard errors, from values that come one at a time.

A `Sample` holds four numbers, whatever its size, and its spread by Welford's recurrence: a sum of
squares loses all digits when the mean is large beside the spread, as a bankroll's is. Samples of
different pairings are never pooled to get an error: the pairings differ on purpose, and only the
spread within each is chance. `error_of_sum` joins their errors instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt

import msgspec

__all__ = ["Sample", "UnitCounter", "UnitSums", "error_of_sum"]


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

    def add_sums(self, count: int, total: float, squares: float) -> None:
        """Add values of which only these sums are known; for integers they are exact."""
        if count:
            mean = total / count
            spread = max(0.0, (count * squares - total * total) / count)
            self.merge(Sample(count, total, mean, spread))

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


class UnitSums(msgspec.Struct, frozen=True, gc=False):
    """The units of one match, added up: their number, and by seat their sum and sum of squares.

    A unit is what the game's description says, or a block of these. What is left of a match after
    its last whole block is in no sum.
    """

    count: int
    sums: tuple[float, ...]
    squares: tuple[float, ...]


class UnitCounter:
    """Adds up the units of a match while it is played, in blocks of `block` units."""

    __slots__ = ("_block", "_count", "_left", "_open", "_squares", "_sums")

    def __init__(self, seats: int, block: int = 1) -> None:
        self._block = self._left = block
        self._count = 0
        self._open: list[float] = [0] * seats  # of the block that is not whole yet
        self._sums: list[float] = [0] * seats
        self._squares: list[float] = [0] * seats

    def add(self, payoffs: Sequence[float]) -> None:
        """Add what one unit brought, by seat."""
        values = self._open
        for seat, payoff in enumerate(payoffs):
            values[seat] += payoff
        self._left -= 1
        if self._left:
            return
        self._left = self._block
        self._count += 1
        for seat, value in enumerate(values):
            self._sums[seat] += value
            self._squares[seat] += value * value
            values[seat] = 0

    def sums(self) -> UnitSums | None:
        """The sums so far; None without a whole block."""
        if not self._count:
            return None
        return UnitSums(self._count, tuple(self._sums), tuple(self._squares))


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
