"""The links of hosts at the arena's port: who may open one, and when one is lost.

A host has its ticket from the bus, where nobody else hears what it is asked: so it is who it says.
A link that does not answer pings is cut: its bots are lost, as the host ends them by then.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import struct
from collections.abc import Callable

import msgspec
from websockets.http11 import Request

from arena.hosts.messages import MOST_PIECE, BotLink, FromArena, FromHost, on_link
from arena.hosts.remote_bot import RemoteLauncher
from arena.referee.transport import Caller, ConnectionOwner, Wire
from arena.server.entrance import send
from arena.server.reply import text
from protocol.codec import Encoding
from protocol.errors import ProtocolError
from protocol.messages import CLOSE_PROTOCOL

__all__ = ["HOST_HEADER", "TICKET_HEADER", "HostLinks"]

log = logging.getLogger(__name__)

TICKET_HEADER = "Arena-Ticket"
HOST_HEADER = "Arena-Host"

_FRAME_BYTES = 2 * MOST_PIECE  # a message with a finding and 64 KiB of stderr has less
_BUFFER_BYTES = 64 << 20  # programs are sent in pieces that the host asks for one by one
_PING_S = 2.0
_SILENT_S = 8.0  # a host ends its bots within 10 s


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
    """All links of an arena, and their owner.

    Args:
        opened: makes the launcher of a host that has opened its link.
        closed: called with it when the link is lost, before its bots are.
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
        """What a host of that name may open its link with."""
        return hmac.digest(self._secret, host.encode(), "sha256").hex()

    def enter(self, caller: Caller, request: Request) -> None:
        """Accept a host's link, or respond why not; a host's new link replaces its old one."""
        host = request.headers.get(HOST_HEADER, "")
        ticket = request.headers.get(TICKET_HEADER, "")
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
        """How many bots of this arena are on a host, with those that start or end."""
        return sum(len(each) for each in self._launchers.values() if each.host == host)

    def tick(self, now: float) -> None:
        """Ping hosts, and cut links that have been silent for long."""
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
        """Hosts have no token."""

    def close(self) -> None:
        for connection in tuple(self._launchers):
            connection.cut()

    # --- what connections tell; all else changes nothing here ---

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
