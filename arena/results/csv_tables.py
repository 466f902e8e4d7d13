"""Results as CSV, for spreadsheets and for programs: what the columns are, and how a value is written.

Numbers are written as numbers, with a point; what is unknown is empty. A text that a spreadsheet would take for a formula gets an
apostrophe in front: bots choose their names themselves. Pure: rows in, text out; who writes it to a file does so with `newline=""`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, TypeAlias

import msgspec

from arena.formats.schedule import Ranking
from arena.storage.models import MatchRow
from arena.storage.roster import Member
from protocol.messages import Termination, Verdict

__all__ = ["MATCHES", "Owner", "cross_table", "matches", "ranking", "standings", "text", "verdicts"]

_FORMULAS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""What a spreadsheet may take for no text, wide letters too (OWASP, CSV Injection)."""

MATCHES = (
    "match",
    "pairing",
    "counts",
    "seat",
    "name",
    "score",
    "points",
    "kind",
    "kind_seat",
    "text",
    "started_at",
    "finished_at",
    "digest",
)
"""The columns of `matches`: a row is a seat, from 0; `kind_seat` is the seat of whoever ended the match by an offence."""


def text(rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV, lines ended as RFC 4180 has it."""
    file = io.StringIO(newline="")
    csv.writer(file).writerows([_cell(value) for value in row] for row in rows)
    return file.getvalue()


Owner: TypeAlias = Callable[[str], Member | None]
"""(name of a bot) → whose it is, if somebody's on the roster."""


def standings(rows: Sequence[Any], owner: Owner) -> Iterator[Sequence[object]]:
    """The table of any form, with the fields of its rows as columns; who has no rank has a name and a reason, and no numbers.

    Args:
        rows: at least one.
        owner: knows e-mail and team.
    """
    fields = rows[0].__struct_fields__
    lead = [name for name in ("rank", "name") if name in fields]
    names = [*lead, *(name for name in fields if name not in (*lead, "eliminated"))]
    has_reasons = "eliminated" in fields
    first = len(lead)
    reasons = ("eliminated", "eliminated_text") if has_reasons else ()
    yield [*lead, *_PERSON, *names[first:], *reasons]
    for row in rows:
        is_ranked = "rank" not in fields or row.rank is not None
        values = [
            getattr(row, name) if is_ranked or name in ("name", "not_there") else None
            for name in names
        ]
        if has_reasons:
            ended: Termination | None = row.eliminated
            values += (None, None) if ended is None else (ended.kind, ended.text)
        yield [*values[:first], *_person(owner(row.name)), *values[first:]]


def cross_table(cells: Mapping[str, Mapping[str, Any]]) -> Iterator[Sequence[object]]:
    """The scores of every bot, one a row, against every bot, one a column."""
    yield ["name", *cells]
    for name, row in cells.items():
        yield [name, *(row[other].score if other in row else None for other in cells)]


def ranking(
    places: Ranking, owner: Owner, not_there: Sequence[str] = ()
) -> Iterator[Sequence[object]]:
    """The places of an elimination, a bot a row, and at the end who was not there when it started."""
    about_it = "stage", "offence", "score_in_final", "not_there"
    yield ["rank", "name", *_PERSON, *about_it]
    for placed in places:
        about = placed.stage, placed.offence, placed.score
        for name in placed.names:
            yield [placed.rank, name, *_person(owner(name)), *about, False]
    for name in not_there:
        yield [None, name, *_person(owner(name)), None, None, None, True]


def verdicts(found: Sequence[Verdict]) -> Iterator[Sequence[object]]:
    """Every elimination with all its evidence; the limits are one column, as JSON."""
    yield Verdict.__struct_fields__
    yield from map(msgspec.structs.astuple, found)


def matches(played: MatchRow) -> Iterator[Sequence[object]]:
    """The rows of one match, a seat each; the columns are `MATCHES`."""
    result = played.result
    ended = result.termination
    by_seat = zip(played.players, result.scores, result.points, strict=True)
    for seat, (name, score, points) in enumerate(by_seat):
        yield (
            played.id,
            played.pairing,
            played.counts,
            seat,
            name,
            score,
            points,
            ended.kind,
            ended.seat,
            ended.text,
            played.started_at,
            played.finished_at,
            played.digest,
        )


_PERSON = ("email", "team")  # the columns of `_person`


def _person(member: Member | None) -> tuple[str | None, str | None]:
    return (None, None) if member is None else (member.email, member.team)


def _cell(value: object) -> str | int | float:
    """A value as it stands in the file."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return value
        case Enum():
            return _guarded(str(value.value))
        case str():
            return _guarded(value)
        case _:
            return _guarded(msgspec.json.encode(value).decode())


def _guarded(said: str) -> str:
    return f"'{said}" if said.startswith(_FORMULAS) else said
