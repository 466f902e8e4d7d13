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
from arena.records.visibility import Kind, Viewer
from arena.storage.models import Competition, Played, State
from arena.storage.reader import Archive
from arena.web import documents
from arena.web.competition_cache import Followed, is_open_to, ruling
from arena.web.documents import Refusal, Ruled, Ruling
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


def competitions(archive: Archive) -> documents.Competitions:
    """All competitions, the newest first."""
    played = archive.counts()
    lines = (
        _line(archive, one, played.get(one.id, 0)) for one in archive.competitions()
    )
    return documents.Competitions(tuple(lines)[::-1])


def overview(followed: Followed, viewer: Viewer) -> documents.Overview:
    """A competition, with all but its matches and its cross table."""
    results = followed.results
    plan, progress = results.plan, results.progress
    ranking = results.ranking
    instructs = viewer.kind is Kind.INSTRUCTOR
    return documents.Overview(
        id=followed.id,
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
        standings=tuple(row_for(followed, row, viewer) for row in followed.standings),
        ranking=tuple(
            documents.Place(one.rank, one.names, one.stage, one.score, one.offence)
            for one in ranking
        ),
        bracket=_bracket(followed),
        verdicts=rulings(followed, viewer),
        teams=plan.teams,
        actions=followed.archive.actions(followed.id) if instructs else None,
        not_there=plan.not_there,
    )


def cross_table(followed: Followed) -> documents.CrossTable:
    """Who has done how against whom, in the order of the standings.

    Raises:
        Refusal: it is no round robin.
    """
    if followed.results.plan.form is not Form.ROUND_ROBIN:
        form = followed.results.plan.form.value.replace("_", " ")
        raise Refusal(404, f"expected a round robin, {followed.id} is a {form}")
    table = followed.cross_table
    names = tuple(row.name for row in followed.standings if row.name in table)
    return documents.CrossTable(names, tuple(_cells(names, table)))


def pairing(followed: Followed, a: str, b: str) -> documents.PairingPage:
    """What two bots have played against each other; with the same name twice, a bot against itself.

    Raises:
        Refusal: they never met.
    """
    found = followed.archive.latest(followed.id, MOST_MATCHES + 1, bots=(a, b))
    if not found:
        raise Refusal(
            404,
            f"expected two bots that have met in {followed.id}, got {a!r} and {b!r}",
        )
    cell = followed.cross_table.get(a, {}).get(b)
    return documents.PairingPage(
        a=a,
        b=b,
        cell=None if cell is None else opponent(b, cell),
        matches=tuple(map(outline, found[:MOST_MATCHES])),
        matches_more=len(found) > MOST_MATCHES,
    )


def matches(followed: Followed, before: int | None, limit: int) -> documents.Matches:
    """The matches of a competition, the newest first."""
    found = followed.archive.latest(followed.id, limit + 1, before=before)
    return documents.Matches(tuple(map(outline, found[:limit])), len(found) > limit)


def outline(played: Played) -> documents.Outline:
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
        name,
        cell.played,
        cell.wins,
        cell.draws,
        cell.losses,
        cell.score,
        cell.mean,
        cell.error,
    )


def row_for(followed: Followed, row: Any, viewer: Viewer) -> Any:
    """A row of the standings, as somebody may see it."""
    ended: Termination | None = getattr(row, "eliminated", None)
    if ended is None or is_open_to(viewer, row.name, followed.is_over):
        return row
    hidden = Termination(ended.kind, ended.seat)
    return msgspec.structs.replace(row, eliminated=hidden)


def rulings(
    followed: Followed, viewer: Viewer, name: str | None = None
) -> tuple[Ruling | Ruled, ...]:
    """Who is out and why, as somebody may know it; of one bot, if it is named."""
    found = followed.kept("rulings", lambda: followed.results.rulings)
    return tuple(
        ruling(at, verdict, viewer, followed.is_over)
        for at, verdict in found
        if name in (None, verdict.bot)
    )


# --- within ---


def _line(archive: Archive, one: Competition, played: int) -> documents.Line:
    plan = one.plan
    bots = len(plan.players)
    if plan.form is Form.LADDER:  # whoever comes
        bots = max(bots, archive.entered(one.id))
    expected = expected_matches(plan)
    was_stopped = one.state is State.STOPPED and plan.form is not Form.ELIMINATION
    if one.finished_at is not None and expected is not None and not was_stopped:
        expected = played  # those of bots that are out never were
    return documents.Line(
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


def _title(one: Competition) -> str:
    try:
        return one.plan.rules.vocabulary.title
    except UsageError:  # of a newer arena, say: the list is there for the others
        return one.plan.game


def _measure(game: str) -> documents.League:
    return documents.League(measure_for(game).title, game in _SHARES)


def _bracket(followed: Followed) -> tuple[documents.Stage, ...]:
    """All stages of an elimination that were drawn, who went on and who did not (K2); empty for other forms."""
    return tuple(_bracket_stage(followed, stage) for stage in followed.results.stages)


def _bracket_stage(followed: Followed, stage: BracketStage) -> documents.Stage:
    return documents.Stage(
        stage=stage.number,
        final=stage.is_final,
        tables=tuple(
            _bracket_table(followed, stage, pairing, result)
            for pairing, result in stage.tables
        ),
        byes=stage.byes,
    )


def _bracket_table(
    followed: Followed, stage: BracketStage, pairing: Pairing, result: Result | None
) -> documents.Table:
    players, entered = pairing.players, followed.results.plan.players
    through = out = frozenset[int]()
    state = "playing"
    if result is not None:
        through, state = advanced(result), "over"
        out = frozenset(range(len(players))) - through
        if stage.is_final:
            out = frozenset(result.out)
    elif followed.is_over or followed.results.competition.state is State.PAUSED:
        state = "waits"
    has_advanced = result is not None and not stage.is_final
    return documents.Table(
        pairing=pairing.number,
        match=followed.results.match_of(pairing.number),
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
