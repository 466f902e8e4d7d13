"""Clopper and Pearson's interval of a share, which is never too narrow; it needs the extra."""

from __future__ import annotations

from scipy.special import betaincinv  # type: ignore[import-untyped]

from arena.games.interval import LEVEL

__all__ = ["clopper_pearson"]


def clopper_pearson(count: int, of: int, level: float = LEVEL) -> tuple[float, float]:
    """Between which values a share lies; one that was never seen may be anything."""
    tail = (1 - level) / 2
    low = betaincinv(count, of - count + 1, tail) if count else 0.0
    high = betaincinv(count + 1, of - count, 1 - tail) if count < of else 1.0
    return float(low), float(high)
