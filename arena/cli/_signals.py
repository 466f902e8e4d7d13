"""Ends a command at SIGTERM as at Ctrl-C, and `serve` also at SIGHUP.

The command stops the processes that it has started, and keeps what it has stored. While it ends,
further signals are ignored, including a second Ctrl-C.
"""

from __future__ import annotations

import asyncio
import contextlib
import operator
import os
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

from protocol.watchdog import Watchdog

__all__ = ["Stop", "ending_at_ctrl_c", "stopping", "stops_at_sigterm"]

_ENDING = ("SIGTERM", "SIGHUP")  # Windows has no SIGHUP


def stops_at_sigterm() -> None:
    """Cancel the current task at SIGTERM or Ctrl-C, and ignore further signals while it ends."""
    task = asyncio.current_task()
    assert task is not None, "a coroutine runs in a task"
    stop = Stop()
    stop.cancels(task)
    _handle_until_done(task, signal.SIGTERM, stop.heard)


class Stop:
    """Cancels the command's task at the first SIGTERM or SIGHUP; further signals are ignored.

    It raises no exception, so code that runs outside the event loop is not interrupted. `name` is
    the name of the signal, or None before one has come.
    """

    def __init__(self) -> None:
        self.name: str | None = None
        self._task: asyncio.Task[object] | None = None

    def cancels(self, task: asyncio.Task[object]) -> None:
        """Cancel this task at the signal, or now if the signal has already come.

        asyncio answers a second Ctrl-C with a `KeyboardInterrupt` in the code that is running,
        which may be stopping the bots. So only the first one reaches asyncio.
        """
        self._task = task
        asyncio_handler = signal.getsignal(signal.SIGINT)
        if callable(asyncio_handler):  # a command in the background ignores SIGINT

            def on_interrupt(number: int, frame: FrameType | None) -> None:
                # Test and set in one step, as another signal may interrupt this function.
                if signal.signal(signal.SIGINT, operator.is_) is on_interrupt:
                    asyncio_handler(number, frame)

            _handle_until_done(task, signal.SIGINT, on_interrupt)
        if self.name is not None:
            task.cancel()

    def heard(self, number: int, _frame: FrameType | None = None) -> None:
        """Handle a signal; Python calls this in the main thread, between any two bytecodes."""
        # Ignore further signals, and Ctrl-C, which would cancel the task while it ends. Not by
        # SIG_IGN: Python writes a traceback about a signal that came just before. Nor by a Python
        # function, which further signals could interrupt again and again.
        for other in (*_named(_ENDING), signal.SIGINT):
            signal.signal(other, operator.is_)
        if self.name is not None:
            return
        self.name = signal.Signals(number).name
        if self.name == "SIGHUP":
            _leave_terminal()
        task = self._task
        # A task that Ctrl-C has cancelled is already ending.
        if task is not None and not task.done() and not task.cancelling():
            task.get_loop().call_soon_threadsafe(task.cancel)


@contextlib.contextmanager
def ending_at_ctrl_c(watchdog: Watchdog) -> Iterator[None]:
    """During the block, let Ctrl-C end the command at once if a bot's code does not return."""
    before = signal.getsignal(signal.SIGINT)

    def on_signal(number: int, frame: FrameType | None) -> None:
        watchdog.end_if_stuck(130)
        if callable(before):
            before(number, frame)

    is_ours = callable(before) and threading.current_thread() is threading.main_thread()
    if is_ours:
        signal.signal(signal.SIGINT, on_signal)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def stopping() -> Iterator[Stop]:
    """Handle SIGTERM and SIGHUP while the block runs."""
    stop = Stop()
    before = {}
    if threading.current_thread() is threading.main_thread():
        before[signal.SIGINT] = signal.getsignal(signal.SIGINT)
        for number in _named(_ENDING):
            if signal.getsignal(number) == signal.SIG_DFL:  # keep SIGHUP ignored under `nohup`
                before[number] = signal.signal(number, stop.heard)
    try:
        yield stop
    finally:
        # After a signal only the interpreter's shutdown is left, which no signal may interrupt.
        has_come = stop.name is not None or signal.getsignal(signal.SIGINT) is operator.is_
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if has_come else handler)


def _handle_until_done(
    task: asyncio.Task[Any], number: signal.Signals, handler: Callable[[int, FrameType | None], Any]
) -> None:
    """Install a signal handler, and restore the former one when the task is done.

    The former handler is not restored if this one has replaced itself, which means the signal came.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    before = signal.signal(number, handler)

    def restore(_: object) -> None:
        if signal.getsignal(number) == handler:
            signal.signal(number, before)

    task.add_done_callback(restore)


def _named(names: Iterable[str]) -> list[signal.Signals]:
    return [number for number in signal.Signals if number.name in names]


def _leave_terminal() -> None:
    """Redirect output to a closed terminal, where every write would fail, to the null device."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # closed, or not a file
            fd = stream.fileno()
            if stat.S_ISCHR(os.fstat(fd).st_mode) and not os.isatty(fd):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, fd)
                os.close(nowhere)
