"""Reads from an arena's page how a competition stands, and where a submission plays next."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from arena.cli import _competition_report as report
from arena.cli import _output as output
from arena.cli._arena_connection import place_of
from arena.cli._arena_pages import ArenaPages
from arena.cli._results import Found
from arena.cli.standings import how_far, listing
from arena.formats.bracket import BracketRow
from arena.formats.ladder import LadderRow
from arena.formats.schedule import RankingPlace
from arena.formats.settled import SettledLeagueRow, SettledRow, settled_note
from arena.formats.spec import Form, Take
from arena.formats.standings import LeagueRow, Row
from arena.games.statistics import plural, time_of
from arena.storage.models import CompetitionReport, CompetitionState
from arena.web.documents import CompetitionLine, Competitions, Overview
from protocol.errors import ArenaError, Unreachable, UsageError
from protocol.messages import Ending, Progress

__all__ = ["next_runs", "standings_there"]

_MOST_RUNS = 3  # named in one line

_ROWS: Mapping[Form, type[Any]] = {
    Form.ROUND_ROBIN: Row,
    Form.LEAGUE: LeagueRow,
    Form.ELIMINATION: BracketRow,
    Form.LADDER: LadderRow,
}
_SETTLED: Mapping[Form, type[Any]] = {Form.ROUND_ROBIN: SettledRow, Form.LEAGUE: SettledLeagueRow}


class _Offence(msgspec.Struct, frozen=True):
    """A verdict; while the competition goes on, most viewers see only its kind (J8)."""

    bot: str
    match: str
    kind: Ending
    text: str = ""


class _Page(Overview, frozen=True, kw_only=True):
    """An `Overview` that can be decoded: rows depend on the form, verdicts on the viewer."""

    standings: tuple[msgspec.Raw, ...]
    ranking: tuple[RankingPlace, ...]  # type: ignore[assignment]
    verdicts: tuple[_Offence, ...]  # type: ignore[assignment]


def standings_there(pages: ArenaPages, competition: str | None) -> Found:
    """Return the result of `arena standings` as the arena's page gives it.

    Without a competition, the result is the only one there is, or a list of all. Raises what
    `ArenaPages.get` raises, and `UsageError` if there is no such competition.
    """
    try:
        listed = msgspec.json.decode(pages.get("competitions"), type=Competitions).competitions
        if competition is None and len(listed) != 1:
            about = (
                (row.id, row.run, row.game, row.form, row.started_at, f"{row.state}, {count}")
                for row in listed
                for count in [plural(row.played, "match")]
            )
            return listed, [listing(about)]
        document = pages.get("competitions", _found(listed, competition))
        page = msgspec.json.decode(document, type=_Page)
        return msgspec.json.decode(document), list(_lines(page))
    except msgspec.MsgspecError as error:
        place = place_of(pages.url)
        raise Unreachable(f"what answers at {place} is no arena of this release: {error}") from None


def _found(listed: tuple[CompetitionLine, ...], text: str | None) -> str:
    """Return the id for an id, the beginning of one, or the name of a run (its latest)."""
    ids = [each.id for each in listed]
    if text is None or text in ids:
        return text or ids[0]
    found = [each.id for each in listed if each.run == text][:1]  # the newest is the first
    found = found or [id_ for id_ in ids if id_.startswith(text)]
    if len(found) != 1:
        shown = ", ".join((found or ids)[:10]) or "none"
        raise UsageError(f"expected one of the arena's competitions, {shown}; got {text!r}")
    return found[0]


def _lines(page: _Page) -> output.Lines:
    form, state = Form(page.form), CompetitionState(page.state)
    row = (_ROWS if page.settle is msgspec.UNSET else _SETTLED)[form]
    standings = CompetitionReport(
        competition=page.id,
        run=page.run,
        game=page.game,
        form=form,
        players=(),
        state=state,
        standings=tuple(msgspec.json.decode(raw, type=row) for raw in page.standings),
        cross_table={},
        ranking=page.ranking,
        verdicts=(),
        played=page.played,
        seconds=(page.finished_at or time.time()) - page.started_at,
        not_there=page.not_there,
        unit=page.unit,
        versions=dict(page.versions),
    )
    about = page.id, page.run, page.game, page.form, page.state
    progress = Progress(*about, page.settled, page.scheduled or 0, page.left_s, ())
    title = f"{page.id} · {report.title_of(standings)} · {how_far(progress)}"
    yield output.TitledTable(title, report.table_of(standings))
    yield from report.unit_of(standings)
    if note := settled_note(standings.standings):
        yield note
    for offence in page.verdicts:
        text = f" {offence.text}" if offence.text else " is out"
        yield f"{offence.bot}{text} ({offence.kind.value}; match {offence.match})"


class _Run(msgspec.Struct, frozen=True):
    """A competition in the lobby: running, or to begin at `next_at` or once enough bots connect.

    `submitted` is null if it takes no submissions.
    """

    run: str
    game: str
    form: Form
    take: Take = Take.CONNECTED
    next_at: float | None = None
    submitted: int | None = None


class _Lobby(msgspec.Struct, frozen=True):
    competitions: tuple[_Run, ...]
    runs: tuple[_Run, ...]


def next_runs(url: str, games: Collection[str]) -> list[str]:
    """Describe where a submission for these games plays next: running ladders, then planned runs.

    The list is empty if the arena at `url` has no page or nothing planned.
    """
    try:
        lobby = msgspec.json.decode(ArenaPages(url).get("lobby"), type=_Lobby)
    except (ArenaError, msgspec.MsgspecError):
        return []
    found = [
        f"{each.run or each.game}, ladder, now"
        for each in lobby.competitions
        if each.game in games and each.form is Form.LADDER and each.take is not Take.CONNECTED
    ]
    for each in lobby.runs:
        if each.game in games and each.submitted is not None:
            when = "when enough bots are there" if each.next_at is None else time_of(each.next_at)
            found.append(f"{each.run}, {each.form.value.replace('_', ' ')}, {when}")
    return found[:_MOST_RUNS]
