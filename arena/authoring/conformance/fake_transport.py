"""The ends of a bot's connections in `arena check`: the arena's own, which can also be slow, write in fragments, and be lost.

A `CheckEndpoint` stands where a gateway stands in an arena. It understands nothing: whatever happens, on whichever connection, becomes an `Event`
in one queue, in order, and `arena/authoring/conformance/bot.py` makes sense of it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from enum import Enum, auto
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import msgspec
from websockets.frames import Frame, Opcode
from websockets.http11 import Request

from arena.engine.verdict import Finding
from arena.referee.timers import Timers
from arena.referee.transport import Wire
from arena.server.listener import Listeners
from arena.server.stdio import Pipe
from arena.server.websocket import Connection
from protocol.codec import Encoding
from protocol.errors import Malformed, ProtocolError
from protocol.messages import Limits

__all__ = [
    "Broke",
    "CheckEndpoint",
    "Delivery",
    "Disconnected",
    "Event",
    "FrameReceived",
    "Line",
    "Opened",
    "Ponged",
    "ProcessEnded",
    "fragments",
    "pieces",
]

_BUFFER_BYTES = 256 * 1024
_LINK_S = 0.15  # the credit for a link ends there: slower ones are the bot's affair
_PIECE_S = 0.002  # long enough for most reads to come back with one piece
_MOST_PIECES = 40
_PING = b"card arena"


class Delivery(Enum):
    """How a frame is written: as an arena does, in fragments with a ping between them, late and in small pieces, or as the last one.

    Behind the last one the connection is lost: its end comes with the frame, where the system can do that.
    """

    AT_ONCE = auto()
    FRAGMENTS = auto()
    SLOWLY = auto()
    AND_CUT = auto()


class Opened(NamedTuple):
    """A bot has connected, and the WebSocket is open."""

    wire: Line


class FrameReceived(NamedTuple):
    """A frame, and when it arrived, in seconds of the loop's clock."""

    wire: Wire
    frame: bytes
    encoding: Encoding
    arrived: float


class Broke(NamedTuple):
    """What came is no WebSocket, too large, or a flood."""

    wire: Wire
    error: ProtocolError


class Ponged(NamedTuple):
    """A ping of ours was answered."""

    wire: Wire
    payload: bytes


class Disconnected(NamedTuple):
    """A connection has ended."""

    wire: Wire


class ProcessEnded(NamedTuple):
    """The process has ended by itself, or was ended as it held too much; `name` is what it was launched as."""

    name: str
    finding: Finding


Event: TypeAlias = Opened | FrameReceived | Broke | Ponged | Disconnected | ProcessEnded


class _Socket(Connection):
    """A WebSocket that says when it is open, and lets nothing else in between while a frame goes out in pieces."""

    _held: list[bytes] | None = None

    def accept(self, request: Request) -> None:
        super().accept(request)
        if self.is_open:
            endpoint = self._owner
            assert isinstance(endpoint, CheckEndpoint), "who else makes one"
            endpoint.opened(self)

    async def deliver(self, frame: bytes, encoding: Encoding, how: Delivery) -> None:
        """Write one frame in one of four ways."""
        first = Opcode.TEXT if encoding is Encoding.JSON else Opcode.BINARY
        if how is Delivery.AT_ONCE:
            self.send(frame, encoding)
        elif how is Delivery.AND_CUT:
            self._cork()
            self.send(frame, encoding)
            self.cut()
        elif how is Delivery.SLOWLY:
            await asyncio.sleep(_LINK_S)
            await self._write_slowly(Frame(first, frame).serialize(mask=False))
        else:
            *parts, last = fragments(frame)
            opcode = first
            for part in parts:
                self._write(Frame(opcode, part, fin=False).serialize(mask=False))
                self.ping(_PING)
                opcode = Opcode.CONT
            self._write(Frame(opcode, last).serialize(mask=False))

    async def _write_slowly(self, frame: bytes) -> None:
        """Write a frame in pieces; pongs and the like wait for its end, as within a frame they would be a part of it."""
        self._held = []
        try:
            for piece in pieces(frame):
                super()._write(piece)
                await asyncio.sleep(_PIECE_S)
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
        """Have the kernel keep what is written until the socket is closed, so that both go out together."""
        if self._transport is not None and (cork := getattr(socket, "TCP_CORK", None)):
            wire = self._transport.get_extra_info("socket")
            wire.setsockopt(socket.IPPROTO_TCP, cork, 1)


class _Lines(Pipe):
    """Standard input and output, which know no fragments."""

    async def deliver(self, frame: bytes, encoding: Encoding, how: Delivery) -> None:
        """Write one line in one of two ways."""
        outward = self._outward
        if how is not Delivery.SLOWLY:
            self.send(frame, encoding)
            return
        await asyncio.sleep(_LINK_S)
        for piece in pieces(frame + b"\n"):
            if outward is not None and not outward.is_closing():
                outward.write(piece)
            await asyncio.sleep(_PIECE_S)


Line: TypeAlias = _Socket | _Lines


def pieces(data: bytes) -> Iterator[bytes]:
    """Some bytes in small pieces, the first ones so small that a frame's header comes apart, and one that ends within a letter if it can."""
    size = max(7, -(-len(data) // _MOST_PIECES))
    cuts = {0, 1, 2, *range(2, len(data), size), len(data)}
    wide = next((at for at in reversed(range(len(data))) if data[at] >= 0xC0), None)
    if wide is not None and wide >= 2:
        cuts.add(wide + 1)
    for start, end in pairwise(sorted(cut for cut in cuts if cut <= len(data))):
        yield data[start:end]


def fragments(payload: bytes) -> tuple[bytes, bytes, bytes]:
    """A payload in three parts, parted within a letter if one of them takes several bytes, and in the middle of the rest."""
    wide = next((at for at, byte in enumerate(payload) if byte > 127), 0)
    first = wide + 1
    second = (first + len(payload) + 1) // 2
    return payload[:first], payload[first:second], payload[second:]


class CheckEndpoint:
    """Where the bot connects to, if it does, and all that is heard of it.

    Attributes:
        events: all that happened, in order.
        url: the address; empty before `open`.
    """

    def __init__(self, limits: Limits) -> None:
        self.events: asyncio.Queue[Event] = asyncio.Queue()
        self.url = ""
        self._address = "", 0
        # Whoever waits for `hello` here says so itself, before the connection is cut.
        self._limits = msgspec.structs.replace(limits, hello_ms=2 * limits.hello_ms)
        self._timers = Timers(asyncio.get_running_loop())
        self._listeners = Listeners()
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._wires: set[Wire] = set()

    async def open(self, host: str, port: int) -> None:
        """Listen; port 0 is a free one.

        Raises:
            Unreachable: the address cannot be listened on.
        """
        port = await self._listeners.open(self._make, host, port)
        self._address = host, port
        shown = f"[{host}]" if ":" in host else host
        self.url = f"ws://{shown}:{port}"

    def pause(self) -> None:
        """Accept nobody at the address until `listen_again`."""
        self._listeners.close()

    async def listen_again(self) -> None:
        """Accept connections where they were accepted before.

        Raises:
            Unreachable: another program has taken the port meanwhile.
        """
        self._listeners = Listeners()
        await self._listeners.open(self._make, *self._address)

    async def attach(self, name: str, stdin_fd: int, stdout_fd: int) -> Line:
        """Take over our ends of a `stdio` program's pipes."""
        peer = f"stdio:{name}"
        fds = stdin_fd, stdout_fd
        lines = await _Lines.open(self, self._limits, self._timers, peer, *fds)
        assert isinstance(lines, _Lines), "it makes one of its own class"
        return lines

    def close(self) -> None:
        """Listen no more, and cut all that is connected."""
        self._listeners.close()
        for wire in tuple(self._wires):
            wire.cut()

    def _make(self) -> _Socket:
        return _Socket(self, self._limits, self._timers, self._buffer)

    def ended(self, name: str, finding: Finding) -> None:
        """For the launcher: a process has ended."""
        self.events.put_nowait(ProcessEnded(name, finding))

    def opened(self, wire: Line) -> None:
        """A WebSocket is open."""
        self.events.put_nowait(Opened(wire))

    # --- what connections tell: `Owner` ---

    def connected(self, connection: Wire) -> None:
        """A socket; nobody has said anything yet."""
        self._wires.add(connection)

    def received(self, connection: Wire, frame: bytes, encoding: Encoding, arrived: float) -> None:
        """A whole frame came in."""
        if connection.encoding is None:
            connection.encoding = encoding
        if self.events.qsize() > self._limits.unanswered:
            text = f"more than {self._limits.unanswered:,} frames that nobody waits for"
            self.misbehaved(connection, Malformed(text))
            connection.cut()
            return
        self.events.put_nowait(FrameReceived(connection, frame, encoding, arrived))

    def misbehaved(self, connection: Wire, error: ProtocolError) -> None:
        """What came is no frame."""
        self.events.put_nowait(Broke(connection, error))

    def overflowed(self, connection: Wire, waiting: int) -> None:
        """The bot does not read."""
        text = f"{waiting:,} bytes wait to be read by the bot"
        self.misbehaved(connection, Malformed(text))

    def ponged(self, connection: Wire, payload: bytes, arrived: float) -> None:
        """A ping was answered."""
        self.events.put_nowait(Ponged(connection, payload))

    def was_read(self, connection: Wire, took_s: float) -> None:
        """Nobody is in a hurry here."""

    def on_trivial_frame(self, connection: Wire) -> None:
        """A ping, or a part of a frame, is fine."""

    def drained(self, connection: Wire) -> None:
        """Nobody waits for that."""

    def lost(self, connection: Wire) -> None:
        """The connection has ended."""
        self._wires.discard(connection)
        self.events.put_nowait(Disconnected(connection))
