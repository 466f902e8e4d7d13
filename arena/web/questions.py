"""What can be asked of a process beside the arena, and what it answers; see `side_process.py`.

Most questions are for a document of the page. `SUMS` is for the luck of matches. A question with an
`AnalysisTask` asks for that analysis: documents say what can be analysed, and for whom (J8).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

import msgspec

from arena.games.match import Record
from arena.records.visibility import Viewer
from arena.web.documents import AnalysisState, AnalysisStatus, Refusal
from protocol.errors import one_line
from protocol.messages import Verdict

__all__ = [
    "DOCUMENTS",
    "SUMS",
    "AnalysisKind",
    "AnalysisTask",
    "PageAnswer",
    "PersonalMatch",
    "Query",
    "SideQuestion",
    "is_analysis",
    "route",
]

DOCUMENTS: Mapping[str, frozenset[str]] = {
    "competitions": frozenset(),
    "competitions/ID": frozenset(),
    "competitions/ID/cross": frozenset(),
    "competitions/ID/pairing": frozenset({"a", "b"}),
    "competitions/ID/bot": frozenset({"name"}),
    "competitions/ID/matches": frozenset({"before", "limit"}),
    "competitions/ID/strength": frozenset({"bot"}),
    "matches/ID": frozenset(),
    "matches/ID/rounds": frozenset({"from", "to"}),
    "matches/ID/record": frozenset({"seat"}),
    "matches/ID/mistakes": frozenset({"seat"}),
}
"""The documents by their place below `/api/`, and the parameters of each."""
SUMS = "sums"
"""The path of what the arena itself asks for, and no visitor can: theirs begin with `/`."""
_LARGEST = 1 << 53  # of a number in JavaScript

Default = TypeVar("Default", int, None)


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


class Query:
    """The parameters of a question; reading one raises `Refusal` if it is missing or wrong."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._parameters = parameters

    def text(self, name: str) -> str:
        """A bot's name, which must not be empty."""
        if not self._parameters.get(name):
            raise Refusal(400, f"expected `?{name}=…`, the name of a bot, got none")
        return self._parameters[name]

    def number(self, name: str, default: Default, *, most: int = _LARGEST) -> int | Default:
        """A whole number from 1 to `most`."""
        text = self._parameters.get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= len(str(most))):
            got = one_line(text, 40)
            raise Refusal(400, f"expected a whole number for `{name}`, got {got!r}")
        if not 1 <= int(text) <= most:
            raise Refusal(400, f"expected a number from 1 to {most} for `{name}`, got {text}")
        return int(text)


def route(path: str) -> tuple[str, str]:
    """The place of a document in `DOCUMENTS`, and the id in it; raises `Refusal` without one."""
    words = path.removeprefix("/api/").removesuffix(".json").split("/")
    place = "/".join("ID" if at == 1 else word for at, word in enumerate(words))
    is_known = place in DOCUMENTS and all(words)
    if not (is_known and path.startswith("/api/") and path.endswith(".json")):
        got = one_line(path, 80)
        raise Refusal(404, f"expected /api/competitions.json or one below, got {got!r}")
    return place, "".join(words[1:2])


def is_analysis(path: str) -> bool:
    """Whether a path is that of an analysis."""
    words = path.split("/")
    return len(words) == 5 and words[4].removesuffix(".json") in set(AnalysisKind)
