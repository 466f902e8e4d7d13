"""Connects a command's arena to the workers on other machines that play for it.

A command opens `bus_jobs`, has an arena with these jobs, and begins with `connect_bus` once the
arena is open.
"""

from __future__ import annotations

import asyncio
import contextlib
import platform
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from arena.cli._bus_options import BusAddress, opened_bus
from arena.cli._submissions import cache_folder
from arena.competitions.arena_host import Host
from arena.storage.store import Store
from arena.workers.bus import BusDown
from arena.workers.bus_jobs import BusJobs
from arena.workers.result_check import ResultChecker
from arena.workers.seat_programs import SeatPrograms
from arena.workers.worker_control import BusWorkers
from arena.workers.worker_kind import isolation
from protocol.errors import Unreachable

__all__ = ["bus_jobs", "connect_bus", "programs_folder"]


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
    arena = await asyncio.to_thread(store.attempts.arena_id)
    async with contextlib.AsyncExitStack() as stack:
        try:
            bus = await stack.enter_async_context(opened_bus(where, f"arena {arena}"))
        except BusDown as error:
            raise Unreachable(str(error)) from None
        checker = ResultChecker()
        stack.push_async_callback(checker.close)
        jobs = BusJobs(bus, arena, store.attempts, checker)
        jobs.tell = tell
        jobs.is_isolated = bool(await asyncio.to_thread(isolation))
        jobs.machine = f"{platform.system().lower()} {platform.machine()}"
        try:
            yield jobs
        finally:
            await jobs.close(forever=not is_kept)


async def connect_bus(host: Host, jobs: BusJobs) -> None:
    """Let workers play the bots of an open arena; raises `Unreachable`."""
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
