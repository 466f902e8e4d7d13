"""An arena as its bus sees it: it notes what it is told, and answers what it is asked."""

from __future__ import annotations

import asyncio

from arena.workers.bus import Bus, ResultDelivery

__all__ = ["SOON_S", "BusListener"]

SOON_S = 20.0  # far more than anything takes


class BusListener:
    """What came to an arena, in queues."""

    def __init__(self) -> None:
        self.reports: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
        self.frames: asyncio.Queue[tuple[str, str, bytes]] = asyncio.Queue()
        self.results: asyncio.Queue[ResultDelivery] = asyncio.Queue()

    async def open(self, bus: Bus, arena: str) -> BusListener:
        await bus.open_arena(
            arena,
            lambda worker, data: self.reports.put_nowait((worker, data)),
            self.on_announcement,
            self.on_program_request,
            lambda worker, attempt, data: self.frames.put_nowait((worker, attempt, data)),
            self.on_result,
        )
        return self

    async def on_announcement(self, worker: str, data: bytes) -> bytes:
        return b"granted " + worker.encode() + b" " + data

    async def on_program_request(self, worker: str, data: bytes) -> bytes:
        return b"part for " + worker.encode() + b" " + data

    async def on_result(self, result: ResultDelivery) -> None:
        await self.results.put(result)

    async def result(self) -> ResultDelivery:
        return await asyncio.wait_for(self.results.get(), SOON_S)
