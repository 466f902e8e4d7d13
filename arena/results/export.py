"""Writes competitions into a folder: tables as CSV, everything as JSON, and one web page that shows them and links the files.

The folder is there with all that belongs into it or not at all: everything is written beside it and renamed at the end. What
somebody else has put into it is never touched. What is in the tables is said in `arena/results/csv_tables.py`, the page is
`arena/results/html_report.py`'s; here are the folders, the files, and what must not leave the arena while a competition goes on (J8).
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from arena.results import csv_tables
from arena.results.html_report import page
from arena.storage.live_results import LiveResults, Summary
from arena.storage.name_history import NameHistory
from arena.storage.reader import document_of
from arena.storage.roster import Member, Roster
from arena.storage.store import Store
from protocol.errors import UsageError

__all__ = [
    "MANIFEST",
    "MATCHES",
    "Exported",
    "ExportedCompetition",
    "Options",
    "export",
    "manifest_of",
]

MANIFEST = "export.json"
"""What an export has written, so that it can be told from what others have put beside it."""

MATCHES = "matches.jsonl"
"""The matches of a competition in its folder, a record in every line."""
_PAGE = "index.html"
_UNSAFE = re.compile(r"[^\w.-]+|^\.+")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What is written.

    Attributes:
        matches: the matches, with their records.
        unfinished: also the records of competitions that go on, and the evidence of their verdicts in full.
        emails: the e-mails of the roster, in the tables of who came where; no other file has them.
        force: in place of an earlier export.
    """

    matches: bool = True
    unfinished: bool = False
    emails: bool = True
    force: bool = False


class ExportedCompetition(msgspec.Struct, frozen=True, kw_only=True):
    """A competition that was written.

    Attributes:
        id: of the competition.
        folder: its name in the export.
        files: their names in that folder.
        matches: how many are in `MATCHES`.
    """

    id: str
    folder: str
    files: tuple[str, ...]
    matches: int


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """What was written: the manifest.

    Attributes:
        files: in the folder itself.
        competitions: each in a folder of its own.
    """

    files: tuple[str, ...]
    competitions: tuple[ExportedCompetition, ...]


def export(
    store: Store,
    folder: Path,
    competitions: Sequence[str],
    options: Options = Options(),  # noqa: B008
    tick: Callable[[], None] = lambda: None,
) -> Exported:
    """Write competitions into a folder.

    Args:
        store: the database.
        folder: it must not be there, be empty, or hold an earlier export that is to be replaced.
        competitions: their ids, in the order of the page.
        options: what is written.
        tick: called after every match.

    Raises:
        UsageError: the folder holds something else, or there is no such competition; nothing has changed.
        OSError: the folder cannot be written; nothing has changed.
    """
    folder = folder.resolve()
    _check(folder, options)
    people = Roster(store.engine).history()
    with _beside(folder) as partial:
        written: list[ExportedCompetition] = []
        shown: list[tuple[Summary, dict[str, str]]] = []
        for competition in dict.fromkeys(competitions):
            summary = LiveResults(store, competition).summary()
            name = _folder_name(competition, [one.folder for one in written])
            told = _told(summary, options)
            writer = _Writer(store, told, people, partial / name)
            writer.write(options, tick)
            links = {file: f"{name}/{file}" for file in writer.files}
            shown.append((writer.summary, links))
            written.append(
                ExportedCompetition(
                    id=competition, folder=name, files=tuple(writer.files), matches=writer.matches
                )
            )
        _write(partial / _PAGE, page(shown))
        done = Exported(files=(_PAGE, MANIFEST), competitions=tuple(written))
        _write(partial / MANIFEST, _json(done))
        _check(folder, options)  # it may have taken a while
        _put(partial, folder)
    return done


def manifest_of(folder: Path) -> Exported:
    """What an export has written into a folder.

    Raises:
        UsageError: the folder is no export.
    """
    try:
        return msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Exported)
    except (OSError, msgspec.DecodeError, UnicodeError, RecursionError):
        raise UsageError(
            f"expected a folder that arena export has written, {folder} has no {MANIFEST} of one"
        ) from None


# ---- One competition


class _Writer:
    """Writes the files of one competition into a new folder."""

    def __init__(
        self, store: Store, summary: Summary, people: NameHistory[Member], folder: Path
    ) -> None:
        self.summary = summary
        self._people = people
        self.files: list[str] = []
        self.matches = 0
        self._store = store
        self._folder = folder
        folder.mkdir()

    def write(self, options: Options, tick: Callable[[], None]) -> None:
        """All of them."""
        summary = self.summary

        def owner(bot: str) -> Member | None:
            # Nobody gets another name while a competition goes on.
            member = self._people.owner(bot, summary.started_at)
            if member is None or options.emails:
                return member
            return msgspec.structs.replace(member, email=None)

        if summary.standings:
            rows = csv_tables.standings(summary.standings, owner)
            self._table("standings.csv", rows)
        if summary.cross_table:
            self._table("cross_table.csv", csv_tables.cross_table(summary.cross_table))
        if summary.ranking:
            away = summary.plan.not_there
            places = csv_tables.ranking(summary.ranking, owner, away)
            self._table("ranking.csv", places)
        self._table("verdicts.csv", csv_tables.verdicts(summary.verdicts))
        self._add("competition.json")
        _write(self._folder / "competition.json", _json(summary))
        if options.matches:
            self._matches(tick, records=summary.is_over or options.unfinished)

    def _table(self, name: str, rows: Iterator[Sequence[object]]) -> None:
        self._add(name)
        _write(self._folder / name, csv_tables.text(rows))

    def _matches(self, tick: Callable[[], None], *, records: bool) -> None:
        """A row per seat and, unless they are still secret, a record per line; a few are in memory at a time."""
        self._add("matches.csv")
        with open(self._folder / "matches.csv", "w", encoding="utf-8", newline="") as rows:
            rows.write(csv_tables.text([csv_tables.MATCHES]))
            if not records:
                for played in self._store.matches(self.summary.id):
                    rows.write(csv_tables.text(csv_tables.matches(played)))
                    tick()
                return
            self._add(MATCHES)
            with open(self._folder / MATCHES, "wb") as lines:
                for played, record in self._store.sealed_matches(self.summary.id):
                    rows.write(csv_tables.text(csv_tables.matches(played)))
                    lines.write(document_of(played, record).to_json() + b"\n")
                    self.matches += 1
                    tick()

    def _add(self, name: str) -> None:
        self.files.append(name)


def _told(summary: Summary, options: Options) -> Summary:
    """What may leave: of a competition that goes on no cards, which the evidence of verdicts has (J8)."""
    if summary.is_over or options.unfinished:
        return summary
    verdicts = tuple(
        msgspec.structs.replace(verdict, asked=None, legal=None, got=None, stderr=None)
        for verdict in summary.verdicts
    )
    return msgspec.structs.replace(summary, verdicts=verdicts)


def _folder_name(competition: str, taken: Sequence[str]) -> str:
    """An id as the name of a folder, whatever system it will be opened on."""
    name = first = _UNSAFE.sub("-", competition)[:64] or "competition"
    number = 1
    while name.lower() in [other.lower() for other in (*taken, _PAGE, MANIFEST)]:
        number += 1
        name = f"{first}-{number}"
    return name


# ---- Folders


def _check(folder: Path, options: Options) -> None:
    """See that nothing of others is in the way.

    Raises:
        UsageError: something is.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError(f"expected a folder, {folder} is a file")
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
    if not there:
        return
    others = sorted(there - _ours(folder))
    if others:
        raise UsageError(
            f"expected an empty folder, or one that arena export has made: {folder} has {others[0]}"
        )
    if not options.force:
        raise UsageError(f"{folder} has an export already; expected --force to replace it")


def _ours(folder: Path) -> set[str]:
    """All that an earlier export has written there."""
    try:
        earlier = manifest_of(folder)
    except UsageError:
        return set()
    ours = set(earlier.files)
    for one in earlier.competitions:
        ours |= {one.folder, *(f"{one.folder}/{file}" for file in one.files)}
    return ours


@contextmanager
def _beside(folder: Path) -> Iterator[Path]:
    """A new folder beside that one, which is removed if it has not become it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.parent / f".{folder.name}.{secrets.token_hex(4)}.partial"
    partial.mkdir()
    try:
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _put(partial: Path, folder: Path) -> None:
    """Put a folder in the place of another, which is removed when it has been."""
    if not folder.exists():
        os.rename(partial, folder)
        return
    old = partial.with_suffix(".old")
    os.rename(folder, old)
    try:
        os.rename(partial, folder)
    except BaseException:
        os.rename(old, folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _write(path: Path, text: str) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def _json(document: msgspec.Struct) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
