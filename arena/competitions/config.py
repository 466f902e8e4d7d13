"""Settings from a TOML file, read once into frozen structs.

A file has the tables `[serve]`, `[limits]`, `[bus]`, `[games.<game>]`, `[submissions]`, `[[bot]]`
and `[[run]]`, all of them optional. Their fields are those of the structs here, of `Limits`, of
`SubmissionSettings` and of the games' settings; `class.example.toml` beside this module shows them
all. Every field is checked by its exact type:
`true` and `4.0` are not 4. An error is one line that says where it is, such as `run[0].matches`,
what was expected and what came. Paths are relative to the file's own folder, so that it means the
same wherever the arena is started. Flags win over the file; that is done in `arena/cli`.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from arena.competitions.planned_run import (
    LEAST,
    LEVEL_POINTS,
    LIMITS,
    MOST,
    MOST_MATCHES,
    PAUSE_S,
    Participants,
    PlannedRun,
    check,
    check_title,
)
from arena.engine.names import spelled
from arena.formats.spec import WAIT_S, WITH_MATCHES, Form, Settling, Take, form_of
from arena.formats.timetable import once, parse
from arena.games import competition_settings, game_named
from arena.sandbox.bot_spec import BotSpec, check_name
from arena.sandbox.command import read_program
from arena.sandbox.languages import Language
from arena.server.origin import Origins, read_base_path
from arena.server.proxies import Proxies
from arena.strength.settle import Goal
from arena.submissions.settings import SubmissionSettings
from protocol.errors import ArenaError, BadSettings, UsageError, one_line
from protocol.messages import Limits
from protocol.text_files import decode_text

__all__ = ["BusSection", "Config", "ServeSection", "example", "read_config"]

_MOST_BOTS = 10_000  # that one process can have connected
_A_DAY_S = 86_400.0

_NO_WORKERS = (
    "expected it left out: the arena referees every match, and hosts run bots for it in place of "
    "workers (`arena host --help`)"
)

_NO_COMPARISONS = (
    "expected it left out: the arena compares no versions, `arena compare` does it at home"
)

_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")  # of a path of msgspec, such as `$.run[0].matches`

T = TypeVar("T")


class ServeSection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `arena serve` does; the one place where its defaults stand.

    Attributes:
        port: 0 takes a free one.
        players: how many bots of a game start its competition; None for as many as it has seats.
        matches: how often each two meet, or each bot the dealer.
        once: to stop after one competition in each game.
        practice: to refuse illegal answers, and eliminate nobody for them.
        open: to accept bots without tokens from other machines.
        page: to show browsers what is played.
        origin: other sites whose pages may open WebSockets here: the addresses of a proxy in front.
        trusted_proxy: addresses or networks of proxies in front, whose word about the client's
            address is believed; every bot needs a token then.
        base_path: the path of the page for browsers, if a proxy in front has other pages too.
        tls_cert: the file with the certificate and its chain; None for no TLS.
        log: a file that gets a line for every match, or `-` for stderr; None for none.
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


class BusSection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the bus is by which hosts run bots, as --bus, --bus-key and --bus-ca say it.

    Attributes:
        url: `tls://HOST:PORT`; None for no bus.
        key: the file with the key of arenas, `arena.nk`.
        ca: the file with the certificate by which the bus is known, `ca.pem`.
    """

    url: Annotated[str, Meta(pattern="^(tls|nats)://.")] | None = None
    key: Annotated[str, Meta(min_length=1)] | None = None
    ca: Annotated[str, Meta(min_length=1)] | None = None


class _BotSection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A bot that the arena launches."""

    command: str
    name: str | None = None
    game: str | None = None


class _RunSection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run as it stands in the file; `PlannedRun` explains its fields."""

    game: str
    name: str | None = None
    form: str | None = None
    at: Any = None
    until: Any = None
    players: list[str] | str | None = None
    take: str = Take.CONNECTED.value
    least: Annotated[int, Meta(ge=1, le=_MOST_BOTS)] | None = None
    matches: Annotated[int, Meta(ge=1, le=MOST_MATCHES)] | None = None
    settle: str | None = None
    level: Annotated[float, Meta(ge=0, lt=50)] | None = None
    most: Annotated[int, Meta(ge=1, le=MOST_MATCHES)] | None = None
    split: Annotated[int, Meta(ge=1, le=MOST_MATCHES)] = 1
    with_itself: bool | None = None
    wait_s: Annotated[float, Meta(ge=0, le=_A_DAY_S)] = WAIT_S
    pause_s: Annotated[float, Meta(ge=0, le=_A_DAY_S)] = PAUSE_S
    forgive: Annotated[int, Meta(ge=0, le=MOST_MATCHES)] = 0
    house: list[str] = []
    settings: dict[str, Any] = {}
    limits: dict[str, Any] = {}


class _LimitsTable(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits in a file, where an unknown name is a mistake; on the wire it is a newer arena's."""


class _ConfigFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tables of a file."""

    serve: Any = {}
    limits: Any = {}
    bus: Any = {}
    games: dict[str, Any] = {}
    submissions: dict[str, Any] | None = None
    bot: list[Any] = []
    run: list[Any] = []


class Config(Struct, frozen=True, kw_only=True):
    """All that a file says, and the defaults for what it does not.

    Attributes:
        games: settings by game, as with `--set`.
        submissions: None if nothing can be handed in.
        runs: in the order of the file.
        files: where it was read; launched bots must not see these files.
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
    """Read a file; `UsageError` if it cannot be read, is not TOML, or has what is not allowed."""
    try:
        config = _config(_load(path), path.resolve().parent)
        return msgspec.structs.replace(config, files=(path,))
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def example() -> str:
    """The text of a file for a whole course, for people to read and change."""
    return files("arena.competitions").joinpath("class.example.toml").read_text(encoding="utf-8")


def _load(path: Path) -> dict[str, Any]:
    try:
        text = decode_text(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}") from None
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


def _serve(table: Any, folder: Path) -> ServeSection:
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
    paths = {
        name: os.path.join(folder, getattr(serve, name))
        for name in ("db", "tls_cert", "tls_key", "log")
        if name in table and not _is_address(getattr(serve, name))
    }
    return msgspec.structs.replace(serve, **paths)


def _bus(table: Any, folder: Path) -> BusSection:
    bus = _convert(table, BusSection, "bus")
    if bus.url is None and table:
        raise UsageError("bus.url: expected it with the other fields")
    paths = {
        name: os.path.join(folder, path)
        for name in ("key", "ca")
        if (path := getattr(bus, name)) is not None
    }
    return msgspec.structs.replace(bus, **paths)


def _is_address(where: str) -> bool:
    """Whether this is the URL of a database, or `-` for stderr, and no path."""
    return "://" in where or where == "-"


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


def _bot(table: object, where: str, folder: Path) -> BotSpec:
    bot = _convert(table, _BotSection, where)
    with _field(f"{where}.command"):
        program = read_program(bot.command, folder)
    with _field(f"{where}.name"):
        name = None if bot.name is None else check_name(bot.name)
    with _field(f"{where}.game"):
        game = None if bot.game is None else game_named(bot.game).name
    return BotSpec(program, name, game)


def _runs(tables: list[object], config: Config) -> tuple[PlannedRun, ...]:
    runs: list[PlannedRun] = []
    for number, table in enumerate(tables):
        if isinstance(table, dict) and "workers" in table:
            raise UsageError(f"run[{number}].workers: {_NO_WORKERS}")
        read = _convert(table, _RunSection, f"run[{number}]")
        try:
            run = _run(read)
            check(run, config.limits, config.games)
            if run.take is not Take.CONNECTED and config.submissions is None:
                raise UsageError(f"take: expected the table [submissions] with {run.take.value!r}")
            names = [other.name for other in runs]
            if (other := spelled(run.name, names)) in names:
                again = "again" if other == run.name else f"which looks like {other!r}"
                raise UsageError(f"name: expected another for every run, got {run.name!r} {again}")
        except BadSettings as error:  # it names the game, no field of the run
            raise UsageError(f"run[{number}]: {error}") from None
        except ArenaError as error:
            raise UsageError(f"run[{number}].{error}") from None
        runs.append(run)
    return tuple(runs)


def _run(read: _RunSection) -> PlannedRun:
    with _field("game"):
        game = game_named(read.game)
    with _field("name"):
        name = game.name if read.name is None else check_title(read.name)
    with _field("at"):
        at = None if read.at is None else parse(read.at)
    with _field("until"):
        until = None if read.until is None else parse(read.until)
    form = form_of(game) if read.form is None else _form(read.form)
    if read.take not in set(Take):
        got = one_line(repr(read.take), 60)
        raise UsageError(f"take: expected one of: {', '.join(Take)}, got {got}")
    settle = _settle(read)
    match read.players:
        case None:
            who, players = Participants.CONNECTED, tuple[str, ...]()
        case "roster":
            who, players = Participants.ROSTER, ()
        case str():
            got = one_line(repr(read.players), 60)
            raise UsageError(f"players: expected a list of names or 'roster', got {got}")
        case names:
            who, players = Participants.NAMED, tuple(names)
    _convert(read.settings, game.vocabulary.settings, "settings")
    _convert(read.limits, _LimitsTable, "limits")
    for limit in read.limits:
        if limit not in LIMITS:
            raise UsageError(
                f"limits.{limit}: expected it in [limits], for the whole arena; "
                f"here some of: {', '.join(LIMITS)}"
            )
    fields = msgspec.structs.asdict(read)
    del fields["level"], fields["most"]
    if read.matches is None:
        fields["matches"] = LEAST if settle and form in WITH_MATCHES else 1
    fields["settle"] = settle
    fields |= {"name": name, "game": game.name, "form": form, "at": at, "until": until}
    fields |= {"who": who, "players": players, "house": tuple(read.house)}
    fields["take"] = Take(read.take)
    if read.least is None and who is Participants.CONNECTED:
        fields["least"] = game.seats
    if read.with_itself is None:
        is_met = form is Form.ROUND_ROBIN and settle is None
        fields["with_itself"] = is_met and game.meets_itself
    return PlannedRun(**fields)


def _settle(read: _RunSection) -> Settling | None:
    if read.settle is None:
        for name in ("level", "most"):
            if getattr(read, name) is not None:
                raise UsageError(f"{name}: only with settle")
        return None
    if read.settle not in set(Goal):
        got = one_line(repr(read.settle), 60)
        raise UsageError(f"settle: expected one of: {', '.join(Goal)}, got {got}")
    level = LEVEL_POINTS if read.level is None else read.level
    return Settling(goal=Goal(read.settle), level=level, most=read.most or MOST)


def _form(name: str) -> Form:
    try:
        return Form(name)
    except ValueError:
        got = one_line(repr(name), 60)
        raise UsageError(f"form: expected one of: {', '.join(Form)}, got {got}") from None


@contextmanager
def _field(name: str) -> Iterator[None]:
    """Put a field's name in front of the errors that are raised within."""
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
        # For a number out of range msgspec says only what was expected.
        elif text.startswith("Expected") and ", got " not in text:
            for name, index in _STEP.findall(path):
                value = value[name or int(index)]
            text += f", got {one_line(repr(value), 60)}"
        text = text[:1].lower() + text[1:].replace(" | null", "")  # TOML has no null
        where = f"{where}{path}".removeprefix(".")
        raise UsageError(one_line(f"{where}: {text}" if where else text, 400)) from None
