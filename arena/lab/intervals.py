"""Computes intervals: of a bot's score per unit, and of one bot's lead over another.

They hold for one look, when all matches have been played; those of `arena/lab/compare.py` hold
however often one looks.
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
    """The interval of a bot's score per unit in some sittings; None if there are too few units.

    How the sittings differ is not chance. A share of units won has Wilson's interval. Any other
    mean has Student's, of blocks, and a bankroll, which is skewed, only from 20 matches on.
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
    """The interval of one place's lead over another, per block of units; None if they are too few.

    It is wider the more pairs there are at the table, because the leader is chosen among them.
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
    """Whether chance alone would hardly have put a place so far ahead of all others."""
    intervals = (
        ahead(game, sitting, leader, other) for other in range(len(sitting.bots)) if other != leader
    )
    return all(interval is not None and interval.low > 0 for interval in intervals)


def sampled_unit(game: Game, units_per_match: int) -> str:
    """What one value of an interval is: `game`, `match`, `block of 50 hands`."""
    if game.unit is None or game.unit.block == 1:
        return unit(game)
    if units_per_match < game.unit.block:
        return "match"
    return f"block of {game.unit.block} {game.unit.name}s"


def _counts_units(game: Game) -> bool:
    """Whether a score per unit is a share of the units, a won one being 1."""
    return game.is_count and game.unit is not None
