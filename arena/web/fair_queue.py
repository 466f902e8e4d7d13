"""A queue in which everybody has a turn: who asks for much waits for it, and nobody else does. Pure."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

__all__ = ["FairQueue"]

Item = TypeVar("Item")


class FairQueue(Generic[Item]):
    """What waits, by whose it is; one of each in turn."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[Item]] = {}  # in the order of their turns
        self._count = 0

    def __len__(self) -> int:
        """How many wait."""
        return self._count

    def put(self, whose: str, item: Item) -> None:
        """One more."""
        self._queues.setdefault(whose, deque()).append(item)
        self._count += 1

    def take(self) -> Item:
        """The next one; there has to be one."""
        whose = next(iter(self._queues))
        queue = self._queues.pop(whose)
        item = queue.popleft()
        if queue:  # whose turn comes again after everybody else's
            self._queues[whose] = queue
        self._count -= 1
        return item
