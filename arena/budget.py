"""How much of the arena's work a connection may ask for in vain: messages that come to nothing, and CPU time for them, per second.

Pure arithmetic on a clock that is passed in. What is too much for one second is a debt, which the next seconds pay: until then
the connection is not read, so that on average nobody gets more than the budget, however much came at once.
"""

from __future__ import annotations

from math import ceil

from protocol.errors import Malformed

__all__ = ["CPU_S", "ON_END", "Budget", "Flood"]

CPU_S = 0.02
"""Of every second: a fiftieth of a core."""

ON_END = 10
"""So many seconds on end beyond the budget are no accident."""


class Flood(Malformed):
    """Too much came to nothing for too long."""


class Budget:
    """What one bot may spend, over all of its connections; bots with the same token share one.

    Args:
        messages: how many messages a second may come to nothing.
        cpu_s: how much CPU time a second they may take.
    """

    __slots__ = ("_began", "_cpu_s", "_messages", "_most", "_most_cpu_s", "_on_end")

    def __init__(self, messages: int, cpu_s: float = CPU_S) -> None:
        self._most = messages
        self._most_cpu_s = cpu_s
        self._messages = 0  # since the current second began, and what is owed
        self._cpu_s = 0.0
        self._began = 0.0
        self._on_end = 0  # seconds before the current one that were not enough

    def spend(self, now: float, messages: int, cpu_s: float = 0.0) -> float | None:
        """Book messages that have come to nothing.

        Args:
            now: a time of a monotonic clock, in seconds.
            messages: how many.
            cpu_s: what they took, as far as it was measured.

        Returns:
            Until when nothing more should be read; None if the second's budget is not used up.

        Raises:
            Flood: it was more than the budget for `ON_END` seconds on end.
        """
        self._pass(now)
        # No more is owed than ten seconds pay, however much came in one moment.
        most = ON_END + 1
        self._messages = min(self._messages + messages, most * self._most)
        self._cpu_s = min(self._cpu_s + cpu_s, most * self._most_cpu_s)
        owed_s = self._owed_s
        if owed_s and self._on_end >= ON_END - 1:
            raise Flood(
                f"expected at most {self._most:,} messages a second that come to nothing, and {self._most_cpu_s * 1000:.0f} ms"
                f" of CPU time for them, got more for {ON_END} seconds on end"
            )
        return self._began + owed_s if owed_s else None

    def rests_until(self, now: float) -> float | None:
        """Until when nothing should be read, as too much has been spent before; None if that is paid."""
        self._pass(now)
        owed_s = self._owed_s
        return self._began + owed_s if owed_s else None

    @property
    def _owed_s(self) -> int:
        """How many seconds must pass until what is owed is no more than one second's budget."""
        seconds = max(self._messages / self._most, self._cpu_s / self._most_cpu_s)
        return max(0, ceil(seconds) - 1)

    def _pass(self, now: float) -> None:
        passed_s = int(now - self._began)
        if passed_s > self._owed_s:  # at least one of them was enough
            self._messages, self._cpu_s = 0, 0.0
            self._began, self._on_end = now, 0
        elif passed_s:
            self._messages = max(0, self._messages - passed_s * self._most)
            self._cpu_s = max(0.0, self._cpu_s - passed_s * self._most_cpu_s)
            self._began += passed_s
            self._on_end += passed_s
