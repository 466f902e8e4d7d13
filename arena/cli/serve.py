"""`arena serve`: an arena that bots connect to, and that launches some."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from arena.cli import Interrupted
from arena.cli import _report as report
from arena.cli import _shared as shared
from arena.cli._limits import Command, limits_options
from arena.cli._ours import Teller, launched
from arena.config import Config, Serve, read_config
from arena.director import Plan
from arena.entry import Entry, named, read_entry
from arena.games import GAMES, competition_settings, game_named
from arena.host import Host
from arena.program import views
from arena.store import Store
from protocol.errors import UsageError
from protocol.messages import Limits

__all__ = ["command"]

_DEFAULTS = Serve()
DEFAULT_PORT = _DEFAULTS.port
_GATHER_S = (
    2.0  # a class that starts together should be in the first competition together
)


def _read_config(ctx: click.Context, _param: object, path: Path | None) -> Config:
    """The file's settings become the defaults of the options, so that these win."""
    if path is None:
        return Config()
    config = read_config(path)
    serve = msgspec.structs.asdict(config.serve)
    serve["open_to_all"] = serve.pop("open")
    ctx.default_map = {**serve, **msgspec.structs.asdict(config.limits)}
    return config


def _read_bots(
    _ctx: click.Context, _param: object, texts: Sequence[str]
) -> tuple[Entry, ...]:
    return tuple(map(read_entry, texts))


@click.command(name="serve", cls=Command)
@click.argument("games", nargs=-1, metavar="[GAME]...")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    is_eager=True,
    callback=_read_config,
    help="Settings in TOML: the tables [serve], [limits], [games.GAME] and [[bot]]; options win over them.",
)
@click.option(
    "--host", default=_DEFAULTS.host, show_default=True, help="The interface."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    envvar="ARENA_PORT",
    show_default=True,
    show_envvar=True,
    help="The port; 0 takes a free one.",
)
@click.option(
    "--db",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path(_DEFAULTS.db),
    show_default=True,
    help="The database, made if it is not there.",
)
@click.option(
    "--bot",
    "bots",
    multiple=True,
    metavar="[NAME=]COMMAND",
    callback=_read_bots,
    help="Launch a bot: --bot 'ann=java -cp . MyBot', or --bot 'stdio: ./mybot' for one that speaks in lines of JSON. "
    "May be repeated.",
)
@click.option(
    "--players",
    type=click.IntRange(min=1),
    default=_DEFAULTS.players,
    metavar="N",
    help="Start a game's competition when N bots that play it are there [default: as many as it has seats].",
)
@click.option(
    "--matches",
    type=click.IntRange(min=1, max=100_000),
    default=_DEFAULTS.matches,
    show_default=True,
    help="How often each two meet, or each bot the dealer.",
)
@click.option(
    "--once/--no-once",
    default=_DEFAULTS.once,
    help="Stop after one competition in each game.",
)
@click.option(
    "--practice/--no-practice",
    default=_DEFAULTS.practice,
    help="Refuse an illegal answer with the reason and what is legal, and put nobody out for it; the clock runs on.",
)
@click.option(
    "--open/--no-open",
    "open_to_all",
    default=_DEFAULTS.open,
    help="Let anybody in who can reach this machine; without it only this machine can.",
)
@shared.set_option
@shared.json_option
@limits_options
def command(
    games: tuple[str, ...],
    config: Config,
    host: str,
    port: int,
    db: Path,
    bots: tuple[Entry, ...],
    players: int | None,
    matches: int,
    once: bool,
    practice: bool,
    open_to_all: bool,
    settings: dict[str, object],
    as_json: bool,
    limits: Limits,
) -> None:
    """Run an arena that bots connect to, for all games or for those named.

    As soon as enough bots that play a game are connected, they play its competition: a round robin in Ace-King-Queen and gin
    rummy, an elimination in high-low, a league against the dealer in three card poker and blackjack. When it is over its
    standings are printed; the next one starts when a bot has come since. Every match is in the database when it is
    over. Ctrl-C stops the arena.

    --json prints a JSON document per competition, one a line, with the fields that `arena demo --json` has.
    """
    chosen = tuple(game_named(name) for name in games) or tuple(GAMES.values())
    if settings and len(chosen) != 1:
        raise UsageError("expected one GAME with --set, as settings belong to a game")
    if not _is_loopback(host) and not open_to_all:
        raise UsageError(
            f"anybody could connect to {host}; expected --open if that is meant"
        )
    plans = [
        Plan(
            game=game,
            settings=competition_settings(
                game, {**config.games.get(game.name, {}), **settings}
            ),
            players=(),
            matches=matches,
            with_itself=game.name == "ace_king_queen",
            limits=limits,
        )
        for game in chosen
    ]
    playable = {None, *(game.name for game in chosen)}
    ours = named(entry for entry in (*config.bots, *bots) if entry.game in playable)
    for entry in ours:  # what can never work is refused before anything is made
        try:
            views(entry.program, (Path(db), *config.files))
        except UsageError as error:
            raise UsageError(f"{entry.name}: {error}") from None
    contest = _Contest(plans, ours, players, once, as_json, config.files)
    with Store(db) as store:
        try:
            asyncio.run(_serve(store, contest, host, port, limits, practice))
        except (KeyboardInterrupt, asyncio.CancelledError):
            raise Interrupted(
                f"stopped; all matches that were over are in {db}"
            ) from None


class _Contest(msgspec.Struct, frozen=True):
    """What is to be played by whom, and how it is shown."""

    plans: Sequence[Plan]
    ours: Sequence[Entry]
    players: int | None
    once: bool
    as_json: bool
    hidden: Sequence[Path]


async def _serve(
    store: Store,
    contest: _Contest,
    host: str,
    port: int,
    limits: Limits,
    practice: bool,
) -> None:
    loop, me = asyncio.get_running_loop(), asyncio.current_task()
    assert me is not None, "we run in one"
    with contextlib.suppress(NotImplementedError):  # Windows has no such handlers
        loop.add_signal_handler(signal.SIGTERM, me.cancel)
    teller = Teller()
    async with Host(
        store,
        address=host,
        port=port,
        limits=limits,
        practice=practice,
        on_verdict=teller.ruled,
        hidden=contest.hidden,
    ) as arena:
        click.echo(f"arena at {arena.url} · Ctrl-C stops it", err=True)
        async with launched(arena, contest.ours, teller):
            # Not a task group: what goes wrong in one is to be told as it is, not in a group of errors.
            await asyncio.gather(
                *(_compete(arena, plan, contest) for plan in contest.plans)
            )


async def _compete(arena: Host, plan: Plan, contest: _Contest) -> None:
    """One game's competitions, one after another."""
    game = plan.game.name
    least = contest.players or plan.game.seats
    seen: set[object] = set()
    while True:
        while (names := _newcomers(arena, game, least, seen)) is None:
            await arena.wait_for_change()
        await asyncio.sleep(_GATHER_S)
        names = arena.names(game)
        if len(names) < least:
            continue
        seen = {arena.gateway.players[name] for name in names}
        competition = arena.compete(msgspec.structs.replace(plan, players=names))
        click.echo(f"{game}: {shared.plural(len(names), 'bot')} compete", err=True)
        done = await arena.play(competition)
        if contest.as_json:
            shared.print_json(report.documents([done])[0])
        else:
            report.show(done)
        if contest.once:
            return


def _newcomers(
    arena: Host, game: str, least: int, seen: set[object]
) -> Sequence[str] | None:
    """The bots that are there, if they are enough and one of them has not competed yet."""
    names = arena.names(game)
    new = any(arena.gateway.players[name] not in seen for name in names)
    return names if new and len(names) >= least else None


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
