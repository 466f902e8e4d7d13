"""Limits plain HTTP connections: their number, the bytes being sent, and the idle ones.

If there is one too many, the oldest is cut. It had the most time, and an honest peer reads at once.
"""

from __future__ import annotations

from collections import Counter

from arena.server.reply import Visitor

__all__ = ["IdleConnections", "Visitors"]

_MOST = 2048
_MOST_BYTES = 128 << 20  # of large answers: a dozen of the longest records
_SMALL_BYTES = 64 * 1024  # fits into the kernel's buffer
_MOST_IDLE = 1024  # with TLS each has 256 KiB of buffers
_MOST_IDLE_NEAR = 512  # from one address: a class, with six connections per browser


class Visitors:
    """The visitors of a site whose requests are being answered."""

    def __init__(self) -> None:
        self._there: dict[object, Visitor] = {}  # in the order of their requests
        self._owed: dict[object, int] = {}  # bytes of large answers

    def __len__(self) -> int:
        return len(self._there)

    def came(self, visitor: Visitor) -> None:
        """Add a visitor who has sent a request; cut the oldest if there are too many."""
        self._there[visitor] = visitor
        if len(self._there) > _MOST:
            self._cut(next(iter(self._there)))

    def gets(self, visitor: Visitor, size: int) -> None:
        """Make room for an answer of `size` bytes that is about to be sent."""
        if visitor in self._there and size > _SMALL_BYTES:
            while self._owed and sum(self._owed.values()) + size > _MOST_BYTES:
                self._cut(next(iter(self._owed)))
            self._owed[visitor] = size

    def disconnected(self, gone: object) -> None:
        self._there.pop(gone, None)
        self._owed.pop(gone, None)

    def _cut(self, visitor: object) -> None:
        gone = self._there[visitor]
        self.disconnected(visitor)
        gone.cut()


class IdleConnections:
    """The connections of one arena that have had an answer and may ask again."""

    def __init__(self) -> None:
        self._there: dict[object, tuple[Visitor, str]] = {}  # the longest idle first
        self._near = Counter[str]()

    def __len__(self) -> int:
        return len(self._there)

    def add(self, visitor: Visitor, address: str) -> None:
        """Add a connection; if there are too many, cut the one that has been idle longest."""
        self._there[visitor] = visitor, address
        self._near[address] += 1
        is_crowd = self._near[address] > _MOST_IDLE_NEAR
        if is_crowd or len(self) > _MOST_IDLE:
            idle = self._there.values()
            gone = next(each for each, where in idle if not is_crowd or where == address)
            self.discard(gone)
            gone.cut()

    def discard(self, visitor: object) -> None:
        """Remove a connection that asks again or is gone; ignored if it is not here."""
        _, address = self._there.pop(visitor, (None, ""))
        self._near[address] -= 1
        if self._near[address] <= 0:
            del self._near[address]
