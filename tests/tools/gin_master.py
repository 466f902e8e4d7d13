"""How strong `master` is, and how long it thinks: `python -m tests.tools.gin_master [GAMES]`.

It plays GAMES games (600) to 50 points against each of `simple`, `patient` and `expert`, in matches
of ten, so that it learns whom it faces anew in each. It prints the share of games won with its 95 %
interval, and the CPU time of a decision. Ten games take ten to twenty seconds of CPU.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import arena
from arena.strength.interval import wilson
from bots.gin_rummy import Master
from protocol.messages import Ending
from protocol.strategy import find
from protocol.vocabulary import Question

__all__ = ["TimedMaster", "main", "play_ten"]

_OTHERS = ("simple", "patient", "expert")
_GAMES = 10  # in a match


class TimedMaster(Master):
    """Notes the CPU seconds of its decisions."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        super().__init__()

    def decide(self, question: Question[Any]) -> object:
        begun = time.process_time()
        answer = super().decide(question)
        self.seconds.append(time.process_time() - begun)
        return answer


def play_ten(other: str, seed: int) -> tuple[int, list[float]]:
    """The games of ten that `master` wins, and the seconds of its decisions."""
    master, rival = TimedMaster(), find("gin_rummy", other)()
    master.seed(seed)
    rival.seed(seed + 1)
    result = arena.play("gin_rummy", [master, rival], settings={"games": _GAMES}, seed=seed)
    if result.termination.kind is not Ending.COMPLETED:
        raise SystemExit(f"expected a whole match, got {result.termination.text}")
    return result.scores[0], master.seconds


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.gin_master", description=__doc__)
    parser.add_argument("games", type=int, nargs="?", default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(argv)
    seeds = range(options.seed * 1_000_000, options.seed * 1_000_000 + options.games // _GAMES)
    with ProcessPoolExecutor(options.workers) as pool:
        for other in _OTHERS:
            matches = list(pool.map(partial(play_ten, other), seeds))
            won, games = sum(wins for wins, _ in matches), len(matches) * _GAMES
            interval = wilson(won / games, games)
            times = sorted(1000 * second for _, seconds in matches for second in seconds)
            p50, p95 = (times[len(times) * part // 100] for part in (50, 95))
            print(
                f"{other:8} {won / games:.3f} [{interval.low:.3f}, {interval.high:.3f}] of {games} games; "
                f"CPU of a decision: p50 {p50:.0f}, p95 {p95:.0f}, most {times[-1]:.0f} ms",
                flush=True,
            )


if __name__ == "__main__":
    main()
