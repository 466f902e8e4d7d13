"""The list of a class, as a spreadsheet writes it: CSV with a line of column names.

`name` is required, `email`, also as `e-mail` or `mail`, and `team` may be there. Commas, semicolons and tabs may separate them, and a byte order mark is
no part of the first name. A list is read as a whole or not at all: the first line that is wrong is named.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from arena.engine.names import alike
from protocol.errors import UsageError, one_line

__all__ = ["COLUMNS", "Student", "check_name", "class_in", "read_class"]

COLUMNS = ("name", "email", "team")
_SAME = {"e-mail": "email", "mail": "email"}  # as spreadsheets of the world call it
_SEPARATORS = ",;\t"
_NAME = 64  # letters, as in `hello`
_EMAIL = 254  # RFC 5321 has room for no more


class Student(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the list; None where there is no such column, so that what is known stays."""

    name: str
    email: str | None = None
    team: str | None = None


def read_class(file: Path) -> tuple[Student, ...]:
    """All rows of a file; those that are empty do not count.

    Raises:
        UsageError: a line is wrong: the text has both, as `class.csv:7: …`.
        OSError: the file cannot be read.
    """
    return class_in(_text(file), str(file))


def class_in(text: str, where: str) -> tuple[Student, ...]:
    """The same of a text that came from somewhere else.

    Args:
        text: all lines.
        where: what they are called in what is raised, as in `class.csv:7: …`.

    Raises:
        UsageError: a line is wrong.
    """
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
            said = "" if other == student.name else f", as {other!r}, which looks alike"
            raise UsageError(f"{where}:{number}: {student.name!r} is in line {line} already{said}")
        lines[key] = number, student.name
        students.append(student)
    if not students:
        raise UsageError(f"{where}: expected at least one name, got none")
    return tuple(students)


def check_name(name: str) -> str:
    """A name for a roster, which is given back.

    Raises:
        UsageError: it cannot be one.
    """
    if not name:
        raise UsageError("expected a name, got none")
    _check_text("a name", name, _NAME)
    if not alike(name):
        raise UsageError(f"expected a name with letters that can be seen, got {name!a}")
    if "/" in alike(name):
        raise UsageError(
            f"expected a name without '/', which begins the name of one of its programs, got {name!r}"
        )
    return name


def _text(file: Path) -> str:
    data = file.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"{file}:{number}: expected UTF-8, got {data[error.start : error.start + 1]!r}; "
            "a spreadsheet saves it as 'CSV UTF-8'"
        ) from None


def _rows(text: str, where: str) -> Iterator[tuple[int, Sequence[str]]]:
    """The rows that are not empty, with the numbers of their last lines."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    separator = max(_SEPARATORS, key=first.count)
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=separator, strict=True)
    try:
        for row in reader:
            cells = [unicodedata.normalize("NFC", cell.strip()) for cell in row]
            if any(cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise UsageError(f"{where}:{reader.line_num}: {error}") from None


def _columns(where: str, header: Sequence[str]) -> tuple[str, ...]:
    columns = tuple(_SAME.get(name.lower(), name.lower()) for name in header)
    expected = "expected the columns name and, if you like, email and team"
    for name in columns:
        if name not in COLUMNS:
            raise UsageError(f"{where}: {expected}, got {one_line(name, 64)!r}")
        if columns.count(name) > 1:
            raise UsageError(f"{where}: {expected}, got {name!r} twice")
    if "name" not in columns:
        raise UsageError(f"{where}: {expected}, got no name")
    return columns


def _student(where: str, columns: Sequence[str], row: Sequence[str]) -> Student:
    if any(row[len(columns) :]):
        raise UsageError(
            f"{where}: expected {len(columns)} fields, got {len(row)}; quote what has a separator in it"
        )
    cells = dict.fromkeys(columns, "") | dict(zip(columns, row, strict=False))
    try:
        check_name(cells["name"])
        _check_text("an address", cells.get("email", ""), _EMAIL)
        _check_text("a team", cells.get("team", ""), _NAME)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    return Student(**cells)


def _check_text(what: str, text: str, most: int) -> None:
    if not text.isprintable():
        raise UsageError(f"expected {what} of printable letters, got {one_line(ascii(text))}")
    if len(text) > most:
        raise UsageError(f"expected {what} of at most {most} letters, got {len(text):,}")
