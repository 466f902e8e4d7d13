"""Which addresses are valid, after which errors to try again, and how a dead link is noticed."""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import (
    InvalidMessage,
    InvalidProxyStatus,
    InvalidStatus,
    WebSocketException,
)
from websockets.frames import Frame, Opcode
from websockets.http11 import Response

from bots.examples.python import session as example
from bots.reach import FrameConnection, begins, check_address, is_to_come, notice_dead_link
from protocol.errors import UsageError
from protocol.messages import Limits, Match


def answered(status: int) -> InvalidStatus:
    """What is raised when something has answered in HTTP, and not as an arena does."""
    return InvalidStatus(Response(status, "", Headers()))


def connected(link: object) -> ClientConnection:
    """A connection over a socket, or over none."""
    transport = SimpleNamespace(get_extra_info=lambda name: link)
    return cast(ClientConnection, SimpleNamespace(transport=transport))


class RefusingSocket:
    """A socket of a system that refuses some options."""

    def __init__(self, *refused: int) -> None:
        self.set: dict[int, int] = {}
        self._refused = refused

    def setsockopt(self, level: int, option: int, value: int) -> None:
        if option in self._refused:
            raise OSError("not supported")
        self.set[option] = value


# --- frames ---


def frames(*messages: str, pieces: int = 1) -> bytes:
    """What a server sends for these messages, each in so many frames."""
    sent = b""
    for message in messages:
        for number, letter in enumerate(message if pieces > 1 else [message]):
            opcode = Opcode.CONT if number else Opcode.TEXT
            is_last = number + 1 == pieces
            sent += Frame(opcode, letter.encode(), fin=is_last).serialize(mask=False)
    return sent


class NotingReader:
    """Notes what is handed over, and handles so many frames of it."""

    def __init__(self, handles: int) -> None:
        self.read: list[list[bytes]] = []
        self._handles = handles

    def __call__(self, frames: Sequence[bytes]) -> int:
        self.read.append([*frames])
        return min(self._handles, len(frames))


@asynccontextmanager
async def linked(reader: NotingReader) -> AsyncIterator[tuple[FrameConnection, list[str]]]:
    """A connection with this reader, and what the server hears over it."""
    heard: list[Any] = []

    async def listen(websocket: ServerConnection) -> None:
        async for message in websocket:
            heard.append(message)

    async with serve(listen, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        url = f"ws://127.0.0.1:{port}"
        async with connect(url, create_connection=FrameConnection) as websocket:
            assert isinstance(websocket, FrameConnection)
            websocket.on_read = reader
            yield websocket, heard


async def test_frames_that_are_read_together_are_handed_over_together() -> None:
    reader = NotingReader(handles=9)
    async with linked(reader) as (websocket, _):
        whole = frames("a", "b", "c")
        websocket.data_received(whole[:-1])
        websocket.data_received(whole[-1:])

        assert reader.read == [[b"a", b"b"], [b"c"]]
        assert websocket.backlog == 0


async def test_frames_that_are_not_handled_are_received_and_so_are_all_until_then() -> None:
    reader = NotingReader(handles=1)
    async with linked(reader) as (websocket, _):
        websocket.data_received(frames("a", "b", "c"))
        websocket.data_received(frames("d"))
        for letter in "bcd":
            assert await websocket.recv() == letter
            websocket.backlog -= 1
        websocket.data_received(frames("e"))

        assert reader.read == [[b"a", b"b", b"c"], [b"e"]]


async def test_a_message_in_pieces_is_received_whole_and_in_its_turn() -> None:
    reader = NotingReader(handles=9)
    async with linked(reader) as (websocket, _):
        websocket.data_received(frames("a") + frames("xyz", pieces=3) + frames("b"))

        assert [await websocket.recv() for _ in range(3)] == ["a", "xyz", "b"]
        assert (websocket.backlog, reader.read) == (3, [])


async def test_what_is_said_is_sent_until_the_connection_closes() -> None:
    async with linked(NotingReader(handles=9)) as (websocket, heard):
        websocket.say(b"text", text=True)
        websocket.say(b"data", text=False)
        await websocket.close()
        websocket.say(b"late", text=True)

    assert heard == ["text", b"data"]


# --- where a match is watched ---


@pytest.mark.parametrize(
    ("url", "page", "place"),
    [
        ("ws://127.0.0.1:7700", "/#/m/m", "http://127.0.0.1:7700/#/m/m"),
        ("wss://arena.example.org/", "/#/m/m", "https://arena.example.org/#/m/m"),
        # Behind a proxy, below a path: which one, the arena knows.
        ("wss://school/arena/", "/arena/#/m/m", "https://school/arena/#/m/m"),
        ("ws://ann:secret@[::1]:80", "/#/m/m", "http://[::1]:80/#/m/m"),
    ],
)
def test_a_match_is_watched_at_the_address_that_its_bot_has_come_by(
    url: str, page: str, place: str
) -> None:
    seats = ("ann", "ben", "cat")
    match = Match("m.1", "high_low", 1, seats, {}, Limits(), "hash", page)

    assert begins(url, match) == f"high_low match m.1 against ann, cat · {place}"
    alone = Match("m.0", "blackjack", 0, ("ann",), {}, Limits(), "hash", page)
    assert begins(url, alone) == f"blackjack match m.0 · {place}"


# --- addresses ---


def test_an_address_says_whether_it_is_encrypted() -> None:
    assert [check_address(url) for url in ("ws://arena:7700", "wss://arena")] == [False, True]


@pytest.mark.parametrize(
    "url",
    ["arena", "http://arena", "ws://", "ws://arena:port", "ws://arena:99999", "ws://[::1", ""],
)
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(UsageError, match="expected an address such as"):
        check_address(url)


# --- attempts ---


@pytest.mark.parametrize(
    ("error", "is_worth_it"),
    [
        *((answered(status), True) for status in (502, 503, 504)),
        (ConnectionRefusedError("refused"), True),
        (TimeoutError("timed out"), True),
        (socket.gaierror(socket.EAI_AGAIN, "try again"), True),
        (InvalidProxyStatus(Response(504, "", Headers())), True),
        (InvalidProxyStatus(Response(407, "", Headers())), False),
        (answered(403), False),
        (InvalidMessage("no HTTP"), False),
        (ssl.SSLCertVerificationError("self-signed"), False),
        (socket.gaierror(socket.EAI_NONAME, "no such name"), False),
    ],
)
def test_an_attempt_is_worth_another_if_an_arena_may_come_up_there(
    error: OSError | WebSocketException, is_worth_it: bool
) -> None:
    assert is_to_come(error) is is_worth_it


@pytest.mark.parametrize(
    ("says", "is_worth_it"), [(b"", True), (b"SSH-2.0-OpenSSH_9.2\r\n", False)]
)
async def test_a_port_that_accepts_and_closes_may_have_an_arena_behind_it_later(
    says: bytes, is_worth_it: bool
) -> None:
    """As a port that Docker or `ssh -L` forwards while nobody listens behind it."""

    async def attempt() -> OSError | WebSocketException:
        async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(says)
            writer.close()

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            try:
                async with connect(f"ws://127.0.0.1:{port}"):
                    pass
            except (OSError, WebSocketException) as error:
                return error
        raise AssertionError("no arena is there")

    assert is_to_come(await attempt()) is is_worth_it


# --- dead links ---


def test_a_dead_link_is_for_the_kernel_to_notice() -> None:
    with socket.socket() as link:
        notice_dead_link(connected(link))

        assert link.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if sys.platform == "linux":
            assert link.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 5
            assert link.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 17000


@pytest.mark.parametrize(
    "notice",
    [lambda link: notice_dead_link(connected(link)), example.notice_dead_link],
    ids=["client", "example"],
)
def test_an_option_that_the_system_refuses_keeps_no_other_from_being_set(
    notice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "TCP_KEEPALIVE", 1016, raising=False)  # as on macOS
    monkeypatch.setattr(socket, "TCP_KEEPCNT", 1006, raising=False)
    monkeypatch.setattr(socket, "TCP_KEEPINTVL", 1005, raising=False)
    link = RefusingSocket(1005)
    notice(link)

    assert link.set[socket.SO_KEEPALIVE] == 1
    assert link.set[1016] == 5
    assert link.set[1006] == 4
