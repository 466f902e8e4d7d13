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
from statistics import fmean
from typing import Any

import msgspec

import arena
from arena.engine.statistics import Sample
from arena.records.mistakes import MatchMistakes, mistakes_of
from arena.records.seat_matches import numbered_seat_match
from arena.strength.interval import wilson
from protocol.strategy import Appraisal, find

__all__ = ["JudgedGame", "Measured", "judged_games", "main", "measured", "report"]

SEED = 3_000_000  # the first; no weights were found with these games
OPPONENTS = ("simple", "patient", "expert")
SAMPLES = 2000
ASKED = ((0.0, 0.9), (0.5, 0.75))  # more than so many percent of the game, at least so often


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
        return sum(cost > least for cost in self.again) / max(len(self.again), 1)


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
    return JudgedGame(sum(each.count for each in found.totals), len(found.mistakes), again, seconds)


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
            appraisal = other = appraiser.appraise(question, answer, samples=samples)
            if best not in appraisal.answers:  # it likes another good one better
                other = appraiser.appraise(question, best, samples=samples)
            costs.append(100 * (_worth(other, best) - _worth(appraisal, answer)))
        appraiser.recall(decision.question, decision.answer)
    return tuple(costs)


def _worth(appraisal: Appraisal, answer: Any) -> float:
    return fmean(appraisal.worths[appraisal.answers.index(answer)])


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
        judging = partial(judged_games, "simple", samples=options.samples)
        simple = Measured()
        for game in pool.map(judging, range(max(options.games, options.mistakes))):
            simple.add(game)
            print(f"{simple.games.count} games, {_shares(simple)}", file=sys.stderr)
            if len(simple.again) >= options.mistakes and simple.games.count >= options.games:
                pool.shutdown(cancel_futures=True)
                break
    with ProcessPoolExecutor(options.jobs) as pool:
        master = measured(
            pool.map(partial(judged_games, "master", samples=0), range(options.games))
        )
    return report(simple, master)


def _shares(bot: Measured) -> str:
    """How many of its mistakes cost more, looked at again."""
    count = len(bot.again)
    parts = []
    for least, _ in ASKED:
        share = bot.share_above(least)
        low, high = wilson(share, max(count, 1)).bounds
        parts.append(f"{100 * share:.1f} % [{100 * low:.1f}, {100 * high:.1f}] above {least:g} %")
    return f"{count} mistakes: {', '.join(parts)}"


def report(simple: Measured, master: Measured) -> int:
    """Print what was measured; 1 if something is not as asked for, else 0."""
    print(f"simple, looked at again: {_shares(simple)}")
    for name, bot in ("simple", simple), ("master", master):
        print(
            f"{name}: {bot.games.mean:.2f} ± {bot.games.standard_error:.2f} mistakes a game, "
            f"{bot.shown.mean:.2f} shown, judged in {bot.seconds.mean:.1f} s of CPU "
            f"({bot.games.count} games)"
        )
    assert simple.games.mean is not None
    assert master.games.mean is not None
    is_good = all(simple.share_above(least) >= asked for least, asked in ASKED)
    return 0 if is_good and master.games.mean < simple.games.mean else 1


if __name__ == "__main__":
    sys.exit(main())
