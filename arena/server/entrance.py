"""Where every request comes in: a bot's WebSocket, a viewer's, or something that a browser fetches.

Browsers have to come from a page that may speak with us (`arena/server/origin.py`). Without a page there is a greeting for people, and
bots are served as ever.
"""

from __future__ import annotations

import logging
from email.utils import formatdate
from typing import Protocol

from websockets.http11 import Request

from arena.referee.transport import Caller, Wire
from arena.server.http import CLOSE
from arena.server.origin import Origins, below, is_loopback
from arena.server.proxies import HEADER, Proxies
from arena.server.reply import NO_STORE, Reply, Visitor, text
from arena.server.throttle import Throttle, ThrottledConnection
from arena.server.visitors import IdleConnections

__all__ = ["WATCH", "Entrance", "EntrancePage", "send"]

log = logging.getLogger(__name__)

WATCH = "/watch"
"""The path of viewers' WebSockets, below the base path; those of bots have any other."""

_GREETING = (
    "Card Arena is running here. Connect a bot by WebSocket to this address; "
    "protocol/README.md says how, `arena connect --help` for one in Python."
)


class EntrancePage(Protocol):
    """What there is for browsers."""

    def answer(self, visitor: Visitor, request: Request) -> None:
        """Respond to what is fetched, now or later."""

    def enter(self, caller: Caller, request: Request) -> None:
        """Let somebody watch, or respond why not."""

    def disconnected(self, caller: Wire) -> None:
        """A connection is gone, whoever's it was."""

    def tick(self, now: float) -> None:
        """Do what is due, at a time of the loop's clock."""

    def roster_changed(self) -> None:
        """Tokens may have come to mean something else."""


class Entrance:
    """A gateway's.

    Args:
        throttle: told of those who have not said who they are; without it there is time for all of them.

    Attributes:
        origins: whose pages may open WebSockets here.
        proxies: who may say where a request comes from.
        base_path: below which browsers find everything, as a proxy passes it on; it begins and ends with a slash.
        page: what there is for browsers, if there is anything.
        idle: the connections that have their answers and may ask again.
    """

    def __init__(self, throttle: Throttle | None = None) -> None:
        self.origins = Origins()
        self.proxies = Proxies()
        self.base_path = "/"
        self.page: EntrancePage | None = None
        self.idle = IdleConnections()
        self._throttle = throttle
        self._has_warned = False

    def moved(self, caller: ThrottledConnection, address: str) -> bool:
        """Its request says that it comes from there; whether it is heard now, or when it is served again."""
        if self._throttle is not None:
            return self._throttle.moved(caller, address)
        caller.address = address
        return True

    def shakes(self, stranger: ThrottledConnection) -> None:
        """Something of a handshake of TLS has come."""
        if self._throttle is None:
            stranger.shake()
        else:
            self._throttle.shakes(stranger)

    def idles(self, caller: Caller, address: str) -> None:
        """One has its answer, and may ask again; before it does it is counted there."""
        if self.page is not None:
            self.page.disconnected(caller)
        self.idle.add(caller, address)

    def asks_again(self, caller: ThrottledConnection) -> None:
        """Its next request has begun to come: it is a stranger again."""
        self.idle.discard(caller)
        if self._throttle is not None:
            self._throttle.connected(caller)
        else:
            caller.resume_reading()

    def requested(self, caller: Caller, request: Request) -> None:
        """Answer a request, or see to it that it will be."""
        self._see_proxy(caller, request)
        path = below(self.base_path, request.path)
        try:
            if _wants_websocket(request):
                self._upgrade(caller, request, path)
            elif path is None:
                self._redirect(caller, request)
            else:
                request.path = path
                self._fetch(caller, request)
        except Exception:
            log.exception("the arena failed at a request from %s", caller.peer)
            line = "the arena failed at this request; its log says why"
            send(caller, text(500, line, NO_STORE, CLOSE))

    def disconnected(self, caller: Wire) -> None:
        """A connection is gone, whoever's it was."""
        self.idle.discard(caller)
        if self.page is not None:
            self.page.disconnected(caller)

    def tick(self, now: float) -> None:
        """The loop's clock says so much."""
        if self.page is not None:
            try:
                self.page.tick(now)
            except Exception:  # bots are served all the same
                log.exception("the page failed")

    def roster_changed(self) -> None:
        """Tokens may have come to mean something else."""
        if self.page is not None:
            self.page.roster_changed()

    def _see_proxy(self, caller: Caller, request: Request) -> None:
        """Say once that a proxy on this machine is in front that nobody has told us of: all through it pass for programs on this machine."""
        if self._has_warned or self.proxies or HEADER not in request.headers:
            return
        if is_loopback(caller.address):
            self._has_warned = True
            log.warning(
                "a proxy at %s seems to be in front of the arena, and all who come through it pass for programs on this machine:"
                " start the arena with --trusted-proxy %s, which tells them apart",
                caller.address,
                caller.address,
            )

    def _asked(self, caller: Caller) -> None:
        if self._throttle is not None:
            self._throttle.asked(caller)

    def _upgrade(self, caller: Caller, request: Request, path: str | None) -> None:
        why = self.origins.refusal(request.headers)
        if why is not None:
            send(caller, text(403, why, NO_STORE, CLOSE))
        elif self.page is not None and path and path.partition("?")[0] == WATCH:
            self._asked(caller)
            self.page.enter(caller, request)
        else:
            caller.accept(request)

    def _redirect(self, caller: Caller, request: Request) -> None:
        """What is not below the base path is not here; who has only left out its last slash is told."""
        self._asked(caller)
        path, mark, query = request.path.partition("?")
        if f"{path}/" == self.base_path:
            there = ("Location", f"{self.base_path}{mark}{query}")
            line = f"the page is at {self.base_path}"
            send(caller, text(307, line, there, NO_STORE))
        else:
            line = f"there is nothing here; this arena is at {self.base_path}"
            send(caller, text(404, line))

    def _fetch(self, caller: Caller, request: Request) -> None:
        self._asked(caller)
        if self.page is None:
            send(caller, text(200, _GREETING))
        else:
            self.page.answer(caller, request)


def _wants_websocket(request: Request) -> bool:
    """Whether it is no plain request; some programs offer HTTP/2 with those."""
    offers = ",".join(request.headers.get_all("Upgrade")).split(",")
    return any(offer.strip().lower() == "websocket" for offer in offers)


def send(visitor: Visitor, reply: Reply) -> None:
    """Respond with an answer that has been made."""
    date = ("Date", formatdate(usegmt=True))
    visitor.respond(reply.status, (date, *reply.headers), reply.body)
