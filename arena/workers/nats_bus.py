"""The bus in NATS with JetStream: which subjects, streams and queues stand for what.

- `arena.report.WORKER`, `arena.command.WORKER`, `arena.frames.ARENA.WORKER.ATTEMPT`: messages
  that may be lost. `arena.announce.ARENA.WORKER`, `arena.program.ARENA.WORKER`: requests.
- Stream `ARENA_JOBS`, `arena.jobs.CLASS.ARENA.JOB`: a work queue with one message per subject, so
  that a job put twice is there once, and one durable consumer per class.
- Stream `ARENA_RESULTS`, `arena.results.ARENA.WORKER.ATTEMPT`: likewise, a consumer per arena. A
  large result is an object of the bucket `records-WORKER`, and its message is empty.

Arenas make streams, consumers and buckets, again after each loss; workers need no right to.
Names of arenas, workers, classes, jobs and attempts are words without dots and spaces.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from nats.aio.msg import Msg
from nats.js.client import JetStreamContext
from nats.js.errors import APIError

from arena.hosts.nats_connection import NatsConnection
from arena.workers.bus import BusAddress, BusDown, JobDelivery, OnMessage, OnRequest, ResultDelivery
from arena.workers.nats_arena import JOBS, ArenaOnBus
from arena.workers.nats_deliveries import NatsJob
from arena.workers.nats_records import LARGEST_IN_MESSAGE, NatsRecords

__all__ = ["BusAddress", "NatsBus", "connect"]

ACK_WAIT_S = 15.0
_FULL = "maximum messages per subject exceeded"


async def connect(
    address: BusAddress, name: str, user: str, *, ack_wait_s: float = ACK_WAIT_S
) -> NatsBus:
    """Connect to a bus as a user: `ARENA_USER`, or the name of a worker.

    `name` is what the server's operator sees.
    Raises `BusDown`, with the reason, if that does not succeed now; later it connects again for
    ever. Raises `UsageError` if a file of the address cannot be read.
    """
    connection = NatsConnection(address, name, user)
    await connection.open()
    return NatsBus(connection, ack_wait_s)


class NatsBus:
    """A client of the bus; a `Bus`."""

    def __init__(self, connection: NatsConnection, ack_wait_s: float) -> None:
        self._connection = connection
        self._records = NatsRecords(connection)
        self._ack_wait_s = ack_wait_s
        self._arena: ArenaOnBus | None = None
        self._classes: set[str] = set()  # whose queues were there

    @property
    def is_up(self) -> bool:
        return self._connection.is_up

    async def close(self) -> None:
        await self.close_arena(forever=False)
        await self._connection.close()

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
        assert self._arena is None, "a client is open for one arena"
        self._arena = ArenaOnBus(arena, self._connection, self._records, self._ack_wait_s)
        await self._arena.make()

        async def reported(message: Msg) -> None:
            on_report(message.subject.split(".")[2], message.data)

        async def framed(message: Msg) -> None:
            worker, attempt = message.subject.split(".")[3:5]
            on_frames(worker, attempt, message.data)

        await self._arena.listen("arena.report.*", reported)
        await self._arena.listen(f"arena.frames.{arena}.*.*", framed)
        await self._arena.answer(f"arena.announce.{arena}.*", on_announcement)
        await self._arena.answer(f"arena.program.{arena}.*", on_program_request)
        self._arena.deliver(on_result)

    async def close_arena(self, *, forever: bool) -> None:
        if self._arena is None:
            return
        opened, self._arena = self._arena, None
        await opened.close()
        if forever:
            with suppress(BusDown):
                await opened.remove()

    async def open_class(self, worker_class: str) -> None:
        opened = self._opened
        opened.classes.add(worker_class)
        await opened.make_class(worker_class)

    async def open_worker(self, worker: str) -> None:
        self._opened.workers.add(worker)
        await self._records.make(worker)

    async def put(self, worker_class: str, job: str, data: bytes) -> bool:
        subject = f"arena.jobs.{worker_class}.{self._opened.name}.{job}"
        return await self._store(subject, data, f"the job {job}")

    async def withdraw(self, worker_class: str, job: str) -> None:
        await self._opened.withdraw(worker_class, job)

    async def command(self, worker: str, data: bytes) -> None:
        await self._connection.publish(f"arena.command.{worker}", data)

    @property
    def _opened(self) -> ArenaOnBus:
        assert self._arena is not None, "the arena is open before it opens classes and puts jobs"
        return self._arena

    # --- for an operator ---

    async def on_reports(self, call: OnMessage) -> None:
        async def reported(message: Msg) -> None:
            call(message.subject.split(".")[2], message.data)

        await self._connection.listen("arena.report.*", reported)

    # --- for workers ---

    async def report(self, worker: str, data: bytes) -> None:
        await self._connection.publish(f"arena.report.{worker}", data)

    async def on_command(self, worker: str, call: Callable[[bytes], None]) -> None:
        async def commanded(message: Msg) -> None:
            call(message.data)

        await self._connection.listen(f"arena.command.{worker}", commanded)

    async def fetch(self, worker_class: str, timeout_s: float) -> JobDelivery | None:
        try:
            if worker_class not in self._classes:
                await self._look_for(worker_class)
            message = await self._connection.pull(JOBS, worker_class, timeout_s)
        except BusDown:
            self._classes.discard(worker_class)
            raise
        if message is None:
            return None
        return NatsJob(self._connection, message, self._ack_wait_s)

    async def _look_for(self, worker_class: str) -> None:
        """Raise `BusDown` if there is no such queue, of which a pull would not tell."""
        await self._connection.streams(
            f"the queue {worker_class}", lambda streams: streams.consumer_info(JOBS, worker_class)
        )
        self._classes.add(worker_class)

    async def announce(self, arena: str, worker: str, data: bytes) -> bytes:
        subject = f"arena.announce.{arena}.{worker}"
        return await self._connection.request(subject, data, f"the arena {arena}")

    async def program_part(self, arena: str, worker: str, data: bytes) -> bytes:
        subject = f"arena.program.{arena}.{worker}"
        return await self._connection.request(subject, data, f"the arena {arena}")

    async def frames(self, arena: str, worker: str, attempt: str, data: bytes) -> None:
        await self._connection.publish(f"arena.frames.{arena}.{worker}.{attempt}", data)

    async def hand_in(self, arena: str, worker: str, attempt: str, data: bytes) -> None:
        if len(data) > LARGEST_IN_MESSAGE:
            await self._records.put(worker, attempt, data)
            data = b""
        subject = f"arena.results.{arena}.{worker}.{attempt}"
        await self._store(subject, data, f"the result of {attempt}")

    async def _store(self, subject: str, data: bytes, doing: str) -> bool:
        """Write a message; False if the stream has one of that subject already."""

        async def publish(streams: JetStreamContext) -> bool:
            try:
                await streams.publish(subject, data)
            except APIError as error:
                if error.description != _FULL:
                    raise
                return False
            return True

        return await self._connection.streams(doing, publish)
