"""The bus of arenas and hosts: its users, and the interface that an arena needs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from protocol.errors import UsageError

__all__ = ["ARENA_USER", "BusDown", "HostBus", "checked_host"]

ARENA_USER = "arena"
"""The user name of arenas and their operators on the bus; a host uses its own name."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")  # a word of a subject


def checked_host(name: str) -> str:
    """Return the name of a host; raises `UsageError` if it is not a valid one."""
    if not _NAME.fullmatch(name) or name == ARENA_USER:
        raise UsageError(
            f"expected a name of at most 32 letters, digits, - and _ for a host, got {name!r}"
        )
    return name


class BusDown(Exception):
    """The bus cannot be reached, or nobody has answered; the text says which."""


class HostBus(Protocol):
    """The bus as an arena needs it; methods raise `BusDown`."""

    @property
    def is_up(self) -> bool:
        """Whether the bus can be reached now."""

    async def on_reports(self, call: Callable[[str, bytes], None]) -> None:
        """Call `call` with (host, data) for each report, also after a reconnection."""

    async def place(self, host: str, data: bytes) -> bytes:
        """Ask a host for room, and return its answer."""

    async def drain(self, host: str, data: bytes) -> None:
        """Send a host an operator's order, a `DrainHost`; it may be lost."""
