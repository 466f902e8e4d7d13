"""Whether mistakes in gin rummy are mistakes: `python -m tests.tools.gin_mistakes`.

House bots play in this machine's processes, and are judged as by `arena mistakes`. Every mistake
that is shown of `simple` is looked at again, by another instance of the house bot that judges, with
another seed and 2,000 samples: what the answer costs that was called better. Asked for are at
least 90 % that cost more than 0, and 75 % that cost half a percent of the game. Then it prints how
many mistakes a game has of `simple` and of `master`, which must have fewer. The exit status is 1 if
something is missed. `tests/test_gin_mistakes.py` is the same in short.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import msgspec

import arena
from arena.engine.statistics import Sample
from arena.games.gin_rummy_judge import difference
from arena.records.mistakes import MatchMistakes, mistakes_of
from arena.records.seat_matches import numbered_seat_match
from arena.strength.interval import wilson
from protocol.strategy import find

__all__ = ["JudgedGame", "Measured", "judged_games", "main", "measured"]

SEED = 3_000_000  # the first; no weights were found with these games
OPPONENTS = ("simple", "patient", "expert")
SAMPLES = 2000
HALF_A_PERCENT = 0.5
COSTS, COSTS_MORE = 0.9, 0.75  # what is asked for


class JudgedGame(msgspec.Struct, frozen=True):
    """A game of a bot: its mistakes, what they cost looked at again, and how long judging took."""

    mistakes: int
    shown: int
    again: tuple[float, ...]
    seconds: float


class Measured(msgspec.Struct):
    """Games of one bot."""

    games: Sample = msgspec.field(default_factory=Sample)
    shown: Sample = msgspec.field(default_factory=Sample)
    seconds: Sample = msgspec.field(default_factory=Sample)
    again: list[float] = msgspec.field(default_factory=list)

    def add(self, game: JudgedGame) -> None:
        self.games.add(game.mistakes)
        self.shown.add(game.shown)
        self.seconds.add(game.seconds)
        self.again += game.again

    def share_above(self, least: float) -> float:
        """The share of the mistakes that cost more, looked at again."""
        return sum(cost > least for cost in self.again) / len(self.again)


def judged_games(
    bot: str, number: int, samples: int = SAMPLES, opponents: Sequence[str] = OPPONENTS
) -> JudgedGame:
    """Let a bot play a game, judge it, and look at its mistakes again if `samples` are given."""
    seat = number % 2
    bots = [find("gin_rummy", name)() for name in (bot, opponents[number % len(opponents)])]
    for place, player in enumerate(bots):
        player.seed(f"{number} {place}")
    if seat:
        bots.reverse()
    record = arena.play("gin_rummy", bots, seed=SEED + number).record
    begin = time.process_time()
    found = mistakes_of(record, seat)
    seconds = time.process_time() - begin
    again = _again(record, found, samples) if samples else ()
    return JudgedGame(found.count, len(found.mistakes), again, seconds)


def _again(record: arena.Record, found: MatchMistakes, samples: int) -> tuple[float, ...]:
    """What mistakes cost by another instance, which hears the same match."""
    match, places = numbered_seat_match(record, found.seat)
    mistakes = {mistake.index: mistake for mistake in found.mistakes}
    costs: list[float] = []
    appraiser = find("gin_rummy", "master")()
    appraiser.seed("again")
    appraiser.reset()
    for decision, place in zip(match.decisions, places, strict=True):
        for news in decision.news:
            appraiser.hear(news)
        if (mistake := mistakes.get(place)) is not None:
            best = mistake.judgement.best
            question, answer = decision.question, decision.answer
            appraisal = appraiser.appraise(question, answer, samples=samples)
            if best not in appraisal.answers:  # of two good ones it likes another better
                appraisal = appraiser.appraise(question, best, samples=samples)
            costs.append(difference(appraisal, best, answer)[0])
        appraiser.recall(decision.question, decision.answer)
    return tuple(costs)


def measured(games: Iterable[JudgedGame]) -> Measured:
    """Add games up."""
    total = Measured()
    for game in games:
        total.add(game)
    return total


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mistakes", type=int, default=200, help="of simple, looked at again")
    parser.add_argument("--games", type=int, default=40, help="of each bot, to compare them")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    with ProcessPoolExecutor(options.jobs) as pool:
        simple, start = Measured(), 0
        while len(simple.again) < options.mistakes or start < options.games:
            numbers = range(start, start + 2 * options.jobs)
            judging = partial(judged_games, "simple", samples=options.samples)
            for game in pool.map(judging, numbers):
                simple.add(game)
            start = numbers.stop
            print(f"{start} games, {len(simple.again)} mistakes", file=sys.stderr)
        judging = partial(judged_games, "master", samples=0)
        master = measured(pool.map(judging, range(options.games)))
    return _report(simple, master)


def _report(simple: Measured, master: Measured) -> int:
    count = len(simple.again)
    is_good = True
    for least, asked in (0.0, COSTS), (HALF_A_PERCENT, COSTS_MORE):
        share = simple.share_above(least)
        low, high = wilson(share, count).bounds
        print(
            f"{count} mistakes of simple: {100 * share:.1f} % [{100 * low:.1f}, {100 * high:.1f}] "
            f"cost more than {least:g} % of the game again (asked: {100 * asked:.0f} %)"
        )
        is_good &= share >= asked
    for name, bot in ("simple", simple), ("master", master):
        print(
            f"{name}: {bot.games.mean:.2f} ± {bot.games.standard_error:.2f} mistakes a game, "
            f"{bot.shown.mean:.2f} shown, judged in {bot.seconds.mean:.1f} s of CPU "
            f"({bot.games.count} games)"
        )
    assert simple.games.mean is not None
    assert master.games.mean is not None
    return 0 if is_good and master.games.mean < simple.games.mean else 1


if __name__ == "__main__":
    sys.exit(main())
