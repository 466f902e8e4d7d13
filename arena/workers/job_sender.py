"""Has on the bus what should be there: queues, jobs for which there is room, and no others."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping

from arena.workers.bus import Bus, BusDown
from arena.workers.dispatch import Dispatch
from arena.workers.messages import encode
from arena.workers.put_job import PutJob
from arena.workers.worker_registry import WorkerRegistry

__all__ = ["JobSender"]

log = logging.getLogger(__name__)


class JobSender:
    """Sends one message after another, so that a job is never put and taken back in wrong order.

    `jobs` are those that are put and not done. What the bus does not take is tried again at the
    next `look`.
    """

    def __init__(
        self, bus: Bus, dispatch: Dispatch, jobs: Mapping[str, PutJob], registry: WorkerRegistry
    ) -> None:
        self._bus = bus
        self._dispatch = dispatch
        self._jobs = jobs
        self._registry = registry
        self._taken_back: deque[tuple[str, str]] = deque()
        self._repeated: deque[tuple[str, str]] = deque()
        self._opened: set[str] = set()  # classes and workers that the bus has room for
        self._wake = asyncio.Event()

    def look(self) -> None:
        """There may be something to send."""
        self._wake.set()

    def take_back(self, worker_class: str, job: str) -> None:
        """Have a job on no queue of a class; whoever has it already may still announce it."""
        self._taken_back.append((worker_class, job))
        self._wake.set()

    def repeat(self) -> None:
        """Have all queues on the bus, and all jobs that nobody has begun."""
        self._opened.clear()
        self._repeated.extend(
            (worker_class, job)
            for job, worker_class, _ in self._dispatch.on_bus()
            if self._jobs[job].living is None
        )
        self._wake.set()

    async def run(self) -> None:
        """Send, for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            if not self._bus.is_up:
                continue  # the next look tries again
            try:
                await self._open_queues()
                await self._send_all()
            except BusDown as error:
                log.debug("jobs wait: %s", error)
            except Exception:
                log.exception("jobs cannot be sent")

    async def finish(self) -> None:
        """Take back what is not to be on the bus when the arena is gone; raises `BusDown`."""
        while self._taken_back:
            worker_class, job = self._taken_back.popleft()
            await self._bus.withdraw(worker_class, job)

    async def _open_queues(self) -> None:
        for worker_class in self._dispatch.classes:
            if worker_class not in self._opened:
                await self._bus.open_class(worker_class)
                self._opened.add(worker_class)
        for worker, known in tuple(self._registry.workers.items()):
            if worker not in self._opened and not known.refused:
                await self._bus.open_worker(worker)
                self._opened.add(worker)

    async def _send_all(self) -> None:
        while True:
            await self.finish()
            if self._repeated:
                worker_class, job = self._repeated.popleft()
            elif (choice := self._dispatch.next()) is not None:
                job, worker_class = choice
            else:
                return
            await self._send(worker_class, job)

    async def _send(self, worker_class: str, job: str) -> None:
        if not self._is_due(worker_class, job):
            return
        try:
            await self._bus.put(worker_class, job, encode(self._jobs[job].sent))
        except BusDown:
            if self._is_due(worker_class, job):
                self._dispatch.again(job)
            raise

    def _is_due(self, worker_class: str, job: str) -> bool:
        """Whether a job should be on the queue of a class, as nobody has begun it."""
        is_there = self._dispatch.class_of(job) == worker_class
        return is_there and self._jobs[job].living is None
