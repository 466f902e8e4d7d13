"""How much luck is taken out, and whether its mean is 0: `python -m tests.tools.luck_tables [GAME]`.

House bots play in this process. For each bot of a table it prints the mean of its luck with one
standard error, how many of those that is from 0, and which share of the variance is left in the
gain without luck: per hand, per game in gin rummy, per match in high-low. For tables of two bots it adds how many of them tell the bots apart (5 %, power 80 %), with luck and without.
The exit status is 1 if a mean is more than 3.5 standard errors from 0. It takes some minutes, with
two processes. `--fit` plays other games instead and prints the weights of
`arena/games/gin_rummy/evaluator.py`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import combinations_with_replacement
from math import sqrt
from operator import add
from random import Random
from statistics import NormalDist, fmean, stdev, variance

import msgspec

from arena.games.catalogue import game_named
from arena.games.evaluator import Answered
from arena.games.gin_rummy.evaluator import TERMS, GinRummyEvaluator
from arena.games.match import MatchState, Record, drive
from arena.games.replay import SeatAnswered, events_of
from arena.games.rules import AskSeat, LuckMeter, TellSeat
from arena.games.shuffle import seed_from_int
from arena.lab.in_process import entrant
from arena.records.luck import measure

__all__ = [
    "TABLES",
    "LuckOfSeat",
    "MeasuredTable",
    "fitted",
    "games_needed",
    "measured",
    "meter_of",
    "played",
    "samples",
]

FIT_SEED, SEED = 1_000_000, 2_000_000  # the first of each; no match has both kinds
FIT_BOTS = ("simple", "patient", "expert")
MOST_ERRORS = 3.5


class MeasuredTable(msgspec.Struct, frozen=True):
    """Bots that play each other; whose seats change from match to match.

    A value is what a match brought in sum or, if `per_round`, each of its `LuckRound`s.
    """

    game: str
    bots: tuple[str, ...]
    settings: Mapping[str, object] = {}
    per_round: bool = False


class LuckOfSeat(msgspec.Struct, frozen=True):
    """One value: what a bot gained, and how much of it was luck."""

    gain: float
    luck: float

    @property
    def without(self) -> float:
        return self.gain - self.luck


_TEN_GAMES = {"games": 10}
_HANDS = {"hands": 100}
_UNIFORM = {"hands": 200, "shuffle": "uniform"}

TABLES = (
    *(
        MeasuredTable("ace_king_queen", bots, _HANDS, per_round=True)
        for bots in (("bluffer", "random"), ("honest", "learner"), ("nash", "bluffer"))
    ),
    *(
        MeasuredTable("three_card_poker", (bot,), {"rounds": 100}, per_round=True)
        for bot in ("q64", "doubler", "always", "random")
    ),
    *(
        MeasuredTable("blackjack", (bot,), _UNIFORM, per_round=True)
        for bot in ("simple", "counting", "competitor")
    ),
    *(
        MeasuredTable("gin_rummy", bots, _TEN_GAMES, per_round=True)
        for bots in (
            ("patient", "simple"),
            ("expert", "simple"),
            ("expert", "patient"),
            ("random", "simple"),
            ("expert", "expert"),
        )
    ),
    MeasuredTable("high_low", ("random", "timid", "bold", "counter")),
    MeasuredTable("high_low", ("bold", "bold", "timid", "timid")),
    MeasuredTable("high_low", ("bold", "counter", "counter", "timid")),
    MeasuredTable("high_low", ("counter", "counter", "counter", "counter")),
)


def meter_of(record: Record) -> LuckMeter:
    """The luck of a finished match; raises what `events_of` raises."""
    game = game_named(record.game)
    assert game.luck is not None, "only games whose luck is measured are asked for"
    meter = game.luck.meter(game.vocabulary.read_settings(record.settings))
    for event in events_of(record):
        measure(meter, event)
    return meter


def seating(table: MeasuredTable, seed: int) -> list[int]:
    """By seat, the place in `bots` of who sits there."""
    places = list(range(len(table.bots)))
    Random(seed).shuffle(places)
    return places


def played(table: MeasuredTable, seed: int) -> Record:
    """A match of this table, with new instances of its bots."""
    game = game_named(table.game)
    bots = [table.bots[place] for place in seating(table, seed)]
    strategies = [entrant(game, bot).make(f"{seed}:{seat}") for seat, bot in enumerate(bots)]
    settings = game.vocabulary.read_settings(table.settings)
    match = MatchState(game, settings, seed=seed_from_int(seed))
    drive(match, strategies)
    return match.result().record


def samples(table: MeasuredTable, seed: int) -> list[tuple[LuckOfSeat, ...]]:
    """The values of a match, each by place in `bots`."""
    rounds = meter_of(played(table, seed)).rounds
    seats = seating(table, seed)
    units = [[one] for one in rounds] if table.per_round else [rounds]
    return [
        tuple(
            LuckOfSeat(sum(one.gains[seat] for one in unit), sum(one.luck[seat] for one in unit))
            for seat in (seats.index(place) for place in range(len(seats)))
        )
        for unit in units
    ]


def measured(
    table: MeasuredTable, seeds: Iterable[int], pool: ProcessPoolExecutor
) -> list[tuple[LuckOfSeat, ...]]:
    """The values of many matches."""
    matches = pool.map(partial(samples, table), seeds, chunksize=8)
    return [value for match in matches for value in match]


def games_needed(values: Sequence[float]) -> float:
    """How many such values tell their mean from 0: at 5 %, with a power of 80 %."""
    errors = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)
    return (errors / fmean(values)) ** 2 * variance(values)


def lines(
    table: MeasuredTable, values: Sequence[tuple[LuckOfSeat, ...]]
) -> Iterator[tuple[str, bool]]:
    """What is printed of a table, and whether each mean is near enough to 0."""
    yield f"{table.game}: {', '.join(table.bots)} ({len(values)} values)", True
    for place, bot in enumerate(table.bots):
        if bot in table.bots[:place]:
            continue  # the same bot at another seat is no other bot
        own = [value[place] for value in values]
        error = stdev(one.luck for one in own) / sqrt(len(own))
        mean = fmean(one.luck for one in own)
        left = variance([one.without for one in own]) / variance([one.gain for one in own])
        yield (
            f"  {bot:8} gain {fmean(one.gain for one in own):9.4f}   luck {mean:8.4f} ± {error:.4f}"
            f" ({mean / error:+.1f} errors)   variance left {left:.3f}",
            abs(mean) <= MOST_ERRORS * error,
        )
    half = len(table.bots) // 2
    if len(set(table.bots[:half])) == len(set(table.bots[half:])) == 1 < len(set(table.bots)):
        before, after = (
            games_needed(
                [
                    sum(getattr(one, kind) for one in value[:half])
                    - sum(getattr(one, kind) for one in value[half:])
                    for value in values
                ]
            )
            for kind in ("gain", "without")
        )
        yield f"  told apart with {before:.0f}, without luck with {after:.0f}", True


def terms_of_match(table: MeasuredTable, seed: int) -> list[tuple[float, tuple[float, ...]]]:
    """Of each game, what seat 0 gained, and the sums of its terms."""
    record = played(table, seed)
    settings = game_named(record.game).vocabulary.read_settings(record.settings)
    evaluator = GinRummyEvaluator(settings)  # type: ignore[arg-type]  # only there they are fitted
    games, sums = list[tuple[float, tuple[float, ...]]](), [0.0] * len(TERMS)
    for event in events_of(record):
        if isinstance(event, SeatAnswered):
            evaluator.heard(Answered(event.seat, event.question, event.value))
        elif isinstance(event, TellSeat | AskSeat):
            sums = [*map(add, sums, evaluator.terms(event) or [0.0] * len(TERMS))]
            evaluator.heard(event)
            if isinstance(event, TellSeat) and (gains := evaluator.gains(event.news)) is not None:
                games.append((float(gains[0]), tuple(sums)))
                sums = [0.0] * len(TERMS)
    return games


def fitted(games: Sequence[Sequence[tuple[float, tuple[float, ...]]]]) -> list[float]:
    """The weights that leave the least variance, by least squares.

    Args:
        games: groups of games with the same bots in the same seats, whose mean gains differ.
    """
    size = len(games[0][0][1])
    rows = [[0.0] * (size + 1) for _ in range(size)]
    for group in games:
        means = [fmean(column) for column in zip(*(terms for _, terms in group), strict=True)]
        mean = fmean(gain for gain, _ in group)
        for gain, terms in group:
            beyond = [term - middle for term, middle in zip(terms, means, strict=True)]
            beyond.append(gain - mean)
            for row, term in zip(rows, beyond, strict=False):
                for column, other in enumerate(beyond):
                    row[column] += term * other
    for at in range(size):  # the matrix of squares is positive: no row has to be exchanged
        rows[at] = [value / rows[at][at] for value in rows[at]]
        for other in range(size):
            if other != at:
                by = rows[other][at]
                rows[other] = [a - by * b for a, b in zip(rows[other], rows[at], strict=True)]
    return [row[size] for row in rows]


def fit(matches: int, pool: ProcessPoolExecutor) -> None:
    """Play games that are not measured, and print the weights that fit them best."""
    groups: dict[tuple[str, ...], list[tuple[float, tuple[float, ...]]]] = {}
    for number, bots in enumerate(combinations_with_replacement(FIT_BOTS, 2)):
        table = MeasuredTable("gin_rummy", bots, _TEN_GAMES, per_round=True)
        seeds = range(FIT_SEED + 100_000 * number, FIT_SEED + 100_000 * number + matches // 10)
        found = pool.map(partial(terms_of_match, table), seeds, chunksize=8)
        for seed, games in zip(seeds, found, strict=True):
            seats = tuple(bots[place] for place in seating(table, seed))
            groups.setdefault(seats, []).extend(games)
    for name, weight in zip(TERMS, fitted(list(groups.values())), strict=True):
        print(f'    "{name}": {weight:.4g},')


def main() -> int:
    """Measure, or fit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("game", nargs="?", help="one only, by its whole name")
    parser.add_argument(
        "--matches", type=int, default=2000, help="of a table; hands and games in tens"
    )
    parser.add_argument("--fit", action="store_true", help="find the weights of gin rummy")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    asked = parser.parse_args()
    is_well = True
    with ProcessPoolExecutor(asked.jobs) as pool:
        if asked.fit:
            fit(asked.matches, pool)
            return 0
        for number, table in enumerate(TABLES):
            if asked.game not in (None, table.game):
                continue
            first = SEED + 100_000 * number
            matches = asked.matches // 10 if table.per_round else asked.matches
            for line, is_near in lines(table, measured(table, range(first, first + matches), pool)):
                print(line, flush=True)
                is_well &= is_near
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
