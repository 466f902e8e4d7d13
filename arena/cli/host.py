"""`arena host`: runs bots on this machine for the arenas on a bus."""

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
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from arena.cli._bus_options import BusAddress, bus_options, check_address, needs_nats
from arena.competitions.elsewhere import secret_files
from arena.games.statistics import plural
from arena.hosts.bus import BusDown, checked_host
from protocol.errors import Unreachable, UsageError

if TYPE_CHECKING:
    from arena.hosts.hosted_bots import BotHost
    from arena.hosts.messages import HostReport

__all__ = ["command"]

_BUILD_MIB = 1024  # room to build a program meanwhile

_option = partial(click.option, show_envvar=True)


@click.command(name="host")
@bus_options
@_option(
    "--name",
    metavar="NAME",
    envvar="ARENA_HOST_NAME",
    help="What this host is called; its key must be for that name "
    "[default: that of the key's file, or of this machine].",
)
@_option(
    "--cores",
    type=click.IntRange(min=1),
    metavar="N",
    envvar="ARENA_HOST_CORES",
    help="How many bots compute at once [default: as many as there are cores].",
)
@_option(
    "--memory",
    type=click.IntRange(min=1),
    metavar="MIB",
    envvar="ARENA_HOST_MEMORY",
    help="How much memory there is for it, its builds and bots [default: this machine's].",
)
@_option(
    "--cache",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    envvar="ARENA_HOST_CACHE",
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
    from arena.hosts.host_machine import host_kind
    from arena.hosts.messages import HostReport
    from arena.sandbox.doctor import machine_mib
    from arena.sandbox.worker_pool import usable_cores

    name = checked_host(name or _default_name(bus))
    address = check_address(bus)
    cache = _unseen_cache(cache)
    say = partial(_say, name, as_json)
    say("tries", "tries what this machine can run")
    report = HostReport(
        host=name,
        session=secrets.token_hex(8),
        kind=host_kind(),
        cores=cores or usable_cores(),
        memory_mib=memory or machine_mib(),
        bots=0,
        room=0,
    )
    try:
        asyncio.run(_run(address, report, cache, say))
    except asyncio.CancelledError:
        pass  # the second signal ended it
    except BusDown as error:
        raise Unreachable(str(error)) from None


def _say(name: str, as_json: bool, event: str, text: str, **facts: object) -> None:
    """Print a line for the operator of a host, as text or JSON."""
    line = f"{name}: {text}"
    if as_json:
        about = {"host": name, "event": event, "text": text, **facts}
        line = json.dumps(about, ensure_ascii=False)
    click.echo(line)


async def _run(
    address: BusAddress, report: HostReport, cache: Path, say: Callable[..., None]
) -> None:
    with needs_nats():
        from arena.hosts.nats_connection import NatsConnection, serve
    from arena.hosts.host_links import open_link
    from arena.hosts.host_machine import shortage
    from arena.hosts.hosted_bots import BotHost
    from arena.hosts.program_cache import ProgramCache
    from arena.sandbox.doctor import fitting_bots
    from arena.server.listener import allow_many_files

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
            partial(open_link, report.host),
            partial(shortage, (cache, Path(tempfile.gettempdir()))),
            partial(say, "told"),
        )
        programs.in_use = lambda: host.programs_in_use
        stack.push_async_callback(host.close)
        await connection.open()
        stack.push_async_callback(connection.close)
        _say_started(report, say)
        serving = loop.create_task(serve(connection, host))
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C ends it at once
                loop.add_signal_handler(number, _leave, host, serving, say)
                stack.callback(loop.remove_signal_handler, number)
        await serving
        say("left", "left; no bot runs here any more")


def _leave(host: BotHost, serving: asyncio.Task[None], say: Callable[..., None]) -> None:
    """Let a host drain at the first Ctrl-C or SIGTERM, and end it at the second."""
    if host.is_leaving:
        serving.cancel()
        return
    host.leave()
    here = plural(host.bots, "bot")
    say("leaving", f"takes no more bots, and still has {here} · once more ends it at once")


def _say_started(report: HostReport, say: Callable[..., None]) -> None:
    kind = report.kind
    how = kind.isolation or "not isolated, so only arenas that do not isolate bots either use it"
    say(
        "started",
        f"runs bots on {plural(report.cores, 'core')}; {how}; "
        f"languages: {', '.join(kind.languages) or 'none'} · Ctrl-C ends it after their matches",
        cores=report.cores,
        memory_mib=report.memory_mib,
        kind=msgspec.to_builtins(kind),
    )


def _default_name(bus: BusAddress | None) -> str:
    """Return the name of the key file without its suffix, or the name of this machine."""
    if bus is not None and bus.key is not None:
        return bus.key.stem
    return re.sub(r"[^A-Za-z0-9_-]+", "-", platform.node().partition(".")[0])[:32] or "machine"


def _unseen_cache(cache: Path | None) -> Path:
    """Return the folder for programs, by default `card-arena/host` in the user's cache.

    Raises `UsageError` if bots can see the folder, as it holds the programs of others.
    """
    from arena.sandbox.command import SYSTEM

    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    cache = cache or Path(home, "card-arena", "host")
    where = cache.expanduser().resolve()
    for folder in SYSTEM:
        if where.is_relative_to(Path(folder).resolve()):
            raise UsageError(f"expected a cache that bots do not see, got one in {folder}: {where}")
    return cache
