"""What the arena asks of whatever carries a bot's frames, and of the process of one that it has launched; and what it is told by it.

There are two kinds: a WebSocket (`arena/server/websocket.py`) and the pipes of a process that the arena has launched (`arena/server/stdio.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from websockets.http11 import Request

from arena.referee.budget import Budget
from protocol.codec import Encoding
from protocol.errors import ProtocolError

__all__ = ["Caller", "ConnectionOwner", "LaunchedProcess", "OnRequest", "Wire"]


class Wire(Protocol):
    """What carries frames to and from one bot: a WebSocket, or the pipes of a process (`arena/server/stdio.py`).

    Attributes:
        peer: who is there, for people.
        address: where connections of the same origin are counted together.
        encoding: that of its first frame.
        has_link: whether there is a network in between, with a round trip to be measured.
        is_open: whether frames can be sent and are handed on; false from the moment that either side closes.
        is_behind: whether the peer has not read yet what was written some time ago.
        useless: how many messages in a row have come to nothing; the owner counts. From the first on their CPU time is measured, and
            after some only little is read at a time; nobody is out for it.
        budget: how much may come to nothing in a second; who goes on beyond it is out. A bot that comes back goes on with the one that it had.
    """

    peer: str
    address: str
    encoding: Encoding | None
    has_link: bool
    is_open: bool
    is_behind: bool
    useless: int
    budget: Budget

    @property
    def close_code(self) -> int | None:
        """The code that the peer closed with, if it was the peer who closed."""

    @property
    def close_reason(self) -> str:
        """The reason that the peer closed with, as it came."""

    @property
    def min_rtt_ms(self) -> float | None:
        """The least round trip that the kernel has seen, where there is one and it tells."""

    def silent_since(self, now: float) -> float | None:
        """Since when the peer's machine has acknowledged nothing of what was sent; None if it has, or if nobody can tell.

        Args:
            now: the time of the loop's clock, in seconds.
        """

    def send(self, frame: bytes, encoding: Encoding) -> None:
        """Write one frame; nothing happens if the connection is closing."""

    def ping(self, payload: bytes) -> None:
        """Have the peer send these bytes back; only with a link."""

    def rest(self, until: float) -> None:
        """Read nothing until then, a time of the loop's clock; what comes meanwhile is read later. A close ends it."""

    def close(self, code: int, reason: str = "") -> None:
        """Close in order; the connection is cut if the peer does not play along."""

    def cut(self) -> None:
        """Close without a word."""

    def hello_received(self) -> None:
        """The peer has said who it is, and is welcome: it may stay."""


class Caller(Wire, Protocol):
    """Perhaps a WebSocket to be: its peer has sent a request, which gets exactly one answer, now or later.

    Attributes:
        is_secure: the request came over TLS, to us or to a proxy that we trust.
    """

    is_secure: bool

    def accept(self, request: Request) -> None:
        """Let it become a WebSocket, which `is_open` then, if the request is in order."""

    def respond(self, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
        """Answer in HTTP; nothing happens if the peer has gone."""

    def hand_to(self, owner: ConnectionOwner, *, frame_bytes: int, buffer_bytes: int) -> None:
        """Somebody else is told of it from now on; the peer may stay, within these limits."""


OnRequest: TypeAlias = Callable[[Caller, Request], None]
"""Answers a request, or sees to it that it will be answered."""


class ConnectionOwner(Protocol):
    """What a connection tells of what happens on it."""

    def connected(self, connection: Wire) -> None:
        """A socket was accepted; its peer has yet to say anything."""

    def received(self, connection: Wire, frame: bytes, encoding: Encoding, arrived: float) -> None:
        """A whole frame came in, at a time of the loop's monotonic clock, in seconds."""

    def misbehaved(self, connection: Wire, error: ProtocolError) -> None:
        """The peer broke the WebSocket protocol or sent too large a frame; last words can be sent, then it is closed."""

    def overflowed(self, connection: Wire, waiting: int) -> None:
        """More bytes wait for the peer to read than the limit allows; the connection has been cut."""

    def ponged(self, connection: Wire, payload: bytes, arrived: float) -> None:
        """The peer answered a ping, or pretends to have."""

    def was_read(self, connection: Wire, took_s: float) -> None:
        """What the peer of a WebSocket said before it was welcome, or while it is closed, has been dealt with; it took so long."""

    def on_trivial_frame(self, connection: Wire) -> None:
        """The peer sent what means nothing by itself: a ping, which has been answered, or a part of a frame."""

    def drained(self, connection: Wire) -> None:
        """The peer has read what it had fallen behind with."""

    def lost(self, connection: Wire) -> None:
        """The connection is gone, whoever closed it."""


class LaunchedProcess(Protocol):
    """What the arena knows of a bot that it has launched itself."""

    @property
    def enforced(self) -> str:
        """The limits that it is held to, and by what."""

    @property
    def is_metered(self) -> bool:
        """Whether its CPU time can be measured on this machine; else it is charged the time on the wall."""

    def cpu_ms(self) -> float:
        """The CPU time that its processes have used so far."""

    def tail(self) -> str:
        """The end of what it wrote to stderr."""
