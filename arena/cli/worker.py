"""`arena worker`: plays matches of arenas on this machine, which a bus brings."""

from __future__ import annotations

import asyncio
import contextlib
import json
import operator
import secrets
import signal
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click
import msgspec

from arena.cli import Interrupted
from arena.cli import _output as output
from arena.cli._bus_options import BusAddress, bus_options, check_address, opened_bus
from arena.cli._signals import Stop
from arena.cli.host import checked_name, default_name, unseen_cache
from arena.sandbox.safety import fitting_bots, machine_mib
from arena.sandbox.worker_pool import usable_cores
from arena.server.listener import allow_many_files
from arena.workers.bus import Bus, BusDown, secret_files
from arena.workers.calibration import speed
from arena.workers.dispatch import worker_class
from arena.workers.live_frames import LiveFrames
from arena.workers.match_player import ProcessPlayer
from arena.workers.messages import WorkerReport
from arena.workers.program_cache import ProgramCache
from arena.workers.worker import Worker
from arena.workers.worker_health import WorkerHealth, measure
from arena.workers.worker_kind import worker_kind
from protocol.errors import Unreachable
from protocol.messages import Limits

__all__ = ["command"]

_SEATS = 2  # of most games
_STOPPED = "stopped; the matches that it played are played again"


@click.command(name="worker")
@bus_options
@click.option(
    "--name",
    metavar="NAME",
    help="What this worker is called; its key must be for that name "
    "[default: that of the key's file, or of this machine].",
)
@click.option(
    "--cores",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many bots compute at once [default: as many as there are cores].",
)
@click.option("--games", metavar="GAME,…", help="Play these games only [default: all].")
@click.option(
    "--cache",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Where programs of bots lie [default: card-arena/worker in the user's cache].",
)
@click.option("--json", "as_json", is_flag=True, help="Print each line as a JSON document.")
@click.pass_obj
def command(
    stop: Stop | None,
    bus: BusAddress | None,
    name: str | None,
    cores: int | None,
    games: str | None,
    cache: Path | None,
    as_json: bool,
) -> None:
    """Play matches of the arenas on a bus, with the bots that they send.

    The programs of bots are fetched by their hashes, built and launched here, in the sandbox that
    `arena doctor` describes. Matches that this machine cannot play are not given to it.

    After Ctrl-C it takes no more matches, and ends when those that it plays are over. A second
    Ctrl-C stops it at once, and so does SIGTERM: arenas then play these matches again.

    --json prints lines {worker, event, text}, and with the event `started` also {speed, cores,
    slots, memory_mib, kind}.
    """
    name = checked_name(name or default_name(bus))
    check_address(bus)
    cores = cores or usable_cores()
    cache = unseen_cache(cache, "worker")
    wanted = tuple(filter(None, (games or "").split(",")))
    notices = _Notices(name, as_json)
    notices.say("tries", "tries what this machine can play")
    profile = WorkerReport(
        worker=name,
        session=secrets.token_hex(8),
        kind=worker_kind(wanted),
        speed=speed(),
        cores=cores,
        slots=_slots(cores),
        memory_mib=machine_mib(),
    )
    stop = stop or Stop()
    try:
        asyncio.run(_join(bus, profile, cache, notices, stop))
    except (asyncio.CancelledError, KeyboardInterrupt):
        if stop.name is None:
            raise Interrupted(_STOPPED) from None
        notices.say("stopped", _STOPPED)


class _Notices:
    """What a worker tells its operator, a line each."""

    def __init__(self, name: str, as_json: bool) -> None:
        self._name, self._as_json = name, as_json

    def say(self, event: str, text: str, **facts: object) -> None:
        if self._as_json:
            line = json.dumps(
                {"worker": self._name, "event": event, "text": text, **facts}, ensure_ascii=False
            )
        else:
            line = f"{self._name}: {text}"
        click.echo(line)


async def _join(
    address: BusAddress | None, profile: WorkerReport, cache: Path, notices: _Notices, stop: Stop
) -> None:
    """Work on the bus until this worker is stopped or has left."""
    task = asyncio.current_task()
    assert task is not None, "asyncio.run makes one"
    stop.cancels(task)
    allow_many_files()
    try:
        async with opened_bus(address, profile.worker, profile.worker) as bus:
            await _work(bus, address, profile, cache, notices)
    except BusDown as error:
        raise Unreachable(str(error)) from None


async def _work(
    bus: Bus, address: BusAddress | None, profile: WorkerReport, cache: Path, notices: _Notices
) -> None:
    loop = asyncio.get_running_loop()
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    health = WorkerHealth(partial(measure, (cache, Path(tempfile.gettempdir()))), loop.time)
    secret = secret_files(address)
    async with contextlib.AsyncExitStack() as stack:
        programs = ProgramCache(cache, secret)
        stack.push_async_callback(programs.close)
        player = await stack.enter_async_context(
            ProcessPlayer(profile.worker, profile.cores, health, secret)
        )
        programs.in_use = lambda: player.programs_in_use
        worker = Worker(
            bus,
            player,
            programs,
            profile,
            worker_class(profile.kind, profile.speed),
            lag_ms=lambda: health.lag_ms,
            shortage=lambda: health.shortage,
            frames_of=lambda table: LiveFrames(table, loop.time),
            tell=partial(notices.say, "told"),
        )
        watching = loop.create_task(health.watch())
        stack.callback(watching.cancel)
        _say_started(profile, notices)
        with _leaving_at_ctrl_c(worker, notices):
            await worker.run()
        notices.say("left", "left; all that it has played is handed in")


def _say_started(profile: WorkerReport, notices: _Notices) -> None:
    kind = profile.kind
    how = kind.isolation or "not isolated, so it gets no submissions"
    notices.say(
        "started",
        f"plays {output.plural(profile.slots, 'match')} at once on "
        f"{output.plural(profile.cores, 'core')}; {how}; "
        f"languages: {', '.join(kind.languages) or 'none'} · Ctrl-C ends it after its matches",
        speed=round(profile.speed, 2),
        cores=profile.cores,
        slots=profile.slots,
        memory_mib=profile.memory_mib,
        kind=msgspec.to_builtins(kind),
    )


@contextlib.contextmanager
def _leaving_at_ctrl_c(worker: Worker, notices: _Notices) -> Iterator[None]:
    """Let a worker leave at Ctrl-C, and stop it at the next."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None, "a coroutine runs in a task"
    before = signal.getsignal(signal.SIGINT)

    def pressed() -> None:
        if task.cancelling():  # it gives back what it has not played, and must not be interrupted
            return
        if worker.is_leaving:
            task.cancel()
            return
        left = output.plural(worker.unfinished, "match")
        notices.say("leaving", f"takes no more matches; {left} left · Ctrl-C again stops it")
        worker.leave()

    try:
        loop.add_signal_handler(signal.SIGINT, pressed)
    except NotImplementedError:  # Windows: Ctrl-C stops it at once
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        # asyncio restores Python's own handler, which would interrupt what is closed after this.
        signal.signal(signal.SIGINT, operator.is_ if task.cancelling() else before)


def _slots(cores: int) -> int:
    """How many matches are played at once, as in an arena: some wait for answers on their way."""
    return max(1, min(2 * cores + 2, fitting_bots(Limits()) // _SEATS))
