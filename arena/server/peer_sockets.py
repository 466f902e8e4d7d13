"""WebSockets of peers that are not bots: accepts and closes them.

`/watch` and `/submit` have a subclass each, which handles the messages. A peer that does not read,
or sends too much or nonsense, is disconnected without an effect on matches.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import Counter
from typing import ClassVar, Generic, TypeVar

from websockets.http11 import Request

from arena.records.visibility import Viewer
from arena.referee.transport import Caller, Wire
from arena.server.admission import Unwelcome
from arena.server.entrance import send
from arena.server.gateway import Gateway
from arena.server.reply import text
from arena.server.throttle import Allowance
from protocol.codec import Encoding, encode
from protocol.errors import Malformed, ProtocolError
from protocol.messages import CLOSE_CRASHED, CLOSE_PROTOCOL, CLOSE_REFUSED, Refused

__all__ = ["PeerSocket", "PeerSockets"]

log = logging.getLogger(__name__)

_MOST_NEAR = 1024  # from one address: a school may share one
_BEHIND_S = 20.0
_PING_S = 20.0  # proxies and routers close connections that are idle for a minute or so
_LOOK_S = 1.0


class PeerSocket:
    """One peer and the last token that it has shown; times are on the loop's clock.

    Attributes:
        viewer: the holder of that token, or the public without one.
        behind_since: since when the peer reads too slowly; None if it reads in time.
    """

    def __init__(self, connection: Caller, now: float) -> None:
        self.connection = connection
        self.token: str | None = None
        self.viewer = Viewer()
        self.ping_at = now + _PING_S
        self.awaits_pong = False
        self.behind_since: float | None = None

    def send(self, data: bytes) -> None:
        """Send JSON in a text frame; ignored if the connection is closing."""
        self.connection.send(data, Encoding.JSON)

    def refuse(self, code: str, text: str) -> None:
        """Tell the peer that a message was refused, and why."""
        self.send(encode(Refused(code, text), Encoding.JSON))

    def drained(self) -> None:
        """Note that the peer has read everything, or is gone."""
        self.behind_since = None


PeerT = TypeVar("PeerT", bound=PeerSocket)


class PeerSockets(ABC, Generic[PeerT]):
    """Owns all connections of one kind; `now` is on the loop's clock.

    Attributes:
        named: the name of one peer in the log, and of many in an answer.
        most: how many there may be.
        messages, messages_per_s: how many each may send at once, and then per second.
    """

    named: ClassVar[tuple[str, str]]
    most: ClassVar[int]
    messages: ClassVar[int]
    messages_per_s: ClassVar[int]
    frame_bytes: ClassVar[int]
    buffer_bytes: ClassVar[int]

    def __init__(self, gateway: Gateway, now: float) -> None:
        self._gateway = gateway
        self._peers: dict[Wire, PeerT] = {}
        self._near = Counter[str]()
        self._now = now
        self._look_at = now
        self._messages = Allowance(self.messages, self.messages_per_s, lambda: self._now)

    def __len__(self) -> int:
        return len(self._peers)

    def enter(self, caller: Caller, request: Request) -> None:
        """Accept a peer, or respond why not."""
        near = self._near[caller.address]
        if len(self._peers) >= self.most or near >= _MOST_NEAR:
            most = f"{self.most:,} {self.named[1]}, {_MOST_NEAR:,} of them from one address"
            send(caller, text(503, f"expected at most {most}; come back later"))
            return
        peer = self._peer(caller, request)
        caller.accept(request)
        if caller.is_open:
            self._peers[caller] = peer
            self._near[caller.address] += 1
            self._entered(peer)
            caller.hand_to(self, frame_bytes=self.frame_bytes, buffer_bytes=self.buffer_bytes)

    def tick(self, now: float) -> None:
        """Ping peers that are due, and disconnect those that do not read or answer pings."""
        self._now = now
        if now >= self._look_at:
            self._look_at = now + _LOOK_S
            for peer in tuple(self._peers.values()):
                self._look(peer, now)

    def roster_changed(self) -> None:
        """Disconnect peers whose token is now another's or nobody's."""
        for peer in tuple(self._peers.values()):
            try:
                is_same = self._gateway.admission.viewer(peer.token) == peer.viewer
            except Unwelcome:
                is_same = False
            if not is_same:
                peer.connection.close(CLOSE_REFUSED, "the token was replaced")

    # --- what a subclass defines ---

    @abstractmethod
    def _peer(self, caller: Caller, request: Request) -> PeerT:
        """Make a new peer; its headers are gone once the connection is accepted."""

    def _entered(self, peer: PeerT) -> None:
        """Called when a peer has entered."""

    @abstractmethod
    def _take(self, peer: PeerT, frame: bytes, arrived: float) -> None:
        """Do what a frame asks; `ProtocolError` and `Unwelcome` end the connection."""

    def _left(self, peer: PeerT) -> None:
        """Called when a peer has left."""

    # --- events of connections: `ConnectionOwner` ---

    def connected(self, connection: Wire) -> None:
        """Never called: the gateway owned the connection until now."""

    def received(self, connection: Wire, frame: bytes, encoding: Encoding, arrived: float) -> None:
        """Do what a frame asks; close the connection if that is impossible."""
        peer = self._peers.get(connection)
        if peer is None:
            return
        try:
            if encoding is not Encoding.JSON:
                raise Malformed("expected JSON in text frames, got a binary frame")
            self._take(peer, frame, arrived)
        except ProtocolError as error:
            self.misbehaved(connection, error)
        except Unwelcome as why:
            peer.refuse(why.code, str(why))
            self._gateway.throttle.blame(connection.address)
            connection.close(CLOSE_REFUSED, str(why))
        except Exception:
            log.exception("the arena failed at a %s's frame", self.named[0])
            connection.close(CLOSE_CRASHED, "the arena failed; come back")

    def misbehaved(self, connection: Wire, error: ProtocolError) -> None:
        """Tell the peer what was wrong, and close the connection."""
        if (peer := self._peers.get(connection)) is not None:
            peer.refuse(error.code, str(error))
        self._gateway.throttle.blame(connection.address)
        connection.close(CLOSE_PROTOCOL, str(error))

    def overflowed(self, connection: Wire, waiting: int) -> None:
        """Do nothing, as the connection has been cut already."""

    def ponged(self, connection: Wire, payload: bytes, arrived: float) -> None:
        """Note that the peer is there; an unsolicited pong counts as a message."""
        if (peer := self._peers.get(connection)) is not None:
            if not peer.awaits_pong:
                self._is_within_limits(peer, arrived)
            peer.awaits_pong = False

    def was_read(self, connection: Wire, took_s: float) -> None:
        """Do nothing, as the connection is closing."""

    def on_trivial_frame(self, connection: Wire) -> None:
        """Count a ping, or a fragment, as a message."""
        if (peer := self._peers.get(connection)) is not None:
            self._is_within_limits(peer, self._now)

    def drained(self, connection: Wire) -> None:
        if (peer := self._peers.get(connection)) is not None:
            peer.drained()

    def lost(self, connection: Wire) -> None:
        peer = self._peers.pop(connection, None)
        if peer is not None:
            self._near[connection.address] -= 1
            if not self._near[connection.address]:
                del self._near[connection.address]
            self._left(peer)
        self._gateway.lost(connection)

    # --- within ---

    def _is_within_limits(self, peer: PeerT, now: float) -> bool:
        """Return whether a peer may send one more message now; if not, close its connection."""
        self._now = max(self._now, now)
        connection = peer.connection
        if self._messages.spend(connection.peer):
            return True
        self._gateway.throttle.blame(connection.address)
        connection.useless += self.messages  # further messages are not read
        why = f"expected at most {self.messages_per_s} messages a second"
        connection.close(CLOSE_PROTOCOL, why)
        return False

    def _look(self, peer: PeerT, now: float) -> None:
        connection = peer.connection
        if connection.is_behind:
            since = peer.behind_since
            peer.behind_since = now if since is None else since
            if now - peer.behind_since >= _BEHIND_S:
                connection.cut()
        elif now >= peer.ping_at:
            if peer.awaits_pong:  # gone, or so far behind that it has not seen the ping
                connection.cut()
                return
            peer.ping_at, peer.awaits_pong = now + _PING_S, True
            connection.ping(b"")
