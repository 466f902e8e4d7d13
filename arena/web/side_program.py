"""The program of the processes beside the arena: questions in, documents out, one at a time.

Run as `python -m arena.web.side_program`, its priority is lower than that of the matches; with the
argument `idle` it is the lowest possible. `arena/web/side_process.py` starts and asks it.

The first line of its input is the address of the database. It is not an argument, as it may contain
a password and other users can read command lines. Each further line is a `SideQuestion`, or an
order: `PAUSE` or `RESUME`. An answer is a `Header` as a line of JSON, followed by the bytes of a
document. Progress reports with the status `PROCESSING` may come before it.

It ends as soon as its input ends, so also when the arena is killed. It ignores Ctrl-C, which is for
the arena. While it is paused it uses no CPU: the listening thread makes the main thread sleep,
wherever it is. SIGSTOP would not do, as a stopped process could not end with its input. A question
that takes too many minutes of CPU ends the program.
"""

from __future__ import annotations

import _thread
import contextlib
import hashlib
import math
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, BinaryIO, Never

import msgspec

from protocol.errors import in_words, one_line

if TYPE_CHECKING:
    from arena.web.document_answers import DocumentAnswers

__all__ = ["IDLE", "NICENESS", "PAUSE", "PROCESSING", "RESUME", "Header", "main"]

IDLE = "idle"
"""The argument of the process that uses only otherwise idle cores."""
PAUSE, RESUME = b"pause\n", b"resume\n"
PROCESSING = 102
"""The HTTP status of a progress report, which comes before the answer."""
NICENESS = "ARENA_ANALYSIS_NICE"
"""The environment variable that sets another niceness, for machines whose cores are never idle."""
_NICENESS, _NICENESS_IDLE = 10, 19
_LOOK_S = 0.05  # between two checks whether the pause is over
_NEWS_S = 0.2  # between two progress reports
_MOST_CPU_S = 300.0  # for one question; the slowest analyses take seconds a game
_EFFORT = 6  # of 9: 256 KB of a match take 3 ms, and 9 saves hardly more
_LONGEST = 500  # characters of a log line


class Header(msgspec.Struct, frozen=True):
    """The line before a document: the question's id, the HTTP status, and the length in `bytes`."""

    id: int
    status: int
    etag: str
    bytes: int
    is_packed: bool


class _Pause:
    """Makes the main thread sleep during a pause; orders come from another thread."""

    def __init__(self) -> None:
        self._is_on = False

    def order(self, line: bytes) -> None:
        self._is_on = line == PAUSE
        if self._is_on:
            _thread.interrupt_main()  # Python calls the handler before the next bytecode

    def sleep(self, signum: int, frame: FrameType | None) -> None:
        """Handle SIGINT: sleep during a pause. Otherwise it is Ctrl-C, which is ignored."""
        # Without a lock, as the handler may interrupt itself.
        while self._is_on:
            time.sleep(_LOOK_S)


def main() -> Never:
    """Answer questions until the input ends."""
    _lower_priority(is_idle=IDLE in sys.argv[1:])
    pause = _Pause()
    signal.signal(signal.SIGINT, pause.sleep)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Redirect stray prints to the log, so that they do not corrupt the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, lines, pause), daemon=True).start()
    try:
        # Imported after the listener has started, as this takes longer than many a question.
        from arena.web.document_answers import DocumentAnswers

        answers = DocumentAnswers(msgspec.json.decode(lines.get(), type=str), _log)
        while True:
            _answer(lines.get(), answers, out)
    except Exception as error:  # such as an input line that is not a question
        _log(in_words(error))
    os._exit(1)


def _lower_priority(*, is_idle: bool) -> None:
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    niceness = os.environ.get(NICENESS, "") if is_idle else str(_NICENESS)
    with contextlib.suppress(OSError, AttributeError):
        os.nice(int(niceness) if niceness.isdecimal() else _NICENESS_IDLE)
    if niceness:
        return
    with contextlib.suppress(OSError, AttributeError):  # only Linux has it
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    # With autogroup scheduling, the settings above count only within the process's own session.
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w", encoding="ascii") as group:
        group.write(str(_NICENESS_IDLE))


def _listen(source: BinaryIO, lines: queue.SimpleQueue[bytes], pause: _Pause) -> None:
    """Queue every question; end the process when the input ends, even while it computes."""
    for line in source:
        if line in (PAUSE, RESUME):
            pause.order(line)
        else:
            lines.put(line)
    os._exit(0)


def _answer(line: bytes, answers: DocumentAnswers, out: BinaryIO) -> None:
    from arena.server.reply import pack
    from arena.web.questions import SideQuestion

    question = msgspec.json.decode(line, type=SideQuestion)
    told_at = -math.inf

    def tell(done: int, of: int) -> None:
        nonlocal told_at
        if (now := time.monotonic()) - told_at >= _NEWS_S:
            told_at = now
            _send(out, question.id, PROCESSING, msgspec.json.encode((done, of)))

    with _limited_cpu():
        answer = answers.answer(question, tell)
    # Errors are not compressed: they repeat the request, so the size could leak secrets (BREACH).
    packs = question.packs and answer.status == 200
    _send(
        out, question.id, answer.status, answer.body, pack(answer.body, _EFFORT) if packs else None
    )


def _send(
    out: BinaryIO, question: int, status: int, body: bytes, packed: bytes | None = None
) -> None:
    """Write an answer; `packed` is the compressed form of its body, if there is one."""
    sent = body if packed is None else packed
    etag = hashlib.blake2b(body, digest_size=12).hexdigest()
    header = Header(question, status, etag, len(sent), packed is not None)
    out.write(msgspec.json.encode(header) + b"\n" + sent)
    out.flush()


@contextlib.contextmanager
def _limited_cpu() -> Iterator[None]:
    """End the process by SIGPROF if the block takes too much CPU time. No effect on Windows."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, _MOST_CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _log(line: str) -> None:
    """Write a line to stderr, which the arena logs."""
    print(one_line(line, _LONGEST), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
