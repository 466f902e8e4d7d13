"""Shares the cores of this machine between submitted bots: only so many compute at once.

Who enters waits for a core, first come, first served, and has it until it leaves. A question to a
bot that waits has not been sent, so no clock of its runs (issue 18: nobody is out for the load of
others).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

__all__ = ["ComputeGate"]


class ComputeGate:
    """At most `cores` of those that have entered compute at once."""

    def __init__(self, cores: int) -> None:
        self.cores = cores
        self._computing: set[Hashable] = set()
        self._waiting: dict[Hashable, Callable[[], None]] = {}  # in the order in which they came

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def enter(self, who: Hashable, begin: Callable[[], None]) -> None:
        """Call `begin` once there is a core: now, or when another leaves."""
        assert who not in self._computing | self._waiting.keys(), "it has left before"
        self._waiting[who] = begin
        self._admit()

    def leave(self, who: Hashable) -> None:
        """Free its core, or wait for none any more; of one that is not here it means nothing."""
        self._waiting.pop(who, None)
        self._computing.discard(who)
        self._admit()

    def _admit(self) -> None:
        while self._waiting and len(self._computing) < self.cores:
            who = next(iter(self._waiting))
            begin = self._waiting.pop(who)
            self._computing.add(who)
            begin()
