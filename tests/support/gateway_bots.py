"""A gateway, and bots by hand: nothing of ours is on their side of the wire.

All of it runs on real sockets, or in virtual time (tests/support/virtual_time.py).
"""

from __future__ import annotations

import asyncio
import json
import random
import struct
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from typing import Any, NamedTuple

import msgpack  # type: ignore[import-untyped]
import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from arena.games.catalogue import GAMES
from arena.games.match import MatchResult
from arena.referee.bot_session import LiveMatch
from arena.referee.referee import Referee
from arena.server.gateway import Gateway
from protocol.messages import Limits, Verdict

__all__ = [
    "HANDSHAKE",
    "LIMITS",
    "SHORT",
    "TIMEOUT_S",
    "AskedBot",
    "GatewayArena",
    "Message",
    "RawBot",
    "StartedProgram",
    "all_of",
    "frame",
    "hello_frame",
    "in_arena",
    "in_arena_with",
    "text_frame",
]

TIMEOUT_S = 20.0  # nothing here takes more than a second or two

LIMITS = Limits(
    decision_ms=2_000,
    bank_ms=2_000,
    hard_ms=4_000,
    start_ms=4_000,
    grace_ms=4_000,
    hello_ms=4_000,
    frame_bytes=16 * 1024,
)

SHORT: dict[str, dict[str, object]] = {
    "ace_king_queen": {"hands": 20},
    "gin_rummy": {"max_rounds": 2, "max_turns": 30},
    "high_low": {"max_shuffles": 1},
    "three_card_poker": {"rounds": 10},
    "blackjack": {"hands": 10},
}
"""Settings of each game with which a match is soon over."""

Message = dict[str, Any]

HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def frame(head: int, payload: bytes = b"", masked: bool = True) -> bytes:
    """A frame by hand; the mask is zero."""
    mask, size = 0x80 * masked, len(payload)
    if size < 126:
        header = struct.pack("!BB", head, mask | size)
    else:
        header = struct.pack("!BBH", head, mask | 126, size)
    return header + bytes(4) * masked + payload


def text_frame(payload: bytes) -> bytes:
    return frame(0x81, payload)


def hello_frame(name: str, **fields: Any) -> bytes:
    """A frame with a hello."""
    message = {"type": "hello", "protocol": 1, "name": name, "games": ["blackjack"]}
    return text_frame(json.dumps({**message, **fields}).encode())


class RawBot:
    """A bot by hand."""

    def __init__(
        self, websocket: ClientConnection, name: str, *, encoding: str = "json", batch: bool = False
    ) -> None:
        self.websocket = websocket
        self.name = name
        self.batch = batch
        self.is_json = encoding == "json"
        self.session = ""
        self.overs: list[Message] = []
        self._waiting: list[Message] = []
        self._random = random.Random(name)

    async def say(self, *messages: Message, **message: Any) -> None:
        """Send a frame: a message, or several in an array."""
        what: Any = list(messages) if messages else message
        await self.websocket.send(json.dumps(what) if self.is_json else msgpack.packb(what))

    async def hear(self) -> Message:
        """The next message."""
        while not self._waiting:
            frame = await self.websocket.recv()
            assert isinstance(frame, str) is self.is_json
            what = json.loads(frame) if self.is_json else msgpack.unpackb(frame)
            assert self.batch or isinstance(what, dict)
            self._waiting = what if isinstance(what, list) else [what]
        return self._waiting.pop(0)

    async def hears(self, kind: str) -> Message:
        """The next message, which must be of that type."""
        message = await self.hear()
        assert message["type"] == kind, message
        return message

    async def hello(self, **fields: Any) -> Message:
        """Say hello and be welcome."""
        await self.say(**self.a_hello(**fields))
        welcome = await self.hears("welcome")
        self.session = welcome["session"]
        return welcome

    def a_hello(self, **fields: Any) -> Message:
        """A hello that is fine but for the fields given."""
        hello = {"type": "hello", "protocol": 1, "name": self.name, "games": list(GAMES)}
        return {**hello, "batch": self.batch, **fields}

    async def ready(self) -> Message:
        """Accept the match that is offered next."""
        match = await self.hears("match")
        await self.say(type="ready", match=match["match"], nonce=f"by {self.name}")
        return match

    async def answer(self, ask: Message, value: Any = None) -> None:
        """Answer a question, by default with any legal answer."""
        await self.say(**self.an_answer(ask, value))

    def an_answer(self, ask: Message, value: Any = None) -> Message:
        """An answer to a question, by default any legal one."""
        value = self.choose(ask["legal"]) if value is None else value
        return {"type": "answer", "match": ask["match"], "ask": ask["ask"], "value": value}

    def choose(self, legal: Any) -> Any:
        if isinstance(legal, dict):
            return self._random.randint(legal["min"], legal["max"])
        return self._random.choice(legal)

    async def play(self, matches: int = 1) -> list[Message]:
        """Play until so many more matches are over."""
        wanted = len(self.overs) + matches
        while len(self.overs) < wanted:
            message = await self.hear()
            match message["type"]:
                case "match":
                    await self.say(type="ready", match=message["match"], nonce=f"by {self.name}")
                case "ask":
                    await self.answer(message)
                case "over":
                    self.overs.append(message)
                case other:
                    raise AssertionError(f"{self.name} heard {other}: {message}")
        return self.overs[-matches:]

    async def plays_on(self) -> None:
        """Play until the connection is closed."""
        with suppress(ConnectionClosed):
            while True:
                await self.play()

    async def refused(self, *, until_over: bool = False) -> tuple[str, str, int | None]:
        """The code and text of the last `refused`, and the close code; it may end with a match."""
        code, text = "", ""
        with suppress(ConnectionClosed):
            while True:
                message = await self.hear()
                if message["type"] == "refused":
                    code, text = message["code"], message["text"]
                elif until_over and message["type"] == "over":
                    break
        return code, text, self.websocket.close_code

    async def closed(self) -> int | None:
        """The close code, once the arena has closed."""
        await self.websocket.wait_closed()
        return self.websocket.close_code

    async def vanish(self) -> None:
        """Lose the connection, without a close."""
        self.websocket.transport.abort()
        await self.websocket.wait_closed()


class AskedBot(NamedTuple):
    """A bot that was asked in a match of Ace-King-Queen against Ben, who plays by himself."""

    bot: RawBot
    ask: Message
    invitation: Message
    table: LiveMatch
    ben: RawBot
    bens: asyncio.Task[list[Message]]


class GatewayArena:
    """A gateway on a free port, and the results of its matches."""

    def __init__(self, gateway: Gateway, port: int) -> None:
        self.gateway = gateway
        self.port = port
        self.url = f"ws://127.0.0.1:{port}"
        self.over: dict[str, tuple[MatchResult, Verdict | None]] = {}
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def stranger(self, name: str = "ann", **options: Any) -> AsyncIterator[RawBot]:
        """A connection that has said nothing yet."""
        async with connect(self.url, compression=None, max_size=None) as websocket:
            yield RawBot(websocket, name, **options)

    @asynccontextmanager
    async def bot(
        self, name: str = "ann", *, tables: int = 1, **options: Any
    ) -> AsyncIterator[RawBot]:
        """A bot that is welcome."""
        async with self.stranger(name, **options) as bot:
            await bot.hello(tables=tables)
            yield bot

    @asynccontextmanager
    async def bots(self, *names: str, **options: Any) -> AsyncIterator[list[RawBot]]:
        """Some bots that are welcome."""
        async with AsyncExitStack() as stack:
            yield [await stack.enter_async_context(self.bot(name, **options)) for name in names]

    @asynccontextmanager
    async def back(self, lost: RawBot, **options: Any) -> AsyncIterator[RawBot]:
        """A bot that has come back: its session is resumed over another connection."""
        async with self.stranger(lost.name, **options) as bot:
            await bot.hello(resume=lost.session)
            yield bot

    @asynccontextmanager
    async def asked(
        self, name: str = "ann", *, hands: int = 4, **options: Any
    ) -> AsyncIterator[AskedBot]:
        """Two bots play; the first has been asked and has not answered yet."""
        async with self.bot(name, **options) as bot, self.bot("ben") as ben:
            table = self.open("ace_king_queen", name, "ben", hands=hands)
            bens = asyncio.create_task(ben.play())
            invitation = await bot.ready()
            ask = await bot.hears("ask")
            yield AskedBot(bot, ask, invitation, table, ben, bens)

    async def refuses(self, name: str = "ann", /, **fields: Any) -> tuple[str, str, int | None]:
        """The code and text with which a hello is refused, and the close code."""
        async with self.stranger(name) as bot:
            await bot.say(**bot.a_hello(**fields))
            return await bot.refused()

    async def answer_to(self, data: bytes) -> bytes:
        """All that the arena sends to these bytes until it closes or cuts the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        received = await all_of(reader)
        writer.close()
        return received

    def open(self, game: str, *names: str, **settings: object) -> LiveMatch:
        """A match between bots that are here."""
        return self.gateway.referee.open(
            GAMES[game],
            GAMES[game].vocabulary.read_settings(settings),
            [self.gateway.players[name] for name in names],
            self.gateway.limits,
            self._on_over,
        )

    async def result(self, table: LiveMatch) -> tuple[MatchResult, Verdict | None]:
        """What came of a match, once it is over."""
        await self.until(lambda: table.id in self.over)
        return self.over[table.id]

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something that a bot or a match brings about."""
        async with self._changed:
            await self._changed.wait_for(holds)

    def plays(self, name: str) -> bool:
        """Whether a bot of that name is connected."""
        player = self.gateway.players.get(name)
        return player is not None and player.connection is not None

    async def still_plays(self) -> None:
        """Two more bots play a match here, whatever has happened before."""
        async with self.bots("well 1", "well 2") as bots:
            table = self.open("ace_king_queen", "well 1", "well 2", hands=4)
            await asyncio.gather(*(bot.play() for bot in bots))
            result, verdict = await self.result(table)
            assert (result.termination.kind.value, verdict) == ("completed", None)

    def listen(self) -> None:
        """Wake `until` on changes of the gateway, too; its previous listener stays."""
        tell = self.gateway.on_change

        def changed() -> None:
            tell()
            self.changed()

        self.gateway.on_change = changed

    def changed(self) -> None:
        asyncio.get_running_loop().call_soon(lambda: asyncio.ensure_future(self._notify()))

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _on_over(self, table: LiveMatch, result: MatchResult, verdict: Verdict | None) -> None:
        self.over[table.id] = (result, verdict)
        self.changed()


async def all_of(reader: asyncio.StreamReader) -> bytes:
    """All that comes until the connection is closed or cut."""
    received = b""
    with suppress(ConnectionError):
        while chunk := await reader.read(65536):
            received += chunk
    return received


def in_arena(**changed: int) -> AbstractAsyncContextManager[GatewayArena]:
    """An arena with these limits beside the usual ones."""
    return in_arena_with(msgspec.structs.replace(LIMITS, **changed))


@asynccontextmanager
async def in_arena_with(limits: Limits, **options: Any) -> AsyncIterator[GatewayArena]:
    """An arena with these limits, whose gateway has these options."""
    gateway = Gateway(Referee(asyncio.get_running_loop().time), limits, **options)
    arena = GatewayArena(gateway, await gateway.open("127.0.0.1", 0))
    gateway.on_change = arena.changed
    try:
        yield arena
    finally:
        await gateway.close()
        await asyncio.sleep(0)  # what the last connections have set off


_LINE_S = 150.0  # for a line that a program is to say, also on a busy machine


class StartedProgram:
    """A program of ours that runs beside the test."""

    def __init__(self, *words: str, **options: Any) -> None:
        self.process: subprocess.Popen[str] = subprocess.Popen(
            [sys.executable, "-m", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            **options,
        )
        self.said = ""

    def until(self, text: str) -> str:
        """Read stderr until a line that has the text; the line.

        A program that does not say it is killed: a thread that reads would outlive the test.
        """
        assert self.process.stderr is not None
        killing = threading.Timer(_LINE_S, self.process.kill)
        killing.start()
        try:
            for line in self.process.stderr:
                self.said += line
                if text in line:
                    return line
        finally:
            killing.cancel()
        raise AssertionError(f"expected a line with {text!r}, got:\n{self.said}")

    def ends(self) -> tuple[int, str, str]:
        """Its exit status, stdout and stderr, once it has ended."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, self.said + err

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
