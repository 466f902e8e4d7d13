"""Reports of workers that exist in tests only."""

from __future__ import annotations

import asyncio
from typing import Any

from arena.workers.bus import Bus
from arena.workers.messages import Drain, WorkerKind, WorkerReport, decode, encode
from tests.support.fake_bots import ANY_GAME

__all__ = ["ReportingWorker", "report_of"]

_KIND = WorkerKind(
    arena_version="1.0",
    system="linux",
    machine="x86_64",
    isolation="bubblewrap",
    languages=("python",),
    commands=(),
    games=(ANY_GAME,),
)


def report_of(worker: str, **about: Any) -> WorkerReport:
    """The report of a worker with two cores, which is idle if nothing else is said."""
    usual: dict[str, Any] = {
        "session": "s1",
        "kind": _KIND,
        "speed": 3.5,
        "cores": 2,
        "slots": 4,
        "memory_mib": 8_000,
    }
    return WorkerReport(worker=worker, **{**usual, **about})


class ReportingWorker:
    """Reports all the time; it obeys after it was told `deaf` times in vain."""

    def __init__(self, bus: Bus, name: str, deaf: int = 0) -> None:
        self.name = name
        self.is_draining = False
        self._bus = bus
        self._deaf = deaf
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        await self._bus.on_command(self.name, self._commanded)
        while True:
            report = report_of(self.name, is_draining=self.is_draining)
            await self._bus.report(self.name, encode(report))
            await asyncio.sleep(0.01)

    def _commanded(self, data: bytes) -> None:
        self._deaf -= 1
        if self._deaf < 0:
            order: Drain = decode(data, Drain)
            self.is_draining = order.is_draining

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
