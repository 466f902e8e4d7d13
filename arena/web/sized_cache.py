"""A cache of limited total size, which drops the least recently used values. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["SizedCache"]

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class SizedCache(Generic[Key, Value]):
    """Values by key with a total size of at most `most`; the latest is kept, whatever its size.

    `size_of` gives the size of a value, which must not change; without it, each counts 1.
    """

    def __init__(self, most: int, size_of: Callable[[Value], int] = lambda value: 1) -> None:
        self._most = most
        self._size_of = size_of
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key) -> Value | None:
        """Return the value of a key, and mark it as used; None if there is none."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: Key, value: Value) -> None:
        """Add or replace a value, and drop old ones if the cache is too large."""
        self.drop(key)
        self._values[key] = value
        self._size += self._size_of(value)
        while self._size > self._most and len(self._values) > 1:
            self.drop(next(iter(self._values)))

    def drop(self, key: Key) -> None:
        """Remove a value, if it exists."""
        value = self._values.pop(key, None)
        if value is not None:
            self._size -= self._size_of(value)
