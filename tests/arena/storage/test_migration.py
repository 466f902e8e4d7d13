"""`schema_1.sql` is what the arena of schema 1 wrote: matches of all five games, a void one, an offence, an unfinished league."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from arena.engine.match import Record
from arena.formats.spec import Form, Plan
from arena.games.replay import replay
from arena.records.digest import sealed
from arena.storage import migration
from arena.storage.store import Store
from protocol.errors import UsageError
from protocol.messages import Ending, Limits
from tests.arena.databases import anybody, rows

DUMP = (Path(__file__).parent / "schema_1.sql").read_text(encoding="utf-8")
TABLES = ("meta", "competitions", "matches", "seats", "verdicts")


def make_old(database: str) -> dict[str, list[Any]]:
    """A database as it was then; its rows."""
    file = database if "://" not in database else ":memory:"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(DUMP)
        connection.execute("PRAGMA journal_mode = WAL")
        contents = {
            name: connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()
            for name in TABLES
        }
    if file != database:
        _make_old_on_a_server(database, contents)
    return contents


def _make_old_on_a_server(database: str, contents: dict[str, list[Any]]) -> None:
    """The tables as SQLAlchemy made them there."""
    made = {
        name: text
        for text, name in re.findall(r"(?s)(CREATE TABLE (\w+) \(.*?\n\));\n", DUMP)
    }
    engine = sa.create_engine(database)
    with engine.begin() as connection:
        for name in TABLES:
            text = made[name].replace("DOUBLE", "DOUBLE PRECISION")
            text = text.replace("BLOB", "BYTEA")
            text = text.replace("number INTEGER NOT NULL", "number SERIAL NOT NULL")
            connection.exec_driver_sql(text)
            for row in contents[name]:
                marks = ", ".join(["%s"] * len(row))
                connection.exec_driver_sql(f"INSERT INTO {name} VALUES ({marks})", row)
        for index in re.findall(r"CREATE INDEX .*;", DUMP):
            connection.exec_driver_sql(index)
    engine.dispose()


def everything(database: str) -> dict[str, Any]:
    return {name: sorted(rows(database, f"SELECT * FROM {name}")) for name in TABLES}


def test_J6_the_matches_of_before_can_be_replayed_and_are_sealed(database: str) -> None:
    old = make_old(database)
    with Store(database) as store:
        matches = list(store.sealed_matches())

    assert [played.id for played, _ in matches] == [row[1] for row in old["matches"]]
    assert [record for _, record in matches] == [row[-1] for row in old["matches"]]
    for played, record in matches:
        again = replay(Record.from_json(record))
        assert (again.scores, again.points) == (
            played.result.scores,
            played.result.points,
        )
        assert again.termination == played.result.termination
        assert played.digest == sealed(
            match=played.id,
            competition=played.competition,
            pairing=played.pairing,
            players=played.players,
            result=played.result,
            started_at=played.started_at,
            finished_at=played.finished_at,
            record=record,
        )
    assert {played.game for played, _ in matches} == {
        *("ace_king_queen", "gin_rummy", "high_low", "three_card_poker", "blackjack")
    }


def test_competitions_have_plans_and_what_had_not_ended_is_stopped(
    database: str,
) -> None:
    make_old(database)
    with Store(database) as store:
        by_game = {one.plan.game: one for one in store.competitions()}

    assert by_game["high_low"].plan == Plan(
        game="high_low",
        form=Form.ELIMINATION,
        settings={"max_shuffles": 1},
        players=("ann", "ben", "Łukasz ♠", "dan"),
        limits=Limits(),
    )
    assert by_game["high_low"].finished_at == 1700000028.0
    assert [placed.names for placed in by_game["high_low"].ranking] == [("ann", "ben")]
    assert {game: one.state.value for game, one in by_game.items()} == {
        "ace_king_queen": "finished",
        "gin_rummy": "finished",
        "high_low": "finished",
        "three_card_poker": "finished",
        "blackjack": "stopped",
    }
    assert {one.revision for one in by_game.values()} == {0}


def test_pairings_are_numbered_and_void_matches_do_not_count(database: str) -> None:
    make_old(database)
    with Store(database) as store:
        first, *_ = store.competitions()
        matches = store.matches(first.id)
        results = store.results(first.id)
        verdicts = store.verdicts(first.id)

    assert [(played.pairing, played.counts) for played in matches] == [
        *((0, True), (1, True), (2, False), (3, True)),
    ]
    assert [played.result.termination.kind for played in results] == [
        *(Ending.COMPLETED, Ending.COMPLETED, Ending.TIMEOUT),
    ]
    assert [(verdict.bot, verdict.match) for verdict in verdicts] == [
        ("ben", "akq-out")
    ]


def test_nothing_of_before_is_lost(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration, "_BATCH", 5)
    old = make_old(database)
    Store(database).close()

    for name in ("competitions", "matches", "seats", "verdicts"):
        columns = {
            "competitions": "id, game, form, started_at, finished_at, ranking",
            "matches": "number, id, competition, game, kind, seat, text, started_at, finished_at, record",
            "seats": "match, seat, bot, score, points",
        }.get(name, "*")
        kept = (
            old[name]
            if name != "competitions"
            else [(*row[:3], *row[5:]) for row in old[name]]
        )
        assert sorted(rows(database, f"SELECT {columns} FROM {name}")) == sorted(kept)


def test_a_file_of_before_is_like_a_new_one_afterwards(tmp_path: Path) -> None:
    make_old(str(tmp_path / "old.db"))
    for name in ("old.db", "new.db"):
        Store(tmp_path / name).close()

    schemas = [
        sorted(
            rows(tmp_path / name, "SELECT type, name, tbl_name, sql FROM sqlite_schema")
        )
        for name in ("old.db", "new.db")
    ]
    assert schemas[0] == schemas[1]
    assert rows(tmp_path / "old.db", "PRAGMA integrity_check") == [("ok",)]
    assert rows(tmp_path / "old.db", "PRAGMA foreign_key_check") == []
    assert sorted(rows(tmp_path / "old.db", "SELECT key, value FROM meta")) == [
        *(("application", "card-arena"), ("roster", "0"), ("schema", "2")),
    ]


def test_an_arena_goes_on_in_a_database_of_before(database: str) -> None:
    make_old(database)
    with Store(database) as store:
        first, *_ = store.competitions()
        played, *_ = store.matches(first.id)
        record = store.record(played.id)
        result = replay(record)
        store.competition_started("akq-new", first.plan, 1.0)
        store.match_finished("akq-new", 0, "m-new", ("ann", "ben"), result, 2.0, 3.0)
        store.flush()

        assert store.played("m-new").number == 13


def test_whoever_only_reads_brings_it_up_to_date_too(database: str) -> None:
    make_old(database)
    with Store(database, create=False) as store:
        assert len(store.competitions()) == 5
    assert rows(database, "SELECT value FROM meta WHERE key = 'schema'") == [("2",)]


# --- what goes wrong ---


@pytest.mark.parametrize("step", ["_copy_competitions", "_copy_matches", "_copy"])
def test_what_fails_half_way_leaves_all_as_it_was(
    database: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    make_old(database)
    before = everything(database)
    work = getattr(migration, step)

    def fails(connection: sa.Connection, *rest: Any) -> None:
        work(connection, *rest)
        connection.exec_driver_sql("SELECT * FROM nowhere")

    monkeypatch.setattr(migration, step, fails)
    with pytest.raises(
        UsageError, match=r"from schema 1 to 2, it is as it was: .*nowhere"
    ) as caught:
        Store(database)
    assert "\n" not in str(caught.value)
    assert everything(database) == before

    monkeypatch.undo()
    with Store(database) as store:
        assert len(store.competitions()) == 5


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("UPDATE matches SET kind = 'cold' WHERE number = 7", "'cold' is not a valid"),
        ("UPDATE competitions SET form = 'dance'", "'dance' is not a valid"),
        ("UPDATE competitions SET players = '{'", "Expected .array., got .object."),
    ],
)
def test_what_cannot_be_understood_stays_as_it_was(
    database: str, change: str, text: str
) -> None:
    make_old(database)
    rows(database, change)
    before = everything(database)

    with pytest.raises(UsageError, match=f"it is as it was: .*{text}"):
        Store(database, exclusive=True)
    assert everything(database) == before


KILLED = """
import os, signal, sys
from arena.storage import migration
from arena.storage.store import Store
copy = migration._copy
def dies(*args):
    copy(*args)
    os.kill(os.getpid(), signal.SIGKILL)
migration._copy = dies
Store(sys.argv[1])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_power_cut_half_way_leaves_all_as_it_was(database: str) -> None:
    make_old(database)
    before = everything(database)
    done = subprocess.run([sys.executable, "-c", KILLED, database], check=False)

    assert done.returncode == -9
    assert everything(database) == before
    Store(database).close()


def test_two_who_open_it_at_once_bring_it_up_to_date_once(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_old(database)
    both = threading.Barrier(2)
    counts: list[int] = []
    look = sys.modules["arena.storage.schema"]._look

    def together(*args: Any) -> int:
        schema: int = look(*args)
        both.wait(10)
        return schema

    def opened() -> None:
        with Store(database) as store:
            counts.append(len(store.competitions()))

    monkeypatch.setattr("arena.storage.schema._look", together)
    threads = [threading.Thread(target=opened) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert counts == [5, 5]


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are others there")
@pytest.mark.parametrize("create", [True, False])
def test_one_that_cannot_be_written_stays_as_it_is(public: Path, create: bool) -> None:
    file = public / "arena.db"
    make_old(str(file))
    file.chmod(0o444)
    public.chmod(0o777)
    before = file.read_bytes()

    with (
        anybody(),
        pytest.raises(UsageError, match=r"arena\.db.*readonly database") as caught,
    ):
        Store(file, create=create)
    assert "\n" not in str(caught.value)
    assert file.read_bytes() == before
