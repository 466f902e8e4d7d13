"""Networks for tests: network namespaces of the arena, and of the end of each line to it.

A line that is cut loses every packet, both ways, without a reset: each end is given a wrong
hardware address for the other, so that each kernel goes on sending, and the other drops the
packets. That needs only `ip`, and root on Linux.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from types import TracebackType

from tests.support.needs import skip_without

__all__ = ["ARENA", "NamespaceNetwork"]

ARENA = "arena"
"""The name of the arena's namespace, beside those of the lines."""

_NOBODY = "02:00:00:00:ff:ff"


class NamespaceNetwork:
    """A network that exists within its context.

    Args:
        lines: the names of the lines.
    """

    def __init__(self, *lines: str) -> None:
        self._lines = lines
        self._names = {where: f"card-arena-{os.getpid()}-{where}" for where in (ARENA, *lines)}

    def __enter__(self) -> NamespaceNetwork:
        """Lay the lines."""
        skip_without("root", "ip")
        try:
            for name in self._names.values():
                _ip("netns", "add", name)
            self._on(ARENA, "link", "set", "lo", "up")
            for number, line in enumerate(self._lines):
                self._lay(number, line)
        except BaseException:
            self._clear()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._clear()

    def arena_from(self, line: str) -> str:
        """The arena's address at the other end of a line."""
        return f"10.0.{self._lines.index(line)}.1"

    def within(self, where: str) -> tuple[str, ...]:
        """The words before a command that have it run there, in the same process."""
        return ("ip", "netns", "exec", self._names[where])

    def cut(self, line: str) -> None:
        """Have every packet lost from now on."""
        self._point(line, _NOBODY, _NOBODY)

    def mend(self, line: str) -> None:
        """Have packets arrive again."""
        number = self._lines.index(line)
        self._point(line, _mac(number, 1), _mac(number, 2))

    def _lay(self, number: int, line: str) -> None:
        here, there = f"to-{number}", "to-arena"
        self._on(
            *(ARENA, "link", "add", here, "address", _mac(number, 1), "type", "veth"),
            *("peer", "name", there, "address", _mac(number, 2)),
            *("netns", self._names[line]),
        )
        for where, device, host in ((ARENA, here, 1), (line, there, 2)):
            self._on(where, "addr", "add", f"10.0.{number}.{host}/24", "dev", device)
            self._on(where, "link", "set", device, "up")
        self.mend(line)

    def _point(self, line: str, arena: str, bot: str) -> None:
        """Set the hardware address by which each end reaches the other."""
        number = self._lines.index(line)
        for where, device, host, mac in (
            (ARENA, f"to-{number}", 2, bot),
            (line, "to-arena", 1, arena),
        ):
            address = f"10.0.{number}.{host}"
            self._on(
                *(where, "neigh", "replace", address, "lladdr", mac),
                *("dev", device, "nud", "permanent"),
            )

    def _on(self, where: str, *words: str) -> None:
        _ip("-n", self._names[where], *words)

    def _clear(self) -> None:
        for name in self._names.values():
            with suppress(subprocess.CalledProcessError):
                _ip("netns", "del", name)


def _mac(number: int, end: int) -> str:
    return f"02:00:00:00:{number:02x}:{end:02x}"


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
