"""How competitions are shown: their progress while they are played, then their standings and verdicts."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
import msgspec

from arena.cli import _shared as shared
from arena.director import Competition, Form, Report
from arena.games import game_named
from arena.standings import measure_for

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.table import Table

__all__ = ["Board", "documents", "show", "watch"]


class Board:
    """Bars that follow competitions while they are played; without a terminal it shows nothing."""

    def __init__(self, bars: Progress | None) -> None:
        self._bars = bars
        self._followed: list[tuple[TaskID, Competition]] = []

    def note(self, text: str) -> None:
        """A line above the bars."""
        if self._bars is not None:
            self._bars.console.print(text, highlight=False)

    def follow(self, title: str, competition: Competition) -> None:
        """One more bar."""
        if self._bars is not None:
            task = self._bars.add_task(title, total=None)
            self._followed.append((task, competition))

    def update(self) -> None:
        """Move the bars to where the competitions are."""
        for task, competition in self._followed:
            assert self._bars is not None, "only followed with bars"
            total = competition.scheduled or None
            self._bars.update(task, total=total, completed=competition.settled)


@contextmanager
def watch() -> Iterator[Board]:
    """A board on stderr that moves while the block runs, if that is a terminal."""
    if not sys.stderr.isatty():
        yield Board(None)
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

    columns = (
        *Progress.get_default_columns()[:2],
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        board, done = Board(bars), threading.Event()

        def move() -> None:
            while not done.wait(0.1):
                board.update()

        mover = threading.Thread(target=move, daemon=True)
        mover.start()
        try:
            yield board
        finally:
            done.set()
            mover.join()


def documents(reports: Sequence[Report]) -> list[Any]:
    """Reports for a JSON document."""
    plain: list[Any] = msgspec.to_builtins(reports)
    return plain


def show(report: Report) -> None:
    """One competition's result on stdout, for people."""
    from rich.table import Table

    game = game_named(report.game).vocabulary.title
    form = report.form.value.replace("_", " ")
    matches = shared.plural(report.played, "match")
    title = f"{game}: {form}, {matches}, {report.seconds:.1f} s"
    table = Table()
    match report.form:
        case Form.ROUND_ROBIN:
            _round_robin(table, report)
        case Form.LEAGUE:
            _league(table, report)
        case Form.ELIMINATION:
            _elimination(table, report)
    click.echo()
    shared.print_table(title, table)
    for verdict in report.verdicts:
        click.echo(f"{verdict.bot} {verdict.headline} ({verdict.kind.value})")
        click.echo(f"  {verdict.advice}")


def _round_robin(table: Table, report: Report) -> None:
    """Ranks, wins and scores, and every pairing's score beside them."""
    _columns(table, "rank", "bot", "wins", "draws", "losses", "score")
    rows = report.standings
    remaining = [row.name for row in rows if row.rank is not None]
    for name in remaining:
        table.add_column(f"v {name}", justify="right")
    for row in rows:
        cells = report.cross_table.get(row.name, {})
        against = [_score(cells.get(other)) for other in remaining]
        if row.rank is None:
            table.add_row("–", row.name, "out", "", "", "")
        else:
            counts = (str(n) for n in (row.wins, row.draws, row.losses))
            score = shared.signed(row.score)
            table.add_row(str(row.rank), row.name, *counts, score, *against)


def _league(table: Table, report: Report) -> None:
    measure = measure_for(report.game)
    share = report.game == "three_card_poker"
    _columns(table, "rank", "bot", "matches", measure.title, "±", "score")
    for row in report.standings:
        if row.rank is None:
            table.add_row("–", row.name, "out", "", "", "")
            continue
        scale, digits = (100, 1) if share else (1, 1)
        value, error = (
            "–"
            if number is None
            else f"{number * scale:.{digits}f}{' %' if share else ''}"
            for number in (row.value, row.error)
        )
        table.add_row(
            str(row.rank),
            row.name,
            str(row.played),
            value,
            error,
            shared.signed(row.score),
        )


def _elimination(table: Table, report: Report) -> None:
    _columns(table, "rank", "bot", "reached stage", "")
    for placed in report.ranking:
        for name in placed.names:
            out = "out" if placed.offence else ""
            table.add_row(str(placed.rank), name, str(placed.stage), out)


def _columns(table: Table, *names: str) -> None:
    for name in names:
        table.add_column(name, justify="left" if name in ("bot", "") else "right")


def _score(cell: Any) -> str:
    return "" if cell is None else shared.signed(cell.score)
