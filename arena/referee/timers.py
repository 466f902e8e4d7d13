"""Deadlines that allow for the arena's own lag (J7).

A timer that rings is set again for as long as the arena stood still meanwhile. So everybody has the
whole time, and what waits in the sockets is read before the deadline is ruled on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from arena.referee.clock import TICK_S

__all__ = ["Ticker", "Timer", "Timers"]


class Timer:
    """A call to come; made by `Timers.after`."""

    __slots__ = ("_call", "_due_s", "_handle", "_lag_s", "_loop")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        lag_s: Callable[[float], float],
        delay_s: float,
        call: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._lag_s = lag_s
        self._call = call
        self._due_s = self._arena_s() + delay_s
        self._handle = loop.call_later(delay_s, self._ring)

    @property
    def left_s(self) -> float:
        """For how long the arena has to run until it is due, in seconds."""
        return self._due_s - self._arena_s()

    def cancel(self) -> None:
        """Never call; once more does nothing."""
        self._handle.cancel()

    def _ring(self) -> None:
        if self.left_s >= TICK_S:
            self._handle = self._loop.call_later(self.left_s, self._ring)
        else:
            self._call()

    def _arena_s(self) -> float:
        """The loop's clock without the time in which the arena stood still."""
        now = self._loop.time()
        return now - self._lag_s(now)


class Timers:
    """Makes timers; `lag_s` gives the loop's total lag up to a time of its clock."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, lag_s: Callable[[float], float] = lambda now: 0.0
    ) -> None:
        self._loop = loop
        self._lag_s = lag_s

    def after(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """Call after so many seconds in which the arena has not stood still."""
        return Timer(self._loop, self._lag_s, delay_s, call)


class Ticker:
    """Calls `tick` every `TICK_S`, so that the arena rules on deadlines; `tick` must not raise."""

    def __init__(self, loop: asyncio.AbstractEventLoop, tick: Callable[[], None]) -> None:
        self._loop = loop
        self._tick = tick
        self._handle: asyncio.Handle | None = None

    def start(self) -> None:
        """Begin; once more does nothing."""
        if self._handle is None:
            self._wait()

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()

    def _wait(self) -> None:
        due = self._loop.time() + TICK_S
        self._handle = self._loop.call_at(due, self._ring, due)

    def _ring(self, due: float) -> None:
        # After a stall, what waits in the sockets is read before the tick rules on its senders.
        if self._loop.time() - due > TICK_S:
            self._handle = self._loop.call_soon(self._call)
        else:
            self._call()

    def _call(self) -> None:
        self._tick()
        self._wait()
