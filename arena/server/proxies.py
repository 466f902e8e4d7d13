"""Where a request comes from if proxies are in between that the arena's owner trusts: pure.

A proxy adds to `X-Forwarded-For` whoever it was connected by, at the end; what stands before that was said by others, and may be made up. So the
last address there counts that is no trusted proxy's, and without a trusted proxy nothing there does. Nor does `X-Forwarded-Proto`.
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
"""What proxies say whom they were connected by in."""
_MAPPED_BITS = 96  # before an IPv4 address in IPv6, as in ::ffff:10.0.0.0/104
_WITH_PORT = re.compile(r"\[([^\]]*)\](?::[0-9]*)?|([0-9.]+):[0-9]*")

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


class Proxies:
    """Those that are trusted; at first none."""

    def __init__(self) -> None:
        self._networks: tuple[_Network, ...] = ()

    def __len__(self) -> int:
        """How many are trusted, networks and addresses."""
        return len(self._networks)

    def trust(self, networks: Sequence[str]) -> None:
        """These, too.

        Raises:
            UsageError: one is neither an address nor a network.
        """
        self._networks += tuple(map(read_network, networks))

    def before(self, host: str, port: int) -> str:
        """Where a connection is counted that has not sent a request: through a proxy it may be anybody's, and is counted alone."""
        address = _address(host)
        is_proxy = address is not None and self._has(address)
        return f"{host}:{port}" if is_proxy else _counted(address, host)

    def origin(self, host: str, headers: Headers) -> str:
        """Where it is counted from its request on; what is no address counts as the proxy that passed it on."""
        address = _address(host)
        if address is None or not self._has(address):
            return _counted(address, host)
        for said in reversed(",".join(headers.get_all(HEADER)).split(",")):
            if (before := _address(said.strip())) is None:
                break
            address = before
            if not self._has(address):
                break
        return _counted(address, host)

    def is_https(self, host: str, headers: Headers) -> bool:
        """Whether a trusted proxy says that a request came to it over TLS."""
        address, said = _address(host), headers.get_all("X-Forwarded-Proto")
        return address is not None and self._has(address) and said == ["https"]

    def _has(self, address: _Address) -> bool:
        return any(address in network for network in self._networks)


def read_network(text: str) -> _Network:
    """An address, or a network of them; IPv4 in IPv6 is read as IPv4, as connections are.

    Raises:
        UsageError: it is neither.
    """
    with suppress(ValueError):
        network = ipaddress.ip_network(text)
        mapped = getattr(network.network_address, "ipv4_mapped", None)
        if mapped is None or network.prefixlen < _MAPPED_BITS:
            return network
        return ipaddress.IPv4Network((mapped, network.prefixlen - _MAPPED_BITS))
    meant = ""
    with suppress(ValueError):
        network = ipaddress.ip_network(text, strict=False)
        meant = f"; the network that it is in is {network}"
    raise UsageError(
        f"expected a proxy's address or network such as 127.0.0.1 or 10.0.0.0/8, got {one_line(repr(text), 80)}{meant}"
    )


@lru_cache(maxsize=4096)
def _address(text: str) -> _Address | None:
    """An address as it stands in a header or a socket has it, perhaps with a port or a zone; None if it is none."""
    if found := _WITH_PORT.fullmatch(text):
        text = found[1] or found[2] or ""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    # An IPv4 address may come in an IPv6 socket's clothes.
    return getattr(address, "ipv4_mapped", None) or address


def _counted(address: _Address | None, host: str) -> str:
    """Whose an address is: with IPv6 everybody has as many as they like in a network of 64 bits."""
    if isinstance(address, ipaddress.IPv6Address) and not (
        address.is_loopback or address.is_link_local
    ):
        return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
    return host if address is None else str(address)
