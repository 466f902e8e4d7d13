"""Bots that misbehave, each in one way: for rehearsals, for `arena demo`, and to see verdicts.

They play any game at random for a while, and then misbehave. `python -m bots GAME rogue-illegal`
connects one. They are not listed among the house bots.
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

    PATIENCE: ClassVar[int] = 10  # fewer than in the shortest match of any game

    def __init__(self) -> None:
        self._decisions = 0

    def decide(self, question: Question[Any]) -> object:
        """Give a random legal answer, or misbehave."""
        self._decisions += 1
        if self._decisions > self.PATIENCE:
            return self._misbehave()
        return super().decide(question)

    def _misbehave(self) -> object:
        raise AssertionError("every rogue has a way of its own")


class Illegal(Rogue):
    """Gives an answer that is never legal."""

    def _misbehave(self) -> object:
        return "all in"


class Crash(Rogue):
    """Ends its process in the middle of a decision."""

    def _misbehave(self) -> object:
        os._exit(3)


class Stall(Rogue):
    """Never answers again, but stays connected."""

    def _misbehave(self) -> object:
        time.sleep(3600)  # longer than any limit
        return None


ROGUES: dict[str, type[Rogue]] = {
    "rogue-illegal": Illegal,
    "rogue-crash": Crash,
    "rogue-stall": Stall,
}


def rogue(game: str, name: str) -> type[Rogue]:
    """Return the class of a rogue for a game.

    Raises:
        UnknownBot: there is no rogue of that name.
    """
    if name not in ROGUES:
        raise UnknownBot(f"no rogue {name!r}; expected one of: {', '.join(ROGUES)}")
    return type(ROGUES[name].__name__, (ROGUES[name],), {"game": game})
