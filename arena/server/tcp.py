"""One TCP connection: TLS, reading and pausing, writing within a limit, deadlines.

`arena/server/http.py` and `arena/server/websocket.py` interpret its bytes.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import sys
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field

from arena.referee.timers import Timer, Timers
from arena.referee.transport import Caller, ConnectionOwner
from arena.server.entrance import Entrance
from protocol.messages import Limits

__all__ = ["CLOSE_S", "ConnectionContext", "TcpConnection", "min_rtt_ms"]

_TCP_INFO_BYTES = 256  # room for Linux's struct tcp_info, with its fields at these offsets:
_UNACKED_AT = 24  # tcpi_unacked, segments without an acknowledgement
_LAST_DATA_AT = 52  # tcpi_last_data_recv, ms ago
_LAST_ACK_AT = 56  # tcpi_last_ack_recv, ms ago; data may not count as an acknowledgement
_MIN_RTT_AT = 148  # tcpi_min_rtt, in µs
_TLS_S = 0.001
"""The time of a TLS handshake with a key on P-256; one with RSA-4096 takes 6 ms."""

CLOSE_S = 2.0
"""The time for a peer to answer a close before the socket is cut."""


@dataclass(frozen=True, eq=False, slots=True)
class ConnectionContext:
    """What the connections of one server have in common.

    They can share a `buffer` to read into, as every read is taken out of it at once. Without it
    asyncio maps and unmaps 256 KiB for every read. The default `entrance` opens WebSockets and
    greets people.
    """

    owner: ConnectionOwner
    limits: Limits
    timers: Timers
    buffer: memoryview
    entrance: Entrance = field(default_factory=Entrance)


class TcpConnection(asyncio.BufferedProtocol, ABC):
    """One peer behind a socket.

    It begins to read, or to speak TLS, when its owner calls `resume_reading`.
    """

    __slots__ = (
        "_buffer",
        "_buffer_bytes",
        "_closing",
        "_deadline",
        "_early",
        "_entrance",
        "_first_address",
        "_handshaking",
        "_host",
        "_is_held",
        "_is_served",
        "_is_watched",
        "_limits",
        "_loop",
        "_owner",
        "_rest",
        "_sent_at",
        "_timers",
        "_tls",
        "_transport",
        "address",
        "is_behind",
        "is_open",
        "peer",
    )

    def __init__(self, context: ConnectionContext, tls: ssl.SSLContext | None = None) -> None:
        self.peer = self.address = self._host = "?"
        self._first_address = "?"  # before a request has come, perhaps through a proxy
        self.is_behind = self.is_open = False
        self._owner = context.owner
        self._limits = context.limits
        self._timers = context.timers
        self._buffer = context.buffer
        self._entrance = context.entrance
        self._buffer_bytes = context.limits.buffer_bytes
        self._tls = tls  # until the handshake begins
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._deadline: Timer | None = None  # for `hello`, or for the close
        self._handshaking: asyncio.Task[None] | None = None
        self._early = bytearray()  # bytes from before asyncio gave us the encrypted transport
        self._closing = self._is_held = self._is_served = False
        self._is_watched = True  # not logged in, or closing: its processing time is measured
        self._sent_at: float | None = None  # of the oldest bytes that the peer may not have
        self._rest: asyncio.TimerHandle | None = None  # ends the pause in reading

    @property
    @abstractmethod
    def _caller(self) -> Caller:
        """The connection itself, as other modules see it."""

    @abstractmethod
    def _attend(self, data: bytes) -> None:
        """Take bytes from a watched peer."""

    # --- called by the owner ---

    @property
    def min_rtt_ms(self) -> float | None:
        if self._transport is None:
            return None
        return min_rtt_ms(self._transport.get_extra_info("socket"))

    @property
    def is_direct(self) -> bool:
        # A proxy's connection counts alone, with its port, before its first request.
        return sys.platform == "linux" and self._first_address != self.peer

    def silent_since(self, now: float) -> float | None:
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
        # Before `_sent_at` the peer was silent, too, but had nothing to acknowledge.
        return max(self._sent_at or 0.0, now - min(ago_ms) / 1000)

    def cut(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    @property
    def handshake_s(self) -> float:
        return _TLS_S if self._tls is not None else 0.0

    def rest(self, until: float) -> None:
        if self._transport is None or self._is_watched:
            return  # the throttle or the close decides when it is read
        if self._rest is not None:
            self._rest.cancel()
        self._transport.pause_reading()
        self._rest = self._loop.call_at(until, self._read_on)

    def pause_reading(self) -> None:
        self._is_held = True
        if self._transport is not None and self._handshaking is None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on, after a TLS handshake if due. The first call starts the deadline for `hello`."""
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

    # --- called by asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "it is a stream's"
        self._transport = transport
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self._host, self.peer = str(peer[0]), f"{peer[0]}:{peer[1]}"
            self.address = self._entrance.proxies.before(self._host, peer[1])
            self._first_address = self.address
        if self._tls is not None:
            transport.pause_reading()
        # The peer may wait this long for the throttle, and gets the same time again after it.
        self._set_deadline(self._limits.hello_ms / 1000)
        self._owner.connected(self._caller)
        self._loop.call_soon(self._hold_on)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if self._transport is not None:
            self._read_on()
            self._transport = None
            self._set_deadline(None)
            self._owner.lost(self._caller)

    def pause_writing(self) -> None:
        self.is_behind = True

    def _hold_on(self) -> None:
        """Pause once more, as asyncio before 3.11.4 resumes reading after `connection_made`."""
        waits = self._is_held or self._tls is not None
        if self._transport is not None and waits:
            _pause(self._transport)

    async def _encrypt(self, tls: ssl.SSLContext) -> None:
        """Begin TLS; cut a peer that fails to. The deadline for `hello` goes on."""
        raw = self._transport
        assert raw is not None, "it is served"
        _pause(raw)  # otherwise bytes could reach TLS before it has begun
        encrypted = None
        # SSLError is an OSError, and so are the errors of a lost connection.
        with suppress(OSError, asyncio.CancelledError):
            encrypted = await self._loop.start_tls(raw, self, tls, server_side=True)
        self._handshaking = None
        if encrypted is None or self._transport is None:
            raw.abort()
            self.connection_lost(None)  # asyncio calls this only after a handshake
            return
        self._transport = encrypted
        # With this limit, TLS holds back its output while bytes wait here, and counts it.
        raw.set_write_buffer_limits(1)
        if self._is_held:
            encrypted.pause_reading()
        early, self._early = bytes(self._early), bytearray()
        if early:
            self._attend(early)

    def _read_on(self) -> None:
        if self._rest is not None and self._transport is not None:
            self._rest.cancel()
            self._rest = None
            self._transport.resume_reading()

    def _set_deadline(self, seconds: float | None) -> None:
        """Cut the connection after some seconds; None removes the deadline."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if seconds is not None:
            self._deadline = self._timers.after(seconds, self.cut)

    def _write(self, data: bytes | memoryview) -> None:
        """Write bytes, or end the stream if there are none; cut a peer that reads too slowly."""
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
            except OSError:  # the peer has closed and is gone already
                transport.close()
        else:
            transport.close()
        waiting = transport.get_write_buffer_size()
        if waiting > self._buffer_bytes:
            self.cut()
            self._owner.overflowed(self._caller, waiting)


def _pause(transport: asyncio.Transport) -> None:
    # asyncio may read although it is marked as paused; a second pause alone would do nothing.
    transport.resume_reading()
    transport.pause_reading()


def min_rtt_ms(tcp: socket.socket) -> float | None:
    """Return the kernel's least round trip of a TCP connection, if known; it is evidence only."""
    info = _tcp_info(tcp, _MIN_RTT_AT)
    # ~0: not measured yet
    return None if info is None or info[0] == 2**32 - 1 else info[0] / 1000


def _tcp_info(tcp: socket.socket, *offsets: int) -> tuple[int, ...] | None:
    """Return fields of the kernel's `tcp_info`; None if there is none."""
    option = getattr(socket, "TCP_INFO", None)
    if option is None or sys.platform != "linux":
        return None
    try:
        info = tcp.getsockopt(socket.IPPROTO_TCP, option, _TCP_INFO_BYTES)
        return tuple(struct.unpack_from("=I", info, at)[0] for at in offsets)
    except (OSError, struct.error):  # closed, not TCP, or an old kernel
        return None
