"""Arguments and options shared by several commands, and the functions that read their values."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import click
import msgspec

from arena.cli._limit_options import struct_options
from arena.competitions.config import ServeSection
from arena.games.catalogue import game_named
from arena.sandbox.bot_spec import read_entry
from arena.server.origins import Origins, Proxies, read_base_path
from protocol.errors import BadSettings, UsageError
from protocol.strategy import house_bots

__all__ = [
    "bot_option",
    "bots_argument",
    "database",
    "db_option",
    "file_of",
    "fresh_seed",
    "game_argument",
    "instructor_option",
    "jobs_option",
    "log_option",
    "matches_option",
    "read_id",
    "seed_option",
    "serve_options",
    "set_option",
    "shown",
    "submitter_option",
    "url_option",
]

Command = TypeVar("Command", bound=Callable[..., Any])


def _read_url(_ctx: click.Context, _param: click.Parameter, url: str) -> str:
    from protocol.address import websocket_url

    return websocket_url(url)


url_option = click.option(
    "--url",
    envvar="ARENA_URL",
    default="ws://127.0.0.1:7700",
    show_default=True,
    show_envvar=True,
    callback=_read_url,
    help="The arena's address; that of its page will do.",
)
"""The option --url of commands that ask a running arena."""


submitter_option = click.option(
    "--token",
    envvar=["ARENA_TOKEN", "ARENA_INSTRUCTOR"],
    show_envvar=True,
    help="Your token of the roster, or the instructor's.",
)

instructor_option = click.option(
    "--token",
    envvar="ARENA_INSTRUCTOR",
    required=True,
    show_envvar=True,
    help="The instructor's token, as `arena roster instructor` has printed it.",
)


LINK = "arena.cli.link"
"""The key in a context's `meta` under which `read_id` stores the link it was given."""


def read_id(ctx: click.Context, _param: click.Parameter, text: str | None) -> str | None:
    """Return the id of a match or competition, given as the id or as the link to its page."""
    link = None if text is None else re.search(r"#/[cm]/([^/?#]+)", text)
    if link is None:
        return text
    ctx.meta[LINK] = text
    return unquote(link[1])


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
    """Read a number, `true`, `false` or `null` as JSON; any other text stays as it is."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return text


# GAME, a name or an alias, becomes a `Game`; an unknown one raises `UnknownGame`.
game_argument = click.argument("game", callback=lambda _ctx, _param, name: game_named(name))


def _read_bots(
    ctx: click.Context, _param: click.Parameter, names: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the named bots; a folder made by `arena new` stands for its `bot.py`."""
    house = house_bots(ctx.params["game"].name, slow=True)
    return tuple(
        name if name in house or not Path(name).is_dir() else _in_folder(name) for name in names
    )


def bot_file(name: str) -> str:
    """Return the bot's name, or the `bot.py` of a folder made by `arena new`."""
    file = Path(name, "bot.py")
    return str(file) if file.is_file() else name


def _in_folder(name: str) -> str:
    file = Path(name, "bot.py")
    if not file.is_file():
        raise UsageError(
            f"expected a folder with bot.py, as `arena new` makes it in Python, got {name}; "
            f"a program in another language plays with --bot 'NAME=COMMAND'"
        )
    return str(file)


# Each is the name of a house bot, a FILE.py, or a folder with one; it follows `game_argument`.
bots_argument = click.argument("bots", nargs=-1, metavar="[BOT]...", callback=_read_bots)

seed_option = click.option(
    "--seed",
    type=int,
    metavar="N",
    help="Draw the same cards, and the bots that can be seeded the same choices, as last time.",
)

# The command gets a tuple of `BotSpec`s, `commands`.
bot_option = click.option(
    "--bot",
    "commands",
    multiple=True,
    metavar="[NAME=]COMMAND",
    callback=lambda _ctx, _param, texts: tuple(map(read_entry, texts)),
    help="Launch a bot in any language: --bot 'ann=java -Xmx128m MyBot', "
    "or --bot 'stdio: ./mybot' if it speaks in lines of JSON. May be repeated.",
)

log_option = click.option(
    "--log",
    "log_file",
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Add a line for every match to FILE; - is stderr.",
)

# The command gets a dict of settings.
set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_read_settings,
    help="A setting of the game, as in the rulebook: --set target=100. May be repeated.",
)


def matches_option(command: Command) -> Command:
    """Add the options `--games` and `--hands`, which `arena.cli._lab_runs.plan` reads."""
    games = (
        "Play N matches, the seats rotating and the bots reset before each; with a setting "
        "`games`: play N games in each match."
    )
    hands = "With a setting `hands`: play N hands in each match."
    number = click.IntRange(min=1)
    command = click.option("--hands", type=number, metavar="N", help=hands)(command)
    return click.option("--games", type=number, metavar="N", help=games)(command)


def jobs_option(with_bot: str = "") -> Callable[[Command], Command]:
    """Make the option `--jobs`; `with_bot` is its help for use together with `--bot`, if any."""
    text = (
        "Work in up to N processes, by default one per core, at most four per core. "
        "The same seed gives the same result in any number of them"
    )
    if with_bot:
        text += f", unless a bot keeps something outside its instances. With --bot: {with_bot}"
    return click.option("--jobs", type=click.IntRange(min=1), metavar="N", help=f"{text}.")


def db_option(help_text: str) -> Callable[[Command], Command]:
    """Make the option `--db`, whose text `database` reads."""
    return click.option(
        "--db",
        default=ServeSection().db,
        show_default=True,
        metavar="FILE|URL",
        help=f"{help_text} A URL such as postgresql+psycopg://user@host/name "
        "is a database elsewhere.",
    )


_FILE = {"type": click.Path(dir_okay=False), "metavar": "FILE"}
# Attributes of the `arena serve` options beyond the types and descriptions of their fields.
_SERVE_OPTIONS: dict[str, dict[str, Any]] = {
    "host": {"show_default": True},
    "port": {"show_default": True, "envvar": "ARENA_PORT", "show_envvar": True},
    "page": {"show_default": True},
    "origin": {"metavar": "URL"},
    "trusted_proxy": {"metavar": "ADDRESS|NETWORK"},
    "base_path": {"metavar": "PATH"},
    "tls_cert": _FILE,
    "tls_key": _FILE,
    "db": {"show_default": True, "metavar": "FILE|URL"},
    "players": {"metavar": "N"},
    "matches": {"show_default": True},
    "log": {"type": click.Path(dir_okay=False, allow_dash=True), "metavar": "FILE"},
}


def _read_serve(fields: dict[str, Any]) -> ServeSection:
    for name in ("origin", "trusted_proxy"):
        fields[name] = list(fields[name])
    fields["base_path"] = read_base_path(fields["base_path"])
    section = ServeSection(**fields)
    Origins().allow(section.origin)
    Proxies().trust(section.trusted_proxy)
    return section


serve_options = struct_options(ServeSection, "section", _read_serve, _SERVE_OPTIONS)
"""Adds the fields of `ServeSection` as options; the command gets one argument, `section`."""


def database(db: str) -> str | Path:
    """Return the database that `--db` names: a file as a `Path`, or a URL as a string."""
    return db if "://" in db else Path(db)


def file_of(where: str | Path) -> tuple[Path, ...]:
    """Return the file of a database, which bots must not see; empty if the database has a URL."""
    return (where,) if isinstance(where, Path) else ()


def shown(where: str | Path) -> str:
    """Return the name of a database for messages, without its password."""
    if "://" not in str(where):
        return str(where)
    from sqlalchemy import make_url

    return make_url(str(where)).render_as_string(hide_password=True)


def fresh_seed(seed: int | None) -> int:
    """Return `seed`, or if it is None a random one that is short enough to type."""
    return secrets.randbelow(10**9) if seed is None else seed
