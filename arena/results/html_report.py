"""Shows results as a static web page: a section per competition, with tables and links to files.

The page is the Jinja template `html_report.jinja`. It has no scripts and loads nothing from
elsewhere. Jinja escapes every text, as bots choose their own names and texts. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from arena.formats.bracket import reached
from arena.formats.intervals import with_interval
from arena.formats.settled import SettledCell, settled_note
from arena.formats.spec import Form
from arena.formats.standings import Cell
from arena.games.catalogue import game_title
from arena.games.names import versioned
from arena.games.statistics import time_of
from arena.storage.live_results import Summary

__all__ = ["WIDEST", "page"]

WIDEST = 64  # bots: a wider cross table is slow in a browser and is only in its file
_SHADES = 3  # of wins and of losses


class _ShadedCell(msgspec.Struct, frozen=True):
    """A score against one opponent, its details, and the CSS class of its colour, or ""."""

    score: int
    title: str
    shade: str


def page(found: Sequence[tuple[Summary, Mapping[str, str]]], zone: tzinfo | None = None) -> str:
    """Return the page as HTML; each competition comes with its files: link text → relative path.

    The times on the page are in `zone`, or in the machine's own zone if None.
    """
    templates = Environment(
        loader=PackageLoader("arena.results", ""),
        autoescape=True,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    templates.filters |= {
        "local": lambda at: datetime.fromtimestamp(at, zone).astimezone(zone),
        "shown": time_of,
        "number": _number,
        "signed": _signed,
        "title": _title,
        "settings": _settings,
        "table": _table,
        "notes": _notes,
        "cross_table": _cross_table,
    }
    return templates.get_template("html_report.jinja").render(sections=found)


# ---- Filters of the template


def _title(summary: Summary) -> str:
    plan = summary.plan
    title = f"{game_title(plan.game)}, {plan.form.value.replace('_', ' ')}"
    return f"{plan.run}: {title}" if plan.run else title


def _settings(summary: Summary) -> str:
    settings = summary.plan.settings.items()
    return ", ".join(f"{name} = {msgspec.json.encode(value).decode()}" for name, value in settings)


def _number(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _signed(score: float, digits: int = 0) -> str:
    text = f"{score:+,.{digits}f}".replace("-", "−")
    return text if any(digit in text for digit in "123456789") else text[1:]


def _notes(summary: Summary) -> Sequence[str]:
    """Explain the intervals and marks in the tables, if there are any."""
    unit = "" if summary.unit is None or not _is_known(summary) else summary.unit.in_words()
    return [line for line in (settled_note(summary.standings), unit) if line]


def _is_known(summary: Summary) -> bool:
    """Return whether the rules that the ranking needs are installed."""
    return summary.plan.form is not Form.LEAGUE or summary.plan.missing is None


# ---- Standings


def _table(summary: Summary) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
    """Return the columns of the table and its rows; some columns are left out if empty.

    The second column is the bot; a row without numbers ends after it with the reason.
    """
    if not _is_known(summary):
        return _UNRANKED, [(None, "–", summary.plan.missing)]
    rows: Sequence[Any] = summary.standings
    if summary.plan.form is Form.ELIMINATION:
        if summary.ranking:
            return _ELIMINATION, [*_places(summary)]
        return ("", "bot", "stage", "stands"), [
            ("", _name(row), row.stage or None, _stands(row)) for row in rows
        ]
    ranked = [row for row in rows if not _unlisted(row)]
    columns = [
        (title, cell)
        for title, cell in _COLUMNS[summary.plan.form](summary)
        if title not in ("points", "forgiven") or any(map(cell, ranked))
    ]
    return ("rank", "bot", *(title for title, _ in columns)), [
        (None, _name(row), why)
        if (why := _unlisted(row))
        else (_rank(row), _name(row), *(cell(row) for _, cell in columns))
        for row in rows
    ]


def _places(summary: Summary) -> Iterator[Sequence[object]]:
    for placed, stage in reached(summary.ranking):
        score = "" if placed.score is None else _signed(placed.score)
        out = "out" if placed.offence else ""
        for name in placed.names:
            yield placed.rank, versioned(name, summary.versions.get(name)), stage, score, out
    for name in summary.plan.not_there:
        yield None, name, _NOT_THERE


def _name(row: Any) -> str:
    return versioned(row.name, row.version)


def _unlisted(row: Any) -> str:
    """Return why a row has no numbers; "" if it has them."""
    if getattr(row, "not_there", False):  # rows of a ladder have no such field
        return _NOT_THERE
    return "" if row.eliminated is None else f"out: {row.eliminated.kind.value}"


def _rank(row: Any) -> object:
    """Return a rank, followed by the possible ranks if the run settles (K6)."""
    low, high = getattr(row, "rank_low", None), getattr(row, "rank_high", None)
    return row.rank if low == high else f"{row.rank} ({low}–{high})"


def _stands(row: Any) -> str:
    out = "" if row.eliminated is None else f", {row.eliminated.kind.value}"
    return f"{row.stands.value}{out}"


_Column: TypeAlias = tuple[str, Callable[[Any], object]]  # its title, and its cell for a row


def _counts(*names: str) -> list[_Column]:
    return [("matches" if name == "played" else name, attrgetter(name)) for name in names]


def _round_robin(summary: Summary) -> list[_Column]:
    return [
        *_counts("wins", "draws", "losses", "forgiven"),
        ("score", lambda row: _signed(row.score)),
        ("per match", lambda row: with_interval(row.mean, row.interval, _signed, 1)),
        *_counts("points"),
    ]


def _league(summary: Summary) -> list[_Column]:
    def value(row: Any) -> str:
        return with_interval(row.value, row.interval, lambda number, d: f"{number:,.{d}f}", 3)

    title = summary.plan.rules.measure.title
    score: _Column = ("score", lambda row: _signed(row.score))
    return [*_counts("played", "forgiven"), (title, value), score]


def _ladder(summary: Summary) -> list[_Column]:
    return [
        ("rating", lambda row: f"{row.rating:.2f}"),
        ("mu", lambda row: f"{row.mu:.2f}"),
        ("sigma", lambda row: f"{row.sigma:.2f}"),
        *_counts("played", "wins", "draws", "losses", "offences"),
    ]


_COLUMNS = {Form.ROUND_ROBIN: _round_robin, Form.LEAGUE: _league, Form.LADDER: _ladder}
_UNRANKED = ("", "bot", "", "")  # for a game whose rules are missing
_NOT_THERE = "not there when it started"
_ELIMINATION = ("rank", "bot", "reached stage", "score in the final", "offence")


# ---- Who against whom


def _cross_table(summary: Summary) -> Mapping[str, Sequence[_ShadedCell | None]]:
    """Return a heat map, by bot its cells against every bot; empty if there is no cross table.

    Cells are shaded by the lead of the row over the column, relative to the greatest lead.
    """
    cells: Mapping[str, Mapping[str, Cell]] = summary.cross_table
    if summary.plan.form is not Form.ROUND_ROBIN or not 1 < len(cells) <= WIDEST:
        return {}
    leads = {
        (name, other): _lead(cells, name, other) for name, row in cells.items() for other in row
    }
    greatest = max(map(abs, leads.values()), default=0)
    return {
        name: [
            _ShadedCell(
                row[other].score,
                _in_words(name, other, row[other]),
                _shade(leads[name, other], greatest),
            )
            if other in row
            else None
            for other in cells
        ]
        for name, row in cells.items()
    }


def _lead(cells: Mapping[str, Mapping[str, Cell]], name: str, other: str) -> float:
    """Return by how much a bot's mean score exceeds its opponent's: a loser may score 0 (G15)."""
    mirror = cells[other].get(name)
    return (cells[name][other].mean or 0) - ((mirror and mirror.mean) or 0)


def _in_words(name: str, other: str, cell: Cell) -> str:
    each = with_interval(cell.mean, cell.interval, _signed, 2)
    mean = "" if cell.mean is None else f", {each} each"
    mark = f" {cell.mark.value}" if isinstance(cell, SettledCell) else ""
    return (
        f"{name} v {other}:{mark} {cell.played} played, {cell.wins} won, {cell.draws} drawn, "
        f"{cell.losses} lost{mean}"
    )


def _shade(lead: float, greatest: float) -> str:
    if not lead:
        return ""
    strength = min(_SHADES, 1 + int(_SHADES * abs(lead) / greatest))
    return f"{'w' if lead > 0 else 'l'}{strength}"
