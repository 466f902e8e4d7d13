"""What the processes beside an arena answer, in this process: for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from arena.records.visibility import Viewer, ViewerKind
from arena.web.document_answers import DocumentAnswers
from arena.web.questions import AnalysisTask, PageAnswer, PersonalMatch, SideQuestion, is_analysis

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

    def reply(self, path: str, viewer: Viewer = PUBLIC, **query: str) -> PageAnswer:
        self.now += 10.0
        given = {name.rstrip("_"): value for name, value in query.items()}
        return self.answers.answer(SideQuestion(path=f"/api/{path}", query=given, viewer=viewer))

    def personal(self, path: str, match: PersonalMatch, viewer: Viewer = PUBLIC) -> PageAnswer:
        """A question about a match that the database does not have."""
        return self.answers.answer(
            SideQuestion(path=f"/api/{path}", viewer=viewer, personal_match=match)
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
        self._done: dict[bytes, bytes] = {}

    def analysed(self, path: str, viewer: Viewer = PUBLIC, **query: str) -> PageAnswer:
        """As `reply`; of an analysis, the state that ends it."""
        reply = self.reply(path, viewer, **query)
        if not is_analysis(f"/api/{path}") or reply.status != 200:
            return reply
        if reply.body not in self._done:
            task = msgspec.json.decode(reply.body, type=AnalysisTask)
            assert not task.refused
            self._done[reply.body] = self.answers.answer(SideQuestion(task=task)).body
        return PageAnswer(200, self._done[reply.body])

    def analysis(self, path: str, viewer: Viewer = PUBLIC, **query: str) -> Any:
        """The state that ends an analysis."""
        reply = self.analysed(path, viewer, **query)
        assert reply.status == 200, reply.body
        return json.loads(reply.body, parse_constant=_no_number)

    def done(self, question: SideQuestion) -> Any:
        """As `analysis`, of a question that is made by hand."""
        return json.loads(self.answers.answer(question).body, parse_constant=_no_number)


def _no_number(text: str) -> None:
    raise AssertionError(f"{text} is no JSON")
