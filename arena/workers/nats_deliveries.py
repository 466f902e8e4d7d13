"""Jobs and results as NATS delivers them; what a receiver says of one may be lost with the bus."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

from nats.aio.msg import Msg

from arena.hosts.nats_connection import NatsConnection
from arena.workers.bus import BusDown
from arena.workers.nats_records import NatsRecords

__all__ = ["NatsDelivery", "NatsJob", "NatsResult"]


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
