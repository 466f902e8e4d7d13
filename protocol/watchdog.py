"""Watches a bot's code that does not return: an endless loop, a sleep, an `input()`.

The code runs in the main thread, which meanwhile hears neither the arena nor Ctrl-C. So another
thread looks there. It says so after 3 s, and ends the program when the arena has gone.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType, TracebackType

__all__ = ["Watchdog"]

LONG_S = 3.0
_LOOK_S = 0.25


class Watchdog:
    """Looks at the main thread while a `with` block runs.

    Args:
        files: of the bots; only what is called in them counts.
        say: called with a line for people, in the other thread.
        has_gone: whether whoever waits for an answer has gone; then the program ends with status 1.

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

    def end_if_stuck(self, status: int) -> None:
        """End the program with this status if the code does not let it end, as a signal asks."""
        if self.stuck:
            self._say(f"ended, as {self.stuck}")
            os._exit(status)

    def _run(self) -> None:
        call: FrameType | None = None
        since = 0.0
        while not self._is_over.wait(_LOOK_S):
            now, inside = time.monotonic(), self._calls()
            if not inside or inside[-1] is not call:
                call, since, self.stuck = (inside[-1] if inside else None), now, ""
            elif now - since >= LONG_S:
                file = os.path.basename(call.f_code.co_filename)
                method, line = call.f_code.co_name, inside[0].f_lineno
                was_told = bool(self.stuck)
                self.stuck = f"{file} has been in {method}() for {now - since:.0f} s (line {line})"
                if not was_told:
                    self._say(self.stuck)
                if self._has_gone():
                    self._say(f"the arena has closed the connection; {self.stuck}")
                    os._exit(1)

    def _calls(self) -> list[FrameType]:
        """The calls of the bots' code that the main thread is in, the innermost first."""
        frame = sys._current_frames().get(self._main)
        inside = []
        while frame is not None:
            if frame.f_code.co_filename in self._files:
                inside.append(frame)
            frame = frame.f_back
        return inside
