"""Whose the names in results are: results keep the names of their day, and the roster may have changed since. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from arena.engine.names import alike, owner_of

__all__ = ["Change", "NameHistory"]

Person = TypeVar("Person")


class Change(msgspec.Struct, frozen=True):
    """Somebody got another name, or with `new` None was taken off the roster; `at` in Unix seconds."""

    at: float
    name: str
    new: str | None


class NameHistory(Generic[Person]):
    """The people of a roster, and how they came by their names.

    Args:
        people: by name, all who are on the roster now.
        changes: of names, in the order in which they were made.
    """

    def __init__(self, people: Mapping[str, Person], changes: Sequence[Change] = ()) -> None:
        self._people = dict(people)
        self._alike = {alike(name): people[name] for name in reversed(tuple(people))}
        self._changes = changes

    def owner(self, bot: str, at: float) -> Person | None:
        """Whose bot played under a name at a time; None for a stranger, and for who has been taken off the roster since."""
        name = owner_of(bot)
        for change in self._changes:
            if change.at > at and alike(change.name) == alike(name):
                if change.new is None:
                    return None
                name = change.new
        return self._people.get(name) or self._alike.get(alike(name))
