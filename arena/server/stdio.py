"""Connects launched bots by standard input and output, so that they need no WebSocket library.

A line is a frame of JSON in UTF-8, in both directions. To the gateway, a `Pipe` is a `Wire` like a
WebSocket, with three differences. There is no network, so there are no pings. A pipe has no close
codes, so the bot gets the reason in `over` or `refused`, followed by the end of its input. The
launcher decides how long it may take to say `hello`, and when its process is ended.

If a bot's output begins with a request for a WebSocket, it speaks WebSocket over its pipes, through
the byte pump in its sandbox (`arena/sandbox/relay.py`). The same differences hold for that.
"""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Callable
from typing import Final, Protocol

from websockets.exceptions import PayloadTooBig
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from arena.referee.budget import ON_END, Budget
from arena.referee.timers import Timer, Timers
from arena.referee.transport import ConnectionOwner
from protocol.codec import Encoding
from protocol.errors import Malformed, Oversize
from protocol.messages import CLOSE_CRASHED, CLOSE_DONE, CLOSE_PROTOCOL, Limits

__all__ = ["Pipe", "Pipes"]

_CLOSE_S = 2.0  # for a bot to end its output after the end of its input
_SPACE = b" \t\r"  # around a message: JSON permits it, and Windows ends lines with \r\n
_PIECE_BYTES = 2 * 1024  # of a WebSocket, processed at once: some 20 frames
_REQUEST = b"GET "  # the beginning of a WebSocket
_MARK = codecs.BOM_UTF8  # before a message: C# and PowerShell begin their output with it


class Pipes(Protocol):
    """The arena's ends of a launched bot's standard streams, here or on a host."""

    async def connect(self, inward: asyncio.Protocol, outward: asyncio.BaseProtocol) -> None:
        """Pass the bot's output to `inward`, and the transport for its input to `outward`."""

    def clock(self, now: float) -> float | None:
        """Return when the output that comes now was written; see `LaunchedProcess.clock`."""


class Pipe(asyncio.Protocol):
    """A `Wire` to one bot over two pipes, made by `open`; for asyncio, it reads the bot's output.

    Attributes:
        crash: the reason, if the bot closed its WebSocket with the code for a crash.
    """

    close_code: Final = None
    close_reason: Final = ""
    min_rtt_ms: Final = None

    def __init__(
        self,
        owner: ConnectionOwner,
        limits: Limits,
        timers: Timers,
        peer: str,
        clock: Callable[[float], float | None],
    ) -> None:
        self.peer = self.address = peer
        self.encoding: Encoding | None = Encoding.JSON
        self.has_link = False
        self.is_direct = True
        self.is_open = False
        self.is_behind = False
        self.useless = 0
        self.budget = Budget(limits.unanswered)
        self.crash: str | None = None
        self._websocket: ServerProtocol | None = None
        self._unread = bytearray()  # bytes of a WebSocket
        self._opcode = Opcode.TEXT  # of the message whose beginning is in `_partial`
        self._owner = owner
        self._limits = limits
        self._timers = timers
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        # More at once make no difference to the budget, but would take the loop a second.
        self._most_blank = (ON_END + 1) * limits.unanswered
        self._partial = bytearray()  # the beginning of a line or message
        self._has_read = False
        self._inward: asyncio.ReadTransport | None = None
        self._outward: asyncio.WriteTransport | None = None
        self._closed_by: Timer | None = None
        self._rest: asyncio.TimerHandle | None = None  # ends the pause in reading

    @classmethod
    async def open(
        cls, owner: ConnectionOwner, limits: Limits, timers: Timers, peer: str, pipes: Pipes
    ) -> Pipe:
        """Take over the arena's ends of a bot's pipes; they are closed with the connection."""
        pipe = cls(owner, limits, timers, peer, pipes.clock)
        try:
            await pipes.connect(pipe, _Outward(pipe))
        except BaseException:
            pipe.cut()
            raise
        return pipe

    # --- called by the owner ---

    def silent_since(self, now: float) -> float | None:
        """Return None, as there is no network in between."""
        return None

    def send(self, frame: bytes, encoding: Encoding) -> None:
        """Write a frame, unless the pipe is closing.

        If the bot then has more than `buffer_bytes` left to read, close both pipes.
        """
        if self.is_open:
            self._write(self._framed(frame, encoding))

    def ping(self, payload: bytes) -> None:
        """Do nothing, as there is no link to measure."""

    def rest(self, until: float) -> None:
        if self._inward is None or not self.is_open:
            return
        if self._rest is not None:
            if self._rest.when() == until:
                return
            self._rest.cancel()
        self._inward.pause_reading()
        self._rest = self._loop.call_at(until, self._read_on)

    def close(self, code: int, reason: str = "") -> None:
        """End the bot's input after pending writes; cut the pipe if its output does not end."""
        if not self.is_open:
            return
        if (websocket := self._websocket) is not None:
            if websocket.state is State.OPEN:
                websocket.send_close(CLOSE_DONE)
            self._flush(websocket)
        self.is_open = False
        if self._outward is not None:
            self._outward.close()
        self._cut_later()

    def cut(self) -> None:
        self.is_open = False
        outward = self._outward
        # A transport that is closing with nothing to write is done; asyncio would close it twice.
        if outward is not None and (not outward.is_closing() or outward.get_write_buffer_size()):
            outward.abort()
        if self._inward is not None:
            self._inward.close()

    def hello_received(self) -> None:
        """Do nothing, as there was no deadline."""

    # --- called by asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.ReadTransport), "it is a pipe's"
        self._inward = transport
        self.is_open = True
        self._owner.connected(self)

    def data_received(self, data: bytes) -> None:
        now = self._loop.time()
        arrived = self._clock(now) or now
        if self._websocket is None and not self._has_read and data.startswith(_REQUEST):
            self._websocket = ServerProtocol(max_size=self._limits.frame_bytes)
            self.encoding = None
        self._has_read = True
        if self._websocket is not None:
            if self.is_open:  # otherwise nobody reads it, and a bot may write on and on
                self._unread += data
                self._read_websocket()
            return
        *ends, rest = data.split(b"\n")
        blank = 0
        for end in ends:
            if blank > self._most_blank and not end:
                continue
            if not self._gather(end):
                return
            frame = bytes(self._partial).removeprefix(_MARK).strip(_SPACE)
            self._partial.clear()
            if frame:
                self._owner.received(self, frame, Encoding.JSON, arrived)
            elif (blank := blank + 1) <= self._most_blank:
                self._owner.on_trivial_frame(self)
        self._gather(rest)

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the bot's output, by the bot itself or by a cut."""
        self._read_on()
        self._inward = None
        self.cut()
        if self._closed_by is not None:
            self._closed_by.cancel()
        self._owner.lost(self)

    def _gather(self, piece: bytes) -> bool:
        """Add to the current line; return False if the pipe is closing or the line too long."""
        if not self.is_open:
            return False
        size, limit = len(self._partial) + len(piece), self._limits.frame_bytes
        if size <= limit:
            self._partial += piece
            return True
        self._partial.clear()
        text = f"expected frames of at most {limit} bytes, got a line of {size} or more"
        self._owner.misbehaved(self, Oversize(text))
        self.close(CLOSE_PROTOCOL)  # even if the owner does not: the rest of the line is lost
        return False

    def _read_websocket(self) -> None:
        """Process what has come until the bot has to rest, as tiny frames are much work."""
        while self._unread and self.is_open and self._rest is None:
            data = bytes(self._unread[:_PIECE_BYTES])
            del self._unread[:_PIECE_BYTES]
            now = self._loop.time()
            assert self._websocket is not None, "it was asked for"
            self._take(self._websocket, data, self._clock(now) or now)

    def _take(self, websocket: ServerProtocol, data: bytes, arrived: float) -> None:
        websocket.receive_data(data)
        for event in websocket.events_received():
            if isinstance(event, Request):
                websocket.send_response(websocket.accept(event))
            elif isinstance(event, Frame) and self.is_open:
                self._take_frame(event, arrived)
        error = websocket.parser_exc
        if error is not None and self.is_open:
            limit = self._limits.frame_bytes
            self._owner.misbehaved(
                self,
                Oversize(f"expected frames of at most {limit} bytes: {error}")
                if isinstance(error, PayloadTooBig)
                else Malformed(f"not a WebSocket frame: {error}"),
            )
        self._flush(websocket)
        if websocket.close_rcvd is not None and websocket.close_rcvd.code == CLOSE_CRASHED:
            self.crash = websocket.close_rcvd.reason
        if websocket.handshake_exc is not None or websocket.state in (State.CLOSING, State.CLOSED):
            self.close(CLOSE_PROTOCOL)

    def _take_frame(self, frame: Frame, arrived: float) -> None:
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
            self._opcode = frame.opcode
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT) and frame.fin:
            payload = bytes(self._partial + frame.data)
            self._partial.clear()
            encoding = Encoding.JSON if self._opcode is Opcode.TEXT else Encoding.MSGPACK
            self._owner.received(self, payload, encoding, arrived)
        elif frame.opcode is not Opcode.CLOSE:  # part of a message, or a ping, answered already
            if frame.opcode not in (Opcode.PING, Opcode.PONG):
                self._partial += frame.data
            self._owner.on_trivial_frame(self)

    def _framed(self, frame: bytes, encoding: Encoding) -> bytes:
        if self._websocket is not None:
            opcode = Opcode.TEXT if encoding is Encoding.JSON else Opcode.BINARY
            return Frame(opcode, frame).serialize(mask=False)
        assert encoding is Encoding.JSON, "the gateway sends what `encoding` says"
        return frame + b"\n"

    def _flush(self, websocket: ServerProtocol) -> None:
        """Write the library's answer to the request, its pongs and closes."""
        for data in websocket.data_to_send():
            self._write(data)

    def _write(self, data: bytes) -> None:
        outward = self._outward
        if outward is None or outward.is_closing():
            return
        outward.write(data)
        waiting = outward.get_write_buffer_size()
        if waiting > self._limits.buffer_bytes:
            self.cut()
            self._owner.overflowed(self, waiting)

    def _input_lost(self) -> None:
        """Handle the end of the bot's input; its remaining output is still read."""
        self._outward = None
        if self.is_open:
            self._cut_later()

    def _cut_later(self) -> None:
        """Give the bot some time to end, once: sending more does not extend it."""
        if self._closed_by is None:
            self._closed_by = self._timers.after(_CLOSE_S, self.cut)
            self._read_on()  # otherwise the end of its output would not be noticed

    def _read_on(self) -> None:
        if self._rest is not None and self._inward is not None:
            self._rest.cancel()
            self._rest = None
            self._inward.resume_reading()
            self._read_websocket()


class _Outward(asyncio.BaseProtocol):
    """The arena's end of a bot's standard input."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport), "it is a pipe's"
        self._pipe._outward = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._pipe._input_lost()

    def pause_writing(self) -> None:
        self._pipe.is_behind = True

    def resume_writing(self) -> None:
        self._pipe.is_behind = False
        self._pipe._owner.drained(self._pipe)
