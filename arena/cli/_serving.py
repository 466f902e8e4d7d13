"""Runs `arena serve`: the arena, its submissions, and the hosts that run its bots."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import ipaddress
import os
import socket
import ssl
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import click
import msgspec

from arena.cli import Interrupted
from arena.cli import _competition_report as report
from arena.cli import _options as options
from arena.cli._bus_options import BusAddress, needs_nats
from arena.cli._launched_bots import BotNotices, launched
from arena.cli._results import print_found
from arena.cli._signals import Stop
from arena.competitions.admin import AdminCommands
from arena.competitions.competition import Competition
from arena.competitions.config import Config, ServeSection
from arena.competitions.live_arena import LiveArena
from arena.competitions.process_pool import Launch, ProcessPool, SeatBot
from arena.competitions.scheduler import OpenGame, Scheduler
from arena.games.catalogue import game_named
from arena.games.names import alike
from arena.games.statistics import plural, time_of
from arena.referee.compute_gate import ComputeGate
from arena.sandbox.bot_spec import BotSpec, some
from arena.sandbox.doctor import caveats, fitting_bots, unsafe_because
from arena.sandbox.languages import LANGUAGES, Language
from arena.sandbox.worker_pool import usable_cores
from arena.server.listener import Certificate
from arena.storage.arena_contact import contact_file
from arena.storage.models import CompetitionReport
from arena.storage.roster import Roster
from arena.storage.store import Store
from arena.storage.tokens import Access
from arena.submissions.service import SubmissionService
from arena.submissions.settings import SubmissionSettings
from arena.web.web import Web
from protocol.errors import ArenaError, Unreachable, UsageError
from protocol.messages import Limits
from protocol.submitting import StarterFiles

__all__ = ["ServePlan", "cache_folder", "certificate_of", "check_safety", "run", "serve"]

_NEW_OBJECTS = 10_000  # between two garbage collections; the default is 700
_STARTER_NAME = "bot"
_OPTION = "--submissions-without-isolation"

# Documentation addresses of RFC 5737 and RFC 3849: they belong to no machine, so packets to them
# take the default route.
_ANYWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
_DISCARD = 9  # the port of the discard service; nothing is sent to it


class ServePlan(msgspec.Struct, frozen=True):
    """What `arena serve` plays, which bots it launches, and how it reports.

    Attributes:
        hidden: files that no bot may see, such as the key.
        unsafe: what every student could read if submissions are not isolated; else empty.
        bus: where hosts are found.
    """

    config: Config
    games: Sequence[OpenGame]
    bots: Sequence[BotSpec]
    hidden: Sequence[Path]
    unsafe: str
    bus: BusAddress | None
    tls: Callable[[], ssl.SSLContext] | None

    @property
    def game_names(self) -> Collection[str]:
        """The names of the games that are played."""
        planned = (run.game for run in self.config.runs)
        return tuple(dict.fromkeys((*planned, *(game.plan.game for game in self.games))))


def run(plan: ServePlan, stop: Stop) -> None:
    """Run the arena until it ends or is stopped, and tell the user how to resume.

    Raises `Interrupted` at Ctrl-C, and `ArenaError` if a competition could not be played or results
    can no longer be written to the disk.
    """
    goes_on = (
        f"all matches that were over are in {options.shown(plan.config.serve.db)}, "
        "and the same command goes on from there"
    )
    failed = is_interrupted = is_stopped = False
    with Store(plan.config.serve.db, exclusive=True) as store:
        try:
            failed = asyncio.run(serve(store, plan, stop))
        except KeyboardInterrupt:
            is_interrupted = True
        except asyncio.CancelledError:  # a signal stopped the arena, which is no failure
            is_stopped = True
    # Only now are all results on the disk.
    if is_interrupted:
        raise Interrupted(f"stopped; {goes_on}")
    if is_stopped:
        with contextlib.suppress(OSError):  # stderr may be closed
            click.echo(f"arena: stopped by {stop.name}; {goes_on}", err=True)
    if failed:
        raise ArenaError("a competition could not be played to its end, see above")


async def serve(store: Store, plan: ServePlan, stop: Stop) -> bool:
    """Run the arena until it ends or is stopped; return whether a competition has failed."""
    task = asyncio.current_task()
    assert task is not None, "a coroutine runs in a task"
    stop.cancels(task)
    roster, section = Roster(store.engine), plan.config.serve
    submissions, hidden = None, plan.hidden
    if plan.config.submissions is not None:
        contact = contact_file(store.engine)
        hidden = (*hidden, cache_folder(store), *filter(None, (store.file, contact)))
        submissions = _submission_service(
            store, plan.config.submissions, plan.config.limits, plan.game_names, hidden, plan.unsafe
        )
    async with contextlib.AsyncExitStack() as stack:
        board = stack.enter_context(report.watch())
        notices = BotNotices(board, stack.enter_context(report.match_log(section.log)))
        if plan.bus is not None:
            hidden = (*hidden, _programs_folder(store))
        async with LiveArena(
            store,
            address=section.host,
            port=section.port,
            limits=plan.config.limits,
            practice=section.practice,
            requires_token=section.requires_token,
            tls=plan.tls,
            listener=notices,
            is_attended=True,
            hidden=hidden,
            page=Web if section.page else None,
            origins=section.origin,
            proxies=section.trusted_proxy,
            base_path=section.base_path,
            submissions=submissions,
        ) as arena:
            # Modules and most bots and matches live on, so collect garbage less often.
            gc.freeze()
            gc.set_threshold(_NEW_OBJECTS)
            if arena.submissions is not None:
                _play_submissions(arena, arena.submissions)
            if plan.bus is not None:
                hosts = _connected_hosts(arena, plan.bus, store, section.tls_cert)
                await stack.enter_async_context(hosts)
            _say_where(arena.url, plan, notices)
            scheduler = Scheduler(
                arena,
                store,
                plan.config,
                on_start=lambda competition: _started(competition, board, notices),
                on_report=lambda done: _over(done, board),
                tell=notices.told,
                roster=lambda: (
                    [each.name for each in roster.members() if each.revoked_at is None],
                    roster.teams(),
                ),
                once=section.once,
            )
            arena.planned_games = lambda: scheduler.planned_games
            if isinstance(arena.here.page, Web):
                arena.here.page.upcoming = lambda: scheduler.upcoming
                arena.here.page.startable = lambda: scheduler.startable
            _warn(roster.access(), plan, notices)
            async with launched(arena, plan.bots, notices):
                # Not earlier: `run` would resume a competition that a command has just started.
                arena.on_instruct = AdminCommands(
                    arena, store, starter=scheduler, roster=roster, lines=notices.lines
                )
                await scheduler.run(plan.config.runs, plan.games)
            await arena.storage.written()
            return scheduler.has_failed


def _say_where(url: str, plan: ServePlan, notices: BotNotices) -> None:
    notices.told(f"arena at {url} · Ctrl-C stops it")
    if urls := urls_for_others(url):
        notices.told(f"from other machines it is at {' or '.join(urls)}")
    if plan.config.serve.page:
        notices.told(f"the page is at {page_at(url)}")
    if plan.bus is not None:
        notices.told(f"hosts run bots over {plan.bus.url}")
    if (submissions := plan.config.submissions) is not None:
        until = "" if submissions.closes is None else f" until {time_of(submissions.closes)}"
        welcome = f"bots can be handed in{until}: `arena submit`, or on the page"
        notices.told(submissions.closed(time.time()) or welcome)


def _warn(access: Access, plan: ServePlan, notices: BotNotices) -> None:
    """Report settings that are probably a mistake."""
    if plan.unsafe:
        notices.told(plan.unsafe)
    elif plan.config.submissions is not None and (but := caveats()):
        notices.told(f"submissions are safe here, {but}")
    if plan.config.submissions is not None and not access.players:
        notices.told(
            "nobody is on the roster, so nobody can hand a bot in; "
            "`arena roster import` puts a class on it"
        )
    if plan.config.runs and not access.instructors:
        notices.told("nobody instructs here yet; `arena roster instructor` makes a token")
    if plan.config.serve.requires_token and not access.players:
        notices.told(
            "nobody is on the roster, so nobody can connect but the bots that are launched here; "
            "`arena roster import` puts a class on it, --open lets everybody in"
        )
    listed = set(map(alike, access.names))
    if both := [str(bot.name) for bot in plan.bots if alike(str(bot.name)) in listed]:
        notices.told(
            f"on the roster, and names of bots that are launched here: {some(both)}; "
            "those of the roster cannot connect under them: give the [[bot]] another `name`"
        )


def _started(competition: Competition, board: report.Board, notices: BotNotices) -> None:
    board.follow(competition.title, competition)
    count = plural(len(competition.plan.players), "bot")
    verb = "competes" if len(competition.plan.players) == 1 else "compete"
    notices.told(f"{competition.title}: {count} {verb} ({competition.id})")


def _over(done: CompetitionReport, board: report.Board) -> None:
    board.forget(done.competition)
    print_found((done, report.lines_of(done)))


def certificate_of(section: ServeSection) -> Callable[[], ssl.SSLContext] | None:
    """Return a function that gives each connection its TLS context; None without a certificate.

    Raises `UsageError` if only one of the two files is given, or one is not valid.
    """
    cert, key = section.tls_cert, section.tls_key
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise UsageError("expected --tls-cert and --tls-key together, got one of them")
    return Certificate(Path(cert), Path(key)).current


# ---- Submissions


def check_safety(config: Config, *, without_isolation: bool) -> str:
    """Return what every student could read if programs are not isolated here; else empty.

    Raises `UsageError` if nothing here can check submissions, if they are not isolated and
    `without_isolation` is not set, or if it is set and other machines can submit.
    """
    if find_spec("arena.authoring") is None:
        raise UsageError(
            "a table [submissions] needs arena.authoring, which checks what is handed in "
            "and is not installed here"
        )
    section = config.serve
    if without_isolation and (not section.is_near or section.trusted_proxy):
        raise UsageError(f"expected {_OPTION} only where the arena listens on this machine alone")
    reasons = unsafe_because(config.limits)
    if not reasons:
        return ""
    if not without_isolation:
        why = "; ".join(reasons)
        raise UsageError(
            f"submissions are not safe on this machine: {why}; `arena doctor` says more, and "
            f"{_OPTION} takes them all the same from this machine"
        )
    return (
        "submitted programs are not isolated here: each can read what the arena can, the database "
        f"with its results and other students' programs too ({'; '.join(reasons)})"
    )


def cache_folder(store: Store) -> Path:
    """Return the folder of built programs and uploads: beside the database, or the user's cache."""
    if store.file is not None:
        return store.file.with_name(f"{store.file.name}-submissions").absolute()
    url = store.engine.url.render_as_string(hide_password=True)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home, "card-arena", hashlib.sha256(url.encode()).hexdigest()[:16])


def _submission_service(
    store: Store,
    settings: SubmissionSettings,
    limits: Limits,
    games: Iterable[str],
    hidden: Sequence[Path],
    unsafe: str,
) -> SubmissionService:
    """Make the service that accepts, builds and checks submissions for an arena."""
    return SubmissionService(
        store.engine,
        settings,
        limits,
        cache_folder(store),
        hidden=hidden,
        check=(sys.executable, "-P", "-m", "arena.cli._submission_check"),
        games=tuple(games),
        starter=_starter,
        unsafe=unsafe,
    )


def _play_submissions(arena: LiveArena, service: SubmissionService) -> None:
    """Make submitted bots take part in the competitions of an arena."""
    settings = service.settings
    cores = settings.cores or max(1, usable_cores() - 1)
    # Leave room to build or check one beside the matches, but always for a match of two bots.
    most = max(2, fitting_bots(arena.limits, 2 * settings.build_mib))

    async def prepared(bot: SeatBot) -> Launch:
        assert bot.submission is not None, "others are connected here"
        program = await service.program(bot.submission)
        return lambda key: arena.supervisor.launch_process(key, program)

    pool = ProcessPool(arena.supervisor, ComputeGate(cores), prepared, most, service.note_stderr)
    arena.take_submissions(service, pool, cores)
    service.on_rebuild = pool.retire
    service.in_use = lambda: {
        number for row in arena.unfinished() for number in row.plan.versions.values()
    }


def _starter(game: str, language: str) -> StarterFiles:
    # Imported late: it loads Jinja, which an arena does not need to start.
    from arena.authoring.starter import starter

    if language not in set(Language):
        known = ", ".join(Language)
        raise UsageError(f"expected one of {known}, got {language!r}")
    made = starter(game_named(game), Language(language), _STARTER_NAME)
    return StarterFiles(dict(made.files), LANGUAGES[Language(language)].edit)


# ---- Hosts


def _programs_folder(store: Store) -> Path:
    """Return the folder of the programs that hosts ask for, beside the submissions."""
    folder = cache_folder(store)
    return folder.with_name(f"{folder.name.removesuffix('-submissions')}-programs")


@contextlib.asynccontextmanager
async def _connected_hosts(
    arena: LiveArena, where: BusAddress, store: Store, certificate: str | None
) -> AsyncIterator[None]:
    """Let hosts run the launched bots of an open arena; raises `Unreachable` if the bus is down.

    On the bus, the arena is known by the id of its database.
    """
    # Imported late: most arenas have no hosts, and some installations lack the package.
    from arena.hosts.bus import ARENA_USER, BusDown
    from arena.hosts.directory import HostDirectory
    from arena.hosts.host_links import HostLinks
    from arena.hosts.host_machine import isolation
    from arena.hosts.host_pools import HostPools
    from arena.hosts.seat_programs import SeatPrograms

    with needs_nats():
        from arena.hosts.nats_connection import NatsConnection
    service, folder = arena.submissions, _programs_folder(store)
    programs = SeatPrograms(arena.supervisor.relaunch_specs, service, folder, arena.hidden)
    # Without submissions, no author can ask for a bot's standard error.
    on_stderr = (lambda submission, match, text: None) if service is None else service.note_stderr
    pools = HostPools(arena.supervisor, programs, on_stderr)
    links = HostLinks(pools.opened, pools.closed)
    name = await asyncio.to_thread(store.arena_id)
    bus = NatsConnection(where, f"arena {name}", ARENA_USER)
    others = urls_for_others(arena.url)
    try:
        await bus.open()
        directory = pools.directory = HostDirectory(
            bus,
            name,
            arena.limits,
            others[0] if others else arena.url,
            links.ticket,
            links.bots,
            "" if certificate is None else Path(certificate).read_text(),
            isolated=bool(isolation()),
        )
        await directory.open()
    except BusDown as error:
        raise Unreachable(str(error)) from None
    arena.take_hosts(pools, links)
    arena.host_directory = directory
    try:
        yield
    finally:
        links.close()
        pools.close()
        await bus.close()


# ---- Addresses


def check_proxies(serve: ServeSection) -> None:
    """Raise `UsageError` if clients behind a proxy would all seem to be on this machine."""
    if serve.is_near and serve.origin and not (serve.trusted_proxy or serve.open):
        listens = _listens_on(serve.host.strip("[]"))
        if listens is None:  # a name such as localhost may have an address of either family
            proxies = "127.0.0.1 --trusted-proxy ::1"
        else:  # a client that connects to 127.0.0.2 still has the address 127.0.0.1
            proxies = "127.0.0.1" if listens.version == 4 else "::1"
        raise UsageError(
            "expected --trusted-proxy beside --origin, "
            f"as all who come through a proxy on this machine seem to be on {serve.host}: "
            f"with --trusted-proxy {proxies} everybody needs a token, "
            "--open lets anybody in without one"
        )


def urls_for_others(url: str) -> tuple[str, ...]:
    """Return the addresses that other machines can use, best first.

    Empty unless the arena listens on all interfaces; otherwise its own address is the one to use.
    """
    parts = urlsplit(url)
    listens = _listens_on(parts.hostname or "0.0.0.0")
    if listens is None or not listens.is_unspecified:
        return ()
    family = socket.AF_INET if listens.version == 4 else socket.AF_INET6
    hosts = [socket.gethostname(), _outward(family)]
    return tuple(
        f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{parts.port}{parts.path}"
        for host in hosts
        if host and not host.startswith("localhost")
    )


def page_at(url: str) -> str:
    """Return the address of the page, for a browser on this machine, of the arena at `url`."""
    parts = urlsplit(url)
    listens = _listens_on(parts.hostname or "0.0.0.0")
    host = parts.netloc
    if listens is not None and listens.is_unspecified:
        host = f"localhost:{parts.port}"
    return f"{'https' if parts.scheme == 'wss' else 'http'}://{host}{parts.path}"


def _listens_on(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host)
    return None


def _outward(family: socket.AddressFamily) -> str:
    """Return this machine's address on the default route; empty if there is no route."""
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((_ANYWHERE[family], _DISCARD))  # UDP: only looks up the route
        address: str = probe.getsockname()[0]
        return address
    return ""
