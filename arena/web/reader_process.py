"""The process that reads the database for the page: questions in, documents out, one at a time.

Run as `python -m arena.web.reader_process`; `arena/web/answering_process.py` says how it is asked.
Each line is a `ReaderQuestion`. It runs at a lower priority than the matches.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Never

import msgspec

from arena.server.reply import pack
from arena.web.answering_process import Answers, log, serve
from arena.web.reader_answers import DocumentAnswers
from arena.web.reader_questions import ReaderQuestion

__all__ = ["main"]

_NICENESS = 10
_EFFORT = 6  # of 9: 256 KB of a match take 3 ms, and 9 saves hardly more


def main() -> Never:
    """Answer questions until the input ends."""
    with contextlib.suppress(OSError, AttributeError):
        os.nice(_NICENESS)
    serve(_opened)


def _opened(where: str, answers: Answers) -> Callable[[bytes], None]:
    documents = DocumentAnswers(where, log)

    def answer(line: bytes) -> None:
        question = msgspec.json.decode(line, type=ReaderQuestion)
        reply = documents.answer(question)
        # An error repeats the request, so its length must not tell what else it contains (BREACH).
        packs = question.packs and reply.status == 200
        packed = pack(reply.body, _EFFORT) if packs else None
        answers.send(question.id, reply.status, reply.body, packed)

    return answer


if __name__ == "__main__":
    main()
