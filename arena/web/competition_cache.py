"""A competition as the reader process follows it: its results, and the documents that were made of them.

Documents are kept until there is something new. What was dear to make is not made anew at every match: making the same document again and
again takes at most a tenth of the reader's time, however many look on and however fast is played.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

import msgspec

from arena.engine.names import owner_of
from arena.records.visibility import Viewer, ViewerKind
from arena.storage.live_results import LiveResults
from arena.storage.reader import StoreReader
from arena.web.documents import Ruling, RulingWithEvidence
from protocol.messages import Verdict

__all__ = ["CachedCompetition", "is_open_to", "ruling"]

_KEPT = 256  # documents of one competition
_REST = 9.0  # times what making a document took, it is good whatever happens
_CURVES = 64  # bots whose scores are kept
_LOOK_S = 0.2  # between two looks at the database, for a class that asks all at once

Made = TypeVar("Made")


def is_open_to(viewer: Viewer, name: str, is_over: bool) -> bool:
    """Whether somebody may see why a bot is out (J8): its owner and the instructor at once, everybody when it is over."""
    if is_over or viewer.kind is ViewerKind.INSTRUCTOR:
        return True
    return viewer.kind is ViewerKind.OWNER and owner_of(name) == viewer.name


def ruling(
    at: float, verdict: Verdict, viewer: Viewer, is_over: bool
) -> Ruling | RulingWithEvidence:
    """Why a bot is out, as somebody may know it."""
    if is_open_to(viewer, verdict.bot, is_over):
        return RulingWithEvidence(**msgspec.structs.asdict(verdict), at=at)
    kind, event = verdict.kind.value, verdict.event
    return Ruling(verdict.bot, verdict.match, kind, at, event, verdict.forgiven)


class CachedCompetition:
    """A competition and its documents.

    Args:
        reader: the database.
        competition: its id.
        clock: a monotonic one, in seconds.

    Raises:
        UsageError: there is no such competition.
        StoreFailed: the database cannot be read; also from `look`.
    """

    def __init__(self, reader: StoreReader, competition: str, clock: Callable[[], float]) -> None:
        self.reader = reader
        self._clock = clock
        self.results = LiveResults(reader, competition)
        self._kept: OrderedDict[Hashable, _Made] = OrderedDict()
        self._curves: OrderedDict[str, _Curve] = OrderedDict()
        self._due = clock() + _LOOK_S
        self._version = 0

    @property
    def id(self) -> str:
        """The competition's."""
        return self.results.competition.id

    @property
    def is_over(self) -> bool:
        """Whether everybody may see everything (J8)."""
        return self.results.is_over

    def look(self) -> None:
        """Read what is new, if it is time for that."""
        if self._clock() < self._due:
            return
        if self.results.update():
            self._version += 1
        self._due = self._clock() + _LOOK_S

    def kept(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What was made under that key since the last news or not long ago, or what is made now."""
        began = self._clock()
        kept = self._kept.get(key)
        if kept is None or (kept.version != self._version and kept.until <= began):
            made = make()
            now = self._clock()
            kept = _Made(made, self._version, now + _REST * (now - began))
            self._kept[key] = kept
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        found: Made = kept.what
        return found

    @property
    def standings(self) -> tuple[Any, ...]:
        """As in `LiveResults`, added up once."""
        return self.kept("rows", lambda: self.results.standings)

    @property
    def cross_table(self) -> dict[str, dict[str, Any]]:
        """As in `LiveResults`, added up once."""
        return self.kept("cross table", lambda: self.results.cross_table)

    def curve(self, bot: str) -> tuple[tuple[float, int], ...]:
        """(when, score up to then) after each of a bot's matches that count; only what is new is read."""
        revision = self.results.competition.revision
        curve = self._curves.get(bot)
        if curve is None or curve.revision != revision:
            self._curves[bot] = curve = _Curve(revision)
            if len(self._curves) > _CURVES:
                self._curves.popitem(last=False)
        self._curves.move_to_end(bot)
        for number, at, score in self.reader.scores(self.id, bot, curve.last):
            curve.last = number
            curve.score += score
            curve.points.append((at, curve.score))
        return tuple(curve.points)


class _Made(NamedTuple):
    """What was made, of which state, and how long it is good in any case."""

    what: Any
    version: int
    until: float


class _Curve:
    """What a bot has scored, up to the match of that number."""

    __slots__ = ("last", "points", "revision", "score")

    def __init__(self, revision: int) -> None:
        self.revision = revision
        self.last = self.score = 0
        self.points: list[tuple[float, int]] = []
