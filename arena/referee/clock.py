"""What a decision costs: the arithmetic of time (J7, design §5), without a clock in it.

A decision is free up to `decision_ms`; what it takes beyond that and its credit drains the seat's bank. It is out of time when the bank is
empty or at `hard_ms`, whichever comes first. The credit is what is not the bot's doing: the floor of its link, which the arena
measures, and the arena's own lag while the question was out. Who measures, and from when to when, is the business of
`arena/referee/referee.py` and `arena/server/gateway.py`; times come in as arguments, on one monotonic clock.
"""

from __future__ import annotations

from math import ceil, inf

from protocol.messages import Limits

__all__ = ["TICK_S", "Lag", "RoundTripFloor", "SeatClock", "charged_from"]

_STALL_S = 1.0  # a loop this late stood still; a busy one is late by some milliseconds
_CATCHING_UP_S = 0.1  # late by so much after a stall: what waited is still being read
_AFTER_STALL_S = 5.0
"""For so long after a stall a close may follow from it: clients give up at their next look, not at the moment of the stall."""

_PINGS = 3  # the least that a floor is taken from: one alone may have been lucky
_MOST_CREDIT_MS = 150.0  # pongs can be held back, and this is what that is worth

TICK_S = 0.01  # how exactly deadlines are kept, and lag is measured
_SLACK_S = 0.002  # a timer is hardly ever sharper on a machine that has other work, too


class SeatClock:
    """One seat's time for one match; `bank_ms` is what is left in its bank, in whole milliseconds."""

    __slots__ = ("_limits", "bank_ms")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.bank_ms = limits.bank_ms

    @property
    def allowed_ms(self) -> float:
        """How long the next decision may take in all, credit apart."""
        return min(self._limits.hard_ms, self._limits.decision_ms + self.bank_ms)

    def charge(self, taken_ms: float, credit_ms: float = 0.0) -> bool:
        """Pay for a decision that took so long; False if it came too late."""
        counts_ms = taken_ms - credit_ms
        in_time = counts_ms <= self.allowed_ms
        over_ms = ceil(counts_ms) - self._limits.decision_ms
        if over_ms > 0:
            self.bank_ms = max(0, self.bank_ms - over_ms)
        return in_time


def charged_from(asked_at: float, last_answer: float, waiting: int, decision_ms: int) -> float:
    """When a decision's time begins, in seconds (J7).

    A bot with many tables is one worker: a question's time begins with its latest answer if that is later than the
    question. But it cannot put a question off for ever by answering others: one that found so many others `waiting` has waited
    for its turn long enough after `decision_ms` for each of them, and its time begins then at the latest.
    """
    return min(max(asked_at, last_answer), asked_at + waiting * decision_ms / 1000)


class RoundTripFloor:
    """The floor of a bot's link: the quickest of at least three round trips of pings that it could not foresee.

    Args:
        former_ms: the floor of its connection before, which counts until this one's is known.
    """

    __slots__ = ("_former_ms", "_least_ms", "_pings")

    def __init__(self, former_ms: float = 0.0) -> None:
        self._former_ms = former_ms
        self._pings = 0
        self._least_ms = _MOST_CREDIT_MS

    def measured(self, round_trip_ms: float) -> None:
        """One more ping has been answered while the bot had nothing else to do."""
        self._pings += 1
        self._least_ms = min(self._least_ms, round_trip_ms)

    @property
    def is_known(self) -> bool:
        """Whether there have been enough pings."""
        return self._pings >= _PINGS

    @property
    def floor_ms(self) -> float:
        """What every decision is credited with; 150 at most."""
        return self._least_ms if self.is_known else self._former_ms


class Lag:
    """How long the arena's own loop has been late in all: what came in meanwhile was seen too late.

    The loop promises to `tick` every `TICK_S`; whatever it takes longer, it was busy or held up. Between ticks the promise tells how late
    it is already: an answer that has waited in the socket is often looked at before the tick is.
    """

    __slots__ = ("_due", "_stalled_until", "_total_s")

    def __init__(self, now: float) -> None:
        self._total_s = 0.0
        self._due = now + TICK_S + _SLACK_S
        self._stalled_until = -inf

    def tick(self, now: float) -> None:
        """The loop has come round."""
        late_s = now - self._due
        is_catching_up = late_s >= _CATCHING_UP_S and self.follows_stall(now)
        if late_s >= _STALL_S or is_catching_up:
            self._stalled_until = now
        self._total_s = self.total_s(now)
        self._due = now + TICK_S + _SLACK_S

    def total_s(self, now: float) -> float:
        """All lateness up to now, in seconds; it never falls."""
        return self._total_s + max(0.0, now - self._due)

    def follows_stall(self, now: float) -> bool:
        """Whether what happens now may be the consequence of the arena's having stood still (J7)."""
        is_stalled = now - self._due >= _STALL_S
        return is_stalled or now - self._stalled_until <= _AFTER_STALL_S
