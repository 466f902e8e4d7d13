"""Counts how often each category of three card poker is dealt (T9), for `arena odds`."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import combinations

from arena.games.shuffle import Stream, match_key, seed_from_int
from arena.sandbox.worker_pool import work_through
from protocol.cards import PACK
from protocol.errors import UsageError
from protocol.three_card_poker import CATEGORIES, Category, category

__all__ = ["exact_counts", "odds"]


_HANDS_AT_ONCE = 10_000


def odds(
    n: int,
    seed: int | None = None,
    *,
    report: Callable[[int], None] = lambda hands: None,
    jobs: int = 1,
) -> dict[str, float]:
    """Return the percentage of each category among `n` random hands, lowest category first (T9).

    Each hand is dealt from a full pack. The cards follow from `seed`; None draws one. `report` is
    called with the number of hands dealt since its last call. Up to `jobs` processes deal, and
    their number does not change the result. Raises `UsageError` if `n` is not a whole number of at
    least 1, or `seed` is not a whole number.
    """
    if type(n) is not int or n < 1:
        raise UsageError(f"expected a whole number of hands, at least 1, got {n!r}")
    base = secrets.token_bytes(32) if seed is None else seed_from_int(seed)
    dealt: Counter[str] = Counter()
    work_through(
        partial(_dealt, base),
        [range(first, min(first + _HANDS_AT_ONCE, n)) for first in range(0, n, _HANDS_AT_ONCE)],
        lambda _, counts: dealt.update(counts),
        jobs=jobs,
        units=n,
        report=report,
    )
    return {label: 100 * dealt[label] / n for label in CATEGORIES}


def _dealt(base: bytes, hands: range, tick: Callable[[], None]) -> Counter[str]:
    """Deal some of the hands from their own random stream, and count the categories."""
    stream = Stream(match_key(base, [str(hands.start)]))
    dealt: Counter[str] = Counter()
    for _ in hands:
        dealt[category(stream.dealt(PACK, 3))] += 1
        tick()
    return dealt


def exact_counts() -> dict[Category, int]:
    """Count how many of all 22,100 hands are in each category, lowest category first."""
    hands = Counter(map(category, combinations(PACK, 3)))
    return {label: hands[label] for label in CATEGORIES}
