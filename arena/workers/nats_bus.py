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

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress

from nats.aio.msg import Msg
from nats.js.api import AckPolicy, ConsumerConfig, DiscardPolicy, RetentionPolicy, StreamConfig
from nats.js.client import JetStreamContext
from nats.js.errors import APIError, NotFoundError, ServerError

from arena.workers.bus import BusAddress, BusDown, JobDelivery, OnMessage, OnRequest, ResultDelivery
from arena.workers.nats_connection import RETRY_S, NatsConnection
from arena.workers.nats_records import LARGEST_IN_MESSAGE, NatsRecords

__all__ = ["BusAddress", "NatsBus", "connect"]

log = logging.getLogger(__name__)

JOBS, RESULTS = "ARENA_JOBS", "ARENA_RESULTS"
ACK_WAIT_S = 15.0
RESULTS_AT_ONCE = 4
REQUESTS_AT_ONCE = 64  # that are answered
PULL_S = 5.0  # how long one request for a result waits
KEPT_S = 30 * 24 * 3600.0  # jobs and results of arenas that never came back
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
        self._arena: _OpenArena | None = None
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
        self._arena = _OpenArena(arena, self._connection, self._records, self._ack_wait_s)
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
        subject = f"arena.jobs.{worker_class}.{self._opened.name}.{job}"
        await self._connection.streams(
            f"withdrawing the job {job}", lambda streams: _delete(streams, JOBS, subject)
        )

    async def command(self, worker: str, data: bytes) -> None:
        await self._connection.publish(f"arena.command.{worker}", data)

    @property
    def _opened(self) -> _OpenArena:
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


class NatsDelivery:
    """A message of a consumer; nothing happens if the bus cannot be reached."""

    def __init__(self, connection: NatsConnection, message: Msg, ack_wait_s: float) -> None:
        self._connection = connection
        self._message = message
        self._ack_wait_s = ack_wait_s

    async def in_progress(self) -> None:
        await self._say(b"+WPI")

    async def ack(self) -> None:
        """Say so, and wait until the bus has confirmed it."""
        with suppress(BusDown):
            await self._confirmed_ack()

    async def _confirmed_ack(self) -> None:
        await self._connection.request(self._message.reply, b"+ACK", "an acknowledgement")

    async def give_back(self, delay_s: float) -> None:
        await self._say(b"-NAK " + json.dumps({"delay": int(delay_s * 1e9)}).encode())

    async def _say(self, word: bytes) -> None:
        with suppress(BusDown):
            await self._connection.publish(self._message.reply, word)


class NatsJob(NatsDelivery):
    """A `JobDelivery`."""

    @property
    def data(self) -> bytes:
        return self._message.data

    @property
    def ack_wait_s(self) -> float:
        return self._ack_wait_s


class NatsResult(NatsDelivery):
    """A `ResultDelivery`."""

    def __init__(
        self, connection: NatsConnection, records: NatsRecords, message: Msg, ack_wait_s: float
    ) -> None:
        super().__init__(connection, message, ack_wait_s)
        self._records = records
        self.worker, self.attempt = message.subject.split(".")[3:5]

    async def read(self) -> bytes:
        return self._message.data or await self._records.get(self.worker, self.attempt)

    async def ack(self) -> None:
        with suppress(BusDown):
            await self._confirmed_ack()  # no message is to be without its object
            if not self._message.data:
                await self._records.remove(self.worker, self.attempt)

    async def hold(self) -> None:
        """Say for ever that it is being worked on."""
        while True:
            await asyncio.sleep(self._ack_wait_s / 3)
            await self.in_progress()


class _OpenArena:
    """What an arena has on the bus, and what it listens to."""

    def __init__(
        self, name: str, connection: NatsConnection, records: NatsRecords, ack_wait_s: float
    ) -> None:
        self.name = name
        self.classes: set[str] = set()
        self.workers: set[str] = set()
        self._connection = connection
        self._records = records
        self._ack_wait_s = ack_wait_s
        self._is_made = False
        self._subjects: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()
        connection.on_up = self._look_again

    async def listen(self, subject: str, call: Callable[[Msg], Awaitable[None]]) -> None:
        self._subjects.append(subject)
        await self._connection.listen(subject, call)

    async def answer(self, subject: str, on_request: OnRequest) -> None:
        """Answer requests, not many at once."""
        room = asyncio.Semaphore(REQUESTS_AT_ONCE)

        async def reply(message: Msg) -> None:
            try:
                data = await on_request(message.subject.split(".")[3], message.data)
                with suppress(BusDown):
                    await self._connection.publish(message.reply, data)
            finally:
                room.release()

        async def asked(message: Msg) -> None:
            await room.acquire()
            self._spawn(reply(message))

        await self.listen(subject, asked)

    def deliver(self, on_result: Callable[[ResultDelivery], Awaitable[None]]) -> None:
        self._spawn(self._deliver(on_result))

    async def close(self) -> None:
        for subject in self._subjects:
            await self._connection.deafen(subject)
        for task in list(self._tasks):
            task.cancel()
        while self._tasks:  # they may end in others, which give back what came too late
            await asyncio.wait(self._tasks)

    def _look_again(self) -> None:
        self._is_made = False

    def _spawn(self, call: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(call)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("an error while the bus called", exc_info=error)

    # --- streams and consumers ---

    async def make(self) -> None:
        """Make what is missing; what is there stays. Raises `BusDown`."""
        for stream, subjects in ((JOBS, "arena.jobs.>"), (RESULTS, "arena.results.>")):
            config = StreamConfig(
                name=stream,
                subjects=[subjects],
                retention=RetentionPolicy.WORK_QUEUE,
                discard=DiscardPolicy.NEW,
                max_msgs_per_subject=1,
                discard_new_per_subject=True,
                max_age=KEPT_S,
            )
            await self._make_stream(config)
        await self._make_consumer(RESULTS, self.name, f"arena.results.{self.name}.>")
        for worker_class in list(self.classes):
            await self.make_class(worker_class)
        for worker in list(self.workers):
            await self._records.make(worker)
        self._is_made = True

    async def make_class(self, worker_class: str) -> None:
        await self._make_consumer(JOBS, worker_class, f"arena.jobs.{worker_class}.>")

    async def _make_stream(self, config: StreamConfig) -> None:
        await self._connection.streams(
            f"the stream {config.name}", lambda streams: streams.add_stream(config)
        )

    async def _make_consumer(self, stream: str, name: str, filter_subject: str) -> None:
        config = ConsumerConfig(
            durable_name=name,
            filter_subject=filter_subject,
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=self._ack_wait_s,
            max_ack_pending=-1,
        )
        await self._connection.streams(
            f"the queue {name}", lambda streams: streams.add_consumer(stream, config)
        )

    async def remove(self) -> None:
        """Remove what is of this arena alone."""

        async def remove(streams: JetStreamContext) -> None:
            with suppress(NotFoundError):
                await streams.delete_consumer(RESULTS, self.name)
            for stream, subjects in (
                (JOBS, f"arena.jobs.*.{self.name}.>"),
                (RESULTS, f"arena.results.{self.name}.>"),
            ):
                state = (await streams.stream_info(stream, subjects_filter=subjects)).state
                for subject in state.subjects or ():
                    await _delete(streams, stream, subject)

        await self._connection.streams(f"leaving as {self.name}", remove)

    # --- results ---

    async def _deliver(self, on_result: Callable[[ResultDelivery], Awaitable[None]]) -> None:
        room = asyncio.Semaphore(RESULTS_AT_ONCE)
        while True:
            await room.acquire()
            message = await self._next_result()
            result = NatsResult(self._connection, self._records, message, self._ack_wait_s)
            self._spawn(self._give(result, on_result, room))

    async def _next_result(self) -> Msg:
        while True:
            try:
                if not self._is_made:
                    await self.make()
                if message := await self._connection.pull(RESULTS, self.name, PULL_S):
                    return message
            except BusDown as error:
                log.debug("%s", error)
                self._is_made = False
                await asyncio.sleep(RETRY_S)

    async def _give(
        self,
        result: NatsResult,
        on_result: Callable[[ResultDelivery], Awaitable[None]],
        room: asyncio.Semaphore,
    ) -> None:
        holding = asyncio.create_task(result.hold())
        try:
            await on_result(result)
        finally:
            holding.cancel()
            room.release()


async def _delete(streams: JetStreamContext, stream: str, subject: str) -> None:
    """Delete the message of a subject, if it is there.

    After a purge of a subject, consumers of nats-server 2.9.10 deliver nothing that came before it.
    """
    with suppress(NotFoundError, ServerError):  # the latter if it was acknowledged meanwhile
        message = await streams.get_last_msg(stream, subject)
        assert message.seq is not None, "the server says it"
        await streams.delete_msg(stream, message.seq)
