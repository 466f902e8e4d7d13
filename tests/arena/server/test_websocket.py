"""When a connection is read, on a transport that reads too early, as in asyncio before 3.11.4."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Iterator
from typing import TypeAlias, cast

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


class EagerTransport(asyncio.Transport):
    """Begins to read right after `connection_made`, though it says that it has paused.

    It takes all that is written. If its peer has closed it, it cannot be shut down any more.
    """

    def __init__(self, *, has_peer: bool = True) -> None:
        super().__init__()
        self.is_paused = self.reads = self.is_closed = False
        self.written = b""
        self._has_peer = has_peer

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
        if not self._has_peer:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed


class FakeOwner:
    """Has everybody wait, or serves everybody at once."""

    def __init__(self, *, serves: bool) -> None:
        self.serves = serves

    def connected(self, connection: Wire) -> None:
        assert isinstance(connection, Connection)
        if self.serves:
            connection.resume_reading()
        else:
            connection.pause_reading()

    def was_read(self, connection: Wire, took_s: float) -> None:
        pass

    def drained(self, connection: Wire) -> None:
        pass


class SlowEntrance(Entrance):
    """Leaves it to the test when an answer is made; a WebSocket is opened at once."""

    def requested(self, caller: Caller, request: Request) -> None:
        if "Upgrade" in request.headers:
            caller.accept(request)


Opens: TypeAlias = Callable[..., Connection]
Served: TypeAlias = tuple[Connection, EagerTransport]


@pytest.fixture
def opens() -> Iterator[Opens]:
    """Opens connections, whose deadlines end with the test."""
    opened: list[Connection] = []

    def opens(serves: bool = True) -> Connection:
        timers = Timers(asyncio.get_running_loop())
        owner = cast(ConnectionOwner, FakeOwner(serves=serves))
        buffer = memoryview(bytearray(64 * 1024))
        context = ConnectionContext(owner, Limits(), timers, buffer, SlowEntrance())
        opened.append(Connection(context))
        return opened[-1]

    yield opens
    for connection in opened:
        connection._set_deadline(None)


@pytest.mark.parametrize("serves", [True, False])
async def test_who_is_to_wait_is_not_read_whatever_asyncio_does(opens: Opens, serves: bool) -> None:
    connection = opens(serves)
    transport, loop = EagerTransport(), asyncio.get_running_loop()
    loop.call_soon(connection.connection_made, transport)  # as asyncio does
    loop.call_soon(transport.begin)
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert transport.reads is serves

    connection.resume_reading()

    assert transport.reads


async def test_who_says_all_and_is_gone_at_once_is_no_fault_of_the_arena(opens: Opens) -> None:
    connection, transport = opens(False), EagerTransport(has_peer=False)
    connection.connection_made(transport)
    connection._write(b"")

    assert transport.is_closed


# --- rests ---


@pytest.fixture
async def welcome(opens: Opens) -> Served:
    """A connection that is read."""
    connection, transport = opens(), EagerTransport()
    connection.connection_made(transport)
    await asyncio.sleep(0)
    transport.begin()
    connection.hello_received()
    return connection, transport


async def test_who_rests_is_read_when_its_time_has_come(welcome: Served) -> None:
    connection, transport = welcome
    now = asyncio.get_running_loop().time()
    connection.rest(now + 1000)
    connection.rest(now)  # the latest counts

    assert not transport.reads

    async with asyncio.timeout(5):
        while not transport.reads:
            await asyncio.sleep(0)


@pytest.mark.parametrize("ends", [Connection._cut_later, Connection._read_on])
async def test_a_close_ends_a_rest(welcome: Served, ends: Callable[[Connection], None]) -> None:
    connection, transport = welcome
    connection.rest(asyncio.get_running_loop().time() + 1000)
    ends(connection)

    assert transport.reads


async def test_who_is_closing_does_not_rest(welcome: Served) -> None:
    connection, transport = welcome
    connection._cut_later()
    connection.rest(asyncio.get_running_loop().time() + 1000)

    assert transport.reads


# --- one request after another ---


@pytest.fixture
async def asking(opens: Opens) -> Served:
    """A connection that is served, and may ask."""
    connection, transport = opens(), EagerTransport()
    connection.connection_made(transport)
    transport.begin()
    return connection, transport


def comes(connection: Connection, data: bytes) -> None:
    """These bytes, in as many reads as the connection wants."""
    while data:
        buffer = connection.get_buffer(-1)
        now = data[: len(buffer)]
        buffer[: len(now)] = now
        connection.buffer_updated(len(now))
        data = data[len(now) :]


async def test_a_websocket_that_was_asked_for_before_the_answer_was_made_is_read(
    asking: Served,
) -> None:
    connection, transport = asking
    comes(connection, GET)
    comes(connection, UPGRADE)

    assert not transport.reads

    connection.respond(200, [], b"x" * 1_000_000)
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert connection.is_open
    assert transport.reads
    assert connection._buffer_bytes == Limits().buffer_bytes, "no answer is due"


async def test_who_said_its_last_while_it_reads_an_answer_is_closed_after_it(
    asking: Served,
) -> None:
    connection, transport = asking
    comes(connection, GET)
    connection.pause_writing()
    connection.respond(200, [], b"x")
    connection.eof_received()

    assert not transport.is_closed

    connection.resume_writing()

    assert transport.is_closed


async def test_who_said_its_last_with_requests_unanswered_gets_their_answers(
    asking: Served,
) -> None:
    connection, transport = asking
    comes(connection, GET)
    comes(connection, GET)
    connection.respond(200, [], b"first")

    assert connection.eof_received(), "the second has no answer yet"

    await asyncio.sleep(0)
    await asyncio.sleep(0)
    connection.respond(200, [], b"second")

    assert transport.written.endswith(b"second")
    assert transport.is_closed


async def test_little_is_read_of_what_follows_a_request(asking: Served) -> None:
    connection, _ = asking
    most = len(connection.get_buffer(-1))
    comes(connection, GET)

    assert len(connection.get_buffer(-1)) <= 2048 < most


async def test_who_is_to_wait_is_not_read_as_its_request_is_not_whole(asking: Served) -> None:
    connection, transport = asking
    connection.pause_reading()
    comes(connection, GET[:5])  # was on its way

    assert not transport.reads
