"""When a connection is read, on a transport that reads too early, as in asyncio before 3.11.4.

In each test words say what happens, one after the other:

    waits, gone             its owner does not serve it at once; its peer has closed it
    made, made=late         the connection is made; right after that asyncio begins to read
    turns                   the event loop has two turns
    resumes, holds          the owner has it read on, or wait
    hello                   its hello was received
    rest=1000, cut, read    it rests for so many seconds; it is to be cut in a while; it is read on
    GET, UPGRADE, half      the peer asks for something, or for a WebSocket, or begins to ask
    answer=x                the answer is made
    behind, drained         the peer does not read, and does again
    ends=gets               the peer says its last, and still gets something
    empty                   we say our last
    reads? open? ws? …      what is so now; `until=reads?` in a moment
"""

from __future__ import annotations

import asyncio
import errno
import os
from typing import cast

import pytest
from websockets.http11 import Request

from arena.referee.timers import Timers
from arena.referee.transport import Caller, ConnectionOwner, Wire
from arena.server.entrance import Entrance
from arena.server.tcp import ConnectionContext
from arena.server.websocket import Connection
from protocol.messages import Limits

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
REQUESTS = {"GET": GET, "UPGRADE": UPGRADE, "half": GET[:5]}


class EagerTransport(asyncio.Transport):
    """Begins to read right after `connection_made`, though it says that it has paused.

    It takes all that is written. Without a peer it cannot be shut down any more.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_paused = self.reads = self.is_closed = False
        self.has_peer = True
        self.written = b""

    def begin(self) -> None:
        self.reads = True

    def pause_reading(self) -> None:
        if not self.is_paused:
            self.is_paused, self.reads = True, False

    def resume_reading(self) -> None:
        if self.is_paused:
            self.is_paused, self.reads = False, True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self.has_peer:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed


class SlowEntrance(Entrance):
    """Leaves it to the test when an answer is made; a WebSocket is opened at once."""

    def requested(self, caller: Caller, request: Request) -> None:
        if "Upgrade" in request.headers:
            caller.accept(request)


class OneConnection:
    """A connection, its transport, and the owner, which serves it at once unless it `waits`."""

    def __init__(self) -> None:
        self.serves = True
        self.transport = EagerTransport()
        self.loop = asyncio.get_running_loop()
        buffer = memoryview(bytearray(64 * 1024))
        owner = cast(ConnectionOwner, self)
        context = ConnectionContext(owner, Limits(), Timers(self.loop), buffer, SlowEntrance())
        self.connection = Connection(context)
        self.most = len(self.connection.get_buffer(-1))

    # --- as its owner ---

    def connected(self, connection: Wire) -> None:
        if self.serves:
            self.connection.resume_reading()
        else:
            self.connection.pause_reading()

    def was_read(self, connection: Wire, took_s: float) -> None:
        """It is no player's."""

    def drained(self, connection: Wire) -> None:
        """Nothing waits for that."""

    # --- words ---

    async def does(self, word: str) -> None:
        name, _, about = word.partition("=")
        connection, transport = self.connection, self.transport
        match name:
            case "waits":
                self.serves = False
            case "gone":
                transport.has_peer = False
            case "made" if about:
                self.loop.call_soon(connection.connection_made, transport)  # as asyncio does
                self.loop.call_soon(transport.begin)
            case "made":
                connection.connection_made(transport)
                transport.begin()
            case "turns":
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            case "resumes":
                connection.resume_reading()
            case "holds":
                connection.pause_reading()
            case "hello":
                connection.hello_received()
            case "rest":
                connection.rest(self.loop.time() + float(about))
            case "cut":
                connection._cut_later()
            case "read":
                connection._read_on()
            case "GET" | "UPGRADE" | "half":
                self._comes(REQUESTS[name])
            case "answer":
                connection.respond(200, [], about.encode() * 100_000)
            case "behind":
                connection.pause_writing()
            case "drained":
                connection.resume_writing()
            case "ends":
                assert connection.eof_received() is (about == "gets")
            case "empty":
                connection._write(b"")
            case "said":
                assert transport.written.endswith(about.encode())
            case _:
                assert self._is(name), word

    def _is(self, state: str) -> bool:
        match state:
            case "reads?" | "paused?":
                return self.transport.reads is (state == "reads?")
            case "closed?" | "open?":
                return self.transport.is_closed is (state == "closed?")
            case "little?":
                return len(self.connection.get_buffer(-1)) <= 2048 < self.most
        assert state == "ws?"
        return self.connection.is_open and self.connection._buffer_bytes == Limits().buffer_bytes

    def _comes(self, data: bytes) -> None:
        """These bytes, in as many reads as the connection wants."""
        while data:
            buffer = self.connection.get_buffer(-1)
            now = data[: len(buffer)]
            buffer[: len(now)] = now
            self.connection.buffer_updated(len(now))
            data = data[len(now) :]


ROWS = {
    "who is served is read": "made=late turns reads? resumes reads?",
    "who is to wait is not read, whatever asyncio does": "waits made=late turns paused? resumes reads?",
    "who says all and is gone at once is no fault of the arena": "gone waits made empty closed?",
    # --- rests ---
    "who rests is read when its time has come, the latest": (
        "made hello rest=1000 rest=0.01 paused? until=reads?"
    ),
    "a close ends a rest": "made hello rest=1000 cut reads?",
    "a lost connection ends it, too": "made hello rest=1000 read reads?",
    "who is closing does not rest": "made hello cut rest=1000 reads?",
    # --- one request after another ---
    "a websocket asked for before the answer was made is read after it": (
        "made GET UPGRADE paused? answer=x turns ws? reads?"
    ),
    "who said its last while it reads an answer is closed after it": (
        "made GET behind answer=x ends=gets open? drained closed?"
    ),
    "who said its last with requests unanswered gets their answers": (
        "made GET GET answer=1 ends=gets turns answer=2 said=2 closed?"
    ),
    "little is read of what follows a request": "made GET little?",
    "who is to wait is not read as its request is not whole": "made holds half paused?",
}


@pytest.mark.parametrize("title", ROWS)
async def test_when_a_connection_is_read(title: str) -> None:
    stage = OneConnection()
    try:
        for word in ROWS[title].split():
            if word.startswith("until="):
                async with asyncio.timeout(5):
                    while not stage._is(word.removeprefix("until=")):
                        await asyncio.sleep(0.001)
            else:
                await stage.does(word)
    finally:
        stage.connection._set_deadline(None)
