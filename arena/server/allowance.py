"""How many requests an address may send: so many at once, and then so many a second.

A whole class behind one address opens the page in the same minute, which is fine; one program that asks without end is not.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Allowance"]

_MOST = 4096  # addresses that are remembered; the one that was quiet longest goes first


class Allowance:
    """What each address has left.

    Args:
        at_once: what an address has that was quiet for long.
        per_s: what comes back in a second.
        clock: a monotonic clock, in seconds.
    """

    def __init__(
        self, at_once: float, per_s: float, clock: Callable[[], float]
    ) -> None:
        self._at_once = at_once
        self._per_s = per_s
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}  # and when

    def spend(self, address: str) -> bool:
        """Take one; False if there is none left."""
        now = self._clock()
        left, at = self._left.pop(address, (self._at_once, now))
        left = min(self._at_once, left + (now - at) * self._per_s)
        is_within = left >= 1
        self._left[address] = (left - 1 if is_within else left, now)  # as the latest
        if len(self._left) > _MOST:
            del self._left[next(iter(self._left))]
        return is_within
