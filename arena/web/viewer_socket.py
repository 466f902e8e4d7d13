"""The WebSockets at `/watch`: what viewers may send, and how it is handled.

Each message becomes a call: to the spectators, to the tables of people who play, or to the admin
requests. Viewers are served in the time that matches leave.
"""

from __future__ import annotations

from collections import Counter

from websockets.http11 import Request

from arena.records.captions import Captioner
from arena.records.visibility import Viewer
from arena.referee.transport import Caller
from arena.server.admission import Unwelcome
from arena.server.gateway import Gateway
from arena.server.peer_sockets import PeerSocket, PeerSockets
from arena.server.throttle import Allowance
from arena.web.play.people import browser_of
from arena.web.play.tables import PeopleTables
from arena.web.spectators import Spectators
from protocol.errors import ArenaError
from protocol.games import VOCABULARIES
from protocol.messages import CLOSE_PROTOCOL, Instruct
from protocol.watching import (
    FRAME_BYTES,
    Captions,
    Describe,
    Sit,
    Stand,
    ToViewer,
    Unwatch,
    Watch,
    decode_from_viewer,
    encode_to_viewer,
)

__all__ = ["ViewerSocket", "Viewers"]

_FEW, _FEW_PER_S = 5, 0.5  # enough to watch, whatever others at the same address send
_DESCRIBED = 20  # describing this many events takes as long as a request


class ViewerSocket(PeerSocket):
    """One viewer, with the token of its last `watch`.

    `browser` is the same for all viewers in one browser, or without its cookie at one address.
    """

    def __init__(self, connection: Caller, now: float, browser: str) -> None:
        super().__init__(connection, now)
        self.browser = browser

    @property
    def is_behind(self) -> bool:
        """Whether the viewer has not yet read what was sent some time ago."""
        return self.connection.is_behind

    def tell(self, message: ToViewer) -> None:
        self.send(encode_to_viewer(message))


class Viewers(PeerSockets[ViewerSocket]):
    """All viewers of an arena; `now` is on the loop's clock."""

    named, most = ("viewer", "viewers"), 4096
    messages, messages_per_s = 20, 20  # nobody types or clicks faster
    frame_bytes, buffer_bytes = FRAME_BYTES, 512 * 1024

    def __init__(
        self, gateway: Gateway, spectators: Spectators, people: PeopleTables, now: float
    ) -> None:
        super().__init__(gateway, now)
        self._spectators = spectators
        self._people = people
        self._browsers = Counter[str]()
        self._few = Allowance(_FEW, _FEW_PER_S, lambda: self._now)

    def _peer(self, caller: Caller, request: Request) -> ViewerSocket:
        browser = browser_of(request.headers) or f"at {caller.address}"
        return ViewerSocket(caller, self._now, browser)

    def _entered(self, peer: ViewerSocket) -> None:
        self._browsers[peer.browser] += 1
        if self._browsers[peer.browser] == 1:
            self._people.seen(peer.browser)

    def _left(self, peer: ViewerSocket) -> None:
        self._spectators.unwatch(peer)
        self._people.disconnected(peer)
        self._browsers[peer.browser] -= 1
        if not self._browsers[peer.browser]:
            del self._browsers[peer.browser]
            self._people.unseen(peer.browser)

    def _take(self, peer: ViewerSocket, frame: bytes, arrived: float) -> None:
        if not self._is_within_limits(peer, arrived):
            return
        admission, message = self._gateway.admission, decode_from_viewer(frame)
        match message:
            case Watch():
                viewer = admission.viewer(message.token)
                peer.token, peer.viewer = message.token, viewer
                self._spectators.watch(peer, message, viewer)
            case Unwatch():
                self._spectators.unwatch(peer)
            case Sit():
                self._sit(peer, message, admission.viewer(message.token))
            case Stand():
                self._people.stand(peer)
            case Describe():
                for _ in range(len(message.events) // _DESCRIBED):
                    self._gateway.throttle.spent(peer.connection.address)
                peer.tell(_captions(message))
            case Instruct():
                requests = self._gateway.admin_requests
                requests.received(peer.connection, message, peer.tell)

    def _sit(self, peer: ViewerSocket, message: Sit, viewer: Viewer) -> None:
        """Send a person a seat, or the reason for refusing it; the person may try again."""
        try:
            peer.tell(self._people.sit(peer, message, peer.connection.address, viewer))
        except Unwelcome as why:
            peer.refuse(why.code, str(why))
        except ArenaError as error:
            peer.refuse("sit", str(error))

    def _is_within_limits(self, peer: ViewerSocket, now: float) -> bool:
        """Whether a viewer may send one more message now; if not, its connection is closed.

        The limit of an address does not apply to a viewer that sends little: a whole class may
        share its address with one program that floods the arena.
        """
        if not super()._is_within_limits(peer, now):
            return False
        is_little = self._few.spend(peer.connection.peer)
        if self._gateway.throttle.spent(peer.connection.address) or is_little:
            return True
        why = "too much is asked from this address just now; come back in a minute"
        peer.connection.close(CLOSE_PROTOCOL, why)
        return False


def _captions(message: Describe) -> Captions:
    """Put events into words; only the message itself is used, so nothing can leak (J8)."""
    vocabulary = VOCABULARIES.get(message.game)
    if vocabulary is None:
        return Captions(({},) * len(message.events))
    captions = Captioner(vocabulary, message.players)
    return Captions(tuple(captions.of(event, message.seat) for event in message.events))
