from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from arena.referee.timers import Timers


class FakeHandle:
    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at, self.call, self.is_cancelled = at, call, False

    def when(self) -> float:
        return self.at

    def cancel(self) -> None:
        self.is_cancelled = True


class FakeLoop:
    """A loop whose clock is set by hand, and which stands still when it is told to."""

    def __init__(self) -> None:
        self.now = self.late_s = 0.0
        self.handles: list[FakeHandle] = []
        self.rung: list[float] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay_s: float, call: Callable[[], None]) -> FakeHandle:
        self.handles.append(FakeHandle(self.now + delay_s, call))
        return self.handles[-1]

    def runs(self, seconds: float) -> None:
        """So long the loop is on time."""
        end = self.now + seconds
        while due := [h for h in self.handles if h.at <= end and not h.is_cancelled]:
            first = min(due, key=lambda handle: handle.at)
            self.handles.remove(first)
            self.now = max(self.now, first.at)
            first.call()
        self.now = end

    def stands_still(self, seconds: float) -> None:
        self.now += seconds
        self.late_s += seconds

    def ring(self) -> None:
        self.rung.append(self.now)


def timers(loop: FakeLoop) -> Timers:
    return Timers(cast(asyncio.AbstractEventLoop, loop), lambda now: loop.late_s)


def test_a_timer_rings_when_it_is_due() -> None:
    loop = FakeLoop()
    timers(loop).after(10, loop.ring)
    loop.runs(30)

    assert loop.rung == [10]


def test_J7_a_timer_that_rings_late_is_set_again_for_the_difference() -> None:
    loop = FakeLoop()
    timer = timers(loop).after(10, loop.ring)
    loop.runs(4)
    loop.stands_still(13)
    loop.runs(0)

    assert loop.rung == []
    assert timer.left_s == 6

    loop.runs(30)

    assert loop.rung == [23]  # after ten seconds in which the arena ran


def test_J7_a_stall_before_the_timer_was_set_does_not_count() -> None:
    loop = FakeLoop()
    loop.stands_still(60)
    timers(loop).after(10, loop.ring)
    loop.runs(10)

    assert loop.rung == [70]


def test_a_timer_that_is_cancelled_never_rings_also_after_a_stall() -> None:
    loop = FakeLoop()
    timer = timers(loop).after(10, loop.ring)
    loop.stands_still(11)
    loop.runs(0)
    timer.cancel()
    loop.runs(60)

    assert loop.rung == []
