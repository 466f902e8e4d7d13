"""The rows that the bench prints: the median of all rounds, and how sure a comparison is."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import msgspec
from rich.console import Console
from rich.table import Table

__all__ = ["BenchRow", "median_interval", "row_of", "show"]

_LEVEL = 0.95  # that an interval should have at least
_COLUMNS = "what unit this lowest–highest beside that speed interval verdict".split()


class BenchRow(msgspec.Struct, frozen=True, kw_only=True):
    """One cost of this tree, and of what stands beside it, if anything does.

    Attributes:
        this: the median of all rounds; `lowest` and `highest` are single rounds.
        beside: a peer or a commit, whose median is `that`.
        speed: the median of `that` over `this` in the same round; above 1 this tree is faster.
        low: of the interval for the true median, which contains it with the probability `level`.
        verdict: `faster`, `slower`, `no difference seen` or `too few rounds to say`.
    """

    what: str
    unit: str
    this: float
    lowest: float
    highest: float
    beside: str = ""
    that: float = 0.0
    speed: float = 0.0
    low: float = 0.0
    high: float = 0.0
    level: float = 0.0
    verdict: str = ""


def row_of(
    what: str, unit: str, this: Sequence[float], beside: str = "", that: Sequence[float] = ()
) -> BenchRow:
    """The row of what each round cost here and, if there is anything, beside it."""
    median, lowest, highest = statistics.median(this), min(this), max(this)
    row = BenchRow(what=what, unit=unit, this=median, lowest=lowest, highest=highest)
    if not that:
        return row
    ratios = [b / a for a, b in zip(this, that, strict=True)]
    low, high, level = median_interval(ratios)
    verdict = "faster" if low > 1 else "slower" if high < 1 else "no difference seen"
    return msgspec.structs.replace(
        row,
        beside=beside,
        that=statistics.median(that),
        speed=statistics.median(ratios),
        low=low,
        high=high,
        level=level,
        verdict=verdict if level >= _LEVEL else "too few rounds to say",
    )


def median_interval(ratios: Sequence[float]) -> tuple[float, float, float]:
    """The interval for the median by the sign test, and the probability that it is right.

    Each ratio is above the true median with probability 1/2. So the k-th lowest and the k-th
    highest of n miss it on the same side with the probability that fewer than k of n coins show
    heads. The narrowest interval of at least 95 % is taken; fewer than six ratios have none, and
    get the widest one with its lower level.
    """
    ordered = sorted(ratios)
    count, left_out, miss = len(ordered), 0, 0.5 ** len(ordered)
    while left_out + 1 < (count + 1) // 2:
        more = miss + math.comb(count, left_out + 1) * 0.5**count
        if 1 - 2 * more < _LEVEL:
            break
        left_out, miss = left_out + 1, more
    return ordered[left_out], ordered[-1 - left_out], 1 - 2 * miss


def show(rows: Sequence[BenchRow]) -> None:
    """Print the rows as a table, as wide as it needs to be."""
    table = Table(*_COLUMNS)
    for row in rows:
        cells = [row.what, row.unit, f"{row.this:,.2f}", f"{row.lowest:,.2f}–{row.highest:,.2f}"]
        if row.beside:
            interval = f"{row.low:.3f}–{row.high:.3f} ({row.level:.1%})"
            cells += [row.beside, f"{row.that:,.2f}", f"{row.speed:.3f}", interval, row.verdict]
        table.add_row(*cells)
    Console(width=250, markup=False, highlight=False).print(table)
