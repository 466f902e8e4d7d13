"""Results as CSV, for spreadsheets and programs: the columns, and how a value is written.

Numbers have a decimal point, and unknown values are empty. A text that a spreadsheet would take for
a formula gets a leading apostrophe, as bots choose their own names. Every CSV file is written
through `new_file`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, TextIO, TypeAlias

import msgspec

from arena.formats.schedule import Ranking
from arena.records.decisions import RecordedDecision
from arena.results.luck_table import LuckLine
from arena.storage.models import MatchRow
from arena.storage.roster import Member
from protocol.messages import Termination, Verdict
from protocol.vocabulary import Vocabulary

__all__ = [
    "MATCHES",
    "Owner",
    "cross_table",
    "decision_columns",
    "decisions",
    "luck",
    "matches",
    "new_file",
    "ranking",
    "standings",
    "verdicts",
    "write",
]

# The beginnings of formulas, also in full-width letters (OWASP, CSV Injection).
_FORMULAS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")

MATCHES = (
    *("match", "pairing", "counts", "seat", "name", "version", "score", "points"),
    *("kind", "kind_seat", "text", "started_at", "finished_at", "digest"),
)
"""The columns of `matches`; `seat` counts from 0, `kind_seat` is the offender's."""


def new_file(file: Path | int) -> TextIO:
    """Open a file, by path or descriptor, for `write`.

    It begins with a byte order mark, as Excel would otherwise read `Müller` as `MÃ¼ller`. Programs
    read the file as `utf-8-sig`.
    """
    return open(file, "w", encoding="utf-8-sig", newline="")


def write(file: TextIO, rows: Iterable[Sequence[object]]) -> None:
    """Write rows, one at a time, with line ends as in RFC 4180."""
    csv.writer(file).writerows([_cell(value) for value in row] for row in rows)


Owner: TypeAlias = Callable[[str], Member | None]  # by the bot's name; None if not on the roster


def standings(rows: Sequence[Any], owner: Owner) -> Iterator[Sequence[object]]:
    """Yield the standings of any form; the columns are the fields of the rows (at least one row).

    A row without a rank has a name, a version and a reason, and no numbers. The last two columns,
    `low` and `high`, are the ends of the 95 % interval.
    """
    fields = rows[0].__struct_fields__
    lead = [name for name in ("rank", "name") if name in fields]
    apart = (*lead, "version", "eliminated", *_INTERVAL)
    names = [*lead, "version", *(name for name in fields if name not in apart)]
    has_reasons = "eliminated" in fields
    first = len(lead)
    reasons = ("eliminated", "eliminated_text") if has_reasons else ()
    ends = ("low", "high") if "interval" in fields else ()
    yield [*lead, *_PERSON, *names[first:], *reasons, *ends]
    for row in rows:
        is_ranked = "rank" not in fields or row.rank is not None
        values = [getattr(row, name) if is_ranked or name in _UNRANKED else None for name in names]
        if has_reasons:
            ended: Termination | None = row.eliminated
            values += (None, None) if ended is None else (ended.kind, ended.text)
        if ends:
            values += row.interval or (None, None)
        yield [*values[:first], *_person(owner(row.name)), *values[first:]]


def cross_table(
    cells: Mapping[str, Mapping[str, Any]], field: str = "score"
) -> Iterator[Sequence[object]]:
    """Yield the cross table: for each bot a row, with a column for its score against each bot.

    Another `field` replaces the score; `mark` is what is certain about the pair (K6).
    """
    yield ["name", *cells]
    for name, row in cells.items():
        yield [name, *(getattr(row[other], field) if other in row else None for other in cells)]


def ranking(
    places: Ranking, owner: Owner, not_there: Sequence[str] = (), versions: Mapping[str, str] = {}
) -> Iterator[Sequence[object]]:
    """Yield an elimination's places, a row per bot, then the bots that were not there."""
    about_it = "version", "stage", "offence", "score_in_final", "not_there"
    yield ["rank", "name", *_PERSON, *about_it]
    for placed in places:
        about = placed.stage, placed.offence, placed.score
        for name in placed.names:
            version = versions.get(name)
            yield [placed.rank, name, *_person(owner(name)), version, *about, False]
    for name in not_there:
        yield [None, name, *_person(owner(name)), None, None, None, None, True]


def luck(lines: Mapping[str, LuckLine]) -> Iterator[Sequence[object]]:
    """Yield each bot's gain per match, with luck (`gain`) and without, in its game's unit."""
    yield "name", "matches", "rounds", "gain", "without_luck", "low", "high"
    for name, line in lines.items():
        ends = line.interval or (None, None)
        yield name, line.matches, line.rounds, line.gain, line.mean, *ends


def verdicts(found: Sequence[Verdict]) -> Iterator[Sequence[object]]:
    """Yield every verdict with all its evidence; the limits are one column, as JSON."""
    yield Verdict.__struct_fields__
    yield from map(msgspec.structs.astuple, found)


def matches(played: MatchRow) -> Iterator[Sequence[object]]:
    """Yield the rows of one match, one per seat; the columns are `MATCHES`."""
    result = played.result
    ended = result.termination
    versions = played.versions or (None,) * len(played.players)
    by_seat = zip(played.players, versions, result.scores, result.points, strict=True)
    for seat, by in enumerate(by_seat):
        start = played.id, played.pairing, played.counts, seat, *by
        end = played.started_at, played.finished_at, played.digest
        yield *start, ended.kind, ended.seat, ended.text, *end


def decision_columns(game: Vocabulary, *, costs: bool) -> tuple[str, ...]:
    """Return the columns of `decisions`: a question's fields as `asked_FIELD`, without `legal`."""
    asked = (f"asked_{field}" for field in _asked_fields(game))
    return *_DECISION, *asked, "answer", "time_ms", "luck", *(_COST if costs else ())


def decisions(
    game: Vocabulary, played: MatchRow, made: Iterable[RecordedDecision], *, costs: bool
) -> Iterator[Sequence[object]]:
    """Yield the rows of one match, one per decision; the columns are `decision_columns`."""
    versions = played.versions or (None,) * len(played.players)
    fields = _asked_fields(game)
    for each in made:
        seat, asked = each.seat, each.question
        who = seat, played.players[seat], versions[seat]
        what = (getattr(asked, field, None) for field in fields)
        took = each.answer, each.time_ms, each.luck
        cost = each.cost
        cells: tuple[object, ...] = (None,) * len(_COST)
        if cost is not None:
            cells = cost.cost, cost.error, cost.unit, cost.best, cost.grade
        start = played.id, played.counts, each.index, *who, each.round, each.number, asked.kind
        yield *start, *what, *took, *(cells if costs else ())


_DECISION = ("match", "counts", "index", "seat", "name", "version", "round", "number", "kind")
_COST = ("cost", "cost_error", "cost_unit", "best", "grade")


def _asked_fields(game: Vocabulary) -> list[str]:
    """Return the fields of all questions of a game except `legal`, each once."""
    every = (field for kind in game.questions.values() for field in kind.__struct_fields__)
    return [field for field in dict.fromkeys(every) if field != "legal"]


_UNRANKED = ("name", "version", "not_there")  # the fields that a row without a rank has
_INTERVAL = ("interval", "level", "method")  # fields that CSV replaces by `low` and `high`
_PERSON = ("email", "team")  # the columns of `_person`


def _person(member: Member | None) -> tuple[str | None, str | None]:
    return (None, None) if member is None else (member.email, member.team)


def _cell(value: object) -> str | int | float:
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


def _guarded(value: str) -> str:
    return f"'{value}" if value.startswith(_FORMULAS) else value
