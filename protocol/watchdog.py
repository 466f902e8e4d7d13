"""Watches for bot code that does not return: an endless loop, a sleep, an `input()`.

The code runs in the main thread, which meanwhile handles neither the arena's messages nor signals.
So another thread watches it. After 3 s it reports where the code is, and ends the program if a
signal or the arena has asked for that.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType

from protocol.bot_folder import PREFIX

__all__ = ["Watchdog"]

LONG_S = 3.0
LOOK_S = 0.25


class Watchdog:
    """Watches the main thread during a `with` block.

    Args:
        files: the files of house bots. Modules loaded by `BotFolder` are always watched.
        say: called with a line for people, in the other thread.
        has_gone: tells if the arena has ended the session; the program then ends with status 1.

    Attributes:
        stuck: where the code has been for 3 s and longer, as `bot.py has been in bet() for 3 s
            (line 5)`; empty while it returns.
    """

    def __init__(
        self,
        files: Iterable[str | Path],
        say: Callable[[str], None],
        has_gone: Callable[[], bool] = lambda: False,
    ) -> None:
        self.stuck = ""
        self._files = {os.path.abspath(file) for file in files}
        self._say = say
        self._has_gone = has_gone
        self._status: int | None = None  # the exit status requested by a signal
        self._main = threading.main_thread().ident or 0
        self._is_over = threading.Event()

    def __enter__(self) -> Watchdog:
        threading.Thread(target=self._run, name="watchdog", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self.stuck = ""

    def end_if_stuck(self, status: int | None) -> None:
        """End the program with this status if the code has been stuck for 3 s, now or later.

        None cancels the request, when the code has returned.
        """
        self._status = status
        if self.stuck and status is not None:
            self._end(f"ended, as {self.stuck}", status)

    def _run(self) -> None:
        call: FrameType | None = None
        since = 0.0
        while not self._is_over.wait(LOOK_S):
            now, inside = time.monotonic(), self._calls()
            if call is None or not inside or inside[-1] is not call:
                call, since, self.stuck = (inside[-1] if inside else None), now, ""
            elif now - since >= LONG_S:
                written = (at for at in inside if not at.f_code.co_filename.startswith("<"))
                self._is_stuck(next(written, call), now - since)

    def _is_stuck(self, at: FrameType, for_s: float) -> None:
        file, method = os.path.basename(at.f_code.co_filename), at.f_code.co_name
        was_told = bool(self.stuck)
        self.stuck = f"{file} has been in {method}() for {for_s:.0f} s (line {at.f_lineno})"
        with suppress(Exception):  # standard error may be closed
            if not was_told:
                self._say(self.stuck)
            if self._status is None and self._has_gone():
                self._end(f"the arena has closed the connection; {self.stuck}", 1)
        if self._status is not None:
            self._end(f"ended, as {self.stuck}", self._status)

    def _end(self, why: str, status: int) -> None:
        with suppress(Exception):
            self._say(why)
        os._exit(status)

    def _calls(self) -> list[FrameType]:
        """Return the main thread's current calls in bots' code, the innermost first.

        Empty while Python's debugger is in use.
        """
        frame = sys._current_frames().get(self._main)
        inside: list[FrameType] = []
        while frame is not None:
            module = str(frame.f_globals.get("__name__"))
            if module == "bdb":
                return []
            if module.startswith(PREFIX) or frame.f_code.co_filename in self._files:
                inside.append(frame)
            frame = frame.f_back
        return inside
