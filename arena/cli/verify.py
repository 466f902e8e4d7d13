"""`arena verify`: checks databases, exports and exported matches by their records."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from arena.cli import DONE, UNVERIFIED
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._arena_pages import is_database_named, pages_asked_for, pages_options
from arena.cli._results import Found, as_json, result_command
from arena.games.match import Record
from arena.games.statistics import plural
from arena.records import document as sheet
from arena.records import verify
from arena.records.document import UNREADABLE, MatchDocument
from arena.records.seat_document import SeatDocument
from arena.results.audit import Flaw
from protocol.errors import ArenaError, UsageError, one_line
from protocol.text_files import text_lines

if TYPE_CHECKING:
    from arena.cli._found_match import FoundRecord

__all__ = ["command"]

_JSON = (b"{", b"[")  # how a document begins; a database of SQLite does not
_MARKS_AND_SPACE = b" \t\r\n\0\xef\xbb\xbf\xff\xfe"  # may come before a document
_LONGEST_LINE = 1000


class _Findings(msgspec.Struct):
    """What was found so far; each finding is also printed at once unless --json is given."""

    matches: int = 0
    uncounted: int = 0
    unverified: int = 0
    competitions: int = 0
    failed: list[Flaw] = []
    notes: list[str] = []

    def add_flaw(self, flaw: Flaw) -> None:
        self.failed.append(flaw)
        where = f"competition {flaw.competition}"
        if flaw.match is not None:
            where = f"match {flaw.match}"
        _say(f"{where}: {flaw.text}")

    def add_note(self, text: str) -> None:
        self.notes.append(text)
        _say(f"note: {text}")

    @property
    def summary(self) -> str:
        what = plural(self.matches, "match") + output.uncounted(self.uncounted)
        if self.competitions:
            what += f" of {plural(self.competitions, 'competition')}"
        if not self.failed and self.unverified:
            return f"{what}: {self.unverified:,} not verified"
        if not self.failed:
            return f"{what}: fits" if self.matches == 1 else f"{what}: all fit"
        matches = len({flaw.match for flaw in self.failed if flaw.match is not None})
        others = sum(flaw.match is None for flaw in self.failed)
        parts = [plural(matches, "match")] if matches or not others else []
        if others:
            parts.append(plural(others, "other flaw"))
        return f"{what}: {' and '.join(parts)} not as recorded"


def _say(line: str) -> None:
    if not as_json():
        click.echo(one_line(line, _LONGEST_LINE))


@result_command("verify", prints=_Findings)
@click.argument("places", nargs=-1, required=True, metavar="DATABASE|URL|FOLDER|FILE|MATCH...")
@click.option(
    "--competition",
    metavar="ID",
    help="Check this competition of a database alone: its id, "
    "the beginning of it, or the name of its run.",
)
@pages_options
@options.db_option("The database that has each MATCH.")
def command(
    places: tuple[str, ...], competition: str | None, db: str
) -> Generator[Found, None, int]:
    """Recompute every deal and every result, and say which match is not what its record says, and
    why.

    Checks a database (a file or a URL), a folder that `arena export` has written, or matches as it
    and `arena replay --json` write them: that no byte of a match was changed since it was written,
    that the seed is the one that was committed to, that cards and answers make the scores, and, in
    a database, that every competition has the matches that its schedule asks for, each once.

    MATCH is the link to the page of a match, or with --db or --url its id, as for `arena replay`.

    Matches of a game from outside can only be verified by the version of its package that they
    were played by. If another is installed here, or none, a line says which it takes.

    Prints a line for every match that does not fit; the exit status is 0 if all do, 1 if one does
    not, and 3 if nothing is wrong and some could not be verified.
    """
    found = _Findings()
    for place in places:
        path = Path(place)
        if (match := _match_of(place, db)) is not None:
            found.matches += 1
            document = match.seen or match.document or match.record
            if why := _check_document(found, place, document):
                found.add_note(f"{place}: cannot be verified: {why}")
        elif not path.is_dir() and not _is_json(place):
            _check_database(found, place, competition)
        elif competition is not None:
            raise UsageError(f"expected a database with --competition, got {place}")
        elif path.is_dir():
            _check_export(found, path)
        elif _is_transcript(path):
            raise UsageError(
                f"expected matches with their records, got the messages of one seat: {place}"
            )
        else:
            _check_documents(found, path)
    yield found, () if found.failed else found.summary
    if found.failed:
        raise ArenaError(found.summary)
    return UNVERIFIED if found.unverified else DONE


def _match_of(place: str, db: str) -> FoundRecord | None:
    """Return the match of a link, or of an id if --db or --url is given."""
    from arena.cli._found_match import find_match

    context = click.get_current_context()
    match = options.read_id(context, context.command.params[0], place)
    is_id = "://" not in place and not Path(place).exists()
    is_told = is_database_named() or pages_asked_for() is not None
    return find_match(match or "", db) if match != place or (is_id and is_told) else None


def _is_json(place: str) -> bool:
    if "://" in place or not Path(place).is_file():
        return False
    with open(place, "rb") as file:  # in bytes, as it may have any encoding
        return file.read(256).translate(None, _MARKS_AND_SPACE)[:1] in _JSON


def _is_transcript(path: Path) -> bool:
    """Whether a file is the transcript of one seat (`arena/records/transcript.py`)."""
    try:
        first = msgspec.json.decode(next(text_lines(path), b""), type=dict[str, msgspec.Raw])
    except UNREADABLE:
        return False
    return "transcript" in first


def _check_database(found: _Findings, place: str, competition: str | None) -> None:
    from arena.results import audit_database

    with audit_database.opened(place) as store:
        which = None if competition is None else audit_database.named(store, competition)
        with output.ticking("checking", audit_database.count(store, which)) as tick:
            for audited in audit_database.examine(store, which, tick):
                found.competitions += 1
                found.matches += audited.matches
                found.uncounted += audited.uncounted
                found.unverified += audited.unverified
                for note in audited.notes:
                    found.add_note(f"competition {audited.competition}: {note}")
                for flaw in audited.flaws:
                    found.add_flaw(flaw)
        known = {flaw.match for flaw in found.failed}
        for flaw in audit_database.loose_ends(store):
            # A match that fails its own check has already been reported.
            if which in (None, flaw.competition) and flaw.match not in known - {None}:
                found.add_flaw(flaw)


def _check_export(found: _Findings, folder: Path) -> None:
    from arena.results.manifest import MATCHES, manifest_of

    for competition in manifest_of(folder).competitions:
        found.competitions += 1
        found.uncounted += competition.uncounted
        if MATCHES not in competition.files:
            text = "the export has no records of its matches"
            found.add_note(f"competition {competition.id}: {text}")
            continue
        path, before = folder / competition.folder / MATCHES, found.matches
        if path.is_file() and path.stat().st_size:
            _check_documents(found, path)
        here = found.matches - before
        if here != competition.matches:
            expected = plural(competition.matches, "match")
            text = f"expected {expected} in {path}, found {here}"
            found.add_flaw(Flaw(competition.id, None, text))


def _check_documents(found: _Findings, path: Path) -> None:
    reasons: dict[str, None] = {}  # why documents could not be verified, in order
    for where, data in _split(path):
        found.matches += 1
        try:
            document = sheet.read(data)
        except UsageError as error:
            found.add_flaw(Flaw("", where, str(error)))
        else:
            if why := _check_document(found, where, document):
                reasons[f"{path}: cannot be verified: {why}"] = None
    for why in reasons:
        found.add_note(why)


def _check_document(
    found: _Findings, where: str, document: MatchDocument | SeatDocument | Record
) -> str | None:
    """Add the flaws of a document; return why it cannot be verified, or None."""
    if isinstance(document, SeatDocument):
        text = f"expected a record, got what seat {document.seat} saw of a match"
        found.add_flaw(Flaw("", where, text))
        return None
    if isinstance(document, MatchDocument):
        checked = verify.check(document)
        flaw = Flaw(document.competition, document.match, "; ".join(checked.reasons))
    else:
        checked = verify.check_record(document)
        flaw = Flaw("", where, "; ".join(checked.reasons))
    if checked.reasons:
        found.add_flaw(flaw)
        return None
    if checked.is_dealt and not checked.is_committed:
        found.add_note(f"match {flaw.match} has no commitment")
    found.unverified += checked.unverified is not None
    return checked.unverified


def _split(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the documents of a file with their places; one per line if the first line is one."""
    lines = text_lines(path)
    first, second = next(lines, b""), next(lines, None)
    try:
        msgspec.json.decode(first)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        yield str(path), first + (second or b"") + b"".join(lines)
        return
    if second is None:
        yield str(path), first
        return
    yield f"{path}, line 1", first
    for number, line in enumerate(itertools.chain([second], lines), start=2):
        if line.strip():
            yield f"{path}, line {number}", line
