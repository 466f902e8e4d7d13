"""`arena standings`: shows how competitions stand, from a database or an arena's page."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import click

from arena.cli import Interrupted
from arena.cli import _competition_report as report
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._arena_pages import check_database, pages_asked_for, pages_options
from arena.cli._results import Found, as_json, result_command
from arena.formats.intervals import with_interval
from arena.formats.settled import settled_note
from arena.games.statistics import plural, several, signed, time_of
from arena.results.luck_table import LuckLine, LuckTable
from arena.storage.models import CompetitionReport
from protocol.errors import UsageError
from protocol.messages import Progress, Verdict

if TYPE_CHECKING:
    from arena.storage.live_results import LiveResults

__all__ = ["command", "how_far", "listing"]

_WITHOUT_LUCK = (
    "Without luck: the score minus what the cards gave beyond average cards; it ranks nobody. "
    "[…]: 95 % intervals, made so that at most 1 in 20 such ranges is wrong."
)
INTERVAL_S = 1.0  # between two updates of `--follow`; nobody reads faster


class Standings(CompetitionReport, frozen=True, kw_only=True):
    """How a competition stands.

    Attributes:
        progress: how far it is.
        luck: what each bot won per match with and without luck, as far as that was measured.
    """

    progress: Progress
    luck: Mapping[str, LuckLine]


@result_command("standings", prints=Standings)
@click.argument("competition", required=False, callback=options.read_id)
@pages_options
@options.db_option("The database.")
@click.option(
    "--follow", is_flag=True, help="Show them again as they change, until the competition is over."
)
def command(competition: str | None, db: str, follow: bool) -> Found:
    """Print how a competition stands: its table, and who was eliminated by what.

    COMPETITION is an id, the beginning of one, or the name of a [[run]], of which it is the latest.
    Without it, and with several in the database, they are listed. Nothing is changed, and an arena
    that runs on the database is not held up.

    With --url the arena there is asked, as its page asks it, and --json prints the page's document.
    """
    if (pages := pages_asked_for()) is not None:
        if follow:
            raise UsageError("expected --follow with a database, got --url; the page follows it")
        from arena.cli._page_documents import standings_there

        return standings_there(pages, competition)
    check_database(db)
    from arena.storage.live_results import LiveResults
    from arena.storage.store import Store

    with Store(db, create=False) as store:
        if competition is None:
            ids = [each.id for each in store.competitions()]
            if len(ids) != 1:
                found = [LiveResults(store, id_) for id_ in ids]
                return [each.progress for each in found], [listing(map(_listed, found))]
        else:
            ids = [store.find(competition).id]
        results = LiveResults(store, ids[0])
        if follow:
            _follow(results)
        standings = _standings(results)
        if results.missing is not None and not (standings.standings or standings.ranking):
            click.echo(f"arena: {results.missing}", err=True)
        return standings, list(_lines(standings, results))


def _standings(results: LiveResults) -> Standings:
    """Make the same report that the arena prints at the end of a competition."""
    competition, ranking = results.competition, results.ranking
    return Standings(
        competition=competition.id,
        run=competition.plan.run,
        game=competition.plan.game,
        form=competition.plan.form,
        players=competition.plan.players,
        state=competition.state,
        standings=() if ranking else results.standings,
        cross_table=results.book.cross_table,
        ranking=ranking,
        verdicts=results.verdicts,
        played=results.book.played,
        seconds=results.seconds,
        not_there=competition.plan.not_there,
        unit=results.book.unit,
        versions=results.book.versions,
        progress=results.progress,
        luck=LuckTable(results.luck(), results.unranked).lines(),
    )


def _lines(standings: Standings, results: LiveResults) -> output.Lines:
    title = _title(standings)
    if results.missing is not None and not (standings.standings or standings.ranking):
        yield title
    else:
        yield output.TitledTable(title, report.table_of(standings))
        yield from report.unit_of(standings)
    if note := settled_note(standings.standings):
        yield note
    if standings.luck:
        measure = None if results.plan.missing is not None else results.plan.rules.luck
        unit = "point" if measure is None else measure.unit
        yield output.table_of(
            f"{several(unit)} per match, without luck",
            sorted(standings.luck.items(), key=lambda entry: -entry[1].mean),
            ("bot", lambda entry: entry[0]),
            ("matches", lambda entry: entry[1].matches),
            ("per match", lambda entry: signed(entry[1].gain, 3)),
            ("without luck", _without_luck),
            words=("bot",),
        )
        yield _WITHOUT_LUCK
    yield from map(_evidence, standings.verdicts)


def _without_luck(entry: tuple[str, LuckLine]) -> str:
    return with_interval(entry[1].mean, entry[1].interval, signed, 3)


def _title(standings: Standings) -> str:
    progress = how_far(standings.progress)
    return f"{standings.competition} · {report.title_of(standings)} · {progress}"


def how_far(progress: Progress) -> str:
    """Say `running, 12 of 40, about 3 min left`; the total is left out if it is not known."""
    words = [progress.state]
    if progress.form != "ladder" and progress.scheduled:
        words.append(f"{progress.settled:,} of {progress.scheduled:,}")
    if progress.left_s is not None:
        words.append(f"about {output.duration(progress.left_s)} left")
    return ", ".join(words)


def _evidence(verdict: Verdict) -> str:
    """Describe a verdict in one line: what happened, where, and which mechanism found it."""
    where = f"match {verdict.match}, seat {verdict.seat + 1}"
    found = f"found by {verdict.mechanism.value}"
    taken = "" if verdict.taken_ms is None else f", took {verdict.taken_ms:,.0f} ms"
    bank = f"{verdict.bank_ms:,} ms left in the bank"
    kind = verdict.kind.value
    text = f"{verdict.bot} {verdict.headline} ({kind}; {where}; {found}{taken}; {bank})"
    return " ".join(text.split())


def _listed(results: LiveResults) -> tuple[str, str, str, str, float, str]:
    row, progress = results.competition, results.progress
    about = row.id, row.plan.run, progress.game, progress.form
    return *about, row.started_at, how_far(progress)


def listing(rows: Iterable[tuple[str, str, str, str, float, str]]) -> output.TitledTable:
    """Make a table of competitions from rows of id, run, game, form, start and progress."""
    columns = ("competition", "run", "game", "form", "began", "how far")
    table = output.new_table(*columns, words=columns, whole=("competition",))  # ids are to be typed
    for id_, run, game, form, began, far in rows:
        table.add_row(id_, run, game, form.replace("_", " "), time_of(began), far)
    return output.TitledTable(plural(table.row_count, "competition"), table)


def _follow(results: LiveResults) -> None:
    """Wait for the end, with live standings on a terminal; Ctrl-C raises `Interrupted`."""
    try:
        if as_json() or not sys.stdout.isatty():
            _wait(results, lambda: None)
        else:
            _watch(results)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {results.competition.id} goes on without us") from None


def _watch(results: LiveResults) -> None:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    def view() -> Group:
        standings = _standings(results)
        title = Text(_title(standings))
        is_ranked = standings.standings or standings.ranking
        return Group(title, report.table_of(standings)) if is_ranked else Group(title)

    console = Console(markup=False, highlight=False, emoji=False)
    with Live(view(), console=console, auto_refresh=False, transient=True) as live:
        _wait(results, lambda: live.update(view(), refresh=True))


def _wait(results: LiveResults, changed: Callable[[], None]) -> None:
    while not results.is_over:
        time.sleep(INTERVAL_S)
        if results.update():
            changed()
