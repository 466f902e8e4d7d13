"""A competition as the page reads it: its results, and a cache of the documents made from them.

A document is cached until there are new results, and for nine times as long as it took to make. So
making the same document again and again takes at most a tenth of the reader's time, however many
people look on and however fast matches are played.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

import msgspec

from arena.games.names import owner_of
from arena.records.visibility import OWN_MATCHES, Viewer, is_open_to
from arena.results.luck_table import LuckLine, LuckTable
from arena.storage.live_results import LiveResults
from arena.storage.reader import StoreReader
from arena.web.documents import Ruling, RulingWithEvidence
from arena.web.sized_cache import SizedCache
from protocol.messages import Verdict

__all__ = ["LUCK_S", "CachedCompetition", "ruling"]

_DOCUMENTS = 256  # of one competition that are cached
_REST = 9.0  # times what making a document took: how long it is cached in any case
_CURVES = 64  # bots whose curves are cached
LUCK_S = 600.0  # between two looks at whose luck may be seen by now
_LOOK_S = 0.2  # between two looks at the database, for a class that asks all at once

Made = TypeVar("Made")


def ruling(
    at: float, verdict: Verdict, viewer: Viewer, is_over: bool
) -> Ruling | RulingWithEvidence:
    """A verdict, with as much of it as a viewer may see."""
    if is_open_to(viewer, verdict.bot, is_over):
        return RulingWithEvidence(**msgspec.structs.asdict(verdict), at=at)
    kind, event = verdict.kind.value, verdict.event
    return Ruling(verdict.bot, verdict.match, kind, at, event, verdict.forgiven)


class CachedCompetition:
    """A competition, and a cache of its documents; `clock` is monotonic, in seconds.

    Raises UsageError if there is no such competition. It and `update` raise StoreFailed if the
    database cannot be read.
    """

    def __init__(self, reader: StoreReader, competition: str, clock: Callable[[], float]) -> None:
        self.reader = reader
        self._clock = clock
        self.results = LiveResults(reader, competition)
        self._cache = SizedCache[Hashable, _Cached](_DOCUMENTS)
        self._curves = SizedCache[str, _Curve](_CURVES)
        self._due = clock() + _LOOK_S
        self._version = 0
        self._sums_revision = reader.sums_revision()

    @property
    def id(self) -> str:
        return self.results.competition.id

    @property
    def is_over(self) -> bool:
        """Whether everybody may see everything (J8)."""
        return self.results.is_over

    def update(self) -> None:
        """Read new results, unless that was done less than 0.2 s ago."""
        if self._clock() < self._due:
            return
        sums_revision = self.reader.sums_revision()
        if self.results.update() or sums_revision != self._sums_revision:
            self._version += 1
            self._sums_revision = sums_revision
        self._due = self._clock() + _LOOK_S

    def cached(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """The cached value of a key; `make` makes a new one if it is too old or missing."""
        began = self._clock()
        cached = self._cache.get(key)
        if cached is None or (cached.version != self._version and cached.until <= began):
            made = make()
            now = self._clock()
            cached = _Cached(made, self._version, now + _REST * (now - began))
            self._cache.put(key, cached)
        value: Made = cached.value
        return value

    @property
    def standings(self) -> tuple[Any, ...]:
        return self.cached("standings", lambda: self.results.standings)

    @property
    def cross_table(self) -> dict[str, dict[str, Any]]:
        return self.cached("cross table", lambda: self.results.book.cross_table)

    def luck(self, until: float | None = None) -> LuckTable:
        """What the bots won without luck; with `until`, in matches that were over by then."""
        # What is due by then becomes more without anything new.
        key = "luck", until and until // LUCK_S
        return self.cached(key, lambda: LuckTable(self.results.luck(until), self.results.unranked))

    def own_luck(self, owner: str) -> dict[str, LuckLine]:
        """What an owner's bots won without luck in whole twenties of their matches.

        Two looks never tell the luck of a single match.
        """

        def lines() -> dict[str, LuckLine]:
            played, out = self.results.luck(), self.results.unranked
            names = {name for players, _ in played for name in players if owner_of(name) == owner}
            found = {}
            for name in names:
                own = [match for match in played if name in match[0]]
                table = LuckTable(own[: len(own) // OWN_MATCHES * OWN_MATCHES], out)
                if name in (by_bot := table.lines()):
                    found[name] = by_bot[name]
            return found

        return self.cached(("own luck", owner), lines)

    def curve(self, bot: str) -> tuple[tuple[float, int], ...]:
        """(when, score up to then) after each match of a bot that counts; reads only new ones."""
        revision = self.results.competition.revision
        curve = self._curves.get(bot)
        if curve is None or curve.revision != revision:
            curve = _Curve(revision)
            self._curves.put(bot, curve)
        for number, at, score in self.reader.scores(self.id, bot, curve.last):
            curve.last = number
            curve.score += score
            curve.points.append((at, curve.score))
        return tuple(curve.points)


class _Cached(NamedTuple):
    """A value, the version of the results that it shows, and how long it is good in any case."""

    value: Any
    version: int
    until: float


class _Curve(msgspec.Struct):
    """A bot's scores up to the match with the number `last`, at a revision of the competition."""

    revision: int
    last: int = 0
    score: int = 0
    points: list[tuple[float, int]] = []
