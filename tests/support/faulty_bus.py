"""A bus in memory that loses, doubles, delays and reorders whatever a real one may.

How often is said by `Faults`; with a rate of 0 it is a `MemoryBus`. What `arena/workers/bus.py`
promises is kept: a result that was handed in is there until it is acknowledged or all is lost.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from arena.server.background import BackgroundTasks
from arena.workers.bus import BusDown, JobDelivery, ResultDelivery
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

    async def fetch(self, worker_class: str, timeout_s: float) -> JobDelivery | None:
        delivery = await super().fetch(worker_class, timeout_s)
        return None if delivery is None else _FaultyJob(self, delivery)

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
            faulty = _FaultyResult(self, delivery)
            if self.faults.happen():
                await asyncio.gather(on_result(faulty), on_result(faulty))
            else:
                await on_result(faulty)

        await super().open_arena(
            arena, on_report, on_announcement, on_program_request, on_frames, twice
        )

    async def _delayed(self) -> None:
        if self.faults.happen():
            await asyncio.sleep(self.faults.delay_s())

    async def _lost(self, what: str) -> None:
        if self.faults.happen():
            await asyncio.sleep(self.faults.delay_s())
            raise BusDown(f"{what} was lost")


async def _forget(reply: Awaitable[bytes]) -> None:
    await reply


class _FaultyJob:
    """A `JobDelivery` whose acknowledgement may be lost."""

    def __init__(self, bus: FaultyBus, delivery: JobDelivery) -> None:
        self._bus = bus
        self._delivery = delivery

    @property
    def data(self) -> bytes:
        return self._delivery.data

    @property
    def ack_wait_s(self) -> float:
        return self._delivery.ack_wait_s

    async def in_progress(self) -> None:
        if not self._bus.faults.happen():
            await self._delivery.in_progress()

    async def ack(self) -> None:
        if not self._bus.faults.happen():
            await self._delivery.ack()

    async def give_back(self, delay_s: float) -> None:
        if not self._bus.faults.happen():
            await self._delivery.give_back(delay_s)


class _FaultyResult:
    """A `ResultDelivery` that may not be read, and whose acknowledgement may be lost."""

    def __init__(self, bus: FaultyBus, delivery: ResultDelivery) -> None:
        self._bus = bus
        self._delivery = delivery
        self.worker, self.attempt = delivery.worker, delivery.attempt

    async def read(self) -> bytes:
        await self._bus._lost("the result")
        return await self._delivery.read()

    async def ack(self) -> None:
        if not self._bus.faults.happen():
            await self._delivery.ack()

    async def give_back(self, delay_s: float) -> None:
        if not self._bus.faults.happen():
            await self._delivery.give_back(delay_s)
