"""Reaching the arena: whether an address can be one, whether an attempt that failed is worth another, and who notices a dead link."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import (
    InvalidMessage,
    InvalidStatus,
    InvalidURI,
    WebSocketException,
)
from websockets.uri import parse_uri

from protocol.errors import UsageError, one_line

__all__ = ["check_address", "is_to_come", "notice_dead_link"]

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
