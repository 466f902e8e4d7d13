"""Measures how much of the scores of house bots is luck: `python -m tests.tools.luck [--game GAME]`.

Plays matches between house bots in this machine's processes, and takes the luck out by the records
alone. For each table it prints, of its first seat, the mean of the luck with its standard error,
which must not differ from 0, and how much of the variance of a round and of a match is left without
luck. Then it prints how many rounds and matches are needed to tell two bots apart, wrong in 5 % and
with a power of 80 %, before and after. In a game for one each bot plays alone and their means are
compared; in one for two the bots meet.

Long matches matter where bots bet by their cash: `--rounds 1000`. What is tried on every commit is
in tests/test_luck.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import combinations
from math import inf
from statistics import NormalDist
from typing import Any

import msgspec

import arena
from arena.engine.rules import Game
from arena.engine.statistics import Sample
from arena.games import GAMES, competition_settings
from arena.records.luck import luck_of
from protocol.strategy import find, house_bots

__all__ = ["GainSamples", "TableLuck", "main", "measured", "needed", "tables"]

# Of a normal distribution: wrong in 5 %, two-sided, with a power of 80 %.
_SPREADS = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)
_SAME = 1e-9  # two means closer than this differ by rounding
_CHUNK = 50  # matches a process is given at once


class GainSamples(msgspec.Struct):
    """Gains of one seat, the luck in them, and the gains without it."""

    gains: Sample = msgspec.field(default_factory=Sample)
    luck: Sample = msgspec.field(default_factory=Sample)
    without: Sample = msgspec.field(default_factory=Sample)

    def add(self, gain: float, luck: float) -> None:
        self.gains.add(gain)
        self.luck.add(luck)
        self.without.add(gain - luck)

    def merge(self, other: GainSamples) -> None:
        self.gains.merge(other.gains)
        self.luck.merge(other.luck)
        self.without.merge(other.without)

    @property
    def spreads_from_0(self) -> float:
        """How many standard errors the mean of the luck is away from 0."""
        return _known(self.luck.mean) / _known(self.luck.standard_error)

    @property
    def variance_left(self) -> float:
        """The share of the variance of gains that is left without luck."""
        return _known(self.without.variance) / _known(self.gains.variance)


class TableLuck(msgspec.Struct):
    """The first seat of a table, by round and by match."""

    rounds: GainSamples = msgspec.field(default_factory=GainSamples)
    matches: GainSamples = msgspec.field(default_factory=GainSamples)


def measured(game: str, settings: dict[str, Any], bots: Sequence[str], seeds: range) -> TableLuck:
    """Play a match of these bots for each seed and measure its luck."""
    table = TableLuck()
    for seed in seeds:
        strategies = [find(game, bot)() for bot in bots]
        for seat, strategy in enumerate(strategies):
            if callable(seeding := getattr(strategy, "seed", None)):
                seeding(f"{seed}:{seat}")
        match = luck_of(arena.play(game, strategies, settings=settings, seed=seed).record)
        table.matches.add(match.gains[0], match.luck[0])
        for played in match.rounds:
            table.rounds.add(played.gains[0], played.luck[0])
    return table


def needed(first: GainSamples, second: GainSamples | None = None) -> tuple[float, float]:
    """How many values tell a mean from another, or from 0: with luck, and without.

    The means are those without luck, as they are known better. Bots that always decide alike are
    told apart by no number.
    """
    apart, before, after = _moments(first)
    if second is not None:
        mean, more_before, more_after = _moments(second)
        apart, before, after = apart - mean, before + more_before, after + more_after
    if abs(apart) < _SAME:
        return inf, inf
    factor = (_SPREADS / apart) ** 2
    return max(1.0, before * factor), max(1.0, after * factor)


def tables(game: Game) -> Iterator[tuple[str, ...]]:
    """Each house bot alone, or each pair; at larger tables each bot before those that follow it."""
    bots = list(house_bots(game.name))
    if game.seats == 2:
        yield from combinations(bots, 2)
        return
    for first in range(len(bots)):
        around = bots[first:] + bots[:first]
        yield tuple((around * game.seats)[: game.seats])


def _moments(sample: GainSamples) -> tuple[float, float, float]:
    without = sample.without
    return _known(without.mean), _known(sample.gains.variance), _known(without.variance)


def _known(value: float | None) -> float:
    assert value is not None, "measured from two matches or more"
    return value


def _shown(name: str, table: TableLuck, unit: str) -> str:
    luck, rounds = table.matches.luck, table.rounds
    return (
        f"{name:<22} {rounds.gains.count:>9,} rounds, {luck.count:>6,} matches  "
        f"luck {_known(luck.mean):+9.3f} ± {_known(luck.standard_error):.3f} {unit}s a match "
        f"(z {table.matches.spreads_from_0:+.2f}; by round {rounds.spreads_from_0:+.2f})  "
        f"gain {_known(rounds.gains.mean):+.4f}, without luck {_known(rounds.without.mean):+.4f}  "
        f"left {rounds.variance_left:.4f} a round, {table.matches.variance_left:.4f} a match"
    )


def _print_needed(name: str, first: TableLuck, second: TableLuck | None = None) -> None:
    rounds = needed(first.rounds, None if second is None else second.rounds)
    matches = needed(first.matches, None if second is None else second.matches)
    print(
        f"{name:<22} to tell apart: {rounds[0]:>12,.0f} → {rounds[1]:,.0f} rounds, "
        f"{matches[0]:,.0f} → {matches[1]:,.0f} matches"
    )


def main() -> None:
    """Measure all games that say how their luck is measured, or one."""
    with_luck = [name for name, game in GAMES.items() if game.luck is not None]
    parser = argparse.ArgumentParser(prog="python -m tests.tools.luck", description=__doc__)
    parser.add_argument("--game", choices=with_luck, help="this one only")
    parser.add_argument("--bots", help="tables with one of these only, with commas between")
    parser.add_argument("--matches", type=int, default=2000, help="of each table")
    parser.add_argument("--rounds", type=int, default=100, help="of a match at most")
    parser.add_argument(
        "--seed", type=int, default=1, help="of the first match; each table has others"
    )
    parser.add_argument("--jobs", type=int, default=None, help="processes; by default one a core")
    options = parser.parse_args()
    wanted = options.bots.split(",") if options.bots else None
    for title in [options.game] if options.game else with_luck:
        game = GAMES[title]
        assert game.luck is not None, "chosen so"
        settings = msgspec.to_builtins(competition_settings(game, game.rounds(options.rounds)))
        print(f"{title} {settings}")
        found: dict[str, TableLuck] = {}
        with ProcessPoolExecutor(options.jobs) as processes:
            for number, table in enumerate(tables(game)):
                if wanted is not None and not set(wanted) & set(table):
                    continue
                # Other cards at each table, as `needed` takes the means for independent.
                first = options.seed + number * options.matches
                last = first + options.matches
                chunks = [range(at, min(at + _CHUNK, last)) for at in range(first, last, _CHUNK)]
                label = " v ".join(table)
                found[label] = TableLuck()
                for part in processes.map(partial(measured, title, settings, table), chunks):
                    found[label].matches.merge(part.matches)
                    found[label].rounds.merge(part.rounds)
                print(_shown(label, found[label], game.luck.unit), flush=True)
        if game.seats == 1:
            for (name, one), (other, two) in combinations(found.items(), 2):
                _print_needed(f"{name} v {other}", one, two)
        elif game.seats == 2:
            for label, both in found.items():
                _print_needed(label, both)


if __name__ == "__main__":
    main()
