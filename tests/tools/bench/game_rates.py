"""Games and deadwood in one process, ours and other people's: a program that measures one of them.

Run as `python game_rates.py WHOSE WHAT SECONDS`: of its own tree or another commit it uses nothing
but `arena.play`, and for deadwood the arithmetic of the protocol. WHOSE is `ours`, `OpenSpiel` or
`RLCard`; WHAT is a game, of ours as a JSON document, {game, seats, settings, closes}; or `random` or
`rich` for the deadwood of such hands. It prints a JSON document, {deals, decisions, cpu_s}; a hand
of deadwood is a deal. All play at random by the legal answers alone.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["DEADWOOD", "MODULES", "PEERS"]

MODULES = {"OpenSpiel": "pyspiel", "RLCard": "rlcard"}
"""The module of each peer that has to be installed."""

PEERS: dict[str, dict[str, str]] = {
    "OpenSpiel": {
        "ace_king_queen": "kuhn_poker",  # whose deals are as long
        "blackjack": "blackjack",
        "gin_rummy": "gin_rummy",
    },
    "RLCard": {"blackjack": "blackjack", "gin_rummy": "gin-rummy"},
}
"""The games that each peer has, and what it calls them; the only games that the bench names."""

DEADWOOD = ("random", "rich")
"""Hands of ten; of the peers only OpenSpiel counts it."""

_HANDS = 2_000  # of deadwood, in each of which another one is in the caches
_RICH_CARDS = 24  # six neighbouring ranks: nearly every ten of them can be melded in several ways

_Counts = tuple[int, int]


def _our_matches(what: str) -> Iterator[_Counts]:
    """Play matches, and count the deals and decisions of each."""
    import arena

    work = json.loads(what)
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


def _open_spiel_deals(game: str) -> Iterator[_Counts]:
    loaded = importlib.import_module("pyspiel").load_game(PEERS["OpenSpiel"][game])
    choose = random.Random(1).choice
    while True:
        state, decisions = loaded.new_initial_state(), 0
        while not state.is_terminal():
            decisions += not state.is_chance_node()
            state.apply_action(choose(state.legal_actions()))
        yield 1, decisions


def _rlcard_deals(game: str) -> Iterator[_Counts]:
    rlcard = importlib.import_module("rlcard")
    env = rlcard.make(PEERS["RLCard"][game], config={"seed": 1})
    agents = importlib.import_module("rlcard.agents")
    env.set_agents([agents.RandomAgent(env.num_actions) for _ in range(env.num_players)])
    while True:
        trajectories, _ = env.run(is_training=False)
        yield 1, sum(len(seat) // 2 for seat in trajectories)


def _hands(kind: str) -> list[tuple[int, ...]]:
    """Hands of ten as numbers, four to a rank: of the whole deck or, rich, of six ranks."""
    rng, hands = random.Random(1), []
    for _ in range(_HANDS):
        first, count = (0, 52) if kind == "random" else (4 * rng.randrange(8), _RICH_CARDS)
        hands.append(tuple(rng.sample(range(first, first + count), 10)))
    return hands


def _our_deadwood(kind: str) -> Iterator[_Counts]:
    """By mask, as the rules carry a hand from turn to turn."""
    from protocol.gin_melds import card_mask, mask_deadwood

    masks = [
        card_mask(["A23456789TJQK"[card // 4] + "shdc"[card % 4] for card in hand])
        for hand in _hands(kind)
    ]
    return _each(mask_deadwood, masks)


def _open_spiel_deadwood(kind: str) -> Iterator[_Counts]:
    utils = importlib.import_module("pyspiel").gin_rummy.GinRummyUtils(13, 4, 10)
    # Its cards are numbered by suits.
    hands = [[card // 4 + 13 * (card % 4) for card in hand] for hand in _hands(kind)]
    return _each(utils.min_deadwood, hands)


def _each(deadwood: Callable[[Any], object], hands: list[Any]) -> Iterator[_Counts]:
    while True:
        for hand in hands:
            deadwood(hand)
        yield len(hands), 0


_WORK: dict[tuple[str, bool], Callable[[str], Iterator[_Counts]]] = {
    ("ours", False): _our_matches,
    ("ours", True): _our_deadwood,
    ("OpenSpiel", False): _open_spiel_deals,
    ("OpenSpiel", True): _open_spiel_deadwood,
    ("RLCard", False): _rlcard_deals,
}


def _measure(work: Iterator[_Counts], seconds: float) -> dict[str, float]:
    next(work)  # not counted: imports, caches
    deals = decisions = 0
    started = time.process_time()
    while (spent := time.process_time() - started) < seconds:
        more_deals, more_decisions = next(work)
        deals, decisions = deals + more_deals, decisions + more_decisions
    return {"deals": deals, "decisions": decisions, "cpu_s": spent}


if __name__ == "__main__":
    whose, what, seconds = sys.argv[1:]
    work = _WORK[whose, what in DEADWOOD](what)
    print(json.dumps(_measure(work, float(seconds))))
