"""What a decision costs: the arithmetic of a seat's clock (J7, design §5), without a clock in it.

A decision is free up to `decision_ms`; what it takes beyond that drains the bank. It is out of time when the bank is empty or at
`hard_ms`, whichever comes first. Who measures, and from when to when, is the business of `arena/conduct.py`.
"""

from __future__ import annotations

from protocol.messages import Limits

__all__ = ["Clock"]


class Clock:
    """One seat's time for one match."""

    __slots__ = ("_bank_ms", "_limits")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._bank_ms = float(limits.bank_ms)

    @property
    def bank_ms(self) -> int:
        """What is left in the bank, in whole milliseconds."""
        return int(self._bank_ms)

    @property
    def allowed_ms(self) -> float:
        """How long the next decision may take in all."""
        return min(self._limits.hard_ms, self._limits.decision_ms + self._bank_ms)

    def charge(self, taken_ms: float) -> bool:
        """Pay for a decision that took so long; False if it came too late."""
        in_time = taken_ms <= self.allowed_ms
        over = taken_ms - self._limits.decision_ms
        if over > 0:
            self._bank_ms = max(0.0, self._bank_ms - over)
        return in_time
