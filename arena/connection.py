"""One WebSocket, from the socket's bytes to whole frames and back.

This is the only module that knows WebSocket: it drives `websockets`' sans-I/O protocol from a bare asyncio protocol, which
does 1.6 times the round trips of the library's connection objects (design §4). What frames mean is the owner's business.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from websockets.exceptions import PayloadTooBig
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from protocol.codec import Encoding
from protocol.errors import Malformed, Oversize, ProtocolError
from protocol.messages import Limits

__all__ = ["Connection", "Owner"]

_READ_BYTES = (
    64 * 1024
)  # a buffer that is kept: asyncio else maps and unmaps 256 KiB at every receive
_CLOSE_S = 2.0  # how long a peer may take to answer a close before the socket is cut

GREETING = (
    "Card Arena is running here. Connect a bot by WebSocket to this address; "
    "see `arena connect --help`.\n"
)


class Owner(Protocol):
    """What a connection tells of what happens on it."""

    def connected(self, connection: Connection) -> None:
        """The opening handshake is done."""

    def received(
        self, connection: Connection, frame: bytes, encoding: Encoding, arrived: float
    ) -> None:
        """A whole frame came in, at a time of the loop's monotonic clock, in seconds."""

    def misbehaved(self, connection: Connection, error: ProtocolError) -> None:
        """The peer broke the WebSocket protocol or sent too large a frame; the connection is closing."""

    def overflowed(self, connection: Connection, waiting: int) -> None:
        """More bytes wait for the peer to read than the limit allows; the connection has been cut."""

    def lost(self, connection: Connection) -> None:
        """The connection is gone, whoever closed it."""


class Connection(asyncio.BufferedProtocol):
    """One peer; `owner` hears of its frames."""

    def __init__(self, owner: Owner, limits: Limits) -> None:
        self.peer = "?"
        self.encoding: Encoding | None = None
        self._owner = owner
        self._limits = limits
        self._buffer = memoryview(bytearray(_READ_BYTES))
        self._websocket = ServerProtocol(max_size=limits.frame_bytes)
        self._fragments: list[bytes] = []
        self._opcode = Opcode.TEXT
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._cut: asyncio.TimerHandle | None = None
        self._blamed = False

    # --- what the owner calls ---

    @property
    def close_code(self) -> int | None:
        """The code that the peer closed with, if it did."""
        close = self._websocket.close_rcvd
        return None if close is None else int(close.code)

    @property
    def close_reason(self) -> str:
        """The reason that the peer closed with, as it came."""
        close = self._websocket.close_rcvd
        return "" if close is None else close.reason

    @property
    def is_open(self) -> bool:
        """Whether frames can be sent."""
        return self._transport is not None and self._websocket.state is State.OPEN

    def send(self, frame: bytes, encoding: Encoding) -> None:
        """Write one frame; nothing happens if the connection is closing."""
        if not self.is_open:
            return
        if encoding is Encoding.JSON:
            self._websocket.send_text(frame)
        else:
            self._websocket.send_binary(frame)
        self._flush()
        assert self._transport is not None, "it is open"
        waiting = self._transport.get_write_buffer_size()
        if waiting > self._limits.buffer_bytes:
            self._transport.abort()
            self._owner.overflowed(self, waiting)

    def close(self, code: int, reason: str = "") -> None:
        """Start the closing handshake; the socket is cut if the peer does not answer it."""
        if self._transport is None:
            return
        if self._websocket.state is State.OPEN:
            self._websocket.send_close(
                code, reason.encode()[:120].decode(errors="ignore")
            )
            self._flush()
            self._cut_later()
        elif self._websocket.state is State.CONNECTING:
            self._transport.abort()

    def cut(self) -> None:
        """Drop the socket without a word."""
        if self._transport is not None:
            self._transport.abort()

    def hello_received(self) -> None:
        """The peer has said who it is: it may stay."""
        if self._cut is not None:
            self._cut.cancel()
            self._cut = None

    # --- what asyncio calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A socket was accepted."""
        assert isinstance(transport, asyncio.Transport), "it is a stream's"
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self.peer = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else str(peer)
        self._cut = self._loop.call_later(self._limits.hello_ms / 1000, transport.abort)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes are to be read into."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes came in: turn them into frames."""
        arrived = self._loop.time()
        self._websocket.receive_data(bytes(self._buffer[:nbytes]))
        self._dispatch(arrived)

    def eof_received(self) -> bool:
        """The peer sends no more."""
        self._websocket.receive_eof()
        self._dispatch(self._loop.time())
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed."""
        self._transport = None
        if self._cut is not None:
            self._cut.cancel()
        self._owner.lost(self)

    # --- within ---

    def _dispatch(self, arrived: float) -> None:
        for event in self._websocket.events_received():
            if isinstance(event, Frame):
                self._frame(event, arrived)
            elif isinstance(event, Request):
                self._handshake(event)
        self._flush()
        error = self._websocket.parser_exc
        if error is not None and not isinstance(error, EOFError) and not self._blamed:
            self._blamed = True
            if isinstance(error, PayloadTooBig):
                limit = self._limits.frame_bytes
                self._owner.misbehaved(
                    self, Oversize(f"expected frames of at most {limit} bytes: {error}")
                )
            else:
                self._owner.misbehaved(
                    self, Malformed(f"not a WebSocket frame: {error}")
                )
        if self._websocket.close_expected():
            self._cut_later()

    def _frame(self, frame: Frame, arrived: float) -> None:
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
            self._opcode = frame.opcode
            self._fragments = []
        elif frame.opcode is not Opcode.CONT:
            return  # the library answers pings and closes
        payload = bytes(frame.data)
        if not frame.fin:
            self._fragments.append(payload)
            return
        if self._fragments:
            payload = b"".join((*self._fragments, payload))
            self._fragments = []
        encoding = Encoding.JSON if self._opcode is Opcode.TEXT else Encoding.MSGPACK
        self._owner.received(self, payload, encoding, arrived)

    def _handshake(self, request: Request) -> None:
        if "Upgrade" not in request.headers:
            response = self._websocket.reject(200, GREETING)
        else:
            response = self._websocket.accept(request)
        self._websocket.send_response(response)
        if self._websocket.state is State.OPEN:
            self._owner.connected(self)

    def _flush(self) -> None:
        if self._transport is None:
            return
        for data in self._websocket.data_to_send():
            if data:
                self._transport.write(data)
            elif self._transport.can_write_eof():
                self._transport.write_eof()
            else:
                self._transport.close()

    def _cut_later(self) -> None:
        if self._transport is not None:
            self.hello_received()
            self._cut = self._loop.call_later(_CLOSE_S, self._transport.abort)
