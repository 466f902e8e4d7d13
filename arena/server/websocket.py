"""WebSockets: whole frames in and out of a connection.

Besides pipes (`arena/server/stdio.py`), this is the only module that knows WebSocket. It drives the
sans-I/O protocol of `websockets` from a bare asyncio protocol, which makes 1.6 times as many round
trips as the library's connection objects.
"""

from __future__ import annotations

import socket
import ssl
import time
from contextlib import suppress

from websockets.exceptions import PayloadTooBig
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from arena.referee.budget import Budget
from arena.referee.transport import Caller, ConnectionOwner
from arena.server.http import HttpConnection, HttpTurn
from arena.server.tcp import CLOSE_S, ConnectionContext
from protocol.codec import Encoding
from protocol.errors import Malformed, Oversize, ProtocolError

__all__ = ["Connection"]

_REASON_BYTES = 120  # RFC 6455 allows 123
_HELLO_BYTES = 16 * 1024  # most bytes of a message before the peer has logged in
_TRIFLES = 16  # useless messages in a row that may be chance
_SMALL_READ_BYTES = 2 * 1024  # read at once from a peer that sends more: some 20 frames
_LATE_BYTES = 16 * 1024  # that an honest peer may have sent before it sees our close


class Connection(HttpConnection):
    """A `Wire` to one peer over WebSocket, which passes each frame to its owner."""

    __slots__ = (
        "_blamed",
        "_fragments",
        "_has_little_to_say",
        "_late_bytes",
        "_opcode",
        "_websocket",
        "budget",
        "encoding",
        "has_link",
        "useless",
    )

    def __init__(self, context: ConnectionContext, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(context, tls)
        self.has_link = True
        self.useless = 0
        self.budget = Budget(context.limits.unanswered)
        self.encoding: Encoding | None = None
        self._websocket: ServerProtocol | None = None
        self._fragments = bytearray()
        self._opcode = Opcode.TEXT
        self._blamed = False
        self._late_bytes = 0  # read since the close began
        self._has_little_to_say = False

    @property
    def _caller(self) -> Caller:
        return self

    # --- called by the owner ---

    @property
    def close_code(self) -> int | None:
        websocket = self._websocket
        if websocket is None or websocket.close_rcvd is None:
            return None
        if not websocket.close_rcvd_then_sent:
            return None
        return int(websocket.close_rcvd.code)

    @property
    def close_reason(self) -> str:
        websocket = self._websocket
        if websocket is None or websocket.close_rcvd is None:
            return ""
        return websocket.close_rcvd.reason

    def send(self, frame: bytes, encoding: Encoding) -> None:
        if self.is_open:
            opcode = Opcode.TEXT if encoding is Encoding.JSON else Opcode.BINARY
            self._write(Frame(opcode, frame).serialize(mask=False))

    def close(self, code: int, reason: str = "") -> None:
        websocket = self._websocket
        if websocket is None:
            self.cut()
            return
        if not self.is_open:
            return
        if websocket.state is State.OPEN:  # otherwise it is closing already
            text = reason.encode()[:_REASON_BYTES].decode(errors="ignore")
            websocket.send_close(code, text)
        self._flush()
        self._cut_later()

    def ping(self, payload: bytes) -> None:
        if self.is_open:
            self._write(Frame(Opcode.PING, payload).serialize(mask=False))

    def hello_received(self) -> None:
        self._welcome(self._limits.frame_bytes)

    def accept(self, request: Request) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        most = min(_HELLO_BYTES, self._limits.frame_bytes)
        websocket = ServerProtocol(state=State.OPEN, max_size=most)
        response = websocket.accept(request)
        if response.status_code == 101:
            self._http, self._websocket = None, websocket
            self.is_open = True
            # Earlier answers may have changed the limits, and paused reading.
            transport.set_write_buffer_limits()
            self._buffer_bytes = self._limits.buffer_bytes
            if not self._is_held:
                transport.resume_reading()
            self._write(response.serialize())  # before any frame of ours
        else:
            self._write(response.serialize())
            self._end()

    def hand_to(self, owner: ConnectionOwner, *, frame_bytes: int, buffer_bytes: int) -> None:
        self._owner = owner
        self._has_little_to_say = True  # read small pieces, so that a burst is noticed early
        self._buffer_bytes = buffer_bytes
        if self._transport is not None:
            # Otherwise the kernel buffers megabytes for a peer that does not read.
            tcp: socket.socket = self._transport.get_extra_info("socket")
            with suppress(OSError):
                tcp.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes // 2)
        self._welcome(frame_bytes)

    # --- called by asyncio ---

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._has_little_to_say or self.useless > _TRIFLES:
            return self._buffer[:_SMALL_READ_BYTES]
        http = self._http
        if http is not None and (self._turn is not HttpTurn.ASK or http.has_unread):
            return self._buffer[:_SMALL_READ_BYTES]  # otherwise requests would pile up
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._is_watched:
            self._watched(nbytes)
            return
        arrived = self._loop.time()
        self._sent_at = None
        websocket = self._websocket
        assert websocket is not None, "a peer in HTTP is watched"
        websocket.receive_data(bytes(self._buffer[:nbytes]))
        self._dispatch(websocket, arrived)

    def eof_received(self) -> bool:
        if self._handshaking is not None:
            return False  # during a TLS handshake nothing can be written
        websocket = self._websocket
        if websocket is not None:
            websocket.receive_eof()
            self._dispatch(websocket, self._loop.time())
            return False
        has_more = self._http is not None and self._http.has_unread
        is_done = self._turn is HttpTurn.IDLE and not has_more
        if self._closing or self._transport is None or is_done:
            return False
        self._has_ended = True
        self._loop.call_soon(self._go_on)  # closes if the rest is only part of a request
        return self._transport.can_write_eof()  # TLS ends for both sides at once

    def _watched(self, nbytes: int) -> None:
        """Take bytes from a peer that is not logged in, or that is closing."""
        self._late_bytes += nbytes if self._closing else 0
        is_late = self.useless > _TRIFLES or self._late_bytes > _LATE_BYTES
        is_flood = self._closing and is_late
        is_over = self._closing and self._http is not None
        if (is_flood or is_over) and self._transport is not None:
            self._transport.pause_reading()  # the rest is dropped, and the peer is soon cut
        elif self._handshaking is not None:  # TLS has just begun, but `_encrypt` has not gone on
            self._early += self._buffer[:nbytes]
        elif self._http is None or self._turn is HttpTurn.ASK:
            self._attend(bytes(self._buffer[:nbytes]))
        else:
            self._http.receive(bytes(self._buffer[:nbytes]))
            if self._turn is HttpTurn.IDLE:
                self._ask_again()
            elif self._transport is not None:  # one request at a time
                self._transport.pause_reading()

    def _attend(self, data: bytes) -> None:
        owner = self._owner  # a request may hand the connection to another owner
        began_s = time.perf_counter()
        if self._http is not None:
            data = self._read_request(self._http, data)
        if self._websocket is not None:
            self._websocket.receive_data(data)
            self._dispatch(self._websocket, self._loop.time())
        owner.was_read(self, time.perf_counter() - began_s)

    def _dispatch(self, websocket: ServerProtocol, arrived: float) -> None:
        for event in websocket.events_received():
            if isinstance(event, Frame) and self.is_open:
                self._frame(event, arrived)
        error = websocket.parser_exc
        if error is not None and not isinstance(error, EOFError) and not self._blamed:
            self._blamed = True
            offence: ProtocolError = Malformed(f"not a WebSocket frame: {error}")
            if isinstance(error, PayloadTooBig):
                limit = websocket.max_message_size
                offence = Oversize(f"expected frames of at most {limit} bytes: {error}")
            self._owner.misbehaved(self, offence)
        self._flush()
        if websocket.close_expected():
            self._cut_later()

    def _frame(self, frame: Frame, arrived: float) -> None:
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
            self._opcode = frame.opcode
        elif frame.opcode is not Opcode.CONT:
            self._control(frame, arrived)
            return
        if not frame.fin:
            self._fragments += frame.data
            self._owner.on_trivial_frame(self)
            return
        payload = bytes(frame.data)
        if self._fragments:
            payload = bytes(self._fragments + payload)
            self._fragments.clear()
        encoding = Encoding.JSON if self._opcode is Opcode.TEXT else Encoding.MSGPACK
        self._owner.received(self, payload, encoding, arrived)

    def _control(self, frame: Frame, arrived: float) -> None:
        """Pass on a pong or a ping; the library has answered pings and closes."""
        if frame.opcode is Opcode.PONG:
            self._owner.ponged(self, bytes(frame.data), arrived)
        elif frame.opcode is Opcode.PING:
            self._owner.on_trivial_frame(self)

    def _welcome(self, frame_bytes: int) -> None:
        """Let the peer stay, and send frames of at most `frame_bytes`."""
        if self._websocket is not None:
            self._websocket.max_message_size = frame_bytes
        self._is_watched = False
        self._set_deadline(None)

    def _flush(self) -> None:
        """Write the library's handshakes, pongs and closes."""
        websocket = self._websocket
        assert websocket is not None, "HTTP is written at once"
        for data in websocket.data_to_send():
            self._write(data)
        if websocket.state is not State.OPEN:
            self.is_open = False

    def _cut_later(self) -> None:
        """Give the peer some time to close, once: sending more does not extend it."""
        if self._transport is not None and not self._closing:
            self._closing = self._is_watched = True
            self._set_deadline(CLOSE_S)
            self._read_on()  # otherwise the peer's close would not be noticed
