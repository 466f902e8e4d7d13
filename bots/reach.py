"""Connects to the arena, reconnects when the connection is lost, and detects a dead link."""

from __future__ import annotations

import asyncio
import random
import select
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, cast
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidMessage,
    InvalidProxyStatus,
    InvalidStatus,
    InvalidURI,
    WebSocketException,
)
from websockets.frames import DATA_OPCODES, Frame, Opcode
from websockets.protocol import Event, State
from websockets.uri import parse_uri

from protocol.address import proxy_to, through
from protocol.errors import Unreachable, UsageError, one_line
from protocol.messages import (
    CLOSE_DONE,
    CLOSE_OVERSIZE,
    CLOSE_PROTOCOL,
    CLOSE_REPLACED,
    CLOSE_RESTART,
    FAILED,
    FinalStanding,
    Goodbye,
    Match,
    Welcome,
)

__all__ = ["FrameConnection", "Link", "NotAdmitted", "begins", "check_address", "close_reason"]
__all__ += ["has_closed", "is_to_come", "notice_dead_link", "stands", "unread"]

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 10.0
_LONGEST_WAIT_S = 2.0  # between two attempts to reach an arena that is not up yet
_OPEN_TIMEOUT_S = 10.0
_REASON_BYTES = 120  # RFC 6455: a close reason has at most 123
_PEEKED_BYTES = 1 << 20
_ANSWERS_S = 3.0  # a leaving bot waits this long for a ping's answer
_FINAL = 0x80  # the bit FIN in a frame's first byte: the last frame of a message
_OPCODE = 0x0F

# The kernel gives up a connection after 17 s without a sign of the other machine's kernel, so that
# some of the grace (30 s) is left. The kernel answers even if the arena is busy or stopped. TCP
# alone is too slow: after 20 s without a network its next attempt may be 10 s away.
_DEAD_LINK = {
    "TCP_KEEPIDLE": 5,
    "TCP_KEEPALIVE": 5,  # its name on macOS
    "TCP_KEEPINTVL": 3,
    "TCP_KEEPCNT": 4,
    "TCP_USER_TIMEOUT": 17_000,  # ms, for data that is not acknowledged
}


class NotAdmitted(UsageError):
    """The arena refuses the bot called `name`; `code` is the reason in one word for programs."""

    def __init__(self, code: str, text: str, name: str) -> None:
        super().__init__(f"the arena refuses this bot: {text}")
        self.code, self.name = code, name


class FrameConnection(ClientConnection):
    """A connection that hands frames over as they are read from the socket.

    With `recv` and `send` every frame costs a future, two turns of the event loop and a task
    switch: a quarter of what the client costs when it plays many matches.

    Attributes:
        on_read: called with all frames that were read together, unless earlier ones still wait in
            the `backlog`. It returns how many it has handled; the rest is left to `recv`. None
            leaves all to `recv`.
        backlog: how many frames wait for `recv`; with `on_read`, the code that handles one must
            decrement it.
    """

    on_read: Callable[[Sequence[bytes]], int] | None = None
    backlog = 0

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._read: list[Frame] = []

    def process_event(self, event: Event) -> None:
        """Collect frames with messages, and leave all others to the library."""
        if type(event) is Frame and event.opcode in DATA_OPCODES:
            self._read.append(event)
        else:
            super().process_event(event)

    def data_received(self, data: bytes) -> None:
        """Pass on the frames that were read."""
        super().data_received(data)
        read, self._read = self._read, []
        # Messages in several frames are rare, and the library joins them.
        is_usual = all(frame.fin and frame.opcode is not Opcode.CONT for frame in read)
        handled = 0
        if read and is_usual and not self.backlog and self.on_read is not None:
            handled = self.on_read([bytes(frame.data) for frame in read])
        for frame in read[handled:]:
            self.backlog += frame.fin
            super().process_event(frame)

    def say(self, frame: bytes, *, text: bool) -> None:
        """Send a frame without waiting for room in the buffer. Does nothing if it is closing.

        A bot sends at most one answer per question, so the buffer stays small.
        """
        if self.protocol.state is State.OPEN:
            (self.protocol.send_text if text else self.protocol.send_binary)(frame)
            self.send_data()


class Link:
    """Connects to an arena, reconnects with longer and longer pauses, and leaves in order (J10).

    Args:
        url: the arena's address, `ws://host:port`.
        wait_s: how long to wait for an arena that is not up yet.
        patience_s: how long to try to reconnect.
        on_event: called with a line for people whenever something happens.

    Attributes:
        is_leaving: whether the bot leaves after the running matches.
    """

    def __init__(
        self, url: str, *, wait_s: float, patience_s: float, on_event: Callable[[str], None]
    ) -> None:
        self.is_leaving = False
        self._url = url
        self._wait_s = wait_s
        self._patience_s = patience_s
        self._on_event = on_event
        self._is_secure = False
        self._lost_at: float | None = None
        self._pause_s = _FIRST_PAUSE_S
        self._knows_finish = self._has_said_goodbye = False
        self._looking: asyncio.Task[None] | None = None

    async def keep(
        self, talk: Callable[[FrameConnection], Awaitable[bool]], lost: Callable[[], None]
    ) -> None:
        """Connect, and reconnect until the session is over.

        Args:
            talk: called with every connection; returns whether the session is over.
            lost: called whenever the connection is lost.

        Raises:
            Unreachable: nothing answers within `wait_s` or `patience_s`, or it is not an arena.
            UsageError: the address is not valid.
        """
        self._is_secure = check_address(self._url)
        known = False
        while True:
            try:
                async with connect(
                    self._url,
                    proxy=proxy_to(self._url),
                    create_connection=FrameConnection,
                    compression=None,  # frames are small: it would cost more than it saves
                    max_size=None,  # the arena is trusted
                    open_timeout=_OPEN_TIMEOUT_S,
                    ping_interval=None,  # the arena may be stopped and not answer pings
                ) as websocket:
                    known = True
                    notice_dead_link(websocket)
                    if await talk(cast(FrameConnection, websocket)):  # made by `create_connection`
                        return
                why = f"the connection{through(self._url)} was lost"
            except (OSError, WebSocketException) as error:
                if not known:
                    await self._wait(error)
                    continue
                why = f"the arena does not answer{through(self._url)}"
            lost()
            await self._pause(why)

    def welcomed(self, welcome: Welcome, *, is_back: bool) -> None:
        """Report a `welcome`, and reset the pauses before later reconnects."""
        self._lost_at, self._pause_s = None, _FIRST_PAUSE_S
        self._knows_finish, self._has_said_goodbye = welcome.finish, False
        how = "back" if is_back else "connected"
        practice = ", for practice" if welcome.practice else ""
        note = f"; {one_line(welcome.note, 400)}" if welcome.note and not is_back else ""
        self._on_event(f"{how} as {one_line(welcome.bot)} at {self._url}{practice}{note}")

    def leave(
        self, websocket: ClientConnection | None, matches: int, run: asyncio.Task[None]
    ) -> None:
        """Leave after the running matches; `goodbye` says when to tell the arena.

        The task `run` is cancelled if there is no connection, or the arena does not answer.
        """
        if websocket is None:
            self._on_event("the arena is not connected, so no match can be finished")
            run.cancel()
            return
        self.is_leaving = True
        if matches:
            what = "the match that is on" if matches == 1 else f"{matches} matches"
            self._on_event(f"finishing {what}, no other begins; to leave now, press Ctrl-C again")
        self._looking = asyncio.create_task(self._look(websocket, run))

    def goodbye(self, matches: int) -> Goodbye | None:
        """Return the goodbye that is due now, once per connection, or None.

        An arena that does not know `finish` is told only when no match is running.
        """
        is_due = self._knows_finish or not matches
        if not self.is_leaving or self._has_said_goodbye or not is_due:
            return None
        self._has_said_goodbye = True
        return Goodbye(finish=self._knows_finish)

    async def _look(self, websocket: ClientConnection, run: asyncio.Task[None]) -> None:
        """Cancel `run` if the arena does not answer a ping."""
        try:
            async with asyncio.timeout(_ANSWERS_S):
                await (await websocket.ping())
        except ConnectionClosed:
            pass  # lost; `keep` reconnects
        except TimeoutError:
            self._on_event(f"nothing has come from the arena for {_ANSWERS_S:g} s")
            websocket.transport.abort()
            run.cancel()

    def is_over(self, websocket: ClientConnection) -> bool:
        """Whether the close code of a connection ends the session.

        Raises:
            UsageError: the arena could not read our messages, which would only happen again.
        """
        code = websocket.close_code
        if code == CLOSE_DONE:
            why = websocket.close_reason if self.is_leaving else ""
            self._on_event(one_line(why or "the arena has closed"))
        elif code == CLOSE_RESTART:
            self._on_event("the arena has stopped, and will go on where it is")
        elif code == CLOSE_REPLACED:
            self._on_event("the session goes on over another connection")
        elif code in (CLOSE_PROTOCOL, CLOSE_OVERSIZE):
            raise UsageError(f"the arena closed with {code}: {websocket.close_reason}")
        return code in (CLOSE_DONE, CLOSE_REPLACED)

    async def _wait(self, error: OSError | WebSocketException) -> None:
        """Pause before the next attempt to reach an arena that is not up yet.

        Raises:
            Unreachable: the arena has not come up in time, or the address is not an arena's.
        """
        now = asyncio.get_running_loop().time()
        is_first, since = self._lost_at is None, self._lost_at or now
        left_s = since + self._wait_s - now
        is_plain = isinstance(error, InvalidMessage) and not self._is_secure
        hint = "; it may be a wss:// address" if is_plain else ""
        place = self._url + through(self._url)
        if left_s <= 0 or not is_to_come(error):
            text = (str(error) or type(error).__name__) + hint
            raise Unreachable(f"no arena answers at {place}: {text}") from None
        if is_first:
            self._lost_at = now
            line = f"no arena answers at {place} yet; waiting up to {self._wait_s:,g} s for it"
            self._on_event(line + hint)
        await asyncio.sleep(min(self._pause_s * random.uniform(0.8, 1.2), left_s))
        self._pause_s = min(self._pause_s * 2, _LONGEST_WAIT_S)

    async def _pause(self, why: str) -> None:
        """Pause before the next attempt to reconnect, longer each time until a `welcome`."""
        now = asyncio.get_running_loop().time()
        if self._lost_at is None:
            self._lost_at = now
        if now - self._lost_at >= self._patience_s:
            raise Unreachable(f"no arena answers at {self._url}{through(self._url)} any more")
        self._on_event(f"{why}; next attempt in {self._pause_s:.1f} s")
        spread = random.uniform(0.8, 1.2)  # so that a whole class does not reconnect at once
        await asyncio.sleep(self._pause_s * spread)
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)


def check_address(url: str) -> bool:
    """Return whether connections to an address are encrypted.

    Raises:
        UsageError: the address is not valid.
    """
    try:
        return parse_uri(url).secure
    except (InvalidURI, ValueError):
        raise UsageError(
            f"expected an address such as ws://127.0.0.1:7700, got {one_line(url)!r}"
        ) from None


def has_closed(connection: ClientConnection) -> bool:
    """Whether the arena has closed a connection, even if data is unread; for any thread."""
    plain = connection.transport.get_extra_info("socket")
    if plain is None or plain.fileno() < 0:
        return True
    if hasattr(select, "POLLRDHUP"):  # Linux
        poll = select.poll()
        poll.register(plain.fileno(), select.POLLRDHUP)
        return bool(poll.poll(0))
    # Elsewhere only the end of the data, or a close frame in it, shows that.
    return _peeked(plain) == b"" or any(kind == Opcode.CLOSE for kind, _ in unread(connection))


def unread(connection: ClientConnection) -> Iterator[tuple[int, bytes]]:
    """Yield frames that an unencrypted connection has received and the event loop has not read.

    Yields the opcode and the data of each whole message and of control frames.
    """
    plain = connection.transport.get_extra_info("socket")
    if plain is None or connection.transport.get_extra_info("ssl_object") is not None:
        return
    received = _peeked(plain) or b""
    while len(received) >= 2 and received[0] & _FINAL:  # RFC 6455: a server does not mask
        size, begin = received[1], 2
        if size > 125:
            begin += 2 if size == 126 else 8
            size = int.from_bytes(received[2:begin])
        if len(received) < begin + size:
            return
        yield received[0] & _OPCODE, received[begin : begin + size]
        received = received[begin + size :]


def _peeked(plain: Any) -> bytes | None:
    """Return a socket's unread data without consuming it; empty at its end, None without data."""
    try:
        with plain.dup() as same:
            same.setblocking(False)
            return bytes(same.recv(_PEEKED_BYTES, socket.MSG_PEEK))
    except BlockingIOError:
        return None
    except OSError:
        return b""


def close_reason(error: BaseException) -> str:
    """Make the reason of a close frame from an error, which says that this program has failed."""
    return f"{FAILED} {error}".encode()[:_REASON_BYTES].decode(errors="ignore")


def begins(url: str, match: Match) -> str:
    """Announce a match in one line, with the address of its page."""
    others = [name for seat, name in enumerate(match.seats) if seat != match.seat]
    against = f" against {', '.join(others)}" if others else ""
    return f"{match.game} match {match.match}{one_line(against)} · {_page(url, match.page)}"


def stands(url: str, standing: FinalStanding) -> str:
    """Report a finished competition in one line, with the address of its page if there is one."""
    page = "" if standing.page is None else f" · {_page(url, standing.page)}"
    return f"{one_line(standing.text)}{page}"


def _page(url: str, path: str | None) -> str:
    """Return the address of a page of the arena at `url`.

    The arena knows only the path: behind a proxy or a tunnel its host differs for every client.
    """
    parts = urlsplit(url)
    scheme = "https" if parts.scheme == "wss" else "http"
    return one_line(f"{scheme}://{parts.netloc.rpartition('@')[2]}{path}")


def is_to_come(error: OSError | WebSocketException) -> bool:
    """Whether an arena may still come up at an address where an attempt failed with `error`."""
    if isinstance(error, (InvalidStatus, InvalidProxyStatus)):
        return error.response.status_code in (502, 503, 504)  # from a proxy in front of the arena
    if isinstance(error, InvalidMessage):
        # Closed without an answer, as by a published port or a tunnel in front of the arena.
        return isinstance(error.__cause__, EOFError)
    if isinstance(error, socket.gaierror):
        return error.errno == socket.EAI_AGAIN
    return isinstance(error, OSError) and not isinstance(error, ssl.SSLError)


def notice_dead_link(websocket: ClientConnection) -> None:
    """Make the kernel end the connection if the other machine or the network is gone."""
    link = websocket.transport.get_extra_info("socket")
    if link is None:
        return
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in _DEAD_LINK.items():
        if (option := getattr(socket, name, None)) is not None:
            options.append((socket.IPPROTO_TCP, option, value))
    for option_value in options:
        with suppress(OSError):  # a system without the option keeps its timeouts
            link.setsockopt(*option_value)
