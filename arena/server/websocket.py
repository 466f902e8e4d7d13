"""One connection: requests and their answers in HTTP, until one of them makes a WebSocket of it; then whole frames and back.

This is the only module that knows WebSocket: it drives `websockets`' sans-I/O protocol from a bare asyncio protocol, which
does 1.6 times the round trips of the library's connection objects (design §4). What frames mean is the owner's business.

Every request is a stranger's: when it has its answer the connection is idle, and with the first byte of the next one it is a stranger's
again, so that many requests on one connection cost their sender what they cost on many.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from enum import Enum, auto
from functools import partial

from websockets.exceptions import PayloadTooBig
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from arena.referee.budget import Budget
from arena.referee.timers import Timer, Timers
from arena.referee.transport import Owner, Wire
from arena.server.entrance import Entrance, send
from arena.server.http import CLOSE, BadRequest, Http
from arena.server.reply import text
from arena.server.tls import Handshake
from protocol.codec import Encoding
from protocol.errors import Malformed, Oversize, ProtocolError
from protocol.messages import Limits

__all__ = ["Connection", "Owner", "Wire", "min_rtt_ms"]

_TCP_INFO_BYTES = 256  # room for Linux's struct tcp_info, whose fields stand at:
_UNACKED_AT = 24  # tcpi_unacked, segments that were sent
_LAST_DATA_AT = 52  # tcpi_last_data_recv, ms ago
_LAST_ACK_AT = 56  # tcpi_last_ack_recv, ms ago; data need not count as one
_MIN_RTT_AT = 148  # tcpi_min_rtt, in µs
_REASON_BYTES = 120  # RFC 6455 has room for 123
_HELLO_BYTES = 16 * 1024  # until then a peer is worth no more memory
_TRIFLES = 16  # so many useless messages in a row may be chance
_SIP_BYTES = 2 * 1024  # read at once from one who sends more of them: some 20 frames
_LATE_BYTES = 16 * 1024  # on their way when we close, from who means well
_CLOSE_S = 2.0  # how long a peer may take to answer a close before the socket is cut
_TLS_S = 0.000_3
"""What asyncio takes to begin with TLS, most of it for buffers, which cannot be measured from here; the handshake itself is."""

_ANSWER_S = 60.0  # to make an answer: whoever makes it gives up before
_FETCH_S = 30.0  # to read an answer that the kernel has no room for
_IDLE_S = 15.0  # between two requests, as a page asks again every few seconds
_HEAD_BYTES = 64 * 1024  # more than there is of an answer but for its body


class _Turn(Enum):
    """Who is to do something in HTTP."""

    ASK = auto()  # the peer sends a request
    ANSWER = auto()  # we make its answer
    FETCH = auto()  # the peer reads it
    IDLE = auto()  # nobody; the peer may ask again


class Connection(asyncio.BufferedProtocol):
    """One peer, over WebSocket as `Wire` describes it; `owner` hears of its frames.

    It begins to read, or to speak TLS, when its owner says `serve`.

    Args:
        owner: what is told.
        limits: what the peer is held to.
        timers: keep its deadlines.
        buffer: where bytes are read into. All connections may share it, as every read is taken out of it at once; it is
            kept because asyncio else maps and unmaps 256 KiB at every receive.
        tls: what the connection is encrypted with.
        entrance: answers its requests; one of its own opens a WebSocket, and greets people.
    """

    __slots__ = (
        "_blamed",
        "_buffer",
        "_buffer_bytes",
        "_closing",
        "_deadline",
        "_early",
        "_entrance",
        "_first_address",
        "_fragments",
        "_handshake_of_tls",
        "_handshaking",
        "_has_ended",
        "_has_little_to_say",
        "_host",
        "_http",
        "_is_held",
        "_is_served",
        "_is_watched",
        "_late_bytes",
        "_limits",
        "_loop",
        "_opcode",
        "_owner",
        "_postponed",
        "_rest",
        "_sent_at",
        "_timers",
        "_tls",
        "_transport",
        "_turn",
        "_websocket",
        "address",
        "budget",
        "encoding",
        "has_link",
        "is_behind",
        "is_open",
        "is_secure",
        "peer",
        "useless",
    )

    def __init__(
        self,
        owner: Owner,
        limits: Limits,
        timers: Timers,
        buffer: memoryview,
        tls: ssl.SSLContext | None = None,
        entrance: Entrance | None = None,
    ) -> None:
        self.peer = self.address = self._host = "?"
        self._first_address = "?"  # before a request has come, perhaps through a proxy
        self.has_link = True
        self.is_behind = False
        self.useless = 0
        self.budget = Budget(limits.unanswered)
        self.encoding: Encoding | None = None
        self.is_open = self.is_secure = False
        self._owner = owner
        self._limits = limits
        self._buffer = buffer
        self._tls = tls  # until it is begun
        self._entrance = entrance or Entrance()
        self._http: Http | None = Http()  # until it is a WebSocket
        self._turn = _Turn.ASK
        self._websocket: ServerProtocol | None = None
        self._fragments = bytearray()
        self._opcode = Opcode.TEXT
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._timers = timers
        self._deadline: Timer | None = None  # for `hello`, or to close
        self._handshaking: asyncio.Task[None] | None = None
        self._handshake_of_tls: Handshake | None = None
        self._early = bytearray()  # came before asyncio gave us the encrypted transport
        self._blamed = self._closing = False
        self._is_held = self._is_served = False
        self._buffer_bytes = limits.buffer_bytes
        self._postponed: Request | None = None  # waits until it is served
        self._has_ended = False  # it sends no more, but may read on
        self._is_watched = True  # a stranger, or closing: what it says takes our time
        self._late_bytes = 0  # read since we close
        self._has_little_to_say = False
        self._sent_at: float | None = None  # the first that the peer may not have
        self._rest: asyncio.TimerHandle | None = None  # what ends it

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

    @property
    def min_rtt_ms(self) -> float | None:
        """The least round trip that the kernel has seen on this connection, where it tells."""
        if self._transport is None:
            return None
        return min_rtt_ms(self._transport.get_extra_info("socket"))

    def silent_since(self, now: float) -> float | None:
        """Since when the peer's machine has acknowledged nothing of what was sent; None if it has, or the kernel does not tell."""
        if self._transport is None:
            return None
        tcp = self._transport.get_extra_info("socket")
        info = _tcp_info(tcp, _UNACKED_AT, _LAST_DATA_AT, _LAST_ACK_AT)
        if info is None:
            return None
        segments, *ago_ms = info
        if segments == 0:
            self._sent_at = None
            return None
        # Before that it was silent, too, but had nothing to acknowledge.
        return max(self._sent_at or 0.0, now - min(ago_ms) / 1000)

    def cut(self) -> None:
        """Drop the socket without a word."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

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

    def respond(
        self, status: int, headers: Iterable[tuple[str, str]], body: bytes
    ) -> None:
        """Answer in HTTP; nothing happens if the peer has gone."""
        http, transport = self._http, self._transport
        if http is None or transport is None or transport.is_closing():
            return
        self._buffer_bytes = max(self._buffer_bytes, len(body) + _HEAD_BYTES)
        transport.set_write_buffer_limits(1)  # we are told when all is on its way
        self._write_answer(http.answer(status, headers, body))
        if not http.keeps_open or self._is_last(http):
            self._end()
        elif self.is_behind:
            self._turn = _Turn.FETCH
            self._set_deadline(_FETCH_S)
        else:
            self._answered()

    def hand_to(self, owner: Owner, *, frame_bytes: int, buffer_bytes: int) -> None:
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

    @property
    def handshake_s(self) -> float:
        """What serving it will cost at first beyond what `shake` tells and what is read."""
        return _TLS_S if self._tls is not None else 0.0

    def shake(self) -> float:
        """Work off what has come of a handshake of TLS; the seconds that it took."""
        shaking = self._handshake_of_tls
        return 0.0 if shaking is None else shaking.step()

    def rest(self, until: float) -> None:
        """Read nothing until then; what comes meanwhile waits in the kernel."""
        if self._transport is None or self._is_watched:
            return  # others see to who is a stranger, or closing
        if self._rest is not None:
            self._rest.cancel()
        self._transport.pause_reading()
        self._rest = self._loop.call_at(until, self._read_on)

    def hold(self) -> None:
        """Read no more of what a stranger says, until it is served again."""
        self._is_held = True
        if self._transport is not None and self._handshaking is None:
            self._transport.pause_reading()

    def serve(self) -> None:
        """Read what a stranger says, and be encrypted first if need be; the first time its time for `hello` begins."""
        if self._transport is None:
            return
        was_held, self._is_held = self._is_held, False
        if not self._is_served:
            self._is_served = True
            self._set_deadline(self._limits.hello_ms / 1000)
        if self._tls is not None:
            tls, self._tls = self._tls, None
            self._handshaking = self._loop.create_task(self._encrypt(tls))
        elif was_held and self._handshaking is None:
            self._transport.resume_reading()
        if self._postponed or (self._http is not None and self._http.has_unread):
            self._loop.call_soon(self._go_on)

    # --- what asyncio calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A socket was accepted."""
        assert isinstance(transport, asyncio.Transport), "it is a stream's"
        self._transport = transport
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self._host, self.peer = str(peer[0]), f"{peer[0]}:{peer[1]}"
            self.address = self._entrance.proxies.before(self._host, peer[1])
            self._first_address = self.address
        if self._tls is not None:
            transport.pause_reading()
        # Until it is served; then it has as much time once more.
        self._set_deadline(self._limits.hello_ms / 1000)
        self._owner.connected(self)
        self._loop.call_soon(self._hold_on)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes are to be read into."""
        if self._has_little_to_say or self.useless > _TRIFLES:
            return self._buffer[:_SIP_BYTES]
        http = self._http
        if http is not None and (self._turn is not _Turn.ASK or http.has_unread):
            return self._buffer[:_SIP_BYTES]  # or requests would pile up
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
        is_done = self._turn is _Turn.IDLE and not has_more
        if self._closing or self._transport is None or is_done:
            return False
        self._has_ended = True
        self._loop.call_soon(self._go_on)  # half a request is answered no more
        return self._transport.can_write_eof()  # TLS ends for both at once

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed."""
        self.is_open = False
        if self._transport is not None:
            self._read_on()
            self._transport = None
            self._set_deadline(None)
            self._owner.lost(self)

    def pause_writing(self) -> None:
        """The peer reads more slowly than we write."""
        self.is_behind = True

    def resume_writing(self) -> None:
        """It has caught up."""
        self.is_behind = False
        if self._turn is _Turn.FETCH:
            self._answered()
        self._owner.drained(self)

    # --- within ---

    def _hold_on(self) -> None:
        """Whoever is to wait does: asyncio before 3.11.4 starts to read after `connection_made`, whatever was said in there."""
        waits = self._is_held or self._tls is not None
        if self._transport is not None and waits:
            _pause(self._transport)

    async def _encrypt(self, tls: ssl.SSLContext) -> None:
        """Speak TLS from now on; whoever cannot is gone. The deadline for `hello` goes on."""
        raw = self._transport
        assert raw is not None, "it is served"
        _pause(raw)  # or what is read now would get to TLS before it has begun
        encrypted = None
        shaking = self._loop.create_task(
            self._loop.start_tls(raw, self, tls, server_side=True)
        )
        await asyncio.sleep(0)
        # The socket is asyncio's protocol's now, and nothing has been read.
        within = raw.get_protocol()
        if isinstance(within, asyncio.BufferedProtocol) and within is not self:
            came = partial(self._entrance.shakes, self)
            self._handshake_of_tls = Handshake(raw, within, came)
        # SSLError is an OSError, as is what a lost connection raises.
        with suppress(OSError, asyncio.CancelledError):
            encrypted = await shaking
        ended, self._handshake_of_tls = self._handshake_of_tls, None
        if ended is not None:
            ended.end()  # what it still had goes to `_early`
        self._handshaking = None
        if encrypted is None or self._transport is None:
            raw.abort()
            self.connection_lost(None)  # asyncio says so only after a handshake
            return
        self._transport = encrypted
        # TLS keeps to itself what comes while any waits here, and tells of it.
        raw.set_write_buffer_limits(1)
        if self._is_held:
            encrypted.pause_reading()
        early, self._early = bytes(self._early), bytearray()
        if early:
            self._attend(early)

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
        elif self._http is None or self._turn is _Turn.ASK:
            self._attend(bytes(self._buffer[:nbytes]))
        else:
            self._http.receive(bytes(self._buffer[:nbytes]))
            if self._turn is _Turn.IDLE:
                self._ask_again()
            elif self._transport is not None:  # one request after another
                self._transport.pause_reading()

    def _attend(self, data: bytes) -> None:
        owner = (
            self._owner
        )  # a request may hand it to another: it was read for this one
        began_s = time.perf_counter()
        if self._http is not None:
            data = self._read_request(self._http, data)
        if self._websocket is not None:
            self._websocket.receive_data(data)
            self._dispatch(self._websocket, self._loop.time())
        owner.was_read(self, time.perf_counter() - began_s)

    def _go_on(self) -> None:
        """Answer a request that had to wait."""
        is_asked = self._turn is _Turn.ASK and self._http is not None
        if is_asked and not (self._is_held or self._closing):
            self._attend(b"")

    def _read_on(self) -> None:
        """Its rest is over, if it has one."""
        if self._rest is not None and self._transport is not None:
            self._rest.cancel()
            self._rest = None
            self._transport.resume_reading()

    def _set_deadline(self, seconds: float | None) -> None:
        """When the connection is cut, or that it is not."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if seconds is not None:
            self._deadline = self._timers.after(seconds, self.cut)

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
            self._owner.trifled(self)
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
            self._owner.trifled(self)

    # --- within, in HTTP ---

    def _read_request(self, http: Http, data: bytes) -> bytes:
        """Pass a request on once it is whole; what came after one that has made a WebSocket of the connection."""
        http.receive(data)
        try:
            request, self._postponed = self._postponed or http.next_request(), None
        except BadRequest as error:
            send(self, text(error.status, str(error), CLOSE))
            return b""
        if request is None:
            if self._transport is not None and self._has_ended:
                self._transport.close()
            elif self._transport is not None and not self._is_held:
                self._transport.resume_reading()
            return b""
        proxies = self._entrance.proxies
        tls = self._transport and self._transport.get_extra_info("ssl_object")
        self.is_secure = bool(tls) or proxies.is_https(self._host, request.headers)
        address = proxies.origin(self._host, request.headers)
        if address != self.address and not self._entrance.moved(self, address):
            self._postponed = request
            self._is_served = False
            self._set_deadline(self._limits.hello_ms / 1000)
            return b""
        self._turn = _Turn.ANSWER
        self._entrance.requested(self, request)
        if self._turn is _Turn.ANSWER and self._http is not None and not self._closing:
            self._set_deadline(_ANSWER_S)
        return http.take_rest() if self._http is None else b""

    def _is_last(self, http: Http) -> bool:
        """Whether the peer has said that it sends no more, and has had its answers."""
        return self._has_ended and not http.has_unread

    def _answered(self) -> None:
        """The answer is on its way; the next request may come, or has come already."""
        assert self._http is not None, "a WebSocket is not answered"
        assert self._transport is not None, "it has been written to"
        if self._is_last(self._http):
            self._end()
            return
        self._turn = _Turn.IDLE
        self._set_deadline(_IDLE_S)
        self._entrance.idles(self, self._first_address)
        if self._http.has_unread:
            self._loop.call_soon(self._ask_again)
        elif not self._is_held:
            self._transport.resume_reading()

    def _write_answer(self, data: bytes) -> None:
        """Write it so that `is_behind` tells whether all is on its way."""
        transport = self._transport
        is_long = len(data) > _HEAD_BYTES
        if is_long and transport is not None and not transport.can_write_eof():
            # A transport that encrypts counts nothing that it has passed on: only
            # a second write waits in it until the kernel has taken the first.
            whole = memoryview(data)
            self._write(whole[:-1])
            self._write(whole[-1:])
        else:
            self._write(data)

    def _ask_again(self) -> None:
        """The peer goes on: it is as if it had just connected."""
        if self._turn is _Turn.IDLE and self._transport is not None:
            self._turn = _Turn.ASK
            self._is_served = False
            self.address = self._first_address
            self._set_deadline(self._limits.hello_ms / 1000)
            self._entrance.asks_again(self)

    def _end(self) -> None:
        """Nothing follows the answer that has been written."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        self._closing = True
        self._write(b"")
        # A transport that encrypts does not tell all that waits.
        waits = transport.get_write_buffer_size() > 0 or not transport.can_write_eof()
        self._set_deadline(_FETCH_S if waits else _CLOSE_S)
        if self._has_ended:
            transport.close()  # once all is written

    # --- within, for both ---

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

    def _write(self, data: bytes | memoryview) -> None:
        """Write some bytes, or the end of all writing if there are none; a peer that does not read them is cut."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if data:
            if self._sent_at is None:
                self._sent_at = self._loop.time()
            transport.write(data)
        elif transport.can_write_eof():
            try:
                transport.write_eof()
            except OSError:  # the peer has said all, and is gone already
                transport.close()
        else:
            transport.close()
        waiting = transport.get_write_buffer_size()
        if waiting > self._buffer_bytes:
            self.cut()
            self._owner.overflowed(self, waiting)

    def _cut_later(self) -> None:
        """Give the peer some time to close; it does not get more by sending more."""
        if self._transport is not None and not self._closing:
            self._closing = self._is_watched = True
            self._set_deadline(_CLOSE_S)
            self._read_on()  # or the peer's close would not be heard


def _pause(transport: asyncio.Transport) -> None:
    """Read no more for certain, also where asyncio reads though it says that it has paused."""
    transport.resume_reading()
    transport.pause_reading()


def min_rtt_ms(tcp: socket.socket) -> float | None:
    """The least round trip that the kernel has seen on a TCP connection, where it tells: evidence, never a rule (design §5)."""
    info = _tcp_info(tcp, _MIN_RTT_AT)
    # ~0: not measured yet
    return None if info is None or info[0] == 2**32 - 1 else info[0] / 1000


def _tcp_info(tcp: socket.socket, *offsets: int) -> tuple[int, ...] | None:
    """Some fields of what the kernel knows of a connection; None where it does not tell."""
    option = getattr(socket, "TCP_INFO", None)
    if option is None or sys.platform != "linux":
        return None
    try:
        info = tcp.getsockopt(socket.IPPROTO_TCP, option, _TCP_INFO_BYTES)
        return tuple(struct.unpack_from("=I", info, at)[0] for at in offsets)
    except (OSError, struct.error):  # closed, not TCP, or an old kernel
        return None
