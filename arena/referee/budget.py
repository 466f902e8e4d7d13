"""Limits on the work that connections cause.

`Budget` limits messages without effect. `Share` limits the time that the arena spends. Both are
pure arithmetic: the caller passes the time in. Work beyond the limit is a debt, which later seconds
pay. The caller does not read the connection until the debt is paid.
"""

from __future__ import annotations

from math import ceil

from protocol.errors import Malformed

__all__ = ["CPU_S", "ON_END", "Budget", "Flood", "Share"]

CPU_S = 0.02  # of each second: a fiftieth of a core
ON_END = 10  # seconds in a row over the budget that are no accident


class Flood(Malformed):
    """Too many messages without effect, for too long."""


class Budget:
    """A bot's budget per second for messages without effect; bots with the same token share it."""

    __slots__ = ("_began", "_cpu_s", "_messages", "_most", "_most_cpu_s", "_on_end")

    def __init__(self, messages: int, cpu_s: float = CPU_S) -> None:
        self._most = messages
        self._most_cpu_s = cpu_s
        self._messages = 0  # of the current second, and the debt
        self._cpu_s = 0.0
        self._began = 0.0
        self._on_end = 0  # seconds in a row, before the current one, over the budget

    def spend(self, now: float, messages: int, cpu_s: float = 0.0) -> float | None:
        """Charge messages without effect, and the CPU time they took as far as it was measured.

        Returns until when nothing more should be read; None if the budget of the second is not used
        up. Raises `Flood` after more than `ON_END` seconds in a row over the budget.
        """
        self._pass(now)
        # The debt is at most what ten seconds pay, however much came in one moment.
        most = ON_END + 1
        self._messages = min(self._messages + messages, most * self._most)
        self._cpu_s = min(self._cpu_s + cpu_s, most * self._most_cpu_s)
        owed_s = self._owed_s
        if owed_s and self._on_end >= ON_END - 1:
            raise Flood(
                f"expected at most {self._most:,} messages a second that come to nothing, "
                f"and {self._most_cpu_s * 1000:.0f} ms of CPU time for them, "
                f"got more for {ON_END} seconds on end"
            )
        return self._began + owed_s if owed_s else None

    def rests_until(self, now: float) -> float | None:
        """Until when nothing should be read so that the debt is paid; None if there is none."""
        self._pass(now)
        owed_s = self._owed_s
        return self._began + owed_s if owed_s else None

    @property
    def _owed_s(self) -> int:
        """How many seconds must pass until the debt is at most the budget of one second."""
        seconds = max(self._messages / self._most, self._cpu_s / self._most_cpu_s)
        return max(0, ceil(seconds) - 1)

    def _pass(self, now: float) -> None:
        passed_s = int(now - self._began)
        if passed_s > self._owed_s:  # at least one second was within the budget
            self._messages, self._cpu_s = 0, 0.0
            self._began, self._on_end = now, 0
        elif passed_s:
            self._messages = max(0, self._messages - passed_s * self._most)
            self._cpu_s = max(0.0, self._cpu_s - passed_s * self._most_cpu_s)
            self._began += passed_s
            self._on_end += passed_s


class Share:
    """A share of the arena's time; users who exceed it have to wait.

    The share is a `part` of every second, from 0 to 1. Up to `saved_s` of unused time are saved. It
    may itself be part of a larger share, `within`.
    """

    __slots__ = ("_at", "_left_s", "_part", "_saved_s", "_within")

    def __init__(self, part: float, saved_s: float, within: Share | None = None) -> None:
        self._part = part
        self._saved_s = saved_s
        self._within = within
        self._left_s = saved_s
        self._at = 0.0

    def spend(self, now: float, took_s: float) -> float | None:
        """Charge time of the arena; returns until when its users should not be read, or None."""
        self._pass(now)
        self._left_s -= took_s
        ends = [] if self._left_s >= 0 else [now - self._left_s / self._part]
        if self._within is not None:
            until = self._within.spend(now, took_s)
            ends += [] if until is None else [until]
        return max(ends, default=None)

    def is_spent(self, now: float) -> bool:
        self._pass(now)
        return self._left_s <= 0

    def _pass(self, now: float) -> None:
        gained_s = (now - self._at) * self._part
        self._left_s = min(self._saved_s, self._left_s + gained_s)
        self._at = now
