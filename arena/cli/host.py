"""`arena host`: runs bots of arenas on this machine, which a bus asks for."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
import re
import secrets
import signal
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click
import msgspec

from arena.cli import _output as output
from arena.cli._bus_options import BusAddress, bus_options, check_address, needs_nats
from arena.hosts.bot_host import BotHost
from arena.hosts.bus import BusDown, checked_host, secret_files
from arena.hosts.host_health import shortage
from arena.hosts.host_kind import host_kind
from arena.hosts.host_link import LinkOpener
from arena.hosts.messages import HostReport
from arena.hosts.program_cache import ProgramCache
from arena.sandbox.command import SYSTEM
from arena.sandbox.safety import fitting_bots, machine_mib
from arena.sandbox.worker_pool import usable_cores
from arena.server.listener import allow_many_files
from protocol.errors import Unreachable, UsageError

__all__ = ["command"]

_BUILD_MIB = 1024  # a program may be built meanwhile
_RETIRE_S = 1.0  # between two looks at what a host that leaves still runs


@click.command(name="host")
@bus_options
@click.option(
    "--name",
    metavar="NAME",
    envvar="ARENA_HOST_NAME",
    show_envvar=True,
    help="What this host is called; its key must be for that name "
    "[default: that of the key's file, or of this machine].",
)
@click.option(
    "--cores",
    type=click.IntRange(min=1),
    metavar="N",
    envvar="ARENA_HOST_CORES",
    show_envvar=True,
    help="How many bots compute at once [default: as many as there are cores].",
)
@click.option(
    "--memory",
    type=click.IntRange(min=1),
    metavar="MIB",
    envvar="ARENA_HOST_MEMORY",
    show_envvar=True,
    help="How much memory there is for it, its builds and bots [default: this machine's].",
)
@click.option(
    "--cache",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    envvar="ARENA_HOST_CACHE",
    show_envvar=True,
    help="Where programs of bots lie [default: card-arena/host in the user's cache].",
)
@click.option("--json", "as_json", is_flag=True, help="Print each line as a JSON document.")
def command(
    bus: BusAddress | None,
    name: str | None,
    cores: int | None,
    memory: int | None,
    cache: Path | None,
    as_json: bool,
) -> None:
    """Run bots of the arenas on a bus: what was handed in there, in the sandbox of this machine.

    The arena deals, asks and judges; this machine has the processes, and reads what they use. The
    programs are fetched by their hashes and built here. `arena doctor` says what this machine can
    enforce.

    After Ctrl-C or SIGTERM it takes no more bots, and ends when the matches of its bots are over. A
    second one ends it at once: arenas then play these matches again.

    --json prints lines {host, event, text}, and with the event `started` also {cores, memory_mib,
    kind}.
    """
    name = checked_host(name or _default_name(bus))
    address = check_address(bus)
    cores = cores or usable_cores()
    cache = _unseen_cache(cache)
    notices = _HostNotices(name, as_json)
    notices.say("tries", "tries what this machine can run")
    report = HostReport(
        host=name,
        session=secrets.token_hex(8),
        kind=host_kind(),
        cores=cores,
        memory_mib=memory or machine_mib(),
        bots=0,
        room=0,
    )
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_run(address, report, cache, notices))


class _HostNotices:
    """What a host tells its operator, a line each."""

    def __init__(self, name: str, as_json: bool) -> None:
        self._name, self._as_json = name, as_json

    def say(self, event: str, text: str, **facts: object) -> None:
        if self._as_json:
            line = json.dumps(
                {"host": self._name, "event": event, "text": text, **facts}, ensure_ascii=False
            )
        else:
            line = f"{self._name}: {text}"
        click.echo(line)


async def _run(address: BusAddress, report: HostReport, cache: Path, notices: _HostNotices) -> None:
    with needs_nats():
        from arena.hosts.nats_bus import serve
        from arena.hosts.nats_connection import NatsConnection
    allow_many_files()
    loop = asyncio.get_running_loop()
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    hidden = (*secret_files(address), cache)
    connection = NatsConnection(address, f"host {report.host}", report.host)
    async with contextlib.AsyncExitStack() as stack:
        programs = ProgramCache(cache, secret_files(address))
        stack.push_async_callback(programs.close)
        host = BotHost(
            report,
            lambda limits: fitting_bots(limits, _BUILD_MIB, report.memory_mib),
            programs.program,
            hidden,
            LinkOpener(report.host),
            partial(shortage, (cache, Path(tempfile.gettempdir()))),
            partial(notices.say, "told"),
        )
        programs.in_use = lambda: host.programs_in_use
        stack.push_async_callback(host.close)
        try:
            await connection.open()
        except BusDown as error:
            raise Unreachable(str(error)) from None
        stack.push_async_callback(connection.close)
        _say_started(report, notices)
        serving = loop.create_task(serve(connection, host))
        leaving = loop.create_task(_left(host, notices))
        with _leaving_at_signals(host, serving, notices):
            await asyncio.wait((serving, leaving), return_when=asyncio.FIRST_COMPLETED)
        for task in (serving, leaving):
            task.cancel()
        await asyncio.wait((serving, leaving))
        fault = None if serving.cancelled() else serving.exception()
        if isinstance(fault, BusDown):
            raise Unreachable(str(fault)) from None
        if fault is not None:
            raise fault


async def _left(host: BotHost, notices: _HostNotices) -> None:
    """Return when a host that takes no more bots has none."""
    while not host.is_leaving or host.bots:
        await asyncio.sleep(_RETIRE_S)
        if host.is_leaving:
            host.retire_idle()
    notices.say("left", "left; no bot runs here any more")


@contextlib.contextmanager
def _leaving_at_signals(
    host: BotHost, serving: asyncio.Task[None], notices: _HostNotices
) -> Iterator[None]:
    """Let a host leave at Ctrl-C or SIGTERM, and end it at the next."""
    loop = asyncio.get_running_loop()

    def heard() -> None:
        if host.is_leaving:
            serving.cancel()
            return
        host.leave()
        here = output.plural(host.bots, "bot")
        notices.say(
            "leaving", f"takes no more bots, and still has {here} · once more ends it at once"
        )

    numbers = (signal.SIGINT, signal.SIGTERM)
    try:
        for number in numbers:
            loop.add_signal_handler(number, heard)
    except NotImplementedError:  # Windows: Ctrl-C ends it at once
        yield
        return
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _say_started(report: HostReport, notices: _HostNotices) -> None:
    kind = report.kind
    how = kind.isolation or "not isolated, so only arenas that do not isolate bots either use it"
    notices.say(
        "started",
        f"runs bots on {output.plural(report.cores, 'core')}; {how}; "
        f"languages: {', '.join(kind.languages) or 'none'} · Ctrl-C ends it after their matches",
        cores=report.cores,
        memory_mib=report.memory_mib,
        kind=msgspec.to_builtins(kind),
    )


def _default_name(bus: BusAddress | None) -> str:
    """The name of the key's file, or of this machine."""
    if bus is not None and bus.key is not None:
        return bus.key.stem
    return re.sub(r"[^A-Za-z0-9_-]+", "-", platform.node().partition(".")[0])[:32] or "machine"


def _unseen_cache(cache: Path | None) -> Path:
    """A folder for programs, by default `card-arena/host` in the user's cache.

    Raises `UsageError` if bots see it, as programs of others would be there.
    """
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    cache = cache or Path(home, "card-arena", "host")
    where = cache.expanduser().resolve()
    for folder in SYSTEM:
        if where.is_relative_to(Path(folder).resolve()):
            raise UsageError(f"expected a cache that bots do not see, got one in {folder}: {where}")
    return cache
