"""The standard input and output of a bot that the arena has launched, as the connection of a bot without a WebSocket library.

A line is a frame of JSON, in UTF-8, both ways. To the gateway a `Pipe` is a `Wire` like any other (`arena/server/websocket.py`), but for two
things: there is no network in between, so there are no pings; and a pipe has no close codes, so the bot is told in its
`over` or `refused` why, and then finds the end of its input. What frames mean is the owner's business, and when the process is to end
is its launcher's.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from arena.referee.budget import Budget
from arena.referee.timers import Timer, Timers
from arena.referee.transport import ConnectionOwner
from protocol.codec import Encoding
from protocol.errors import Oversize
from protocol.messages import CLOSE_PROTOCOL, Limits

__all__ = ["Pipe"]

_CLOSE_S = 2.0  # how long a bot may go on after the end of its input before it is cut
_SPACE = b" \t\r"  # what JSON, and a bot that was written on Windows, may have around a message


class Pipe:
    """One bot behind two pipes, as `Wire` describes it; `open` makes one."""

    close_code: Final = None
    close_reason: Final = ""
    min_rtt_ms: Final = None

    def __init__(self, owner: ConnectionOwner, limits: Limits, timers: Timers, peer: str) -> None:
        self.peer = self.address = peer
        self.encoding: Encoding | None = Encoding.JSON
        self.has_link = False
        self.is_open = False
        self.is_behind = False
        self.useless = 0
        self.budget = Budget(limits.unanswered)
        self._owner = owner
        self._limits = limits
        self._timers = timers
        self._loop = asyncio.get_running_loop()
        self._partial = bytearray()  # of a line
        self._inward: asyncio.ReadTransport | None = None
        self._outward: asyncio.WriteTransport | None = None
        self._hello_by: Timer | None = None
        self._closed_by: Timer | None = None
        self._rest: asyncio.TimerHandle | None = None  # what ends it

    @classmethod
    async def open(
        cls,
        owner: ConnectionOwner,
        limits: Limits,
        timers: Timers,
        peer: str,
        stdin_fd: int,
        stdout_fd: int,
    ) -> Pipe:
        """Take over our ends of a bot's pipes, and close them in the end.

        Args:
            owner: what is told.
            limits: what the bot is held to.
            timers: keep its deadlines.
            peer: who it is, for people.
            stdin_fd: what is written here the bot reads.
            stdout_fd: what the bot writes is read here.
        """
        pipe = cls(owner, limits, timers, peer)
        loop = pipe._loop
        with contextlib.ExitStack() as undo:
            writer = undo.enter_context(open(stdin_fd, "wb", buffering=0))
            reader = undo.enter_context(open(stdout_fd, "rb", buffering=0))
            undo.callback(pipe.cut)
            # In this order: whatever comes in can be answered.
            await loop.connect_write_pipe(lambda: _Outward(pipe), writer)
            await loop.connect_read_pipe(lambda: _Inward(pipe), reader)
            undo.pop_all()
        return pipe

    # --- what the owner calls ---

    def silent_since(self, now: float) -> float | None:
        """Never: there is no network in between."""
        return None

    def send(self, frame: bytes, encoding: Encoding) -> None:
        """Write one frame as a line; nothing happens if the connection is closing. A bot that does not read is cut."""
        assert encoding is Encoding.JSON, "the gateway sends what `encoding` says"
        outward = self._outward
        if not self.is_open or outward is None or outward.is_closing():
            return
        outward.write(frame + b"\n")
        waiting = outward.get_write_buffer_size()
        if waiting > self._limits.buffer_bytes:
            self.cut()
            self._owner.overflowed(self, waiting)

    def ping(self, payload: bytes) -> None:
        """Nothing is sent: there is no link to be measured."""

    def rest(self, until: float) -> None:
        """Read nothing until then; what the bot writes meanwhile waits in the pipe."""
        if self._inward is None or not self.is_open:
            return
        if self._rest is not None:
            self._rest.cancel()
        self._inward.pause_reading()
        self._rest = self._loop.call_at(until, self._read_on)

    def close(self, code: int, reason: str = "") -> None:
        """End the bot's input after what was written; it is cut if it does not end its output soon."""
        if not self.is_open:
            return
        self.is_open = False
        if self._outward is not None:
            self._outward.close()
        self._cut_later()

    def cut(self) -> None:
        """Close both pipes, and drop what waits in them."""
        self.is_open = False
        outward = self._outward
        if outward is not None and (
            not outward.is_closing() or outward.get_write_buffer_size()
        ):  # else it is as good as closed, and asyncio would close it twice
            outward.abort()
        if self._inward is not None:
            self._inward.close()

    def hello_received(self) -> None:
        """The bot has said who it is: it may stay."""
        if self._hello_by is not None:
            self._hello_by.cancel()
            self._hello_by = None

    # --- what the two ends call ---

    def _opened(self, inward: asyncio.ReadTransport) -> None:
        self._inward = inward
        self.is_open = True
        self._hello_by = self._timers.after(self._limits.hello_ms / 1000, self.cut)
        self._owner.connected(self)

    def _received(self, data: bytes) -> None:
        """Bytes came in: turn them into lines."""
        arrived = self._loop.time()
        *ends, rest = data.split(b"\n")
        for end in ends:
            if not self._gather(end):
                return
            frame = bytes(self._partial).strip(_SPACE)
            self._partial.clear()
            if frame:
                self._owner.received(self, frame, Encoding.JSON, arrived)
            else:
                self._owner.on_trivial_frame(self)
        self._gather(rest)

    def _gather(self, piece: bytes) -> bool:
        """More of a line, if there is to be more; too long a line is not kept."""
        if not self.is_open:  # closing: nobody hears it
            return False
        size, limit = len(self._partial) + len(piece), self._limits.frame_bytes
        if size <= limit:
            self._partial += piece
            return True
        self._partial.clear()
        what = f"a line of {size} or more"
        error = Oversize(f"expected frames of at most {limit} bytes, got {what}")
        self._owner.misbehaved(self, error)
        self.close(CLOSE_PROTOCOL)  # whatever the owner thinks: the rest of the line is lost
        return False

    def _input_lost(self) -> None:
        """The bot has closed its input: it may have said its last words, but hears nothing more."""
        self._outward = None
        if self.is_open:
            self._cut_later()

    def _output_ended(self) -> None:
        """The bot has closed its output, or we have cut it: nothing more comes."""
        self._read_on()
        self._inward = None
        self.cut()
        self.hello_received()
        if self._closed_by is not None:
            self._closed_by.cancel()
        self._owner.lost(self)

    def _cut_later(self) -> None:
        """Give the bot some time to end; it does not get more by sending more."""
        if self._closed_by is None:
            self._closed_by = self._timers.after(_CLOSE_S, self.cut)
            self._read_on()  # or the end of its output would not be heard

    def _read_on(self) -> None:
        """Its rest is over, if it has one."""
        if self._rest is not None and self._inward is not None:
            self._rest.cancel()
            self._rest = None
            self._inward.resume_reading()


class _Inward(asyncio.Protocol):
    """The arena's end of a bot's standard output."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.ReadTransport), "it is a pipe's"
        self._pipe._opened(transport)

    def data_received(self, data: bytes) -> None:
        self._pipe._received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._pipe._output_ended()


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
