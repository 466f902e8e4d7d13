"""SIGTERM stops a command as Ctrl-C does: what it has started is stopped too, and what is over is kept."""

from __future__ import annotations

import asyncio
import contextlib
import signal

__all__ = ["stops_at_sigterm"]


def stops_at_sigterm() -> None:
    """From now on SIGTERM cancels the present task."""
    loop, me = asyncio.get_running_loop(), asyncio.current_task()
    assert me is not None, "we run in one"
    with contextlib.suppress(NotImplementedError):  # Windows has no such handlers
        loop.add_signal_handler(signal.SIGTERM, me.cancel)
