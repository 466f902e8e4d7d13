"""`arena habits`: charts of what bots did in a competition, two bots side by side."""

from __future__ import annotations

from collections.abc import Callable

import click

from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._charts import show_charts
from arena.games import game_named
from arena.records.habits import Habits, habits_of
from arena.results.seat_records import played_by, seat_matches
from arena.storage.store import CompetitionRow, Store

__all__ = ["command"]


@click.command(name="habits")
@click.argument("where", metavar="COMPETITION")
@click.argument("bot")
@click.argument("other", metavar="[BOT]", required=False)
@options.db_option("The database.")
@options.json_option
def command(where: str, bot: str, other: str | None, db: str, as_json: bool) -> None:
    """Show what a bot did in a competition, counted from its records, or two bots side by side.

    COMPETITION is an id, the beginning of one, or the name of a [[run]]. Every game has its own
    charts, such as how often a bot bets with each card. Where the best play is known it stands
    beside it, with what every spot costs. A spot that never came up is "not seen".

    --json prints {game, competition, bots: [{name, matches, decisions, charts}]}.
    """
    with Store(options.database(db), create=False) as store:
        competition = store.find(where)
        bots = [bot] if other is None else [bot, other]
        counts = [played_by(store, competition.id, name) for name in bots]
        with output.ticking("counting", sum(counts)) as tick:
            found = [_counted(store, competition, name, tick) for name in bots]
    plan = competition.plan
    if as_json:
        habits = [
            {"name": name, "matches": one.matches, "decisions": one.decisions, "charts": one.charts}
            for name, one in zip(bots, found, strict=True)
        ]
        output.print_json({"game": plan.game, "competition": competition.id, "bots": habits})
        return
    for name, one in zip(bots, found, strict=True):
        decisions = output.plural(one.decisions, "decision")
        click.echo(f"{name}: {decisions} in {output.plural(one.matches, 'match')}")
    show_charts(bots, [one.charts for one in found])


def _counted(
    store: Store, competition: CompetitionRow, bot: str, tick: Callable[[], None]
) -> Habits:
    matches = seat_matches(store, competition.id, bot, tick)
    return habits_of(game_named(competition.plan.game, competition.plan.package), matches)
