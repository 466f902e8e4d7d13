"""Prints for commands: progress on stderr, tables and JSON on stdout, and readable numbers."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import click
import msgspec

from arena.cli import Interrupted
from arena.games.statistics import LEVEL, TOO_FEW, Interval, plural, several, signed, with_interval
from protocol.errors import ArenaError, UsageError, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

__all__ = [
    "Column",
    "Eliminated",
    "Lines",
    "ProgressCount",
    "ShownInterval",
    "TitledTable",
    "amount",
    "counting",
    "duration",
    "interval_fields",
    "interval_note",
    "new_table",
    "plural",
    "print_json",
    "print_lines",
    "print_stderr",
    "print_table",
    "progress",
    "several",
    "signed",
    "stdout_for_results",
    "table_of",
    "ticking",
    "with_interval",
]

Column: TypeAlias = "str | tuple[str, str | Callable[[Any], str | float | None]]"
"""A column of `table_of`: a field's name, or a title with a field's name or a function."""

_TAIL_LINES = 20  # room for a traceback and some output before it


class Eliminated(ArenaError):
    """A bot is eliminated. Raised after the result is printed, to set the exit status."""


@contextmanager
def stdout_for_results() -> Iterator[None]:
    """Redirect what bots in this process print to stderr, so that stdout has only the result."""
    with redirect_stdout(sys.stderr):
        yield


class ProgressCount:
    """Counts the finished units of a command's work, for its progress bar."""

    def __init__(self, show: Callable[[int], object]) -> None:
        self.done = 0
        self._show = show
        self._next_s = 0.0

    def tick(self, count: int = 1) -> None:
        self.done += count
        # At most ten updates a second: a unit may take microseconds.
        if (now_s := time.monotonic()) >= self._next_s:
            self._next_s = now_s + 0.1
            self._show(self.done)


@contextmanager
def progress(what: str, total: int, unit: str, *, seed: int, less: str) -> Iterator[ProgressCount]:
    """Show a progress bar titled `what` for `total` units of work; Ctrl-C raises `Interrupted`.

    The error says how far the command came, which `seed` repeats the run, and which options
    (`less`) shorten it.
    """
    with _bar(what, total) as count:
        try:
            yield count
        except KeyboardInterrupt:
            raise Interrupted(
                f"interrupted after {count.done:,} of {plural(total, unit)}; "
                f"--seed {seed} repeats the run, and a smaller {less} shortens it"
            ) from None


@contextmanager
def counting(what: str, unit: str) -> Iterator[ProgressCount]:
    """Show a counter for work of unknown length; Ctrl-C raises `Interrupted`."""
    with _bar(what, None, unit) as count:
        try:
            yield count
        except KeyboardInterrupt:
            raise Interrupted(f"interrupted after {plural(count.done, unit)}") from None


@contextmanager
def ticking(what: str, total: int) -> Iterator[Callable[[], None]]:
    """Show a progress bar, and give the block a function that counts one unit.

    Ctrl-C is not caught.
    """
    with _bar(what, total) as count:
        yield count.tick


@contextmanager
def _bar(what: str, total: int | None, unit: str = "") -> Iterator[ProgressCount]:
    if not sys.stderr.isatty() or total == 0:
        yield ProgressCount(lambda done: None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, TextColumn
    from rich.progress import Progress as Bar

    columns: tuple[ProgressColumn, ...] = Bar.get_default_columns()
    if total is None:
        columns = (*columns[:1], BarColumn(), TextColumn(f"{{task.completed:,}} {several(unit)}"))
    console = Console(stderr=True)
    with Bar(*columns, console=console, transient=True, redirect_stdout=False) as bar:
        task = bar.add_task(what, total=total)
        yield ProgressCount(lambda done: bar.update(task, completed=done))


def confirm(question: str, option: str) -> bool:
    """Ask a yes-or-no question at the terminal.

    Without a terminal, raises `UsageError` naming the `option` that answers yes.
    """
    if not sys.stdin.isatty():
        raise UsageError(f"expected {option}, as there is no terminal to ask at: {question}")
    return click.confirm(question, err=True)


def print_json(document: object) -> None:
    """Print a document, which may contain structs, as one line of JSON."""
    click.echo(json.dumps(msgspec.to_builtins(document), ensure_ascii=False))


def new_table(*columns: str, words: Container[str] = (), whole: Container[str] = ()) -> Table:
    """Make a table of numbers, which are aligned right; the columns in `words` hold text.

    On a narrow terminal, cells are folded, except in the columns named in `whole`.
    """
    from rich.table import Table

    table = Table()
    for column in columns:
        align: Literal["left", "right"] = "left" if column in words else "right"
        table.add_column(column, justify=align, overflow="fold", no_wrap=column in whole)
    return table


class TitledTable(NamedTuple):
    """A table with a title above it."""

    title: str
    table: RenderableType


Lines: TypeAlias = Iterable[str | TitledTable]
"""Texts and tables for people, printed one below the other."""


def table_of(
    title: str,
    rows: Sequence[Any],
    *columns: Column,
    words: Container[str] = (),
    whole: Container[str] = (),
) -> TitledTable:
    """Make a table with a row for each struct.

    A column is a field's name, or a title with a field's name or a function of the row. None is an
    empty cell. Text fields and the columns in `words` are aligned left, all others right. The
    columns in `whole` are never folded.
    """
    pairs = [(column, column) if isinstance(column, str) else column for column in columns]
    cells = [
        [getattr(row, get) if isinstance(get, str) else get(row) for _, get in pairs]
        for row in rows
    ]
    texts = [
        name
        for place, (name, get) in enumerate(pairs)
        if name in words
        or (isinstance(get, str) and any(isinstance(row[place], str) for row in cells))
    ]
    table = new_table(*(name for name, _ in pairs), words=texts, whole=whole)
    for row in cells:
        table.add_row(*(_cell(value) for value in row))
    return TitledTable(title, table)


def _cell(value: str | float | None) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else f"{value:,}"


def print_table(title: str, table: RenderableType) -> None:
    """Print a table, folded to the terminal's width; in a file or pipe it is never folded."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 10_000
    console = Console(width=width, markup=False, highlight=False, emoji=False)
    console.print(title, soft_wrap=True)
    console.print(table)


def print_lines(lines: Lines) -> None:
    """Print texts and tables, one below the other."""
    for line in lines:
        if isinstance(line, str):
            click.echo(line)
        else:
            print_table(line.title, line.table)


def print_stderr(name: str, text: str) -> None:
    """Print the last lines of a bot's standard error, each after the bot's name."""
    for line in text.splitlines()[-_TAIL_LINES:]:
        click.echo(one_line(f"{name}: {line.expandtabs(4)}", 1000), err=True)


def duration(seconds: float) -> str:
    """Format a duration, such as `40 s`, `12 min` or `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def uncounted(matches: int) -> str:
    """Return ` (2 of them void or taken back)`, or nothing for 0; tables do not count them."""
    return f" ({matches:,} of them void or taken back)" if matches else ""


def amount(value: float) -> str:
    """Format a number with two decimals, or a small one with two digits: `1.25`, `0.0031`."""
    return f"{value:,.2f}" if abs(value) >= 0.01 or not value else f"{value:.2g}"


def interval_note(intervals: Iterable[Interval | None], unit: str, least: int = 2) -> str:
    """Return the line below a table that explains its intervals.

    `unit` names what one value is, and `least` is the fewest values that give an interval.
    """
    shown = set(map(bool, intervals))
    parts = []
    if True in shown:
        parts.append(
            f"[low, high] is a {100 * LEVEL:.0f} % interval: at most 1 in 20 of them is wrong. "
            f"Its unit is the {unit}."
        )
    if False in shown:
        parts.append(
            f"{TOO_FEW}: the values are too few or too much alike to say; "
            f"it takes {least} or more that differ, each of one {unit}."
        )
    return " ".join(parts)


class ShownInterval(msgspec.Struct, frozen=True):
    """An interval as `--json` prints it; all fields are null if there are too few values."""

    interval: tuple[float, float] | None = None
    level: float | None = None
    method: str | None = None

    @classmethod
    def of(cls, interval: Interval | None) -> ShownInterval:
        if interval is None:
            return cls()
        return cls((interval.low, interval.high), interval.level, interval.method)


def interval_fields(interval: Interval | None) -> dict[str, Any]:
    """Return the fields of `ShownInterval`, for structs that extend it."""
    return msgspec.structs.asdict(ShownInterval.of(interval))
