"""The documents of a match, as much as a viewer may see (J8): its page, its rounds, its record.

Matches are in the database, except those that people have played, whose records come with the
question. A match is replayed from its record alone, once for each view of it, and its rounds are
cached compressed for people who step through them. `arena/records/visibility.py` decides which
events a view shows.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from itertools import accumulate, islice

import msgspec

from arena.formats.spec import Form
from arena.games.catalogue import game_named, game_title
from arena.games.match import Record, Result
from arena.records.captions import captions_for
from arena.records.luck import luck_of
from arena.records.rounds import rounds_of
from arena.records.seat_document import seat_document
from arena.records.visibility import LADDER_S, Viewer, ending_for, seen, view_of
from arena.storage.models import MatchRow
from arena.storage.reader import StoreReader, document_of
from arena.web import documents
from arena.web.competition_pages import ruling
from arena.web.documents import LuckCurve, Refusal, Ruling, RulingWithEvidence, thinned
from arena.web.questions import PersonalMatch
from arena.web.sized_cache import SizedCache
from protocol.errors import ArenaError, UsageError, in_words, one_line
from protocol.watching import View

__all__ = ["RecordedMatch", "RecordedMatches", "RequestedMatch", "personal", "record", "stored"]

MOST_ANSWERS = 300_000  # in a match to replay; nobody waits longer for a page
MOST_ROUNDS = 50  # in one answer
_PACKED = 50  # rounds compressed together
_BYTES = 64 << 20  # of compressed matches in the cache
_POINTS = 500  # of a curve; more than a screen shows
_LEVEL = 1  # of compression; enough, as events are mostly the same words


class RequestedMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A requested match, before its record is read.

    A person's match has no competition in its `row`. `view` and `verdict` are what the viewer may
    see; without an offence there is no verdict. `source` is the record, or the database with it.
    """

    row: MatchRow
    view: View
    verdict: Ruling | RulingWithEvidence | None
    source: StoreReader | Record

    def record(self) -> Record:
        """Return the record, reading it from the database if needed."""
        return self.source if isinstance(self.source, Record) else self.source.record(self.row.id)


def stored(reader: StoreReader, match: str, viewer: Viewer, now: float) -> RequestedMatch:
    """Find a match in the database; `now` is in Unix seconds. `Refusal` if the id is unknown."""
    try:
        row = reader.played(match)
    except UsageError:
        raise Refusal(
            404, f"expected the id of a match that is over, got {one_line(match, 80)!r}"
        ) from None
    competition = reader.competition(row.competition)
    is_over = competition.state.is_over
    if competition.plan.form is Form.LADDER:  # it has no end (J8)
        is_over = is_over or row.finished_at + LADDER_S <= now
    verdicts = (
        ruling(at, verdict, viewer, is_over)
        for at, verdict in reader.rulings(row.competition)
        if verdict.match == match
    )
    view = view_of(row.players, is_over, viewer)
    return RequestedMatch(row=row, view=view, verdict=next(verdicts, None), source=reader)


def personal(match: PersonalMatch, viewer: Viewer) -> RequestedMatch:
    """Describe a match that a person played: it is over, open to all, and in no competition."""
    record = match.record
    # Open to all, except the evidence against a bot, for its owner and the instructor only.
    verdict = None
    if match.verdict is not None:
        verdict = ruling(match.finished_at, match.verdict, viewer, False)
    row = MatchRow(
        number=0,
        id=match.match,
        competition="",
        pairing=0,
        counts=False,
        game=record.game,
        players=match.players,
        result=Result(record.scores, record.points, record.termination, record.also_out or ()),
        started_at=match.started_at,
        finished_at=match.finished_at,
        digest="",
    )
    view = view_of(match.players, True, viewer)
    return RequestedMatch(row=row, view=view, verdict=verdict, source=record)


def record(match: RequestedMatch, seat: int | None = None) -> bytes:
    """Return a match's record as `arena export` writes it, or bare for a match played by a person.

    A viewer who may not see all cards gets what their own seat saw: their first one, or `seat`,
    from 1. Raises `Refusal` if the viewer has no such seat.
    """
    row, source, view = match.row, match.source, match.view
    if view.kind == "seat":
        number = seat or view.seats[0] + 1
        if number - 1 not in view.seats:
            own = " or ".join(str(own + 1) for own in view.seats)
            raise Refusal(403, f"expected seat {own}, your own, got {number}")
        return seat_document(match.record(), number - 1, row.id, row.players).to_json()
    if view.kind != "all":
        raise Refusal(
            403,
            f"the record of match {row.id} tells all cards: "
            f"it is here when {row.competition} is over, for the instructor now",
        )
    if isinstance(source, Record):
        return source.to_json()
    return document_of(row, source.stored(row.id)).to_json()


class RecordedMatch:
    """A match as a view shows it; `size` is about its bytes, `decisions` the number of answers.

    `scores` and `points` have an entry for the end of each round; `points` is empty unless the game
    has points (G14). `players` are the names by seat. `luck` is None unless the view shows all.
    """

    def __init__(self, record: Record, view: View, players: Sequence[str] = ()) -> None:
        self.decisions = len(record.answers)
        self._packs: list[bytes] = []
        scores: list[tuple[int, ...]] = []
        points: list[tuple[int, ...]] = []
        game = game_named(record.game, record.package)
        captions = captions_for(game, players)
        rest = rounds_of(record)
        while rounds := list(islice(rest, _PACKED)):
            scores += [round_.scores for round_ in rounds]
            if game.points is not None:
                points += [round_.points for round_ in rounds]
            lines = []
            for round_ in rounds:  # one line each, as JSON texts contain no line breaks
                events = seen(round_.events, view, game.seats, captions)
                line = {"round": round_.number, "scores": round_.scores, "events": events}
                lines.append(msgspec.json.encode(line))
            self._packs.append(zlib.compress(b"\n".join(lines), _LEVEL))
        self.scores = tuple(scores)
        self.points = tuple(points)
        self.luck = _luck(record) if view.kind == "all" else None
        self.size = sum(map(len, self._packs)) + 100 * len(scores + points)

    def rounds(self, first: int, last: int) -> bytes:
        """Make the document of the rounds `first` to `last`, counted from 1."""
        start = (first - 1) // _PACKED
        lines: list[bytes] = []
        for pack in self._packs[start : (last - 1) // _PACKED + 1]:
            lines += zlib.decompress(pack).split(b"\n")
        before = start * _PACKED
        wanted = lines[first - 1 - before : last - before]
        return b'{"rounds":[' + b",".join(wanted) + b"]}"


class RecordedMatches:
    """Makes the pages and rounds of matches, and caches those used last by match and view."""

    def __init__(self) -> None:
        self._cache = SizedCache[tuple[str, View], RecordedMatch](_BYTES, lambda match: match.size)

    def page(self, match: RequestedMatch) -> documents.MatchPage:
        """Describe how a match ended, with its scores by round.

        Raises `Refusal` if it is too long or damaged.
        """
        row, record = match.row, match.record()
        recorded = self._recorded(match, record)
        is_open = match.view.kind == "all"
        ended = row.result.termination
        if not is_open:
            ended = ending_for(ended, match.view.seats)
        cards = documents.Cards(
            seed=record.seed,
            commitment=record.commitment,
            nonces=record.nonces,
            enforced=record.enforced,
        )
        return documents.MatchPage(
            id=row.id,
            competition=row.competition or None,
            game=row.game,
            title=game_title(row.game),
            settings=record.settings,
            players=row.players,
            view=match.view,
            result=msgspec.structs.replace(row.result, termination=ended),
            started_at=row.started_at,
            finished_at=row.finished_at,
            counts=row.counts,
            verdict=match.verdict,
            record=cards if is_open else None,
            decisions=recorded.decisions,
            rounds=recorded.scores,
            points=recorded.points,
            luck=recorded.luck,
            versions=record.versions,
            worker=record.worker,
        )

    def rounds(self, match: RequestedMatch, first: int, last: int) -> bytes:
        """Return rounds, event by event.

        Raises `Refusal` if there are no such rounds, or the match is too long or damaged.
        """
        if not 1 <= first <= last:
            raise Refusal(400, f"expected rounds from 1, got {first} to {last}")
        if last - first >= MOST_ROUNDS:
            got = f"got {first} to {last}"
            raise Refusal(400, f"expected at most {MOST_ROUNDS} rounds at once, {got}")
        recorded = self._recorded(match)
        if first > len(recorded.scores):
            count = f"{len(recorded.scores):,} rounds"
            raise Refusal(404, f"match {match.row.id} has {count}, got {first:,}")
        return recorded.rounds(first, last)

    def _recorded(self, match: RequestedMatch, record: Record | None = None) -> RecordedMatch:
        key = match.row.id, match.view
        recorded = self._cache.get(key)
        if recorded is not None:
            return recorded
        id_, record = match.row.id, record or match.record()
        if len(record.answers) > MOST_ANSWERS:
            count = f"{len(record.answers):,} answers, more than {MOST_ANSWERS:,}"
            raise Refusal(413, f"match {id_} has {count}: use `arena replay {id_}`")
        try:
            recorded = RecordedMatch(record, match.view, match.row.players)
        except Exception as error:  # replaying a damaged record may raise anything
            why = str(error) if isinstance(error, ArenaError) else in_words(error)
            raise Refusal(
                500, f"match {id_} cannot be told again: {why}; `arena verify` says more"
            ) from None
        self._cache.put(key, recorded)
        return recorded


def _luck(record: Record) -> LuckCurve | None:
    try:
        measured = luck_of(record)
    except ArenaError:  # the luck cannot be measured
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
    """Return the running totals after each round, by seat."""
    return list(zip(*map(accumulate, zip(*rounds, strict=True)), strict=True))
