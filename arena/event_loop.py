"""The event loop that an arena runs on: uvloop's if it is installed, as it takes less CPU; else asyncio's own.

uvloop's clock stands still within an iteration, and shows whole milliseconds. An arena charges bots by that clock and measures its own
lag with it, so here uvloop has the clock that asyncio has.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from importlib.util import find_spec

__all__ = ["ASYNCIO", "CHOICE", "UVLOOP", "chosen", "new_event_loop"]

ASYNCIO, UVLOOP = "asyncio", "uvloop"

CHOICE = "ARENA_EVENT_LOOP"
"""The environment variable that says `asyncio` where uvloop is installed and is not wanted."""


def chosen() -> str:
    """Which loop `new_event_loop` makes, `ASYNCIO` or `UVLOOP`."""
    is_wanted = os.environ.get(CHOICE) != ASYNCIO
    return UVLOOP if is_wanted and find_spec("uvloop") is not None else ASYNCIO


def new_event_loop() -> asyncio.AbstractEventLoop:
    """The loop for an arena's `asyncio.Runner`."""
    return asyncio.new_event_loop() if chosen() == ASYNCIO else _uvloop()


def _uvloop() -> asyncio.AbstractEventLoop:
    import uvloop

    class Loop(uvloop.Loop):
        """uvloop's, with a clock that goes on within an iteration; both are of the same origin."""

        time: Callable[[], float] = staticmethod(time.monotonic)

    return Loop()
