"""What counted answers allow to be said of a bot's six shares: bands, and whether it adapts.

The shares of a bot that does not learn lie, all at once and in 95 of 100 analyses, in a box of
Clopper and Pearson's intervals. A figure's band is its least and its greatest value in that box.
This needs the extra `analysis`. `scipy.special` has all that is used of `scipy.stats`, which takes
twice as long to import.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import linprog  # type: ignore[import-untyped]
from scipy.special import chdtrc, gammaln  # type: ignore[import-untyped]

from arena.games.ace_king_queen.habits import Count
from arena.games.ace_king_queen.values import SPOTS, Share, exploitability, gains, value
from arena.games.clopper_pearson import clopper_pearson
from arena.games.interval import LEVEL

__all__ = ["Band", "Box", "box", "differs", "exploitability_band", "extremes", "halves_differ"]

Band: TypeAlias = tuple[float, float]
Box: TypeAlias = Sequence[Band]
"""By spot, between which values its share lies."""

_PASSIVE = (0.0,) * len(SPOTS)  # checks all and folds all
_FEW = 5  # chi-square is a fair approximation where so many of either kind are expected (Cochran)
_TIES = 1 + 1e-7  # tables whose chances differ by rounding only are as likely


def box(counts: Sequence[Count], spots: int) -> list[Band]:
    """Within which the shares lie, where `spots` shares are to be right at once.

    A share that was never seen may be anything.
    """
    return [clopper_pearson(done, asked, 1 - (1 - LEVEL) / spots) for done, asked in counts]


def extremes(function: Callable[..., Share], shares: Box) -> Band:
    """The least and the greatest value at the corners of a box.

    They are those in the whole box, if the function is linear in each single share. One that is
    convex may be less inside.
    """
    values = [float(function(corner)) for corner in product(*shares)]
    return min(values), max(values)


def exploitability_band(shares: Box) -> Band:
    """The least and the greatest exploitability in a box.

    It is what one wins who always passes, and what betting or calling adds wherever that is more
    than nothing. That is convex, so it is greatest at a corner; the least is found by a linear
    programme, with one variable more by spot for what it adds.
    """

    def pieces(corner: Any) -> list[float]:
        return [float(piece) for piece in (value(_PASSIVE, corner), *gains(corner))]

    count = len(SPOTS)
    origin = np.array(pieces(_PASSIVE))
    slopes = np.array([pieces(unit) for unit in np.eye(count)]) - origin
    least = linprog(
        np.concatenate([slopes[:, 0], np.ones(count)]),
        A_ub=np.hstack([slopes[:, 1:].T, -np.eye(count)]),
        b_ub=-origin[1:],
        bounds=[*shares, *[(0, None)] * count],
    )
    return max(0.0, float(origin[0] + least.fun)), extremes(exploitability, shares)[1]


def differs(counts: Sequence[Count]) -> float:
    """How likely shares that are the same differ as much as these (chi-square).

    Those are left out where too few of either kind are expected for that.
    """
    done, asked = sum(did for did, _ in counts), sum(of for _, of in counts)
    rare = min(done, asked - done)
    used = [(did, of) for did, of in counts if of * rare >= _FEW * asked > 0]
    done, asked = sum(did for did, _ in used), sum(of for _, of in used)
    if len(used) < 2 or not 0 < done < asked:
        return 1.0
    share = done / asked
    square = sum((did - of * share) ** 2 / (of * share * (1 - share)) for did, of in used)
    return float(chdtrc(len(used) - 1, square))


def halves_differ(first: Count, second: Count) -> float:
    """How likely two shares that are the same differ as much as these (Fisher's exact test)."""

    def ways(of: Any, chosen: Any) -> Any:
        return gammaln(of + 1) - gammaln(chosen + 1) - gammaln(of - chosen + 1)

    (did, of), (did_then, of_then) = first, second
    done = did + did_then
    possible = np.arange(max(0, done - of_then), min(of, done) + 1)
    chances = ways(of, possible) + ways(of_then, done - possible) - ways(of + of_then, done)
    chances = np.exp(chances)
    observed = chances[did - possible[0]]
    return min(1.0, float(chances[chances <= observed * _TIES].sum()))
