"""`arena habits`: charts of what bots did in a competition or a match, two bots side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._charts import show_charts
from arena.cli._found_match import FoundRecord, match_or_none
from arena.games import game_named
from arena.records.habits import Habits, habits_of
from arena.records.seat_matches import seat_match
from arena.results.seat_records import played_by, seat_matches
from arena.storage.store import CompetitionRow, Store
from protocol.errors import ArenaError, NoAnalysis, UsageError, in_words

__all__ = ["command"]


@click.command(name="habits")
@click.argument("where", metavar="MATCH|COMPETITION")
@click.argument("bot")
@click.argument("other", metavar="[BOT]", required=False)
@options.db_option("The database that has the match or the competition.")
@options.json_option
@click.pass_context
def command(
    ctx: click.Context, where: str, bot: str, other: str | None, db: str, as_json: bool
) -> None:
    """Show what a bot did in a competition, counted from its records, or two bots side by side.

    COMPETITION is an id, the beginning of one, or the name of a [[run]]. MATCH is an id, `last`, or
    a file, as for `arena replay`, and there BOT may be the number of a seat. Every game has its own
    charts, such as how often a bot bets with each card. Where the best play is known it stands
    beside it, with what every spot costs. A spot that never came up is "not seen".

    --json prints {game, competition, match, bots: [{name, matches, decisions, charts}]}, where
    `competition` or `match` is null.
    """
    is_told = ctx.get_parameter_source("db") is not click.core.ParameterSource.DEFAULT
    bots = [bot] if other is None else [bot, other]
    if (match := match_or_none(where, db, is_told=is_told)) is not None:
        game = match.rules()
        seats = [match.seat_of(name, game) for name in bots]
        bots = [match.names(game)[seat] for seat in seats]
        found = [_in_match(match, seat) for seat in seats]
        is_stored = match.document is not None or match.seen is not None
        about = {"competition": None, "match": match.name if is_stored else where}
        _show(game.name, about, bots, found, as_json=as_json)
        return
    with Store(options.database(db), create=False) as store:
        competition = store.find(where)
        counts = [played_by(store, competition.id, name) for name in bots]
        with output.ticking("counting", sum(counts)) as tick:
            found = [_counted(store, competition, name, tick) for name in bots]
    about = {"competition": competition.id, "match": None}
    _show(competition.plan.game, about, bots, found, as_json=as_json)


def _show(
    game: str,
    about: dict[str, str | None],
    bots: Sequence[str],
    found: Sequence[Habits],
    *,
    as_json: bool,
) -> None:
    if as_json:
        habits = [
            {"name": name, "matches": one.matches, "decisions": one.decisions, "charts": one.charts}
            for name, one in zip(bots, found, strict=True)
        ]
        output.print_json({"game": game, **about, "bots": habits})
        return
    for name, one in zip(bots, found, strict=True):
        decisions = output.plural(one.decisions, "decision")
        click.echo(f"{name}: {decisions} in {output.plural(one.matches, 'match')}")
    show_charts(bots, [one.charts for one in found])


def _in_match(match: FoundRecord, seat: int) -> Habits:
    if match.seen is not None and seat + 1 != match.seen.seat:
        raise UsageError(f"expected seat {match.seen.seat}, whose view it is, got {seat + 1}")
    try:
        return habits_of(match.rules(), [seat_match(match.seen or match.record, seat)])
    except NoAnalysis:
        raise
    except Exception as error:  # a file from anywhere may be wrong in any way
        why = str(error) if isinstance(error, ArenaError) else in_words(error)
        raise ArenaError(f"match {match.name} cannot be played again: {why}") from error


def _counted(
    store: Store, competition: CompetitionRow, bot: str, tick: Callable[[], None]
) -> Habits:
    matches = seat_matches(store, competition.id, bot, tick)
    return habits_of(game_named(competition.plan.game, competition.plan.package), matches)
