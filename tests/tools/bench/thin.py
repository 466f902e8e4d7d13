"""A thin client: bots that give the first legal answer, and do nothing else.

Run as `python -m tests.tools.bench.thin ENCODING TABLES BOTS TOGETHER` it connects BOTS bots to
`ARENA_URL`, each over a connection of its own with TABLES matches at once. They answer as soon as
all of them have TOGETHER questions: how many share a frame decides what each costs, and would
otherwise be left to chance.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from arena.server.listener import allow_many_files
from tests.tools.bench.prototype import GAME

__all__ = ["main"]

_AT_ONCE = 20  # connections that are being opened
_PATIENCE_S = 0.02  # for more questions


class _Heard(msgspec.Struct, gc=False):
    """What a thin client reads of a message."""

    type: str
    match: str | None = None
    ask: str | None = None
    legal: list[str] = []


_Frame = list[_Heard] | _Heard
_CODECS: dict[str, tuple[Any, Any]] = {
    "json": (msgspec.json.encode, msgspec.json.Decoder(_Frame).decode),
    "msgpack": (msgspec.msgpack.encode, msgspec.msgpack.Decoder(_Frame).decode),
}


class _ThinBots:
    """All bots of the process, and the answers that wait until there are `together` of them."""

    def __init__(self, encoding: str, tables: int, together: int) -> None:
        self._tables, self._together = tables, together
        self._encode, self._decode = _CODECS[encoding]
        self._is_text = encoding == "json"
        self._waiting: dict[ClientConnection, list[dict[str, object]]] = {}
        self._asked, self._has_sent = 0, False
        self._door = asyncio.Semaphore(_AT_ONCE)

    async def play(self, name: str) -> None:
        hello = {"type": "hello", "protocol": 1, "name": name, "games": [GAME]}
        hello |= {"tables": self._tables, "batch": True}
        options: dict[str, Any] = {"compression": None, "max_size": None, "ping_interval": None}
        async with self._door:
            websocket = await connect(os.environ["ARENA_URL"], proxy=None, **options)
            await websocket.send(self._encode(hello), text=self._is_text)
        replies = self._waiting[websocket] = []
        with suppress(ConnectionClosed):
            while True:
                frame = self._decode(await websocket.recv(decode=False))
                for heard in frame if isinstance(frame, list) else [frame]:
                    if heard.type == "ask":
                        answer = {"type": "answer", "ask": heard.ask, "value": heard.legal[0]}
                        replies.append(answer | {"match": heard.match})
                        self._asked += 1
                    elif heard.type == "match":
                        replies.append({"type": "ready", "match": heard.match, "nonce": "thin"})
                if self._asked >= self._together or self._together == 1:
                    await self._send_all()

    async def send_stragglers(self) -> None:
        """Send answers that wait for others in vain, as at the start, when few matches are open."""
        while True:
            self._has_sent = False
            await asyncio.sleep(_PATIENCE_S)
            if not self._has_sent:
                await self._send_all()

    async def _send_all(self) -> None:
        self._asked, self._has_sent = 0, True
        for websocket, replies in self._waiting.items():
            if replies:
                frame = self._encode(replies)
                replies.clear()
                await websocket.send(frame, text=self._is_text)


async def main(encoding: str, tables: str, bots: str, together: str) -> None:
    """Play until the connections are closed."""
    allow_many_files()
    thin = _ThinBots(encoding, int(tables), int(together))
    stragglers = asyncio.create_task(thin.send_stragglers())
    names = (f"thin-{os.getpid()}-{number}" for number in range(int(bots)))
    await asyncio.gather(*map(thin.play, names))
    stragglers.cancel()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
