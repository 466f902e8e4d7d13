"""The process that reads the database for the page: questions in, documents out, one after another.

Run as `python -m arena.web.reader_process`. The first line of its input says which database, as addresses may have passwords and command lines can
be read by others; each further line is a `ReaderQuestion`. An answer is a line of JSON, `Header`, and then so many bytes of a document. It ends
with its input, so also when the arena is killed, whatever it is doing then. Ctrl-C is for the arena. It gives way to whoever plays.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
from typing import BinaryIO, Never

import msgspec

from arena.server.reply import pack
from arena.web.reader_answers import DocumentAnswers
from arena.web.reader_questions import ReaderQuestion
from protocol.errors import in_words, one_line

__all__ = ["Database", "Header", "main"]

_NICENESS = 10
_LONGEST = 500  # letters of a line for the log
_EFFORT = 6  # of 9: 256 KB of a match take 3 ms, and 9 saves hardly more


class Database(msgspec.Struct, frozen=True):
    """The first line: a file, or `postgresql+psycopg://…` with its password."""

    db: str


class Header(msgspec.Struct, frozen=True):
    """What comes before a document: whose answer it is, its status, its tag, how long it is, and whether it is packed."""

    id: int
    status: int
    etag: str
    bytes: int
    is_packed: bool


def main() -> Never:
    """Answer until the input ends."""
    for ignored in ("SIGINT", "SIGHUP"):
        if hasattr(signal, ignored):
            signal.signal(getattr(signal, ignored), signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        os.nice(_NICENESS)
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whoever prints disturbs nothing
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    listening = (sys.stdin.buffer, lines)
    threading.Thread(target=_listen, args=listening, daemon=True).start()
    try:
        _answer(lines, out)
    except Exception as error:  # such as a line that is no question
        _log(in_words(error))
    os._exit(1)


def _answer(lines: queue.SimpleQueue[bytes], out: BinaryIO) -> Never:
    database = msgspec.json.decode(lines.get(), type=Database)
    answers = DocumentAnswers(database.db, _log)
    while True:
        question = msgspec.json.decode(lines.get(), type=ReaderQuestion)
        reply = answers.answer(question)
        # What is no document repeats what was asked: it is never packed.
        packs = question.packs and reply.status == 200
        packed = pack(reply.body, _EFFORT) if packs else None
        body = reply.body if packed is None else packed
        header = Header(*(question.id, reply.status, reply.etag, len(body), packed is not None))
        out.write(msgspec.json.encode(header) + b"\n" + body)
        out.flush()


def _listen(source: BinaryIO, lines: queue.SimpleQueue[bytes]) -> None:
    """Put every line into the queue; at the end of the input all ends, also what would take long."""
    for line in source:
        lines.put(line)
    os._exit(0)


def _log(line: str) -> None:
    print(one_line(line, _LONGEST), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
