"""Bots that take part in an experiment: made ones that keep their instances, and house bots."""

from __future__ import annotations

from arena.games.rules import Game
from arena.lab.in_process import Entrant, entrant
from tests.support.answering import Answering

__all__ = ["Made", "house"]


class Made:
    """Makes entrants, and keeps their instances and what these were seeded with."""

    def __init__(self) -> None:
        self.strategies: dict[str, list[Answering]] = {}
        self.seeds: list[str] = []

    def entrant(self, name: str, choice: int = 0, rogue: bool = False) -> Entrant:
        """One that gives the first or the last of the legal answers, or no legal one."""

        def make(seed: str) -> Answering:
            self.seeds.append(seed)
            made = Answering(lambda question: "cheat" if rogue else question.legal[choice])
            self.strategies.setdefault(name, []).append(made)
            return made

        return Entrant(name, make)


def house(game: Game, *names: str) -> list[Entrant]:
    """House bots of a game."""
    return [entrant(game, name) for name in names]
