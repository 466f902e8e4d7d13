"""What commands put together so that workers on other machines play for them.

A command opens `bus_jobs`, has an arena with these jobs, and begins with `connect_bus` once the
arena is open.
"""

from __future__ import annotations

import asyncio
import contextlib
import platform
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from arena.cli._bus_options import address, needs_nats
from arena.cli._submissions import cache_folder
from arena.competitions.arena_host import Host
from arena.competitions.config import BusSection
from arena.storage.store import Store
from arena.workers.bus import BusDown
from arena.workers.bus_jobs import BusJobs
from arena.workers.result_check import ResultChecker
from arena.workers.seat_programs import SeatPrograms
from arena.workers.worker_control import BusWorkers
from arena.workers.worker_kind import isolation
from protocol.errors import Unreachable

if TYPE_CHECKING:
    from arena.workers.nats_connection import BusAddress

__all__ = ["bus_address", "bus_files", "bus_jobs", "connect_bus", "programs_folder"]

_USER = "arena"  # of `arena bus init`


def bus_address(bus: BusSection) -> BusAddress | None:
    """The address of the bus, if there is one; raises what `address` raises."""
    if bus.url is None:
        return None
    key, ca = (None if path is None else Path(path) for path in (bus.key, bus.ca))
    return address(bus.url, key, ca)


def bus_files(bus: BusSection) -> tuple[Path, ...]:
    """The files of the bus, which no bot may see."""
    return tuple(Path(path) for path in (bus.key, bus.ca) if path is not None)


def programs_folder(store: Store) -> Path:
    """Where the programs lie that workers ask for: beside the submissions."""
    folder = cache_folder(store)
    return folder.with_name(f"{folder.name.removesuffix('-submissions')}-programs")


@contextlib.asynccontextmanager
async def bus_jobs(
    where: BusAddress, store: Store, tell: Callable[[str], None], *, is_kept: bool = False
) -> AsyncIterator[BusJobs]:
    """The jobs that workers play for the arena on this database.

    If the database `is_kept`, what is being played at the end goes on, for the next arena on it.

    Raises:
        UsageError: nats-py is not installed, or a file of the address cannot be read.
        Unreachable: the bus cannot be reached.
    """
    with needs_nats():
        from arena.workers.nats_bus import connect
    arena = await asyncio.to_thread(store.attempts.arena_id)
    try:
        bus = await connect(where, f"arena {arena}", _USER)
    except BusDown as error:
        raise Unreachable(str(error)) from None
    checker = ResultChecker()
    jobs = BusJobs(bus, arena, store.attempts, checker)
    jobs.tell = tell
    jobs.is_isolated = bool(await asyncio.to_thread(isolation))
    jobs.machine = f"{platform.system().lower()} {platform.machine()}"
    try:
        yield jobs
    finally:
        await jobs.close(forever=not is_kept)
        await checker.close()
        await bus.close()


async def connect_bus(host: Host, jobs: BusJobs) -> None:
    """Have workers play the bots of an arena that is open; raises `Unreachable`."""
    folder = programs_folder(host.store)
    specs = host.supervisor.relaunch_specs
    jobs.programs = SeatPrograms(specs, host.submissions, folder, host.hidden)
    jobs.on_verdict = host.offended_elsewhere
    if host.submissions is not None:
        jobs.note_stderr = host.submissions.note_stderr
    host.workers = BusWorkers(jobs, host.store.attempts, asyncio.get_running_loop().time)
    try:
        await jobs.start()
    except BusDown as error:
        raise Unreachable(str(error)) from None
