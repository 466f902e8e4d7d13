"""A queue that serves its users in turn: one with many items delays only itself. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import Generic, TypeVar

__all__ = ["FairQueue"]

Item = TypeVar("Item")


class FairQueue(Generic[Item]):
    """Items by user, taken round robin: one item of each user in turn."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[Item]] = {}  # in the order of their turns

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def __iter__(self) -> Iterator[Item]:
        """All items, in the order in which `take` would return them."""
        turns = (enumerate(queue) for queue in self._queues.values())
        # Sorting is stable: in each turn the users keep their order.
        for _, item in sorted(chain.from_iterable(turns), key=lambda entry: entry[0]):
            yield item

    def put(self, user: str, item: Item) -> None:
        self._queues.setdefault(user, deque()).append(item)

    def take(self) -> Item:
        """Remove and return the next item; the queue must not be empty."""
        user = next(iter(self._queues))
        queue = self._queues.pop(user)
        item = queue.popleft()
        if queue:  # the user's next turn comes after all others'
            self._queues[user] = queue
        return item
