"""The documents of matches: how one ended, its rounds event by event, its record.

A match is told again once for every kind of viewer, and what came of it is kept, packed, for whoever steps through it. It is told from its
record alone; the database's rows say who sat there, and `arena/records/visibility.py` what may be seen.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import accumulate

import msgspec

from arena.engine.match import Record
from arena.games import game_named
from arena.records.replay_events import Round, rounds_of
from arena.records.visibility import seen
from arena.web.documents import Refusal
from protocol.errors import ArenaError, in_words
from protocol.gin_rummy import RoundOver
from protocol.watching import View

__all__ = ["MOST_ANSWERS", "MOST_ROUNDS", "RecordedMatch", "RecordedMatches"]

MOST_ANSWERS = 300_000
"""Of a match that is told here: a longer one takes longer than anybody looks at a page that loads."""
MOST_ROUNDS = 50
"""In one answer."""
_PACKED = 50  # rounds that are packed together
_BYTES = 64 << 20  # of packed matches that are kept
_LEVEL = 1  # of packing: events are mostly the same words


class RecordedMatch:
    """A match as some viewers see it.

    Attributes:
        decisions: how many answers it has.
        scores: by round, at its end.
        points: likewise, of all rounds so far, where a game is played for points (G14); else nothing.
        size: in bytes, about.
    """

    def __init__(self, record: Record, view: View) -> None:
        self.decisions = len(record.answers)
        self._packs: list[bytes] = []
        scores: list[tuple[int, ...]] = []
        points: list[tuple[int, ...]] = []
        seats = game_named(record.game).seats
        for several in _gathered(rounds_of(record)):
            scores += [one.scores for one in several]
            points += filter(None, map(_points, several))
            lines = [_encoded(one, view, seats) for one in several]
            self._packs.append(zlib.compress(b"\n".join(lines), _LEVEL))
        self.scores = tuple(scores)
        self.points = tuple(accumulate(points, _sum))
        self.size = sum(map(len, self._packs)) + 100 * len(scores + points)

    def rounds(self, first: int, last: int) -> bytes:
        """The document with these rounds, from 1, the last one among them."""
        start = (first - 1) // _PACKED
        lines: list[bytes] = []
        for pack in self._packs[start : (last - 1) // _PACKED + 1]:
            lines += zlib.decompress(pack).split(b"\n")
        before = start * _PACKED
        wanted = lines[first - 1 - before : last - before]
        return b'{"rounds":[' + b",".join(wanted) + b"]}"


class RecordedMatches:
    """The matches that were told lately."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, View], RecordedMatch] = OrderedDict()
        self._size = 0

    def known(self, match: str, view: View) -> RecordedMatch | None:
        """A match that was told before to such viewers."""
        told = self._known.get((match, view))
        if told is not None:
            self._known.move_to_end((match, view))
        return told

    def tell(self, match: str, view: View, record: Record) -> RecordedMatch:
        """Tell a match.

        Raises:
            Refusal: it is too long, or its record cannot be played again.
        """
        if len(record.answers) > MOST_ANSWERS:
            raise Refusal(
                413,
                f"match {match} has {len(record.answers):,} answers, more than {MOST_ANSWERS:,}: use `arena replay {match}`",
            )
        try:
            told = RecordedMatch(record, view)
        except Exception as error:  # a damaged record may be broken in any way
            why = str(error) if isinstance(error, ArenaError) else in_words(error)
            raise Refusal(
                500, f"match {match} cannot be told again: {why}; `arena verify` says more"
            ) from None
        self._known[match, view] = told
        self._size += told.size
        while self._size > _BYTES and len(self._known) > 1:
            _, gone = self._known.popitem(last=False)
            self._size -= gone.size
        return told


def _gathered(rounds: Iterable[Round]) -> Iterator[list[Round]]:
    several: list[Round] = []
    for one in rounds:
        several.append(one)
        if len(several) == _PACKED:
            yield several
            several = []
    if several:
        yield several


def _points(one: Round) -> tuple[int, ...]:
    """What a round was worth to each seat; a round that was cut short is worth nothing, and in most games there are no points."""
    for event in one.events:
        news = getattr(event, "news", None)
        if isinstance(news, RoundOver):
            return news.points
    return ()


def _sum(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(sum, zip(one, other, strict=True)))


def _encoded(one: Round, view: View, seats: int) -> bytes:
    """A round in one line: in JSON a line break inside of a text is written in two letters."""
    events = seen(one.events, view, seats)
    return msgspec.json.encode({"round": one.number, "scores": one.scores, "events": events})
