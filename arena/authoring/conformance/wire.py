"""The connections of `arena check`: an arena's, but slow, fragmented, cut or reworded.

A `CheckEndpoint` replaces an arena's gateway. It puts everything that happens on any connection as
an `Event` into one queue, in order. `BotUnderTest` interprets the events.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from enum import Enum, auto
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias, cast

import msgspec
from websockets.frames import Frame, Opcode
from websockets.http11 import Request

from arena.authoring.conformance import Hint
from arena.games.verdict import Finding
from arena.referee.timers import Timers
from arena.referee.transport import ConnectionOwner, Wire
from arena.sandbox.process import BotPipes
from arena.server.listener import Listeners
from arena.server.stdio import Pipe
from arena.server.tcp import ConnectionContext
from arena.server.websocket import Connection
from protocol.codec import Encoding, encode
from protocol.errors import Malformed, ProtocolError
from protocol.messages import ArenaMessage, Limits

__all__ = [
    "Broke",
    "CheckEndpoint",
    "CheckSocket",
    "Delivery",
    "Disconnected",
    "Event",
    "FrameReceived",
    "Line",
    "Opened",
    "Perturbation",
    "ProcessEnded",
    "fragments",
    "pieces",
]

_BUFFER_BYTES = 256 * 1024
_LINK_S = 0.15  # the longest delay that an arena credits to a link
_PIECE_S = 0.002  # pause after a piece, so that most reads return a single one
_MOST_PIECES = 40
_PING = b"card arena"


class Delivery(Enum):
    """How a frame is written."""

    AT_ONCE = auto()  # as an arena writes
    FRAGMENTS = auto()  # with a ping between two fragments
    SLOWLY = auto()  # late, and in small pieces
    AND_CUT = auto()  # together with the end of the connection, if the system supports that


class Perturbation(NamedTuple):
    """How the wire differs from an arena's; `blame` is the hint if no more precise one fits.

    `dress` changes the form of a message, not its meaning; `is_spaced` adds line breaks to JSON.
    """

    blame: Hint | None = None
    delivery: Delivery = Delivery.AT_ONCE
    dress: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    is_spaced: bool = False

    def encoded(self, message: ArenaMessage, encoding: Encoding) -> bytes:
        """Encode a message as a frame."""
        if self.dress is None:
            return encode(message, encoding)
        dressed = self.dress(msgspec.json.decode(encode(message, Encoding.JSON)))
        if encoding is Encoding.MSGPACK:
            return msgspec.msgpack.encode(dressed)
        frame = msgspec.json.encode(dressed)
        return msgspec.json.format(frame, indent=0) if self.is_spaced else frame


class Opened(NamedTuple):
    """An event: a bot has connected, and the WebSocket is open."""

    wire: Line


class FrameReceived(NamedTuple):
    """A frame has arrived; `arrived` is in seconds of the loop's clock."""

    wire: Wire
    frame: bytes
    encoding: Encoding
    arrived: float


class Broke(NamedTuple):
    """The bot's data is not a WebSocket's, too large, or too much at once."""

    wire: Wire
    error: ProtocolError


class Disconnected(NamedTuple):
    """An event: a connection has ended."""

    wire: Wire


class ProcessEnded(NamedTuple):
    """A process has ended, or was ended for exceeding its limit of memory or processes."""

    finding: Finding


Event: TypeAlias = Opened | FrameReceived | Broke | Disconnected | ProcessEnded


class CheckSocket(Connection):
    """A WebSocket that reports to its endpoint when it opens, and can write perturbed frames."""

    _held: list[bytes] | None = None

    def accept(self, request: Request) -> None:
        super().accept(request)
        if self.is_open:
            assert isinstance(self._owner, CheckEndpoint), "only `CheckEndpoint.open` makes one"
            self._owner.opened(self)

    async def deliver(self, frame: bytes, encoding: Encoding, how: Delivery) -> None:
        first = Opcode.TEXT if encoding is Encoding.JSON else Opcode.BINARY
        if how is Delivery.AT_ONCE:
            self.send(frame, encoding)
        elif how is Delivery.AND_CUT:
            self._cork()
            self.send(frame, encoding)
            self.cut()
        elif how is Delivery.SLOWLY:
            await self._write_slowly(Frame(first, frame).serialize(mask=False))
        else:
            start, middle, end = fragments(frame)
            self._write(Frame(first, start, fin=False).serialize(mask=False))
            self.ping(_PING)
            self._write(Frame(Opcode.CONT, middle, fin=False).serialize(mask=False))
            self.ping(_PING)
            self._write(Frame(Opcode.CONT, end).serialize(mask=False))

    async def _write_slowly(self, frame: bytes) -> None:
        # Hold pongs back: written between the pieces of a frame, they would corrupt it.
        self._held = []
        try:
            await _in_pieces(frame, super()._write)
        finally:
            held, self._held = self._held, None
            for data in held:
                super()._write(data)

    def _write(self, data: bytes | memoryview) -> None:
        if self._held is None:
            super()._write(data)
        else:
            self._held.append(bytes(data))

    def _cork(self) -> None:
        """Make the kernel hold back data until the close, so that both go out together."""
        if self._transport is not None and (cork := getattr(socket, "TCP_CORK", None)):
            self._transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, cork, 1)


class CheckPipe(Pipe):
    """A program's standard input and output; lines cannot be fragmented."""

    async def deliver(self, frame: bytes, encoding: Encoding, how: Delivery) -> None:
        if how is Delivery.SLOWLY:
            await _in_pieces(self._framed(frame, encoding), self._write)
        else:
            self.send(frame, encoding)


Line: TypeAlias = CheckSocket | CheckPipe


async def _in_pieces(data: bytes, write: Callable[[bytes], None]) -> None:
    """Write data late and in small pieces."""
    await asyncio.sleep(_LINK_S)
    for piece in pieces(data):
        write(piece)
        await asyncio.sleep(_PIECE_S)


def pieces(data: bytes) -> Iterator[bytes]:
    """Split data into small pieces, even within a frame's header and a multi-byte character."""
    size = max(7, -(-len(data) // _MOST_PIECES))
    cuts = {0, 1, 2, *range(2, len(data), size), len(data)}
    wide = next((at for at in reversed(range(len(data))) if data[at] >= 0xC0), None)
    if wide is not None and wide >= 2:
        cuts.add(wide + 1)
    for start, end in pairwise(sorted(cut for cut in cuts if cut <= len(data))):
        yield data[start:end]


def fragments(payload: bytes) -> tuple[bytes, bytes, bytes]:
    """Split a payload in three; the first part ends within a multi-byte character if possible."""
    first = next((at for at, byte in enumerate(payload) if byte > 127), 0) + 1
    second = (first + len(payload) + 1) // 2
    return payload[:first], payload[first:second], payload[second:]


class CheckEndpoint(ConnectionOwner):
    """Accepts the bot's connections, and queues their events; `open` sets `url`.

    Attributes:
        context: the context of its WebSockets.
        pongs: how many pings were answered.
        admits: tells whether a first frame is the bot's; None while every connection is accepted.
        strangers: connections without an admitted first frame yet; they cause no events.
    """

    def __init__(self, limits: Limits) -> None:
        self.events: asyncio.Queue[Event] = asyncio.Queue()
        self.url = ""
        self.pongs = 0
        self.admits: Callable[[bytes, Encoding], bool] | None = None
        self.strangers: set[Wire] = set()
        self._address = "", 0
        # `BotUnderTest.greet` applies the real deadline, and reports the fault before this one.
        self._limits = msgspec.structs.replace(limits, hello_ms=2 * limits.hello_ms)
        self._timers = Timers(asyncio.get_running_loop())
        self._listeners = Listeners()
        buffer = memoryview(bytearray(_BUFFER_BYTES))
        self.context = ConnectionContext(self, self._limits, self._timers, buffer)
        self._wires: set[Wire] = set()

    async def open(self, host: str, port: int) -> None:
        """Listen at an address (port 0: any free port); raises `Unreachable` if that fails."""
        port = await self._listeners.open(lambda: CheckSocket(self.context), host, port)
        self._address = host, port
        shown = f"[{host}]" if ":" in host else host
        self.url = f"ws://{shown}:{port}"

    def pause(self) -> None:
        """Refuse connections until `listen_again`."""
        self._listeners.close()

    async def listen_again(self) -> None:
        """Listen at the previous address again; raises `Unreachable` if it is now in use."""
        self._listeners = Listeners()
        await self.open(*self._address)

    async def attach(self, name: str, pipes: BotPipes) -> Line:
        lines = await CheckPipe.open(self, self._limits, self._timers, f"stdio:{name}", pipes)
        assert isinstance(lines, CheckPipe), "it makes one of its own class"
        return lines

    async def next_event(self, until: float) -> Event | None:
        """Return the next event, or None if none comes before `until`, on the loop's clock."""
        try:
            async with asyncio.timeout_at(until):
                return await self.events.get()
        except TimeoutError:
            return None

    def close(self) -> None:
        self._listeners.close()
        for wire in tuple(self._wires):
            wire.cut()

    def opened(self, wire: Line) -> None:
        if self.admits is None:
            self.events.put_nowait(Opened(wire))
        else:
            self.strangers.add(wire)

    # --- called by the connections: `ConnectionOwner` ---

    def connected(self, connection: Wire) -> None:
        self._wires.add(connection)

    def received(self, connection: Wire, frame: bytes, encoding: Encoding, arrived: float) -> None:
        if connection.encoding is None:
            connection.encoding = encoding
        if connection in self.strangers:
            if self.admits is None or not self.admits(frame, encoding):
                return
            self.strangers.remove(connection)
            self.events.put_nowait(Opened(cast(Line, connection)))
        if self.events.qsize() > self._limits.unanswered:
            text = f"more than {self._limits.unanswered:,} frames that nobody waits for"
            self.misbehaved(connection, Malformed(text))
            connection.cut()
            return
        self.events.put_nowait(FrameReceived(connection, frame, encoding, arrived))

    def misbehaved(self, connection: Wire, error: ProtocolError) -> None:
        if connection not in self.strangers:
            self.events.put_nowait(Broke(connection, error))

    def overflowed(self, connection: Wire, waiting: int) -> None:
        self.misbehaved(connection, Malformed(f"{waiting:,} bytes wait to be read by the bot"))

    def ponged(self, connection: Wire, payload: bytes, arrived: float) -> None:
        self.pongs += 1

    def lost(self, connection: Wire) -> None:
        self._wires.discard(connection)
        self.strangers.discard(connection)
        self.events.put_nowait(Disconnected(connection))
