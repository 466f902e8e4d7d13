"""What can be asked about a match, and who may see how much of it (J8): the page of a match, its rounds, its record.

It is in the database, or it was one that somebody sat down to: then its record comes with the question. What is told of either is told by
`arena/web/match_rounds.py`.
"""

from __future__ import annotations

import msgspec

from arena.engine.match import Record, Result
from arena.games import game_named
from arena.records.visibility import Viewer, view_of
from arena.storage.models import CompetitionState, MatchRow
from arena.storage.reader import StoreReader, document_of
from arena.web import documents
from arena.web.competition_cache import ruling
from arena.web.documents import Refusal, Ruling, RulingWithEvidence
from arena.web.match_rounds import MOST_ROUNDS, RecordedMatch, RecordedMatches
from arena.web.play.recent import PersonalMatch
from protocol.errors import UsageError, one_line
from protocol.messages import Termination
from protocol.watching import View

__all__ = ["FoundMatch", "page", "record", "rounds", "sat_down", "written"]

_OVER = (CompetitionState.FINISHED, CompetitionState.STOPPED)


class FoundMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A match that was asked for, before its record is read.

    Attributes:
        id: its own.
        competition: the id of that, or None where somebody sat down.
        game: its name.
        players: the names by seat.
        result: how it ended.
        started_at, finished_at: in Unix seconds.
        counts: whether it is neither void nor taken back.
        view: how much of it may be seen by whoever asks.
        verdict: why somebody is out, if it ended by an offence, as whoever asks may know it.
        source: where its record is: the database, or at hand.
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


def written(reader: StoreReader, match: str, viewer: Viewer) -> FoundMatch:
    """A match of the database.

    Raises:
        Refusal: there is none of that id.
    """
    played = _played(reader, match)
    competition = reader.competition(played.competition)
    is_over = competition.state in _OVER
    verdicts = (
        ruling(at, verdict, viewer, is_over)
        for at, verdict in reader.rulings(played.competition)
        if verdict.match == match
    )
    return FoundMatch(
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


def sat_down(sat: PersonalMatch, viewer: Viewer) -> FoundMatch:
    """A match that is no competition's: it is over, and open to all."""
    kept = sat.record
    also_out = kept.also_out or ()
    # What a bot has done wrong here is its owner's business, and of those who were there.
    verdict = None
    if sat.verdict is not None:
        verdict = ruling(sat.finished_at, sat.verdict, viewer, False)
    return FoundMatch(
        id=sat.match,
        competition=None,
        game=kept.game,
        players=sat.players,
        result=Result(kept.scores, kept.points, kept.termination, also_out),
        started_at=sat.started_at,
        finished_at=sat.finished_at,
        counts=False,
        view=view_of(sat.players, True, viewer),
        verdict=verdict,
        source=kept,
    )


def page(found: FoundMatch, tellings: RecordedMatches) -> documents.MatchPage:
    """How a match ended, and its rounds in short.

    Raises:
        Refusal: it is too long, or its record cannot be played again.
    """
    kept = _record(found)
    told = _told(found, tellings, kept)
    is_whole = found.view.kind == "all"
    return documents.MatchPage(
        id=found.id,
        competition=found.competition,
        game=found.game,
        title=game_named(found.game).vocabulary.title,
        settings=kept.settings,
        players=found.players,
        view=found.view,
        result=_came(found),
        started_at=found.started_at,
        finished_at=found.finished_at,
        counts=found.counts,
        verdict=found.verdict,
        record=_cards(kept) if is_whole else None,
        decisions=told.decisions,
        rounds=told.scores,
        points=told.points,
    )


def rounds(found: FoundMatch, tellings: RecordedMatches, first: int, last: int) -> bytes:
    """Some rounds of a match, event by event.

    Raises:
        Refusal: there are no such rounds, the match is too long, or its record cannot be played again.
    """
    if not 1 <= first <= last:
        raise Refusal(400, f"expected rounds from 1, got {first} to {last}")
    if last - first >= MOST_ROUNDS:
        raise Refusal(400, f"expected at most {MOST_ROUNDS} rounds at once, got {first} to {last}")
    told = _told(found, tellings)
    if first > len(told.scores):
        raise Refusal(404, f"match {found.id} has {len(told.scores):,} rounds, got {first:,}")
    return told.rounds(first, last)


def record(found: FoundMatch) -> bytes:
    """The record of a match, as `arena export` writes it, or bare where the database has none.

    Raises:
        Refusal: it is not for whoever asks, as it tells all cards.
    """
    if found.view.kind != "all":
        raise Refusal(
            403,
            f"the record of match {found.id} tells all cards: it is here when {found.competition} is over, for the instructor now",
        )
    source = found.source
    if isinstance(source, Record):
        return source.to_json()
    return document_of(_played(source, found.id), source.stored(found.id)).to_json()


# --- within ---


def _played(reader: StoreReader, match: str) -> MatchRow:
    try:
        return reader.played(match)
    except UsageError:
        raise Refusal(
            404, f"expected the id of a match that is over, got {one_line(match, 80)!r}"
        ) from None


def _record(found: FoundMatch) -> Record:
    source = found.source
    return source if isinstance(source, Record) else source.record(found.id)


def _told(
    found: FoundMatch, tellings: RecordedMatches, kept: Record | None = None
) -> RecordedMatch:
    known = tellings.known(found.id, found.view)
    if known is not None:
        return known
    return tellings.tell(found.id, found.view, kept or _record(found))


def _came(found: FoundMatch) -> documents.MatchOutcome:
    result, ended = found.result, found.result.termination
    is_open = found.view.kind == "all" or ended.seat in found.view.seats
    if ended.is_offence and not is_open:  # it may tell cards (J8)
        ended = Termination(ended.kind, ended.seat)
    return documents.MatchOutcome(
        scores=result.scores, points=result.points, termination=ended, also_out=result.also_out
    )


def _cards(kept: Record) -> documents.Cards:
    return documents.Cards(
        seed=kept.seed, commitment=kept.commitment, nonces=kept.nonces, enforced=kept.enforced
    )
