"""A bare match server for one game and a thin client: limits for what an arena and a bot can do.

`python -m tests.tools.bench.bare server TABLES BOTS TOGETHER` plays TABLES matches without end
between the first BOTS bots that come, two by two, and sends questions as soon as it has TOGETHER of
them, all those for a bot in one frame. It has no rules, no clock, no sessions and no records: one
seat is asked to open and the other one to respond, whatever they answer. With one bot it is an echo
with the frames of a match. Its first line says where it listens; `/metrics` there has the figures
under the names that an arena uses.

`python -m tests.tools.bench.bare client ENCODING TABLES BOTS TOGETHER` connects BOTS bots to
`ARENA_URL`, each with TABLES matches at once, that give the first legal answer as soon as all of
them have TOGETHER questions. How many share a frame decides what each costs.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import msgspec
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request
from websockets.http11 import Response as HttpResponse

from arena.server.listener import allow_many_files
from protocol.ace_king_queen import OPENINGS, RESPONSES, HandOver
from protocol.messages import VERSION, Limits, Match, Welcome

__all__ = ["GAME", "QUICK_BOT"]

GAME = "ace_king_queen"
"""What is played in all rows over a network: its decisions cost least, so that all else shows."""

QUICK_BOT = "bluffer"
"""A house bot of that game that decides at once."""

_LIMITS = Limits()
_SCORES = (2, -2)
_OPTIONS: dict[str, Any] = {"compression": None, "max_size": None, "ping_interval": None}
_AT_ONCE = 20  # connections that are being opened
_PATIENCE_S = 0.02  # for more questions


class _Heard(msgspec.Struct, gc=False):
    """What either side reads of a message."""

    type: str
    name: str = ""
    match: str = ""
    ask: str = ""
    legal: list[str] = []


_CODECS: dict[bool, tuple[Any, Any]] = {
    True: (msgspec.json.encode, msgspec.json.Decoder(list[_Heard] | _Heard).decode),
    False: (msgspec.msgpack.encode, msgspec.msgpack.Decoder(list[_Heard] | _Heard).decode),
}
"""How frames are written and read, in text or in binary ones."""


class _BareConnection:
    """A WebSocket with the messages that go into its next frame."""

    def __init__(self, websocket: Any, is_text: bool) -> None:
        self._websocket, self._is_text = websocket, is_text
        self._encode, self._decode = _CODECS[is_text]
        self.outbox: list[object] = []

    def read(self, frame: str | bytes) -> list[_Heard]:
        heard = self._decode(frame)
        return heard if isinstance(heard, list) else [heard]

    async def flush(self) -> None:
        if self.outbox:
            frame = self._encode(self.outbox if len(self.outbox) > 1 else self.outbox[0])
            self.outbox.clear()
            await self._websocket.send(frame, text=self._is_text)


class _BareMatch:
    """Hands of two questions each, for one or two seats."""

    def __init__(self, number: int, bots: list[_BareConnection]) -> None:
        self.ids = [f"{number}-{seat}" for seat, _ in enumerate(bots)]
        self._bots = bots
        self._news: list[list[HandOver]] = [[] for _ in bots]
        self._ready = self._asked = 0
        for seat, bot in enumerate(bots):
            bot.outbox.append(Match(self.ids[seat], GAME, seat, ("", ""), {}, _LIMITS, ""))

    def ready(self) -> None:
        self._ready += 1
        if self._ready == len(self._bots):
            self._ask()

    def answer(self) -> None:
        self._asked += 1
        hand, is_response = divmod(self._asked, 2)
        if not is_response:
            over = HandOver(hand, hand % 2, ("A", "K"), "bet", "call", _SCORES, _SCORES)
            for news in self._news:
                news.append(over)
        self._ask()

    def _ask(self) -> None:
        hand, is_response = divmod(self._asked, 2)
        seat = (hand + is_response) % len(self._bots)
        kind, legal = ("respond", RESPONSES) if is_response else ("open", OPENINGS)
        asked: dict[str, object] = {"type": "ask", "match": self.ids[seat], "kind": kind}
        asked["ask"] = str(self._asked)
        asked |= {"round": hand + 1, "card": "AK"[seat], "legal": legal, "news": self._news[seat]}
        asked |= {"bank_ms": _LIMITS.bank_ms, "decision_ms": _LIMITS.decision_ms}
        self._news[seat] = []
        self._bots[seat].outbox.append(asked)


class _BareServer:
    """The connections, and the matches by the ids of their seats."""

    def __init__(self, tables: str, bots: str, together: str) -> None:
        self._tables, self._expected, self._together = int(tables), int(bots), int(together)
        self._bots: list[_BareConnection] = []
        self._matches: dict[str, _BareMatch] = {}
        self._unsent = self._decisions = 0

    async def run(self) -> None:
        """Serve until the process is ended."""
        options = {**_OPTIONS, "process_request": self._figures}
        async with serve(self._enter, "127.0.0.1", 0, **options) as listening:
            port = next(iter(listening.sockets)).getsockname()[1]
            print(f"a prototype at ws://127.0.0.1:{port}", flush=True)
            await listening.serve_forever()

    async def _enter(self, websocket: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            frame = await websocket.recv()
            bot = _BareConnection(websocket, isinstance(frame, str))
            bot.outbox.append(Welcome(VERSION, bot.read(frame)[0].name, "none", _LIMITS))
            self._bots.append(bot)
            if len(self._bots) == self._expected:
                for number in range(self._tables):
                    first = 2 * number % self._expected
                    match = _BareMatch(number, self._bots[first : first + 2])
                    self._matches |= dict.fromkeys(match.ids, match)
            await self._flush()
            async for frame in websocket:
                for heard in bot.read(frame):
                    self._take(heard)
                if self._unsent >= min(self._together, self._tables):
                    await self._flush()

    def _take(self, heard: _Heard) -> None:
        if heard.type == "answer":
            self._matches[heard.match].answer()
            self._decisions += 1
        elif heard.type == "ready":
            self._matches[heard.match].ready()
        self._unsent += 1  # also after the first `ready`: so no question waits for ever

    async def _flush(self) -> None:
        self._unsent = 0
        for bot in self._bots:
            await bot.flush()

    def _figures(self, connection: ServerConnection, request: Request) -> HttpResponse | None:
        if request.path != "/metrics":
            return None
        matches = self._tables if self._matches else 0
        text = f"arena_decisions_total {self._decisions}\narena_matches {matches}\n"
        return connection.respond(HTTPStatus.OK, text)


class _ThinBots:
    """All bots of the process, and how many questions wait for an answer."""

    def __init__(self, encoding: str, tables: str, bots: str, together: str) -> None:
        self._is_text, self._tables = encoding == "json", int(tables)
        self._bots, self._together = int(bots), int(together)
        self._connections: list[_BareConnection] = []
        self._asked, self._has_sent = 0, False
        self._door = asyncio.Semaphore(_AT_ONCE)

    async def run(self) -> None:
        """Play until the connections are closed."""
        allow_many_files()
        sending = asyncio.create_task(self._send_stragglers())
        names = (f"thin-{os.getpid()}-{number}" for number in range(self._bots))
        await asyncio.gather(*map(self._play, names))
        sending.cancel()

    async def _play(self, name: str) -> None:
        hello = {"type": "hello", "protocol": 1, "name": name, "games": [GAME]}
        async with self._door:
            websocket = await connect(os.environ["ARENA_URL"], proxy=None, **_OPTIONS)
            bot = _BareConnection(websocket, self._is_text)
            bot.outbox.append({**hello, "tables": self._tables, "batch": True})
            await bot.flush()
        self._connections.append(bot)
        with suppress(ConnectionClosed):
            while True:
                for heard in bot.read(await websocket.recv(decode=False)):
                    if heard.type == "ask":
                        answer = {"type": "answer", "ask": heard.ask, "value": heard.legal[0]}
                        bot.outbox.append({**answer, "match": heard.match})
                        self._asked += 1
                    elif heard.type == "match":
                        bot.outbox.append({"type": "ready", "match": heard.match, "nonce": "thin"})
                if self._asked >= self._together or self._together == 1:
                    await self._send_all()

    async def _send_stragglers(self) -> None:
        """Send answers that wait for others in vain, as at the start, when few matches are open."""
        while True:
            self._has_sent = False
            await asyncio.sleep(_PATIENCE_S)
            if not self._has_sent:
                await self._send_all()

    async def _send_all(self) -> None:
        self._asked, self._has_sent = 0, True
        for bot in self._connections:
            await bot.flush()


if __name__ == "__main__":
    side = {"server": _BareServer, "client": _ThinBots}[sys.argv[1]]
    asyncio.run(side(*sys.argv[2:]).run())
