"""What can be analysed for the page, and for whom (J8).

The reader process makes an `AnalysisTask` of a request, or refuses it: it knows what a viewer may
see. The arena queues the task (`arena/web/analysis_client.py`), and the process that analyses does
it (`arena/web/analysis_process.py`).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from arena.web.analysis_documents import AnalysisState, AnalysisStatus
from arena.web.play.recent import PersonalMatch

__all__ = ["AnalysisKind", "AnalysisQuestion", "AnalysisTask", "is_analysis"]


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


class AnalysisQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the input of the process that analyses; the answer has the same `id`.

    `personal_match` is the match that it is about, if that is not in the database.
    """

    id: int
    task: AnalysisTask
    personal_match: PersonalMatch | None = None


def is_analysis(path: str) -> bool:
    """Whether a path is that of an analysis."""
    words = path.split("/")
    return len(words) == 5 and words[4].removesuffix(".json") in set(AnalysisKind)
