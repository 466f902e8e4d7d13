"""Those who fetch something: how many there may be, and how much may be on its way to them; and how many may be idle when they have it.

Whoever means well reads at once. When there is one too many the oldest is cut, who had the most time.
"""

from __future__ import annotations

from arena.server.reply import Visitor

__all__ = ["IdleConnections", "Visitors"]

_MOST = 2048
_MOST_BYTES = 128 << 20  # of what is no small answer: a dozen of the longest records
_SMALL_BYTES = 64 * 1024  # the kernel takes that
_MOST_IDLE = 1024  # with TLS each has 256 KiB of buffers
_MOST_IDLE_NEAR = 512  # of one address: a class, whose browsers have six each


class Visitors:
    """The visitors of one site."""

    def __init__(self) -> None:
        self._there: dict[object, Visitor] = {}  # in the order in which they came
        self._owed: dict[object, int] = {}  # large answers, in bytes

    def __len__(self) -> int:
        """How many there are."""
        return len(self._there)

    def came(self, visitor: Visitor) -> None:
        """One more, who has asked."""
        self._there[visitor] = visitor
        if len(self._there) > _MOST:
            self._cut(next(iter(self._there)))

    def gets(self, visitor: Visitor, size: int) -> None:
        """An answer is about to be sent; others may have to go for it."""
        if visitor in self._there and size > _SMALL_BYTES:
            while self._owed and sum(self._owed.values()) + size > _MOST_BYTES:
                self._cut(next(iter(self._owed)))
            self._owed[visitor] = size

    def disconnected(self, gone: object) -> None:
        """Somebody is gone, who may have been a visitor."""
        self._there.pop(gone, None)
        self._owed.pop(gone, None)

    def _cut(self, visitor: object) -> None:
        there = self._there[visitor]
        self.disconnected(visitor)
        there.cut()


class IdleConnections:
    """The connections of one arena that have their answers and may ask again."""

    def __init__(self) -> None:
        self._there: dict[object, str] = {}  # and where, the longest idle first
        self._near: dict[str, dict[object, Visitor]] = {}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._there)

    def add(self, visitor: Visitor, address: str) -> None:
        """One more from there; if it is one too many, the one that has been idle for longest is cut."""
        near = self._near.setdefault(address, {})
        self._there[visitor] = address
        near[visitor] = visitor
        if len(near) > _MOST_IDLE_NEAR:
            self._cut(next(iter(near.values())))
        elif len(self) > _MOST_IDLE:
            oldest, where = next(iter(self._there.items()))
            self._cut(self._near[where][oldest])

    def discard(self, visitor: object) -> None:
        """One asks again, or is gone; it need not be among them."""
        address = self._there.pop(visitor, None)
        if address is not None:
            near = self._near[address]
            del near[visitor]
            if not near:
                del self._near[address]

    def _cut(self, visitor: Visitor) -> None:
        self.discard(visitor)
        visitor.cut()
