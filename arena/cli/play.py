"""`arena play`: a match or a pairing here and now."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from arena.cli import _lab_runs as lab_runs
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._limit_options import LimitsCommand, limits_options
from arena.engine.rules import Game
from arena.lab.series import Sitting, unit
from arena.sandbox.bot_spec import BotSpec
from protocol.errors import UsageError
from protocol.messages import Limits

__all__ = ["command"]


@click.command(name="play", cls=LimitsCommand)
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
    """Play a match or a pairing here and now, and say who won.

    GAME is a game or its alias (akq, gin, tcp). Each BOT is the name of a house bot or a FILE.py with one class in it; a
    bot may play itself. Against the dealer there is one. Without options it is one match by the rulebook's settings.

    With --bot, which may stand for any BOT, the bots come in the order of the names and then of the commands, and all of them play as
    processes, under the limits below and a referee, as in a competition. The cards cannot be drawn again then.

    The first offence ends it, and the exit status is 1.

    --json prints {game, settings, matches, seed, unit, bots: [{name, won, score, points, mean, standard_error}], winners,
    eliminated}: `bots` as given, `mean` per unit, `winners` their numbers from 0, `eliminated` null or {bot, name, kind, text, match};
    `seed` is null with --bot.
    """
    if len(bots) + len(commands) != game.seats:
        expected, got = output.plural(game.seats, "bot"), len(bots) + len(commands)
        raise UsageError(f"{game.name} is played by {expected}, got {got}")
    lab_runs.check(commands, seed, limits)
    planned = lab_runs.plan(game, games=games, hands=hands, settings=settings)
    table = tuple(range(game.seats))
    if commands:
        names, [sitting] = lab_runs.launched(planned, bots, commands, [table], limits)
    else:
        seed = options.fresh_seed(seed)
        names, [sitting] = bots, lab_runs.in_process(planned, bots, {table: seed}, seed)
    if as_json:
        output.print_json(_document(planned, names, sitting, seed))
    else:
        _show(planned, names, sitting, seed)
    if sitting.offence is not None:
        name = names[sitting.offence.place]
        raise output.Eliminated(lab_runs.out(name, sitting.offence))


def _document(
    planned: lab_runs.SeriesPlan, bots: tuple[str, ...], sitting: Sitting, seed: int | None
) -> dict[str, Any]:
    return {
        "game": planned.game.name,
        "settings": msgspec.to_builtins(planned.settings),
        "matches": sitting.matches,
        "seed": seed,
        "unit": unit(planned.game),
        "bots": [
            {
                "name": name,
                "won": sitting.won[place],
                "score": sitting.scores[place],
                "points": sitting.points[place],
                "mean": sitting.samples[place].mean,
                "standard_error": sitting.samples[place].standard_error,
            }
            for place, name in enumerate(bots)
        ],
        "winners": sitting.leaders if planned.game.seats > 1 else (),
        "eliminated": lab_runs.offence_document(sitting.offence, bots),
    }


def _show(
    planned: lab_runs.SeriesPlan, bots: tuple[str, ...], sitting: Sitting, seed: int | None
) -> None:
    from rich.table import Table

    what = unit(planned.game)
    wins = "ahead" if planned.game.seats == 1 else "won"
    table = Table("bot")
    for column in (wins, "score", f"per {what}", *(["points"] * any(sitting.points))):
        table.add_column(column, justify="right")
    for place, name in enumerate(bots):
        sample = sitting.samples[place]
        points = [f"{sitting.points[place]:,}"] if any(sitting.points) else []
        table.add_row(
            name,
            f"{sitting.won[place]:,}",
            planned.score(sitting.scores[place]),
            output.with_error(planned.score(sample.mean, 3), sample.standard_error, 3),
            *points,
        )
    output.print_table(f"{planned.title}{lab_runs.seed_shown(seed)}", table)
    if planned.game.seats > 1:
        click.echo(_verdict(bots, sitting))


def _verdict(bots: tuple[str, ...], sitting: Sitting) -> str:
    """Who won, in a sentence; bots of one name are told apart by where they stand."""
    names = [
        name if bots.count(name) == 1 else f"{name} ({place + 1})"
        for place, name in enumerate(bots)
    ]
    leaders = [names[place] for place in sitting.leaders]
    if len(leaders) == 1:
        return f"{leaders[0]} wins"
    *rest, last = leaders
    together = f"{', '.join(rest)} and {last}"
    return f"{together} {'go on' if sitting.offence else 'share first place'}"
