"""A slow network: a program that passes bytes on in both directions, each after the same delay.

Run as `python -m tests.tools.bench.relay HOST PORT DELAY_MS`; its first line says where it listens.
It is a process of its own, so that it costs neither the server's CPU time nor the clients'.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque

__all__ = ["main"]


class _Direction(asyncio.Protocol):
    """Reads from one side, and writes to `to` when the delay has passed."""

    def __init__(self, delay_s: float) -> None:
        self.to: _Direction | None = None
        self.transport: asyncio.Transport | None = None
        self._delay_s = delay_s
        self._loop = asyncio.get_running_loop()
        self._under_way = deque[bytes]()  # in this order, also if two timers were to swap

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "it is TCP's"
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._under_way.append(data)
        self._loop.call_later(self._delay_s, self._deliver)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.to is not None and self.to.transport is not None:
            self.to.transport.close()

    def _deliver(self) -> None:
        data = self._under_way.popleft()
        if self.to is not None and self.to.transport is not None:
            self.to.transport.write(data)


class _Accepted(_Direction):
    """A client's side; it opens the other one, and reads nothing before that is there."""

    def __init__(self, host: str, port: int, delay_s: float) -> None:
        super().__init__(delay_s)
        self._server = host, port

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self.transport is not None, "just made"
        self.transport.pause_reading()
        self._opening = self._loop.create_task(self._open())

    async def _open(self) -> None:
        far = _Direction(self._delay_s)
        far.to = self
        await self._loop.create_connection(lambda: far, *self._server)
        self.to = far
        assert self.transport is not None, "made before"
        self.transport.resume_reading()


async def main(host: str, port: str, delay_ms: str) -> None:
    """Pass bytes on until the process is ended."""
    delay_s = float(delay_ms) / 1000
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Accepted(host, int(port), delay_s), "127.0.0.1", 0)
    print(f"a relay at ws://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
