"""Those who have fetched something and are not gone yet: how many there may be, and how much may be on its way to them.

Whoever means well reads at once and is gone. When there is one too many the oldest is cut, who had the most time.
"""

from __future__ import annotations

from arena.web.reply import Visitor

__all__ = ["Visitors"]

_MOST = 2048
_MOST_BYTES = 128 << 20  # of what is no small answer: a dozen of the longest records
_SMALL_BYTES = 64 * 1024  # the kernel takes that


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

    def left(self, gone: object) -> None:
        """Somebody is gone, who may have been a visitor."""
        self._there.pop(gone, None)
        self._owed.pop(gone, None)

    def _cut(self, visitor: object) -> None:
        there = self._there[visitor]
        self.left(visitor)
        there.cut()
