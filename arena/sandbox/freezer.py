"""Stops the processes of a bot that computes out of turn, between its questions.

A control group is frozen as a whole. Without one each process that is known gets SIGSTOP, and what
it has started meanwhile is found by the sampler's next look.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path

__all__ = ["Freezer"]


class Freezer:
    """The processes of one bot: frozen, or let go. It is used in the event loop and a thread.

    `group` is the folder of its control group, if there is one.
    """

    def __init__(self, group: Path | None) -> None:
        self._group = group
        self._lock = threading.Lock()
        self._frozen: set[int] = set()
        self._since: float | None = None

    def freeze(self, pids: Collection[int], is_idle: Callable[[], bool] = lambda: True) -> None:
        """Stop these processes until the bot is let go, unless it has been asked just now."""
        with self._lock:
            if is_idle():
                self._since = self._since or time.monotonic()
                self._stop(pids)

    @property
    def frozen_s(self) -> float:
        """For how long it has been stopped."""
        since = self._since
        return 0.0 if since is None else time.monotonic() - since

    def let_go(self) -> None:
        """Have all that was stopped go on."""
        with self._lock:
            self._since = None
            if self._group is not None:
                self._write("0")
            for pid in self._frozen:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            self._frozen.clear()

    def _stop(self, pids: Collection[int]) -> None:
        if self._group is not None:
            self._write("1")
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                self._frozen.add(pid)

    def _write(self, state: str) -> None:
        assert self._group is not None, "it has one"
        with contextlib.suppress(OSError):  # its last process has ended, and it is removed
            (self._group / "cgroup.freeze").write_text(state)
