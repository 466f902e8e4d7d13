"""How many games settle a comparison, and how often two equal bots are told apart.

Run as `python -m tests.tools.settling [--pairings 2000] [--seed 1]`. A pairing is drawn game by
game with a true share of games won, and looked at after every game, as `arena compare` does. It
fails if a mean is above what is promised, or equal bots are told apart in more than 5 %.
"""

from __future__ import annotations

import argparse
import random
from functools import cache

import msgspec

from arena.strength.interval import beta_sequence

__all__ = ["EQUAL_GAMES", "PROMISED", "equal_told_apart", "main", "settled_after"]

PROMISED = {0.60: 225, 0.645: 110, 0.73: 60}
"""The most games that may be needed on average, by the true share."""
EQUAL_GAMES = 1000
_WRONG = 0.05
_MOST_GAMES = 100_000


class Settled(msgspec.Struct, frozen=True):
    """Pairings that were settled: their mean number of games, and in how many the worse won."""

    games: float
    wrong: int


@cache
def _needed(games: int) -> int:
    """The fewest games won of so many that tell two bots apart."""
    won = _needed(games - 1) if games > 1 else 1
    while won <= games and beta_sequence(won, games).low <= 0.5:
        won += 1
    return won


def _games_until_settled(draw: random.Random, share: float, most: int) -> tuple[int, bool] | None:
    """After how many games a pairing is settled, and whether the first won; None if it is not."""
    won = 0
    for games in range(1, most + 1):
        won += draw.random() < share
        if won >= _needed(games) or games - won >= _needed(games):
            return games, won > games - won
    return None


def settled_after(share: float, pairings: int, seed: int) -> Settled:
    """Let bots play until each pairing is settled; the first wins so large a share of games."""
    draw = random.Random(f"{seed}:{share}")
    total = wrong = 0
    for _ in range(pairings):
        settled = _games_until_settled(draw, share, _MOST_GAMES)
        assert settled is not None, "a share so far from a half is settled before"
        total += settled[0]
        wrong += not settled[1]
    return Settled(total / pairings, wrong)


def equal_told_apart(pairings: int, seed: int) -> float:
    """The share of pairings of equal bots that are told apart within `EQUAL_GAMES`."""
    draw = random.Random(f"{seed}:equal")
    told = sum(_games_until_settled(draw, 0.5, EQUAL_GAMES) is not None for _ in range(pairings))
    return told / pairings


def main(pairings: int, seed: int) -> None:
    failed = False
    for share, most in PROMISED.items():
        settled = settled_after(share, pairings, seed)
        failed |= settled.games > most
        print(
            f"true share {share:.3f}: settled after {settled.games:.1f} games on average, "
            f"promised {most}; the worse one won in {settled.wrong} of {pairings:,} pairings"
        )
    told = equal_told_apart(pairings, seed)
    failed |= told > _WRONG
    print(
        f"equal bots: told apart in {100 * told:.2f} % of {pairings:,} pairings "
        f"within {EQUAL_GAMES:,} games, looked at after every one"
    )
    if failed:
        raise SystemExit("it is worse than promised")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairings", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    main(arguments.pairings, arguments.seed)
