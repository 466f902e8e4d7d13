"""The WebSockets at `/watch`: who may open one, what viewers may send, and when one is closed.

Each message becomes a call: to the spectators, to the tables of people who play, or to the admin
requests. Viewers are served in the time that matches leave. A viewer that does not read, sends too
much or sends nonsense is disconnected, and no match notices.
"""

from __future__ import annotations

import logging
from collections import Counter

import msgspec
from websockets.http11 import Request

from arena.records.captions import Captioner
from arena.records.visibility import Viewer
from arena.referee.transport import Caller, ConnectionOwner, Wire
from arena.server.admission import Unwelcome
from arena.server.entrance import send
from arena.server.gateway import Gateway
from arena.server.reply import text
from arena.server.throttle import Allowance
from arena.web.play.human_limits import browser_of
from arena.web.play.tables import PeopleTables
from arena.web.spectators import Spectators
from protocol.codec import Encoding
from protocol.errors import ArenaError, Malformed, ProtocolError
from protocol.games import VOCABULARIES
from protocol.messages import CLOSE_CRASHED, CLOSE_PROTOCOL, CLOSE_REFUSED, Instruct, Refused
from protocol.watching import (
    FRAME_BYTES,
    Captions,
    Describe,
    Sit,
    Stand,
    ToViewer,
    Unwatch,
    ViewerMessage,
    Watch,
    decode_from_viewer,
    encode_to_viewer,
)

__all__ = ["ViewerSocket", "Viewers"]

log = logging.getLogger(__name__)

_MOST = 4096  # viewers
_MOST_NEAR = 1024  # from one address: a school behind one of them
_MESSAGES, _MESSAGES_PER_S = 20, 20  # at once, then a second; nobody types or clicks more
_FEW, _FEW_PER_S = 5, 0.5  # enough to watch, whatever others behind the address ask
_BUFFER_BYTES = 512 * 1024
_BEHIND_S = 20.0
_PING_S = 20.0  # proxies and routers close connections that are idle for a minute or so
_LOOK_S = 1.0


class ViewerSocket(msgspec.Struct, eq=False):
    """One viewer, with the token of its last `watch`; `ping_at` is on the loop's clock.

    `browser` is the same for all viewers of one browser; without its cookie, of one address.
    `behind_since` is None if it reads in time.
    """

    connection: Caller
    browser: str
    ping_at: float
    token: str | None = None
    viewer: Viewer = Viewer()
    behind_since: float | None = None
    awaits_pong: bool = False

    @property
    def is_behind(self) -> bool:
        """Whether it has not read yet what was sent some time ago."""
        return self.connection.is_behind

    def send(self, data: bytes) -> None:
        """Send JSON in a text frame; does nothing if the connection is closing."""
        self.connection.send(data, Encoding.JSON)

    def tell(self, message: ToViewer) -> None:
        self.send(encode_to_viewer(message))


class Viewers(ConnectionOwner):
    """All viewers of an arena, and the owner of their connections; `now` is on the loop's clock."""

    def __init__(
        self, gateway: Gateway, spectators: Spectators, people: PeopleTables, now: float
    ) -> None:
        self._gateway = gateway
        self._spectators = spectators
        self._people = people
        self._watchers: dict[Wire, ViewerSocket] = {}
        self._near = Counter[str]()
        self._browsers = Counter[str]()
        self._now = now
        self._look_at = now
        self._messages = Allowance(_MESSAGES, _MESSAGES_PER_S, lambda: self._now)
        self._few = Allowance(_FEW, _FEW_PER_S, lambda: self._now)

    def __len__(self) -> int:
        return len(self._watchers)

    def enter(self, caller: Caller, request: Request) -> None:
        """Accept a viewer, or respond why not."""
        near = self._near[caller.address]
        if len(self._watchers) >= _MOST or near >= _MOST_NEAR:
            most = f"{_MOST:,} viewers, {_MOST_NEAR:,} of them from one address"
            send(caller, text(503, f"expected at most {most}; come back later"))
            return
        # Before the connection is accepted, which drops the headers.
        browser = browser_of(request.headers) or f"at {caller.address}"
        caller.accept(request)
        if caller.is_open:
            self._watchers[caller] = ViewerSocket(caller, browser, self._now + _PING_S)
            self._near[caller.address] += 1
            self._browsers[browser] += 1
            if self._browsers[browser] == 1:
                self._people.seen(browser)
            caller.hand_to(self, frame_bytes=FRAME_BYTES, buffer_bytes=_BUFFER_BYTES)

    def tick(self, now: float) -> None:
        """Ping viewers that are due; disconnect those that do not read or do not answer pings."""
        self._now = now
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_S
        for watcher in tuple(self._watchers.values()):
            self._look(watcher, now)

    def roster_changed(self) -> None:
        """Disconnect viewers whose token is now another's, or nobody's."""
        for watcher in tuple(self._watchers.values()):
            try:
                is_same = self._gateway.admission.viewer(watcher.token) == watcher.viewer
            except Unwelcome:
                is_same = False
            if not is_same:
                watcher.connection.close(CLOSE_REFUSED, "the token was replaced")

    # --- what connections tell ---

    def received(self, connection: Wire, frame: bytes, encoding: Encoding, arrived: float) -> None:
        """Decode a frame and do what it asks for; close the connection if that is not possible."""
        watcher = self._watchers.get(connection)
        if watcher is None or not self._is_within_limits(watcher, arrived):
            return
        try:
            if encoding is not Encoding.JSON:
                raise Malformed("expected JSON in text frames, got a binary frame")
            self._handle(watcher, decode_from_viewer(frame))
        except ProtocolError as error:
            self.misbehaved(connection, error)
        except Unwelcome as why:
            watcher.tell(Refused(why.code, str(why)))
            self._gateway.login.throttle.blame(connection.address)
            connection.close(CLOSE_REFUSED, str(why))
        except Exception:
            log.exception("the arena failed at a viewer's frame")
            connection.close(CLOSE_CRASHED, "the arena failed; come back")

    def misbehaved(self, connection: Wire, error: ProtocolError) -> None:
        """Say what was wrong, and close."""
        if (watcher := self._watchers.get(connection)) is not None:
            watcher.tell(Refused(error.code, str(error)))
        self._gateway.login.throttle.blame(connection.address)
        connection.close(CLOSE_PROTOCOL, str(error))

    def ponged(self, connection: Wire, payload: bytes, arrived: float) -> None:
        """Note that the viewer is there; a pong that nobody asked for counts as a message."""
        watcher = self._watchers.get(connection)
        if watcher is None:
            return
        if watcher.awaits_pong:
            watcher.awaits_pong = False
        else:
            self._is_within_limits(watcher, arrived)

    def on_trivial_frame(self, connection: Wire) -> None:
        """Count a ping, or a fragment, as a message."""
        if (watcher := self._watchers.get(connection)) is not None:
            self._is_within_limits(watcher, self._now)

    def drained(self, connection: Wire) -> None:
        if (watcher := self._watchers.get(connection)) is not None:
            watcher.behind_since = None

    def lost(self, connection: Wire) -> None:
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
        self._gateway.lost(connection)

    # --- within ---

    def _handle(self, watcher: ViewerSocket, message: ViewerMessage) -> None:
        """Do what a message asks for; raises `Unwelcome` if its token is nobody's."""
        admission, login = self._gateway.admission, self._gateway.login
        match message:
            case Watch():
                viewer = admission.viewer(message.token)
                watcher.token, watcher.viewer = message.token, viewer
                self._spectators.watch(watcher, message, viewer)
            case Unwatch():
                self._spectators.unwatch(watcher)
            case Sit():
                self._sit(watcher, message, admission.viewer(message.token))
            case Stand():
                self._people.stand(watcher)
            case Describe():
                watcher.tell(_captions(message))
            case Instruct():
                login.admin_requests.received(watcher.connection, message, watcher.tell)

    def _sit(self, watcher: ViewerSocket, message: Sit, viewer: Viewer) -> None:
        """Send a person its seat, or why there is none; the person may try again."""
        try:
            reply: ToViewer = self._people.sit(watcher, message, watcher.connection.address, viewer)
        except Unwelcome as why:
            reply = Refused(why.code, str(why))
        except ArenaError as error:
            reply = Refused("sit", str(error))
        watcher.tell(reply)

    def _is_within_limits(self, watcher: ViewerSocket, now: float) -> bool:
        """Whether a viewer may send one more message now; if not, its connection is closed.

        The limit of an address does not apply to a viewer that sends little: a whole class may
        share its address with one program that asks without end.
        """
        self._now = max(self._now, now)
        connection, throttle = watcher.connection, self._gateway.login.throttle
        is_little = self._few.spend(connection.peer)
        if not self._messages.spend(connection.peer):
            throttle.blame(connection.address)
            connection.useless += _MESSAGES  # what it still sends is not read
            why = f"expected at most {_MESSAGES_PER_S} messages a second"
        elif throttle.spent(connection.address) or is_little:
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
                watcher.connection.cut()
                return
        if now >= watcher.ping_at:
            if watcher.awaits_pong:  # gone, or so far behind that it has not seen the ping
                watcher.connection.cut()
                return
            watcher.ping_at, watcher.awaits_pong = now + _PING_S, True
            watcher.connection.ping(b"")


def _captions(message: Describe) -> Captions:
    """The words for events; they are made of the message alone, and so tell nothing else (J8)."""
    vocabulary = VOCABULARIES.get(message.game)
    if vocabulary is None:
        return Captions(({},) * len(message.events))
    captions = Captioner(vocabulary, message.players)
    return Captions(tuple(captions.of(event, message.seat) for event in message.events))
