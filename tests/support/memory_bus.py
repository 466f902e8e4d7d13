"""A bus in memory, as `arena/workers/bus.py` describes it: several clients of one broker.

It keeps jobs and results as a work queue of JetStream does: one message per job and per attempt,
delivered again after `ack_wait_s`, gone when it is acknowledged. Reports, commands and frames come
in a later turn of the event loop, and are lost where nobody is there. Time is the event loop's.

A test breaks it by `MemoryBroker.stop`, `start`, `lose_everything`, `redeliver`, and by
`MemoryBus.is_cut`: a client that is cut off sends nothing and hears nothing.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from arena.workers.bus import BusDown, JobDelivery, OnMessage, OnRequest, ResultDelivery

__all__ = ["MemoryBroker", "MemoryBus"]

K = TypeVar("K", bound=Hashable)
RESULTS_AT_ONCE = 4


@dataclass(eq=False)
class StoredMessage(Generic[K]):
    """A message of a work queue; delivered, it is free again at `free_at`, in the loop's time."""

    queue: MessageQueue[K]
    key: K
    data: bytes
    free_at: float = 0.0

    @property
    def is_there(self) -> bool:
        return self.queue.messages.get(self.key) is self

    def hold(self, for_s: float) -> None:
        self.free_at = _now() + for_s
        self.queue.changed()

    def remove(self) -> None:
        if self.is_there:
            del self.queue.messages[self.key]


class MessageQueue(Generic[K]):
    """Messages in the order in which they came, one per key."""

    def __init__(self) -> None:
        self.messages: dict[K, StoredMessage[K]] = {}
        self._waiting: list[asyncio.Future[None]] = []

    def put(self, key: K, data: bytes) -> bool:
        if key in self.messages:
            return False
        self.messages[key] = StoredMessage(self, key, data)
        self.changed()
        return True

    def changed(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    def next_free(self) -> StoredMessage[K] | None:
        now = _now()
        return next((one for one in self.messages.values() if one.free_at <= now), None)

    async def wait(self, most_s: float) -> None:
        """Until there may be a free message, or `most_s` are over."""
        now = _now()
        held = (one.free_at - now for one in self.messages.values() if one.free_at > now)
        wait_s = min(most_s, *held, math.inf)
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await asyncio.wait([future], timeout=None if wait_s == math.inf else max(wait_s, 0))
        finally:
            future.cancel()


@dataclass(eq=False)
class ListeningArena:
    """An arena that listens, and its client."""

    bus: MemoryBus
    on_report: OnMessage
    on_announcement: OnRequest
    on_program_request: OnRequest
    on_frames: Callable[[str, str, bytes], None]
    on_result: Callable[[ResultDelivery], Awaitable[None]]
    classes: set[str] = field(default_factory=set)
    workers: set[str] = field(default_factory=set)
    task: asyncio.Task[None] | None = None


class MemoryBroker:
    """What all clients share; `client()` makes one."""

    def __init__(self, ack_wait_s: float = 15.0) -> None:
        self.ack_wait_s = ack_wait_s
        self.is_up = True
        self.jobs: dict[str, MessageQueue[tuple[str, str]]] = {}  # by class; key: arena, job
        self.classes: set[str] = set()  # that somebody has opened
        self.results: dict[
            str, MessageQueue[tuple[str, str]]
        ] = {}  # by arena; key: worker, attempt
        self.workers: set[str] = set()  # whose results have room
        self.arenas: dict[str, ListeningArena] = {}
        self.commanded: dict[str, list[tuple[MemoryBus, Callable[[bytes], None]]]] = {}
        self.operators: list[tuple[MemoryBus, OnMessage]] = []

    def client(self) -> MemoryBus:
        return MemoryBus(self)

    # --- for tests that break it ---

    def stop(self) -> None:
        """It cannot be reached until `start`; what it holds stays."""
        self.is_up = False
        self._wake()

    def start(self) -> None:
        """It is there again, and arenas that are open make what is missing."""
        self.is_up = True
        for arena in self.arenas.values():
            self.classes |= arena.classes
            self.workers |= arena.workers
        self._wake()

    def lose_everything(self) -> None:
        """As if it had stopped, lost its disk, and started again."""
        self.stop()
        for queue in self._queues():
            queue.messages.clear()
        self.classes.clear()
        self.workers.clear()
        self.start()

    def redeliver(self) -> None:
        """What is delivered and not acknowledged is free at once, as if `ack_wait_s` were over."""
        for queue in self._queues():
            for message in queue.messages.values():
                message.free_at = 0.0
        self._wake()

    def jobs_of(self, worker_class: str) -> MessageQueue[tuple[str, str]]:
        return self.jobs.setdefault(worker_class, MessageQueue())

    def results_of(self, arena: str) -> MessageQueue[tuple[str, str]]:
        return self.results.setdefault(arena, MessageQueue())

    def _queues(self) -> Iterator[MessageQueue[tuple[str, str]]]:
        yield from self.jobs.values()
        yield from self.results.values()

    def _wake(self) -> None:
        for queue in self._queues():
            queue.changed()


class MemoryBus:
    """A client of the broker; a `Bus`."""

    def __init__(self, broker: MemoryBroker) -> None:
        self.broker = broker
        self.is_cut = False
        self.is_closed = False
        self._arena: str | None = None

    @property
    def is_up(self) -> bool:
        return self.broker.is_up and not self.is_cut and not self.is_closed

    async def close(self) -> None:
        await self.close_arena(forever=False)
        self.is_closed = True
        for calls in self.broker.commanded.values():
            calls[:] = [(bus, call) for bus, call in calls if bus is not self]
        self.broker._wake()

    def check(self) -> None:
        if not self.is_up:
            raise BusDown("the bus cannot be reached")

    def carries(self) -> bool:
        """Whether what is said of a delivery arrives; it is not said again."""
        return self.is_up

    async def before_reading(self) -> None:
        """Raises `BusDown` if a result cannot be read now."""
        self.check()

    # --- for arenas ---

    async def open_arena(
        self,
        arena: str,
        on_report: OnMessage,
        on_announcement: OnRequest,
        on_program_request: OnRequest,
        on_frames: Callable[[str, str, bytes], None],
        on_result: Callable[[ResultDelivery], Awaitable[None]],
    ) -> None:
        self.check()
        assert arena not in self.broker.arenas, f"{arena} is open"
        opened = ListeningArena(
            self, on_report, on_announcement, on_program_request, on_frames, on_result
        )
        self._arena = arena
        self.broker.arenas[arena] = opened
        opened.task = asyncio.create_task(self._deliver_results(arena, opened))

    async def close_arena(self, *, forever: bool) -> None:
        if self._arena is None:
            return
        name, self._arena = self._arena, None
        opened = self.broker.arenas.pop(name)
        assert opened.task is not None
        opened.task.cancel()
        await asyncio.gather(opened.task, return_exceptions=True)
        if forever and self.is_up:
            self.broker.results.pop(name, None)
            for queue in self.broker.jobs.values():
                for arena, job in list(queue.messages):
                    if arena == name:
                        del queue.messages[arena, job]

    async def open_class(self, worker_class: str) -> None:
        self._opened.classes.add(worker_class)
        self.check()
        self.broker.classes.add(worker_class)
        self.broker.jobs_of(worker_class).changed()

    async def open_worker(self, worker: str) -> None:
        self._opened.workers.add(worker)
        self.check()
        self.broker.workers.add(worker)

    async def put(self, worker_class: str, job: str, data: bytes) -> bool:
        self.check()
        assert self._arena is not None, "the arena is open before it puts a job"
        return self.broker.jobs_of(worker_class).put((self._arena, job), data)

    async def withdraw(self, worker_class: str, job: str) -> None:
        self.check()
        assert self._arena is not None, "the arena is open before it withdraws a job"
        self.broker.jobs_of(worker_class).messages.pop((self._arena, job), None)

    async def command(self, worker: str, data: bytes) -> None:
        self.check()
        for bus, call in self.broker.commanded.get(worker, ()):
            bus._later(call, data)

    @property
    def _opened(self) -> ListeningArena:
        assert self._arena is not None, "the arena is open before it opens classes and workers"
        return self.broker.arenas[self._arena]

    async def _deliver_results(self, arena: str, opened: ListeningArena) -> None:
        queue = self.broker.results_of(arena)
        async with asyncio.TaskGroup() as group:
            room = asyncio.Semaphore(RESULTS_AT_ONCE)
            while True:
                await room.acquire()
                while not self.is_up or (message := queue.next_free()) is None:
                    await queue.wait(1.0 if not self.is_up else math.inf)
                message.hold(math.inf)  # a real one says `in_progress` until the call returns
                group.create_task(self._deliver_result(message, opened, room))

    async def _deliver_result(
        self,
        message: StoredMessage[tuple[str, str]],
        opened: ListeningArena,
        room: asyncio.Semaphore,
    ) -> None:
        try:
            await opened.on_result(MemoryResult(self, message))
        finally:
            if message.free_at == math.inf:
                message.hold(self.broker.ack_wait_s)
            room.release()

    # --- for an operator ---

    async def on_reports(self, call: OnMessage) -> None:
        self.check()
        self.broker.operators.append((self, call))

    # --- for workers ---

    async def report(self, worker: str, data: bytes) -> None:
        self.check()
        for bus, call in self.broker.operators:
            bus._later(call, worker, data)
        for opened in self.broker.arenas.values():
            opened.bus._later(opened.on_report, worker, data)

    async def on_command(self, worker: str, call: Callable[[bytes], None]) -> None:
        self.check()
        self.broker.commanded.setdefault(worker, []).append((self, call))

    async def fetch(self, worker_class: str, timeout_s: float) -> JobDelivery | None:
        queue = self.broker.jobs_of(worker_class)
        until = _now() + timeout_s
        while True:
            self.check()
            if worker_class not in self.broker.classes:
                raise BusDown(f"there is no queue for the class {worker_class}")
            if message := queue.next_free():
                message.hold(self.broker.ack_wait_s)
                return MemoryJob(self, message)
            if _now() >= until:
                return None
            await queue.wait(until - _now())

    async def announce(self, arena: str, worker: str, data: bytes) -> bytes:
        opened = self._listening(arena)
        return await self._reply(opened.on_announcement(worker, data), opened)

    async def program_part(self, arena: str, worker: str, data: bytes) -> bytes:
        opened = self._listening(arena)
        return await self._reply(opened.on_program_request(worker, data), opened)

    async def frames(self, arena: str, worker: str, attempt: str, data: bytes) -> None:
        self.check()
        if opened := self.broker.arenas.get(arena):
            opened.bus._later(opened.on_frames, worker, attempt, data)

    async def hand_in(self, arena: str, worker: str, attempt: str, data: bytes) -> None:
        self.check()
        self.broker.results_of(arena).put((worker, attempt), data)

    def _listening(self, arena: str) -> ListeningArena:
        self.check()
        opened = self.broker.arenas.get(arena)
        if opened is None or not opened.bus.is_up:
            raise BusDown(f"no arena {arena} answers")
        return opened

    async def _reply(self, reply: Awaitable[bytes], opened: ListeningArena) -> bytes:
        data = await reply
        if not (self.is_up and opened.bus.is_up):
            raise BusDown("the reply was lost")
        return data

    def _later(self, call: Callable[..., None], *args: object) -> None:
        def if_up() -> None:
            if self.is_up:
                call(*args)

        asyncio.get_running_loop().call_soon(if_up)


@dataclass(eq=False)
class MemoryDelivery:
    """A delivery of a message to a client: nothing comes of it while the client is cut off."""

    bus: MemoryBus
    message: StoredMessage[tuple[str, str]]

    async def ack(self) -> None:
        if self.bus.carries():
            self.message.remove()

    async def give_back(self, delay_s: float) -> None:
        if self.bus.carries():
            self.message.hold(delay_s)


class MemoryJob(MemoryDelivery):
    """A `JobDelivery`."""

    @property
    def data(self) -> bytes:
        return self.message.data

    @property
    def ack_wait_s(self) -> float:
        return self.bus.broker.ack_wait_s

    async def in_progress(self) -> None:
        if self.bus.carries():
            self.message.hold(self.ack_wait_s)


class MemoryResult(MemoryDelivery):
    """A `ResultDelivery`."""

    def __init__(self, bus: MemoryBus, message: StoredMessage[tuple[str, str]]) -> None:
        super().__init__(bus, message)
        self.worker, self.attempt = message.key

    async def read(self) -> bytes:
        await self.bus.before_reading()
        if not self.message.is_there:
            raise BusDown("the bus has lost the result")
        return self.message.data


def _now() -> float:
    return asyncio.get_running_loop().time()
