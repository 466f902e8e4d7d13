"""A job that was put and is not done, as `BusJobs` and what belongs to it share it."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol

from arena.competitions.jobs import JobWatcher, MatchJob
from arena.workers.attempt_tracker import KnownAttempt
from arena.workers.dispatch import Group
from arena.workers.messages import BusJob, SeatProgram
from protocol.errors import UsageError

__all__ = ["NoPrograms", "PortablePrograms", "PutJob", "bus_job"]


class PortablePrograms(Protocol):
    """Where programs come from: `arena.hosts.seat_programs.SeatPrograms`."""

    def of(self, job: MatchJob) -> Awaitable[Sequence[SeatProgram]]:
        """The programs of a job by seat; raises UsageError why one cannot be played elsewhere."""

    def is_portable(self, name: str, game: str) -> bool: ...

    def part(self, key: str, offset: int) -> Awaitable[bytes]:
        """Bytes of a program; raises UsageError if there are none."""


class NoPrograms:
    """Nothing is portable."""

    async def of(self, job: MatchJob) -> Sequence[SeatProgram]:
        raise UsageError("no programs are sent to workers")

    def is_portable(self, name: str, game: str) -> bool:
        return False

    async def part(self, key: str, offset: int) -> bytes:
        raise UsageError("no programs are sent to workers")


class PutJob:
    """A job that was put and is not done.

    Attributes:
        programs, sent: once they are known.
        living: the attempt that runs, as far as is known.
        losses: of how many attempts nothing came.
        is_here: the arena plays it itself.
    """

    def __init__(self, job: MatchJob, watcher: JobWatcher) -> None:
        self.job = job
        self.watcher = watcher
        self.programs: tuple[SeatProgram, ...] = ()
        self.sent: BusJob | None = None
        self.living: KnownAttempt | None = None
        self.losses = 0
        self.is_here = False

    @property
    def group(self) -> Group | None:
        """Whose matches are to be alike, if they are."""
        if not self.job.is_alike:
            return None
        return self.job.competition, frozenset(self.job.players)


def bus_job(arena: str, job: MatchJob, programs: Sequence[SeatProgram]) -> BusJob:
    """A job as workers see it."""
    return BusJob(
        arena=arena,
        id=job.id,
        game=job.game,
        settings=job.settings,
        limits=job.limits,
        players=job.players,
        programs=tuple(programs),
        package=job.package,
        versions=job.versions,
    )
