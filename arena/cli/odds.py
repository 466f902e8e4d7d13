"""`arena odds`: counts how often each category of three card poker is dealt (T9).

It is that game's own command: the rulebook asks for it, and no other game has categories.
"""

from __future__ import annotations

import click

from arena.cli import _options as options
from arena.cli import _output as output
from arena.engine.rules import Game
from arena.games.three_card_poker import GAME
from arena.lab.odds import exact_counts, odds
from arena.sandbox.worker_pool import usable_cores
from arena.strength.interval import wilson
from protocol.errors import UsageError

__all__ = ["command"]


@click.command(name="odds")
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
@options.json_option
def command(game: Game, trials: int, jobs: int | None, seed: int | None, as_json: bool) -> None:
    """Deal hands and show how often each category comes, beside the exact odds.

    GAME is three_card_poker, the only game with categories.

    --json prints {game, trials, seed, dealt, exact, counts, intervals}: percentages by category,
    how many of all 22,100 hands there are, and of what was dealt {interval, level, method}.
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
    if as_json:
        document = {"game": game.name, "trials": trials, "seed": seed}
        fields = {label: output.interval_fields(each) for label, each in intervals.items()}
        document |= {"dealt": dealt, "exact": exact, "counts": counts, "intervals": fields}
        output.print_json(document)
        return
    columns = ("category", "dealt %", "exact %", f"of {hands:,}")
    table = output.new_table(*columns, words=("category",))
    for label in reversed(counts):
        came = output.with_interval(f"{dealt[label]:.3f}", intervals[label], "{:.3f}".format)
        table.add_row(label, came, f"{exact[label]:.3f}", f"{counts[label]:,}")
    output.print_table(f"{title}, {output.plural(trials, 'hand')} dealt, seed {seed}", table)
    note = output.interval_note(intervals.values(), "hand")
    click.echo(f"{note} The exact share, which is known, lies outside as rarely.")
