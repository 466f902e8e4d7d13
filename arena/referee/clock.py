"""What a decision costs: the arithmetic of time (J7), without a clock in it.

A decision is free up to `decision_ms`; what it takes beyond that and its credit drains the seat's
bank. It is out of time when it takes more than the bank holds, or longer than `hard_ms`. The credit
is the time that the bot cannot help: the floor of its link, which the arena measures, and the lag
of the arena while the question was out. `arena/referee/decision_time.py` measures and decides.
Times are passed in, in seconds of one monotonic clock unless a name ends in `_ms`.
"""

from __future__ import annotations

from collections import deque
from math import ceil, inf
from typing import Protocol

from protocol.messages import Limits

__all__ = [
    "QUICK_MS",
    "TICK_S",
    "CoreWait",
    "Lag",
    "LoopLag",
    "RoundTripFloor",
    "SeatClock",
    "charged_from",
    "start_cap_ms",
]

_STALL_S = 1.0  # a loop this late has stalled; a busy one is late by some milliseconds
_CATCHING_UP_S = 0.1  # this late after a stall, the loop still reads what waited
_MOST_STALLS = 1024  # remembered stalls: for a loop that is always late, those of 100 s
_AFTER_STALL_S = 5.0  # a close this late may be due to a stall: clients check now and then

_PINGS = 3  # the fewest for a floor: a single one may have been lucky
_MOST_CREDIT_MS = 150.0  # so a bot that delays its pongs on purpose gains no more

QUICK_MS = 100.001
"""A launched bot's decision up to this long costs no clock time, and its process is not looked at.

It is 100 ms, and a microsecond more as seconds in floating point are not exact.
"""
TICK_S = 0.01  # the precision of deadlines and of lag
_SLACK_S = 0.002  # timers on a machine with other work are hardly more precise


class SeatClock:
    """One seat's time for one match.

    `bank_ms` is what is left in its bank, in whole milliseconds. A launched bot also has a bank of
    clock time, with `wall_bank_ms` left.
    """

    __slots__ = ("_limits", "bank_ms", "wall_bank_ms")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.bank_ms = limits.bank_ms
        self.wall_bank_ms: float = limits.wall_bank_ms

    @property
    def allowed_ms(self) -> float:
        """How long the next decision may take, apart from the credit."""
        return min(self._limits.hard_ms, self._limits.decision_ms + self.bank_ms)

    def charge(self, taken_ms: float, credit_ms: float = 0.0) -> bool:
        """Pay for a decision that took this long; False if it came too late."""
        counts_ms = taken_ms - credit_ms
        in_time = counts_ms <= self.allowed_ms
        over_ms = ceil(counts_ms) - self._limits.decision_ms
        if over_ms > 0:
            self.bank_ms = max(0, self.bank_ms - over_ms)
        return in_time


def charged_from(asked_at: float, last_answer: float, waiting: int, decision_ms: int) -> float:
    """When a decision's time begins, in seconds (J7).

    A bot with many tables is one worker: a question's time begins with the bot's latest answer if
    that is later than the question. But a bot cannot postpone a question for ever by answering
    others: the time begins at the latest after `decision_ms` for each question that was `waiting`
    at its arrival.
    """
    return min(max(asked_at, last_answer), asked_at + waiting * decision_ms / 1000)


def start_cap_ms(limits: Limits) -> int:
    """The wall-clock cap, before it grows, for a start that may take `start_ms` of CPU time.

    A start is from the launch of a bot to its `hello`, or from `match` to `ready`.
    """
    return max(limits.wall_ms, limits.start_ms)


class CoreWait:
    """How long a launched bot had no core from `now` on; this is never charged to it.

    `waited_ms` is the wait of all its threads together, as it was at `now` or before. Between two
    looks it counts at most the time that passed: many waiting threads do not pay for a later sleep.
    """

    __slots__ = ("_looked_at", "total_ms", "waited_ms")

    def __init__(self, waited_ms: float, now: float) -> None:
        self.total_ms = 0.0
        self.waited_ms = waited_ms
        self._looked_at = now

    def look(self, waited_ms: float, now: float) -> None:
        new_ms = min(waited_ms - self.waited_ms, (now - self._looked_at) * 1000)
        self.total_ms += max(0.0, new_ms)
        self.waited_ms, self._looked_at = waited_ms, now


class RoundTripFloor:
    """The floor of a bot's link: the quickest of at least three round trips of unpredictable pings.

    `former_ms` is the floor of its previous connection, which counts until this one's is known.
    """

    __slots__ = ("_former_ms", "_least_ms", "_pings")

    def __init__(self, former_ms: float = 0.0) -> None:
        self._former_ms = former_ms
        self._pings = 0
        self._least_ms = _MOST_CREDIT_MS

    def measured(self, round_trip_ms: float) -> None:
        """Add the round trip of a ping that was answered while the bot had nothing else to do."""
        self._pings += 1
        self._least_ms = min(self._least_ms, round_trip_ms)

    @property
    def is_known(self) -> bool:
        return self._pings >= _PINGS

    @property
    def floor_ms(self) -> float:
        """The credit of every decision; at most 150."""
        return self._least_ms if self.is_known else self._former_ms


class LoopLag(Protocol):
    """How late an event loop has been; times are on the arena's clock."""

    def total_s(self, now: float) -> float:
        """All lateness up to now, in seconds; never decreases."""

    def stalled_s(self, since: float, now: float) -> float:
        """How long the loop has stalled since a time, in seconds."""


class Lag:
    """How late the arena's own loop has been in total: messages that came meanwhile were read late.

    The loop should `tick` every `TICK_S`; any excess is lag. An overdue tick already counts before
    it comes, as an answer that waited in the socket is often read first.
    """

    __slots__ = ("_due", "_stalled_s", "_stalled_until", "_stalls", "_total_s")

    def __init__(self, now: float) -> None:
        self._total_s = self._stalled_s = 0.0
        self._due = now + TICK_S + _SLACK_S
        self._stalled_until = -inf
        self._stalls: deque[tuple[float, float]] = deque(maxlen=_MOST_STALLS)

    def tick(self, now: float) -> None:
        late_s = now - self._due
        is_catching_up = late_s >= _CATCHING_UP_S and self.follows_stall(now)
        if late_s >= _STALL_S or is_catching_up:
            self._stalled_until = now
        if late_s >= _CATCHING_UP_S:
            self._stalls.append((self._due, now))
            self._stalled_s += late_s
        self._total_s = self.total_s(now)
        self._due = now + TICK_S + _SLACK_S

    def total_s(self, now: float) -> float:
        return self._total_s + max(0.0, now - self._due)

    def stalled_s(self, since: float, now: float) -> float:
        """How long the loop has stalled since a time, in seconds.

        Only lateness of a tenth of a second or more at once counts.
        """
        late_s = now - max(self._due, since)
        stalled_s = late_s if now - self._due >= _CATCHING_UP_S else 0.0
        for began, ended in reversed(self._stalls):
            if ended <= since:
                break
            stalled_s += ended - max(began, since)
        return stalled_s

    def all_stalls_s(self, now: float) -> float:
        """How long the loop has stalled in all, in seconds; see `stalled_s`."""
        late_s = now - self._due
        return self._stalled_s + (late_s if late_s >= _CATCHING_UP_S else 0.0)

    def follows_stall(self, now: float) -> bool:
        """Whether an event at this moment may be due to a stall of the arena (J7)."""
        is_stalled = now - self._due >= _STALL_S
        return is_stalled or now - self._stalled_until <= _AFTER_STALL_S
