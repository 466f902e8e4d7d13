"""Whose a name in results is: results keep the names of their day, the roster may change. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from arena.engine.names import alike, owner_of

__all__ = ["Change", "NameHistory"]

Person = TypeVar("Person")


class Change(msgspec.Struct, frozen=True):
    """Somebody was renamed, or with `new` None left the roster; `at` in Unix seconds."""

    at: float
    name: str
    new: str | None


class NameHistory(Generic[Person]):
    """The people on a roster now, by name, and all changes of names in their order."""

    def __init__(self, people: Mapping[str, Person], changes: Sequence[Change] = ()) -> None:
        self._people = dict(people)
        self._alike = {alike(name): people[name] for name in reversed(tuple(people))}
        self._changes = changes

    def owner(self, bot: str, at: float) -> Person | None:
        """Who owned the bot of that name at that time; None if nobody who is on the roster now."""
        name = owner_of(bot)
        for change in self._changes:
            if change.at > at and alike(change.name) == alike(name):
                if change.new is None:
                    return None
                name = change.new
        return self._people.get(name) or self._alike.get(alike(name))
