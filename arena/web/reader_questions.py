"""What can be asked of the reader process: the paths of the documents, and their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, TypeVar

import msgspec

from arena.records.visibility import Viewer
from arena.web.documents import Refusal
from arena.web.play.recent import PersonalMatch
from protocol.errors import one_line

__all__ = ["QUERY", "SUMS", "Query", "ReaderQuestion", "ReaderReply", "Route", "route"]

QUERY: Mapping[str, frozenset[str]] = {
    "competitions": frozenset(),
    "overview": frozenset(),
    "cross": frozenset(),
    "pairing": frozenset({"a", "b"}),
    "bot": frozenset({"name"}),
    "matches": frozenset({"before", "limit"}),
    "match": frozenset(),
    "rounds": frozenset({"from", "to"}),
    "record": frozenset({"seat"}),
    "mistakes": frozenset({"seat"}),
    "strength": frozenset({"bot"}),
    "sums": frozenset({"after"}),
}
"""The documents, and the parameters of each."""
SUMS = "sums"
"""The path of what the arena itself asks for, and no visitor can: theirs begin with `/`."""
_OF_COMPETITION = ("cross", "pairing", "bot", "matches", "strength")
_OF_MATCH = ("rounds", "record", "mistakes")
_LARGEST = 1 << 53  # of a number in JavaScript

Default = TypeVar("Default", int, None)


class ReaderQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the reader's input; the answer has the same `id`.

    `personal_match` is the match that it is about, if that is not in the database. With `packs`
    the document is compressed where that is worth it.
    """

    id: int
    path: str
    query: dict[str, str] = {}
    viewer: Viewer = Viewer()
    personal_match: PersonalMatch | None = None
    packs: bool = False


class ReaderReply(msgspec.Struct, frozen=True):
    """An answer: a status of HTTP, and a document or `{"error": …}`."""

    status: int
    body: bytes


Route: TypeAlias = tuple[str, str]  # a document's name in `QUERY`, and the id that it is about


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


def route(path: str) -> Route:
    """The document at a path; raises `Refusal` if there is none."""
    if path == SUMS:
        return SUMS, ""
    words = path.removeprefix("/api/").removesuffix(".json").split("/")
    if path.startswith("/api/") and path.endswith(".json"):
        match words:
            case ["competitions"]:
                return "competitions", ""
            case ["competitions", id_] if id_:
                return "overview", id_
            case ["competitions", id_, name] if name in _OF_COMPETITION:
                return name, id_
            case ["matches", id_] if id_:
                return "match", id_
            case ["matches", id_, name] if name in _OF_MATCH:
                return name, id_
    got = one_line(path, 80)
    raise Refusal(404, f"expected /api/competitions.json or one below, got {got!r}")
