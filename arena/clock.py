"""What a decision costs: the arithmetic of a seat's clock (J7, design §5), without a clock in it.

A decision is free up to `decision_ms`; what it takes beyond that drains the bank. It is out of time when the bank is empty or at
`hard_ms`, whichever comes first. Who measures, and from when to when, is the business of `arena/conduct.py`.
"""

from __future__ import annotations

from math import ceil

from protocol.messages import Limits

__all__ = ["Clock"]


class Clock:
    """One seat's time for one match; `bank_ms` is what is left in its bank, in whole milliseconds."""

    __slots__ = ("_limits", "bank_ms")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.bank_ms = limits.bank_ms

    @property
    def allowed_ms(self) -> float:
        """How long the next decision may take in all."""
        return min(self._limits.hard_ms, self._limits.decision_ms + self.bank_ms)

    def charge(self, taken_ms: float) -> bool:
        """Pay for a decision that took so long; False if it came too late."""
        in_time = taken_ms <= self.allowed_ms
        over_ms = ceil(taken_ms) - self._limits.decision_ms
        if over_ms > 0:
            self.bank_ms = max(0, self.bank_ms - over_ms)
        return in_time
