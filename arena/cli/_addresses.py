"""Says at which addresses bots and browsers reach an arena that listens here.

`ws://0.0.0.0:7700` is where an arena listens, and nobody can connect to it from another machine.
The network may not know this machine's name, so the machine's address in it is printed as well.
Finding it out sends nothing, and asks no name server.
"""

from __future__ import annotations

import ipaddress
import socket
from contextlib import suppress
from urllib.parse import urlsplit

from arena.competitions.config import ServeSection
from protocol.errors import UsageError

__all__ = ["check_proxies", "page_at", "urls_for_others"]

# Documentation addresses of RFC 5737 and RFC 3849: no machine has them, so they take the default
# route.
_ANYWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
_DISCARD = 9  # the port of the discard service; nothing is sent to it


def check_proxies(serve: ServeSection) -> None:
    """Raise `UsageError` if all who come through a proxy would seem to be on this machine."""
    if serve.is_near and serve.origin and not (serve.trusted_proxy or serve.open):
        listens = _listens_on(serve.host.strip("[]"))
        if listens is None:  # a name, such as localhost, may have either address
            proxies = "127.0.0.1 --trusted-proxy ::1"
        else:  # a program that connects to 127.0.0.2 has the address 127.0.0.1 all the same
            proxies = "127.0.0.1" if listens.version == 4 else "::1"
        raise UsageError(
            "expected --trusted-proxy beside --origin, "
            f"as all who come through a proxy on this machine seem to be on {serve.host}: "
            f"with --trusted-proxy {proxies} everybody needs a token, "
            "--open lets anybody in without one"
        )


def urls_for_others(url: str) -> tuple[str, ...]:
    """The addresses for other machines, best first, of an arena that listens on all interfaces.

    Empty if it listens on one interface: its own address is the one to use then.
    """
    parts = urlsplit(url)
    listens = _listens_on(parts.hostname or "0.0.0.0")
    if listens is None or not listens.is_unspecified:
        return ()
    family = socket.AF_INET if listens.version == 4 else socket.AF_INET6
    hosts = [socket.gethostname(), _outward(family)]
    return tuple(
        f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{parts.port}{parts.path}"
        for host in hosts
        if host and not host.startswith("localhost")
    )


def page_at(url: str) -> str:
    """The address of the page in a browser on this machine, for an arena that listens at `url`."""
    parts = urlsplit(url)
    listens = _listens_on(parts.hostname or "0.0.0.0")
    host = parts.netloc
    if listens is not None and listens.is_unspecified:
        host = f"localhost:{parts.port}"
    return f"{'https' if parts.scheme == 'wss' else 'http'}://{host}{parts.path}"


def _listens_on(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    with suppress(ValueError):
        return ipaddress.ip_address(host)
    return None


def _outward(family: socket.AddressFamily) -> str:
    """The address of this machine on the default route; empty if there is none."""
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((_ANYWHERE[family], _DISCARD))  # UDP: only looks up the route
        address: str = probe.getsockname()[0]
        return address
    return ""
