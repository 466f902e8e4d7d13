"""Samples, their confidence intervals, and how numbers are written for people.

All intervals shown to people are of 95 %: at most one in twenty is wrong. There are two kinds.
`wilson`, `student`, `mean_of` and `share_of` are for looking once, after a number of games that was
fixed before. The sequences, `beta_sequence` and `normal_sequence`, also hold for somebody who looks
after every game and stops at will: everything that says "settled" uses them (Ville's inequality).

A `Sample` holds four numbers, whatever its size. It computes its spread by Welford's recurrence: a
sum of squares loses all digits when the mean is large beside the spread, as a bankroll's is.
Samples of different pairings are never pooled for an error: pairings differ on purpose, and only
the spread within each is chance. `error_of_sum` combines their errors instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timezone
from functools import lru_cache
from math import exp, floor, inf, lgamma, log, log1p, log10, sqrt
from statistics import NormalDist
from typing import NamedTuple

import msgspec

__all__ = [
    "FEWEST",
    "LEVEL",
    "SECONDS",
    "TOO_FEW",
    "Bounds",
    "Interval",
    "MeanPart",
    "Sample",
    "SharePart",
    "UnitCounter",
    "UnitSums",
    "beta_refuses",
    "beta_sequence",
    "clopper_pearson",
    "error_of_sum",
    "mean_of",
    "normal_sequence",
    "plural",
    "several",
    "share_of",
    "signed",
    "student",
    "student_quantile",
    "time_of",
    "wider",
    "wilson",
    "with_interval",
]

LEVEL = 0.95
"""The confidence of an interval: at most one in twenty is wrong."""
FEWEST = 20
"""The fewest values from which the mean of skewed values, such as bankrolls, is estimated."""

_BETA = 10.0  # for both parameters of the mixture: tells .60 from .50 soonest
_MIX = 11.4  # the same for means: the narrowest at about 100 values
# Where one to three units were won, or lost: the mean number for which that many or more are rarer
# than 1 in 20 (Poisson's lower bounds; Brown, Cai and DasGupta 2001).
_RARE = {1: 0.0513, 2: 0.3554, 3: 0.8177}
_ROUNDING = 1e-9  # of a mean: the error of a long sum
_HALVINGS = 60  # of a bisection: more than the digits of a float
_NEAR_WHOLE = 1e-6  # rounding may put degrees so far below a whole number
_TERMS, _NEAR = 1000, 1e-15  # the most of a continued fraction, and when it has converged


class Bounds(NamedTuple):
    """The ends of an interval, as documents have them: `[low, high]`."""

    low: float
    high: float


class Interval(msgspec.Struct, frozen=True):
    """An interval from `low` to `high`, at a `level` of 0.95, computed by `method`."""

    low: float
    high: float
    method: str
    level: float = LEVEL

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.low, self.high)

    def scaled(self, factor: float) -> Interval:
        """The interval of a multiple, such as games instead of a share; the factor is positive."""
        return Interval(self.low * factor, self.high * factor, self.method, self.level)


class MeanPart(msgspec.Struct, frozen=True):
    """A part of a weighted mean, such as one opponent; parts may differ on purpose.

    Attributes:
        weight: its weight; weights sum to 1, or to the factor by which the mean is multiplied.
        mean: of its values.
        variance: of one value, unbiased; None if there is only one value.
        count: how many values it has.
    """

    weight: float
    mean: float
    variance: float | None
    count: float


class SharePart(msgspec.Struct, frozen=True):
    """A part of a weighted share: its weight, the units won (a draw counts half), and all units."""

    weight: float
    won: float
    count: float


def wilson(share: float, count: float, level: float = LEVEL) -> Interval:
    """Wilson's interval of a share that was found in `count` units, at least one.

    Its width is never 0: a bot that won all of three games may well lose the fourth. If one to
    three were won, or lost, that end is wider than Wilson's, which held in 84 of 100 cases there.
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    squared = z * z / count
    middle = (share + squared / 2) / (1 + squared)
    half = z * sqrt(share * (1 - share) / count + squared / (4 * count)) / (1 + squared)
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    if (won := round(share * count)) in _RARE and level == LEVEL:
        low = min(low, _RARE[won] / count)
    if (lost := round((1 - share) * count)) in _RARE and level == LEVEL:
        high = max(high, 1 - _RARE[lost] / count)
    # Rounding must not leave the share itself outside.
    return Interval(min(low, share), max(high, share), "Wilson", level)


def student(mean: float, error: float, degrees: float, level: float = LEVEL) -> Interval | None:
    """Student's interval of a mean from its standard error; None if all values were the same.

    Values that are the same, except for rounding, say nothing about their spread.
    """
    if error <= abs(mean) * _ROUNDING or degrees <= 0:
        return None
    # Round down to three digits: a large table has thousands of degrees that hardly differ, and a
    # quantile takes a millisecond.
    grain = 10.0 ** max(0, floor(log10(degrees)) - 2) if degrees >= 100 else 0.01
    rounded = max(1, floor(degrees / grain + _NEAR_WHOLE)) * grain
    half = student_quantile(rounded, level) * error
    return Interval(mean - half, mean + half, "Student", level)


def mean_of(parts: Iterable[MeanPart], level: float = LEVEL) -> Interval | None:
    """The interval of the weighted mean of parts; None if a part has fewer than two values.

    Only the spread within the parts is chance, not that between them. The degrees of freedom are
    Welch and Satterthwaite's.
    """
    mean = total = squares = 0.0
    for part in parts:
        if part.variance is None or part.count < 2:
            return None
        variance = part.weight * part.weight * part.variance / part.count
        mean += part.weight * part.mean
        total += variance
        squares += variance * variance / (part.count - 1)
    if not squares:
        return None
    return student(mean, sqrt(total), total * total / squares, level)


def share_of(parts: Iterable[SharePart], level: float = LEVEL) -> Interval | None:
    """The interval of a weighted mean of shares with at least one unit each; None without parts.

    It is Wilson's, for the number of equal units that would have the same variance.
    """
    share = likely = variance = 0.0
    for part in parts:
        # As if one more unit was won and one more lost: none won of a few does not prove that none
        # will be.
        smoothed = (part.won + 1) / (part.count + 2)
        share += part.weight * part.won / part.count
        likely += part.weight * smoothed
        variance += part.weight * part.weight * smoothed * (1 - smoothed) / part.count
    return wilson(share, likely * (1 - likely) / variance, level) if variance else None


def wider(first: Interval | None, second: Interval | None) -> Interval | None:
    """The wider of two intervals; if one is None, the other."""
    if first is None or second is None:
        return first or second
    return first if first.high - first.low >= second.high - second.low else second


def beta_sequence(won: float, count: float, alpha: float = 1 - LEVEL) -> Interval:
    """The shares that `beta_refuses` does not refuse after `count` units whose sum is `won`."""

    def is_refused(share: float) -> bool:
        return beta_refuses(share, won, count, alpha)

    share = won / count if count else 0.5
    low = 0.0 if not is_refused(0.0) else _edge(is_refused, 0.0, share)
    high = 1.0 if not is_refused(1.0) else _edge(is_refused, 1.0, share)
    return Interval(low, high, "beta sequence", 1 - alpha)


def beta_refuses(share: float, won: float, count: float, alpha: float = 1 - LEVEL) -> bool:
    """Whether a share p is refused after `count` units in [0, 1] whose sum is `won`.

    It is refused once B(a + won, b + lost) / B(a, b) / (p^won (1 − p)^lost) reaches 1 / alpha, with
    a = b = 10. The true share is ever refused with a probability of at most alpha, however often
    one looks.
    """
    lost = count - won
    bound = _log_beta(_BETA + won, _BETA + lost) - _log_beta(_BETA, _BETA) + log(alpha)
    return _times_log(won, share) + _times_log(lost, 1 - share) <= bound


def normal_sequence(
    mean: float, variance: float, count: float, alpha: float = 1 - LEVEL
) -> Interval | None:
    """The interval of a mean of unbounded values, such as chips; None if fewer than 20, or equal.

    The mixture assumes a known variance. With the estimated variance the level is about 95 %.
    """
    if count < FEWEST or variance <= 0:
        return None
    mixed = (count + _MIX) * log((count + _MIX) / (_MIX * alpha * alpha))
    half = sqrt(variance * mixed) / count
    return Interval(mean - half, mean + half, "normal sequence, about", 1 - alpha)


@lru_cache(maxsize=4096)
def student_quantile(degrees: float, level: float = LEVEL) -> float:
    """The half width of Student's interval of this level, in standard errors."""
    low, high = 0.0, 1.0
    while _student_within(high, degrees) < level:
        low, high = high, high * 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_within(middle, degrees) < level else (low, middle)
    return high


def _student_within(t: float, degrees: float) -> float:
    """The probability that Student's t lies between −t and t."""
    if degrees > 1e6:
        return 2 * NormalDist().cdf(t) - 1
    return 1 - _incomplete_beta(degrees / (degrees + t * t), degrees / 2, 0.5)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularized incomplete beta function, by Lentz's continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value, step = d, 0
    while step < _TERMS and (step == 0 or abs(c * d - 1) >= _NEAR):
        step += 1
        at = a + 2 * step
        for term in (
            step * (b - step) * x / ((at - 1) * at),
            -(a + step) * (a + b + step) * x / (at * (at + 1)),
        ):
            d = 1 / (1 + term * d)
            c = 1 + term / c
            value *= c * d
    return exp(a * log(x) + b * log1p(-x) - _log_beta(a, b)) / a * value


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def _times_log(count: float, share: float) -> float:
    if count <= 0:
        return 0.0
    return count * log(share) if share > 0 else -inf


def _edge(is_refused: Callable[[float], bool], refused: float, kept: float) -> float:
    """The boundary between refused and kept values, to all digits; itself on the refused side."""
    for _ in range(_HALVINGS):
        middle = (refused + kept) / 2
        refused, kept = (middle, kept) if is_refused(middle) else (refused, middle)
    return refused


# ---- Samples


class Sample(msgspec.Struct, gc=False):
    """The mean of the values added so far, and its standard error.

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
        """Add values of which only these sums are known; the result is exact for integers."""
        if count:
            mean = total / count
            spread = max(0.0, (count * squares - total * total) / count)
            self.merge(Sample(count, total, mean, spread))

    def merge(self, other: Sample) -> None:
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

    A unit is what the game defines, or a block of these. Units after the last whole block are in no
    sum.
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
        self._open: list[float] = [0] * seats  # sums of the unfinished block
        self._sums: list[float] = [0] * seats
        self._squares: list[float] = [0] * seats

    def add(self, payoffs: Sequence[float]) -> None:
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
        """The sums so far; None before the first whole block."""
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


# ---- For people

SECONDS = "%Y-%m-%d %H:%M:%S"
"""A format for `time_of`, where minutes are not enough."""

TOO_FEW = "[–]"
"""Shown instead of an interval if there are too few values for one."""


def plural(count: int, noun: str) -> str:
    """`1 match`, `2 matches`, `1,000 hands`."""
    return f"{count:,} {noun if count == 1 else several(noun)}"


def several(noun: str) -> str:
    """`matches`, `hands`."""
    return f"{noun}{'es' if noun.endswith('ch') else 's'}"


def signed(value: float | None, digits: int = 0) -> str:
    """`+12`, `−3`, `0`, or a dash for None."""
    if value is None:
        return "–"
    text = f"{value:+,.{digits}f}"
    return text[1:] if not any(digit in text for digit in "123456789") else text


def time_of(at: float | datetime, form: str = "%Y-%m-%d %H:%M") -> str:
    """`2026-11-27 18:24 UTC+01:00`; Unix seconds are shown in this machine's time zone."""
    moment = at if isinstance(at, datetime) else datetime.fromtimestamp(at).astimezone()
    offset = moment.utcoffset()
    assert offset is not None, "a moment without an offset is none"
    return f"{moment:{form}} {timezone(offset)}"


def with_interval(value: str, interval: Interval | None, number: Callable[[float], str]) -> str:
    """`0.645 [0.61, 0.68]`, its bounds written by `number`; `0.645 [–]` without an interval."""
    if interval is None:
        return f"{value} {TOO_FEW}"
    return f"{value} [{number(interval.low)}, {number(interval.high)}]"


def clopper_pearson(count: int, of: int, level: float = LEVEL) -> tuple[float, float]:
    """The bounds of a share by Clopper and Pearson, which are never too narrow.
    They are 0 and 1 if `of` is 0. Needs the extra `analysis`.
    """
    from scipy.special import betaincinv  # type: ignore[import-untyped]

    tail = (1 - level) / 2
    low = betaincinv(count, of - count + 1, tail) if count else 0.0
    high = betaincinv(count + 1, of - count, 1 - tail) if count < of else 1.0
    return float(low), float(high)
