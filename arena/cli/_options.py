"""Arguments and options that several commands have, and how what they say is read."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from arena.competitions.config import ServeSection
from arena.engine.rules import Game
from arena.games import game_named
from arena.sandbox.bot_spec import BotSpec, read_entry
from protocol.errors import BadSettings

__all__ = [
    "bot_option",
    "database",
    "db_option",
    "fresh_seed",
    "game_argument",
    "json_option",
    "log_option",
    "matches_option",
    "seed_option",
    "set_option",
    "shown",
]

Command = TypeVar("Command", bound=Callable[..., Any])


def game_argument(command: Command) -> Command:
    """The argument GAME, a name or alias, as a `Game`; an unknown one raises `UnknownGame`, which lists them."""
    return click.argument("game", callback=_read_game)(command)


def _read_game(_ctx: click.Context, _param: click.Parameter, name: str) -> Game:
    return game_named(name)


def seed_option(command: Command) -> Command:
    """The option `--seed`."""
    text = "Draw the same cards, and the bots that can be seeded the same choices, as last time."
    return click.option("--seed", type=int, metavar="N", help=text)(command)


def json_option(command: Command) -> Command:
    """The flag `--json`."""
    text = "Print one JSON document instead of a table."
    return click.option("--json", "as_json", is_flag=True, help=text)(command)


def bot_option(command: Command) -> Command:
    """The repeatable option `--bot`, read into a tuple of `BotSpec`s, `commands`."""
    return click.option(
        "--bot",
        "commands",
        multiple=True,
        metavar="[NAME=]COMMAND",
        callback=_read_bots,
        help="Launch a bot in any language: --bot 'ann=java -cp . MyBot', or --bot 'stdio: ./mybot' for one that speaks in "
        "lines of JSON. May be repeated.",
    )(command)


def _read_bots(
    _ctx: click.Context, _param: click.Parameter, texts: Sequence[str]
) -> tuple[BotSpec, ...]:
    return tuple(map(read_entry, texts))


def log_option(command: Command) -> Command:
    """The option `--log`, a file's name or `-`."""
    return click.option(
        "--log",
        "log_file",
        type=click.Path(dir_okay=False, allow_dash=True),
        metavar="FILE",
        help="Add a line for every match to FILE; - is stderr.",
    )(command)


def db_option(help_text: str) -> Callable[[Command], Command]:
    """The option `--db`, a text for `database`."""
    return click.option(
        "--db",
        default=ServeSection().db,
        show_default=True,
        metavar="FILE|URL",
        help=f"{help_text} A URL such as postgresql+psycopg://user@host/name is a database elsewhere.",
    )


def database(db: str) -> str | Path:
    """What `--db` says: a file, or the address of a database elsewhere."""
    return db if "://" in db else Path(db)


def shown(where: str | Path) -> str:
    """A database as people are told of it, without its password."""
    if isinstance(where, Path):
        return str(where)
    from sqlalchemy import make_url

    return make_url(where).render_as_string(hide_password=True)


def set_option(command: Command) -> Command:
    """The repeatable option `--set`, read into a dict of settings."""
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="NAME=VALUE",
        callback=_read_settings,
        help="A setting of the game, as in the rulebook: --set target=100. May be repeated.",
    )(command)


def _read_settings(
    _ctx: click.Context, _param: click.Parameter, pairs: Sequence[str]
) -> dict[str, object]:
    settings: dict[str, object] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not name or not equals:
            raise BadSettings(f"expected --set NAME=VALUE, got {pair!r}")
        if name in settings:
            raise BadSettings(f"the setting {name!r} is given twice")
        settings[name] = _scalar(text)
    return settings


def _scalar(text: str) -> object:
    """A number, `true`, `false` or `null` as in JSON; anything else is the text itself."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return text


def fresh_seed(seed: int | None) -> int:
    """The seed, or one drawn now, short enough to be typed again."""
    return secrets.randbelow(10**9) if seed is None else seed


def matches_option(command: Command) -> Command:
    """The options `--games` and `--hands`, see `arena.cli._lab_runs.plan`."""
    games = (
        "Gin rummy: play N games in each match. Other games: play N matches, the seats "
        "rotating and the bots reset before each."
    )
    hands = "Ace-King-Queen and blackjack: play N hands in each match."
    number = click.IntRange(min=1)
    command = click.option("--hands", type=number, metavar="N", help=hands)(command)
    return click.option("--games", type=number, metavar="N", help=games)(command)
