"""How commands print: progress on stderr, tables and JSON on stdout, and numbers for people."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING

import click
import msgspec

from arena.cli import Interrupted
from arena.strength.figures import TOO_FEW, plural, several, signed, with_interval
from arena.strength.interval import LEVEL, Interval
from protocol.errors import ArenaError, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

__all__ = [
    "Eliminated",
    "ProgressCount",
    "amount",
    "counting",
    "duration",
    "interval_fields",
    "interval_note",
    "new_table",
    "plural",
    "print_json",
    "print_result",
    "print_stderr",
    "print_table",
    "progress",
    "several",
    "signed",
    "stdout_for_results",
    "ticking",
    "with_interval",
]

_TAIL_LINES = 20  # a traceback, and some of what was printed before


class Eliminated(ArenaError):
    """A bot is out: the result is printed by then, and this sets the exit status."""


@contextmanager
def stdout_for_results() -> Iterator[None]:
    """Send what bots in this process print to stderr, so that stdout has the result alone."""
    with redirect_stdout(sys.stderr):
        yield


class ProgressCount:
    """Counts the units of work that a command has done."""

    def __init__(self, show: Callable[[int], object]) -> None:
        self.done = 0
        self._show = show
        self._next_s = 0.0

    def tick(self, count: int = 1) -> None:
        self.done += count
        # Ten times a second at the most: a unit may take microseconds.
        if (now_s := time.monotonic()) >= self._next_s:
            self._next_s = now_s + 0.1
            self._show(self.done)


@contextmanager
def progress(what: str, total: int, unit: str, *, seed: int, less: str) -> Iterator[ProgressCount]:
    """Show a progress bar, `what`, for `total` units of work; Ctrl-C raises `Interrupted`.

    Its text says how far the command came, which `seed` repeats the run, and which options,
    `less`, shorten it.
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
    """Show that work of unknown length goes on; Ctrl-C raises `Interrupted`."""
    with _bar(what, None, unit) as count:
        try:
            yield count
        except KeyboardInterrupt:
            raise Interrupted(f"interrupted after {plural(count.done, unit)}") from None


@contextmanager
def ticking(what: str, total: int) -> Iterator[Callable[[], None]]:
    """Show a progress bar; the function that is given counts one unit. Ctrl-C is not caught."""
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


def print_json(document: object) -> None:
    """Print a document, which may contain structs, as one line of JSON."""
    click.echo(json.dumps(msgspec.to_builtins(document), ensure_ascii=False))


def print_result(document: object, text: str, *, as_json: bool) -> None:
    """Print what a command did: the document with `--json`, else the text."""
    if as_json:
        print_json(document)
    else:
        click.echo(text)


def new_table(*columns: str, words: Container[str] = ()) -> Table:
    """Make a table of numbers, which are aligned right; the columns in `words` hold text."""
    from rich.table import Table

    table = Table()
    for column in columns:
        table.add_column(column, justify="left" if column in words else "right")
    return table


def print_table(title: str, table: RenderableType) -> None:
    """Print a table as wide as the terminal, or in a file or pipe as wide as it needs to be."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 10_000
    console = Console(width=width, markup=False, highlight=False, emoji=False)
    console.print(title, soft_wrap=True)
    console.print(table)


def print_stderr(name: str, text: str) -> None:
    """Print the last lines that a bot's process wrote to its standard error, each with its name."""
    for line in text.splitlines()[-_TAIL_LINES:]:
        click.echo(one_line(f"{name}: {line.expandtabs(4)}", 1000), err=True)


def duration(seconds: float) -> str:
    """`40 s`, `12 min`, `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def uncounted(matches: int) -> str:
    """` (2 of them void or taken back)`, or nothing; tables count the others alone."""
    return f" ({matches:,} of them void or taken back)" if matches else ""


def amount(value: float) -> str:
    """`1.25`, `0.0031`: two digits behind the point, or two of a small number."""
    return f"{value:,.2f}" if abs(value) >= 0.01 or not value else f"{value:.2g}"


def interval_note(intervals: Iterable[Interval | None], unit: str) -> str:
    """The line below a table that says what its intervals are; `unit` names one value."""
    shown = set(map(bool, intervals))
    parts = []
    if True in shown:
        parts.append(
            f"[low, high] is a {100 * LEVEL:.0f} % interval: at most 1 in 20 of them is wrong. "
            f"Its unit is the {unit}."
        )
    if False in shown:
        parts.append(f"{TOO_FEW}: the values are too few or too much alike to say.")
    return " ".join(parts)


def interval_fields(interval: Interval | None) -> dict[str, object]:
    """An interval as `--json` prints it; all fields are null if there is none."""
    if interval is None:
        return {"interval": None, "level": None, "method": None}
    ends = [interval.low, interval.high]
    return {"interval": ends, "level": interval.level, "method": interval.method}
