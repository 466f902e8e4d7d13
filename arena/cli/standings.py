"""`arena standings`: shows how competitions stand; reads the database, also of a running arena."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence

import click
import msgspec

from arena.cli import Interrupted
from arena.cli import _competition_report as report
from arena.cli import _options as options
from arena.cli import _output as output
from arena.competitions.ledger import CompetitionReport
from arena.formats.intervals import with_interval
from arena.formats.settled import settled_note
from arena.formats.spec import Plan
from arena.results.luck_table import LuckLine, LuckTable
from arena.storage.live_results import LiveResults
from arena.storage.store import CompetitionRow, Store
from arena.strength.figures import time_of
from protocol.messages import Progress, Verdict

__all__ = ["command"]

_WITHOUT_LUCK = (
    "Without luck: the score minus what the cards gave beyond average cards; it ranks nobody. "
    "[…]: 95 % intervals, made so that at most 1 in 20 such ranges is wrong."
)
INTERVAL_S = 1.0  # between two looks of `--follow`: nobody reads faster


@click.command(name="standings")
@click.argument("competition", required=False)
@options.db_option("The database.")
@click.option(
    "--follow", is_flag=True, help="Show them again as they change, until the competition is over."
)
@options.json_option
def command(competition: str | None, db: str, follow: bool, as_json: bool) -> None:
    """Print how a competition stands: its table, and who was eliminated by what.

    COMPETITION is an id, the beginning of one, or the name of a [[run]], of which it is the latest.
    Without it, and with several in the database, they are listed. Nothing is changed, and an arena
    that runs on the database is not held up.

    --json prints the fields that `arena demo --json` has, `progress`, and `luck`: what each bot won
    per match with and without luck, as far as that was measured.
    """
    with Store(options.database(db), create=False) as store:
        if competition is None:
            competitions = store.competitions()
            if len(competitions) != 1:
                _list(store, competitions, as_json)
                return
            found = competitions[0]
        else:
            found = store.find(competition)
        results = LiveResults(store, found.id)
        if follow:
            _follow(results, as_json)
        _print(results, LuckTable(results.luck(), results.unranked).lines(), as_json)


def _print(results: LiveResults, luck: Mapping[str, LuckLine], as_json: bool) -> None:
    done = _report_of(results)
    is_unranked = results.missing is not None and not (done.standings or done.ranking)
    if as_json:
        document = {**msgspec.structs.asdict(done), "progress": results.progress, "luck": luck}
        output.print_json(document)
    elif is_unranked:
        click.echo(_title(done, results.progress))
    else:
        output.print_table(_title(done, results.progress), report.table_of(done))
        report.show_unit(done)
    if is_unranked:
        click.echo(f"arena: {results.missing}", err=True)
    if as_json:
        return
    if note := settled_note(done.standings):
        click.echo(note)
    if luck:
        _print_luck(luck, results.plan)
    for verdict in done.verdicts:
        click.echo(_evidence(verdict))


def _print_luck(luck: Mapping[str, LuckLine], plan: Plan) -> None:
    measure = None if plan.missing is not None else plan.rules.luck
    unit = "point" if measure is None else measure.unit
    table = output.new_table("bot", "matches", "per match", "without luck", words=("bot",))

    for name, line in sorted(luck.items(), key=lambda entry: -entry[1].mean):
        without = with_interval(line.mean, line.interval, output.signed, 3)
        table.add_row(name, f"{line.matches:,}", output.signed(line.gain, 3), without)
    output.print_table(f"{output.several(unit)} per match, without luck", table)
    click.echo(_WITHOUT_LUCK)


def _report_of(results: LiveResults) -> CompetitionReport:
    """The report that the arena itself prints at the end."""
    competition, ranking = results.competition, results.ranking
    return CompetitionReport(
        competition=competition.id,
        run=competition.plan.run,
        game=competition.plan.game,
        form=competition.plan.form,
        players=competition.plan.players,
        state=competition.state,
        standings=() if ranking else results.standings,
        cross_table=results.cross_table,
        ranking=ranking,
        verdicts=results.verdicts,
        played=results.played,
        seconds=results.seconds,
        not_there=competition.plan.not_there,
        unit=results.unit,
        versions=results.versions,
    )


def _title(done: CompetitionReport, progress: Progress) -> str:
    return f"{done.competition} · {report.title_of(done)} · {_how_far(progress)}"


def _how_far(progress: Progress) -> str:
    """`running, 12 of 40, about 3 min left`; the number of all matches only if it is known."""
    words = [progress.state]
    if progress.form != "ladder" and progress.scheduled:
        words.append(f"{progress.settled:,} of {progress.scheduled:,}")
    if progress.left_s is not None:
        words.append(f"about {output.duration(progress.left_s)} left")
    return ", ".join(words)


def _evidence(verdict: Verdict) -> str:
    """A verdict in one line: what happened, where, and which mechanism found it."""
    where = f"match {verdict.match}, seat {verdict.seat + 1}"
    found = f"found by {verdict.mechanism.value}"
    taken = "" if verdict.taken_ms is None else f", took {verdict.taken_ms:,.0f} ms"
    bank = f"{verdict.bank_ms:,} ms left in the bank"
    kind = verdict.kind.value
    text = f"{verdict.bot} {verdict.headline} ({kind}; {where}; {found}{taken}; {bank})"
    return " ".join(text.split())


def _list(store: Store, competitions: Sequence[CompetitionRow], as_json: bool) -> None:
    rows = [(row, LiveResults(store, row.id).progress) for row in competitions]
    if as_json:
        output.print_json([progress for _, progress in rows])
        return
    from rich.table import Column, Table

    # Ids are whole on the narrowest terminal: they are to be typed.
    id_column = Column("competition", no_wrap=True, overflow="fold")
    others = (Column(name, overflow="fold") for name in ("run", "game", "form", "began", "how far"))
    table = Table(id_column, *others)
    for row, progress in rows:
        began, form = time_of(row.started_at), progress.form.replace("_", " ")
        table.add_row(row.id, row.plan.run, progress.game, form, began, _how_far(progress))
    output.print_table(output.plural(len(rows), "competition"), table)


def _follow(results: LiveResults, as_json: bool) -> None:
    """Wait for the end, and show the standings on a terminal; Ctrl-C raises `Interrupted`."""
    try:
        if as_json or not sys.stdout.isatty():
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
        done = _report_of(results)
        title = Text(_title(done, results.progress))
        is_ranked = done.standings or done.ranking
        return Group(title, report.table_of(done)) if is_ranked else Group(title)

    console = Console(markup=False, highlight=False, emoji=False)
    with Live(view(), console=console, auto_refresh=False, transient=True) as live:
        _wait(results, lambda: live.update(view(), refresh=True))


def _wait(results: LiveResults, changed: Callable[[], None]) -> None:
    while not results.is_over:
        time.sleep(INTERVAL_S)
        if results.update():
            changed()
