"""The process that reads the database for the page: questions in, documents out, one at a time.

Run as `python -m arena.web.reader_process`. The first line of its input names the database: its
address may contain a password, and other users can read command lines. Each further line is a
`ReaderQuestion`. An answer is a `Header` as a line of JSON, followed by the bytes of a document.
The process ends with its input, so also when the arena is killed, whatever it is doing then. It
ignores Ctrl-C, which is meant for the arena, and runs at a lower priority than the matches.
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
    """The first line of the input: a file, or `postgresql+psycopg://…` with its password."""

    db: str


class Header(msgspec.Struct, frozen=True):
    """What comes before a document: the question's id, a status of HTTP, the document's length."""

    id: int
    status: int
    etag: str
    bytes: int
    is_packed: bool


def main() -> Never:
    """Answer questions until the input ends."""
    for ignored in ("SIGINT", "SIGHUP"):
        if hasattr(signal, ignored):
            signal.signal(getattr(signal, ignored), signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        os.nice(_NICENESS)
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # A stray `print` goes to the log and does not corrupt the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, lines), daemon=True).start()
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
        # An error repeats the request, so its length must not tell what else it contains (BREACH).
        packs = question.packs and reply.status == 200
        packed = pack(reply.body, _EFFORT) if packs else None
        body = reply.body if packed is None else packed
        header = Header(question.id, reply.status, reply.etag, len(body), packed is not None)
        out.write(msgspec.json.encode(header) + b"\n" + body)
        out.flush()


def _listen(source: BinaryIO, lines: queue.SimpleQueue[bytes]) -> None:
    """Put every line into the queue; end the process with the input, even while it reads."""
    for line in source:
        lines.put(line)
    os._exit(0)


def _log(line: str) -> None:
    print(one_line(line, _LONGEST), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
