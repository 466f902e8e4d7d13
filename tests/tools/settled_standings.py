"""Measures how true settled standings are, and what they cost: `-m tests.tools.settled_standings`.

Bots are numbers here: each two win a share of games that follows from their strengths, and a race
(`arena/games/settle.py`) hears blocks as a competition has them, one block behind. Prints how
often a mark or a rank range was ever wrong, and how many games were needed. A short form is a test.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import exp
from typing import TypeAlias

import click
import msgspec

from arena.games.settle import Goal, Mark, Meeting, PairRace, block_size

__all__ = ["Pairs", "Tournament", "equal_bots", "main", "marks", "tournament"]

LEVEL = 0.02
LEAST, MOST = 10, 1_000  # games of a pairing
SPREAD = 0.5  # of simulated strengths: who is stronger by two of it wins 73 of 100 games
TARGETS = {0.60: 225, 0.645: 110, 0.73: 60}  # true share → mean games until settled, at most

Shares: TypeAlias = Mapping[tuple[str, str], float]


class Tournament(msgspec.Struct, frozen=True):
    """The outcome of one simulated round robin.

    Attributes:
        games: how many were played, with the block that had been begun when all was settled.
        is_settled: whether nothing was open at the end.
        wrong: whether a rank range was ever wrong.
    """

    games: int
    is_settled: bool
    wrong: bool


class Pairs(msgspec.Struct, frozen=True):
    """The outcome of simulated pairings with a look after every game.

    Attributes:
        wrong: how many had a wrong mark.
        games: the mean number until a mark was made, or until the end.
    """

    wrong: int
    games: float


def tournament(
    strengths: Sequence[float],
    goal: Goal,
    rng: random.Random,
    *,
    level: float = LEVEL,
    most: int = MOST,
) -> Tournament:
    """Play a round robin until it is settled; strengths are logits."""
    names = [f"bot {number}" for number in range(1, len(strengths) + 1)]
    by_name = dict(zip(names, strengths, strict=True))
    shares = {
        (one, other): 1 / (1 + exp(by_name[other] - by_name[one]))
        for one, other in combinations(names, 2)
    }
    truth = _ranks(names, shares)
    race, played, done, wrong = PairRace(names, goal, level), 0, 0, False
    waiting: list[list[Meeting]] = []
    pairs = list(shares)
    while pairs and (size := block_size(done, LEAST, most)):
        waiting.append([Meeting(*pair, _won(shares[pair], size, rng), size) for pair in pairs])
        played, done = played + size * len(pairs), done + size
        if len(waiting) > 1:
            race.add(waiting.pop(0))
            pairs = race.open_pairs()
            wrong = wrong or _is_wrong(race, truth)
    for block in waiting:
        race.add(block)
    return Tournament(played, not race.open_pairs(), wrong or _is_wrong(race, truth))


def equal_bots(bots: int, tournaments: int, seed: int, most: int = MOST) -> int:
    """In how many tournaments of equal bots, played to the end, a rank range was ever wrong."""
    return sum(
        tournament(
            [0.0] * bots, Goal.ORDER, random.Random(f"{seed} {number}"), level=0.0, most=most
        ).wrong
        for number in range(tournaments)
    )


def marks(share: float, pairings: int, seed: int, most: int = MOST) -> Pairs:
    """Look at two bots after every game until a mark says which is better."""
    rng = random.Random(f"{seed} {share}")
    right = {0.5: (Mark.OPEN, Mark.LEVEL)}.get(share, (Mark.BETTER, Mark.OPEN))
    wrong = games = 0
    for _ in range(pairings):
        race, played = PairRace(("a", "b"), Goal.PAIRS, LEVEL), 0
        while race.mark("a", "b") is Mark.OPEN and played < most:
            race.add([Meeting("a", "b", float(rng.random() < share))])
            played += 1
        games += played
        wrong += race.mark("a", "b") not in right
    return Pairs(wrong, games / pairings)


def _won(share: float, games: int, rng: random.Random) -> float:
    if share == 0.5:
        return rng.getrandbits(games).bit_count()
    return sum(rng.random() < share for _ in range(games))


def _ranks(names: Sequence[str], shares: Shares) -> dict[str, tuple[int, int]]:
    """The best and the worst rank of each bot, by its true mean share."""
    means = {
        name: sum(
            shares[name, other] if (name, other) in shares else 1 - shares[other, name]
            for other in names
            if other != name
        )
        for name in names
    }
    tiny = 1e-9  # of rounding
    return {
        name: (
            1 + sum(other > mean + tiny for other in means.values()),
            sum(other >= mean - tiny for other in means.values()),
        )
        for name, mean in means.items()
    }


def _is_wrong(race: PairRace, truth: Mapping[str, tuple[int, int]]) -> bool:
    return any(
        found.low > truth[name][0] or found.high < truth[name][1]
        for name, found in race.ranges().items()
    )


@click.command(help=__doc__)
@click.option("--tournaments", default=200, show_default=True)
@click.option("--pairings", default=2_000, show_default=True)
@click.option("--bots", default=40, show_default=True)
@click.option("--seed", default=1, show_default=True)
def main(tournaments: int, pairings: int, bots: int, seed: int) -> None:
    """Print all figures; with 40 bots it takes some minutes."""
    whole = bots * (bots - 1) // 2 * MOST
    found = marks(0.5, pairings, seed)
    click.echo(
        f"two equal bots, {MOST:,} games: {found.wrong} wrong marks in {pairings:,} pairings"
    )
    for share, target in TARGETS.items():
        found = marks(share, pairings, seed)
        text = f"{found.games:.0f} games until settled, {found.wrong} wrong; at most {target}"
        click.echo(f"true share {share}: {text}")
    wrong = equal_bots(bots, tournaments, seed)
    click.echo(f"{bots} equal bots: a wrong rank range in {wrong} of {tournaments} tournaments")
    for goal in (Goal.FIRST, Goal.ORDER):
        runs = []
        for number in range(tournaments):
            rng = random.Random(f"{seed} {goal.value} {number}")
            runs.append(tournament([rng.gauss(0, SPREAD) for _ in range(bots)], goal, rng))
        costs = sorted(100 * run.games / whole for run in runs)
        click.echo(
            f"{goal.value} of {bots} bots: {sum(costs) / len(costs):.1f} % of {whole:,} games on "
            f"average, median {costs[len(costs) // 2]:.1f} %, 95 of 100 at most "
            f"{costs[int(len(costs) * 0.95)]:.1f} %; settled or level in "
            f"{sum(run.is_settled for run in runs)} of {tournaments}, "
            f"a wrong rank range in {sum(run.wrong for run in runs)}"
        )


if __name__ == "__main__":
    main()
