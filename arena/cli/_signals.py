"""How signals end a command: SIGTERM stops most as Ctrl-C does; `arena serve` ends in order at SIGTERM and SIGHUP.

Whatever a command has started is stopped too, and what is over is kept.
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
from collections.abc import Iterable, Iterator
from types import FrameType

__all__ = ["Stop", "stopping", "stops_at_sigterm"]

_ENDING = ("SIGTERM", "SIGHUP")  # Windows has no SIGHUP


def stops_at_sigterm() -> None:
    """From now on SIGTERM cancels the present task."""
    loop, me = asyncio.get_running_loop(), asyncio.current_task()
    assert me is not None, "we run in one"
    with contextlib.suppress(NotImplementedError):  # Windows has no such handlers
        loop.add_signal_handler(signal.SIGTERM, me.cancel)


class Stop:
    """Remembers the first SIGTERM or SIGHUP, and cancels the command's task at it; later ones are ignored.

    No exception is raised in the middle of other code: what begins or ends outside the event loop is done in whole.

    Attributes:
        name: the signal's, such as `SIGTERM`; None before one has come.
    """

    def __init__(self) -> None:
        self.name: str | None = None
        self._task: asyncio.Task[object] | None = None

    def cancels(self, task: asyncio.Task[object]) -> None:
        """Cancel this task at the signal, or now if it has come already."""
        self._task = task
        if self.name is not None:
            task.cancel()

    def heard(self, number: int, _frame: FrameType | None = None) -> None:
        """A signal has come: Python calls this between two steps of the main thread, whatever that is doing."""
        # Later ones are ignored; Ctrl-C, too, would cancel the task in the middle of its ending. Not by SIG_IGN: Python writes
        # a traceback about a signal that came just before. Nor by a function of ours, which they could interrupt again and again.
        for other in (*_named(_ENDING), signal.SIGINT):
            signal.signal(other, operator.is_)
        if self.name is not None:
            return
        self.name = signal.Signals(number).name
        if self.name == "SIGHUP":
            _leave_terminal()
        task = self._task
        # After Ctrl-C it is ending already.
        if task is not None and not task.done() and not task.cancelling():
            task.get_loop().call_soon_threadsafe(task.cancel)


@contextlib.contextmanager
def stopping() -> Iterator[Stop]:
    """Inside, SIGTERM and SIGHUP are heard; one that is ignored from the start, as by `nohup`, stays ignored."""
    stop = Stop()
    before = {}
    if threading.current_thread() is threading.main_thread():
        before[signal.SIGINT] = signal.getsignal(signal.SIGINT)
        for number in _named(_ENDING):
            if signal.getsignal(number) == signal.SIG_DFL:
                before[number] = signal.signal(number, stop.heard)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            # What is left to do then is the interpreter's own ending.
            signal.signal(number, handler if stop.name is None else signal.SIG_IGN)


def _named(names: Iterable[str]) -> list[signal.Signals]:
    """Those of these signals that this system has."""
    return [one for one in signal.Signals if one.name in names]


def _leave_terminal() -> None:
    """Write nowhere what would be written to a terminal that is closed, where every write fails."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # closed, or not a file
            fd = stream.fileno()
            if stat.S_ISCHR(os.fstat(fd).st_mode) and not os.isatty(fd):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, fd)
                os.close(nowhere)
