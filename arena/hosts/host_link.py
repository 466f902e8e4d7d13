"""The host's end of a link: opened to an arena's port with the ticket that it has given."""

from __future__ import annotations

import logging
import ssl
import struct
from collections.abc import Callable

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException
from websockets.protocol import State

from arena.hosts.host_links import HOST_HEADER, TICKET_HEADER
from arena.hosts.hosted_bots import HostedBots
from arena.hosts.messages import BotLink, FromArena, FromHost, on_link
from arena.server.entrance import HOSTS
from protocol.address import proxy_to, through
from protocol.errors import ArenaError

__all__ = ["open_link"]

log = logging.getLogger(__name__)

_OPEN_S = 10.0
_PING_S, _SILENT_S = 2.0, 6.0  # an arena that is gone is noticed within 8 s
_FRAME_BYTES = 2 << 20  # of a program: `PART_BYTES` in base64
_BUFFER_BYTES = 64 << 20


class _HostLink:
    """One link; a `BotLink`. What is sent waits until the arena reads."""

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
            if websocket.transport.get_write_buffer_size() > _BUFFER_BYTES:  # it does not read
                self.cut()


async def open_link(
    host: str, url: str, ticket: str, ca: str, opened: Callable[[BotLink], HostedBots]
) -> None:
    """Open the link of a host to an arena, and serve it until it is lost.

    `ca` are certificates, in PEM, that the arena's own is checked by besides those of this machine.
    `opened` returns who takes what comes. Raises `ArenaError` if there is no such arena.
    """
    try:
        async with connect(
            f"{url.rstrip('/')}{HOSTS}",
            additional_headers={TICKET_HEADER: ticket, HOST_HEADER: host},
            ssl=_tls(ca) if url.startswith("wss:") else None,
            proxy=proxy_to(url),
            compression=None,
            open_timeout=_OPEN_S,
            ping_interval=_PING_S,
            ping_timeout=_SILENT_S,
            close_timeout=1.0,
            max_size=_FRAME_BYTES,
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


def _tls(ca: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca:
        context.load_verify_locations(cadata=ca)
    return context
