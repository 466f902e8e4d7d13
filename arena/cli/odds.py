"""`arena odds`: counts how often each category of three card poker is dealt (T9).

This command exists for one game: its rulebook asks for the odds, and no other has categories.
"""

from __future__ import annotations

from collections.abc import Mapping

import click
import msgspec

from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._results import Found, result_command
from arena.games.rules import Game
from arena.games.statistics import wilson
from arena.games.three_card_poker.rules import GAME
from arena.lab.odds import exact_counts, odds
from arena.sandbox.worker_pool import usable_cores
from protocol.errors import UsageError
from protocol.three_card_poker import Category

__all__ = ["command"]


class _Odds(msgspec.Struct, frozen=True):
    """What was dealt.

    Attributes:
        dealt: in percent, by category.
        exact: what the mean of all hands is, likewise.
        counts: how many of all hands there are of each category.
        intervals: what the percentages of `dealt` allow to say.
    """

    game: str
    trials: int
    seed: int
    dealt: Mapping[str, float]
    exact: Mapping[Category, float]
    counts: Mapping[Category, int]
    intervals: Mapping[str, output.ShownInterval]


@result_command("odds", prints=_Odds)
@options.game_argument
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=100_000,
    show_default=True,
    metavar="N",
    help="How many hands to deal.",
)
@options.jobs_option()
@options.seed_option
def command(game: Game, trials: int, jobs: int | None, seed: int | None) -> Found:
    """Deal hands and show how often each category comes, beside the exact odds.

    GAME is three_card_poker, the only game with categories.
    """
    if game is not GAME:
        raise UsageError(f"odds are of {GAME.name} only, got {game.name}")
    seed, title = options.fresh_seed(seed), game.vocabulary.title
    with output.progress(title, trials, "hand", seed=seed, less="--trials") as count:
        dealt = odds(trials, seed, report=count.tick, jobs=jobs or usable_cores())
    counts = exact_counts()
    hands = sum(counts.values())
    exact = {label: 100 * number / hands for label, number in counts.items()}
    intervals = {label: wilson(share / 100, trials).scaled(100) for label, share in dealt.items()}
    shown = {label: output.ShownInterval.of(each) for label, each in intervals.items()}
    found = _Odds(game.name, trials, seed, dealt, exact, counts, shown)

    def lines() -> output.Lines:
        columns = ("category", "dealt %", "exact %", f"of {hands:,}")
        table = output.new_table(*columns, words=("category",))
        for label in reversed(counts):
            came = output.with_interval(f"{dealt[label]:.3f}", intervals[label], "{:.3f}".format)
            table.add_row(label, came, f"{exact[label]:.3f}", f"{counts[label]:,}")
        heading = f"{title}, {output.plural(trials, 'hand')} dealt, seed {seed}"
        yield output.TitledTable(heading, table)
        note = output.interval_note(intervals.values(), "hand")
        yield f"{note} The exact share, which is known, lies outside as rarely."

    return found, lines()
