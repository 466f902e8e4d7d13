"""`arena serve`: runs an arena that bots connect to, and that launches bots."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
from collections.abc import Collection, Sequence
from pathlib import Path

import click
import msgspec

from arena.cli import Interrupted
from arena.cli import _competition_report as report
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._addresses import Endpoint, endpoint_options, page_at, urls_for_others
from arena.cli._bus_options import BusAddress, bus_options
from arena.cli._hosts import connected_hosts, programs_folder
from arena.cli._launched_bots import BotNotices, launched
from arena.cli._limit_options import LimitsCommand, limits_options
from arena.cli._signals import Stop
from arena.cli._submissions import cache_folder, check_safety, play_submissions, submission_service
from arena.competitions.admin import AdminCommands
from arena.competitions.competition import Competition
from arena.competitions.config import Config, ServeSection, example, read_config
from arena.competitions.ledger import CompetitionReport
from arena.competitions.live_arena import LiveArena
from arena.competitions.scheduler import OpenGame, Scheduler
from arena.engine.names import alike
from arena.engine.rules import Game
from arena.formats.spec import plan_of
from arena.games import GAMES, competition_settings, game_named
from arena.hosts.bus import secret_files
from arena.sandbox.bot_spec import BotSpec, named, some
from arena.sandbox.command import views
from arena.storage.roster import Roster
from arena.storage.store import Store
from arena.storage.tokens import Access
from arena.strength.figures import time_of
from arena.web.web import Web
from protocol.errors import ArenaError, UsageError
from protocol.messages import Limits

__all__ = ["command"]

_DEFAULTS = ServeSection()
_NEW_OBJECTS = 10_000  # between two garbage collections; the default is 700


def _read_config(ctx: click.Context, _param: object, path: Path | None) -> Config:
    """Read a file; its settings become the defaults of the options, which win over them."""
    if path is None:
        return Config()
    config = read_config(path)
    serve = msgspec.structs.asdict(config.serve)
    serve["open_to_all"] = serve.pop("open")
    serve["log_file"] = serve.pop("log")
    serve["origins"], serve["proxies"] = (serve.pop("origin"), serve.pop("trusted_proxy"))
    bus = {"bus": config.bus.url, "bus_key": config.bus.key, "bus_ca": config.bus.ca}
    ctx.default_map = {**serve, **bus, **msgspec.structs.asdict(config.limits)}
    return config


def _print_example(ctx: click.Context, _param: object, wanted: bool) -> None:
    if wanted:
        click.echo(example(), nl=False)
        ctx.exit()


@click.command(name="serve", cls=LimitsCommand)
@click.argument("games", nargs=-1, metavar="[GAME]...")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    is_eager=True,
    callback=_read_config,
    help="Settings in TOML: the tables [serve], [limits], [bus], [games.GAME], [submissions], "
    "[[bot]] and [[run]]; options win over them.",
)
@endpoint_options
@options.db_option("The database, made if it is not there.")
@options.bot_option
@click.option(
    "--players",
    type=click.IntRange(min=1),
    default=_DEFAULTS.players,
    metavar="N",
    help="Start a game's competition when N bots that play it are there "
    "[default: as many as it has seats].",
)
@click.option(
    "--matches",
    type=click.IntRange(min=1, max=100_000),
    default=_DEFAULTS.matches,
    show_default=True,
    help="How often each two meet, or each bot the dealer.",
)
@click.option(
    "--once/--no-once", default=_DEFAULTS.once, help="Stop after one competition in each game."
)
@options.log_option
@bus_options
@click.option(
    "--submissions-without-isolation",
    "without_isolation",
    is_flag=True,
    help="Take submissions though this machine cannot isolate them: every student could then read "
    "the database. Only where nobody else can connect.",
)
@click.option(
    "--print-example",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_example,
    help="Print a file for --config, for a whole course, and exit.",
)
@options.set_option
@options.json_option
@limits_options
@click.pass_obj
def command(
    stop: Stop | None,
    games: tuple[str, ...],
    config: Config,
    endpoint: Endpoint,
    db: str,
    commands: tuple[BotSpec, ...],
    players: int | None,
    matches: int,
    once: bool,
    log_file: str | None,
    bus: BusAddress | None,
    without_isolation: bool,
    settings: dict[str, object],
    as_json: bool,
    limits: Limits,
) -> None:
    """Run an arena, for all games or for those named.

    With [[run]] tables in the file of --config their competitions are played, each at its time.
    Without, or for games that are named: as soon as enough bots that play a game are connected,
    they play its competition: a league in a game for one, a round robin in one for two, an
    elimination in one for more. The next one starts when another bot has come. When a competition
    is over its standings are printed.

    With a table [submissions] students can hand bots in (`arena submit`, or on the page).

    With a --bus other machines, by `arena host`, run bots that the arena launches or that were
    handed in. The arena referees every match, and runs here what no host can run.

    Every match is in the database when it is over. Ctrl-C stops the arena, and so do SIGTERM and
    SIGHUP, with status 0; started again with the same database it goes on where it was, also after
    a power cut.

    --json prints a JSON document per competition, one a line, with the fields that `arena demo
    --json` has.
    """
    chosen = tuple(game_named(name) for name in games)
    if not chosen and not config.runs:
        chosen = tuple(GAMES.values())
    if settings and len(chosen) != 1:
        raise UsageError("expected one GAME with --set, as settings belong to a game")
    config = msgspec.structs.replace(config, limits=limits)
    where = options.database(db)
    log = () if log_file in (None, "-") else (Path(str(log_file)),)
    hidden = (*config.files, *endpoint.hidden, *log, *secret_files(bus))
    endpoint = msgspec.structs.replace(endpoint, hidden=hidden)
    endpoint.check()
    unsafe = ""
    if config.submissions is not None:
        unsafe = check_safety(limits, endpoint, without_isolation=without_isolation)
    elif without_isolation:
        raise UsageError("expected a table [submissions] in the file of --config")
    playable = {None, *(run.game for run in config.runs), *(game.name for game in chosen)}
    plan = _ServePlan(
        config,
        tuple(_open_game(game, config, settings, players, matches) for game in chosen),
        _named((*config.bots, *commands), playable, (*options.file_of(where), *hidden)),
        once,
        as_json,
        log_file,
        unsafe,
        bus,
    )
    _run(where, endpoint, plan, stop or Stop())


def _run(where: str | Path, endpoint: Endpoint, plan: _ServePlan, stop: Stop) -> None:
    """Run the arena until it ends or is stopped, and say how to go on.

    Raises `Interrupted` at Ctrl-C, and `ArenaError` if a competition could not be played, or if
    results do not reach the disk any more.
    """
    goes_on = (
        f"all matches that were over are in {options.shown(where)}, "
        "and the same command goes on from there"
    )
    failed = is_interrupted = is_stopped = False
    with Store(where, exclusive=True) as store:
        try:
            failed = asyncio.run(_serve(store, endpoint, plan, stop))
        except KeyboardInterrupt:
            is_interrupted = True
        except asyncio.CancelledError:  # by a signal: no failure
            is_stopped = True
    # Only now all is on the disk.
    if is_interrupted:
        raise Interrupted(f"stopped; {goes_on}")
    if is_stopped:
        with contextlib.suppress(OSError):  # stderr may be closed
            click.echo(f"arena: stopped by {stop.name}; {goes_on}", err=True)
    if failed:
        raise ArenaError("a competition could not be played to its end, see above")


def _named(
    bots: Sequence[BotSpec], playable: Collection[str | None], hidden: Sequence[Path]
) -> tuple[BotSpec, ...]:
    """The bots that play one of the games, each under a name of its own.

    Raises `UsageError` if two have the same name, or a command can never work on this machine.
    """
    ours = named(bot for bot in bots if bot.game in playable)
    for bot in ours:
        try:
            views(bot.program, hidden)
        except UsageError as error:
            raise UsageError(f"{bot.name}: {error}") from None
    return ours


def _open_game(
    game: Game, config: Config, settings: dict[str, object], players: int | None, matches: int
) -> OpenGame:
    plan = plan_of(
        game,
        competition_settings(game, {**config.games.get(game.name, {}), **settings}),
        (),
        matches=matches,
        with_itself=game.meets_itself,
        limits=config.limits,
    )
    return OpenGame(plan, players or game.seats)


class _ServePlan(msgspec.Struct, frozen=True):
    """What is played, by which launched bots besides those that connect, and how it is shown."""

    config: Config
    games: Sequence[OpenGame]
    bots: Sequence[BotSpec]
    once: bool
    as_json: bool
    log_file: str | None
    unsafe: str  # of submissions, where they are not isolated
    bus: BusAddress | None  # where hosts are found

    @property
    def game_names(self) -> Collection[str]:
        """The games that are played."""
        planned = (run.game for run in self.config.runs)
        return tuple(dict.fromkeys((*planned, *(game.plan.game for game in self.games))))


async def _serve(store: Store, endpoint: Endpoint, plan: _ServePlan, stop: Stop) -> bool:
    """Run the arena until it ends or is stopped; returns whether a competition has failed."""
    task = asyncio.current_task()
    assert task is not None, "a coroutine runs in a task"
    stop.cancels(task)
    roster = Roster(store.engine)
    submissions, hidden = None, endpoint.hidden
    if plan.config.submissions is not None:
        hidden = (*hidden, cache_folder(store), *(() if store.file is None else (store.file,)))
        submissions = submission_service(
            store, plan.config.submissions, plan.config.limits, plan.game_names, hidden, plan.unsafe
        )
    async with contextlib.AsyncExitStack() as stack:
        board = stack.enter_context(report.watch())
        notices = BotNotices(board)
        log = notices.noting(stack.enter_context(report.match_log(plan.log_file)))
        if plan.bus is not None:
            hidden = (*hidden, programs_folder(store))
        async with LiveArena(
            store,
            address=endpoint.host,
            port=endpoint.port,
            limits=plan.config.limits,
            practice=endpoint.practice,
            requires_token=endpoint.requires_token,
            tls=endpoint.tls,
            listener=report.CompetitionLog(log, notices.say, notices.ruled),
            is_attended=True,
            hidden=hidden,
            page=Web if endpoint.page else None,
            origins=endpoint.origins,
            proxies=endpoint.proxies,
            base_path=endpoint.base_path,
            submissions=submissions,
        ) as arena:
            # Modules stay, and so do most bots and matches: collect garbage less often.
            gc.freeze()
            gc.set_threshold(_NEW_OBJECTS)
            if arena.submissions is not None:
                play_submissions(arena, arena.submissions)
            if plan.bus is not None:
                hosts = connected_hosts(arena, plan.bus, store, endpoint.certificate)
                await stack.enter_async_context(hosts)
            _say_where(arena.url, endpoint, plan, notices)
            scheduler = Scheduler(
                arena,
                store,
                plan.config,
                on_start=lambda competition: _started(competition, board, notices),
                on_report=lambda done: _over(done, board, plan.as_json),
                tell=notices.say,
                roster=lambda: (_listed(roster), roster.teams()),
                once=plan.once,
            )
            if isinstance(arena.here.page, Web):
                arena.here.page.upcoming = lambda: scheduler.upcoming
                arena.here.page.startable = lambda: scheduler.startable
            _warn(roster.access(), endpoint, plan, notices)
            async with launched(arena, plan.bots, notices):
                # Not before: `run` would resume a competition that a command has just started.
                arena.on_instruct = AdminCommands(
                    arena, store, starter=scheduler, roster=roster, lines=notices.lines
                )
                await scheduler.run(plan.config.runs, plan.games)
            await arena.storage.written()
            return scheduler.has_failed


def _say_where(url: str, endpoint: Endpoint, plan: _ServePlan, notices: BotNotices) -> None:
    notices.say(f"arena at {url} · Ctrl-C stops it")
    if urls := urls_for_others(url):
        notices.say(f"from other machines it is at {' or '.join(urls)}")
    if endpoint.page:
        notices.say(f"the page is at {page_at(url)}")
    if plan.bus is not None:
        notices.say(f"hosts run bots over {plan.bus.url}")
    if (submissions := plan.config.submissions) is not None:
        until = "" if submissions.closes is None else f" until {time_of(submissions.closes)}"
        welcome = f"bots can be handed in{until}: `arena submit`, or on the page"
        notices.say(submissions.closed(time.time()) or welcome)


def _listed(roster: Roster) -> Sequence[str]:
    return [member.name for member in roster.members() if member.revoked_at is None]


def _warn(access: Access, endpoint: Endpoint, plan: _ServePlan, notices: BotNotices) -> None:
    """Report settings that are probably a mistake."""
    if plan.unsafe:
        notices.say(plan.unsafe)
    if plan.config.submissions is not None and not access.players:
        notices.say(
            "nobody is on the roster, so nobody can hand a bot in; "
            "`arena roster import` puts a class on it"
        )
    if plan.config.runs and not access.instructors:
        notices.say("nobody instructs here yet; `arena roster instructor` makes a token")
    if endpoint.requires_token and not access.players:
        notices.say(
            "nobody is on the roster, so nobody can connect but the bots that are launched here; "
            "`arena roster import` puts a class on it, --open lets everybody in"
        )
    listed = set(map(alike, access.names))
    if both := [str(bot.name) for bot in plan.bots if alike(str(bot.name)) in listed]:
        notices.say(
            f"on the roster, and names of bots that are launched here: {some(both)}; "
            "those of the roster cannot connect under them: give the [[bot]] another `name`"
        )


def _started(competition: Competition, board: report.Board, notices: BotNotices) -> None:
    board.follow(competition.title, competition)
    count = output.plural(len(competition.plan.players), "bot")
    verb = "competes" if len(competition.plan.players) == 1 else "compete"
    notices.say(f"{competition.title}: {count} {verb} ({competition.id})")


def _over(done: CompetitionReport, board: report.Board, as_json: bool) -> None:
    board.forget(done.competition)
    if as_json:
        output.print_json(done)
    else:
        report.show(done)
