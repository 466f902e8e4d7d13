"""WebSockets: whole frames in and out of a connection on which a request has opened one.

This is the only module that knows WebSocket: it drives `websockets`' sans-I/O protocol from a bare asyncio protocol, which
does 1.6 times the round trips of the library's connection objects (design §4). What frames mean is the owner's business.
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
from arena.referee.timers import Timers
from arena.referee.transport import Caller, ConnectionOwner
from arena.server.entrance import Entrance
from arena.server.http_connection import HttpConnection, HttpTurn
from arena.server.tcp import CLOSE_S
from protocol.codec import Encoding
from protocol.errors import Malformed, Oversize, ProtocolError
from protocol.messages import Limits

__all__ = ["Connection"]

_REASON_BYTES = 120  # RFC 6455 has room for 123
_HELLO_BYTES = 16 * 1024  # until then a peer is worth no more memory
_TRIFLES = 16  # so many useless messages in a row may be chance
_SMALL_READ_BYTES = 2 * 1024  # read at once from one who sends more of them: some 20 frames
_LATE_BYTES = 16 * 1024  # on their way when we close, from who means well


class Connection(HttpConnection):
    """One peer, over WebSocket as `Wire` describes it; its owner hears of its frames. The arguments are those of `TcpConnection`."""

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

    def __init__(
        self,
        owner: ConnectionOwner,
        limits: Limits,
        timers: Timers,
        buffer: memoryview,
        tls: ssl.SSLContext | None = None,
        entrance: Entrance | None = None,
    ) -> None:
        super().__init__(owner, limits, timers, buffer, tls, entrance)
        self.has_link = True
        self.useless = 0
        self.budget = Budget(limits.unanswered)
        self.encoding: Encoding | None = None
        self._websocket: ServerProtocol | None = None
        self._fragments = bytearray()
        self._opcode = Opcode.TEXT
        self._blamed = False
        self._late_bytes = 0  # read since we close
        self._has_little_to_say = False

    @property
    def _caller(self) -> Caller:
        return self

    # --- what the owner calls ---

    @property
    def close_code(self) -> int | None:
        """The code that the peer closed with, if it was the peer who closed."""
        websocket = self._websocket
        if websocket is None or websocket.close_rcvd is None:
            return None
        if not websocket.close_rcvd_then_sent:
            return None
        return int(websocket.close_rcvd.code)

    @property
    def close_reason(self) -> str:
        """The reason that the peer closed with, as it came."""
        websocket = self._websocket
        if websocket is None or websocket.close_rcvd is None:
            return ""
        return websocket.close_rcvd.reason

    def send(self, frame: bytes, encoding: Encoding) -> None:
        """Write one frame; nothing happens if the connection is closing."""
        if self.is_open:
            opcode = Opcode.TEXT if encoding is Encoding.JSON else Opcode.BINARY
            self._write(Frame(opcode, frame).serialize(mask=False))

    def close(self, code: int, reason: str = "") -> None:
        """Start the closing handshake; the socket is cut if the peer does not answer it."""
        websocket = self._websocket
        if websocket is None:
            self.cut()
            return
        if not self.is_open:
            return
        if websocket.state is State.OPEN:  # else it is closing by itself
            said = reason.encode()[:_REASON_BYTES].decode(errors="ignore")
            websocket.send_close(code, said)
        self._flush()
        self._cut_later()

    def ping(self, payload: bytes) -> None:
        """Have the peer send these bytes back."""
        if self.is_open:
            self._write(Frame(Opcode.PING, payload).serialize(mask=False))

    def hello_received(self) -> None:
        """The peer has said who it is, and is welcome: it may stay."""
        self._welcome(self._limits.frame_bytes)

    def accept(self, request: Request) -> None:
        """Let it become a WebSocket, which `is_open` then, if the request is in order."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        most = min(_HELLO_BYTES, self._limits.frame_bytes)
        websocket = ServerProtocol(state=State.OPEN, max_size=most)
        response = websocket.accept(request)
        if response.status_code == 101:
            self._http, self._websocket = None, websocket
            self.is_open = True
            # Answers may have changed these, and paused what comes after them.
            transport.set_write_buffer_limits()
            self._buffer_bytes = self._limits.buffer_bytes
            if not self._is_held:
                transport.resume_reading()
            self._write(response.serialize())  # before any frame of ours
        else:
            self._write(response.serialize())
            self._end()

    def hand_to(self, owner: ConnectionOwner, *, frame_bytes: int, buffer_bytes: int) -> None:
        """Somebody else is told of it from now on; the peer may stay, within these limits."""
        self._owner = owner
        self._has_little_to_say = True  # a burst of it has to be noticed early
        self._buffer_bytes = buffer_bytes
        if (
            self._transport is not None
        ):  # else the kernel takes megabytes for a peer that does not read
            tcp: socket.socket = self._transport.get_extra_info("socket")
            with suppress(OSError):
                tcp.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes // 2)
        self._welcome(frame_bytes)

    # --- what asyncio calls ---

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes are to be read into."""
        if self._has_little_to_say or self.useless > _TRIFLES:
            return self._buffer[:_SMALL_READ_BYTES]
        http = self._http
        if http is not None and (self._turn is not HttpTurn.ASK or http.has_unread):
            return self._buffer[:_SMALL_READ_BYTES]  # or requests would pile up
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes came in: turn them into frames."""
        if self._is_watched:
            self._watched(nbytes)
            return
        arrived = self._loop.time()
        self._sent_at = None
        websocket = self._websocket
        assert websocket is not None, "whoever asks in HTTP is watched"
        websocket.receive_data(bytes(self._buffer[:nbytes]))
        self._dispatch(websocket, arrived)

    def eof_received(self) -> bool:
        """The peer sends no more."""
        if self._handshaking is not None:
            return False  # nothing can be written yet, and need not be any more
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
        self._loop.call_soon(self._go_on)  # half a request is answered no more
        return self._transport.can_write_eof()  # TLS ends for both at once

    # --- within ---

    def _watched(self, nbytes: int) -> None:
        """The same for who is no player, or no longer: its owner learns how long it took."""
        self._late_bytes += nbytes if self._closing else 0
        is_late = self.useless > _TRIFLES or self._late_bytes > _LATE_BYTES
        is_flood = self._closing and is_late
        is_over = self._closing and self._http is not None
        if (is_flood or is_over) and self._transport is not None:
            self._transport.pause_reading()  # the rest is lost; it is cut in a moment
        elif self._handshaking is not None:  # has just ended, and we have not heard
            self._early += self._buffer[:nbytes]
        elif self._http is None or self._turn is HttpTurn.ASK:
            self._attend(bytes(self._buffer[:nbytes]))
        else:
            self._http.receive(bytes(self._buffer[:nbytes]))
            if self._turn is HttpTurn.IDLE:
                self._ask_again()
            elif self._transport is not None:  # one request after another
                self._transport.pause_reading()

    def _attend(self, data: bytes) -> None:
        owner = self._owner  # a request may hand it to another: it was read for this one
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
            limit = websocket.max_message_size
            self._owner.misbehaved(self, self._blame_for(error, limit))
        self._flush()
        if websocket.close_expected():
            self._cut_later()

    def _blame_for(self, error: Exception, limit: int | None) -> ProtocolError:
        if isinstance(error, PayloadTooBig):
            return Oversize(f"expected frames of at most {limit} bytes: {error}")
        return Malformed(f"not a WebSocket frame: {error}")

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
        """The library has answered pings and closes."""
        if frame.opcode is Opcode.PONG:
            self._owner.ponged(self, bytes(frame.data), arrived)
        elif frame.opcode is Opcode.PING:
            self._owner.on_trivial_frame(self)

    def _welcome(self, frame_bytes: int) -> None:
        """The peer may stay, and send frames of that size."""
        if self._websocket is not None:
            self._websocket.max_message_size = frame_bytes
        self._is_watched = False
        self._set_deadline(None)

    def _flush(self) -> None:
        """Write what the library has to say: handshakes, pongs, closes."""
        websocket = self._websocket
        assert websocket is not None, "HTTP is written at once"
        for data in websocket.data_to_send():
            self._write(data)
        if websocket.state is not State.OPEN:
            self.is_open = False

    def _cut_later(self) -> None:
        """Give the peer some time to close; it does not get more by sending more."""
        if self._transport is not None and not self._closing:
            self._closing = self._is_watched = True
            self._set_deadline(CLOSE_S)
            self._read_on()  # or the peer's close would not be heard
