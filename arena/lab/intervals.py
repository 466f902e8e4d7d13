"""Computes intervals: of a bot's score per unit, and of one bot's lead over another.

These intervals are valid only if computed once, after all matches. Those of
`arena/lab/compare.py` stay valid however often they are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import sqrt

from arena.games.rules import Game
from arena.games.statistics import (
    FEWEST,
    LEVEL,
    Interval,
    MeanPart,
    SharePart,
    mean_of,
    share_of,
    student,
    wilson,
)
from arena.lab.matches import unit
from arena.lab.sittings import Sitting

__all__ = ["ahead", "is_ahead_for_sure", "of_mean", "sampled_unit"]


def of_mean(game: Game, parts: Sequence[tuple[Sitting, int]]) -> Interval | None:
    """Return the interval of a bot's score per unit in some sittings; None for too few units.

    Differences between the sittings are not treated as chance. A share of units won gets Wilson's
    interval, any other mean Student's over blocks; a bankroll is skewed and needs 20 matches.
    """
    counted = [(sitting, place) for sitting, place in parts if sitting.samples[place].count]
    units = sum(sitting.samples[place].count for sitting, place in counted)
    if _counts_units(game):
        shares = []
        for sitting, place in counted:
            sample = sitting.samples[place]
            shares.append(SharePart(sample.count / units, sample.total, sample.count))
        return share_of(shares)
    if not units or (game.purse is not None and units < FEWEST):
        return None
    means = []
    for sitting, place in counted:
        sample, blocks = sitting.samples[place], sitting.blocks[place]
        if sample.mean is None or blocks.variance is None:
            return None
        size = sitting.blocked / blocks.count
        variance = blocks.variance / (size * size)
        means.append(MeanPart(sample.count / units, sample.mean, variance, sample.count / size))
    return mean_of(means)


def ahead(game: Game, sitting: Sitting, first: int, second: int) -> Interval | None:
    """Return the interval of one place's lead over another, per block; None for too few blocks.

    It is wider with more pairs at the table, because the leader is chosen among them.
    """
    pairs = list(combinations(range(len(sitting.bots)), 2))
    level = 1 - (1 - LEVEL) / len(pairs)
    sign = 1 if first < second else -1
    gap = sitting.gaps[pairs.index((min(first, second), max(first, second)))]
    if gap.mean is None:
        return None
    mean = sign * gap.mean
    if _counts_units(game) and len(sitting.bots) == 2:
        share = wilson((1 + mean) / 2, gap.count, level)
        return Interval(2 * share.low - 1, 2 * share.high - 1, share.method, level)
    if gap.variance is None:
        return None
    return student(mean, sqrt(gap.variance / gap.count), gap.count - 1, level)


def is_ahead_for_sure(game: Game, sitting: Sitting, leader: int) -> bool:
    """Whether a place is further ahead of all others than chance alone would explain."""
    intervals = (
        ahead(game, sitting, leader, other) for other in range(len(sitting.bots)) if other != leader
    )
    return all(interval is not None and interval.low > 0 for interval in intervals)


def sampled_unit(game: Game, units_per_match: int) -> str:
    """Name what one value of an interval is: `game`, `match`, `block of 50 hands`."""
    if game.unit is None or game.unit.block == 1:
        return unit(game)
    if units_per_match < game.unit.block:
        return "match"
    return f"block of {game.unit.block} {game.unit.name}s"


def _counts_units(game: Game) -> bool:
    """Whether a score counts units won, so that a score per unit is a share."""
    return game.is_count and game.unit is not None
