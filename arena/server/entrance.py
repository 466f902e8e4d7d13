"""Dispatches HTTP requests: WebSockets of bots, viewers, submitters and hosts, and plain requests.

A web page must have an allowed origin (`arena/server/origins.py`). An arena without a page greets
people in plain text, and serves bots all the same.
"""

from __future__ import annotations

import logging
import time
from email.utils import formatdate
from typing import Protocol

from websockets.http11 import Request

from arena.referee.transport import Caller, Wire
from arena.server.origins import FORWARDED, Origins, Proxies, below, is_loopback
from arena.server.reply import CLOSE, NO_STORE, Reply, Visitor, text
from arena.server.throttle import Throttle, ThrottledConnection
from arena.server.visitors import IdleConnections
from protocol.messages import Limits

__all__ = ["HOSTS", "SUBMIT", "WATCH", "Entrance", "EntrancePage", "EntranceSockets", "send"]

log = logging.getLogger(__name__)

WATCH = "/watch"
"""The path of viewers' WebSockets, below the base path; WebSockets on other paths are bots'."""

SUBMIT = "/submit"
"""The path of the WebSockets of submitters, if the arena takes submissions."""

HOSTS = "/host"
"""The path of the WebSockets of hosts that run bots for this arena."""

_GREETING = (
    "Card Arena is running here. Connect a bot by WebSocket to this address; "
    "protocol/README.md says how, `arena connect --help` for one in Python."
)
_NO_HOSTS = "this arena has no bus, and so no hosts"
_NO_SUBMISSIONS = "nothing can be handed in here: the file of the arena has no table [submissions]"


class EntranceSockets(Protocol):
    """The WebSockets of viewers, submitters or hosts, as the entrance needs them."""

    def enter(self, caller: Caller, request: Request) -> None:
        """Open a WebSocket, or respond why not."""

    def tick(self, now: float) -> None:
        """Do what is due at a time on the loop's clock."""

    def roster_changed(self) -> None:
        """Check the permissions of all tokens again."""


class EntrancePage(EntranceSockets, Protocol):
    """The page, as the entrance needs it."""

    def answer(self, visitor: Visitor, request: Request) -> None:
        """Respond to a plain request, now or later."""

    def disconnected(self, caller: Wire) -> None:
        """Forget a connection that is gone; it may never have asked for the page."""


class Entrance:
    """Handles the requests of one gateway below `base_path`, which begins and ends with a slash.

    `page` answers browsers; without it they get a greeting. By default nobody has to wait.
    """

    def __init__(self, throttle: Throttle | None = None) -> None:
        self.origins = Origins()
        self.proxies = Proxies()
        self.base_path = "/"
        self.page: EntrancePage | None = None
        self.submitters: EntranceSockets | None = None
        self.hosts: EntranceSockets | None = None
        self.idle = IdleConnections()
        if throttle is None:  # not `or`: an empty throttle is false
            throttle = Throttle(Limits(), lambda: False, time.monotonic)
        self.throttle = throttle
        self._has_warned = False

    def idles(self, caller: Caller, address: str) -> None:
        """Count an answered connection as idle at `address` until its next request."""
        if self.page is not None:
            self.page.disconnected(caller)
        self.idle.add(caller, address)

    def asks_again(self, caller: ThrottledConnection) -> None:
        """Throttle an idle connection like a new one, as it begins its next request."""
        self.idle.discard(caller)
        self.throttle.connected(caller)

    def requested(self, caller: Caller, request: Request) -> None:
        self.throttle.requested(caller)
        self._see_proxy(caller, request)
        path = below(self.base_path, request.path)
        try:
            if _wants_websocket(request):
                self._upgrade(caller, request, path)
                return
            self.throttle.asked(caller)
            if path is None:
                self._redirect(caller, request)
            elif self.page is None:
                send(caller, text(200, _GREETING))
            else:
                request.path = path
                self.page.answer(caller, request)
        except Exception:
            log.exception("the arena failed at a request from %s", caller.peer)
            line = "the arena failed at this request; its log says why"
            send(caller, text(500, line, NO_STORE, CLOSE))

    def disconnected(self, caller: Wire) -> None:
        self.idle.discard(caller)
        if self.page is not None:
            self.page.disconnected(caller)

    def tick(self, now: float) -> None:
        for part in (self.page, self.submitters, self.hosts):
            if part is not None:
                try:
                    part.tick(now)
                except Exception:  # bots are served all the same
                    log.exception("the page failed")

    def roster_changed(self) -> None:
        for part in (self.page, self.submitters, self.hosts):
            if part is not None:
                part.roster_changed()

    def _see_proxy(self, caller: Caller, request: Request) -> None:
        """Warn once of an untrusted local proxy: all its clients count as local."""
        if self._has_warned or self.proxies or FORWARDED not in request.headers:
            return
        if is_loopback(caller.address):
            self._has_warned = True
            log.warning(
                "a proxy at %s seems to be in front of the arena, and all who come through it pass"
                " for programs on this machine: start the arena with --trusted-proxy %s, "
                "which tells them apart",
                caller.address,
                caller.address,
            )

    def _upgrade(self, caller: Caller, request: Request, path: str | None) -> None:
        why = self.origins.refusal(request.headers)
        place = path.partition("?")[0] if path else None
        if why is not None:
            send(caller, text(403, why, NO_STORE, CLOSE))
        elif self.page is not None and place == WATCH:
            self.throttle.asked(caller)
            self.page.enter(caller, request)
        elif place == SUBMIT:
            self._enter(self.submitters, caller, request, _NO_SUBMISSIONS)
        elif place == HOSTS:
            self._enter(self.hosts, caller, request, _NO_HOSTS)
        else:
            caller.accept(request)

    def _enter(
        self, sockets: EntranceSockets | None, caller: Caller, request: Request, none: str
    ) -> None:
        self.throttle.asked(caller)
        if sockets is None:
            send(caller, text(404, none, NO_STORE, CLOSE))
        else:
            sockets.enter(caller, request)

    def _redirect(self, caller: Caller, request: Request) -> None:
        """Redirect a request that lacks only the base path's last slash; others get 404."""
        path, mark, query = request.path.partition("?")
        if f"{path}/" == self.base_path:
            there = ("Location", f"{self.base_path}{mark}{query}")
            line = f"the page is at {self.base_path}"
            send(caller, text(307, line, there, NO_STORE))
        else:
            line = f"there is nothing here; this arena is at {self.base_path}"
            send(caller, text(404, line))


def _wants_websocket(request: Request) -> bool:
    """Return whether a WebSocket is requested; `Upgrade` may also offer HTTP/2 only."""
    offers = ",".join(request.headers.get_all("Upgrade")).split(",")
    return any(offer.strip().lower() == "websocket" for offer in offers)


def send(visitor: Visitor, reply: Reply) -> None:
    """Send a reply with its date."""
    date = ("Date", formatdate(usegmt=True))
    visitor.respond(reply.status, (date, *reply.headers), reply.body)
