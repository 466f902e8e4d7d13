"""Where a request comes from if there are trusted proxies in between. Pure.

A proxy appends its client's address to `X-Forwarded-For`; what stands before it comes from the
client, and may be forged. So the last address that is no trusted proxy's counts. Without a trusted
proxy the header is ignored, as is `X-Forwarded-Proto`.
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

__all__ = ["HEADER", "Proxies", "read_network"]

HEADER = "X-Forwarded-For"
"""The header in which proxies name their clients."""
_MAPPED_BITS = 96  # the prefix of an IPv4 address in IPv6, as in ::ffff:10.0.0.0/104
_WITH_PORT = re.compile(r"\[([^\]]*)\](?::[0-9]*)?|([0-9.]+):[0-9]*")

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


class Proxies:
    """The trusted proxies; at first none."""

    def __init__(self) -> None:
        self._networks: tuple[_Network, ...] = ()

    def __len__(self) -> int:
        return len(self._networks)

    def trust(self, networks: Sequence[str]) -> None:
        """Trust more addresses or networks; raises `UsageError` if one is neither."""
        self._networks += tuple(map(read_network, networks))

    def before(self, host: str, port: int) -> str:
        """Where a connection counts before its first request: alone, if it is a proxy's."""
        address = _address(host)
        is_proxy = address is not None and self._has(address)
        return f"{host}:{port}" if is_proxy else _counted(address, host)

    def origin(self, host: str, headers: Headers) -> str:
        """Where a connection counts after a request; at its last proxy if the rest is invalid."""
        address = _address(host)
        if address is None or not self._has(address):
            return _counted(address, host)
        for hop in reversed(",".join(headers.get_all(HEADER)).split(",")):
            if (before := _address(hop.strip())) is None:
                break
            address = before
            if not self._has(address):
                break
        return _counted(address, host)

    def is_https(self, host: str, headers: Headers) -> bool:
        """Whether a trusted proxy says that a request came to it over TLS."""
        address, schemes = _address(host), headers.get_all("X-Forwarded-Proto")
        return address is not None and self._has(address) and schemes == ["https"]

    def _has(self, address: _Address) -> bool:
        return any(address in network for network in self._networks)


def read_network(text: str) -> _Network:
    """A network, or an address as one, IPv4 in IPv6 as IPv4; raises `UsageError` if it is none."""
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
    """An address from a header or a socket, perhaps with a port or a zone; None if invalid."""
    if match := _WITH_PORT.fullmatch(text):
        text = match[1] or match[2] or ""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    # An IPv6 socket shows an IPv4 peer as ::ffff:a.b.c.d.
    return getattr(address, "ipv4_mapped", None) or address


def _counted(address: _Address | None, host: str) -> str:
    """The address to count at; with IPv6 its /64, in which one machine can have any address."""
    if isinstance(address, ipaddress.IPv6Address) and not (
        address.is_loopback or address.is_link_local
    ):
        return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
    return host if address is None else str(address)
