"""Both ends of the links of hosts: authenticates a new link, and detects when a link is lost.

A host opens its link with a ticket from the bus. Nobody else on the bus hears the messages to that
host, so the ticket proves its identity. A link that does not answer pings is cut. Its bots are then
lost, as the host has ended them by that time.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import ssl
import struct
from collections.abc import Callable

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException
from websockets.http11 import Request
from websockets.protocol import State

from arena.hosts.hosted_bots import HostedBots
from arena.hosts.messages import MOST_PIECE, BotLink, FromArena, FromHost, on_link
from arena.hosts.remote_bot import RemoteLauncher
from arena.referee.transport import Caller, ConnectionOwner, Wire
from arena.server.entrance import HOSTS, send
from arena.server.reply import text
from protocol.address import proxy_to, through
from protocol.codec import Encoding
from protocol.errors import ArenaError, ProtocolError
from protocol.messages import CLOSE_PROTOCOL

__all__ = ["HostLinks", "open_link"]

log = logging.getLogger(__name__)

_TICKET_HEADER = "Arena-Ticket"
_HOST_HEADER = "Arena-Host"

_FRAME_BYTES = 2 * MOST_PIECE  # more than a message with a finding and 64 KiB of stderr
_BUFFER_BYTES = 64 << 20  # programs are sent in pieces that the host requests one by one
_PING_S = 2.0
_SILENT_S = 8.0  # a host ends its bots within 10 s
_ARENA_SILENT_S = 6.0  # with the pings, a host notices within 8 s that its arena is gone
_PART_BYTES = 2 << 20  # more than a part of a program: `PART_BYTES` in base64
_OPEN_S = 10.0


class _ArenaLink:
    """The arena's end of one link; a `BotLink`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def tell(self, message: FromArena | FromHost) -> None:
        self._caller.send(on_link(message), Encoding.JSON)

    def carry(self, piece: bytes) -> None:
        self._caller.send(piece, Encoding.MSGPACK)

    def cut(self) -> None:
        self._caller.cut()


class HostLinks(ConnectionOwner):
    """Owns all links of an arena.

    Args:
        opened: makes the launcher for a host that has opened its link.
        closed: called with that launcher when the link is lost, before its bots are.
    """

    def __init__(
        self,
        opened: Callable[[str, BotLink], RemoteLauncher],
        closed: Callable[[RemoteLauncher], None],
    ) -> None:
        self._secret = secrets.token_bytes(32)
        self._opened = opened
        self._closed = closed
        self._launchers: dict[Wire, RemoteLauncher] = {}  # by link
        self._heard_at: dict[Wire, float] = {}
        self._clock = asyncio.get_running_loop().time
        self._ping_at = 0.0

    def ticket(self, host: str) -> str:
        """Return the ticket with which a host of that name may open its link."""
        return hmac.digest(self._secret, host.encode(), "sha256").hex()

    def enter(self, caller: Caller, request: Request) -> None:
        """Accept a host's link, or respond why not; a new link of a host replaces the old one."""
        host = request.headers.get(_HOST_HEADER, "")
        ticket = request.headers.get(_TICKET_HEADER, "")
        if not hmac.compare_digest(ticket.encode(), self.ticket(host).encode()):
            send(caller, text(403, "expected the ticket of a host, which it has from the bus"))
            return
        for link in [link for link, old in self._launchers.items() if old.host == host]:
            link.cut()
        caller.accept(request)
        if caller.is_open:
            self._launchers[caller] = self._opened(host, _ArenaLink(caller))
            self._heard_at[caller] = self._clock()
            caller.hand_to(self, frame_bytes=_FRAME_BYTES, buffer_bytes=_BUFFER_BYTES)

    def bots(self, host: str) -> int:
        """Return how many bots of this arena are on a host, also starting and ending ones."""
        return sum(len(each) for each in self._launchers.values() if each.host == host)

    def tick(self, now: float) -> None:
        """Ping the hosts, and cut links that have been silent for too long."""
        if now < self._ping_at:
            return
        self._ping_at = now + _PING_S
        for connection, launcher in tuple(self._launchers.items()):
            if now - self._heard_at[connection] > _SILENT_S:
                log.warning("the host %s is silent", launcher.host)
                connection.cut()
            else:
                connection.ping(b"")

    def roster_changed(self) -> None:
        """Do nothing, as hosts have no token."""

    def close(self) -> None:
        for connection in tuple(self._launchers):
            connection.cut()

    # --- events of connections; others change nothing here ---

    def received(self, connection: Wire, frame: bytes, encoding: Encoding, arrived: float) -> None:
        launcher = self._launchers.get(connection)
        if launcher is None:
            return
        self._heard_at[connection] = arrived
        try:
            if encoding is Encoding.MSGPACK:
                launcher.piece(frame)
            else:
                launcher.message(frame)
        except (struct.error, msgspec.DecodeError) as error:
            log.warning("the host %s says what is no message: %s", launcher.host, error)
            connection.close(CLOSE_PROTOCOL, "expected a message of a host")
        except Exception:
            log.exception("the arena failed at a message of the host %s", launcher.host)
            connection.cut()

    def misbehaved(self, connection: Wire, error: ProtocolError) -> None:
        connection.close(CLOSE_PROTOCOL, str(error))

    def ponged(self, connection: Wire, payload: bytes, arrived: float) -> None:
        if connection in self._launchers:
            self._heard_at[connection] = arrived

    def lost(self, connection: Wire) -> None:
        launcher = self._launchers.pop(connection, None)
        if launcher is not None:
            del self._heard_at[connection]
            self._closed(launcher)
            launcher.lost()


class _HostLink:
    """The host's end of one link; a `BotLink`. Messages are buffered until the arena reads."""

    def __init__(self, websocket: ClientConnection) -> None:
        self._websocket = websocket

    def tell(self, message: FromArena | FromHost) -> None:
        self._send(self._websocket.protocol.send_text, on_link(message))

    def carry(self, piece: bytes) -> None:
        self._send(self._websocket.protocol.send_binary, piece)

    def cut(self) -> None:
        self._websocket.transport.abort()

    def _send(self, send: Callable[[bytes], None], frame: bytes) -> None:
        websocket = self._websocket
        if websocket.state is State.OPEN and not websocket.transport.is_closing():
            send(frame)
            websocket.send_data()
            if websocket.transport.get_write_buffer_size() > _BUFFER_BYTES:  # it reads too slowly
                self.cut()


async def open_link(
    host: str, url: str, ticket: str, ca: str, opened: Callable[[BotLink], HostedBots]
) -> None:
    """Open the link of a host to an arena, and serve it until it is lost.

    `ca` are extra certificates, in PEM, to check the arena's by, besides those of this machine.
    `opened` returns the object that takes what comes. Raises `ArenaError` if no arena answers.
    """
    context = ssl.create_default_context() if url.startswith("wss:") else None
    if context is not None and ca:
        context.load_verify_locations(cadata=ca)
    try:
        async with connect(
            f"{url.rstrip('/')}{HOSTS}",
            additional_headers={_TICKET_HEADER: ticket, _HOST_HEADER: host},
            ssl=context,
            proxy=proxy_to(url),
            compression=None,
            open_timeout=_OPEN_S,
            ping_interval=_PING_S,
            ping_timeout=_ARENA_SILENT_S,
            close_timeout=1.0,
            max_size=_PART_BYTES,
        ) as websocket:
            bots = opened(_HostLink(websocket))
            async for frame in websocket:
                if isinstance(frame, bytes):
                    bots.piece(frame)
                else:
                    bots.message(frame.encode())
    except (struct.error, msgspec.DecodeError) as error:
        log.warning("an arena says what is no message: %s", error)
    except (OSError, TimeoutError, WebSocketException) as error:
        raise ArenaError(f"no arena answers at {url}{through(url)}: {error}") from None
