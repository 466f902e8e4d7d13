"""`arena cross`: every bot against every bot (A10, G16)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from arena.cli import _lab_runs as lab_runs
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._limit_options import LimitsCommand, limits_options
from arena.engine.rules import Game
from arena.lab.crosstable import AGAINST_ITSELF, CrossTable, tables
from arena.lab.in_process import derived_seed
from arena.lab.series import unit
from arena.sandbox.bot_spec import BotSpec
from protocol.errors import UsageError
from protocol.messages import Limits
from protocol.strategy import house_bots

__all__ = ["command"]

MATCHES = {"high_low": 24, "three_card_poker": 100, "blackjack": 100}
"""Matches per table where one says little: all seatings of four (K1), or enough for an error to be shown."""

_TABLES = {1: "bot", 2: "pairing", 4: "table"}

SETTINGS = {"gin_rummy": {"games": 1000}}
"""G16; a match of Ace-King-Queen is 1,000 hands anyway (A8)."""


@click.command(name="cross", cls=LimitsCommand)
@options.game_argument
@click.argument("bots", nargs=-1, metavar="[BOT]...")
@options.bot_option
@options.matches_option
@options.set_option
@options.seed_option
@options.json_option
@limits_options
def command(
    game: Game,
    bots: tuple[str, ...],
    commands: tuple[BotSpec, ...],
    games: int | None,
    hands: int | None,
    settings: dict[str, object],
    seed: int | None,
    as_json: bool,
    limits: Limits,
) -> None:
    """Let every bot of a game play against every bot.

    Each BOT is the name of a house bot or a FILE.py; without any, all house bots of the game play. In Ace-King-Queen every
    bot also meets itself, which counts for nobody. High-low is played at all tables of four different bots, or if there are fewer,
    at all that seat every one of them. Against the dealer each plays alone.

    Without options: 1,000 hands of Ace-King-Queen or 1,000 games of gin per pairing, 24 matches per table of high-low,
    100 matches against the dealer, by the settings of a competition. ± is one standard error.

    With --bot the bots are those that are named, if any, and then those of the commands. All of them play as processes, under the
    limits below and a referee, as in a competition, different pairings side by side. The cards cannot be drawn again then.

    A bot that offends is out: its pairings count for nobody, and the exit status is 1.

    --json prints {game, settings, matches, seed, unit, bots, tables}: `bots`, best first, [{name, units, won, total, total_error,
    mean, mean_error, eliminated}], `tables` [{bots, matches, units, scores, score_errors, points, won, eliminated}]; `seed` is null with --bot.
    """
    lab_runs.check(commands, seed, limits)
    names = bots or (() if commands else tuple(house_bots(game.name)))
    _check_names(game, names, len(commands))
    planned = lab_runs.plan(
        game,
        games=games,
        hands=hands,
        settings=settings,
        matches=MATCHES.get(game.name, 1),
        defaults=SETTINGS.get(game.name),
        competition=True,
    )
    seed = None if commands else options.fresh_seed(seed)
    table = _play(planned, names, commands, limits, seed)
    if as_json:
        output.print_json(_document(planned, table, seed))
    else:
        _show(planned, table, seed)
    out = [lab_runs.out(table.names[bot], why) for bot, why in table.offences.items()]
    if out:
        raise output.Eliminated("; ".join(out))


def _play(
    planned: lab_runs.SeriesPlan,
    names: tuple[str, ...],
    commands: Sequence[BotSpec],
    limits: Limits,
    seed: int | None,
) -> CrossTable:
    """In this process with a seed, as processes without."""
    game = planned.game
    count = len(names) + len(commands)
    pairings = tables(game.seats, count, itself=game.name in AGAINST_ITSELF)
    if seed is None:
        return CrossTable(*lab_runs.launched(planned, names, commands, pairings, limits))
    seeds = {each: derived_seed(seed, "table", *each) for each in pairings}
    return CrossTable(names, lab_runs.in_process(planned, names, seeds, seed))


def _check_names(game: Game, names: Sequence[str], commands: int) -> None:
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"expected each bot once, got {name!r} twice")
    fewest = 1 if game.seats == 1 or game.name in AGAINST_ITSELF else 2
    if (got := len(names) + commands) < fewest:
        expected = output.plural(fewest, "bot")
        raise UsageError(f"a cross table of {game.name} needs at least {expected}, got {got}")


def _document(planned: lab_runs.SeriesPlan, table: CrossTable, seed: int | None) -> dict[str, Any]:
    names = table.names
    return {
        "game": planned.game.name,
        "settings": msgspec.to_builtins(planned.settings),
        "matches": planned.matches,
        "seed": seed,
        "unit": unit(planned.game),
        "bots": [
            {
                "name": names[standing.bot],
                "units": standing.units,
                "won": standing.won,
                "total": standing.total,
                "total_error": standing.total_error,
                "mean": standing.mean,
                "mean_error": standing.mean_error,
                "eliminated": lab_runs.offence_document(standing.offence, names),
            }
            for standing in table.standings()
        ],
        "tables": [
            {
                "bots": [names[bot] for bot in sitting.bots],
                "matches": sitting.matches,
                "units": sitting.samples[0].count,
                "scores": sitting.scores,
                "score_errors": [sample.error_of_total for sample in sitting.samples],
                "points": sitting.points,
                "won": sitting.won,
                "eliminated": lab_runs.offence_document(sitting.offence, names),
            }
            for sitting in table.sittings
        ],
    }


def _show(planned: lab_runs.SeriesPlan, table: CrossTable, seed: int | None) -> None:
    from rich.table import Table

    standings = table.standings()
    order = [standing.bot for standing in standings]
    pairs = planned.game.seats == 2
    what = unit(planned.game)
    won = "ahead" if planned.game.seats == 1 else "won"

    title = f"{planned.title} per {_TABLES[planned.game.seats]}{lab_runs.seed_shown(seed)}"
    columns = [table.names[bot] for bot in order] if pairs else [f"{what}es", won]
    shown = Table("bot")
    for column in (*columns, "total", f"per {what}"):
        shown.add_column(column, justify="right")
    for standing in standings:
        if pairs:
            cells = [_cell(planned, table, standing.bot, other) for other in order]
        else:
            cells = [f"{standing.units:,}", f"{standing.won:,}"]
        total = output.with_error(planned.score(standing.total), standing.total_error)
        mean = output.with_error(planned.score(standing.mean, 3), standing.mean_error, 3)
        if not standing.units:
            total = "–"  # it met nobody but itself and those that are out
        if standing.offence is not None:
            total, mean = "eliminated", standing.offence.kind
        shown.add_row(table.names[standing.bot], *cells, total, mean)
    output.print_table(title, shown)


def _cell(planned: lab_runs.SeriesPlan, table: CrossTable, bot: int, other: int) -> str:
    """What `bot` scored against `other`; of its own two instances, what the first one did."""
    for sitting in table.counting():
        if sorted(sitting.bots) == sorted((bot, other)):
            place = sitting.bots.index(bot)
            score = planned.score(sitting.scores[place])
            return output.with_error(score, sitting.samples[place].error_of_total)
    return "–"
