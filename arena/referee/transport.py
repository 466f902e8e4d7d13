"""The Protocols between the arena and its transports, and for the process of a launched bot.

Transports are WebSockets (`arena/server/websocket.py`) and the pipes of a process that the arena
has launched (`arena/server/stdio.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Protocol, TypeAlias

from websockets.http11 import Request

from arena.referee.budget import Budget
from arena.referee.clock import LoopLag
from protocol.codec import Encoding
from protocol.errors import ProtocolError

__all__ = ["Caller", "ConnectionOwner", "Gate", "LaunchedProcess", "OnRequest", "Wire"]


class Wire(Protocol):
    """Carries frames to and from one bot: a WebSocket, or the pipes of a process."""

    peer: str  # who is there, for display
    address: str  # connections with the same address are counted together
    encoding: Encoding | None  # of its first frame
    has_link: bool  # whether there is a network in between, with a round trip to measure
    is_open: bool  # whether frames can be sent and received; false once either side closes
    is_behind: bool  # whether the peer has not yet read what was written some time ago
    # How many messages in a row had no effect; the owner counts. From the first on their CPU time
    # is measured, and after some only a little is read at a time.
    useless: int
    budget: Budget  # for messages without effect; more is an offence; it outlives the connection

    @property
    def close_code(self) -> int | None:
        """The code with which the peer closed; None if it did not."""

    @property
    def close_reason(self) -> str:
        """The reason with which the peer closed, unchanged."""

    @property
    def min_rtt_ms(self) -> float | None:
        """The least round trip that the kernel has measured; None if unknown."""

    @property
    def is_direct(self) -> bool:
        """Whether the kernel knows if the bot's own machine is there; not behind a proxy."""

    def silent_since(self, now: float) -> float | None:
        """Since when the peer's machine has acknowledged nothing; None if it has, or if unknown."""

    def send(self, frame: bytes, encoding: Encoding) -> None:
        """Write one frame; does nothing if the connection is closing."""

    def ping(self, payload: bytes) -> None:
        """Send a ping with this payload; only with a link."""

    def rest(self, until: float) -> None:
        """Read nothing until a time of the loop's clock, or until the connection closes."""

    def close(self, code: int, reason: str = "") -> None:
        """Close in order; if the peer does not answer the close, the connection is cut."""

    def cut(self) -> None: ...

    def hello_received(self) -> None:
        """Lift the deadline for `hello`, as the peer has sent it and is welcome."""


class Caller(Wire, Protocol):
    """A connection with an HTTP request, which gets exactly one response or becomes a WebSocket.

    `is_secure` says that the request came over TLS, to us or to a proxy that we trust.
    """

    is_secure: bool

    def accept(self, request: Request) -> None:
        """Make it a WebSocket if the request is valid; `is_open` says whether it was."""

    def respond(self, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
        """Send an HTTP response; does nothing if the peer has gone."""

    def hand_to(self, owner: ConnectionOwner, *, frame_bytes: int, buffer_bytes: int) -> None:
        """Give it another owner and other limits; this lifts the deadline for `hello`."""


OnRequest: TypeAlias = Callable[[Caller, Request], None]
"""Responds to a request, at once or later."""


class ConnectionOwner(Protocol):
    """Called with the events of a connection; a subclass overrides those that it handles."""

    def connected(self, connection: Wire) -> None:
        """A socket was accepted; its peer has sent nothing yet."""
        return

    def received(self, connection: Wire, frame: bytes, encoding: Encoding, arrived: float) -> None:
        """A whole frame has arrived, at a time of the loop's monotonic clock, in seconds."""

    def misbehaved(self, connection: Wire, error: ProtocolError) -> None:
        """The peer broke the WebSocket protocol or sent too large a frame; it is then closed."""

    def overflowed(self, connection: Wire, waiting: int) -> None:
        """More unread bytes than allowed wait for the peer; the connection has been cut."""
        return

    def ponged(self, connection: Wire, payload: bytes, arrived: float) -> None:
        """A pong came, whether it answers a ping or not."""

    def was_read(self, connection: Wire, took_s: float) -> None:
        """How long it took to read what came before a WebSocket's welcome, or after its close."""
        return

    def on_trivial_frame(self, connection: Wire) -> None:
        """The peer sent a part of a frame, or a ping, which has been answered."""
        return

    def drained(self, connection: Wire) -> None:
        """The peer has caught up with reading."""
        return

    def lost(self, connection: Wire) -> None:
        """The connection is gone; either end may have closed it."""


class Gate(Protocol):
    """Shares cores between launched bots."""

    def enter(
        self, who: Hashable, begin: Callable[[], None], used_ms: Callable[[], float] | None = None
    ) -> None:
        """Call `begin` once the bot may be asked."""

    def leave(self, who: Hashable) -> None:
        """Free the core of a user that has answered or is no longer asked."""


class LaunchedProcess(Protocol):
    """A bot that the arena launched, as far as the referee knows it."""

    @property
    def enforced(self) -> str:
        """The limits that it is held to, and what enforces them."""

    @property
    def is_metered(self) -> bool:
        """Whether its CPU time can be measured here; otherwise wall-clock time is charged."""

    def clock(self, now: float) -> float | None:
        """Until when its pending question has been measured: now, or when a host has read it last.

        On the loop's clock; None while the question has not reached the bot.
        """

    @property
    def lag(self) -> LoopLag | None:
        """The lag of its host, if it runs on one."""

    def cpu_ms(self) -> float: ...

    def waited_ms(self) -> float | None:
        """How long its processes were ready to run without a core; do not read it often.

        None where the system does not say.
        """

    def tail(self) -> str:
        """The end of what the bot wrote to stderr."""
