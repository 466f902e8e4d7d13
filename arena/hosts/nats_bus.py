"""The bus in NATS: which subjects stand for what.

- `arena.host.HOST`: what a host says of itself; may be lost.
- `arena.place.HOST`: requests for room.
- `arena.drain.HOST`: an operator's order.

Nothing is kept on the bus. Names of hosts are words without dots and spaces.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from nats.aio.msg import Msg

from arena.hosts.bot_host import BotHost
from arena.hosts.bus import BusDown
from arena.hosts.nats_connection import NatsConnection

__all__ = ["NatsHostBus", "serve"]


class NatsHostBus:
    """The bus for an arena or an operator; a `HostBus`."""

    def __init__(self, connection: NatsConnection) -> None:
        self._connection = connection

    @property
    def is_up(self) -> bool:
        return self._connection.is_up

    async def on_reports(self, call: Callable[[str, bytes], None]) -> None:
        async def reported(message: Msg) -> None:
            call(message.subject.rpartition(".")[2], message.data)

        await self._connection.listen("arena.host.*", reported)

    async def place(self, host: str, data: bytes) -> bytes:
        return await self._connection.request(f"arena.place.{host}", data, f"the host {host}")

    async def drain(self, host: str, data: bytes) -> None:
        await self._connection.publish(f"arena.drain.{host}", data)


async def serve(connection: NatsConnection, host: BotHost) -> None:
    """Have a host report and answer on the bus, for ever; raises `BusDown` if it is not there now.

    Later the bus may be gone: links to arenas go on without it.
    """
    name = host.report.host

    async def place(message: Msg) -> None:
        await connection.publish(message.reply, await host.place(message.data))

    async def drain(message: Msg) -> None:
        host.drain(message.data)

    async def publish(data: bytes) -> None:
        with suppress(BusDown):  # the next report is half a second away
            await connection.publish(f"arena.host.{name}", data)

    await connection.listen(f"arena.place.{name}", place)
    await connection.listen(f"arena.drain.{name}", drain)
    await host.run(publish)
