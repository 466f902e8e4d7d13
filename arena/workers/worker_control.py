"""The workers of an arena, as its page and its instructor see and drain them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from arena.storage.attempts import AttemptRow
from arena.workers.bus import BusDown
from arena.workers.known_worker import KnownWorker, views_of
from protocol.errors import UsageError
from protocol.instructions import LostAttempt, WorkerView

__all__ = ["BusWorkers"]


class _Jobs(Protocol):
    """`BusJobs`."""

    @property
    def workers(self) -> Mapping[str, KnownWorker]: ...

    @property
    def lost(self) -> int: ...

    async def drain(self, worker: str, is_draining: bool) -> None: ...


class _Attempts(Protocol):
    """`Attempts`."""

    def without_result(
        self, competition: str | None = None, most: int = 100
    ) -> Sequence[AttemptRow]: ...


class BusWorkers:
    """A `WorkerControl` over the jobs of a bus; `clock` is the loop's."""

    def __init__(self, jobs: _Jobs, attempts: _Attempts, clock: Callable[[], float]) -> None:
        self._jobs = jobs
        self._attempts = attempts
        self._clock = clock

    @property
    def lost(self) -> int:
        return self._jobs.lost

    def workers(self) -> tuple[WorkerView, ...]:
        return views_of(self._jobs.workers.values(), self._clock())

    async def without_result(self) -> Sequence[LostAttempt]:
        rows = await asyncio.to_thread(self._attempts.without_result)
        return [_lost(row) for row in rows]

    async def drain(self, worker: str, is_draining: bool) -> None:
        if worker not in self._jobs.workers:
            known = ", ".join(sorted(self._jobs.workers)) or "none"
            raise UsageError(f"expected a worker ({known}), got {worker!r}")
        try:
            await self._jobs.drain(worker, is_draining)
        except BusDown as error:
            raise UsageError(f"expected a bus that carries the order: {error}") from None


def _lost(row: AttemptRow) -> LostAttempt:
    return LostAttempt(
        match=row.id,
        competition=row.competition,
        players=row.players,
        worker=row.worker,
        state=row.state.value,
        why=row.why,
        at=row.announced_at,
    )
