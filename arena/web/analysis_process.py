"""The process that analyses for the page: one task at a time, at the lowest priority.

Run as `python -m arena.web.analysis_process`; `arena/web/answering_process.py` says how it is
asked. Each line is an `AnalysisQuestion`, or an order: `PAUSE`, or `RESUME`. While it is paused it
uses no processor: the thread that listens has the main thread sleep, wherever it is. It is not
stopped by a signal of the system, so that it ends with its input then, too, if the arena is killed.

An analysis of too many minutes of CPU ends the process.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Never

from arena.web.answering_process import PROCESSING, Answers, log, serve

__all__ = ["NICENESS", "PAUSE", "RESUME", "main"]

PAUSE, RESUME = b"pause\n", b"resume\n"
NICENESS = "ARENA_ANALYSIS_NICE"
"""The variable of the environment with another niceness, for where cores are never idle."""
_NICENESS = 19
_LOOK_S = 0.05  # between two looks at whether the pause is over
_NEWS_S = 0.2  # between two lines on how far it is
_MOST_CPU_S = 300.0  # of one task; the slowest take seconds a game
_EFFORT = 6  # as the reader's


class _Pause:
    """Has the main thread sleep until it is over; orders come from another thread."""

    def __init__(self) -> None:
        self._is_on = False

    def order(self, line: bytes) -> bool:
        """Whether a line is an order, which is then obeyed."""
        if line not in (PAUSE, RESUME):
            return False
        self._is_on = line == PAUSE
        if self._is_on:
            _thread.interrupt_main()  # Python calls the handler before the next step of the code
        return True

    def sleep(self, signum: int, frame: FrameType | None) -> None:
        """Handle SIGINT, the order's or that of Ctrl-C, which is for the arena."""
        # No lock: the handler may interrupt itself.
        while self._is_on:
            time.sleep(_LOOK_S)


def main() -> Never:
    """Do tasks until the input ends."""
    _lower_priority()  # first, as what is imported next takes longer than many a task
    pause = _Pause()
    serve(_opened, pause.order, pause.sleep)


def _lower_priority() -> None:
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    niceness = os.environ.get(NICENESS, "")
    with contextlib.suppress(OSError, AttributeError):
        os.nice(int(niceness) if niceness.isdecimal() else _NICENESS)
    if niceness:
        return
    with contextlib.suppress(OSError, AttributeError):  # only Linux has it
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    # Where sessions are scheduled as groups, the rest counts only within the process's own session.
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w", encoding="ascii") as group:
        group.write(str(_NICENESS))


def _opened(where: str, answers: Answers) -> Callable[[bytes], None]:
    import msgspec

    from arena.server.reply import pack
    from arena.web.analysis_answers import AnalysisAnswers
    from arena.web.analysis_tasks import AnalysisQuestion

    analyses = AnalysisAnswers(where, log)

    def answer(line: bytes) -> None:
        question = msgspec.json.decode(line, type=AnalysisQuestion)
        told_at = time.monotonic()

        def tell(done: int, of: int) -> None:
            nonlocal told_at
            if (now := time.monotonic()) - told_at >= _NEWS_S:
                told_at = now
                answers.send(question.id, PROCESSING, msgspec.json.encode((done, of)))

        answers.send(question.id, PROCESSING, b"[0,0]")  # so a death now is the task's
        with _limited_cpu():
            body = msgspec.json.encode(analyses.answer(question, tell))
        answers.send(question.id, 200, body, pack(body, _EFFORT))

    return answer


@contextlib.contextmanager
def _limited_cpu() -> Iterator[None]:
    """End the process by SIGPROF if it takes more CPU; without an effect on Windows."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, _MOST_CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


if __name__ == "__main__":
    main()
