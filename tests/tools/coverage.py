"""How often the intervals that standings show hold the truth, simulated: promised are 95 %.

Run as `python -m tests.tools.coverage [--trials 20000] [--pool 3000] [--seed 1]`; it takes minutes
and prints a line for each kind of competition: how many of its intervals held the true mean, what
is asked for, and how many there were. A `!` marks what does not hold. Every interval comes from
`RoundRobin` or `League`, as in an arena. Means of made-up units are known exactly. Shares are not
simulated: the probability of every count is computed. Bankrolls, and bots that adapt, come from
real matches between house bots, of which competitions are drawn; the truth is the mean of all of
these. `tests/arena/formats/test_intervals.py` has a short form.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import exp, lgamma, log, sqrt
from random import Random

import msgspec

import arena
from arena.formats.intervals import UnitKind
from arena.formats.schedule import Outcome, Pairing
from arena.formats.standings import Cell, League, RoundRobin
from arena.games.catalogue import GAMES, competition_settings
from arena.games.match import MatchResult, Result
from arena.games.statistics import Bounds, UnitSums, wilson
from protocol.messages import Ending, Termination
from protocol.strategy import house_bots

__all__ = [
    "Covered",
    "Simulation",
    "adapting",
    "games_won",
    "leagues",
    "means",
    "shares",
    "tournaments",
]

_DONE = Termination(Ending.COMPLETED)
_BOTS = ("ann", "ben", "cem")
Match = tuple[Result, UnitSums | None]
Draw = Callable[[int, int, Random], Match]
"""Draws a match between two of `_BOTS`, by number; the first sits in seat 0."""
Simulation = Callable[[int, int], Iterator["Covered"]]
"""Simulates so many trials of each of its kinds, from a seed."""


class Covered(msgspec.Struct, kw_only=True):
    """So many of `trials` intervals of a kind `held` the truth; `none` were too few to say."""

    name: str
    least: float
    most: float
    held: float = 0
    trials: int = 0
    none: int = 0
    flat: int = 0  # intervals without a width: there must be none

    def add(self, interval: Bounds | None, truth: float) -> None:
        if interval is None:
            self.none += 1
            return
        self.trials += 1
        self.held += interval.low <= truth <= interval.high
        self.flat += interval.low >= interval.high

    @property
    def share(self) -> float:
        return self.held / self.trials if self.trials else 0.0

    def holds(self) -> bool:
        """Whether it keeps what is asked for, but for chance in the simulation itself."""
        slack = 3 * sqrt(0.05 * 0.95 / self.trials) if self.trials > 1 else 0.0
        return not self.flat and self.least - slack <= self.share <= self.most + slack

    def __str__(self) -> str:
        mark = "" if self.holds() else "  !"
        asked = f"{100 * self.least:.4g}–{100 * self.most:.4g}"
        trials = "" if self.trials == 1 else f" ({self.trials:,})"
        none = f", too few to say in {self.none:,}" if self.none else ""
        return f"{100 * self.share:6.2f} %  asked {asked:9}  {self.name}{trials}{none}{mark}"


# ---- Means of units that are drawn independently


def means(trials: int, seed: int) -> Iterator[Covered]:
    """One pairing, whose units are normal, skewed or rare wins of a stake."""
    draws: dict[str, tuple[Callable[[Random], int], float]] = {
        "normal": (lambda chance: round(chance.gauss(3, 20)), 3.0),
        "uniform": (lambda chance: chance.randrange(-10, 14), 1.5),
        "two values": (lambda chance: 2 * (chance.random() < 0.5) - 1, 0.0),
        "chips of a hand": (lambda chance: chance.choice((-2, -1, -1, 1, 1, 2)), 0.0),
    }
    for name, (unit, mean) in draws.items():
        for matches, length in ((1, 20), (4, 5), (9, 20), (20, 1), (20, 20), (100, 10)):
            draw = _made(partial(_alike, unit), length)
            # Of two values few sums are possible, so that some means are held more often.
            least, most = (0.93, 0.97) if name == "two values" else (0.94, 0.96)
            title = f"{name}: {matches} matches of {length} units"
            found = Covered(name=title, least=least, most=most)
            chance = Random(f"{seed} {found.name}")
            for _ in range(trials):
                table = _pairing(matches, draw, chance)
                found.add(table["ann"]["ben"].interval, mean * length)
            yield found


def tournaments(trials: int, seed: int) -> Iterator[Covered]:
    """Three bots of different strength and spread: rows, over both opponents, and pairings."""
    truth = {(0, 1): 2.0, (0, 2): 5.0, (1, 2): -1.0}
    spread = {(0, 1): 8, (0, 2): 20, (1, 2): 14}

    def unit(first: int, second: int, chance: Random) -> int:
        pair = min(first, second), max(first, second)
        value = chance.gauss(truth[pair], spread[pair])
        return round(value if first < second else -value)

    for length in (1, 20):
        what = "the match is the unit" if length == 1 else f"{length} units a match"
        for matches in (2, 3, 4, 10):
            name = f"three bots, {matches} matches a pairing, {what}"
            rows = Covered(name=f"{name}: rows", least=0.94, most=0.985)
            cells = Covered(name=f"{name}: pairings", least=0.94, most=0.985)
            chance = Random(f"{seed} {name}")
            draw = _made(unit, length, are_summed=length > 1)
            for _ in range(trials):
                standings = _round_robin(_BOTS, matches, draw, chance)
                [row] = [row for row in standings.rows() if row.name == "ann"]
                rows.add(row.interval, length * (truth[0, 1] + truth[0, 2]) / 2)
                cell = standings.cross_table()["ben"]["cem"]
                cells.add(cell.interval, length * truth[1, 2])
            yield rows
            yield cells


def _alike(unit: Callable[[Random], int], _first: int, _second: int, chance: Random) -> int:
    return unit(chance)


# ---- Shares


def shares() -> Iterator[Covered]:
    """Wilson's of n units won with probability p, and of a league's share, by enumeration.

    Where hardly any unit is won, every interval that holds at 0 holds nearly always.
    """
    grid = [number / 200 for number in range(1, 100)]
    for count in (5, 10, 20, 40, 100, 400, 1000):
        found = [(p, _share_coverage(count, p)) for p in grid]
        few = [covered for p, covered in found if count * p < 10]
        many = [covered for p, covered in found if count * p >= 10]
        name = f"shares of {count} units"
        if many:
            least, mean = min(many), sum(many) / len(many)
            yield Covered(name=f"{name}: mean", least=0.94, most=0.985, held=mean, trials=1)
            yield Covered(name=f"{name}: worst", least=0.93, most=0.985, held=least, trials=1)
        if few:
            worst = min(few)
            label = f"{name}, fewer than 10 won or lost"
            yield Covered(name=f"{label}: worst", least=0.9, most=0.985, held=worst, trials=1)
            mean = sum(few) / len(few)
            yield Covered(name=f"{label}: mean", least=0.94, most=0.985, held=mean, trials=1)


def _share_coverage(count: int, p: float) -> float:
    """The probability that Wilson's interval holds p."""
    covered = 0.0
    for won in range(count + 1):
        ways = lgamma(count + 1) - lgamma(won + 1) - lgamma(count - won + 1)
        likely = exp(ways + won * log(p) + (count - won) * log(1 - p))
        if likely > 1e-12:
            found = wilson(won / count, count)
            covered += likely * (found.low <= p <= found.high)
    return covered


def games_won(trials: int, seed: int) -> Iterator[Covered]:
    """Pairings of a game that counts games, with the wider interval from ten matches on."""
    for p in (0.5, 0.645, 0.8, 0.95):
        for matches, length in ((1, 10), (2, 10), (4, 25), (10, 10), (40, 1), (40, 10)):
            name = f"games won with {p}: {matches} matches of {length}"
            rare = matches * length * min(p, 1 - p)
            least, most = 0.9 if rare < 10 else 0.93, 0.985 if rare >= 1 else 1.0
            found = Covered(name=name, least=least, most=most)
            chance = Random(f"{seed} {name}")
            kind = UnitKind("game", is_share=True)
            for _ in range(trials):
                outcomes = []
                for _match in range(matches):
                    won = sum(chance.random() < p for _ in range(length))
                    lost = length - won
                    result = Result((won, lost), (0, 0), _DONE)
                    outcomes.append((result, UnitSums(length, (won, lost), (won, lost))))
                table = _added(("ann", "ben"), outcomes, kind)
                found.add(table.cross_table()["ann"]["ben"].interval, p * length)
            yield found


# ---- Real matches


def leagues(trials: int, pool: int, seed: int) -> Iterator[Covered]:
    """What leagues rank house bots by, against the dealer: mean bankrolls and shares."""
    for rules in GAMES.values():
        if rules.purse is None or rules.package is not None:
            continue
        chosen = {} if rules.measure.is_share else {rules.purse.length: 200}
        settings = competition_settings(rules, chosen)
        for bot in house_bots(rules.name):
            results = [result.scores for result in _pool(rules.name, (bot,), settings, pool, seed)]
            values = [rules.measure.value(settings, score) for (score,) in results]
            truth = sum(values) / len(values)
            for matches in (20, 50, 100):
                least, most = (0.93 if matches == 100 else 0.91), 0.965
                if rules.measure.is_share:
                    least, most = 0.9, 1.0
                title = f"league of {rules.name}, {bot}: {rules.measure.title}, {matches} matches"
                found = Covered(name=title, least=least, most=most)
                chance = Random(f"{seed} {title}")
                for _ in range(trials):
                    league = League((bot,), rules.measure, settings)
                    for scores in chance.choices(results, k=matches):
                        outcome = Outcome(Pairing(1, (bot,)), Result(scores, (0,), _DONE))
                        league.add(outcome)
                    found.add(league.rows()[0].interval, truth)
                yield found


def adapting(trials: int, pool: int, seed: int) -> Iterator[Covered]:
    """A bot that adapts, whose hands hang together: blocks, and the wider from ten matches on."""
    rules = next(rules for rules in GAMES.values() if rules.unit and rules.unit.block > 1)
    assert rules.unit is not None, "it has blocks"
    for other in ("random", "bluffer", "nash"):
        for hands in (200, 1000):
            settings = competition_settings(rules, {rules.unit.setting: hands})
            players = ("learner", other)
            found = _pool(rules.name, players, settings, pool * 200 // hands, seed)
            truth = sum(result.scores[0] for result in found) / len(found)
            kind = UnitKind("hand", rules.unit.block)
            for matches in (2, 4, 10, 20):
                title = f"learner against {other}, {matches} matches of {hands} hands"
                covered = Covered(name=title, least=0.93, most=0.97)
                chance = Random(f"{seed} {title}")
                for _ in range(trials):
                    outcomes = [
                        (result, result.units) for result in chance.choices(found, k=matches)
                    ]
                    table = _added(players, outcomes, kind)
                    cell = table.cross_table()["learner"][other]
                    covered.add(cell.interval, truth)
                yield covered


def _pool(
    game: str, bots: Sequence[str], settings: msgspec.Struct, matches: int, seed: int
) -> list[MatchResult]:
    """Real matches, each between new instances."""
    classes = [house_bots(game)[bot] for bot in bots]
    results = []
    for number in range(matches):
        strategies = [make() for make in classes]
        for seat, strategy in enumerate(strategies):
            if hasattr(strategy, "seed"):
                strategy.seed(f"{seed} {number} {seat}")
        options = msgspec.to_builtins(settings)
        results.append(arena.play(game, strategies, settings=options, seed=seed + number))
    return results


# ---- Competitions


def _made(unit: Callable[[int, int, Random], int], length: int, *, are_summed: bool = True) -> Draw:
    def draw(first: int, second: int, chance: Random) -> Match:
        values = [unit(first, second, chance) for _ in range(length)]
        total, squares = sum(values), sum(value * value for value in values)
        units = UnitSums(length, (total, -total), (squares, squares)) if are_summed else None
        return Result((total, -total), (0, 0), _DONE), units

    return draw


def _round_robin(bots: Sequence[str], matches: int, draw: Draw, chance: Random) -> RoundRobin:
    standings = RoundRobin(bots, kind=UnitKind("game"))
    for first in range(len(bots)):
        for second in range(first + 1, len(bots)):
            for _ in range(matches):
                result, units = draw(first, second, chance)
                pairing = Pairing(1, (bots[first], bots[second]))
                standings.add(Outcome(pairing, result, units=units))
    return standings


def _pairing(matches: int, draw: Draw, chance: Random) -> Mapping[str, Mapping[str, Cell]]:
    return _round_robin(_BOTS[:2], matches, draw, chance).cross_table()


def _added(
    players: Sequence[str], outcomes: Sequence[tuple[Result, UnitSums | None]], kind: UnitKind
) -> RoundRobin:
    standings = RoundRobin(players, kind=kind)
    for result, units in outcomes:
        standings.add(Outcome(Pairing(1, tuple(players)), result, units=units))
    return standings


def _all(trials: int, pool: int, seed: int) -> Iterator[Covered]:
    yield from means(trials, seed)
    yield from tournaments(trials, seed)
    yield from shares()
    yield from games_won(trials, seed)
    yield from leagues(trials, pool, seed)
    yield from adapting(trials, pool, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description="How often the intervals hold the truth.")
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--pool", type=int, default=3_000, help="real matches of each kind")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    missed = 0
    for found in _all(options.trials, options.pool, options.seed):
        print(found, flush=True)
        missed += not found.holds()
    print("all hold" if not missed else f"{missed} do not hold what is asked for")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
