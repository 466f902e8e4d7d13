"""Databases that are locked, away, damaged or on a server: a line, and read when that is over."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from arena.storage.store import Store
from arena.web import document_answers
from tests.support import databases
from tests.support.databases import Server
from tests.support.page_reader import PUBLIC, InProcessReader
from tests.support.sample_database import SampleWriter, plan, write

pytestmark = pytest.mark.e2e


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "arena.db", ["ace_king_queen"])


def test_a_database_that_is_locked_is_one_line_and_later_read(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_answers, "_BUSY_MS", 10)
    library = InProcessReader(file)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        library.get("competitions.json")
        other.execute("BEGIN EXCLUSIVE")
        status, text = library.refused("competitions.json")
        other.execute("ROLLBACK")

        assert status == 500
        assert "locked" in text
        assert library.get("competitions.json")["competitions"]
        assert len(library.log) == 1


def test_a_database_that_is_not_there_is_one_line_and_read_when_it_is(file: Path) -> None:
    away = file.rename(file.with_suffix(".away"))
    library = InProcessReader(file)
    status, text = library.refused("competitions.json")
    away.rename(file)

    assert (status, text) == (500, "the database of this arena cannot be read, its log says why")
    assert str(file) in library.log[0]
    assert library.get("competitions.json")["competitions"]


def test_a_server_that_cannot_be_reached_is_told_without_its_address(postgres: Server) -> None:
    address = postgres.url()
    with Store(address):
        pass
    for url in (
        postgres.tcp(address, "another"),
        postgres.tcp(address).replace(str(postgres.port), "1"),
    ):
        library = InProcessReader(url)
        status, text = library.refused("competitions.json")

        assert status == 500
        assert text == "the database of this arena cannot be read, its log says why"
        assert all("another" not in line for line in library.log)
        assert all(databases.PASSWORD not in line for line in library.log)
        library.close()


def test_a_server_is_read_like_a_file_and_does_not_wait_for_ever(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_answers, "_BUSY_MS", 10)
    url = postgres.url()
    with Store(url) as store:
        SampleWriter(store, plan("high_low"), "c").to_the_end()
        SampleWriter(store, plan("ace_king_queen"), "d").to_the_end()
        store.flush()
        library = InProcessReader(url)
        assert library.get("competitions/c.json")["ranking"]
        for path, query in (
            ("competitions.json", {}),
            ("competitions/d/cross.json", {}),
            ("competitions/d/bot.json", {"name": "ann"}),
            ("competitions/d/pairing.json", {"a": "ann", "b": "ben"}),
            ("competitions/d/matches.json", {"limit": "1"}),
            ("matches/high_low-1.json", {}),
            ("matches/high_low-1/record.json", {}),
        ):
            assert library.get(path, PUBLIC, **query)
        with store.engine.begin() as connection:
            connection.exec_driver_sql("LOCK TABLE competitions")
            status, text = library.refused("competitions.json")
        library.close()

        assert status == 500
        assert "its log says why" in text
