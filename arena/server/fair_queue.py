"""A queue that serves its users in turn: a user with many items delays only itself. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from typing import Generic, TypeVar

__all__ = ["FairQueue"]

Item = TypeVar("Item")


class FairQueue(Generic[Item]):
    """Items by user; next is the user who has used least, of equals the one longest without a turn.

    Args:
        used: what each user has used; without it, users simply take turns.
    """

    def __init__(self, used: Mapping[str, float] | None = None) -> None:
        self._queues: dict[str, deque[Item]] = {}  # in the order of their turns
        self._used = {} if used is None else used

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def __iter__(self) -> Iterator[Item]:
        """Yield all items in the order of `take`, if items used nothing."""
        return self.in_order(0.0)

    def in_order(self, each: float) -> Iterator[Item]:
        """Yield all items in the order of `take`, if each item used the amount `each`."""
        turns = [
            (self._used.get(user, 0.0) + turn * each, turn, item)
            for user, queue in self._queues.items()
            for turn, item in enumerate(queue)
        ]
        # Sorting is stable: in each turn the users keep their order.
        for *_, item in sorted(turns, key=lambda entry: entry[:2]):
            yield item

    @property
    def users(self) -> Collection[str]:
        return self._queues.keys()

    def put(self, user: str, item: Item) -> None:
        self._queues.setdefault(user, deque()).append(item)

    def take(self) -> Item:
        """Remove and return the next item; the queue must not be empty."""
        user = min(self._queues, key=lambda user: self._used.get(user, 0.0))
        queue = self._queues.pop(user)
        item = queue.popleft()
        if queue:  # the user's next turn comes after those of all others
            self._queues[user] = queue
        return item
