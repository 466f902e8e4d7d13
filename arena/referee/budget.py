"""How much of the arena's work others may ask for: a connection in vain, in messages that come to nothing and CPU time for them, per second;
and many together, as a share of the arena's time.

Pure arithmetic on a clock that is passed in. What is too much for one second is a debt, which the next seconds pay: until then
the connection is not read, so that on average nobody gets more than the budget, however much came at once.
"""

from __future__ import annotations

from math import ceil

from protocol.errors import Malformed

__all__ = ["CPU_S", "ON_END", "Budget", "Flood", "Share"]

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


class Share:
    """A share of the arena's time, which its users spend as they are served: whoever has spent more waits until it is paid.

    Args:
        part: how much of every second, from 0 to 1.
        saved_s: how much is there at most of what was not used, in seconds.
        within: a larger share that this one is a part of, if there is one.
    """

    __slots__ = ("_at", "_left_s", "_part", "_saved_s", "_within")

    def __init__(self, part: float, saved_s: float, within: Share | None = None) -> None:
        self._part = part
        self._saved_s = saved_s
        self._within = within
        self._left_s = saved_s
        self._at = 0.0

    def spend(self, now: float, took_s: float) -> float | None:
        """Book so many seconds of the arena's time.

        Args:
            now: a time of a monotonic clock, in seconds.
            took_s: the time that was spent.

        Returns:
            Until when nothing more should be read from whom it was spent on; None if there is some left.
        """
        self._pass(now)
        self._left_s -= took_s
        ends = [] if self._left_s >= 0 else [now - self._left_s / self._part]
        if self._within is not None:
            until = self._within.spend(now, took_s)
            ends += [] if until is None else [until]
        return max(ends, default=None)

    def is_spent(self, now: float) -> bool:
        """Whether nothing of it is left at a time of the clock."""
        self._pass(now)
        return self._left_s <= 0

    def _pass(self, now: float) -> None:
        gained_s = (now - self._at) * self._part
        self._left_s = min(self._saved_s, self._left_s + gained_s)
        self._at = now
