"""What several commands share: finding bots, seeds, settings, progress, and how results are printed."""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from arena.cli import Interrupted
from arena.competitions.config import Serve
from arena.engine.rules import Game
from arena.games import competition_settings, game_named
from arena.lab.in_process import Entrant
from arena.lab.series import Offence, unit
from arena.sandbox.bot_spec import Entry, read_entry
from protocol.errors import ArenaError, BadSettings, UsageError
from protocol.strategy import Strategy, blaming, find
from protocol.vocabulary import Settings

if TYPE_CHECKING:
    from rich.table import Table

__all__ = [
    "Eliminated",
    "Plan",
    "Progress",
    "bot_option",
    "database",
    "db_option",
    "duration",
    "eliminated",
    "entrant",
    "fresh_seed",
    "game_argument",
    "json_option",
    "matches_option",
    "offence_document",
    "plan",
    "plural",
    "print_json",
    "print_table",
    "progress",
    "seed_option",
    "set_option",
    "shown",
    "signed",
    "stdout_for_results",
    "ticking",
    "with_error",
]

FEWER = "--games or --hands"

Command = TypeVar("Command", bound=Callable[..., Any])


class Eliminated(ArenaError):
    """A bot is out; the result says so too, this makes it the command's exit status."""


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
    """The repeatable option `--bot`, read into a tuple of `Entry`s, `commands`."""
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
) -> tuple[Entry, ...]:
    return tuple(map(read_entry, texts))


def db_option(help_text: str) -> Callable[[Command], Command]:
    """The option `--db`, a text for `database`."""
    return click.option(
        "--db",
        default=Serve().db,
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
    """The options `--games` and `--hands`, see `plan`."""
    games = (
        "Gin rummy: play N games in each match. Other games: play N matches, the seats "
        "rotating and the bots reset before each."
    )
    hands = "Ace-King-Queen and blackjack: play N hands in each match."
    number = click.IntRange(min=1)
    command = click.option("--hands", type=number, metavar="N", help=hands)(command)
    return click.option("--games", type=number, metavar="N", help=games)(command)


class Plan(msgspec.Struct, frozen=True):
    """What is to be played: how many matches, and by which settings."""

    game: Game
    matches: int
    settings: Settings

    @property
    def units(self) -> int:
        """How many hands, games or matches one table will play at most."""
        per_match = {"hand": "hands", "game": "games"}.get(unit(self.game))
        return self.matches * (getattr(self.settings, per_match) if per_match else 1)

    def score(self, value: float | None, digits: int = 0) -> str:
        """A score, or the mean of several, for people; games won need no sign."""
        if self.game.name != "gin_rummy" or value is None:
            return signed(value, digits)
        return f"{value:,.{digits}f}"

    @property
    def title(self) -> str:
        """The game and how much of it, for people."""
        what = unit(self.game)
        text = f"{self.game.vocabulary.title}, {plural(self.matches, 'match')}"
        return text if what == "match" else f"{text}, {plural(self.units, what)}"


def plan(
    game: Game,
    *,
    games: int | None,
    hands: int | None,
    settings: Mapping[str, object],
    matches: int = 1,
    defaults: Mapping[str, object] | None = None,
    competition: bool = False,
) -> Plan:
    """What `--games`, `--hands` and `--set` ask for together.

    Args:
        game: what is played.
        games: the option.
        hands: the option.
        settings: the options `--set`.
        matches: how many there are if `--games` does not say.
        defaults: settings that differ from the rulebook's unless an option gives them.
        competition: whether the rulebook's are those of a competition (B14, K3).

    Raises:
        UsageError: they contradict each other or do not suit the game.
        BadSettings: a setting that is unknown or out of its range.
    """
    known = game.vocabulary.settings.__struct_fields__
    chosen: dict[str, object] = {}
    if hands is not None:
        if "hands" not in known:
            raise UsageError(f"a match of {game.name} has no --hands; expected --games")
        chosen["hands"] = hands
    if games is not None and "games" in known:
        chosen["games"] = games
    elif games is not None:
        matches = games
    for name in chosen.keys() & settings.keys():
        raise UsageError(f"expected --{name} or --set {name}=…, got both")
    asked = {**(defaults or {}), **settings, **chosen}
    if competition:
        return Plan(game, matches, competition_settings(game, asked))
    return Plan(game, matches, game.vocabulary.read_settings(asked))


def entrant(
    game: Game, bot: str, arguments: Mapping[str, object] | None = None
) -> Entrant:
    """A bot by house name or file, whose class is constructed with these arguments.

    Raises:
        UnknownBot: there is none, or it cannot be loaded; also from `make` if its class cannot be constructed.
    """
    cls = find(game.name, bot)

    def make(seed: str) -> Strategy:
        with blaming(f"{bot} cannot be started"):
            strategy: Strategy = cls(**(arguments or {}))
            if callable(seeding := getattr(strategy, "seed", None)):
                seeding(seed)
        return strategy

    return Entrant(bot, make)


@contextmanager
def stdout_for_results() -> Iterator[None]:
    """While bots are loaded and play: what they print goes to stderr, so that stdout holds the result alone."""
    with redirect_stdout(sys.stderr):
        yield


class Progress:
    """How far a command has come."""

    def __init__(self, show: Callable[[int], object]) -> None:
        self.done = 0
        self._show = show
        self._next_s = 0.0

    def tick(self) -> None:
        """One more unit is done; shown at most ten times a second, as a unit may take microseconds."""
        self.done += 1
        if (now_s := time.monotonic()) >= self._next_s:
            self._next_s = now_s + 0.1
            self._show(self.done)


@contextmanager
def progress(
    what: str, total: int, unit: str, *, seed: int, less: str
) -> Iterator[Progress]:
    """A progress bar on stderr where that is a terminal.

    Args:
        what: the bar's title.
        total: how many units there are.
        unit: the name of one.
        seed: what begins the same again.
        less: the options that make it take less time.

    Raises:
        Interrupted: Ctrl-C; it says how far the command came and how to go on.
    """
    with _bar(what, total) as counted:
        try:
            yield counted
        except KeyboardInterrupt:
            raise Interrupted(
                f"interrupted after {counted.done:,} of {plural(total, unit)}; "
                f"--seed {seed} begins the same again, fewer {less} take less time"
            ) from None


@contextmanager
def ticking(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar for what may be begun again at no cost; what is given is called once per unit."""
    with _bar(what, total) as counted:
        yield counted.tick


@contextmanager
def _bar(what: str, total: int) -> Iterator[Progress]:
    """A bar on stderr where that is a terminal and there is something to wait for."""
    if not sys.stderr.isatty() or not total:
        yield Progress(lambda done: None)
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(
        console=Console(stderr=True), transient=True, redirect_stdout=False
    ) as bar:
        task = bar.add_task(what, total=total)
        yield Progress(lambda done: bar.update(task, completed=done))


def print_json(document: object) -> None:
    """The document on stdout, in one line."""
    click.echo(json.dumps(document, ensure_ascii=False))


def print_table(title: str, table: Table) -> None:
    """The table on stdout: as wide as the terminal, or as wide as it needs to be in a file or pipe."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 10_000
    console = Console(width=width, markup=False, highlight=False, emoji=False)
    console.print(title, soft_wrap=True)
    console.print(table)


def eliminated(name: str, offence: Offence) -> str:
    """Who is out and why, in a sentence."""
    return (
        f"{name} is eliminated in match {offence.match}: {offence.kind}: {offence.text}"
    )


def offence_document(
    offence: Offence | None, names: Sequence[str]
) -> dict[str, object] | None:
    """An offence for a JSON document."""
    if offence is None:
        return None
    return {
        "bot": offence.bot,
        "name": names[offence.bot],
        "kind": offence.kind,
        "text": offence.text,
        "match": offence.match,
    }


def duration(seconds: float) -> str:
    """`40 s`, `12 min`, `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def plural(count: int, noun: str) -> str:
    """`1 match`, `2 matches`, `1,000 hands`."""
    ending = "" if count == 1 else "es" if noun.endswith("ch") else "s"
    return f"{count:,} {noun}{ending}"


def signed(value: float | None, digits: int = 0) -> str:
    """`+12`, `−3`, `0`, or a dash for what is unknown."""
    if value is None:
        return "–"
    text = f"{value:+,.{digits}f}"
    return text[1:] if not any(digit in text for digit in "123456789") else text


def with_error(value: str, error: float | None, digits: int = 0) -> str:
    """`+12 ±3`, without the error if it is unknown."""
    return value if error is None else f"{value} ±{error:,.{digits}f}"
