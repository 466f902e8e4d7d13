"""A bare match server for Ace-King-Queen, as a limit for what an arena over `websockets` can do.

It puts all questions for a bot that it has at a time into one frame. It has no clock, no sessions
that outlive a connection, no records, and its cards are not fair. It speaks enough of the protocol
for our clients: `welcome`, `match`, `ask` and `over`.

Run as `python -m tests.tools.bench.prototype TABLES BOTS TOGETHER`, it plays TABLES matches without
end between the first BOTS bots that come, two by two, and sends questions as soon as it has
TOGETHER of them. With `echo` instead of all three it asks every bot the same question again and
again, which is a bare echo with the frames of a match. Its first line says where it listens;
`/metrics` there has the decisions and the CPU time under the names that an arena uses.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from itertools import permutations
from random import random
from typing import Any

import msgspec
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request
from websockets.http11 import Response as HttpResponse

from arena.games.ace_king_queen import ANTE, BET, RANK
from protocol.ace_king_queen import CARDS, OPENINGS, RESPONSES, Card, HandOver, Opening, Response
from protocol.codec import Encoding, join
from protocol.messages import VERSION, Answer, Goodbye, Hello, Limits, Match, Ready, Welcome

__all__ = ["GAME", "QUICK_BOT", "main"]

GAME = "ace_king_queen"
"""What is played in all rows over a network: its decisions cost least, so that all else shows."""

QUICK_BOT = "bluffer"
"""A house bot of that game that decides at once."""

_LIMITS = Limits()
_DEALS: tuple[tuple[Card, Card], ...] = tuple(permutations(CARDS, 2))

_Message = Hello | Ready | Answer | Goodbye
_Frame = _Message | list[_Message]
_ENCODE: dict[Encoding, Any] = {
    Encoding.JSON: msgspec.json.encode,
    Encoding.MSGPACK: msgspec.msgpack.encode,
}
_DECODE: dict[Encoding, Any] = {
    Encoding.JSON: msgspec.json.Decoder(_Frame).decode,
    Encoding.MSGPACK: msgspec.msgpack.Decoder(_Frame).decode,
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
        self._websocket = websocket
        self.is_text = encoding is Encoding.JSON
        self.encode = _ENCODE[encoding]
        self._encoding = encoding
        self._outbox: list[bytes] = []

    def put(self, message: object) -> None:
        self._outbox.append(self.encode(message))

    async def flush(self) -> None:
        if parts := self._outbox:
            self._outbox = []
            frame = parts[0] if len(parts) == 1 else join(parts, self._encoding)
            await self._websocket.send(frame, text=self.is_text)


class _BareTable:
    """A match by rules A, with nobody who measures time."""

    def __init__(self, ids: tuple[str, str], bots: list[_PresentBot]) -> None:
        self._ids, self._bots = ids, bots
        self._news: tuple[list[HandOver], list[HandOver]] = ([], [])
        self._ready = self._round = self._turn = self._asked = 0
        self._opened: Opening | None = None
        self._cards: tuple[Card, Card] = ("A", "K")
        self._scores = (0, 0)
        for seat, bot in enumerate(bots):
            bot.put(Match(ids[seat], GAME, seat, ("", ""), {}, _LIMITS, ""))

    def ready(self) -> None:
        """Deal when both have said so."""
        self._ready += 1
        if self._ready == len(self._bots):
            self._deal()

    def answer(self, seat: int, answer: Answer) -> None:
        """Go on after an answer; raises `ValueError` if it is not legal."""
        legal: tuple[str, ...] = OPENINGS if self._opened is None else RESPONSES
        value: Any = answer.value
        if seat != self._turn or answer.ask != str(self._asked) or value not in legal:
            raise ValueError(f"expected one of {legal} from seat {self._turn}, got {answer}")
        if self._opened is not None:
            self._settle(1 - seat, self._opened, value)
        elif value == "bet":
            self._opened = "bet"
            self._ask(1 - seat, "respond", RESPONSES)
        else:
            self._settle(seat, "check", None)

    def _deal(self) -> None:
        self._round += 1
        self._opened, self._cards = None, _DEALS[int(random() * len(_DEALS))]
        self._ask((self._round - 1) % 2, "open", OPENINGS)

    def _ask(self, seat: int, kind: str, legal: tuple[str, ...]) -> None:
        self._turn = seat
        self._asked += 1
        match, ask, news = self._ids[seat], str(self._asked), self._news[seat]
        card = self._cards[seat]
        self._bots[seat].put(_FlatQuestion(match, ask, kind, self._round, card, legal, news))
        news.clear()

    def _settle(self, bettor: int, opened: Opening, response: Response | None) -> None:
        cards, stake = self._cards, ANTE + BET if response == "call" else ANTE
        winner = 0 if RANK[cards[0]] < RANK[cards[1]] else 1
        if response == "fold":
            winner = bettor
        paid = (stake, -stake) if winner == 0 else (-stake, stake)
        self._scores = (self._scores[0] + paid[0], self._scores[1] + paid[1])
        news = HandOver(self._round, bettor, self._cards, opened, response, paid, self._scores)
        self._news[0].append(news)
        self._news[1].append(news)
        self._deal()


class _PrototypeServer:
    """The connections, and the seats of all matches by their ids."""

    def __init__(self, tables: int, bots: int, together: int) -> None:
        self._together, self._unsent = together, 0
        self.decisions = self.matches = 0
        self._tables, self._pairs = tables, bots // 2
        self._bots: list[_PresentBot] = []
        self._seats: dict[str, tuple[_BareTable, int]] = {}

    async def serve(self, websocket: ServerConnection) -> None:
        """Serve one connection to its end."""
        bot, decode = await _admit(websocket)
        self._bots.append(bot)
        if len(self._bots) == 2 * self._pairs:
            self._seat_all()
        await self._flush()
        async for frame in websocket:
            messages = decode(frame)
            for message in messages if isinstance(messages, list) else [messages]:
                self._take(message)
            if self._unsent >= min(self._together, self.matches) or not self.decisions:
                await self._flush()

    def _seat_all(self) -> None:
        self.matches = self._tables
        for number in range(self._tables):
            ids = (f"{number}-0", f"{number}-1")
            first = 2 * (number % self._pairs)
            table = _BareTable(ids, self._bots[first : first + 2])
            self._seats |= {match: (table, seat) for seat, match in enumerate(ids)}

    def _take(self, message: _Message) -> None:
        if type(message) is Answer:
            table, seat = self._seats[message.match]
            table.answer(seat, message)
            self.decisions += 1
            self._unsent += 1
        elif type(message) is Ready:
            self._seats[message.match][0].ready()

    async def _flush(self) -> None:
        self._unsent = 0
        for bot in self._bots:
            await bot.flush()


class _EchoServer:
    """Asks every bot the same question again, as soon as it has answered."""

    def __init__(self) -> None:
        self.decisions = 0
        self.matches = 1

    async def serve(self, websocket: ServerConnection) -> None:
        """Serve one connection to its end."""
        bot, _ = await _admit(websocket)
        await bot.flush()
        news = HandOver(1, 0, ("A", "K"), "bet", "call", (2, -2), (2, -2))
        question = bot.encode(_FlatQuestion("0-0", "1", "open", 2, "A", OPENINGS, [news]))
        await websocket.send(question, text=bot.is_text)
        async for _ in websocket:
            self.decisions += 1
            await websocket.send(question, text=bot.is_text)


async def _admit(
    websocket: ServerConnection,
) -> tuple[_PresentBot, Callable[[str | bytes], _Frame]]:
    """Read `hello`, and answer it."""
    frame = await websocket.recv()
    encoding = Encoding.JSON if isinstance(frame, str) else Encoding.MSGPACK
    decode = _DECODE[encoding]
    hello = decode(frame)
    bot = _PresentBot(websocket, encoding)
    bot.put(Welcome(VERSION, hello.name, "none", _LIMITS))
    return bot, decode


async def main(*words: str) -> None:
    """Serve until the process is ended."""
    server = _EchoServer() if words == ("echo",) else _PrototypeServer(*map(int, words))

    async def enter(websocket: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            await server.serve(websocket)

    def figures(connection: ServerConnection, request: Request) -> HttpResponse | None:
        if request.path != "/metrics":
            return None
        decisions, cpu_s = server.decisions, time.process_time()
        text = (
            f"arena_decisions_total {decisions}\narena_matches {server.matches}\n"
            f"process_cpu_seconds_total {cpu_s}\n"
        )
        return connection.respond(HTTPStatus.OK, text)

    options: dict[str, Any] = {"compression": None, "max_size": None, "ping_interval": None}
    async with serve(enter, "127.0.0.1", 0, process_request=figures, **options) as listening:
        port = next(iter(listening.sockets)).getsockname()[1]
        print(f"a prototype at ws://127.0.0.1:{port}", flush=True)
        await listening.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
