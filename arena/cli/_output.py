"""How commands print: progress on stderr, tables and JSON on stdout, and numbers for people."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING

import click

from arena.cli import Interrupted
from protocol.errors import ArenaError, one_line

if TYPE_CHECKING:
    from rich.table import Table

__all__ = [
    "Eliminated",
    "ProgressCount",
    "duration",
    "plural",
    "print_json",
    "print_stderr",
    "print_table",
    "progress",
    "signed",
    "stdout_for_results",
    "ticking",
    "with_error",
]

_TAIL_LINES = 20  # a traceback, and some of what was printed before


class Eliminated(ArenaError):
    """A bot is out; the result says so too, this makes it the command's exit status."""


@contextmanager
def stdout_for_results() -> Iterator[None]:
    """While bots are loaded and play: what they print goes to stderr, so that stdout holds the result alone."""
    with redirect_stdout(sys.stderr):
        yield


class ProgressCount:
    """How far a command has come."""

    def __init__(self, show: Callable[[int], object]) -> None:
        self.done = 0
        self._show = show
        self._next_s = 0.0

    def tick(self) -> None:
        """One more unit is done; shown at most ten times a second, as a unit may take microseconds."""
        self.done += 1
        if (now_s := time.monotonic()) >= self._next_s:
            self._next_s = now_s + 0.1
            self._show(self.done)


@contextmanager
def progress(what: str, total: int, unit: str, *, seed: int, less: str) -> Iterator[ProgressCount]:
    """A progress bar on stderr where that is a terminal.

    Args:
        what: the bar's title.
        total: how many units there are.
        unit: the name of one.
        seed: what begins the same again.
        less: the options that make it take less time.

    Raises:
        Interrupted: Ctrl-C; it says how far the command came and how to go on.
    """
    with _bar(what, total) as counted:
        try:
            yield counted
        except KeyboardInterrupt:
            raise Interrupted(
                f"interrupted after {counted.done:,} of {plural(total, unit)}; "
                f"--seed {seed} begins the same again, fewer {less} take less time"
            ) from None


@contextmanager
def ticking(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar for what may be begun again at no cost; what is given is called once per unit."""
    with _bar(what, total) as counted:
        yield counted.tick


@contextmanager
def _bar(what: str, total: int) -> Iterator[ProgressCount]:
    """A bar on stderr where that is a terminal and there is something to wait for."""
    if not sys.stderr.isatty() or not total:
        yield ProgressCount(lambda done: None)
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        task = bar.add_task(what, total=total)
        yield ProgressCount(lambda done: bar.update(task, completed=done))


def print_json(document: object) -> None:
    """The document on stdout, in one line."""
    click.echo(json.dumps(document, ensure_ascii=False))


def print_table(title: str, table: Table) -> None:
    """The table on stdout: as wide as the terminal, or as wide as it needs to be in a file or pipe."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 10_000
    console = Console(width=width, markup=False, highlight=False, emoji=False)
    console.print(title, soft_wrap=True)
    console.print(table)


def print_stderr(name: str, text: str) -> None:
    """The end of what a bot's process wrote to its standard error, on ours."""
    for line in text.splitlines()[-_TAIL_LINES:]:
        click.echo(one_line(f"{name}: {line.expandtabs(4)}", 1000), err=True)


def duration(seconds: float) -> str:
    """`40 s`, `12 min`, `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def plural(count: int, noun: str) -> str:
    """`1 match`, `2 matches`, `1,000 hands`."""
    ending = "" if count == 1 else "es" if noun.endswith("ch") else "s"
    return f"{count:,} {noun}{ending}"


def signed(value: float | None, digits: int = 0) -> str:
    """`+12`, `−3`, `0`, or a dash for what is unknown."""
    if value is None:
        return "–"
    text = f"{value:+,.{digits}f}"
    return text[1:] if not any(digit in text for digit in "123456789") else text


def with_error(value: str, error: float | None, digits: int = 0) -> str:
    """`+12 ±3`, without the error if it is unknown."""
    return value if error is None else f"{value} ±{error:,.{digits}f}"
