"""What can be asked of the reader process: the documents there are, what stands behind the `?` of each, and what is no question."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from arena.records.visibility import Viewer
from arena.web.documents import Refusal
from arena.web.play.recent import PersonalMatch
from protocol.errors import one_line

__all__ = ["QUERY", "Query", "ReaderQuestion", "ReaderReply", "Route", "route"]

QUERY: Mapping[str, frozenset[str]] = {
    "competitions": frozenset(),
    "overview": frozenset(),
    "cross": frozenset(),
    "pairing": frozenset({"a", "b"}),
    "bot": frozenset({"name"}),
    "matches": frozenset({"before", "limit"}),
    "match": frozenset(),
    "rounds": frozenset({"from", "to"}),
    "record": frozenset(),
}
"""The documents, and what may stand behind the `?` of each."""
_LARGEST = 1 << 53  # of a number in JavaScript


class ReaderQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the reader's input.

    Attributes:
        id: comes back with the answer.
        path: of the document, `/api/…json`.
        query: what stood behind the `?`.
        viewer: who asks.
        parlour: the match that it is about, if the database has it not.
        packs: whether a document is wanted packed, where that is worth it.
    """

    id: int
    path: str
    query: dict[str, str] = {}
    viewer: Viewer = Viewer()
    parlour: PersonalMatch | None = None
    packs: bool = False


class ReaderReply(msgspec.Struct, frozen=True):
    """An answer: a status of HTTP, and a document or `{"error": …}`."""

    status: int
    body: bytes

    @property
    def etag(self) -> str:
        """The same for the same document."""
        return hashlib.blake2b(self.body, digest_size=12).hexdigest()


Route: TypeAlias = tuple[str, str]
"""A document's name in `QUERY`, and the id that it is about."""


class Query:
    """What stood behind the `?`."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given

    def has(self, name: str) -> bool:
        """Whether it was said."""
        return name in self._given

    def text(self, name: str) -> str:
        """What was said, which has to be.

        Raises:
            Refusal: it was not.
        """
        if not self._given.get(name):
            raise Refusal(400, f"expected `?{name}=…`, the name of a bot, got none")
        return self._given[name]

    def number(self, name: str, default: int, *, most: int = _LARGEST) -> int:
        """A whole number from 0 or 1.

        Raises:
            Refusal: it is none.
        """
        text = self._given.get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= len(str(most))):
            got = one_line(text, 40)
            raise Refusal(400, f"expected a whole number for `{name}`, got {got!r}")
        if not 1 <= int(text) <= most:
            raise Refusal(400, f"expected a number from 1 to {most} for `{name}`, got {text}")
        return int(text)


def route(path: str) -> Route:
    """Which document a path is about.

    Raises:
        Refusal: about none.
    """
    words = path.removeprefix("/api/").removesuffix(".json").split("/")
    if path.startswith("/api/") and path.endswith(".json"):
        match words:
            case ["competitions"]:
                return "competitions", ""
            case ["competitions", what] if what:
                return "overview", what
            case ["competitions", what, ("cross" | "pairing" | "bot" | "matches") as it]:
                return it, what
            case ["matches", what] if what:
                return "match", what
            case ["matches", what, ("rounds" | "record") as it]:
                return it, what
    got = one_line(path, 80)
    raise Refusal(404, f"expected /api/competitions.json or one below, got {got!r}")
