"""How often each category of three card poker is dealt (T9)."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable
from itertools import combinations

from arena.engine.shuffle import Stream, seed_from_int
from protocol.cards import PACK
from protocol.errors import UsageError
from protocol.three_card_poker import CATEGORIES, Category, category

__all__ = ["exact_counts", "odds"]


def odds(
    n: int, seed: int | None = None, *, tick: Callable[[], None] = lambda: None
) -> dict[str, float]:
    """The percentage of each category among `n` random hands, lowest category first (T9).

    Each hand is dealt from a full pack. The cards are drawn from `seed`; None draws one. `tick` is
    called after every hand. It raises `UsageError` if `n` is no whole number of at least 1, or
    `seed` is no whole number.
    """
    if type(n) is not int or n < 1:
        raise UsageError(f"expected a whole number of hands, at least 1, got {n!r}")
    stream = Stream(secrets.token_bytes(32) if seed is None else seed_from_int(seed))
    dealt: Counter[str] = Counter()
    for _ in range(n):
        dealt[category(stream.dealt(PACK, 3))] += 1
        tick()
    return {label: 100 * dealt[label] / n for label in CATEGORIES}


def exact_counts() -> dict[Category, int]:
    """How many of all 22,100 hands fall into each category, lowest category first."""
    hands = Counter(map(category, combinations(PACK, 3)))
    return {label: hands[label] for label in CATEGORIES}
