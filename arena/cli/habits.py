"""`arena habits`: shows charts of what one or two bots did in a competition or a match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._results import Found, result_command
from arena.games.analysis import Chart
from arena.games.statistics import plural
from arena.records.habits import Habits, habits_of
from protocol.errors import UsageError

if TYPE_CHECKING:
    from arena.cli._found_match import FoundRecord

__all__ = ["command"]


class _BotHabits(msgspec.Struct, frozen=True):
    name: str
    matches: int
    decisions: int
    charts: tuple[Chart, ...]


class _Shown(msgspec.Struct, frozen=True):
    game: str
    competition: str | None
    match: str | None
    bots: Sequence[_BotHabits]


@result_command("habits", prints=_Shown)
@click.argument("where", metavar="MATCH|COMPETITION", callback=options.read_id)
@click.argument("bot")
@click.argument("other", metavar="[BOT]", required=False)
@options.db_option("The database that has the match or the competition.")
def command(where: str, bot: str, other: str | None, db: str) -> Found:
    """Show what a bot did in a competition, counted from its records, or two bots side by side.

    COMPETITION is an id, the beginning of one, or the name of a [[run]]. MATCH is an id, `last`, or
    a file, as for `arena replay`, and there BOT may be the number of a seat. Every game has its own
    charts, such as how often a bot bets with each card. Where the best play is known it stands
    beside it, with what every spot costs. A spot that never came up is "not seen".
    """
    from arena.cli._found_match import match_or_none
    from arena.results.seat_records import played_by, seat_matches
    from arena.storage.store import Store

    names = [bot] if other is None else [bot, other]
    if (match := match_or_none(where, db)) is not None:
        game = match.rules()
        seats = [match.seat_of(name, game) for name in names]
        bots = [_bot(match.names(game)[seat], _in_match(match, seat)) for seat in seats]
        is_stored = match.document is not None or match.seen is not None
        shown = _Shown(game.name, None, match.name if is_stored else where, bots)
        return shown, _lines(bots)
    with Store(db, create=False) as store:
        competition = store.find(where)
        counts = [played_by(store, competition.id, name) for name in names]
        game = competition.plan.rules
        with output.ticking("counting", sum(counts)) as tick:
            played = [seat_matches(store, competition.id, name, tick) for name in names]
            bots = [
                _bot(name, habits_of(game, each)) for name, each in zip(names, played, strict=True)
            ]
    return _Shown(competition.plan.game, competition.id, None, bots), _lines(bots)


def _bot(name: str, habits: Habits) -> _BotHabits:
    return _BotHabits(name, habits.matches, habits.decisions, habits.charts)


def _lines(bots: Sequence[_BotHabits]) -> output.Lines:
    from arena.cli._charts import lines_of_charts

    for bot in bots:
        yield f"{bot.name}: {plural(bot.decisions, 'decision')} in {plural(bot.matches, 'match')}"
    yield from lines_of_charts([bot.name for bot in bots], [bot.charts for bot in bots])


def _in_match(match: FoundRecord, seat: int) -> Habits:
    from arena.games.replay import playing_again
    from arena.records.seat_document import seat_match

    if match.seen is not None and seat + 1 != match.seen.seat:
        raise UsageError(f"expected seat {match.seen.seat}, whose view it is, got {seat + 1}")
    with playing_again(f"match {match.name}"):
        return habits_of(match.rules(), [seat_match(match.seen or match.record, seat)])
