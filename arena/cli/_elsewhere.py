"""By which addresses an arena is reached: from other machines, if it listens on all interfaces of this one, and by a browser.

`ws://0.0.0.0:7700` says where an arena listens and is of no use to anybody who wants to connect. The name of this machine may be
known in its network or not, so the address that it has there is said as well. Nothing is sent and no name server is asked.
"""

from __future__ import annotations

import ipaddress
import socket
from contextlib import suppress
from urllib.parse import urlsplit

__all__ = ["elsewhere", "page_at"]

_ANYWHERE = {  # RFC 5737 and RFC 3849: addresses that nobody has, which the default route leads to
    socket.AF_INET: "192.0.2.1",
    socket.AF_INET6: "2001:db8::1",
}
_DISCARD = 9  # a port; nothing is sent to it


def elsewhere(url: str) -> tuple[str, ...]:
    """What students can connect to, best first; nothing if the arena listens on one interface, which is in its own address then."""
    parts = urlsplit(url)
    listens = _listens_on(parts.hostname or "0.0.0.0")
    if listens is None or not listens.is_unspecified:
        return ()
    family = socket.AF_INET if listens.version == 4 else socket.AF_INET6
    hosts = [socket.gethostname(), _outward(family)]
    return tuple(
        f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{parts.port}"
        for host in hosts
        if host and not host.startswith("localhost")
    )


def page_at(url: str) -> str:
    """What to enter in a browser on this machine to see the page of an arena at this address."""
    parts = urlsplit(url)
    listens = _listens_on(parts.hostname or "0.0.0.0")
    host = parts.netloc
    if listens is not None and listens.is_unspecified:
        host = f"localhost:{parts.port}"
    return f"{'https' if parts.scheme == 'wss' else 'http'}://{host}"


def _listens_on(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    with suppress(ValueError):
        return ipaddress.ip_address(host)
    return None


def _outward(family: socket.AddressFamily) -> str:
    """The address of this machine on the interface that leads out; empty if there is none."""
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((_ANYWHERE[family], _DISCARD))  # only looks up the route
        address: str = probe.getsockname()[0]
        return address
    return ""
