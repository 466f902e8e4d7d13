"""Which browsers' pages may open a WebSocket here: ours, and those that the arena's owner has named; and below which path all is.

A browser lets any page in the world connect to any address that its user can reach, and says in `Origin` whose page it is. Programs send
no `Origin`, or their own address as one, and are let in. Where the arena listens on loopback only, `Host` must be a name of loopback's, too:
else a foreign name that is made to point there would pass for ours (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import TypeAlias

from arena.server.reply import Headers
from protocol.errors import UsageError, one_line

__all__ = ["Origins", "below", "is_loopback", "read_base_path", "read_origin"]

_PORTS = {"http": 80, "https": 443}
_PLACE = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:/?#@\[\]]+)(?::([0-9]{1,5}))?")
_BASE_PATH = re.compile(r"/(?:(?!\.{1,2}/)[A-Za-z0-9._~-]+/)*")
_ORIGIN = re.compile(r"(https?)://([^/]+)/?")

_Place: TypeAlias = tuple[str, int]
"""A host and a port."""


class Origins:
    """Who may come from where; at first only from our own address."""

    def __init__(self) -> None:
        self._allowed = frozenset[tuple[str, str, int]]()
        self._listens = set[str]()

    def allow(self, origins: Sequence[str]) -> None:
        """These, too.

        Raises:
            UsageError: one is no origin.
        """
        self._allowed |= frozenset(map(read_origin, origins))

    def listens(self, host: str) -> None:
        """The arena can be reached there."""
        self._listens.add(host)

    def refusal(self, headers: Headers) -> str | None:
        """Why this request may not open a WebSocket; None if it may."""
        origins = headers.get_all("Origin")
        if not origins:
            return None
        try:
            scheme, *place = read_origin(origins[0])
        except UsageError:
            return self._not_ours(origins[0])
        if len(origins) == 1 and (scheme, *place) in self._allowed:
            return None
        hosts = headers.get_all("Host")
        here = _place(hosts[0], _PORTS[scheme]) if len(hosts) == 1 else None
        if len(origins) > 1 or here != tuple(place):
            return self._not_ours(origins[0])
        return self.host_refusal(headers)

    def host_refusal(self, headers: Headers) -> str | None:
        """Why a browser may have been misled to us under a foreign name; None if it has not, or the name may be ours."""
        hosts = headers.get_all("Host")
        is_near = self._listens and all(map(is_loopback, self._listens))
        if not is_near or not hosts:
            return None
        known = {"localhost", *(host for _, host, _ in self._allowed)}
        for said in hosts:
            place = _place(said, 0)
            if place is None or not (place[0] in known or is_loopback(place[0])):
                return (
                    f"expected a Host of this machine's own, as this arena listens on loopback only, got {_shown(said)}; "
                    "to let it in start the arena with --origin"
                )
        return None

    def _not_ours(self, said: str) -> str:
        return (
            f"expected an Origin that is this arena's own address, got {_shown(said)}; "
            "to let it in start the arena with --origin"
        )


def read_origin(text: str) -> tuple[str, str, int]:
    """The scheme, host and port of an origin.

    Raises:
        UsageError: it is none.
    """
    found = _ORIGIN.fullmatch(text.lower())
    place = found and _place(found[2], _PORTS[found[1]])
    if not found or place is None:
        raise UsageError(
            f"expected an origin such as https://arena.example.org, got {_shown(text)}"
        )
    return found[1], *place


def read_base_path(text: str) -> str:
    """A path below which an arena is found; `/` is all of its address.

    Raises:
        UsageError: it is none.
    """
    if not _BASE_PATH.fullmatch(text):
        raise UsageError(
            f"expected a path such as /arena/, of letters, digits, '-', '.', '_' and '~' between slashes, got {_shown(text)}"
        )
    return text


def below(base: str, path: str) -> str | None:
    """A request's path as it were without the base path, with what stands behind its `?`; None if it is not below that."""
    return path[len(base) - 1 :] if path.startswith(base) else None


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself, seen from this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _place(text: str, default: int) -> _Place | None:
    """A host and its port; None if it is neither."""
    found = _PLACE.fullmatch(text.strip().lower())
    if found is None:
        return None
    return found[1], int(found[2]) if found[2] else default


def _shown(text: str) -> str:
    return repr(one_line(text, 80))
