"""A game in one process, ours or other people's: a program that measures it.

Run as `python game_rates.py WHOSE WORK SECONDS` it uses nothing of its tree but `arena.play`. WHOSE
is `ours`, `OpenSpiel` or `RLCard`; WORK is a JSON document, {game, seats, settings, closes}. All play
at random by the legal answers alone. It prints a JSON document, {deals, decisions, cpu_s}.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
import time
from collections.abc import Iterator
from typing import Any

__all__ = ["PEERS"]

PEERS: dict[str, tuple[str, dict[str, str]]] = {
    "OpenSpiel": (
        "pyspiel",
        # Kuhn poker's deals are as long.
        {"ace_king_queen": "kuhn_poker", "blackjack": "blackjack", "gin_rummy": "gin_rummy"},
    ),
    "RLCard": ("rlcard", {"blackjack": "blackjack", "gin_rummy": "gin-rummy"}),
}
"""The module of each peer, the games that it has, and what it calls them."""


def _our_deals(work: dict[str, Any]) -> Iterator[tuple[int, int]]:
    """Play matches, and count the deals and decisions of each."""
    import arena

    number = 0
    while True:
        seats = [_AtRandom(f"{number}:{seat}", work["closes"]) for seat in range(work["seats"])]
        result = arena.play(work["game"], seats, settings=work["settings"], seed=number)
        if result.termination.kind != "completed":
            sys.exit(f"{work['game']} was to be timed: {result.termination.text}")
        yield seats[0].deals, sum(seat.decisions for seat in seats)
        number += 1


class _AtRandom:
    """Gives legal answers at random, and counts them and the news that closes a deal."""

    def __init__(self, seed: str, closes: str) -> None:
        self._random = random.Random(seed)
        self._closes = closes
        self.deals = self.decisions = 0

    def decide(self, question: Any) -> object:
        self.decisions += 1
        legal = question.legal
        if isinstance(legal, tuple):
            return self._random.choice(legal)
        return self._random.randint(legal.min, legal.max)

    def hear(self, news: object) -> None:
        self.deals += type(news).__name__ == self._closes

    def reset(self) -> None:
        """There is nothing to forget."""


def _open_spiel_deals(work: dict[str, Any]) -> Iterator[tuple[int, int]]:
    module, games = PEERS["OpenSpiel"]
    game = importlib.import_module(module).load_game(games[work["game"]])
    choose = random.Random(1).choice
    while True:
        state, decisions = game.new_initial_state(), 0
        while not state.is_terminal():
            decisions += not state.is_chance_node()
            state.apply_action(choose(state.legal_actions()))
        yield 1, decisions


def _rlcard_deals(work: dict[str, Any]) -> Iterator[tuple[int, int]]:
    module, games = PEERS["RLCard"]
    env = importlib.import_module(module).make(games[work["game"]], config={"seed": 1})
    agents = importlib.import_module(f"{module}.agents")
    env.set_agents([agents.RandomAgent(env.num_actions) for _ in range(env.num_players)])
    while True:
        trajectories, _ = env.run(is_training=False)
        yield 1, sum(len(seat) // 2 for seat in trajectories)


_DEALS = {"ours": _our_deals, "OpenSpiel": _open_spiel_deals, "RLCard": _rlcard_deals}


def _measure(played: Iterator[tuple[int, int]], seconds: float) -> dict[str, float]:
    next(played)  # not counted: imports, caches
    deals = decisions = 0
    started = time.process_time()
    while (spent := time.process_time() - started) < seconds:
        more_deals, more_decisions = next(played)
        deals, decisions = deals + more_deals, decisions + more_decisions
    return {"deals": deals, "decisions": decisions, "cpu_s": spent}


if __name__ == "__main__":
    whose, work, seconds = sys.argv[1:]
    print(json.dumps(_measure(_DEALS[whose](json.loads(work)), float(seconds))))
