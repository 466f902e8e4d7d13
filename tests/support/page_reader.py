"""The reader process's documents, in this process: for tests of documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from arena.records.visibility import Viewer, ViewerKind
from arena.web.play.recent import PersonalMatch
from arena.web.reader_answers import DocumentAnswers
from arena.web.reader_questions import ReaderQuestion, ReaderReply

__all__ = ["INSTRUCTOR", "PUBLIC", "InProcessReader", "owner"]

PUBLIC = Viewer()
INSTRUCTOR = Viewer(ViewerKind.INSTRUCTOR, "eva")


def owner(name: str) -> Viewer:
    """A viewer on the roster."""
    return Viewer(ViewerKind.OWNER, name)


class InProcessReader:
    """The documents of a database; ten seconds pass between questions, so news are seen."""

    def __init__(self, where: str | Path) -> None:
        self.now = 100.0
        self.log: list[str] = []
        log = self.log
        self.answers = DocumentAnswers(str(where), log.append, lambda: self.now)

    def reply(self, path: str, viewer: Viewer = PUBLIC, **query: str) -> ReaderReply:
        self.now += 10.0
        given = {name.rstrip("_"): value for name, value in query.items()}
        return self.answers.answer(
            ReaderQuestion(id=1, path=f"/api/{path}", query=given, viewer=viewer)
        )

    def personal(self, path: str, match: PersonalMatch, viewer: Viewer = PUBLIC) -> ReaderReply:
        """A question about a match that the database does not have."""
        return self.answers.answer(
            ReaderQuestion(id=1, path=f"/api/{path}", viewer=viewer, personal_match=match)
        )

    def close(self) -> None:
        """Close the connections, before a server stops."""
        self.answers.close()

    def get(self, path: str, viewer: Viewer = PUBLIC, **query: str) -> Any:
        reply = self.reply(path, viewer, **query)
        assert reply.status == 200, reply.body
        return msgspec.json.decode(reply.body)

    def refused(self, path: str, viewer: Viewer = PUBLIC, **query: str) -> Any:
        """The status and the line of an error."""
        reply = self.reply(path, viewer, **query)
        assert reply.status >= 400, reply.body
        line = msgspec.json.decode(reply.body)["error"]
        assert "\n" not in line
        return reply.status, line
