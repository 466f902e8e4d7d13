"""The WebSockets at `/watch`: who may open one, what is said on it, and when it has to go.

Here words become calls: to the gallery, which shows; to the parlour, where people play; to the desk, where instructors are heard. A viewer
is served with what is left over: one that does not read, says too much or says nonsense is cut, and no match notices.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Protocol

from websockets.http11 import Request

from arena.records.visibility import Viewer
from arena.referee.transport import Caller, Wire
from arena.server.admission import Unwelcome
from arena.server.entrance import send
from arena.server.reply import text
from arena.server.throttle import Allowance
from arena.web.play.human_limits import browser_of
from arena.web.play.tables import PeopleTables
from arena.web.spectators import Spectators
from protocol.codec import Encoding
from protocol.errors import ArenaError, Malformed, ProtocolError
from protocol.messages import CLOSE_CRASHED, CLOSE_PROTOCOL, CLOSE_REFUSED, Instruct, Refused
from protocol.watching import (
    FRAME_BYTES,
    Sit,
    Stand,
    ToViewer,
    Unwatch,
    ViewerMessage,
    Watch,
    decode_from_viewer,
    encode_to_viewer,
)

__all__ = ["ViewerServices", "ViewerSocket", "Viewers"]

log = logging.getLogger(__name__)

_MOST = 4096
_MOST_NEAR = 1024  # from one address: a school behind one of them
_WORDS, _WORDS_PER_S = 20, 20  # more is not typed or clicked
_FEW, _FEW_PER_S = 5, 0.5  # enough to watch, whatever others behind the address ask
_BUFFER_BYTES = 512 * 1024
_BEHIND_S = 20.0
_PING_S = 20.0  # so that what is between us keeps the connection
_LOOK_S = 1.0


class ViewerServices(Protocol):
    """What the rest of the arena does for viewers."""

    def viewer(self, token: str | None) -> Viewer:
        """Whose token that is; raises `Unwelcome`."""

    def instruct(self, connection: Wire, message: Instruct, watcher: ViewerSocket) -> None:
        """Have an instructor's word carried out and answered; raises `Unwelcome`."""

    def spent(self, address: str) -> bool:
        """Something was done for somebody there; whether that is within reason."""

    def blame(self, address: str) -> None:
        """Somebody there was refused."""

    def lost(self, connection: Wire) -> None:
        """A connection is gone."""


class ViewerSocket:
    """One viewer.

    Attributes:
        connection: its WebSocket.
        browser: the same for all viewers of one browser; without its cookie, of one address.
        token: what it watches with.
        viewer: whose that is.
    """

    def __init__(self, connection: Caller, browser: str, now: float) -> None:
        self.connection = connection
        self.browser = browser
        self.token: str | None = None
        self.viewer = Viewer()
        self.behind_since: float | None = None
        self.ping_at = now + _PING_S
        self.awaits_pong = False

    @property
    def is_behind(self) -> bool:
        """Whether it has not read yet what was sent some time ago."""
        return self.connection.is_behind

    def send(self, data: bytes) -> None:
        """One message, as JSON; nothing happens if it is leaving."""
        self.connection.send(data, Encoding.JSON)

    def tell(self, message: ToViewer) -> None:
        """One message."""
        self.send(encode_to_viewer(message))

    def cut(self) -> None:
        """Close without a word."""
        self.connection.cut()


class Viewers:
    """All viewers of an arena, and the owner of their connections.

    Args:
        services: the rest of the arena.
        spectators: shows them what they watch.
        people: where people play.
        now: a time of the loop's monotonic clock, in seconds; `tick` brings later ones.
    """

    def __init__(
        self, services: ViewerServices, spectators: Spectators, people: PeopleTables, now: float
    ) -> None:
        self._services = services
        self._spectators = spectators
        self._people = people
        self._watchers: dict[Wire, ViewerSocket] = {}
        self._near = Counter[str]()
        self._browsers = Counter[str]()
        self._now = now
        self._look_at = now
        self._words = Allowance(_WORDS, _WORDS_PER_S, lambda: self._now)
        self._few = Allowance(_FEW, _FEW_PER_S, lambda: self._now)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._watchers)

    def enter(self, caller: Caller, request: Request) -> None:
        """Let one more in, or respond why not."""
        near = self._near[caller.address]
        if len(self._watchers) >= _MOST or near >= _MOST_NEAR:
            most = f"{_MOST:,} viewers, {_MOST_NEAR:,} of them from one address"
            send(caller, text(503, f"expected at most {most}; come back later"))
            return
        # Before it is accepted: its headers are forgotten then.
        browser = browser_of(request.headers) or f"at {caller.address}"
        caller.accept(request)
        if caller.is_open:
            self._watchers[caller] = ViewerSocket(caller, browser, self._now)
            self._near[caller.address] += 1
            self._browsers[browser] += 1
            if self._browsers[browser] == 1:
                self._people.seen(browser)
            caller.hand_to(self, frame_bytes=FRAME_BYTES, buffer_bytes=_BUFFER_BYTES)

    def tick(self, now: float) -> None:
        """Ping those that it is time for; cut who does not read, or is gone without a word."""
        self._now = now
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_S
        for watcher in tuple(self._watchers.values()):
            self._look(watcher, now)

    def roster_changed(self) -> None:
        """Who sees more by a token that is another's now, or nobody's, has to come back with a good one."""
        for watcher in tuple(self._watchers.values()):
            try:
                is_same = self._services.viewer(watcher.token) == watcher.viewer
            except Unwelcome:
                is_same = False
            if not is_same:
                watcher.connection.close(CLOSE_REFUSED, "the token was replaced")

    # --- what connections tell (the Owner's side) ---

    def connected(self, connection: Wire) -> None:
        """Never: it has been the gateway's."""

    def received(self, connection: Wire, frame: bytes, encoding: Encoding, arrived: float) -> None:
        """A frame, which should be a word for us."""
        watcher = self._watchers.get(connection)
        if watcher is None or not self._is_within(watcher, arrived):
            return
        try:
            if encoding is not Encoding.JSON:
                raise Malformed("expected JSON in text frames, got a binary frame")
            self._heard(watcher, decode_from_viewer(frame))
        except ProtocolError as error:
            self.misbehaved(connection, error)
        except Unwelcome as why:
            watcher.tell(Refused(why.code, str(why)))
            self._services.blame(connection.address)
            connection.close(CLOSE_REFUSED, str(why))
        except Exception:
            log.exception("the arena failed at a viewer's frame")
            connection.close(CLOSE_CRASHED, "the arena failed; come back")

    def misbehaved(self, connection: Wire, error: ProtocolError) -> None:
        """Say what was wrong, and close."""
        if (watcher := self._watchers.get(connection)) is not None:
            watcher.tell(Refused(error.code, str(error)))
        self._services.blame(connection.address)
        connection.close(CLOSE_PROTOCOL, str(error))

    def overflowed(self, connection: Wire, waiting: int) -> None:
        """It has been cut, and that is all."""

    def ponged(self, connection: Wire, payload: bytes, arrived: float) -> None:
        """It is still there."""
        watcher = self._watchers.get(connection)
        if watcher is None:
            return
        if watcher.awaits_pong:  # we have asked for it
            watcher.awaits_pong = False
        else:
            self._is_within(watcher, arrived)

    def was_read(self, connection: Wire, took_s: float) -> None:
        """It is closing, and says something still."""

    def on_trivial_frame(self, connection: Wire) -> None:
        """A ping, or a part of a message."""
        if (watcher := self._watchers.get(connection)) is not None:
            self._is_within(watcher, self._now)

    def drained(self, connection: Wire) -> None:
        """It has caught up."""
        if (watcher := self._watchers.get(connection)) is not None:
            watcher.behind_since = None

    def lost(self, connection: Wire) -> None:
        """It is gone."""
        watcher = self._watchers.pop(connection, None)
        if watcher is not None:
            self._near[connection.address] -= 1
            if not self._near[connection.address]:
                del self._near[connection.address]
            self._spectators.disconnected(watcher)
            self._people.disconnected(watcher)
            self._browsers[watcher.browser] -= 1
            if not self._browsers[watcher.browser]:
                del self._browsers[watcher.browser]
                self._people.unseen(watcher.browser)
        self._services.lost(connection)

    # --- within ---

    def _heard(self, watcher: ViewerSocket, message: ViewerMessage) -> None:
        """One word.

        Raises:
            Unwelcome: its token is nobody's.
        """
        match message:
            case Watch():
                viewer = self._services.viewer(message.token)
                watcher.token, watcher.viewer = message.token, viewer
                self._spectators.watch(watcher, message, viewer)
            case Unwatch():
                self._spectators.unwatch(watcher)
            case Sit():
                self._sit(watcher, message, self._services.viewer(message.token))
            case Stand():
                self._people.stand(watcher)
            case Instruct():
                self._services.instruct(watcher.connection, message, watcher)

    def _sit(self, watcher: ViewerSocket, message: Sit, viewer: Viewer) -> None:
        """A person who cannot sit down is told why, and may try again."""
        try:
            address = watcher.connection.address
            seat = self._people.sit(watcher, message, address, viewer)
        except Unwelcome as why:
            watcher.tell(Refused(why.code, str(why)))
        except ArenaError as error:
            watcher.tell(Refused("sit", str(error)))
        else:
            watcher.tell(seat)

    def _is_within(self, watcher: ViewerSocket, now: float) -> bool:
        """Whether it has said no more than anybody would; else it goes.

        A class may share its address with one who asks without end: who says little is served all the same.
        """
        self._now = max(self._now, now)
        connection = watcher.connection
        is_little = self._few.spend(connection.peer)
        if not self._words.spend(connection.peer):
            self._services.blame(connection.address)
            connection.useless += _WORDS  # what it says still is not read
            why = f"expected at most {_WORDS_PER_S} messages a second"
        elif self._services.spent(connection.address) or is_little:
            return True
        else:
            why = "too much is asked from this address just now; come back in a minute"
        connection.close(CLOSE_PROTOCOL, why)
        return False

    def _look(self, watcher: ViewerSocket, now: float) -> None:
        if watcher.is_behind:
            since = watcher.behind_since
            watcher.behind_since = now if since is None else since
            if now - watcher.behind_since >= _BEHIND_S:
                watcher.cut()
                return
        if now >= watcher.ping_at:
            if watcher.awaits_pong:
                watcher.cut()  # gone, or so far behind that it has not seen the ping
                return
            watcher.ping_at, watcher.awaits_pong = now + _PING_S, True
            watcher.connection.ping(b"")
