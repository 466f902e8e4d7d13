"""A game in one process: a program that measures it.

Run as `python game_rates.py WORK SECONDS` it uses nothing of its tree but `arena.play`. WORK is a
JSON document, {game, seats, settings, closes}. All play at random by the legal answers alone. It
prints a JSON document, {deals, decisions, cpu_s}.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Iterator
from typing import Any


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


def _measure(played: Iterator[tuple[int, int]], seconds: float) -> dict[str, float]:
    next(played)  # not counted: imports, caches
    deals = decisions = 0
    started = time.process_time()
    while (spent := time.process_time() - started) < seconds:
        more_deals, more_decisions = next(played)
        deals, decisions = deals + more_deals, decisions + more_decisions
    return {"deals": deals, "decisions": decisions, "cpu_s": spent}


if __name__ == "__main__":
    work, seconds = sys.argv[1:]
    print(json.dumps(_measure(_our_deals(json.loads(work)), float(seconds))))
