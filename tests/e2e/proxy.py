"""A long line between a bot and the arena: bytes come later, by at least so much each way, and never out of order.

It stands for the network of a bot that plays from far away. It knows nothing of WebSocket: what it delays is a stream, pings and
messages alike, as a real line does.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

__all__ = ["Proxy"]


class Proxy:
    """Use it as an asynchronous context: inside, `url` leads to the arena the long way.

    Args:
        port: the arena's, on this machine.
        delay_ms: what every byte takes each way at least.
        jitter_ms: what it may take more, at random.
    """

    def __init__(
        self, port: int, delay_ms: float = 60.0, jitter_ms: float = 20.0
    ) -> None:
        self.url = ""
        self._port = port
        self._delay_s = delay_ms / 1000
        self._jitter_s = jitter_ms / 1000
        self._random = random.Random("jitter")
        self._lines: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"ws://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for line in self._lines:
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)

    async def _accept(
        self, near: asyncio.StreamReader, to_near: asyncio.StreamWriter
    ) -> None:
        """A bot has come: connect it, both ways."""
        far, to_far = await asyncio.open_connection("127.0.0.1", self._port)
        for reader, writer in ((near, to_far), (far, to_near)):
            line = asyncio.create_task(self._carry(reader, writer))
            self._lines.add(line)
            line.add_done_callback(self._lines.discard)

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One direction, until its end has arrived, too."""
        line: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        arriving = asyncio.create_task(_deliver(line, writer))
        loop, due = asyncio.get_running_loop(), 0.0
        try:
            while chunk := await _read(reader):
                takes_s = self._delay_s + self._random.uniform(0, self._jitter_s)
                due = max(due, loop.time() + takes_s)  # none overtakes another
                line.put_nowait((due, chunk))
            line.put_nowait((max(due, loop.time() + self._delay_s), b""))
            await arriving
        finally:
            arriving.cancel()
            writer.close()


async def _read(reader: asyncio.StreamReader) -> bytes:
    """Some bytes; none at the end, whether it is a proper one or not."""
    with suppress(ConnectionError):
        return await reader.read(65536)
    return b""


async def _deliver(
    line: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter
) -> None:
    """Hand over what is due, until the end is."""
    loop = asyncio.get_running_loop()
    while True:
        due, chunk = await line.get()
        await asyncio.sleep(due - loop.time())
        if not chunk:
            return
        writer.write(chunk)
