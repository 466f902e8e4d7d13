"""A database of the time of workers, with their records and attempts, goes on."""

from __future__ import annotations

import csv
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from arena.games.replay import replay
from arena.results.audit_database import examine, loose_ends
from arena.results.export import export
from arena.storage.store import Store
from tests.support.arena_in_memory import in_host
from tests.support.databases import rows
from tests.support.virtual_time import memory_folder

pytestmark = pytest.mark.virtual_time

MADE = Path(__file__).with_name("database_of_3169ece.sql")
RUN = "akq-00000001"


def workers(store: Store) -> list[str]:
    """Who refereed each match, by its record; each is what its cards and answers make."""
    found = []
    for match in store.matches(RUN):
        record = store.record(match.id)
        assert replay(record).record.to_json() == record.to_json()
        found.append(record.worker or "")
    return found


def is_sound(store: Store) -> bool:
    [run] = examine(store)
    return not (run.flaws or run.notes or loose_ends(store))


async def test_it_is_read_verified_exported_and_played_to_its_end() -> None:
    with memory_folder() as folder:
        file = folder / "arena.db"
        with closing(sqlite3.connect(file)) as made:
            made.executescript(MADE.read_text())
        attempts = rows(str(file), "SELECT * FROM attempts")
        with Store(file, create=False) as store:
            assert store.competition(RUN).plan.is_alike
            assert is_sound(store)
            assert workers(store) == ["north", ""]

        async with in_host(folder) as arena:
            await arena.come("ann", "ben", "cem")
            competition = arena.host.resume(arena.store.competition(RUN))
            report = await arena.begin(competition)
            assert (report.played, report.verdicts) == (3, ())

        with Store(file, create=False) as store:
            assert is_sound(store)
            assert workers(store) == ["north", "", ""]
            export(store, folder / "exported", [RUN])
        assert rows(str(file), "SELECT * FROM attempts") == attempts
        exported = folder / "exported" / RUN
        with (exported / "matches.csv").open(encoding="utf-8-sig") as table:
            found = list(csv.DictReader(table))
        assert [row["pairing"] for row in found] == ["1", "1", "2", "2", "3", "3"]
        assert b'"worker":"north"' in (exported / "matches.jsonl").read_bytes()


def test_a_new_database_has_no_table_of_attempts(tmp_path: Path) -> None:
    Store(tmp_path / "new.db").close()
    tables = rows(str(tmp_path / "new.db"), "SELECT name FROM sqlite_master WHERE type = 'table'")

    assert ("attempts",) not in tables
