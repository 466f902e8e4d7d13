"""The address of an arena, and the proxy to use for connections to it.

An arena on this machine needs no proxy. Otherwise the proxy comes from `http_proxy`, `https_proxy`,
`all_proxy` and `no_proxy`, as for most programs, or else from the settings of macOS and Windows. A
WebSocket prefers a proxy for HTTPS, which knows `CONNECT` (RFC 6455, 4.1).
"""

from __future__ import annotations

import importlib.util
import ipaddress
import re
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from protocol.errors import UsageError, one_line

__all__ = ["page_url", "proxy_to", "through", "websocket_url"]

_SOCKS = ("socks5h", "socks5", "socks4a", "socks4")
_SCHEMES = ("http", "https", *_SOCKS)
_PAGE = re.compile(r"/(docs(/.*)?|index\.html)$")  # the manual, and the page


def websocket_url(url: str) -> str:
    """Convert the `http` or `https` address of an arena's page to the address for bots.

    The address of any page of the arena works; the base path of the arena's pages is kept.
    """
    scheme, separator, place = url.strip().partition("://")
    found = {"http": "ws", "https": "wss"}.get(scheme.lower())
    if found is None:
        return url
    return found + separator + _PAGE.sub("/", re.split(r"[?#]", place)[0])


def page_url(url: str) -> str:
    """Convert an arena's WebSocket address to that of its page, without a slash at the end.

    A user and a password in the address are removed.
    """
    scheme, _, place = url.partition("://")
    host, slash, path = place.partition("/")
    page = f"{scheme.replace('ws', 'http', 1)}://{host.rpartition('@')[2]}{slash}{path}"
    return page.rstrip("/")


def proxy_to(url: str) -> str | None:
    """Return the proxy for connections to an address, with its password; None for no proxy.

    Raises:
        UsageError: the proxy is invalid or of a kind that cannot be used here.
    """
    proxy = _proxy_to(url)
    if proxy is None:
        return None
    try:
        parts = urlsplit(proxy)
        scheme = parts.scheme if parts.hostname and parts.port != 0 else ""
    except ValueError:
        scheme = ""  # such as an invalid port
    if scheme not in _SCHEMES:
        raise UsageError(
            f"expected a proxy such as http://HOST:PORT in the environment, got {_shown(proxy)}"
        )
    if scheme in _SOCKS and importlib.util.find_spec("python_socks") is None:
        raise UsageError(
            f"expected the package python-socks for the proxy {_shown(proxy)}; "
            f"pip install 'python-socks[asyncio]', or set no_proxy={urlsplit(url).hostname}"
        )
    return proxy


def through(url: str) -> str:
    """Return words about the proxy for an address, for error messages; empty without a proxy."""
    proxy = _proxy_to(url)
    return "" if proxy is None else f" through the proxy {_shown(proxy)}"


def _proxy_to(url: str) -> str | None:
    try:
        address = urlsplit(url)
        host, port = address.hostname or "", address.port
    except ValueError:
        return None  # the address is invalid, which is reported elsewhere
    if _is_here(host) or proxy_bypass(host if port is None else f"{host}:{port}"):
        return None
    own = ("wss", "socks", "https") if address.scheme == "wss" else ("ws", "socks", "https", "http")
    proxies = getproxies()
    for scheme in (*own, "all"):
        if proxy := proxies.get(scheme):
            proxy = proxy if "://" in proxy else f"http://{proxy}"
            # macOS gives its SOCKS proxy as http://…
            return proxy.replace("http://", "socks5h://", 1) if scheme == "socks" else proxy
    return None


def _is_here(host: str) -> bool:
    host = host.removesuffix(".")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def _shown(proxy: str) -> str:
    """Return a proxy's address without user and password."""
    scheme, _, rest = proxy.partition("://")
    return one_line(f"{scheme}://{rest.rpartition('@')[2].rstrip('/')}")
