"""A network that can be cut without a word: a proxy that stops forwarding."""

from __future__ import annotations

import asyncio
import contextlib

__all__ = ["StallingProxy"]

_CHUNK_BYTES = 1 << 16


class StallingProxy:
    """Forwards connections to a port of this machine; `port` is its own.

    While it is cut it takes connections and bytes and forwards nothing, as a network does that
    drops every packet. What had come until then is lost when it goes on: its connections are
    closed.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._is_cut = False
        self._ends: list[asyncio.StreamWriter] = []

    async def open(self) -> StallingProxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    def cut(self) -> None:
        self._is_cut = True

    def go_on(self) -> None:
        self._is_cut = False
        self._close_all()

    def close(self) -> None:
        self._server.close()
        self._close_all()

    def _close_all(self) -> None:
        for end in self._ends:
            end.close()
        self._ends.clear()

    async def _accept(self, near: asyncio.StreamReader, to_near: asyncio.StreamWriter) -> None:
        self._ends.append(to_near)
        with contextlib.suppress(OSError):  # nobody listens there now
            far, to_far = await asyncio.open_connection("127.0.0.1", self._target)
            self._ends.append(to_far)
            await asyncio.gather(self._carry(near, to_far), self._carry(far, to_near))
        to_near.close()

    async def _carry(self, one: asyncio.StreamReader, other: asyncio.StreamWriter) -> None:
        while data := await one.read(_CHUNK_BYTES):
            if not self._is_cut:
                other.write(data)
        other.close()
