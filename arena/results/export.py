"""Writes competitions into a folder: CSV tables, JSON files, and a web page that links to them.

The folder appears complete or not at all: it is written under another name and renamed at the end.
Foreign files are never touched. `csv_tables.py` makes the tables and `html_report.py` the page.
This module makes the folders and files, and leaves out what must stay secret while a competition
goes on (J8).
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from arena.games.match import Record
from arena.records.decisions import RecordedDecision, decisions
from arena.records.document import UNREADABLE, decoding_failure
from arena.results import csv_tables
from arena.results.html_report import page
from arena.results.luck_table import LuckTable
from arena.results.manifest import MANIFEST, MATCHES, Exported, ExportedCompetition, manifest_of
from arena.storage.live_results import LiveResults, Summary
from arena.storage.reader import document_of
from arena.storage.roster import Member, NameHistory, Roster
from arena.storage.store import Store
from protocol.errors import ArenaError, IllegalAnswer, NoAnalysis, UsageError

__all__ = ["DECISIONS", "Options", "export"]

DECISIONS = "decisions.csv"  # of a competition, on request
_PAGE = "index.html"
_UNSAFE = re.compile(r"[^\w.-]+|^\.+")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options of an export.

    `matches` includes their records. `emails` appear in standings and rankings only. `unfinished`
    competitions include the records and the full evidence, too. `force` replaces an earlier export.
    `decisions` adds a table made from the records, and `costs` adds columns to it.
    """

    matches: bool = True
    decisions: bool = False
    costs: bool = False
    unfinished: bool = False
    emails: bool = True
    force: bool = False


def export(
    store: Store,
    folder: Path,
    competitions: Sequence[str],
    options: Options = Options(),  # noqa: B008
    tick: Callable[[], None] = lambda: None,
) -> Exported:
    """Write competitions, given by id in the page's order, into a folder; `tick` after every match.

    The folder must be new, empty, or an earlier export that is replaced. Raises UsageError if it is
    not, or if a competition is unknown; OSError if it cannot be written; ArenaError if the
    decisions of a match cannot be determined. After an error nothing has changed.
    """
    folder = folder.resolve()
    _check(folder, options)
    people = Roster(store.engine).history()
    with _beside(folder) as partial:
        written: list[ExportedCompetition] = []
        sections: list[tuple[Summary, dict[str, str]]] = []
        for competition in dict.fromkeys(competitions):
            name = _folder_name(competition, [other.folder for other in written])
            writer = _Writer(store, competition, options, partial / name)
            done = writer.write(people, tick)
            written.append(done)
            sections.append((writer.summary, {file: f"{name}/{file}" for file in done.files}))
        _write(partial / _PAGE, page(sections))
        exported = Exported(files=(_PAGE, MANIFEST), competitions=tuple(written))
        _write(partial / MANIFEST, _json(exported))
        _check(folder, options)  # again, as writing may have taken a while
        _put(partial, folder)
    return exported


# ---- One competition


class _Writer:
    """Writes the files of one competition into a new folder."""

    def __init__(self, store: Store, competition: str, options: Options, folder: Path) -> None:
        results = LiveResults(store, competition)
        self.summary = _publishable(results.summary(), options)
        self._luck = LuckTable(results.luck(), results.unranked).lines()
        self._store, self._options, self._folder = store, options, folder
        self._files: list[str] = []
        self._matches = self._uncounted = 0
        folder.mkdir()

    def write(self, people: NameHistory[Member], tick: Callable[[], None]) -> ExportedCompetition:
        summary, options = self.summary, self._options

        def owner(bot: str) -> Member | None:
            # Names cannot change while a competition goes on.
            member = people.owner(bot, summary.started_at)
            if member is None or options.emails:
                return member
            return msgspec.structs.replace(member, email=None)

        if summary.standings:
            self._table("standings.csv", csv_tables.standings(summary.standings, owner))
        if summary.cross_table:
            self._table("cross_table.csv", csv_tables.cross_table(summary.cross_table))
        if summary.cross_table and summary.plan.settle:
            self._table("marks.csv", csv_tables.cross_table(summary.cross_table, "mark"))
        if summary.ranking:
            places = csv_tables.ranking(
                summary.ranking, owner, summary.plan.not_there, summary.versions
            )
            self._table("ranking.csv", places)
        has_records = summary.state.is_over or options.unfinished
        if has_records and self._luck:
            self._table("luck.csv", csv_tables.luck(self._luck))
        self._table("verdicts.csv", csv_tables.verdicts(summary.verdicts))
        _write(self._new_file("competition.json"), _json(summary))
        if options.matches:
            self._write_matches(tick, records=has_records)
        if options.decisions and has_records:
            self._write_decisions(tick, costs=options.costs)
        return ExportedCompetition(
            id=summary.id,
            folder=self._folder.name,
            files=tuple(self._files),
            matches=self._matches,
            uncounted=self._uncounted,
        )

    def _table(self, name: str, rows: Iterator[Sequence[object]]) -> None:
        with csv_tables.new_file(self._new_file(name)) as file:
            csv_tables.write(file, rows)

    def _write_matches(self, tick: Callable[[], None], *, records: bool) -> None:
        """Write the tables of the matches and their records, unless these are still secret."""
        competition = self.summary.id
        with csv_tables.new_file(self._new_file("matches.csv")) as file:
            csv_tables.write(file, [csv_tables.MATCHES])
            if not records:
                for played in self._store.matches(competition):
                    csv_tables.write(file, csv_tables.matches(played))
                    tick()
                return
            with open(self._new_file(MATCHES), "wb") as lines:
                for played, record in self._store.sealed_matches(competition):
                    csv_tables.write(file, csv_tables.matches(played))
                    lines.write(document_of(played, record).to_json() + b"\n")
                    self._matches += 1
                    self._uncounted += not played.counts
                    tick()

    def _write_decisions(self, tick: Callable[[], None], *, costs: bool) -> None:
        """Write the decisions of all matches, with one match in memory at a time."""
        words = self.summary.plan.rules.vocabulary
        with csv_tables.new_file(self._new_file(DECISIONS)) as file:
            csv_tables.write(file, [csv_tables.decision_columns(words, costs=costs)])
            for played, record in self._store.sealed_matches(self.summary.id):
                try:
                    made = _decisions_in(record, costs=costs)
                    csv_tables.write(file, csv_tables.decisions(words, played, made, costs=costs))
                except UNREADABLE as error:
                    raise ArenaError(f"match {played.id}: {decoding_failure(error)}") from None
                except (IllegalAnswer, UsageError) as error:
                    raise ArenaError(f"match {played.id}: {error}") from None
                tick()

    def _new_file(self, name: str) -> Path:
        self._files.append(name)
        return self._folder / name


def _decisions_in(record: bytes, *, costs: bool) -> Iterator[RecordedDecision]:
    """Return the decisions of a match, without costs if the game has no analysis."""
    read = Record.from_json(record)
    if not read.answers:
        return iter(())  # the match may never have begun
    with suppress(NoAnalysis):
        return decisions(read, costs=costs)
    return decisions(read)


def _publishable(summary: Summary, options: Options) -> Summary:
    """Remove the evidence, which shows cards, while the competition goes on (J8)."""
    if summary.state.is_over or options.unfinished:
        return summary
    verdicts = tuple(
        msgspec.structs.replace(verdict, asked=None, legal=None, got=None, stderr=None)
        for verdict in summary.verdicts
    )
    return msgspec.structs.replace(summary, verdicts=verdicts)


def _folder_name(competition: str, taken: Sequence[str]) -> str:
    """Turn an id into a folder name that is valid on any system."""
    name = first = _UNSAFE.sub("-", competition)[:64] or "competition"
    number = 1
    while name.lower() in [other.lower() for other in (*taken, _PAGE, MANIFEST)]:
        number += 1
        name = f"{first}-{number}"
    return name


# ---- Folders


def _check(folder: Path, options: Options) -> None:
    """Raise UsageError if foreign files are in the way."""
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
    """Return the files and folders that an earlier export has written."""
    try:
        earlier = manifest_of(folder)
    except UsageError:
        return set()
    ours = set(earlier.files)
    for competition in earlier.competitions:
        name = competition.folder
        ours |= {name, *(f"{name}/{file}" for file in competition.files)}
    return ours


@contextmanager
def _beside(folder: Path) -> Iterator[Path]:
    """Make a new folder beside another; it is removed at the end unless it has been renamed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.parent / f".{folder.name}.{secrets.token_hex(4)}.partial"
    partial.mkdir()
    try:
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _put(partial: Path, folder: Path) -> None:
    """Move a folder to the place of another, which is then removed."""
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
    path.write_text(text, encoding="utf-8", newline="")


def _json(document: msgspec.Struct) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
