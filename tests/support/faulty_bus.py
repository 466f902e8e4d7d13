"""A bus in memory that loses, doubles, delays and reorders whatever a real one may.

How often is said by `Faults`; with a rate of 0 it is a `MemoryBus`. What `arena/workers/bus.py`
promises is kept: a result that was handed in is there until it is acknowledged or all is lost.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from arena.server.background import BackgroundTasks
from arena.workers.bus import BusDown, ResultDelivery
from tests.support.memory_bus import MemoryBroker, MemoryBus

__all__ = ["Faults", "FaultyBus"]

_LATEST_S = 2.0  # by so much a message is late


class Faults:
    """How often something goes wrong, from 0 to 1, and the chance that decides."""

    def __init__(self, rate: float = 0.0, seed: int = 0) -> None:
        self.rate = rate
        self._rng = random.Random(seed)

    def happen(self) -> bool:
        return self._rng.random() < self.rate

    def delay_s(self) -> float:
        return self._rng.random() * _LATEST_S


class FaultyBus(MemoryBus):
    """A client whose messages suffer `faults`."""

    def __init__(self, broker: MemoryBroker, faults: Faults) -> None:
        super().__init__(broker)
        self.faults = faults
        self._doubles = BackgroundTasks()

    def _later(self, call: Callable[..., None], *args: object) -> None:
        """A report, a command or a frame: lost, doubled, or late by a while."""
        faults = self.faults
        if faults.happen():
            return
        super()._later(call, *args)
        if faults.happen():
            asyncio.get_running_loop().call_later(faults.delay_s(), super()._later, call, *args)

    async def report(self, worker: str, data: bytes) -> None:
        await self._delayed()
        await super().report(worker, data)

    async def command(self, worker: str, data: bytes) -> None:
        await self._delayed()
        await super().command(worker, data)

    async def announce(self, arena: str, worker: str, data: bytes) -> bytes:
        await self._lost("the request")
        if self.faults.happen():  # it arrives twice
            opened = self.broker.arenas.get(arena)
            if opened is not None and opened.bus.is_up:
                self._doubles.start(_forget(opened.on_announcement(worker, data)))
        await self._delayed()
        reply = await super().announce(arena, worker, data)
        await self._delayed()
        await self._lost("the reply")
        return reply

    async def put(self, worker_class: str, job: str, data: bytes) -> bool:
        await self._lost("the job")
        is_new = await super().put(worker_class, job, data)
        await self._lost("the acknowledgement")
        return is_new

    async def withdraw(self, worker_class: str, job: str) -> None:
        await self._lost("the order")
        await super().withdraw(worker_class, job)

    async def hand_in(self, arena: str, worker: str, attempt: str, data: bytes) -> None:
        await self._lost("the result")
        await self._delayed()
        await super().hand_in(arena, worker, attempt, data)
        await self._lost("the acknowledgement")

    async def open_arena(
        self,
        arena: str,
        on_report: Callable[[str, bytes], None],
        on_announcement: Callable[[str, bytes], Awaitable[bytes]],
        on_program_request: Callable[[str, bytes], Awaitable[bytes]],
        on_frames: Callable[[str, str, bytes], None],
        on_result: Callable[[ResultDelivery], Awaitable[None]],
    ) -> None:
        async def twice(delivery: ResultDelivery) -> None:
            await asyncio.gather(*(on_result(delivery) for _ in range(1 + self.faults.happen())))

        await super().open_arena(
            arena, on_report, on_announcement, on_program_request, on_frames, twice
        )

    def carries(self) -> bool:
        return super().carries() and not self.faults.happen()

    async def before_reading(self) -> None:
        await self._lost("the result")
        await super().before_reading()

    async def _delayed(self) -> None:
        if self.faults.happen():
            await asyncio.sleep(self.faults.delay_s())

    async def _lost(self, what: str) -> None:
        if self.faults.happen():
            await asyncio.sleep(self.faults.delay_s())
            raise BusDown(f"{what} was lost")


async def _forget(reply: Awaitable[bytes]) -> None:
    await reply
