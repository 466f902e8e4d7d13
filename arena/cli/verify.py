"""`arena verify`: checks databases, exports, exported matches and transcripts by their records."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from arena.cli import DONE, UNVERIFIED
from arena.cli import _options as options
from arena.cli import _output as output
from arena.games import other_rules
from arena.records import check_transcript, transcript, verify
from arena.records import document as sheet
from arena.records.seat_document import SeatDocument
from arena.results import audit_database
from arena.results.audit import Flaw
from arena.results.export import MATCHES, manifest_of
from protocol.errors import ArenaError, UsageError, one_line
from protocol.text_files import text_lines

__all__ = ["command"]

_JSON = (b"{", b"[")  # how a document begins; a database of SQLite does not
_MARKS_AND_SPACE = b" \t\r\n\0\xef\xbb\xbf\xff\xfe"  # what may stand before it
_LONGEST_LINE = 1000


class _Findings(msgspec.Struct):
    """What was found so far, as `--json` prints it."""

    matches: int = 0
    uncounted: int = 0
    unverified: int = 0
    competitions: int = 0
    failed: list[Flaw] = []
    notes: list[str] = []

    @property
    def summary(self) -> str:
        what = output.plural(self.matches, "match") + output.uncounted(self.uncounted)
        if self.competitions:
            what += f" of {output.plural(self.competitions, 'competition')}"
        if not self.failed and self.unverified:
            return f"{what}: {self.unverified:,} not verified"
        if not self.failed:
            return f"{what}: fits" if self.matches == 1 else f"{what}: all fit"
        matches = len({flaw.match for flaw in self.failed if flaw.match is not None})
        others = sum(flaw.match is None for flaw in self.failed)
        parts = [output.plural(matches, "match")] if matches or not others else []
        if others:
            parts.append(output.plural(others, "other flaw"))
        return f"{what}: {' and '.join(parts)} not as recorded"


@click.command(name="verify")
@click.argument("places", nargs=-1, required=True, metavar="DATABASE|URL|FOLDER|FILE...")
@click.option(
    "--competition",
    metavar="ID",
    help="Check this competition of a database alone: its id, "
    "the beginning of it, or the name of its run.",
)
@options.json_option
def command(places: tuple[str, ...], competition: str | None, as_json: bool) -> int:
    """Recompute every deal and every result, and say which match is not what its record says, and
    why.

    Checks a database (a file or a URL), a folder that `arena export` has written, matches as it and
    `arena replay --json` write them, or transcripts as `arena replay --frames` does and as they are
    in protocol/vectors/transcripts/: that no byte of a match was changed since it was written, that
    the seed is the one that was committed to, that cards and answers make the scores, and, in a
    database, that every competition has the matches that its schedule asks for, each once, and in a
    transcript, that the bot was told what the rules make of the match, message by message.

    Matches of a game from outside can only be verified by the version of its package that they
    were played by. If another is installed here, or none, a line says which it takes.

    Prints a line for every match that does not fit; the exit status is 0 if all do, 1 if one does
    not, and 3 if nothing is wrong and some could not be verified.

    --json prints {matches, uncounted, unverified, competitions, failed: [{competition, match,
    text}], notes}.
    """
    check = _Check(shows=not as_json)
    for place in places:
        path = Path(place)
        if not path.is_dir() and not _is_json(place):
            check.database(place, competition)
        elif competition is not None:
            raise UsageError(f"expected a database with --competition, got {place}")
        elif path.is_dir():
            check.export(path)
        elif _is_transcript(path):
            check.transcript(path)
        else:
            check.documents(path)
    found = check.findings
    if as_json:
        output.print_json(found)
    if found.failed:
        raise ArenaError(found.summary)
    if not as_json:
        click.echo(found.summary)
    return UNVERIFIED if found.unverified else DONE


def _is_json(place: str) -> bool:
    if "://" in place or not Path(place).is_file():
        return False
    with open(place, "rb") as file:  # in any encoding
        return file.read(256).translate(None, _MARKS_AND_SPACE)[:1] in _JSON


def _is_transcript(path: Path) -> bool:
    return transcript.is_transcript(next(text_lines(path), b""))


class _Check:
    """Checks one place after another; if it `shows`, it prints at once what it finds."""

    def __init__(self, *, shows: bool) -> None:
        self.findings = _Findings()
        self._shows = shows

    def _flaw(self, flaw: Flaw) -> None:
        self.findings.failed.append(flaw)
        if self._shows:
            where = f"competition {flaw.competition}"
            if flaw.match is not None:
                where = f"match {flaw.match}"
            click.echo(one_line(f"{where}: {flaw.text}", _LONGEST_LINE))

    def _note(self, text: str) -> None:
        self.findings.notes.append(text)
        if self._shows:
            click.echo(one_line(f"note: {text}", _LONGEST_LINE))

    def database(self, place: str, competition: str | None) -> None:
        findings = self.findings
        with audit_database.opened(place) as store:
            which = None if competition is None else audit_database.named(store, competition)
            with output.ticking("checking", audit_database.count(store, which)) as tick:
                for audited in audit_database.examine(store, which, tick):
                    findings.competitions += 1
                    findings.matches += audited.matches
                    findings.uncounted += audited.uncounted
                    findings.unverified += audited.unverified
                    for note in audited.notes:
                        self._note(f"competition {audited.competition}: {note}")
                    for flaw in audited.flaws:
                        self._flaw(flaw)
            known = {flaw.match for flaw in findings.failed}
            for flaw in audit_database.loose_ends(store):
                # A match that does not fit has a line already.
                if which in (None, flaw.competition) and flaw.match not in known - {None}:
                    self._flaw(flaw)

    def transcript(self, path: Path) -> None:
        self.findings.matches += 1
        try:
            said = transcript.read(text_lines(path))
        except UsageError as error:
            self._flaw(Flaw("", str(path), str(error)))
            return
        if (why := other_rules(said.heading.game, said.heading.package)) is not None:
            self.findings.unverified += 1
            self._note(f"{path}: cannot be verified: {why}")
            return
        reasons = check_transcript.check(said)
        if reasons:
            self._flaw(Flaw("", str(path), "; ".join(reasons)))

    def export(self, folder: Path) -> None:
        for competition in manifest_of(folder).competitions:
            self.findings.competitions += 1
            self.findings.uncounted += competition.uncounted
            if MATCHES not in competition.files:
                text = "the export has no records of its matches"
                self._note(f"competition {competition.id}: {text}")
                continue
            path, before = folder / competition.folder / MATCHES, self.findings.matches
            if path.is_file() and path.stat().st_size:
                self.documents(path)
            found = self.findings.matches - before
            if found != competition.matches:
                expected = output.plural(competition.matches, "match")
                text = f"expected {expected} in {path}, found {found}"
                self._flaw(Flaw(competition.id, None, text))

    def documents(self, path: Path) -> None:
        reasons: dict[str, None] = {}  # why some could not be verified, in order
        for where, data in _split(path):
            self.findings.matches += 1
            try:
                document = sheet.read(data)
            except UsageError as error:
                self._flaw(Flaw("", where, str(error)))
                continue
            if isinstance(document, SeatDocument):
                text = f"expected a record, got what seat {document.seat} saw of a match"
                self._flaw(Flaw("", where, text))
                continue
            if isinstance(document, sheet.MatchDocument):
                checked = verify.check(document)
                flaw = Flaw(document.competition, document.match, "; ".join(checked.reasons))
            else:
                checked = verify.check_record(document)
                flaw = Flaw("", where, "; ".join(checked.reasons))
            if checked.reasons:
                self._flaw(flaw)
                continue
            if checked.unverified is not None:
                self.findings.unverified += 1
                reasons[f"cannot be verified: {checked.unverified}"] = None
            if checked.is_dealt and not checked.is_committed:
                self._note(f"match {flaw.match} has no commitment")
        for why in reasons:
            self._note(f"{path}: {why}")


def _split(path: Path) -> Iterator[tuple[str, bytes]]:
    """The documents of a file, each with its place: one per line if the first line is one."""
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
