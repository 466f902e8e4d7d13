"""Settings from a TOML file, read once into frozen structs.

A file has the tables `[serve]`, `[limits]`, `[bus]`, `[games.<game>]`, `[submissions]`, `[[bot]]`
and `[[run]]`, all of them optional. Their fields are those of the structs here, of `Limits`,
`SubmissionSettings`, `PlannedRun` and the games' settings; `class.example.toml` beside this module
shows them all. Every field is checked by its exact type: `true` and `4.0` are not 4. An error is a
line with the place, such as `run[0].matches`, and what was expected and got. Paths are relative to
the file's own folder, so that it means the same wherever the arena is started. Flags override the
file, in `arena/cli`.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from arena.competitions.planned_run import LEAST, MOST_MATCHES, PlannedRun, check
from arena.formats.spec import WITH_MATCHES, Form, Take, form_of
from arena.formats.timetable import once, parse
from arena.games.catalogue import competition_settings, game_named
from arena.games.names import spelled
from arena.games.settle import Goal
from arena.sandbox.bot_spec import BotSpec, check_name
from arena.sandbox.command import read_program
from arena.sandbox.languages import Language
from arena.server.origins import Origins, Proxies, is_loopback, read_base_path
from arena.submissions.settings import SubmissionSettings
from protocol.errors import ArenaError, BadSettings, UsageError, one_line
from protocol.messages import Limits
from protocol.text_files import decode_text

__all__ = ["BusSection", "Config", "ServeSection", "example", "read_config"]

_NO_WORKERS = (
    "expected it left out: the arena referees every match, and hosts run bots for it in place of "
    "workers (`arena host --help`)"
)

_NO_COMPARISONS = (
    "expected it left out: the arena compares no versions, `arena compare` does it at home"
)

_ENTRY = re.compile(r"(run|bot)\[(\d+)\](?:\.(\w+))?")  # the place of a mistake: `run[0].game`
_WITHIN = re.compile(r"(?:serve|limits|bus|submissions|games|run|bot)(?:\.\w+)*(?=[:\s])")
_UNKNOWN = re.compile(r"unknown field `(\w+)`")
_ONE_BRACKET = re.compile(r"(run|bot): expected `array`, got `object`")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")  # in a path of msgspec, such as `$.run[0].matches`

T = TypeVar("T")


class ServeSection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of `arena serve`, with their defaults and the texts of its help.

    Attributes:
        host: the interface.
        port: the port; 0 takes a free one.
        db: the database, made if it is not there. A URL such as postgresql+psycopg://user@host/name
            is a database elsewhere.
        players: start a game's competition when N bots that play it are there [default: as many as
            it has seats].
        matches: how often each two meet, or each bot the dealer.
        once: stop after one competition in each game.
        practice: refuse an illegal answer with the reason and what is legal, and put nobody out for
            it; the clock runs on.
        open: let anybody in who can reach this machine; without it everybody from elsewhere needs a
            token.
        page: show browsers at the arena's address what is played, and let people play.
        origin: where browsers find the arena if a proxy is in front of it, as
            https://arena.example.org. May be repeated.
        trusted_proxy: a proxy in front of the arena, whose X-Forwarded-For says who connects;
            everybody needs a token then. May be repeated.
        base_path: below which path browsers find the arena, as /arena/, if a proxy in front has
            other pages too and passes it on unchanged.
        tls_cert: speak wss:// with this certificate, and those that vouch for it.
        tls_key: the key of that certificate.
        log: add a line for every match to FILE; - is stderr.
    """

    host: Annotated[str, Meta(min_length=1)] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 7700
    db: Annotated[str, Meta(min_length=1)] = "arena.db"
    players: Annotated[int, Meta(ge=1)] | None = None
    matches: Annotated[int, Meta(ge=1, le=MOST_MATCHES)] = 1
    once: bool = False
    practice: bool = False
    open: bool = False
    page: bool = True
    origin: list[str] = []
    trusted_proxy: list[str] = []
    base_path: str = "/"
    tls_cert: Annotated[str, Meta(min_length=1)] | None = None
    tls_key: Annotated[str, Meta(min_length=1)] | None = None
    log: Annotated[str, Meta(min_length=1)] | None = None

    @property
    def is_near(self) -> bool:
        """Whether the arena listens on loopback, so that only this machine can connect."""
        return is_loopback(self.host)

    @property
    def requires_token(self) -> bool:
        """Whether clients need a token: not if it is open, nor if all are on this machine."""
        return not (self.open or (self.is_near and not self.trusted_proxy))


class BusSection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The address of the bus on which hosts run bots, as in --bus, --bus-key and --bus-ca.

    Attributes:
        url: `tls://HOST:PORT`; None for no bus.
        key: the file with the key of arenas, `arena.nk`.
        ca: the file with the certificate by which the bus is known, `ca.pem`.
    """

    url: Annotated[str, Meta(pattern="^(tls|nats)://.")] | None = None
    key: Annotated[str, Meta(min_length=1)] | None = None
    ca: Annotated[str, Meta(min_length=1)] | None = None


class _BotSection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    command: str
    name: str | None = None
    game: str | None = None


class _LimitsTable(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits in a file, where an unknown name is a mistake; the wire allows it."""


class _ConfigFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    serve: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    bus: dict[str, Any] = {}
    games: dict[str, Any] = {}
    submissions: dict[str, Any] | None = None
    bot: list[dict[str, Any]] = []
    run: list[dict[str, Any]] = []


class Config(Struct, frozen=True, kw_only=True):
    """The contents of a file, with defaults for what it leaves out.

    Attributes:
        games: settings by game, as with `--set`.
        submissions: None if nothing can be submitted.
        runs: in the order of the file.
        files: the files that were read; launched bots must not see them.
    """

    serve: ServeSection = ServeSection()
    limits: Limits = Limits()
    bus: BusSection = BusSection()
    games: Mapping[str, Mapping[str, object]] = {}
    submissions: SubmissionSettings | None = None
    bots: tuple[BotSpec, ...] = ()
    runs: tuple[PlannedRun, ...] = ()
    files: tuple[Path, ...] = ()


def read_config(path: Path) -> Config:
    """Read a file; `UsageError` if it cannot be read, is not TOML, or has an invalid value."""
    text = ""
    try:
        text = _text(path)
        config = _config(_parsed(text), path.resolve().parent)
        return msgspec.structs.replace(config, files=(path,))
    except UsageError as error:
        mistake = _ONE_BRACKET.sub(r"\1: write [[\1]], with two brackets", str(error))
        raise UsageError(f"{path}{_place(text, str(error))}: {mistake}") from None


def example() -> str:
    """Return the text of a file for a whole course, for people to read and change."""
    return files("arena.competitions").joinpath("class.example.toml").read_text(encoding="utf-8")


def _place(text: str, mistake: str) -> str:
    """Locate a mistake in a table, as `, line 12, run 'friday'`; empty if it is in no known table.

    `tomllib` gives no lines, so this searches for the line of the field, or else of the table.
    """
    lines = text.splitlines()
    if entry := _ENTRY.match(mistake):
        table, number, field = entry.groups()
        own = _lines_of(lines, rf"\[\[\s*{table}\s*\]\]", table, int(number))
    elif within := _WITHIN.match(mistake):
        unknown = _UNKNOWN.search(mistake)
        parts = within[0].split(".") + ([unknown[1]] if unknown else [])
        field = parts.pop() if len(parts) > 1 else ""
        table = r"\s*\.\s*".join(parts)
        own = _lines_of(lines, rf"\[{{1,2}}\s*{table}\s*\]{{1,2}}", table, 0)
    else:
        return ""
    if not own:  # the tables are in an array, or the file spells them differently
        return ""
    here = rf"\s*({field}\s*[=.]|\[\s*{table}\.{field}\b)"
    line = next((at for at in own if field and re.match(here, lines[at])), own[0])
    if not entry:
        return f", line {line + 1:,}"
    names = (re.match(r"\s*name\s*=\s*[\"'](.*?)[\"']\s*(#.*)?$", lines[at]) for at in own)
    name = next((one_line(repr(each[1]), 80) for each in names if each), "")
    return f", line {line + 1:,}" + (f", {table} {name}" if name else "")


def _lines_of(lines: Sequence[str], head: str, table: str, number: int) -> range:
    """Return the lines of the table with this head and number among several; may be empty."""
    heads = [at for at, line in enumerate(lines) if re.match(rf"\s*{head}", line)]
    if number >= len(heads):
        return range(0)
    first = heads[number]
    other = rf"\s*\[(?!\s*{table}\.)[\w\s.\[\]\"']+\]\s*(#.*)?$"
    ends = (at for at in range(first + 1, len(lines)) if re.match(other, lines[at]))
    return range(first, next(ends, len(lines)))


def _text(path: Path) -> str:
    try:
        return decode_text(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}") from None


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise UsageError("expected TOML, got values nested too deeply") from None
    except ValueError as error:  # not TOML, or a number of too many digits
        text = one_line(str(error))
        raise UsageError(f"expected TOML: {text[:1].lower()}{text[1:]}") from None


def _config(document: Mapping[str, Any], folder: Path) -> Config:
    read = _convert(document, _ConfigFile)
    limits = _convert(read.limits, _LimitsTable, "limits")
    config = Config(
        serve=_serve(read.serve, folder),
        limits=Limits(**msgspec.structs.asdict(limits)),
        bus=_bus(read.bus, folder),
        games=_games(read.games),
        submissions=None if read.submissions is None else _submissions(read.submissions),
        bots=tuple(_bot(bot, f"bot[{n}]", folder) for n, bot in enumerate(read.bot)),
    )
    return msgspec.structs.replace(config, runs=_runs(read.run, config))


def _serve(table: Mapping[str, Any], folder: Path) -> ServeSection:
    serve = _convert(table, ServeSection, "serve")
    if (serve.tls_cert is None) != (serve.tls_key is None):
        missing = "tls_key" if serve.tls_key is None else "tls_cert"
        raise UsageError(f"serve.{missing}: expected it beside its other half")
    with _field("serve.origin"):
        Origins().allow(serve.origin)
    with _field("serve.trusted_proxy"):
        Proxies().trust(serve.trusted_proxy)
    with _field("serve.base_path"):
        read_base_path(serve.base_path)
    files = _files(table, folder, "db", "tls_cert", "tls_key", "log")
    return msgspec.structs.replace(serve, **files)


def _bus(table: Mapping[str, Any], folder: Path) -> BusSection:
    bus = _convert(table, BusSection, "bus")
    if bus.url is None and table:
        raise UsageError("bus.url: expected it with the other fields")
    return msgspec.structs.replace(bus, **_files(table, folder, "key", "ca"))


def _files(table: Mapping[str, Any], folder: Path, *names: str) -> dict[str, str]:
    """Return the paths in a table, resolved from the file's folder.

    The URL of a database, and `-` for stderr, are not paths.
    """
    given = {name: table[name] for name in names if name in table}
    return {
        name: os.path.join(folder, path)
        for name, path in given.items()
        if "://" not in path and path != "-"
    }


def _games(tables: Mapping[str, Any]) -> dict[str, Mapping[str, object]]:
    games: dict[str, Mapping[str, object]] = {}
    for name, table in tables.items():
        where = f"games.{name}"
        with _field(where):
            game = game_named(name)
        _convert(table, game.vocabulary.settings, where)
        with _field(where):
            competition_settings(game, table)
            if game.name in games:
                raise UsageError(f"the settings of {game.name} are given twice")
        games[game.name] = table
    return games


def _submissions(table: Mapping[str, Any]) -> SubmissionSettings:
    if "comparisons" in table:
        raise UsageError(f"submissions.comparisons: {_NO_COMPARISONS}")
    moments = {}
    for name in ("opens", "closes"):
        if name in table:
            with _field(f"submissions.{name}"):
                moments[name] = once(table[name]).timestamp()
    settings = _convert({**table, **moments}, SubmissionSettings, "submissions")
    for language in settings.languages:
        if language not in set(Language):
            got = one_line(repr(language), 60)
            raise UsageError(
                f"submissions.languages: expected some of: {', '.join(Language)}, got {got}"
            )
    opens, closes = settings.opens, settings.closes
    if opens is not None and closes is not None and opens >= closes:
        raise UsageError("submissions.closes: expected it later than opens")
    return settings


def _bot(table: Mapping[str, Any], where: str, folder: Path) -> BotSpec:
    bot = _convert(table, _BotSection, where)
    with _field(f"{where}.command"):
        program = read_program(bot.command, folder)
    with _field(f"{where}.name"):
        name = None if bot.name is None else check_name(bot.name)
    with _field(f"{where}.game"):
        game = None if bot.game is None else game_named(bot.game).name
    return BotSpec(program, name, game)


def _runs(tables: list[dict[str, Any]], config: Config) -> tuple[PlannedRun, ...]:
    runs: list[PlannedRun] = []
    for number, table in enumerate(tables):
        where = f"run[{number}]"
        run = _run(table, where)
        try:
            check(run, config.limits, config.games)
            if run.take is not Take.CONNECTED and config.submissions is None:
                raise UsageError(f"take: expected the table [submissions] with {run.take.value!r}")
            names = [other.name for other in runs]
            if (other := spelled(run.name, names)) in names:
                again = "again" if other == run.name else f"which looks like {other!r}"
                raise UsageError(f"name: expected another for every run, got {run.name!r} {again}")
        except BadSettings as error:  # it names the game, not a field of the run
            raise UsageError(f"{where}: {error}") from None
        except ArenaError as error:
            raise UsageError(f"{where}.{error}") from None
        runs.append(run)
    return tuple(runs)


def _run(table: Mapping[str, Any], where: str) -> PlannedRun:
    """Read a run; the game gives the defaults for fields that the table leaves out."""
    if "workers" in table:
        raise UsageError(f"{where}.workers: {_NO_WORKERS}")
    for name, kind in (("form", Form), ("take", Take), ("settle", Goal)):
        word = table.get(name)
        if isinstance(word, str) and word not in set(kind):
            got = one_line(repr(word), 60)
            raise UsageError(f"{where}.{name}: expected one of: {', '.join(kind)}, got {got}")
    read = dict(table)
    for name in ("at", "until"):
        if name in table:
            with _field(f"{where}.{name}"):
                read[name] = parse(table[name])
    if isinstance(named := table.get("game"), str):
        with _field(f"{where}.game"):
            game = game_named(named)
        form, settles = table.get("form", form_of(game)), "settle" in table
        usual = {
            "name": game.name,
            "form": form,
            "least": None if "players" in table else game.seats,
            "matches": LEAST if settles and form in WITH_MATCHES else 1,
            "with_itself": form == Form.ROUND_ROBIN and not settles and game.meets_itself,
        }
        read = {**usual, **read, "game": game.name}
    run = _convert(read, PlannedRun, where)
    for name in ("level", "most"):
        if name in table and run.settle is None:
            raise UsageError(f"{where}.{name}: only with settle")
    _convert(run.settings, run.rules.vocabulary.settings, f"{where}.settings")
    _convert(run.limits, _LimitsTable, f"{where}.limits")
    return run


@contextmanager
def _field(name: str) -> Iterator[None]:
    """Put a field's name in front of the errors that are raised inside."""
    try:
        yield
    except ArenaError as error:
        raise UsageError(f"{name}: {error}") from None


def _convert(value: Any, kind: type[T], where: str = "") -> T:
    """Convert a value of the file to a type; `where` is its path in the file. A `UsageError` has
    msgspec's message, with the path in front and the value at the end.
    """
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, OverflowError) as error:
        text, _, path = str(error).partition(" - at `$")
        path = path.removesuffix("`")
        if "unknown field" in text and not path:
            fields = ", ".join(getattr(kind, "__struct_fields__", ()))
            text += f"; expected some of: {fields}"
        # For a number out of range, msgspec says only what it expected.
        elif text.startswith("Expected") and ", got " not in text:
            for name, index in _STEP.findall(path):
                value = value[name or int(index)]
            text += f", got {one_line(repr(value), 60)}"
        text = text[:1].lower() + text[1:].replace(" | null", "")  # TOML has no null
        where = f"{where}{path}".removeprefix(".")
        raise UsageError(one_line(f"{where}: {text}" if where else text, 400)) from None
