"""Reaching the arena: connecting, connecting again when the connection is lost, and who notices a dead link."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidMessage, InvalidStatus, InvalidURI, WebSocketException
from websockets.uri import parse_uri

from protocol.errors import Unreachable, UsageError, one_line
from protocol.messages import (
    CLOSE_DONE,
    CLOSE_OVERSIZE,
    CLOSE_PROTOCOL,
    CLOSE_REPLACED,
    CLOSE_RESTART,
    Match,
)

__all__ = ["Link", "NotAdmitted", "begins", "check_address", "is_to_come", "notice_dead_link"]

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 10.0
_LONGEST_WAIT_S = 2.0  # between attempts to reach an arena that is not up yet
_OPEN_TIMEOUT_S = 10.0

_DEAD_LINK = {
    "TCP_KEEPIDLE": 5,
    "TCP_KEEPALIVE": 5,  # what macOS calls it
    "TCP_KEEPINTVL": 3,
    "TCP_KEEPCNT": 4,
    "TCP_USER_TIMEOUT": 17_000,  # for what was sent and is not acknowledged, in ms
}
"""When the kernel gives up a connection whose other end's kernel is silent: after 17 s, so that some of the grace (30 s) is left to come back.

An arena that stands still, or is busy, has a kernel that answers. Waiting longer for TCP would not do: after 20 s without a network its next
attempt may be another 10 s away.
"""


class NotAdmitted(UsageError):
    """The arena refuses this bot: `code` is the word for programs, `name` what the bot has called itself."""

    def __init__(self, code: str, text: str, name: str) -> None:
        super().__init__(f"the arena refuses this bot: {text}")
        self.code, self.name = code, name


class Link:
    """Connects to an arena, and again when the connection is lost, with longer and longer pauses.

    Args:
        url: the arena's address, `ws://host:port`.
        wait_s: how long to wait for an arena that is not up yet.
        patience_s: how long to try to get a lost connection back.
        on_event: told of what happens, a line for people each time.
    """

    def __init__(
        self, url: str, *, wait_s: float, patience_s: float, on_event: Callable[[str], None]
    ) -> None:
        self._url = url
        self._wait_s = wait_s
        self._patience_s = patience_s
        self._on_event = on_event
        self._is_secure = False
        self._lost_at: float | None = None
        self._pause_s = _FIRST_PAUSE_S

    async def keep(
        self, talk: Callable[[ClientConnection], Awaitable[bool]], lost: Callable[[], None]
    ) -> None:
        """Connect, and connect again, until there is no reason to.

        Args:
            talk: called with every connection; whether there is no reason to connect again.
            lost: called whenever the connection is lost.

        Raises:
            Unreachable: nothing answers at the address for as long as it waits or patience lasts, or what answers is no arena.
            UsageError: the address is none.
        """
        self._is_secure = check_address(self._url)
        known = False
        while True:
            try:
                async with connect(
                    self._url,
                    compression=None,  # frames are small: it costs more than it saves
                    max_size=None,  # the arena is trusted with our memory
                    open_timeout=_OPEN_TIMEOUT_S,
                    ping_interval=None,  # the arena pings, and may stand still
                ) as websocket:
                    known = True
                    notice_dead_link(websocket)
                    if await talk(websocket):
                        return
                why = "the connection was lost"
            except (OSError, WebSocketException) as error:
                if not known:
                    await self._wait(error)
                    continue
                why = "the arena does not answer"
            lost()
            await self._pause(why)

    def welcomed(self) -> None:
        """The arena has said `welcome`: the next loss is a new one."""
        self._lost_at, self._pause_s = None, _FIRST_PAUSE_S

    def is_over(self, websocket: ClientConnection) -> bool:
        """Whether a connection that was closed is not to be made again.

        Raises:
            UsageError: the arena could not make sense of what was said; it would only happen again.
        """
        code = websocket.close_code
        if code == CLOSE_DONE:
            self._on_event("the arena has closed")
        elif code == CLOSE_RESTART:
            self._on_event("the arena has stopped, and will go on where it is")
        elif code == CLOSE_REPLACED:
            self._on_event("the session goes on over another connection")
        elif code in (CLOSE_PROTOCOL, CLOSE_OVERSIZE):
            raise UsageError(f"the arena closed with {code}: {websocket.close_reason}")
        return code in (CLOSE_DONE, CLOSE_REPLACED)

    async def _wait(self, error: OSError | WebSocketException) -> None:
        """Wait before the next attempt to reach an arena that is not up yet.

        Raises:
            Unreachable: it has not come in time, or what is there is none.
        """
        now = asyncio.get_running_loop().time()
        is_first, since = self._lost_at is None, self._lost_at or now
        left_s = since + self._wait_s - now
        is_plain = isinstance(error, InvalidMessage) and not self._is_secure
        hint = "; it may be a wss:// address" if is_plain else ""
        if left_s <= 0 or not is_to_come(error):
            text = (str(error) or type(error).__name__) + hint
            raise Unreachable(f"no arena answers at {self._url}: {text}") from None
        if is_first:
            self._lost_at = now
            line = f"no arena answers at {self._url} yet; waiting up to {self._wait_s:,g} s for it"
            self._on_event(line + hint)
        spread = random.uniform(0.8, 1.2)
        await asyncio.sleep(min(self._pause_s * spread, left_s))
        self._pause_s = min(self._pause_s * 2, _LONGEST_WAIT_S)

    async def _pause(self, why: str) -> None:
        """Wait before the next attempt, longer every time until a `welcome` comes."""
        now = asyncio.get_running_loop().time()
        if self._lost_at is None:
            self._lost_at = now
        if now - self._lost_at >= self._patience_s:
            raise Unreachable(f"no arena answers at {self._url} any more")
        self._on_event(f"{why}; next attempt in {self._pause_s:.1f} s")
        spread = random.uniform(0.8, 1.2)  # a class does not come back in one moment
        await asyncio.sleep(self._pause_s * spread)
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)


def check_address(url: str) -> bool:
    """Whether an address is one of a connection that is encrypted.

    Raises:
        UsageError: it is no arena's address.
    """
    try:
        return parse_uri(url).secure
    except (InvalidURI, ValueError):
        raise UsageError(
            f"expected an address such as ws://127.0.0.1:7700, got {one_line(url)!r}"
        ) from None


def begins(url: str, match: Match) -> str:
    """One line for a match that begins, with its address on the page.

    The arena says the path. At which address it is, behind a proxy, a tunnel or another name, only who has connected knows.
    """
    parts = urlsplit(url)
    scheme = "https" if parts.scheme == "wss" else "http"
    place = f"{scheme}://{parts.netloc.rpartition('@')[2]}{match.page}"
    others = [name for seat, name in enumerate(match.seats) if seat != match.seat]
    against = f" against {', '.join(others)}" if others else ""
    return f"{match.game} match {match.match}{one_line(against)} · {one_line(place)}"


def is_to_come(error: OSError | WebSocketException) -> bool:
    """Whether an arena may yet come up where an attempt ended like this: not where something else is, or no machine."""
    if isinstance(error, InvalidStatus):
        return error.response.status_code in (502, 503, 504)  # a proxy before it
    if isinstance(error, InvalidMessage):
        # Closed without an answer: a published port or a tunnel before it.
        return isinstance(error.__cause__, EOFError)
    if isinstance(error, socket.gaierror):
        return error.errno == socket.EAI_AGAIN
    return isinstance(error, OSError) and not isinstance(error, ssl.SSLError)


def notice_dead_link(websocket: ClientConnection) -> None:
    """Have the kernel end the connection if the other machine, or the network, is gone; nobody else would notice."""
    link = websocket.transport.get_extra_info("socket")
    if link is None:
        return
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in _DEAD_LINK.items():
        if (option := getattr(socket, name, None)) is not None:
            options.append((socket.IPPROTO_TCP, option, value))
    for one in options:
        with suppress(OSError):  # where the system cannot, it has its own times
            link.setsockopt(*one)
