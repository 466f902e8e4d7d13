"""What three cards are worth, told once more from the rulebook (T2–T4), and from nothing else."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["worth"]


def worth(hand: Sequence[str], pair_kicker: bool = False) -> tuple[int, ...]:
    """The category, then what decides within it; the greater is better."""
    a, b, c = sorted(("23456789TJQKA".index(card[0]) + 2 for card in hand), reverse=True)
    straight = 3 if (a, b, c) == (14, 3, 2) else a if a - 1 == b == c + 1 else 0
    flush = len({card[1] for card in hand}) == 1
    if straight:
        return 5 if flush else 3, straight
    if a == c:
        return 4, a
    if flush:
        return 2, a, b, c
    if b in (a, c):
        return 1, b, a + c - b if pair_kicker else a
    return 0, a, b, c
