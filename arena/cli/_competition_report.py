"""Shows competitions: progress bars while they are played, then standings and verdicts."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from arena.cli import _output as output
from arena.formats.bracket import reached
from arena.formats.intervals import with_interval
from arena.formats.settled import settled_note
from arena.formats.spec import Form
from arena.games.catalogue import game_named, game_title
from arena.games.names import versioned
from arena.games.statistics import Bounds, plural, signed
from arena.sandbox.bot_spec import some
from arena.storage.models import CompetitionReport
from protocol import messages
from protocol.errors import UsageError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.table import Table

    from arena.competitions.competition import Competition

__all__ = ["Board", "lines_of", "match_log", "table_of", "title_of", "unit_of", "watch"]

_Column: TypeAlias = tuple[str, Callable[[Any], str]]
"""The title of a column of standings, and the function that makes its text from a row."""

_WORDS = ("bot", "stands", "offence")  # columns that hold no numbers
_WIDEST = 12  # bots; a larger cross table fits no terminal, but `arena export` writes it


class Board:
    """Progress bars of competitions and the lines above them; without a terminal, lines only."""

    def __init__(self, bars: Progress | None) -> None:
        self._bars = bars
        self._followed: dict[str, tuple[TaskID, Competition]] = {}

    def note(self, text: str) -> None:
        """Print a line above the bars. Does nothing without bars."""
        if self._bars is not None:
            self._bars.console.print(text, highlight=False, markup=False)

    def say(self, text: str) -> None:
        """Print a line on stderr, above the bars if there are any."""
        if self._bars is None:
            click.echo(text, err=True)
        else:
            self.note(text)

    def follow(self, title: str, competition: Competition) -> None:
        if self._bars is not None:
            task = self._bars.add_task(title, total=None, left="")
            self._followed[competition.id] = task, competition

    def forget(self, competition: str) -> None:
        """Remove the bar of a competition, given by its id. Does nothing if it has none."""
        if self._bars is not None and competition in self._followed:
            task, _ = self._followed.pop(competition)
            self._bars.remove_task(task)

    def update(self) -> None:
        for task, competition in tuple(self._followed.values()):
            assert self._bars is not None, "only followed with bars"
            progress = competition.progress
            total, left = progress.scheduled or None, _left(progress)
            self._bars.update(task, total=total, completed=progress.settled, left=left)


def _left(progress: messages.Progress) -> str:
    if progress.waits_for:
        return f"waits for {some(progress.waits_for)}"
    if progress.state == "paused":
        return "paused"
    if progress.left_s is None:
        return ""
    return f"about {output.duration(progress.left_s)} left"


@contextmanager
def match_log(file: str | None) -> Iterator[Callable[[str], None]]:
    """Open the match log that `--log` names, and give the block a function that writes a line.

    `-` is stderr, and None drops all lines. Raises `UsageError` if the file cannot be written.
    """
    if file is None:
        yield lambda line: None
        return
    if file == "-":
        yield lambda line: click.echo(line, err=True)
        return
    try:
        # Line buffered, so that `tail -f` shows matches as they end.
        log = open(file, "a", encoding="utf-8", buffering=1)  # noqa: SIM115
    except OSError as error:
        raise UsageError(f"cannot write the log {file}: {error.strerror}") from None
    with log:

        def write(line: str) -> None:
            with suppress(OSError):  # the store reports a full disk
                log.write(line + "\n")

        yield write


def _load_late() -> None:
    """Import what ratings and tables need now, while file descriptors are still free."""
    import openskill.models  # noqa: F401

    with redirect_stdout(io.StringIO()):
        output.print_table("", output.new_table("–"))


@contextmanager
def watch() -> Iterator[Board]:
    """Show a `Board` on stderr while the block runs; it has bars only on a terminal."""
    _load_late()
    if not sys.stderr.isatty():
        yield Board(None)
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        *Progress.get_default_columns()[:2],
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
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


def lines_of(report: CompetitionReport) -> output.Lines:
    """Yield one competition's result: its table, its uncertainty, and the eliminated bots."""
    yield ""
    yield output.TitledTable(title_of(report), table_of(report))
    if note := settled_note(report.standings):
        yield note
    yield from unit_of(report)
    for verdict in report.verdicts:
        yield f"{verdict.bot} {verdict.headline} ({verdict.kind.value})"
        if verdict.advice:  # a bot removed by the instructor gets no advice
            yield f"  {verdict.advice}"


def unit_of(report: CompetitionReport) -> Iterator[str]:
    """Yield a line that explains the intervals in the table, if there are any."""
    if report.unit is not None and any(row.rank is not None for row in report.standings):
        yield report.unit.in_words()


def title_of(report: CompetitionReport) -> str:
    """Return one line with the run, the game, the form, the number of matches and the duration."""
    game = game_title(report.game)
    form = report.form.value.replace("_", " ")
    matches = plural(report.played, "match")
    title = f"{game}: {form}, {matches}, {report.seconds:.1f} s"
    if not report.is_written:
        title += ", not on the disk yet"
    return f"{report.run} · {title}" if report.run else title


def table_of(report: CompetitionReport) -> Table:
    """Make the table of the standings, or of the ranking for a finished elimination."""
    if report.form is Form.ELIMINATION:
        return _elimination(report) if report.ranking else _bracket(report)
    columns = list(_COLUMNS[report.form](report))
    table = output.new_table("rank", "bot", *(title for title, _ in columns), words=_WORDS)
    for row in report.standings:
        name = versioned(row.name, row.version)
        if row.eliminated:
            table.add_row("–", name, "out")
        elif getattr(row, "not_there", False):  # nobody can be absent from a ladder
            table.add_row("–", name, "not there")
        else:
            # A bot without matches has no rank.
            rank = "–" if row.rank is None else str(row.rank)
            table.add_row(rank, name, *(cell(row) for _, cell in columns))
    return table


def _round_robin(report: CompetitionReport) -> Iterator[_Column]:
    if _has_rank_ranges(report):
        yield "ranks", _rank_range
        yield "share won", _share
    yield from _counts(report, "wins", "draws", "losses")
    yield "score", lambda row: signed(row.score)
    yield "per match", lambda row: with_interval(row.mean, row.interval, signed, 1)
    cells = report.cross_table
    opponents = [row.name for row in report.standings if row.name in cells]
    for opponent in opponents if len(opponents) <= _WIDEST else []:
        yield f"v {opponent}", partial(_against, cells, opponent)


def _share(row: Any) -> str:
    bounds = None if row.share_low is None else Bounds(row.share_low, row.share_high)
    return with_interval(row.share, bounds, _number, 3)


def _league(report: CompetitionReport) -> Iterator[_Column]:
    measure = game_named(report.game).measure
    say, digits = (_percent, 3) if measure.is_share else (_number, 1)
    if _has_rank_ranges(report):
        yield "ranks", _rank_range
    yield "matches", lambda row: str(row.played)
    yield from _counts(report)
    yield measure.title, lambda row: with_interval(row.value, row.interval, say, digits)
    yield "score", lambda row: signed(row.score)


def _ladder(report: CompetitionReport) -> Iterator[_Column]:
    yield "rating", lambda row: f"{row.rating:.1f}"
    yield "mu", lambda row: f"{row.mu:.1f}"
    yield "σ", lambda row: f"{row.sigma:.1f}"
    yield "matches", lambda row: str(row.played)
    yield "wins", lambda row: str(row.wins)
    yield "offences", lambda row: str(row.offences or "")


_COLUMNS = {Form.ROUND_ROBIN: _round_robin, Form.LEAGUE: _league, Form.LADDER: _ladder}


def _counts(report: CompetitionReport, *names: str) -> Iterator[_Column]:
    """Yield a column for each count, and one for forgiven offences if there are any."""
    if any(row.forgiven for row in report.standings):
        names = (*names, "forgiven")
    for name in names:
        yield name, lambda row, name=name: str(getattr(row, name))  # type: ignore[misc]


def _number(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}"


def _percent(share: float, digits: int) -> str:
    return f"{100 * share:.{max(0, digits - 2)}f} %"


def _has_rank_ranges(report: CompetitionReport) -> bool:
    return any(hasattr(row, "rank_low") for row in report.standings)


def _rank_range(row: Any) -> str:
    if row.rank_low is None or row.rank_low == row.rank_high:
        return str(row.rank_low or "")
    return f"{row.rank_low}–{row.rank_high}"


def _against(cells: dict[str, dict[str, Any]], opponent: str, row: Any) -> str:
    """Format a score in the cross table, after the mark of the pairing if it has one."""
    cell = cells.get(row.name, {}).get(opponent)
    if cell is None:
        return ""
    mark = getattr(cell, "mark", None)
    return signed(cell.score) if mark is None else f"{mark.value} {signed(cell.score)}"


def _elimination(report: CompetitionReport) -> Table:
    columns = ("rank", "bot", "reached stage", "score in the final", "offence")
    table = output.new_table(*columns, words=_WORDS)
    for placed, stage in reached(report.ranking):
        score = "" if placed.score is None else signed(placed.score)
        out = "out" if placed.offence else ""
        for name in placed.names:
            shown = versioned(name, report.versions.get(name))
            table.add_row(str(placed.rank), shown, stage, score, out)
    for name in report.not_there:
        table.add_row("–", name, "not there", "", "")
    return table


def _bracket(report: CompetitionReport) -> Table:
    """Make the table of an unfinished elimination: which bots are still in and which are out."""
    table = output.new_table("bot", "stage", "stands", words=_WORDS)
    for row in report.standings:
        out = "" if row.eliminated is None else f", {row.eliminated.kind.value}"
        name = versioned(row.name, row.version)
        table.add_row(name, str(row.stage or "–"), f"{row.stands.value}{out}")
    return table
