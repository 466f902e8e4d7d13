"""What the reader process answers, and the one that analyses, in this process: for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from arena.records.visibility import Viewer, ViewerKind
from arena.web.analysis_answers import AnalysisAnswers
from arena.web.analysis_tasks import AnalysisQuestion, AnalysisTask, is_analysis
from arena.web.play.recent import PersonalMatch
from arena.web.reader_answers import DocumentAnswers
from arena.web.reader_questions import ReaderQuestion, ReaderReply

__all__ = ["INSTRUCTOR", "PUBLIC", "AnalysisReader", "InProcessReader", "owner"]

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


class AnalysisReader(InProcessReader):
    """Also does at once what is analysed, and what it has done once it knows."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self._analyses = AnalysisAnswers(str(file), self.log.append)
        self._done: dict[bytes, bytes] = {}

    def analysed(self, path: str, viewer: Viewer = PUBLIC, **query: str) -> ReaderReply:
        """As `reply`; of an analysis, the state that ends it."""
        reply = self.reply(path, viewer, **query)
        if not is_analysis(f"/api/{path}") or reply.status != 200:
            return reply
        if reply.body not in self._done:
            task = msgspec.json.decode(reply.body, type=AnalysisTask)
            assert not task.refused
            answer = self._analyses.answer(AnalysisQuestion(id=1, task=task))
            self._done[reply.body] = msgspec.json.encode(answer)
        return ReaderReply(200, self._done[reply.body])

    def analysis(self, path: str, viewer: Viewer = PUBLIC, **query: str) -> Any:
        """The state that ends an analysis."""
        reply = self.analysed(path, viewer, **query)
        assert reply.status == 200, reply.body
        return json.loads(reply.body, parse_constant=_no_number)

    def done(self, question: AnalysisQuestion) -> Any:
        """As `analysis`, of a question that is made by hand."""
        body = msgspec.json.encode(self._analyses.answer(question))
        return json.loads(body, parse_constant=_no_number)


def _no_number(text: str) -> None:
    raise AssertionError(f"{text} is no JSON")
