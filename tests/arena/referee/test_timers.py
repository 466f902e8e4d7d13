"""Timers of an arena that stands still, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from arena.referee.timers import Timer, Timers
from tests.support.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time(limit_s=300)


class Alarm:
    """Timers of ten seconds, and when they have rung."""

    def __init__(self) -> None:
        self._loop = virtual_loop()
        self._began_s = self._loop.time()
        self._late_s = 0.0
        self._timers = Timers(self._loop, lambda now: self._late_s)
        self.rung: list[float] = []

    def set(self) -> Timer:
        return self._timers.after(10, self._ring)

    def stands_still(self, seconds: float) -> None:
        self._loop.stands_still(seconds)
        self._late_s += seconds

    def _ring(self) -> None:
        self.rung.append(self._loop.time() - self._began_s)


async def test_a_timer_rings_when_it_is_due() -> None:
    alarm = Alarm()
    alarm.set()
    await asyncio.sleep(30)

    assert alarm.rung == [10]


async def test_J7_a_timer_that_rings_late_is_set_again_for_the_difference() -> None:
    alarm = Alarm()
    timer = alarm.set()
    await asyncio.sleep(4)
    alarm.stands_still(13)
    await asyncio.sleep(1)

    assert (alarm.rung, timer.left_s) == ([], 5)

    await asyncio.sleep(30)

    assert alarm.rung == [23]  # after ten seconds in which the arena ran


async def test_J7_a_stall_before_the_timer_was_set_does_not_count() -> None:
    alarm = Alarm()
    alarm.stands_still(60)
    alarm.set()
    await asyncio.sleep(30)

    assert alarm.rung == [70]


async def test_a_timer_that_is_cancelled_never_rings_also_after_a_stall() -> None:
    alarm = Alarm()
    timer = alarm.set()
    alarm.stands_still(11)
    await asyncio.sleep(1)
    timer.cancel()
    await asyncio.sleep(60)

    assert alarm.rung == []
