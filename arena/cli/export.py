"""`arena export`: writes competitions as CSV, JSON and a web page into a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import msgspec

from arena.cli import Interrupted
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._results import Found, result_command
from arena.games.figures import plural
from arena.results.manifest import ExportedCompetition
from protocol.errors import ArenaError

__all__ = ["command"]


class _Written(msgspec.Struct, frozen=True):
    folder: str
    files: Sequence[str]
    competitions: Sequence[ExportedCompetition]


@result_command("export", prints=_Written)
@click.argument("folder", type=click.Path(path_type=Path))
@options.db_option("The database.")
@click.option(
    "--competition",
    "chosen",
    multiple=True,
    metavar="ID",
    help="Only this one: its id, the beginning of it, or the name of a run for its latest. "
    "May be repeated.",
)
@click.option(
    "--matches/--no-matches", default=True, help="Write every match with its record, or none."
)
@click.option(
    "--decisions",
    is_flag=True,
    help="Write decisions.csv as well: a line for every decision of every match.",
)
@click.option(
    "--costs",
    is_flag=True,
    help="Write them with what each cost, as `arena mistakes` says; some games take seconds a "
    "round.",
)
@click.option(
    "--unfinished", is_flag=True, help="Write the records of competitions that go on, too."
)
@click.option(
    "--emails/--no-emails",
    default=True,
    help="Write the e-mails of the roster into standings.csv and ranking.csv, or leave them empty.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Replace an earlier export; other files in the folder stay as they are.",
)
def command(folder: Path, db: str, chosen: tuple[str, ...], **kinds: bool) -> Found:
    """Write competitions into FOLDER, all of them or those named.

    For each there are standings.csv, cross_table.csv (and marks.csv) or ranking.csv, verdicts.csv
    with all evidence, matches.csv with a row for every seat, matches.jsonl with a match and its
    record in every line, which `arena verify` checks, and competition.json with the plan, the
    standings, the verdicts and what instructors did. index.html shows all of it in a browser.

    An export is the instructor's: a record has what players could not see, such as the cards of
    those who quit. What is over may be handed to everybody if it was written with --no-emails;
    records of a competition that goes on are written with --unfinished only.

    standings.csv and ranking.csv have the e-mail and team of the bot's owner, from the roster as it
    is now: ann/two is ann's, also if ann was renamed since. Both are empty if the owner has left
    the roster. No other file has an e-mail, and none a token.

    With --decisions there is decisions.csv, wherever records are written: which match, whose
    decision, the round, the kind of the question and its fields, the answer, the milliseconds that
    it took, and the luck of a round at the first decision of each seat. Programs such as pandas
    read it; lists and the like are JSON. Costs are empty where a game does not say them.

    FOLDER appears when everything is in it, not before.
    """
    from arena.results.audit_database import count
    from arena.results.export import Options, export
    from arena.storage.store import Store

    kinds["decisions"] |= kinds["costs"]
    with Store(db, create=False) as store:
        found = [store.find(text) for text in chosen] if chosen else store.competitions()
        ids = [competition.id for competition in found]
        if not ids:
            raise ArenaError(f"expected competitions in {options.shown(db)}, found none")
        times = kinds["matches"] + kinds["decisions"]
        total = sum(count(store, competition) for competition in ids) * times
        try:
            with output.ticking("writing", total) as tick:
                done = export(store, folder, ids, Options(**kinds), tick)
        except KeyboardInterrupt:
            raise Interrupted(f"interrupted; {folder} is as it was") from None
    written = _Written(str(folder), done.files, done.competitions)
    return written, _lines(folder, written)


def _lines(folder: Path, written: _Written) -> Iterator[str]:
    for one in written.competitions:
        records = f", {plural(one.matches, 'match')}" if one.matches else ""
        uncounted = output.uncounted(one.uncounted)
        yield f"{folder / one.folder}: {plural(len(one.files), 'file')}{records}{uncounted}"
    yield f"{folder / written.files[0]} shows them"
