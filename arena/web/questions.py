"""The questions to a process beside the arena, and its answers; see `side_process.py`.

Most questions request a document of the page. `SUMS` requests the luck of matches. A question with
an `AnalysisTask` requests that analysis; the task comes from an earlier answer, which has checked
who may see it (J8).
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
"""A path for the arena's own use; visitors cannot request it, as their paths begin with `/`."""


class PersonalMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A match that a person has played; the person's name is the first of `players`.

    `verdict` is about the offence that ended it, or None. The match started when the seats were
    invited, and finished when the result was known; times are Unix seconds.
    """

    match: str
    players: tuple[str, ...]
    record: Record
    verdict: Verdict | None = None
    started_at: float
    finished_at: float


class AnalysisKind(StrEnum):
    """The kind of an analysis, which is the name of its document."""

    MISTAKES = "mistakes"
    STRENGTH = "strength"


class AnalysisTask(msgspec.Struct, frozen=True, kw_only=True):
    """One analysis; equal tasks have equal results.

    `id` is the id of the match or the competition, `bot` the name of the bot. `seat` counts from 1,
    and is 0 for the strength of a bot, which is computed from its first `matches` matches, up to
    the one with the number `last`. With `is_old`, only matches that everybody may see are used.
    `version` is the version of the game's method, `revision` the competition's. `refused` is why
    the analysis cannot be done.
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
        """The task without `last` and `matches`; results are cached by it, despite new matches."""
        return msgspec.structs.replace(self, last=0, matches=0)

    def status(
        self, state: AnalysisState, text: str = "", *, place: int | None = None
    ) -> AnalysisStatus:
        """Make a status without a result."""
        is_mistakes = self.kind is AnalysisKind.MISTAKES
        return AnalysisStatus(
            state=state,
            place=place,
            text=text,
            mistakes=None if is_mistakes else msgspec.UNSET,
            strength=msgspec.UNSET if is_mistakes else None,
        )


class SideQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question; its answer has the same `id`.

    `personal_match` is the match in question, if it is not in the database. With `packs` the
    document is compressed if that is worthwhile. The other fields are ignored if `task` is set.
    """

    id: int = 0
    path: str = ""
    query: dict[str, str] = {}
    viewer: Viewer = Viewer()
    personal_match: PersonalMatch | None = None
    packs: bool = False
    task: AnalysisTask | None = None


class PageAnswer(msgspec.Struct, frozen=True):
    """An HTTP status, and a document or `{"error": …}`, compressed with gzip if `is_packed`.

    `etag` is the same for the same document, compressed or not; None if there is no document.
    """

    status: int
    body: bytes
    etag: str | None = None
    is_packed: bool = False


def is_analysis(path: str) -> bool:
    """Whether a path requests an analysis."""
    words = path.split("/")
    return len(words) == 5 and words[4].removesuffix(".json") in set(AnalysisKind)
