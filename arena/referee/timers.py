"""Deadlines that allow for the arena's own lag (J7).

If the arena stalled meanwhile, a timer that rings is set again for the length of the stall. So
everybody has the whole time, and what waits in the sockets is read before the deadline is ruled on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from arena.referee.clock import TICK_S

__all__ = ["Ticker", "Timer", "Timers"]


class Timer:
    """A scheduled call; made by `Timers.after`."""

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
        """How many seconds the arena still has to run until the call is due."""
        return self._due_s - self._arena_s()

    def cancel(self) -> None:
        """Cancel the call; repeating it does nothing."""
        self._handle.cancel()

    def _ring(self) -> None:
        if self.left_s >= TICK_S:
            self._handle = self._loop.call_later(self.left_s, self._ring)
        else:
            self._call()

    def _arena_s(self) -> float:
        """The loop's clock minus the time in which the arena stalled."""
        now = self._loop.time()
        return now - self._lag_s(now)


class Timers:
    """Makes timers; `lag_s` returns the loop's total lag up to a time of its clock."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, lag_s: Callable[[float], float] = lambda now: 0.0
    ) -> None:
        self._loop = loop
        self._lag_s = lag_s

    def after(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """Make a call after a delay, not counting stalls of the arena."""
        return Timer(self._loop, self._lag_s, delay_s, call)


class Ticker:
    """Calls `tick` every `TICK_S` to rule on deadlines; `tick` must not raise."""

    def __init__(self, loop: asyncio.AbstractEventLoop, tick: Callable[[], None]) -> None:
        self._loop = loop
        self._tick = tick
        self._handle: asyncio.Handle | None = None

    def start(self) -> None:
        """Begin; repeating it does nothing."""
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
