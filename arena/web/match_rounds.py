"""The rounds of a recorded match, event by event, replayed once for each view of it and cached.

A match is replayed from its record alone, and its rounds are cached compressed for those who step
through them. `arena/records/visibility.py` decides which events a view shows.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice

import msgspec

from arena.engine.match import Record
from arena.games import game_named
from arena.records.captions import Captioner, captions_for
from arena.records.luck import luck_of
from arena.records.rounds import Round, rounds_of
from arena.records.visibility import seen
from arena.web.documents import LuckCurve, Refusal, thinned
from arena.web.sized_cache import SizedCache
from protocol.errors import ArenaError, in_words
from protocol.watching import View

__all__ = ["MOST_ANSWERS", "MOST_ROUNDS", "RecordedMatch", "RecordedMatches"]

MOST_ANSWERS = 300_000  # of a match that is replayed here; nobody waits longer for a page
MOST_ROUNDS = 50  # of one answer
_PACKED = 50  # rounds that are compressed together
_BYTES = 64 << 20  # of compressed matches that are cached
_POINTS = 500  # of a curve: more than a screen shows
_LEVEL = 1  # of compression: events are mostly the same words


class RecordedMatch:
    """A match as a view shows it; `size` is in bytes, about, `decisions` the number of answers.

    `scores` and `points` are those at the end of each round; `points` is empty unless the game has
    some (G14). `players` are the names by seat. `luck` is None unless the view shows all cards.
    """

    def __init__(self, record: Record, view: View, players: Sequence[str] = ()) -> None:
        self.decisions = len(record.answers)
        self._packs: list[bytes] = []
        scores: list[tuple[int, ...]] = []
        points: list[tuple[int, ...]] = []
        game = game_named(record.game, record.package)
        captions = captions_for(game, players)
        for rounds in _gathered(rounds_of(record)):
            scores += [round_.scores for round_ in rounds]
            if game.points is not None:
                points += [round_.points for round_ in rounds]
            lines = [_encoded(round_, view, game.seats, captions) for round_ in rounds]
            self._packs.append(zlib.compress(b"\n".join(lines), _LEVEL))
        self.scores = tuple(scores)
        self.points = tuple(points)
        self.luck = _luck(record) if view.kind == "all" else None
        self.size = sum(map(len, self._packs)) + 100 * len(scores + points)

    def rounds(self, first: int, last: int) -> bytes:
        """The document with the rounds `first` to `last`, which count from 1."""
        start = (first - 1) // _PACKED
        lines: list[bytes] = []
        for pack in self._packs[start : (last - 1) // _PACKED + 1]:
            lines += zlib.decompress(pack).split(b"\n")
        before = start * _PACKED
        wanted = lines[first - 1 - before : last - before]
        return b'{"rounds":[' + b",".join(wanted) + b"]}"


class RecordedMatches:
    """A cache of recorded matches, by match and view."""

    def __init__(self) -> None:
        self._cache = SizedCache[tuple[str, View], RecordedMatch](_BYTES, lambda match: match.size)

    def get(
        self, match: str, view: View, players: Sequence[str], record: Callable[[], Record]
    ) -> RecordedMatch:
        """A match, from the cache or its record; raises `Refusal` if it is too long or damaged."""
        recorded = self._cache.get((match, view))
        if recorded is None:
            recorded = _recorded(match, view, players, record())
            self._cache.put((match, view), recorded)
        return recorded


def _recorded(match: str, view: View, players: Sequence[str], record: Record) -> RecordedMatch:
    if len(record.answers) > MOST_ANSWERS:
        count = f"{len(record.answers):,} answers, more than {MOST_ANSWERS:,}"
        raise Refusal(413, f"match {match} has {count}: use `arena replay {match}`")
    try:
        return RecordedMatch(record, view, players)
    except Exception as error:  # replaying a damaged record may raise anything
        why = str(error) if isinstance(error, ArenaError) else in_words(error)
        raise Refusal(
            500, f"match {match} cannot be told again: {why}; `arena verify` says more"
        ) from None


def _luck(record: Record) -> LuckCurve | None:
    try:
        measured = luck_of(record)
    except ArenaError:  # it is not measured, for one of several reasons
        return None
    if not (rounds := measured.rounds):
        return None
    gains = _added_up(round_.gains for round_ in rounds)
    lucks = _added_up(round_.luck for round_ in rounds)
    after = thinned(range(1, len(rounds) + 1), _POINTS)
    return LuckCurve(
        unit=measured.unit,
        after=after,
        gains=tuple(gains[at - 1] for at in after),
        without=tuple(
            tuple(gain - luck for gain, luck in zip(gains[at - 1], lucks[at - 1], strict=True))
            for at in after
        ),
    )


def _added_up(rounds: Iterable[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """The sums up to each round, by seat."""
    return list(zip(*map(accumulate, zip(*rounds, strict=True)), strict=True))


def _gathered(rounds: Iterable[Round]) -> Iterator[list[Round]]:
    rest = iter(rounds)
    while gathered := list(islice(rest, _PACKED)):
        yield gathered


def _encoded(round_: Round, view: View, seats: int, captions: Captioner | None) -> bytes:
    # In one line: JSON has no line breaks within texts.
    events = seen(round_.events, view, seats, captions)
    return msgspec.json.encode({"round": round_.number, "scores": round_.scores, "events": events})
