"""When a connection is read, on a transport that keeps reading whatever it was told at first, as that of asyncio before 3.11.4."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from typing import Any, cast

import pytest

from arena.connection import Connection
from arena.timers import Timers
from arena.wire import Owner, Wire
from protocol.messages import Limits


class Eager(asyncio.Transport):
    """Begins to read right after `connection_made`, though it says that it has paused."""

    def __init__(self) -> None:
        super().__init__()
        self.is_paused = False
        self.reads = False

    def begin(self) -> None:
        self.reads = True

    def pause_reading(self) -> None:
        if not self.is_paused:
            self.is_paused, self.reads = True, False

    def resume_reading(self) -> None:
        if self.is_paused:
            self.is_paused, self.reads = False, True


class Door:
    """Has everybody wait, or serves everybody at once."""

    def __init__(self, *, serves: bool) -> None:
        self.serves = serves

    def connected(self, connection: Wire) -> None:
        assert isinstance(connection, Connection)
        if self.serves:
            connection.serve()
        else:
            connection.hold()


@pytest.mark.parametrize("serves", [True, False])
def test_who_is_to_wait_is_not_read_whatever_asyncio_does(serves: bool) -> None:
    async def scenario() -> None:
        door = cast(Owner, Door(serves=serves))
        timers = Timers(asyncio.get_running_loop())
        buffer = cast(Any, memoryview(bytearray(64)))
        connection = Connection(door, Limits(), timers, buffer)
        transport, loop = Eager(), asyncio.get_running_loop()
        loop.call_soon(connection.connection_made, transport)  # as asyncio does
        loop.call_soon(transport.begin)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

        assert transport.reads is serves

        connection.serve()

        assert transport.reads
        connection._set_deadline(None)

    asyncio.run(scenario())


class Gone(Eager):
    """A socket whose peer has closed it: there is no connection any more that could be shut down."""

    def __init__(self) -> None:
        super().__init__()
        self.is_closed = False

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def get_write_buffer_size(self) -> int:
        return 0


def test_who_says_all_and_is_gone_at_once_is_no_fault_of_the_arena() -> None:
    async def scenario() -> None:
        door = cast(Owner, Door(serves=False))
        timers = Timers(asyncio.get_running_loop())
        buffer = cast(Any, memoryview(bytearray(64)))
        connection = Connection(door, Limits(), timers, buffer)
        transport = Gone()
        connection.connection_made(transport)

        connection._write(b"")

        assert transport.is_closed
        connection._set_deadline(None)

    asyncio.run(scenario())


def test_who_rests_is_read_when_its_time_has_come() -> None:
    async def scenario() -> None:
        connection, transport = await welcome()
        now = asyncio.get_running_loop().time()
        connection.rest(now + 1000)
        connection.rest(now)  # the latest counts

        assert not transport.reads

        await asyncio.sleep(0.01)

        assert transport.reads

    asyncio.run(scenario())


@pytest.mark.parametrize("ends", [Connection._cut_later, Connection._read_on])
def test_a_close_ends_a_rest(ends: Callable[[Connection], None]) -> None:
    async def scenario() -> None:
        connection, transport = await welcome()
        connection.rest(asyncio.get_running_loop().time() + 1000)
        ends(connection)

        assert transport.reads
        connection._set_deadline(None)

    asyncio.run(scenario())


def test_who_is_closing_does_not_rest() -> None:
    async def scenario() -> None:
        connection, transport = await welcome()
        connection._cut_later()
        connection.rest(asyncio.get_running_loop().time() + 1000)

        assert transport.reads
        connection._set_deadline(None)

    asyncio.run(scenario())


async def welcome() -> tuple[Connection, Eager]:
    """A connection that is read."""
    door = cast(Owner, Door(serves=True))
    timers = Timers(asyncio.get_running_loop())
    buffer = cast(Any, memoryview(bytearray(64)))
    connection = Connection(door, Limits(), timers, buffer)
    transport = Eager()
    connection.connection_made(transport)
    await asyncio.sleep(0)
    transport.begin()
    connection.hello_received()
    return connection, transport
