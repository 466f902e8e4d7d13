"""Reads a class list as a spreadsheet writes it: CSV with a line of column names.

The column `name` is required; `email` (also `e-mail` or `mail`) and `team` are optional. The fields
are separated by commas, semicolons or tabs. A list is read as a whole or not at all: the error
names the first line that is wrong.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from arena.games.names import alike
from protocol.errors import UsageError, one_line
from protocol.text_files import read_text

__all__ = ["COLUMNS", "Student", "check_name", "class_in", "read_class"]

COLUMNS = ("name", "email", "team")
_SYNONYMS = {"e-mail": "email", "mail": "email"}
_SEPARATORS = ",;\t"
_NAME_LENGTH = 64  # letters, as in `hello`
_EMAIL_LENGTH = 254  # the limit of RFC 5321


class Student(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the class list; a field is None if the list has no such column."""

    name: str
    email: str | None = None
    team: str | None = None


def read_class(file: Path) -> tuple[Student, ...]:
    """Read all rows of a file except empty ones; raises OSError if it cannot be read.

    If a line is wrong, UsageError begins with file and line: `class.csv:7: …`.
    """
    return class_in(read_text(file), str(file))


def class_in(text: str, where: str) -> tuple[Student, ...]:
    """Read a class list from a text, which errors call `where`; UsageError if a line is wrong."""
    rows = _rows(text.removeprefix("\ufeff"), where)
    try:
        number, header = next(rows)
    except StopIteration:
        raise UsageError(f"{where}: expected a line of column names, got an empty file") from None
    columns = _columns(f"{where}:{number}", header)
    students: list[Student] = []
    lines: dict[str, tuple[int, str]] = {}
    for number, row in rows:
        student = _student(f"{where}:{number}", columns, row)
        key = alike(student.name)
        if key in lines:
            line, other = lines[key]
            hint = "" if other == student.name else f", as {other!r}, which looks alike"
            raise UsageError(f"{where}:{number}: {student.name!r} is in line {line} already{hint}")
        lines[key] = number, student.name
        students.append(student)
    if not students:
        raise UsageError(f"{where}: expected at least one name, got none")
    return tuple(students)


def check_name(name: str) -> str:
    """Return the name; raises UsageError if a roster cannot have it."""
    if not name:
        raise UsageError("expected a name, got none")
    _check_text("a name", name, _NAME_LENGTH)
    if not alike(name):
        raise UsageError(f"expected a name with letters that can be seen, got {name!a}")
    if "/" in alike(name):
        raise UsageError(
            "expected a name without '/', which begins the name of one of its programs, "
            f"got {name!r}"
        )
    return name


def _rows(text: str, where: str) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield the rows that are not empty, each with the number of its last line."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    separator = max(_SEPARATORS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        for row in reader:
            cells = [unicodedata.normalize("NFC", cell.strip()) for cell in row]
            if any(cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise UsageError(f"{where}:{reader.line_num}: {error}") from None


def _columns(where: str, header: Sequence[str]) -> tuple[str, ...]:
    columns = tuple(_SYNONYMS.get(name.lower(), name.lower()) for name in header)
    expected = "expected the columns name and, if you like, email and team"
    for name in columns:
        if name not in COLUMNS:
            raise UsageError(f"{where}: {expected}, got {one_line(name, 64)!r}")
        if columns.count(name) > 1:
            raise UsageError(f"{where}: {expected}, got {name!r} twice")
    if "name" not in columns:
        raise UsageError(f"{where}: {expected}, got no column name")
    return columns


def _student(where: str, columns: Sequence[str], row: Sequence[str]) -> Student:
    if any(row[len(columns) :]):
        raise UsageError(
            f"{where}: expected {len(columns)} fields, got {len(row)}; "
            "quote what has a separator in it"
        )
    cells = dict.fromkeys(columns, "") | dict(zip(columns, row, strict=False))
    try:
        check_name(cells["name"])
        _check_text("an address", cells.get("email", ""), _EMAIL_LENGTH)
        _check_text("a team", cells.get("team", ""), _NAME_LENGTH)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    return Student(**cells)


def _check_text(what: str, text: str, most: int) -> None:
    if not text.isprintable():
        raise UsageError(f"expected {what} of printable letters, got {one_line(ascii(text))}")
    if len(text) > most:
        raise UsageError(f"expected {what} of at most {most} letters, got {len(text):,}")
