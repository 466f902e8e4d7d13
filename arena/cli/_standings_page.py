"""How a competition stands by the page of its arena, for `arena standings --url`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import msgspec

from arena.cli import _competition_report as report
from arena.cli import _output as output
from arena.cli._arena_connection import place_of
from arena.cli._arena_pages import ArenaPages
from arena.cli._results import Found
from arena.cli.standings import how_far
from arena.formats.bracket import BracketRow
from arena.formats.ladder import LadderRow
from arena.formats.schedule import RankingPlace
from arena.formats.settled import SettledLeagueRow, SettledRow, settled_note
from arena.formats.spec import Form
from arena.formats.standings import LeagueRow, Row
from arena.games.statistics import plural, time_of
from arena.storage.models import CompetitionReport, CompetitionState
from arena.web.documents import CompetitionLine, Competitions, Overview
from protocol.errors import Unreachable, UsageError
from protocol.messages import Ending, Progress

__all__ = ["standings_there"]

_ROWS: Mapping[Form, type[Any]] = {
    Form.ROUND_ROBIN: Row,
    Form.LEAGUE: LeagueRow,
    Form.ELIMINATION: BracketRow,
    Form.LADDER: LadderRow,
}
_SETTLED: Mapping[Form, type[Any]] = {Form.ROUND_ROBIN: SettledRow, Form.LEAGUE: SettledLeagueRow}


class _Offence(msgspec.Struct, frozen=True):
    """A verdict, of which most see only the kind while the competition goes on (J8)."""

    bot: str
    match: str
    kind: Ending
    text: str = ""


class _Page(Overview, frozen=True, kw_only=True):
    """An overview that can be decoded: its rows depend on the form, its verdicts on the viewer."""

    standings: tuple[msgspec.Raw, ...]
    ranking: tuple[RankingPlace, ...]  # type: ignore[assignment]
    verdicts: tuple[_Offence, ...]  # type: ignore[assignment]


def standings_there(pages: ArenaPages, competition: str | None) -> Found:
    """What `arena standings` gives back; without a competition the only one, or a list of all.

    Raises what `ArenaPages.get` raises, and `UsageError` if there is no such competition.
    """
    try:
        listed = msgspec.json.decode(pages.get("competitions"), type=Competitions).competitions
        if competition is None and len(listed) != 1:
            return listed, [_table(listed)]
        document = pages.get("competitions", _found(listed, competition))
        page = msgspec.json.decode(document, type=_Page)
        return msgspec.json.decode(document), list(_lines(page))
    except msgspec.MsgspecError as error:
        place = place_of(pages.url)
        raise Unreachable(f"what answers at {place} is no arena of this release: {error}") from None


def _found(listed: tuple[CompetitionLine, ...], text: str | None) -> str:
    """The id that is meant by an id, the beginning of one, or the name of a run: its latest."""
    ids = [each.id for each in listed]
    if text is None or text in ids:
        return text or ids[0]
    found = [each.id for each in listed if each.run == text][:1]  # the newest is the first
    found = found or [id_ for id_ in ids if id_.startswith(text)]
    if len(found) != 1:
        shown = ", ".join((found or ids)[:10]) or "none"
        raise UsageError(f"expected one of the arena's competitions, {shown}; got {text!r}")
    return found[0]


def _table(listed: tuple[CompetitionLine, ...]) -> output.TitledTable:
    return output.table_of(
        plural(len(listed), "competition"),
        listed,
        ("competition", lambda row: row.id),
        ("run", lambda row: row.run),
        ("game", lambda row: row.game),
        ("form", lambda row: row.form.replace("_", " ")),
        ("began", lambda row: time_of(row.started_at)),
        ("how far", lambda row: f"{row.state}, {plural(row.played, 'match')}"),
        words=("competition", "run", "game", "form", "began", "how far"),
        whole=("competition",),
    )


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
