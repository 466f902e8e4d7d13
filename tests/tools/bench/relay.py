"""A slow network: a program that passes bytes on in both directions, each after the same delay.

Run as `python -m tests.tools.bench.relay DELAY_MS` it leads to the server at `ARENA_URL`; its first
line says where it listens. It is a process of its own, so that it costs neither the server's CPU
time nor the clients'.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio import StreamReader, StreamWriter
from collections import deque

__all__ = ["main"]


async def _pass_on(source: StreamReader, to: StreamWriter, delay_s: float) -> None:
    under_way = deque[bytes]()  # in this order, also if two timers were to swap

    def deliver() -> None:
        if data := under_way.popleft():
            to.write(data)
        else:
            to.close()

    data = b"none yet"
    while data:
        data = await source.read(1 << 16)
        under_way.append(data)
        asyncio.get_running_loop().call_later(delay_s, deliver)


async def main(delay_ms: str) -> None:
    """Pass bytes on until the process is ended."""
    host, port = os.environ["ARENA_URL"].removeprefix("ws://").split(":")
    delay_s = float(delay_ms) / 1000

    async def accept(near: StreamReader, to_near: StreamWriter) -> None:
        far, to_far = await asyncio.open_connection(host, int(port))
        ways = _pass_on(near, to_far, delay_s), _pass_on(far, to_near, delay_s)
        await asyncio.gather(*ways, return_exceptions=True)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    print(f"a relay at ws://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
