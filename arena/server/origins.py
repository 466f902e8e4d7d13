"""Decides where a request comes from, and which web pages may open a WebSocket here. Pure.

A browser lets any page in the world connect to any address that its user can reach, and sends the
page's origin in `Origin`. Requests without an `Origin`, as from programs, or with the arena's own
address are let in. If the arena listens on loopback only, `Host` must be a loopback name, too:
otherwise a foreign name that resolves to loopback would pass for the arena's own (DNS rebinding).

A proxy appends its client's address to `X-Forwarded-For`. Whatever stands before it comes from the
client and may be forged. So the last address that is not a trusted proxy's counts. Without trusted
proxies this header is ignored, as is `X-Forwarded-Proto`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TypeAlias

from arena.server.reply import Headers
from protocol.errors import UsageError, one_line

__all__ = [
    "FORWARDED",
    "Origins",
    "Proxies",
    "below",
    "is_loopback",
    "read_base_path",
    "read_network",
    "read_origin",
]

FORWARDED = "X-Forwarded-For"
"""The header in which proxies name their clients."""
_MAPPED_BITS = 96  # the prefix of an IPv4 address in IPv6, as in ::ffff:10.0.0.0/104
_WITH_PORT = re.compile(r"\[([^\]]*)\](?::[0-9]*)?|([0-9.]+):[0-9]*")
_PORTS = {"http": 80, "https": 443}
_PLACE = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:/?#@\[\]]+)(?::([0-9]{1,5}))?")
_BASE_PATH = re.compile(r"/(?:(?!\.{1,2}/)[A-Za-z0-9._~-]+/)*")
_ORIGIN = re.compile(r"(https?)://([^/]+)/?")

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
_Place: TypeAlias = tuple[str, int]


class Origins:
    """The allowed origins; initially only the arena's own address."""

    def __init__(self) -> None:
        self._allowed = frozenset[tuple[str, str, int]]()
        self._listens = set[str]()

    def allow(self, origins: Sequence[str]) -> None:
        """Allow more origins; raises `UsageError` if one is invalid."""
        self._allowed |= frozenset(map(read_origin, origins))

    def listens(self, host: str) -> None:
        """Note an interface that the arena listens on."""
        self._listens.add(host)

    def refusal(self, headers: Headers) -> str | None:
        """Return why a request may not open a WebSocket; None if it may."""
        origins = headers.get_all("Origin")
        if not origins:
            return None
        try:
            scheme, *place = read_origin(origins[0])
        except UsageError:
            return _not_ours(origins[0])
        if len(origins) == 1 and (scheme, *place) in self._allowed:
            return None
        hosts = headers.get_all("Host")
        here = _place(hosts[0], _PORTS[scheme]) if len(hosts) == 1 else None
        if len(origins) > 1 or here != tuple(place):
            return _not_ours(origins[0])
        return self.host_refusal(headers)

    def host_refusal(self, headers: Headers) -> str | None:
        """Return why `Host` may be a foreign name for loopback; None if it is not."""
        hosts = headers.get_all("Host")
        is_near = self._listens and all(map(is_loopback, self._listens))
        if not is_near or not hosts:
            return None
        known = {"localhost", *(host for _, host, _ in self._allowed)}
        for host in hosts:
            place = _place(host, 0)
            if place is None or not (place[0] in known or is_loopback(place[0])):
                return (
                    "expected a Host of this machine's own, as this arena listens on loopback "
                    f"only, got {_shown(host)}; to let it in start the arena with --origin"
                )
        return None


def read_origin(text: str) -> tuple[str, str, int]:
    """Return scheme, host and port of an origin; raises `UsageError` if the text is not one."""
    match = _ORIGIN.fullmatch(text.lower())
    place = match and _place(match[2], _PORTS[match[1]])
    if not match or place is None:
        raise UsageError(
            f"expected an origin such as https://arena.example.org, got {_shown(text)}"
        )
    return match[1], *place


def read_base_path(text: str) -> str:
    """Check the base path of an arena; raises `UsageError` if it is invalid."""
    if not _BASE_PATH.fullmatch(text):
        raise UsageError(
            "expected a path such as /arena/, of letters, digits, '-', '.', '_' and '~' "
            f"between slashes, got {_shown(text)}"
        )
    return text


def below(base: str, path: str) -> str | None:
    """Return a request's path and query relative to the base path; None if it is not below it."""
    return path[len(base) - 1 :] if path.startswith(base) else None


def is_loopback(host: str) -> bool:
    """Return whether a host is a name or an address of loopback."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Proxies:
    """The trusted proxies; initially none."""

    def __init__(self) -> None:
        self._networks: tuple[_Network, ...] = ()

    def __len__(self) -> int:
        return len(self._networks)

    def trust(self, networks: Sequence[str]) -> None:
        """Trust more addresses or networks; raises `UsageError` if one is invalid."""
        self._networks += tuple(map(read_network, networks))

    def before(self, host: str, port: int) -> str:
        """Return where a connection counts before its first request; a proxy's counts alone."""
        address = _address(host)
        is_proxy = address is not None and self._has(address)
        return f"{host}:{port}" if is_proxy else _counted(address, host)

    def origin(self, host: str, headers: Headers) -> str:
        """Return where a connection counts after a request: its client or last valid address."""
        address = _address(host)
        if address is None or not self._has(address):
            return _counted(address, host)
        for hop in reversed(",".join(headers.get_all(FORWARDED)).split(",")):
            if (before := _address(hop.strip())) is None:
                break
            address = before
            if not self._has(address):
                break
        return _counted(address, host)

    def is_https(self, host: str, headers: Headers) -> bool:
        """Return whether a trusted proxy says that a request came to it over TLS."""
        address, schemes = _address(host), headers.get_all("X-Forwarded-Proto")
        return address is not None and self._has(address) and schemes == ["https"]

    def _has(self, address: _Address) -> bool:
        return any(address in network for network in self._networks)


def read_network(text: str) -> _Network:
    """Read a network or address, with mapped IPv4 as IPv4; raises `UsageError` if it is none."""
    with suppress(ValueError):
        network = ipaddress.ip_network(text)
        mapped = getattr(network.network_address, "ipv4_mapped", None)
        if mapped is None or network.prefixlen < _MAPPED_BITS:
            return network
        return ipaddress.IPv4Network((mapped, network.prefixlen - _MAPPED_BITS))
    hint = ""
    with suppress(ValueError):
        network = ipaddress.ip_network(text, strict=False)
        hint = f"; the network that it is in is {network}"
    raise UsageError(
        "expected a proxy's address or network such as 127.0.0.1 or 10.0.0.0/8, "
        f"got {one_line(repr(text), 80)}{hint}"
    )


@lru_cache(maxsize=4096)
def _address(text: str) -> _Address | None:
    """Read an address from a header or socket, perhaps with port or zone; None if invalid."""
    if match := _WITH_PORT.fullmatch(text):
        text = match[1] or match[2] or ""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    # An IPv6 socket shows an IPv4 peer as ::ffff:a.b.c.d.
    return getattr(address, "ipv4_mapped", None) or address


def _counted(address: _Address | None, host: str) -> str:
    """Return the address to count at; for IPv6 its /64, in which a machine can use any address."""
    if isinstance(address, ipaddress.IPv6Address) and not (
        address.is_loopback or address.is_link_local
    ):
        return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
    return host if address is None else str(address)


def _place(text: str, default: int) -> _Place | None:
    """Return host and port; None if the text is malformed."""
    match = _PLACE.fullmatch(text.strip().lower())
    if match is None:
        return None
    return match[1], int(match[2]) if match[2] else default


def _not_ours(origin: str) -> str:
    return (
        f"expected an Origin that is this arena's own address, got {_shown(origin)}; "
        "to let it in start the arena with --origin"
    )


def _shown(text: str) -> str:
    return repr(one_line(text, 80))
