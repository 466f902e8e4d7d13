"""What an arena has in NATS: its streams, queues and subscriptions, and how results come to it.

What is made here is made again after each loss; `arena/workers/nats_bus.py` says what it is for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress

from nats.aio.msg import Msg
from nats.js.api import AckPolicy, ConsumerConfig, DiscardPolicy, RetentionPolicy, StreamConfig
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError, ServerError

from arena.hosts.nats_connection import RETRY_S, NatsConnection
from arena.workers.bus import BusDown, OnRequest, ResultDelivery
from arena.workers.nats_deliveries import NatsResult
from arena.workers.nats_records import NatsRecords

__all__ = ["JOBS", "RESULTS", "ArenaOnBus"]

log = logging.getLogger(__name__)

JOBS, RESULTS = "ARENA_JOBS", "ARENA_RESULTS"
RESULTS_AT_ONCE = 4
REQUESTS_AT_ONCE = 64  # that are answered
PULL_S = 5.0  # how long one request for a result waits
KEPT_S = 30 * 24 * 3600.0  # jobs and results of arenas that never came back


class ArenaOnBus:
    """What an arena has on the bus, and what it listens to.

    Attributes:
        classes, workers: those that queues and buckets are made for.
    """

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

    async def withdraw(self, worker_class: str, job: str) -> None:
        """Take a job back that may be queued."""
        subject = f"arena.jobs.{worker_class}.{self.name}.{job}"
        await self._connection.streams(
            f"withdrawing the job {job}", lambda streams: _delete(streams, JOBS, subject)
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
