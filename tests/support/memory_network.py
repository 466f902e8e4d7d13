"""A network in memory, for a `VirtualTimeLoop`: what TCP is to asyncio, without a kernel.

Two transports are joined back to back by a `Line`. Bytes wait at the sender as asyncio buffers
them, are on their way for the latency of the line, and wait at the receiver until it reads. A line
can hold everything back, as a network that is dead, and it can break. The `window_bytes` of a
direction stand for the kernel's buffers: what does not fit waits in the sender's transport.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any, NamedTuple

__all__ = ["MACHINE", "MemoryLine", "MemoryServer", "MemoryTransport", "Network", "line_of"]

MACHINE = ContextVar("MACHINE", default="127.0.0.1")
"""The host from which a task connects, if it does not say so with `local_addr`."""

_READ_BYTES = 256 * 1024  # read at once, as asyncio does
_HIGH_BYTES = 64 * 1024  # asyncio's default, from which on a writer is paused
_LATENCY_S = 0.1e-3  # without any, two bots could play for ever and no time would pass
_FIRST_PORT = 40_000


class _Packet(NamedTuple):
    """Bytes on their way; no bytes are the end of the stream, and an error a reset."""

    due: float
    data: bytes
    error: ConnectionError | None = None


class _MemorySocket:
    """What the arena asks a socket for: its addresses, options, and the kernel's `tcp_info`."""

    def __init__(self, name: tuple[str, int], transport: MemoryTransport | None = None) -> None:
        self._name = name
        self._transport = transport

    def getsockname(self) -> tuple[str, int]:
        return self._name

    def dup(self) -> AbstractContextManager[_MemorySocket]:
        return nullcontext(self)

    def listen(self, backlog: int) -> None:
        """There is room for any number of connections."""

    def setsockopt(self, *option: Any) -> None:
        """Options are for kernels; a line has its `window_bytes`."""

    def getsockopt(self, level: int, option: int, size: int = 0) -> bytes:
        if self._transport is None or option != getattr(socket, "TCP_INFO", None):
            raise OSError(errno.ENOPROTOOPT, "not in memory")
        return self._transport.tcp_info(size)


class MemoryTransport(asyncio.Transport):
    """One end of a line."""

    def __init__(
        self, line: MemoryLine, name: tuple[str, int], peer: tuple[str, int], protocol: Any
    ) -> None:
        super().__init__({"sockname": name, "peername": peer, "socket": _MemorySocket(name, self)})
        self.line = line
        self.other: MemoryTransport
        self.window_bytes = line.network.window_bytes
        self.on_way = deque[_Packet]()
        self._network = line.network
        self._loop = line.network.loop
        self._protocol = protocol
        self._unsent = bytearray()
        self._unread = bytearray()
        self._ended: _Packet | None = None  # how the other's stream ended
        self._is_reading = False
        self._is_closing = self._is_lost = self._is_closed = False
        self._has_eof = self._sent_eof = False
        self._is_paused = False
        self._high, self._low = _HIGH_BYTES, _HIGH_BYTES // 4
        self._heard_at = self._acked_at = self._loop.time()

    def open(self) -> None:
        """Tell the protocol, and begin to read unless it paused."""
        self._is_reading = True
        self._protocol.connection_made(self)

    # --- what protocols call ---

    def get_protocol(self) -> asyncio.BaseProtocol:
        protocol: asyncio.BaseProtocol = self._protocol
        return protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return self._is_reading and not self._is_closing

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = _HIGH_BYTES if low is None else 4 * low
        self._high, self._low = high, high // 4 if low is None else low
        self._control_flow()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        return len(self._unsent)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self._has_eof, "the stream has ended"
        if not data or self._is_lost:
            return
        if self._ended is not None and self._ended.error is not None:
            self._lose(self._ended.error)
            return
        self._unsent += data
        self._send()
        self._control_flow()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not (self._is_closing or self._has_eof):
            self._has_eof = True
            self._send()

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            if not self._unsent:
                self._lose(None)

    def abort(self) -> None:
        self._lose(None)

    # --- the line ---

    def receive(self, packet: _Packet) -> None:
        """A packet has arrived; a closed end answers bytes with a reset."""
        self.other._acked_at = packet.due
        if self._is_closed:
            if packet.data:
                self._put(b"", ConnectionResetError(errno.ECONNRESET, "reset by peer"))
            return
        self._heard_at = packet.due
        if packet.data:
            self._unread += packet.data
        else:
            self._ended = packet

    def read(self) -> bool:
        """Pass on what can be read now, as a loop does when a socket is ready."""
        if not self.has_news or not self.is_reading() or self._is_lost:
            return False
        self._loop.call_soon(self._read)
        return True

    @property
    def has_news(self) -> bool:
        return bool(self._unread or (self._ended and not self._is_closed))

    def tcp_info(self, size: int) -> bytes:
        """Linux's `tcp_info`, as far as the arena looks into it."""
        now, info = self._loop.time(), bytearray(max(size, 256))
        for offset, value in (
            (24, 0 if self._network.acknowledges else len(self.on_way)),
            (52, (now - self._heard_at) * 1000),
            (56, (now - self._acked_at) * 1000),
            (148, 2 * self.line.latency_s * 1_000_000),
        ):
            struct.pack_into("=I", info, offset, round(value))
        return bytes(info)

    def break_off(self) -> None:
        """The connection is lost here."""
        self._lose(ConnectionResetError(errno.ECONNRESET, "reset by peer"))

    def _read(self) -> None:
        if not self.is_reading() or self._is_lost:
            return
        if self._unread:
            data = self._take()
            self.other._send()
            self.other._control_flow()
            if isinstance(self._protocol, asyncio.BufferedProtocol):
                self._protocol.buffer_updated(data)
            else:
                self._protocol.data_received(data)
        elif self._ended is not None and self._ended.error is not None:
            self._lose(self._ended.error)
        elif self._ended is not None:
            self._is_reading = False
            if not self._protocol.eof_received():
                self.close()

    def _take(self) -> Any:
        """The next bytes; for a buffered protocol their number."""
        if not isinstance(self._protocol, asyncio.BufferedProtocol):
            data = bytes(self._unread[:_READ_BYTES])
            del self._unread[: len(data)]
            return data
        room = memoryview(self._protocol.get_buffer(-1)).cast("B")
        count = min(len(room), len(self._unread))
        room[:count] = self._unread[:count]
        del self._unread[:count]
        return count

    def _send(self) -> None:
        on_way = sum(len(packet.data) for packet in self.on_way)
        room = self.window_bytes - on_way - len(self.other._unread)
        if self._unsent and room > 0:
            self._put(bytes(self._unsent[:room]))
            del self._unsent[:room]
        if not self._unsent:
            if self._has_eof and not self._sent_eof:
                self._sent_eof = True
                self._put(b"")
            if self._is_closing and not self._is_lost:
                self._lose(None)

    def _put(self, data: bytes, error: ConnectionError | None = None) -> None:
        self._network.busy[self.line] = None
        self.on_way.append(_Packet(self._loop.time() + self.line.latency_s, data, error))

    def _control_flow(self) -> None:
        waiting = len(self._unsent)
        if waiting > self._high and not self._is_paused:
            self._is_paused = True
            self._protocol.pause_writing()
        elif waiting <= self._low and self._is_paused:
            self._is_paused = False
            self._protocol.resume_writing()

    def _lose(self, error: Exception | None) -> None:
        if not self._is_lost:
            self._is_closing = self._is_lost = True
            self._unsent.clear()
            self._loop.call_soon(self._close, error)

    def _close(self, error: Exception | None) -> None:
        try:
            self._protocol.connection_lost(error)
        finally:
            self._is_closed = True
            if self._unread:  # a kernel resets then, too
                self._put(b"", ConnectionResetError(errno.ECONNRESET, "reset by peer"))
            elif not self._sent_eof:
                self._put(b"")


class MemoryLine:
    """Two transports that are joined.

    Attributes:
        latency_s: how long bytes are on their way.
        is_held: nothing arrives, in neither direction; nobody is told.
    """

    def __init__(self, network: Network, client: tuple[str, int], server: tuple[str, int]) -> None:
        self.network = network
        self.latency_s = network.latency_s
        self.is_held = False
        self.host = client[0]
        self._names = client, server

    def join(self, client: Any, server: Any) -> MemoryTransport:
        """Join two protocols; the client's end, which the caller opens."""
        name, peer = self._names
        self.client = MemoryTransport(self, name, peer, client)
        self.server = MemoryTransport(self, peer, name, server)
        self.client.other, self.server.other = self.server, self.client
        return self.client

    @property
    def is_over(self) -> bool:
        ends = self.client, self.server
        return all(end._is_closed for end in ends) and not any(end.on_way for end in ends)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is on its way, and nothing waits to be read."""
        client, server = self.client, self.server
        return not (client.on_way or server.on_way or client.has_news or server.has_news)

    def arrives(self, now: float) -> None:
        """Everything arrives that is due."""
        for end in self.client, self.server:
            while end.on_way and end.on_way[0].due <= now:
                end.other.receive(end.on_way.popleft())

    def breaks(self) -> None:
        """Both ends lose the connection, without a close."""
        self.client.break_off()
        self.server.break_off()


class MemoryServer(asyncio.AbstractServer):
    """A listener on one address of a network."""

    def __init__(self, network: Network, make: Callable[[], Any], name: tuple[str, int]) -> None:
        self.make = make
        self.sockets = (_MemorySocket(name),)
        self._network = network

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._network.loop

    def is_serving(self) -> bool:
        return self in self._network.servers.values()

    async def start_serving(self) -> None:
        """It does already."""

    async def serve_forever(self) -> None:
        await self._network.loop.create_future()

    def close(self) -> None:
        self._network.servers.pop(self.sockets[0].getsockname()[1], None)

    async def wait_closed(self) -> None:
        """Connections stay."""


class Network:
    """All lines of a loop.

    Attributes:
        latency_s: of new lines.
        window_bytes: of new lines, in each direction.
        acknowledges: whether a proxy does it for all, so that no machine seems to be silent.
        dead: hosts from and to which nothing arrives; they are the `local_addr` of clients.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.latency_s = _LATENCY_S
        self.window_bytes = 256 * 1024
        self.acknowledges = False
        self.dead = set[str]()
        self.servers: dict[int, MemoryServer] = {}
        self.lines: list[MemoryLine] = []
        self.busy: dict[MemoryLine, None] = {}  # with bytes on their way, or to be read
        self._ports = _FIRST_PORT

    def listen(self, make: Callable[[], Any], host: str | None, port: int | None) -> MemoryServer:
        """Listen on a port, or on a free one for 0."""
        port = port or self._next_port()
        if port in self.servers:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        server = self.servers[port] = MemoryServer(self, make, (host or "0.0.0.0", port))
        return server

    async def connect(
        self, make: Callable[[], Any], host: str, port: int, local_host: str
    ) -> tuple[MemoryTransport, Any]:
        """Connect to a port of this network."""
        while local_host in self.dead:
            await asyncio.sleep(1.0)  # as a kernel tries again
        await asyncio.sleep(2 * self.latency_s)
        server = self.servers.get(port)
        if server is None:
            name = (host, port)
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"Connect call failed {name}")
        line = MemoryLine(self, (local_host, self._next_port()), ("127.0.0.1", port))
        protocol = make()
        transport = line.join(protocol, server.make())
        self.lines.append(line)
        transport.open()
        self.loop.call_soon(line.server.open)
        await asyncio.sleep(0)
        return transport, protocol

    def turn(self, now: float) -> bool:
        """Let arrive what is due, and have it read: whether anything happens."""
        has_news = False
        for line in tuple(self.busy):
            if not self._is_held(line):
                line.arrives(now)
            has_news |= any([line.client.read(), line.server.read()])
            if line.is_quiet:
                del self.busy[line]
                if line.is_over:
                    self.lines.remove(line)
        return has_news

    def next_due(self) -> float | None:
        """When the next bytes arrive."""
        ends = (
            end
            for line in self.busy
            if not self._is_held(line)
            for end in (line.client, line.server)
        )
        return min((end.on_way[0].due for end in ends if end.on_way), default=None)

    def _is_held(self, line: MemoryLine) -> bool:
        return line.is_held or line.host in self.dead

    def _next_port(self) -> int:
        self._ports += 1
        return self._ports


def line_of(transport: asyncio.BaseTransport) -> MemoryLine:
    """The line of one of its ends."""
    assert isinstance(transport, MemoryTransport), "only in virtual time"
    return transport.line
