"""How competitions are shown: their progress while they are played, then their standings and verdicts."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click
import msgspec

from arena.cli import _output as output
from arena.competitions.competition import Competition
from arena.competitions.ledger import CompetitionReport, Ledger
from arena.competitions.listener import Listener
from arena.engine.match import Result
from arena.formats.bracket import reached
from arena.formats.schedule import Pairing
from arena.formats.spec import Form
from arena.formats.standings import measure_for
from arena.games import game_named
from arena.sandbox.bot_spec import some
from protocol import messages
from protocol.errors import UsageError, one_line

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.table import Table

__all__ = [
    "Board",
    "CompetitionLog",
    "documents",
    "match_log",
    "show",
    "table_of",
    "title_of",
    "watch",
]

_WORDS = ("bot", "stands", "offence")  # columns that hold no numbers
_WIDEST = 12  # bots: a cross table of more fits no terminal; `arena export` writes it


class Board:
    """Bars that follow competitions while they are played, and the lines above them; without a terminal only the lines."""

    def __init__(self, bars: Progress | None) -> None:
        self._bars = bars
        self._followed: dict[str, tuple[TaskID, Competition]] = {}

    def note(self, text: str) -> None:
        """A line above the bars, if there are any."""
        if self._bars is not None:
            self._bars.console.print(text, highlight=False, markup=False)

    def say(self, text: str) -> None:
        """A line on stderr, with bars or without."""
        if self._bars is None:
            click.echo(text, err=True)
        else:
            self.note(text)

    def follow(self, title: str, competition: Competition) -> None:
        """One more bar."""
        if self._bars is not None:
            task = self._bars.add_task(title, total=None, left="")
            self._followed[competition.id] = task, competition

    def forget(self, competition: str) -> None:
        """It is over."""
        if self._bars is not None and competition in self._followed:
            task, _ = self._followed.pop(competition)
            self._bars.remove_task(task)

    def update(self) -> None:
        """Move the bars to where the competitions are."""
        for task, competition in tuple(self._followed.values()):
            assert self._bars is not None, "only followed with bars"
            progress = competition.progress
            self._bars.update(
                task,
                total=progress.scheduled or None,
                completed=progress.settled,
                left=_left(progress),
            )


def _left(progress: messages.Progress) -> str:
    """What to say of the time that is left, or of what is waited for."""
    if progress.waits_for:
        return f"waits for {some(progress.waits_for)}"
    if progress.state == "paused":
        return "paused"
    if progress.left_s is None:
        return ""
    return f"about {output.duration(progress.left_s)} left"


class CompetitionLog(Listener):
    """Passes on what happens in competitions: a line per match to a log, and what the instructor should know.

    Args:
        log: takes a line per match.
        tell: takes what is worth a line on stderr.
    """

    def __init__(self, log: Callable[[str], None], tell: Callable[[str], None]) -> None:
        self._log = log
        self._tell = tell

    def match_finished(self, ledger: Ledger, match: str, pairing: Pairing, result: Result) -> None:
        """A match is over."""
        names = zip(pairing.players, result.scores, strict=True)
        scores = ", ".join(f"{name} {output.signed(score)}" for name, score in names)
        ended = result.termination
        why = ended.kind.value
        if ended.seat is not None:
            why += f": {pairing.players[ended.seat]} {ended.text}"
        elif ended.text:
            why += f": {ended.text}"
        clock = time.strftime("%Y-%m-%d %H:%M:%S")
        line = f"{clock} {ledger.id} {pairing.number} {match} {scores} · {why}"
        self._log(one_line(line, 500))

    def told(self, text: str) -> None:
        """Something that the instructor should know."""
        self._tell(text)


@contextmanager
def match_log(file: str | None) -> Iterator[Callable[[str], None]]:
    """What takes a line per match: a file that is added to, `-` for stderr, or nothing.

    Raises:
        UsageError: the file cannot be written.
    """
    if file is None:
        yield lambda line: None
        return
    if file == "-":
        yield lambda line: click.echo(line, err=True)
        return
    try:
        # By lines, so that whoever follows it sees matches as they end.
        log = open(file, "a", encoding="utf-8", buffering=1)  # noqa: SIM115
    except OSError as error:
        raise UsageError(f"cannot write the log {file}: {error.strerror}") from None
    with log:

        def write(line: str) -> None:
            with suppress(OSError):  # a full disk is the store's to tell
                log.write(line + "\n")

        yield write


@contextmanager
def watch() -> Iterator[Board]:
    """A board on stderr that moves while the block runs, if that is a terminal."""
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


def documents(reports: Sequence[CompetitionReport]) -> list[Any]:
    """Reports for a JSON document."""
    plain: list[Any] = msgspec.to_builtins(reports)
    return plain


def show(report: CompetitionReport) -> None:
    """One competition's result on stdout, for people."""
    click.echo()
    output.print_table(title_of(report), table_of(report))
    for verdict in report.verdicts:
        click.echo(f"{verdict.bot} {verdict.headline} ({verdict.kind.value})")
        if verdict.advice:  # there is none for who was taken out by the instructor
            click.echo(f"  {verdict.advice}")


def title_of(report: CompetitionReport) -> str:
    """What was played, in a line."""
    game = game_named(report.game).vocabulary.title
    form = report.form.value.replace("_", " ")
    matches = output.plural(report.played, "match")
    title = f"{game}: {form}, {matches}, {report.seconds:.1f} s"
    return f"{report.run} · {title}" if report.run else title


def table_of(report: CompetitionReport) -> Table:
    """The standings, or an elimination's ranking."""
    from rich.table import Table

    table = Table()
    match report.form:
        case Form.ROUND_ROBIN:
            _round_robin(table, report)
        case Form.LEAGUE:
            _league(table, report)
        case Form.ELIMINATION if report.ranking:
            _elimination(table, report)
        case Form.ELIMINATION:
            _bracket(table, report)
        case Form.LADDER:
            _ladder(table, report)
    return table


def _round_robin(table: Table, report: CompetitionReport) -> None:
    """Ranks, wins and scores, and every pairing's score beside them."""
    rows = report.standings
    remaining = [row.name for row in rows if row.name in report.cross_table]
    forgiven = ("forgiven",) if any(row.forgiven for row in rows) else ()
    counted = ("wins", "draws", "losses", *forgiven)
    _columns(table, "rank", "bot", *counted, "score", "per match")
    columns = remaining if len(remaining) <= _WIDEST else []
    for name in columns:
        table.add_column(f"v {name}", justify="right")
    for row in rows:
        cells = report.cross_table.get(row.name, {})
        against = [_score(cells.get(other)) for other in columns]
        if why := _unlisted(row):
            table.add_row("–", row.name, why)
        else:
            counts = (str(getattr(row, name)) for name in counted)
            score = output.signed(row.score)
            mean = output.with_error(output.signed(row.mean, 1), row.error, 1)
            table.add_row(_rank(row), row.name, *counts, score, mean, *against)


def _league(table: Table, report: CompetitionReport) -> None:
    measure = measure_for(report.game)
    share = report.game == "three_card_poker"
    rows = report.standings
    counted = ("played", *(("forgiven",) if any(row.forgiven for row in rows) else ()))
    counts = ("matches", *counted[1:])
    _columns(table, "rank", "bot", *counts, measure.title, "±", "score")
    for row in rows:
        if why := _unlisted(row):
            table.add_row("–", row.name, why)
            continue
        scale, digits = (100, 1) if share else (1, 1)
        value, error = (
            "–" if number is None else f"{number * scale:.{digits}f}{' %' if share else ''}"
            for number in (row.value, row.error)
        )
        table.add_row(
            _rank(row),
            row.name,
            *(str(getattr(row, name)) for name in counted),
            value,
            error,
            output.signed(row.score),
        )


def _elimination(table: Table, report: CompetitionReport) -> None:
    _columns(table, "rank", "bot", "reached stage", "score in the final", "offence")
    for placed, stage in reached(report.ranking):
        score = "" if placed.score is None else output.signed(placed.score)
        out = "out" if placed.offence else ""
        for name in placed.names:
            table.add_row(str(placed.rank), name, stage, score, out)
    for name in report.not_there:
        table.add_row("–", name, "not there", "", "")


def _ladder(table: Table, report: CompetitionReport) -> None:
    _columns(table, "rank", "bot", "rating", "mu", "σ", "matches", "wins", "offences")
    for row in report.standings:
        if why := _unlisted(row):
            table.add_row("–", row.name, why)
            continue
        table.add_row(
            _rank(row),
            row.name,
            f"{row.rating:.1f}",
            f"{row.mu:.1f}",
            f"{row.sigma:.1f}",
            str(row.played),
            str(row.wins),
            str(row.offences or ""),
        )


def _bracket(table: Table, report: CompetitionReport) -> None:
    """An elimination that is not over: who is in, and who is out."""
    _columns(table, "bot", "stage", "stands")
    for row in report.standings:
        word = row.stands.value
        out = "" if row.eliminated is None else f", {row.eliminated.kind.value}"
        table.add_row(row.name, str(row.stage or "–"), f"{word}{out}")


def _rank(row: Any) -> str:
    """That of a row, or a dash for who has played nothing."""
    return "–" if row.rank is None else str(row.rank)


def _unlisted(row: Any) -> str:
    """Why a row has no numbers; empty if it has."""
    if row.eliminated:
        return "out"
    # Of a ladder nobody can be away.
    return "not there" if getattr(row, "not_there", False) else ""


def _columns(table: Table, *names: str) -> None:
    for name in names:
        table.add_column(name, justify="left" if name in _WORDS else "right")


def _score(cell: Any) -> str:
    return "" if cell is None else output.signed(cell.score)
