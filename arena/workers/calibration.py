"""How fast a core of this machine is, so that matches can be kept to machines of one speed."""

from __future__ import annotations

import statistics
import time

__all__ = ["calibrations_per_s", "speed"]

_ROUNDS = 5
_STEPS = 200_000  # about 10 ms


def calibrations_per_s() -> float:
    """How often a fixed piece of work in pure Python fits into a second of CPU time."""
    began = time.thread_time()
    value = 1
    for step in range(_STEPS):
        value = (value * 1_103_515_245 + step) & 0x7FFF_FFFF
    return 1 / max(time.thread_time() - began, 1e-9)


def speed() -> float:
    """The median of five calibrations; call it while nothing else is done here."""
    return statistics.median(calibrations_per_s() for _ in range(_ROUNDS))
