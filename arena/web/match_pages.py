"""The documents of a match, as much as a viewer may see (J8): its page, its rounds, its record.

A match is in the database. If a person has played it, it is not; then its record comes with the
question.
"""

from __future__ import annotations

import msgspec

from arena.engine.match import Record, Result
from arena.formats.spec import Form
from arena.games import game_title
from arena.records.seat_document import seat_document
from arena.records.visibility import LADDER_S, Viewer, ending_for, view_of
from arena.storage.models import CompetitionState, MatchRow
from arena.storage.reader import StoreReader, document_of
from arena.web import documents
from arena.web.competition_cache import ruling
from arena.web.documents import Refusal, Ruling, RulingWithEvidence
from arena.web.match_rounds import MOST_ROUNDS, RecordedMatches
from arena.web.play.recent import PersonalMatch
from protocol.errors import UsageError, one_line
from protocol.watching import View

__all__ = ["RequestedMatch", "page", "personal", "record", "rounds", "stored"]

_OVER = (CompetitionState.FINISHED, CompetitionState.STOPPED)


class RequestedMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A match that was asked for, before its record is read; times are Unix seconds.

    `competition` is None if a person has played it, `verdict` if there was no offence. `view` and
    `verdict` are what the viewer may see. `source` is the record, or the database that has it.
    """

    id: str
    competition: str | None
    game: str
    players: tuple[str, ...]
    result: Result
    started_at: float
    finished_at: float
    counts: bool
    view: View
    verdict: Ruling | RulingWithEvidence | None
    source: StoreReader | Record


def stored(reader: StoreReader, match: str, viewer: Viewer, now: float) -> RequestedMatch:
    """A match of the database, in Unix seconds; raises `Refusal` if there is none of that id."""
    played = _played(reader, match)
    competition = reader.competition(played.competition)
    is_over = competition.state in _OVER
    if competition.plan.form is Form.LADDER:  # it has no end (J8)
        is_over = is_over or played.finished_at + LADDER_S <= now
    verdicts = (
        ruling(at, verdict, viewer, is_over)
        for at, verdict in reader.rulings(played.competition)
        if verdict.match == match
    )
    return RequestedMatch(
        id=played.id,
        competition=played.competition,
        game=played.game,
        players=played.players,
        result=played.result,
        started_at=played.started_at,
        finished_at=played.finished_at,
        counts=played.counts,
        view=view_of(played.players, is_over, viewer),
        verdict=next(verdicts, None),
        source=reader,
    )


def personal(match: PersonalMatch, viewer: Viewer) -> RequestedMatch:
    """A match that a person has played: it is over and open to all, and in no competition."""
    record = match.record
    # Open to all but for the evidence against a bot, which its owner and the instructor see.
    verdict = None
    if match.verdict is not None:
        verdict = ruling(match.finished_at, match.verdict, viewer, False)
    return RequestedMatch(
        id=match.match,
        competition=None,
        game=record.game,
        players=match.players,
        result=Result(record.scores, record.points, record.termination, record.also_out or ()),
        started_at=match.started_at,
        finished_at=match.finished_at,
        counts=False,
        view=view_of(match.players, True, viewer),
        verdict=verdict,
        source=record,
    )


def page(match: RequestedMatch, matches: RecordedMatches) -> documents.MatchPage:
    """How a match ended, and its scores by round; raises `Refusal` if it is too long or damaged."""
    record = _record(match)
    recorded = matches.get(match.id, match.view, match.players, lambda: record)
    cards = documents.Cards(
        seed=record.seed,
        commitment=record.commitment,
        nonces=record.nonces,
        enforced=record.enforced,
    )
    return documents.MatchPage(
        id=match.id,
        competition=match.competition,
        game=match.game,
        title=game_title(match.game),
        settings=record.settings,
        players=match.players,
        view=match.view,
        result=_outcome(match),
        started_at=match.started_at,
        finished_at=match.finished_at,
        counts=match.counts,
        verdict=match.verdict,
        record=cards if match.view.kind == "all" else None,
        decisions=recorded.decisions,
        rounds=recorded.scores,
        points=recorded.points,
        luck=recorded.luck,
        versions=record.versions,
        worker=record.worker,
    )


def rounds(match: RequestedMatch, matches: RecordedMatches, first: int, last: int) -> bytes:
    """Rounds, event by event; raises `Refusal` without them, or if it is too long or damaged."""
    if not 1 <= first <= last:
        raise Refusal(400, f"expected rounds from 1, got {first} to {last}")
    if last - first >= MOST_ROUNDS:
        raise Refusal(400, f"expected at most {MOST_ROUNDS} rounds at once, got {first} to {last}")
    recorded = matches.get(match.id, match.view, match.players, lambda: _record(match))
    if first > len(recorded.scores):
        raise Refusal(404, f"match {match.id} has {len(recorded.scores):,} rounds, got {first:,}")
    return recorded.rounds(first, last)


def record(match: RequestedMatch, seat: int | None = None) -> bytes:
    """The record of a match, as `arena export` writes it; bare if a person has played the match.

    Whoever may not see all cards, which a record has, gets what the own seat saw: the first of the
    own ones, or `seat`, from 1. Raises `Refusal` without one.
    """
    source, view = match.source, match.view
    if view.kind == "seat":
        number = seat or view.seats[0] + 1
        if number - 1 not in view.seats:
            own = " or ".join(str(own + 1) for own in view.seats)
            raise Refusal(403, f"expected seat {own}, your own, got {number}")
        return seat_document(_record(match), number - 1, match.id, match.players).to_json()
    if view.kind != "all":
        raise Refusal(
            403,
            f"the record of match {match.id} tells all cards: "
            f"it is here when {match.competition} is over, for the instructor now",
        )
    if isinstance(source, Record):
        return source.to_json()
    return document_of(_played(source, match.id), source.stored(match.id)).to_json()


def _played(reader: StoreReader, match: str) -> MatchRow:
    try:
        return reader.played(match)
    except UsageError:
        raise Refusal(
            404, f"expected the id of a match that is over, got {one_line(match, 80)!r}"
        ) from None


def _record(match: RequestedMatch) -> Record:
    source = match.source
    return source if isinstance(source, Record) else source.record(match.id)


def _outcome(match: RequestedMatch) -> documents.MatchOutcome:
    result, ended = match.result, match.result.termination
    if match.view.kind != "all":
        ended = ending_for(ended, match.view.seats)
    return documents.MatchOutcome(
        scores=result.scores, points=result.points, termination=ended, also_out=result.also_out
    )
