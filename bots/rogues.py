"""Bots that misbehave, one way each: for rehearsals, `arena demo`, and to see what a verdict looks like.

They play any game at random for a while and then do it. `python -m bots GAME rogue-illegal` connects one; nobody finds them by
accident, as they are not among the house bots.
"""

from __future__ import annotations

import os
import time
from typing import Any, ClassVar

from bots.strategy import RandomMixin
from protocol.errors import UnknownBot
from protocol.vocabulary import Question

__all__ = ["ROGUES", "Crash", "Illegal", "Rogue", "Stall", "rogue"]


class Rogue(RandomMixin):
    """Plays along for `PATIENCE` decisions, then misbehaves."""

    PATIENCE: ClassVar[int] = 10  # fewer than the shortest match of any game has

    def __init__(self) -> None:
        self._decisions = 0

    def decide(self, question: Question[Any]) -> object:
        """A random legal answer, or what this rogue is named for."""
        self._decisions += 1
        if self._decisions > self.PATIENCE:
            return self.misbehave()
        return super().decide(question)

    def misbehave(self) -> object:
        """Do it."""
        raise AssertionError("every rogue has a way of its own")


class Illegal(Rogue):
    """Answers what was never among the legal answers."""

    def misbehave(self) -> object:
        """An answer to some other question."""
        return "all in"


class Crash(Rogue):
    """Its process ends in the middle of a decision, without a word."""

    def misbehave(self) -> object:
        """Gone."""
        os._exit(3)


class Stall(Rogue):
    """Never answers again, but stays connected."""

    def misbehave(self) -> object:
        """Think, for longer than any limit."""
        time.sleep(3600)
        return None


ROGUES: dict[str, type[Rogue]] = {
    "rogue-illegal": Illegal,
    "rogue-crash": Crash,
    "rogue-stall": Stall,
}


def rogue(game: str, name: str) -> type[Rogue]:
    """The class of a rogue that plays this game.

    Raises:
        UnknownBot: there is none of that name.
    """
    if name not in ROGUES:
        raise UnknownBot(f"no rogue {name!r}; expected one of: {', '.join(ROGUES)}")
    return type(ROGUES[name].__name__, (ROGUES[name],), {"game": game})
