"""Results as one static web page: a section per competition, with its tables and links to its files.

The page is `html_report.jinja` with what is made here in it: no scripts, nothing from elsewhere, and every text escaped, as bots choose
their names and what they say themselves. Pure: summaries in, text out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from html import escape
from importlib.resources import files
from string import Template
from typing import Any
from urllib.parse import quote

import msgspec

from arena.formats.bracket import reached
from arena.formats.schedule import Ranking
from arena.formats.spec import Form
from arena.formats.standings import Cell, measure_for
from arena.storage.live_results import Summary
from protocol.messages import Verdict

__all__ = ["WIDEST", "page"]

WIDEST = 64
"""Bots: a cross table of more is in its file only, as no browser likes ten thousand cells."""

_SHADES = 3  # of winning and of losing
_DASH = "–"


def page(
    found: Sequence[tuple[Summary, Mapping[str, str]]], zone: tzinfo | None = None
) -> str:
    """The page.

    Args:
        found: the competitions, each with its files: what a link says → the path from the page, with `/`.
        zone: of the times that are shown; the machine's own if None.
    """
    template = files("arena.results").joinpath("html_report.jinja").read_text(encoding="utf-8")
    content = [
        "<h1>Results</h1>",
        f"<ul>{''.join(_entry(summary, zone) for summary, _ in found)}</ul>",
        *(_section(summary, links, zone) for summary, links in found),
        "<footer><p>Made by <code>arena export</code>. In the files seats are numbered from 0, and times are Unix seconds; "
        "<code>arena verify</code> recomputes every deal and every result from <code>matches.jsonl</code>.</p></footer>",
    ]
    return Template(template).substitute(title="Results", content="\n".join(content))


def _entry(summary: Summary, zone: tzinfo | None) -> str:
    """A link, and what tells it from others of the same title."""
    link = f'<a href="#{_escaped(quote(summary.id))}">{_title(summary)}</a>'
    about = f"{_escaped(summary.id)} · {_time(summary.started_at, zone)}"
    return f'<li>{link} <span class="about">{about}</span></li>'


def _section(summary: Summary, links: Mapping[str, str], zone: tzinfo | None) -> str:
    parts = [
        f'<section id="{_escaped(quote(summary.id))}"><h2>{_title(summary)}</h2>',
        f'<p class="about">{_about(summary, zone)}</p>',
        f'<p class="files">{"".join(_link(*link) for link in links.items())}</p>',
        *_tables(summary),
    ]
    if summary.verdicts:
        parts += ["<h3>Offences</h3>", _verdicts(summary.verdicts)]
    return "\n".join([*parts, "</section>"])


def _title(summary: Summary) -> str:
    game = summary.plan.rules.vocabulary.title
    form = summary.plan.form.value.replace("_", " ")
    run = summary.plan.run
    return _escaped(f"{run}: {game}, {form}" if run else f"{game}, {form}")


def _about(summary: Summary, zone: tzinfo | None) -> str:
    matches = f"{summary.played:,} {'match' if summary.played == 1 else 'matches'}"
    bots = f"{len(summary.plan.players):,} bots"
    began = f"began {_time(summary.started_at, zone)}"
    words = [_escaped(summary.id), summary.state.value, bots, matches, began]
    if summary.finished_at is not None:
        words.append(f"ended {_time(summary.finished_at, zone)}")
    settings = ", ".join(
        f"{name} = {msgspec.json.encode(value).decode()}"
        for name, value in summary.plan.settings.items()
    )
    return f"{' · '.join(words)}<br>{_escaped(settings)}"


def _time(at: float, zone: tzinfo | None) -> str:
    moment = datetime.fromtimestamp(at, zone).astimezone(zone)
    return (
        f'<time datetime="{moment.isoformat(timespec="seconds")}">'
        f"{moment:%Y-%m-%d %H:%M (%z)}</time>"
    )


def _link(text: str, path: str) -> str:
    return f'<a href="{_escaped(quote(path))}">{_escaped(text)}</a> '


# ---- Standings


def _tables(summary: Summary) -> Iterator[str]:
    rows = summary.standings
    match summary.plan.form:
        case Form.ROUND_ROBIN:
            yield _table(*_filled(_ROUND_ROBIN, [_round_robin(row) for row in rows]))
            yield from _cross(summary.cross_table)
        case Form.LEAGUE:
            measure = measure_for(summary.plan.game)
            columns = (
                *("rank", "bot", "matches", "forgiven"),
                *(measure.title, "±", "score"),
            )
            yield _table(*_filled(columns, [_league(row) for row in rows]))
        case Form.LADDER:
            yield _table(_LADDER, (_ladder(row) for row in rows))
        case Form.ELIMINATION if summary.ranking:
            yield _table(
                ("rank", "bot", "reached stage", "score in the final", "offence"),
                _places(summary.ranking, summary.plan.not_there),
            )
        case Form.ELIMINATION:
            bracket = (("", row.name, row.stage or None, _stands(row)) for row in rows)
            yield _table(("", "bot", "stage", "stands"), bracket)


def _places(ranking: Ranking, not_there: Sequence[str]) -> Iterator[Sequence[object]]:
    """A bot a row."""
    for placed, stage in reached(ranking):
        score = "" if placed.score is None else _signed(placed.score)
        out = "out" if placed.offence else ""
        for name in placed.names:
            yield placed.rank, name, stage, score, out
    for name in not_there:
        yield None, name, _NOT_THERE


def _unlisted(row: Any) -> str:
    """Why a row has no numbers; empty if it has."""
    if getattr(row, "not_there", False):  # which a ladder does not have
        return _NOT_THERE
    return "" if row.eliminated is None else f"out: {row.eliminated.kind.value}"


def _round_robin(row: Any) -> Sequence[object]:
    if why := _unlisted(row):
        return (None, row.name, why)
    error = None if row.error is None else round(row.error * row.completed, 1)
    counts = (row.wins, row.draws, row.losses, row.forgiven)
    return (row.rank, row.name, *counts, _signed(row.score), error, row.points)


def _league(row: Any) -> Sequence[object]:
    if why := _unlisted(row):
        return (None, row.name, why)
    value, error = (
        None if number is None else f"{number:,.3f}"
        for number in (row.value, row.error)
    )
    counts = (row.played, row.forgiven)
    return (row.rank, row.name, *counts, value, error, _signed(row.score))


def _ladder(row: Any) -> Sequence[object]:
    if why := _unlisted(row):
        return (None, row.name, why)
    ratings = (f"{value:.2f}" for value in (row.rating, row.mu, row.sigma))
    counts = (row.played, row.wins, row.draws, row.losses, row.offences)
    return (row.rank, row.name, *ratings, *counts)


def _stands(row: Any) -> str:
    out = "" if row.eliminated is None else f", {row.eliminated.kind.value}"
    return f"{row.stands.value}{out}"


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table whose second column is the bot; of one without numbers the rest is a single cell, with the reason."""
    head = "".join(
        f"<th{'' if name in ('bot', '') else _NUMBER}>{_escaped(name)}</th>"
        for name in columns
    )
    body = []
    for rank, name, *values in rows:
        bot = f'<th class="bot" scope="row">{_bot(str(name))}</th>'
        if len(values) < len(columns) - 2:
            rest = f'<td colspan="{len(columns) - 2}">{_escaped(str(values[0]))}</td>'
            body.append(f'<tr class="out"><td{_NUMBER}>{_DASH}</td>{bot}{rest}</tr>')
        else:
            rest = "".join(f"<td{_NUMBER}>{_shown(value)}</td>" for value in values)
            body.append(f"<tr><td{_NUMBER}>{_shown(rank)}</td>{bot}{rest}</tr>")
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _filled(
    columns: Sequence[str], rows: Sequence[Sequence[object]]
) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
    """The same table without columns that need more than one match, or another game, to have anything in them."""
    numbers = [row for row in rows if len(row) == len(columns)]
    empty = {
        place
        for place, name in enumerate(columns)
        if name in ("±", "points", "forgiven")
        and not any(row[place] for row in numbers)
    }

    def left(row: Sequence[Any]) -> Sequence[Any]:
        return [value for place, value in enumerate(row) if place not in empty]

    return left(columns), [left(row) for row in rows]


_NUMBER = ' class="number"'
_NOT_THERE = "not there when it started"
_ROUND_ROBIN = (
    "rank",
    "bot",
    "wins",
    "draws",
    "losses",
    "forgiven",
    "score",
    "±",
    "points",
)
_LADDER = (
    *("rank", "bot", "rating", "mu", "sigma"),
    *("matches", "wins", "draws", "losses", "offences"),
)


# ---- Who against whom


def _cross(cells: Mapping[str, Mapping[str, Cell]]) -> Iterator[str]:
    """The cross table as a heat map: by how far the row is ahead of the column, beside the greatest lead of all."""
    if not 1 < len(cells) <= WIDEST:
        return
    leads = {
        (name, other): _lead(cells, name, other)
        for name, row in cells.items()
        for other in row
    }
    greatest = max(map(abs, leads.values()), default=0)
    head = "".join(f"<th>{_bot(name)}</th>" for name in cells)
    body = "".join(
        f'<tr><th class="bot" scope="row">{_bot(name)}</th>'
        + "".join(
            _cell(
                name,
                other,
                row.get(other),
                _shade(leads.get((name, other), 0), greatest),
            )
            for other in cells
        )
        + "</tr>"
        for name, row in cells.items()
    )
    yield "<h3>Scores of the row against the column</h3>"
    yield (
        f'<div class="wide"><table class="cross"><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _lead(cells: Mapping[str, Mapping[str, Cell]], name: str, other: str) -> float:
    """By how much a bot's mean score is above its opponent's: in gin who loses scores 0, as both do in a draw (G15)."""
    mirror = cells[other].get(name)
    return (cells[name][other].mean or 0) - ((mirror and mirror.mean) or 0)


def _cell(name: str, other: str, cell: Cell | None, shade: str) -> str:
    if cell is None:
        return "<td></td>"
    error = "" if cell.error is None else f" ±{cell.error:,.2f}"
    mean = "" if cell.mean is None else f", {cell.mean:+,.2f}{error} each"
    title = (
        f"{name} v {other}: {cell.played} played, {cell.wins} won, {cell.draws} drawn, "
        f"{cell.losses} lost{mean}"
    )
    return f'<td{shade} title="{_escaped(title)}">{_signed(cell.score)}</td>'


def _shade(lead: float, greatest: float) -> str:
    if not lead:
        return ""
    strength = min(_SHADES, 1 + int(_SHADES * abs(lead) / greatest))
    return f' class="{"w" if lead > 0 else "l"}{strength}"'


# ---- Verdicts


def _verdicts(found: Sequence[Verdict]) -> str:
    head = "".join(
        f"<th>{name}</th>" for name in ("bot", "why", "what happened", "match")
    )
    body = "".join(
        f'<tr><th class="bot" scope="row">{_bot(verdict.bot)}</th>'
        f"<td>{_escaped(verdict.kind.value)}{', forgiven' if verdict.forgiven else ''}</td>"
        f'<td class="words">{_escaped(verdict.text)}'
        f"<br><small>{_escaped(_found(verdict))}</small></td>"
        f"<td>{_escaped(verdict.match)}</td></tr>"
        for verdict in found
    )
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _found(verdict: Verdict) -> str:
    """What found out, and what its author can do about it."""
    found = f"found by {verdict.mechanism.value}"
    return f"{found}; {verdict.advice}" if verdict.advice else found


# ---- Texts


def _bot(name: str) -> str:
    """A name, which cannot turn round what stands beside it."""
    return f"<bdi>{_escaped(name)}</bdi>"


def _escaped(text: str) -> str:
    return escape(text, quote=True)


def _shown(value: object) -> str:
    if value is None:
        return _DASH
    return _escaped(f"{value:,}" if isinstance(value, int | float) else str(value))


def _signed(score: int) -> str:
    return f"{score:+,}".replace("-", "−") if score else "0"
