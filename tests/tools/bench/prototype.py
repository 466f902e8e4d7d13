"""A bare match server for one game, as a limit for what an arena over `websockets` can do.

It puts all questions for a bot that it has at a time into one frame. It has no rules, no clock, no
sessions that outlive a connection and no records: one seat is asked to open and the other one to
respond, whatever they answer. It speaks enough of the protocol for our clients.

Run as `python -m tests.tools.bench.prototype TABLES BOTS TOGETHER`, it plays TABLES matches without
end between the first BOTS bots that come, two by two, and sends questions as soon as it has
TOGETHER of them. With one bot it is an echo with the frames of a match. Its first line says where
it listens; `/metrics` there has the figures under the names that an arena uses.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import msgspec
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request
from websockets.http11 import Response as HttpResponse

from protocol.ace_king_queen import OPENINGS, RESPONSES, Card, HandOver
from protocol.codec import Encoding, join
from protocol.messages import VERSION, Answer, Goodbye, Hello, Limits, Match, Ready, Welcome

__all__ = ["GAME", "QUICK_BOT", "main"]

GAME = "ace_king_queen"
"""What is played in all rows over a network: its decisions cost least, so that all else shows."""

QUICK_BOT = "bluffer"
"""A house bot of that game that decides at once."""

_LIMITS = Limits()
_CARDS: tuple[Card, Card] = ("A", "K")
_SCORES = (2, -2)

_Message = Hello | Ready | Answer | Goodbye
_Frame = _Message | list[_Message]
_CODECS: dict[Encoding, tuple[Any, Any]] = {
    Encoding.JSON: (msgspec.json.encode, msgspec.json.Decoder(_Frame).decode),
    Encoding.MSGPACK: (msgspec.msgpack.encode, msgspec.msgpack.Decoder(_Frame).decode),
}


class _FlatQuestion(msgspec.Struct, gc=False, tag_field="type", tag="ask"):
    """An `ask` of either kind, as it travels."""

    match: str
    ask: str
    kind: str
    round: int
    card: Card
    legal: tuple[str, ...]
    news: list[HandOver]
    bank_ms: int = _LIMITS.bank_ms
    decision_ms: int = _LIMITS.decision_ms


class _PresentBot:
    """A connection with the messages that go into its next frame."""

    def __init__(self, websocket: ServerConnection, encoding: Encoding) -> None:
        self._websocket, self._encoding = websocket, encoding
        self._encode, self.decode = _CODECS[encoding]
        self._outbox: list[bytes] = []

    def put(self, message: object) -> None:
        self._outbox.append(self._encode(message))

    async def flush(self) -> None:
        if parts := self._outbox:
            self._outbox = []
            frame = parts[0] if len(parts) == 1 else join(parts, self._encoding)
            await self._websocket.send(frame, text=self._encoding is Encoding.JSON)


class _BareMatch:
    """Hands of two questions each, for one or two seats."""

    def __init__(self, number: int, bots: list[_PresentBot]) -> None:
        self.ids = [f"{number}-{seat}" for seat, _ in enumerate(bots)]
        self._bots = bots
        self._news: list[list[HandOver]] = [[] for _ in bots]
        self._ready = self._asked = 0
        for seat, bot in enumerate(bots):
            bot.put(Match(self.ids[seat], GAME, seat, ("", ""), {}, _LIMITS, ""))

    def ready(self) -> None:
        self._ready += 1
        if self._ready == len(self._bots):
            self._ask()

    def answer(self) -> None:
        self._asked += 1
        hand, is_response = divmod(self._asked, 2)
        if not is_response:
            over = HandOver(hand, hand % 2, _CARDS, "bet", "call", _SCORES, _SCORES)
            for news in self._news:
                news.append(over)
        self._ask()

    def _ask(self) -> None:
        hand, is_response = divmod(self._asked, 2)
        seat = (hand + is_response) % len(self._bots)
        kind, legal = ("respond", RESPONSES) if is_response else ("open", OPENINGS)
        words = (self.ids[seat], str(self._asked), kind, hand + 1, _CARDS[seat], legal)
        self._bots[seat].put(_FlatQuestion(*words, self._news[seat]))
        self._news[seat].clear()


class _PrototypeServer:
    """The connections, and the matches by the ids of their seats."""

    def __init__(self, tables: int, bots: int, together: int) -> None:
        self._tables, self._expected, self._together = tables, bots, together
        self._bots: list[_PresentBot] = []
        self._matches: dict[str, _BareMatch] = {}
        self._unsent = self._decisions = 0

    async def enter(self, websocket: ServerConnection) -> None:
        """Serve one connection to its end."""
        with suppress(ConnectionClosed):
            frame = await websocket.recv()
            bot = _PresentBot(websocket, [Encoding.MSGPACK, Encoding.JSON][isinstance(frame, str)])
            bot.put(Welcome(VERSION, bot.decode(frame).name, "none", _LIMITS))
            self._bots.append(bot)
            if len(self._bots) == self._expected:
                self._seat_all()
            await self._flush()
            async for frame in websocket:
                messages = bot.decode(frame)
                for message in messages if isinstance(messages, list) else [messages]:
                    self._take(message)
                if self._unsent >= min(self._together, self._tables) or not self._decisions:
                    await self._flush()

    def _seat_all(self) -> None:
        for number in range(self._tables):
            first = 2 * number % self._expected
            match = _BareMatch(number, self._bots[first : first + 2])
            self._matches |= dict.fromkeys(match.ids, match)

    def _take(self, message: _Message) -> None:
        if type(message) is Answer:
            self._matches[message.match].answer()
            self._decisions += 1
            self._unsent += 1
        elif type(message) is Ready:
            self._matches[message.match].ready()
            self._unsent += 1  # also of the first seat: so no question waits for ever

    async def _flush(self) -> None:
        self._unsent = 0
        for bot in self._bots:
            await bot.flush()

    def figures(self, connection: ServerConnection, request: Request) -> HttpResponse | None:
        """Answer a request for `/metrics`."""
        if request.path != "/metrics":
            return None
        text = (
            f"arena_decisions_total {self._decisions}\n"
            f"arena_matches {self._tables if self._matches else 0}\n"
        )
        return connection.respond(HTTPStatus.OK, text)


async def main(*words: str) -> None:
    """Serve until the process is ended."""
    server = _PrototypeServer(*map(int, words))
    options: dict[str, Any] = {"compression": None, "max_size": None, "ping_interval": None}
    options["process_request"] = server.figures
    async with serve(server.enter, "127.0.0.1", 0, **options) as listening:
        port = next(iter(listening.sockets)).getsockname()[1]
        print(f"a prototype at ws://127.0.0.1:{port}", flush=True)
        await listening.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
