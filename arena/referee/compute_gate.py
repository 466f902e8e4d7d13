"""Shares the cores of this machine between submitted bots: only so many compute at once.

Who enters waits for a core, first come, first served, and has it until it leaves. A question to a
bot that waits has not been sent, so no clock of its runs (issue 18: nobody is out for the load of
others). A bot that has a core and sleeps loses it to the next one, or it would hold up everybody
until it is out of time. Once it goes on it does so without a core of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

__all__ = ["LOOK_S", "ComputeGate"]

LOOK_S = 0.2
"""Between two looks at who sleeps; CPU time is counted in steps of 10 ms."""
_LEAST_SHARE = 0.2  # of the time between two looks: less is sleep


class _Holder:
    """One that has a core: what it had used at the last look, and when that was."""

    def __init__(self, used_ms: Callable[[], float] | None) -> None:
        self.used_ms = used_ms
        self.at_ms = 0.0
        self.looked_at: float | None = None

    def sleeps(self, now: float) -> bool:
        """Whether it has hardly used a core, nor waited for one, since the last look."""
        if self.used_ms is None:
            return False
        before_ms, before = self.at_ms, self.looked_at
        self.at_ms, self.looked_at = self.used_ms(), now
        return before is not None and self.at_ms - before_ms < _LEAST_SHARE * (now - before) * 1000


class ComputeGate:
    """At most `cores` of those that have entered compute at once."""

    def __init__(self, cores: int) -> None:
        self.cores = cores
        self._computing: dict[Hashable, _Holder] = {}
        # In the order in which they came.
        self._waiting: dict[Hashable, tuple[Callable[[], None], _Holder]] = {}

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def enter(
        self, who: Hashable, begin: Callable[[], None], used_ms: Callable[[], float] | None = None
    ) -> None:
        """Call `begin` once there is a core: now, or when another leaves.

        `used_ms` returns for how long it has computed so far, or was ready to and had no core of
        the machine; without it the core is its own until it leaves.
        """
        assert who not in self._computing.keys() | self._waiting.keys(), "it has left before"
        self._waiting[who] = begin, _Holder(used_ms)
        self._admit()

    def leave(self, who: Hashable) -> None:
        """Free its core, or wait for none any more; of one that is not here it means nothing."""
        self._waiting.pop(who, None)
        self._computing.pop(who, None)
        self._admit()

    def look(self, now: float) -> None:
        """Take the cores of those that sleep, if others wait; to be called every `LOOK_S`."""
        if self._waiting:
            for who in [who for who, holder in self._computing.items() if holder.sleeps(now)]:
                del self._computing[who]
            self._admit()

    def _admit(self) -> None:
        while self._waiting and len(self._computing) < self.cores:
            who = next(iter(self._waiting))
            begin, self._computing[who] = self._waiting.pop(who)
            begin()
