"""What can be asked of a process beside the arena, and what it answers; see `side_process.py`.

Most questions are for a document of the page. `SUMS` is for the luck of matches. A question with an
`AnalysisTask` asks for that analysis: documents say what can be analysed, and for whom (J8).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from arena.games.match import Record
from arena.records.visibility import Viewer
from arena.web.documents import AnalysisState, AnalysisStatus
from protocol.messages import Verdict

__all__ = [
    "SUMS",
    "AnalysisKind",
    "AnalysisTask",
    "PageAnswer",
    "PersonalMatch",
    "SideQuestion",
    "is_analysis",
]

SUMS = "sums"
"""The path of what the arena itself asks for, and no visitor can: theirs begin with `/`."""


class PersonalMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A match that a person has played; the name of the person is the first of `players`.

    `verdict` is on the offence that ended it, None if there was none. The match started when the
    seats were invited, and finished when the result was known; times are Unix seconds.
    """

    match: str
    players: tuple[str, ...]
    record: Record
    verdict: Verdict | None = None
    started_at: float
    finished_at: float


class AnalysisKind(StrEnum):
    """What is asked: the name of the document."""

    MISTAKES = "mistakes"
    STRENGTH = "strength"


class AnalysisTask(msgspec.Struct, frozen=True, kw_only=True):
    """One analysis; of equal tasks the results are equal.

    `id` is that of the match or the competition, `bot` the name of the bot. `seat` counts from 1,
    and is 0 for the strength of a bot, which is made from its `matches` up to the one with the
    number `last`. With `is_old` these are only those that everybody may see by now. `version` is
    that of the game's method, `revision` the competition's. `refused` is why it cannot be done.
    """

    kind: AnalysisKind
    id: str
    bot: str
    seat: int = 0
    version: int = 0
    revision: int = 0
    is_old: bool = False
    last: int = 0
    matches: int = 0
    refused: str = ""

    @property
    def subject(self) -> AnalysisTask:
        """The task whatever is played: what a result stands for a while for."""
        return msgspec.structs.replace(self, last=0, matches=0)

    def status(
        self, state: AnalysisState, text: str = "", *, place: int | None = None
    ) -> AnalysisStatus:
        """A status without a result."""
        is_mistakes = self.kind is AnalysisKind.MISTAKES
        return AnalysisStatus(
            state=state,
            place=place,
            text=text,
            mistakes=None if is_mistakes else msgspec.UNSET,
            strength=msgspec.UNSET if is_mistakes else None,
        )


class SideQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question; its `id` is that of its answer.

    `personal_match` is the match that it is about, if that is not in the database. With `packs`
    the document is compressed where that is worth it. The rest is ignored if there is a `task`.
    """

    id: int = 0
    path: str = ""
    query: dict[str, str] = {}
    viewer: Viewer = Viewer()
    personal_match: PersonalMatch | None = None
    packs: bool = False
    task: AnalysisTask | None = None


class PageAnswer(msgspec.Struct, frozen=True):
    """A status of HTTP, and a document or `{"error": …}`, compressed with gzip if `is_packed`.

    `etag` is the same for the same document, compressed or not; None where there is no document.
    """

    status: int
    body: bytes
    etag: str | None = None
    is_packed: bool = False


def is_analysis(path: str) -> bool:
    """Whether a path is that of an analysis."""
    words = path.split("/")
    return len(words) == 5 and words[4].removesuffix(".json") in set(AnalysisKind)
