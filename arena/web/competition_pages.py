"""The documents of competitions: the list, the overview with its bracket, the cross table, pairings, matches.

Pure but for the database that they are read from. Why a bot is out, in words, is told while a competition goes on to its owner and the
instructor only (J8): these words may tell cards. What a bot did against whom is everybody's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from arena.engine.match import Result
from arena.formats.bracket import BracketStage, advanced
from arena.formats.formats import expected_matches
from arena.formats.schedule import Pairing
from arena.formats.spec import Form
from arena.formats.standings import measure_for
from arena.records.visibility import Viewer, ViewerKind
from arena.storage.models import CompetitionRow, CompetitionState, MatchRow
from arena.storage.reader import StoreReader
from arena.web import documents
from arena.web.competition_cache import CachedCompetition, is_open_to, ruling
from arena.web.documents import Refusal, Ruling, RulingWithEvidence
from protocol.errors import UsageError
from protocol.messages import Termination

__all__ = [
    "competitions",
    "cross_table",
    "matches",
    "opponent",
    "outline",
    "overview",
    "pairing",
    "row_for",
    "rulings",
]

MOST_MATCHES = 200
"""In one answer."""
_SHARES = ("three_card_poker",)
"""Games whose league ranks by a share of matches."""
_DIGITS = 6  # of a mean in a cross table of 200 bots: as many as anybody looks at


def competitions(reader: StoreReader) -> documents.Competitions:
    """All competitions, the newest first."""
    played = reader.counts()
    lines = (_line(reader, one, played.get(one.id, 0)) for one in reader.competitions())
    return documents.Competitions(tuple(lines)[::-1])


def overview(cached: CachedCompetition, viewer: Viewer) -> documents.Overview:
    """A competition, with all but its matches and its cross table."""
    results = cached.results
    plan, progress = results.plan, results.progress
    ranking = results.ranking
    instructs = viewer.kind is ViewerKind.INSTRUCTOR
    return documents.Overview(
        id=cached.id,
        run=plan.run,
        game=plan.game,
        title=plan.rules.vocabulary.title,
        form=plan.form.value,
        state=results.competition.state.value,
        settings=plan.settings,
        limits=plan.limits,
        matches=plan.matches,
        started_at=results.competition.started_at,
        finished_at=results.competition.finished_at,
        played=results.played,
        settled=progress.settled,
        scheduled=None if plan.form is Form.LADDER else progress.scheduled,
        left_s=progress.left_s,
        measure=_measure(plan.game) if plan.form is Form.LEAGUE else None,
        standings=tuple(row_for(cached, row, viewer) for row in cached.standings),
        ranking=tuple(
            documents.RankedBots(one.rank, one.names, one.stage, one.score, one.offence)
            for one in ranking
        ),
        bracket=_bracket(cached),
        verdicts=rulings(cached, viewer),
        teams=plan.teams,
        actions=cached.reader.actions(cached.id) if instructs else None,
        not_there=plan.not_there,
    )


def cross_table(cached: CachedCompetition) -> documents.CrossTablePage:
    """Who has done how against whom, in the order of the standings.

    Raises:
        Refusal: it is no round robin.
    """
    if cached.results.plan.form is not Form.ROUND_ROBIN:
        form = cached.results.plan.form.value.replace("_", " ")
        raise Refusal(404, f"expected a round robin, {cached.id} is a {form}")
    table = cached.cross_table
    names = tuple(row.name for row in cached.standings if row.name in table)
    return documents.CrossTablePage(names, tuple(_cells(names, table)))


def pairing(cached: CachedCompetition, a: str, b: str) -> documents.PairingPage:
    """What two bots have played against each other; with the same name twice, a bot against itself.

    Raises:
        Refusal: they never met.
    """
    found = cached.reader.latest(cached.id, MOST_MATCHES + 1, bots=(a, b))
    if not found:
        raise Refusal(404, f"expected two bots that have met in {cached.id}, got {a!r} and {b!r}")
    cell = cached.cross_table.get(a, {}).get(b)
    return documents.PairingPage(
        a=a,
        b=b,
        cell=None if cell is None else opponent(b, cell),
        matches=tuple(map(outline, found[:MOST_MATCHES])),
        matches_more=len(found) > MOST_MATCHES,
    )


def matches(cached: CachedCompetition, before: int | None, limit: int) -> documents.Matches:
    """The matches of a competition, the newest first."""
    found = cached.reader.latest(cached.id, limit + 1, before=before)
    return documents.Matches(tuple(map(outline, found[:limit])), len(found) > limit)


def outline(played: MatchRow) -> documents.Outline:
    """A match in a line; nothing of it is hidden from anybody."""
    result = played.result
    return documents.Outline(
        id=played.id,
        number=played.number,
        pairing=played.pairing,
        players=played.players,
        scores=result.scores,
        points=result.points,
        kind=result.termination.kind.value,
        seat=result.termination.seat,
        started_at=played.started_at,
        finished_at=played.finished_at,
        counts=played.counts,
    )


def opponent(name: str, cell: Any) -> documents.Opponent:
    """A cell of a cross table, with the name of its column."""
    return documents.Opponent(
        name, cell.played, cell.wins, cell.draws, cell.losses, cell.score, cell.mean, cell.error
    )


def row_for(cached: CachedCompetition, row: Any, viewer: Viewer) -> Any:
    """A row of the standings, as somebody may see it."""
    ended: Termination | None = getattr(row, "eliminated", None)
    if ended is None or is_open_to(viewer, row.name, cached.is_over):
        return row
    hidden = Termination(ended.kind, ended.seat)
    return msgspec.structs.replace(row, eliminated=hidden)


def rulings(
    cached: CachedCompetition, viewer: Viewer, name: str | None = None
) -> tuple[Ruling | RulingWithEvidence, ...]:
    """Who is out and why, as somebody may know it; of one bot, if it is named."""
    found = cached.kept("rulings", lambda: cached.results.rulings)
    return tuple(
        ruling(at, verdict, viewer, cached.is_over)
        for at, verdict in found
        if name in (None, verdict.bot)
    )


# --- within ---


def _line(reader: StoreReader, one: CompetitionRow, played: int) -> documents.CompetitionLine:
    plan = one.plan
    bots = len(plan.players)
    if plan.form is Form.LADDER:  # whoever comes
        bots = max(bots, reader.entered(one.id))
    expected = expected_matches(plan)
    was_stopped = one.state is CompetitionState.STOPPED and plan.form is not Form.ELIMINATION
    if one.finished_at is not None and expected is not None and not was_stopped:
        expected = played  # those of bots that are out never were
    return documents.CompetitionLine(
        id=one.id,
        run=plan.run,
        game=plan.game,
        title=_title(one),
        form=plan.form.value,
        state=one.state.value,
        started_at=one.started_at,
        finished_at=one.finished_at,
        bots=bots,
        played=played,
        scheduled=expected,
    )


def _title(one: CompetitionRow) -> str:
    try:
        return one.plan.rules.vocabulary.title
    except UsageError:  # of a newer arena, say: the list is there for the others
        return one.plan.game


def _measure(game: str) -> documents.LeagueMeasure:
    return documents.LeagueMeasure(measure_for(game).title, game in _SHARES)


def _bracket(cached: CachedCompetition) -> tuple[documents.StageDocument, ...]:
    """All stages of an elimination that were drawn, who went on and who did not (K2); empty for other forms."""
    return tuple(_bracket_stage(cached, stage) for stage in cached.results.stages)


def _bracket_stage(cached: CachedCompetition, stage: BracketStage) -> documents.StageDocument:
    return documents.StageDocument(
        stage=stage.number,
        final=stage.is_final,
        tables=tuple(
            _bracket_table(cached, stage, pairing, result) for pairing, result in stage.tables
        ),
        byes=stage.byes,
    )


def _bracket_table(
    cached: CachedCompetition, stage: BracketStage, pairing: Pairing, result: Result | None
) -> documents.TableDocument:
    players, entered = pairing.players, cached.results.plan.players
    through = out = frozenset[int]()
    state = "playing"
    if result is not None:
        through, state = advanced(result), "over"
        out = frozenset(range(len(players))) - through
        if stage.is_final:
            out = frozenset(result.out)
    elif cached.is_over or cached.results.competition.state is CompetitionState.PAUSED:
        state = "waits"
    has_advanced = result is not None and not stage.is_final
    return documents.TableDocument(
        pairing=pairing.number,
        match=cached.results.match_of(pairing.number),
        players=players,
        house=tuple(name for name in players if name not in entered),
        scores=None if result is None else result.scores,
        advanced=_names_at(players, through) if has_advanced else None,
        out=_names_at(players, out),
        state=state,
        offender=None if result is None else result.offender,
    )


def _names_at(players: Sequence[str], seats: frozenset[int]) -> tuple[str, ...]:
    return tuple(name for seat, name in enumerate(players) if seat in seats)


def _cells(
    names: Sequence[str], table: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[int | float | None, ...]]:
    places = {name: place for place, name in enumerate(names)}
    for row, name in enumerate(names):
        for other, cell in table[name].items():
            yield (
                row,
                places[other],
                cell.played,
                cell.wins,
                cell.draws,
                cell.losses,
                cell.score,
                _rounded(cell.mean),
                _rounded(cell.error),
            )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
