"""Stops new matches while results do not reach the disk, and warns of a disk that fills.

Matches that are being played go on to their end, so no more results wait than matches were open.
Such a hold is no act of an instructor, is not recorded, and ends by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from math import ceil
from pathlib import Path
from shutil import disk_usage
from typing import TypeVar

from arena.storage.store import Store
from arena.storage.writer import can_pass
from protocol.errors import StoreFailed, UsageError

__all__ = ["DiskForecast", "StorageWatch", "read_again"]

T = TypeVar("T")

_LATE_S = 2.0  # no healthy disk takes that long for a commit
_LOOK_S = 0.25
_SAY_S = 60.0
_AGAIN_S = 1.0
_SAMPLE_S = 60.0  # between two samples of the database's size
_SAMPLES = 61  # an hour of them
_LEAST_MINUTES = 10
_WARN_H = 24.0  # somebody looks at an arena once a day
_WARN_S = 3_600.0


async def read_again(read: Callable[[], T]) -> T:
    """Return the result of a read in a thread, retried while the database is away.

    Raises what `read` raises, except a `StoreFailed` that can pass.
    """
    while True:
        try:
            return await asyncio.to_thread(read)
        except StoreFailed as error:
            if not can_pass(error):
                raise
        await asyncio.sleep(_AGAIN_S)


class DiskForecast:
    """Predicts when a disk will be full, at the rate at which its database grew in the last hour.

    Growth within less than ten minutes counts as that of ten minutes, so that the first matches of
    an arena cause no false alarm.
    """

    def __init__(self) -> None:
        self._sizes = deque[int](maxlen=_SAMPLES)

    def look(self, size: int, free: int) -> str:
        """Return a line if the disk will be full within a day, else empty; call it each minute."""
        self._sizes.append(size)
        grown = size - self._sizes[0]
        minutes = max(_LEAST_MINUTES, len(self._sizes) - 1)
        if free >= _WARN_H * 60 / minutes * grown:
            return ""
        hours = ceil(free / grown * minutes / 60)
        when = f"{hours} hours" if hours > 1 else "an hour"
        return (
            f"the disk will be full within {when}: the database has grown by {_mib(grown)} "
            f"within {minutes} minutes, and {_mib(free)} are left"
        )


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"


def _size_of(database: Path) -> int:
    """Return the bytes of an SQLite database with its log."""
    files = database, database.with_name(f"{database.name}-wal")
    return sum(file.stat().st_size for file in files if file.exists())


class StorageWatch:
    """Watches what has not reached the disk, and how full the disk is.

    `hold` is called with True when nothing more may begin, and with False when play goes on. `tell`
    gets lines for the instructor.
    """

    def __init__(
        self, store: Store, hold: Callable[[bool], None], tell: Callable[[str], None]
    ) -> None:
        self._store = store
        self._hold = hold
        self._tell = tell
        self._say_at = 0.0
        self._forecast = DiskForecast()
        self._sample_at = self._warn_at = float("-inf")
        self.filling = ""
        """A line if the disk will be full within a day; else, or if unknown, empty."""
        self._on_time = asyncio.Event()
        self._on_time.set()
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Look at the storage regularly, for ever."""
        clock = asyncio.get_running_loop().time
        while True:
            self.look(clock())
            await asyncio.sleep(_LOOK_S)

    def look(self, now: float) -> None:
        """Hold play or let it go on, and report this at once and then each minute."""
        if now >= self._sample_at:
            self._sample_at = now + _SAMPLE_S
            self._look_at_disk(now)
        backlog = self._store.backlog
        if backlog.failure is not None:
            if not self._failed.done():
                self._failed.set_exception(backlog.failure)
                self._failed.exception()  # retrieved, as nobody may be in `guard`
            return
        is_late = backlog.waited_s >= _LATE_S
        if is_late != self.is_late:
            (self._on_time.clear if is_late else self._on_time.set)()
            self._say_at = now
            self._hold(is_late)
            if not is_late:
                self._tell("the database is written again, and play goes on")
        if is_late and now >= self._say_at:
            self._say_at = now + _SAY_S
            why = backlog.why or "the disk is slow"
            self._tell(f"{self.state}; matches that are on are played out, no other begins: {why}")

    def _look_at_disk(self, now: float) -> None:
        """Warn each hour while the disk fills; a database server's disk is unknown."""
        if self._store.file is None:
            return
        with contextlib.suppress(OSError):  # the next minute may succeed
            database = self._store.file.resolve()  # a link may lead to another disk
            free = disk_usage(database.parent).free
            self.filling = self._forecast.look(_size_of(database), free)
        if self.filling and now >= self._warn_at:
            self._warn_at = now + _WARN_S
            self._tell(self.filling)

    async def guard(self, work: Awaitable[T]) -> T:
        """Return the result of some work; `StoreFailed` once nothing can be written again."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait((task, self._failed), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                self._failed.result()
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))

    @property
    def is_late(self) -> bool:
        """Whether results have waited so long that nothing may begin."""
        return not self._on_time.is_set()

    async def goes_on(self) -> None:
        """Wait until matches may begin."""
        await self._on_time.wait()

    @property
    def state(self) -> str:
        """What waits, in words without a path or server; empty if nothing waits for long."""
        if not self.is_late:
            return ""
        results = self._store.backlog.results
        if not results:
            return "the database cannot be written just now"
        of_matches = "1 result is" if results == 1 else f"{results:,} results are"
        return f"{of_matches} not on the disk yet"

    async def written(self) -> None:
        """Wait until everything done so far is on the disk, however long that takes."""
        await self._store.flushed()
        self.look(asyncio.get_running_loop().time())

    async def is_written(self) -> bool:
        """Return whether everything done so far reaches the disk within `_LATE_S` seconds."""
        try:
            async with asyncio.timeout(_LATE_S):
                await self.written()
        except TimeoutError:
            return False
        return True

    def check(self) -> None:
        """Raise UsageError if nothing may be changed now, as it could not be written."""
        if self.is_late:
            raise UsageError(
                f"expected a database that is written, but {self.state}; try again later"
            )
