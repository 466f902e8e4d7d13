"""`arena verify`: whether a database, an export, an exported match or a transcript is what it says, recomputed from the records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from arena.cli import _options as options
from arena.cli import _output as output
from arena.records import check_transcript, transcript, verify
from arena.records import document as sheet
from arena.results import audit_database
from arena.results.audit import Flaw
from arena.results.export import MATCHES, manifest_of
from protocol.errors import ArenaError, UsageError, one_line

__all__ = ["command"]

_JSON = (b"{", b"[")  # how a document begins; a database of SQLite does not
_LONGEST_LINE = 1000


class _Findings(msgspec.Struct):
    """What has been found so far; also what `--json` prints."""

    matches: int = 0
    competitions: int = 0
    failed: list[Flaw] = []
    notes: list[str] = []

    def flaw(self, flaw: Flaw, *, tell: bool) -> None:
        """Something does not fit."""
        self.failed.append(flaw)
        if tell:
            click.echo(one_line(f"{_where(flaw)}: {flaw.text}", _LONGEST_LINE))

    def note(self, text: str, *, tell: bool) -> None:
        """Something cannot be checked."""
        self.notes.append(text)
        if tell:
            click.echo(one_line(f"note: {text}", _LONGEST_LINE))

    @property
    def summary(self) -> str:
        """All of it in a line."""
        what = output.plural(self.matches, "match")
        if self.competitions:
            what += f" of {output.plural(self.competitions, 'competition')}"
        if not self.failed:
            fits = "fits" if self.matches == 1 else "fit"
            return f"{what}: {fits}" if self.matches == 1 else f"{what}: all {fits}"
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
    help="Check this competition of a database alone: its id, how it begins, or the name of its run.",
)
@options.json_option
def command(places: tuple[str, ...], competition: str | None, as_json: bool) -> None:
    """Recompute every deal and every result, and say which match is not what its record says, and why.

    Checks a database (a file or a URL), a folder that `arena export` has written, matches as it and `arena replay --json` write
    them, or transcripts as `arena replay --frames` does and as they are in protocol/vectors/transcripts/: that no byte of a match was
    changed since it was written, that the seed is the one that was committed to, that cards and answers make the scores, and, of
    a database, that every competition has the matches that its schedule asks for, each once, and of a transcript, that the bot was told
    what the rules make of the match, message by message.

    Prints a line for every match that does not fit; the exit status is 0 if all do, else 1.

    --json prints {matches, competitions, failed: [{competition, match, text}], notes}.
    """
    outcome = _Findings()
    for place in places:
        path = Path(place)
        if path.is_dir() or _is_json(place):
            if competition is not None:
                raise UsageError(f"expected a database with --competition, got {place}")
            check = _export if path.is_dir() else _documents
            if path.is_file() and _is_transcript(path):
                check = _transcript
            check(path, outcome, tell=not as_json)
        else:
            _database(place, competition, outcome, tell=not as_json)
    if as_json:
        output.print_json(msgspec.to_builtins(outcome))
    if outcome.failed:
        raise ArenaError(outcome.summary)
    if not as_json:
        click.echo(outcome.summary)


def _is_json(place: str) -> bool:
    """Whether it is a file that holds a document."""
    if "://" in place or not Path(place).is_file():
        return False
    with open(place, "rb") as file:
        return file.read(256).lstrip()[:1] in _JSON


def _database(place: str, competition: str | None, outcome: _Findings, *, tell: bool) -> None:
    with audit_database.opened(place) as store:
        which = None if competition is None else audit_database.named(store, competition)
        total = audit_database.count(store, which)
        with output.ticking("checking", total) as tick:
            for found in audit_database.examine(store, which, tick):
                outcome.competitions += 1
                outcome.matches += found.matches
                for note in found.notes:
                    outcome.note(f"competition {found.competition}: {note}", tell=tell)
                for flaw in found.flaws:
                    outcome.flaw(flaw, tell=tell)
        known = {flaw.match for flaw in outcome.failed}
        for flaw in audit_database.loose_ends(store):
            # A match that does not fit has a line already.
            if which in (None, flaw.competition) and flaw.match not in known - {None}:
                outcome.flaw(flaw, tell=tell)


def _is_transcript(path: Path) -> bool:
    with path.open("rb") as file:
        return transcript.is_transcript(file.readline())


def _transcript(path: Path, outcome: _Findings, *, tell: bool) -> None:
    """A file with the conversation of one seat."""
    outcome.matches += 1
    try:
        with path.open("rb") as file:
            reasons = check_transcript.check(transcript.read(file))
    except UsageError as error:
        reasons = (str(error),)
    if reasons:
        outcome.flaw(Flaw("", str(path), "; ".join(reasons)), tell=tell)


def _export(folder: Path, outcome: _Findings, *, tell: bool) -> None:
    """A folder with a file of matches for each competition."""
    for one in manifest_of(folder).competitions:
        outcome.competitions += 1
        if MATCHES not in one.files:
            text = f"competition {one.id}: the export has no records of its matches"
            outcome.note(text, tell=tell)
            continue
        path, before = folder / one.folder / MATCHES, outcome.matches
        if path.is_file() and path.stat().st_size:
            _documents(path, outcome, tell=tell)
        found = outcome.matches - before
        if found != one.matches:
            text = f"expected {output.plural(one.matches, 'match')} in {path}, found {found}"
            outcome.flaw(Flaw(one.id, None, text), tell=tell)


def _documents(path: Path, outcome: _Findings, *, tell: bool) -> None:
    """A file with a match, or with one in every line."""
    for where, data in _split(path):
        outcome.matches += 1
        try:
            document = sheet.read(data)
        except UsageError as error:
            outcome.flaw(Flaw("", where, str(error)), tell=tell)
            continue
        if isinstance(document, sheet.MatchDocument):
            checked = verify.check(document)
            flaw = Flaw(document.competition, document.match, "; ".join(checked.reasons))
        else:
            checked = verify.check_record(document)
            flaw = Flaw("", where, "; ".join(checked.reasons))
        if checked.reasons:
            outcome.flaw(flaw, tell=tell)
        elif checked.is_dealt and not checked.is_committed:
            outcome.note(f"match {flaw.match} has no commitment", tell=tell)


def _split(path: Path) -> Iterator[tuple[str, bytes]]:
    """The documents of a file, and what to call each: one for all of it, or one for each line if the first is one."""
    with path.open("rb") as file:
        first = file.readline()
        rest = file.read(1)
        try:
            msgspec.json.decode(first)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            yield str(path), first + rest + file.read()
            return
        if not rest:
            yield str(path), first
            return
        yield f"{path}, line 1", first
        for number, line in enumerate(file, start=2):
            if number == 2:
                line = rest + line
            if line.strip():
                yield f"{path}, line {number}", line


def _where(flaw: Flaw) -> str:
    if flaw.match is not None:
        return f"match {flaw.match}"
    return f"competition {flaw.competition}"
