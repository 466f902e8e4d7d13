"""What the processes that read the database for the page have in common: lines in, documents out.

The first line of their input names the database: its address may contain a password, and other
users can read command lines. Each further line is a question. An answer is a `Header` as a line of
JSON, followed by the bytes of a document. Before it may come news of how far it is, with the status
`PROCESSING`. Such a process ends with its input, so also when the arena is killed, whatever it is
doing then. It ignores Ctrl-C, which is meant for the arena.
"""

from __future__ import annotations

import hashlib
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import BinaryIO, Never

import msgspec

from protocol.errors import in_words, one_line

__all__ = ["PROCESSING", "Answers", "Database", "Header", "etag_of", "log", "serve"]

PROCESSING = 102
"""The status, as HTTP has it, of what comes before the answer to a question."""
_LONGEST = 500  # letters of a line for the log


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


class Answers:
    """Writes headers and documents to where the arena reads them."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def send(self, question: int, status: int, body: bytes, packed: bytes | None = None) -> None:
        """Write an answer, compressed if there is a `packed` form of its body."""
        sent = body if packed is None else packed
        header = Header(question, status, etag_of(body), len(sent), packed is not None)
        self._out.write(msgspec.json.encode(header) + b"\n" + sent)
        self._out.flush()


def etag_of(body: bytes) -> str:
    """The tag of a document: that of its bytes before they are compressed."""
    return hashlib.blake2b(body, digest_size=12).hexdigest()


def serve(
    opened: Callable[[str, Answers], Callable[[bytes], None]],
    is_order: Callable[[bytes], bool] = lambda line: False,
    on_interrupt: Callable[[int, FrameType | None], None] = lambda signum, frame: None,
) -> Never:
    """Answer questions until the input ends.

    `opened` gets the address of the database, and returns what answers a question. `is_order` is
    called in another thread with each line as it comes: whether it was no question, but an order.
    """
    signal.signal(signal.SIGINT, on_interrupt)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    answers = Answers(os.fdopen(os.dup(sys.stdout.fileno()), "wb"))
    # A stray `print` goes to the log and does not corrupt the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, lines, is_order), daemon=True).start()
    try:
        answer = opened(msgspec.json.decode(lines.get(), type=Database).db, answers)
        while True:
            answer(lines.get())
    except Exception as error:  # such as a line that is no question
        log(in_words(error))
    os._exit(1)


def _listen(
    source: BinaryIO, lines: queue.SimpleQueue[bytes], is_order: Callable[[bytes], bool]
) -> None:
    """Put every line into the queue; end the process with the input, even while it computes."""
    for line in source:
        if not is_order(line):
            lines.put(line)
    os._exit(0)


def log(line: str) -> None:
    """Have the arena log a line."""
    print(one_line(line, _LONGEST), file=sys.stderr, flush=True)
