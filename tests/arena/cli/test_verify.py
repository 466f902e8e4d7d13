"""`arena verify`: databases and documents, one line for each flaw; and `arena vectors`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.games.catalogue import GAMES
from arena.storage.reader import document_of
from arena.storage.store import Store
from arena.storage.submissions import Submissions
from protocol.entry_points import Package
from protocol.strategy import house_bots
from tests.support.in_process import CommandProcess, Run
from tests.support.sample_database import write
from tests.support.submitted_programs import enrol, hand_in
from tests.support.toy_games import write_toy
from tests.support.transcript_check import check, read


@pytest.fixture
def file(class_db: None, tmp_path: Path) -> Path:
    return tmp_path / "class.db"


def change(file: Path, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement, values)
        connection.commit()


def sheets(file: Path) -> list[bytes]:
    with Store(file, create=False) as store:
        return [document_of(*stored).to_json() for stored in store.sealed_matches()]


def test_what_was_handed_in_changes_nothing(run: Run, file: Path, tmp_path: Path) -> None:
    before = run("verify", str(file))
    with Store(file) as store:
        enrol(store.engine, "ann")
        made = hand_in(store.engine, "ann", b"a bot")
        Submissions(store.engine).disable(made.number, 1.0, "prof")

    assert run("verify", str(file)) == before
    assert run("export", str(tmp_path / "out"), "--db", str(file)).status == 0
    assert run("verify", str(tmp_path / "out")).status == 0


# ---- Games of other packages

replace = msgspec.structs.replace


@pytest.fixture(params=sorted(GAMES))
def outside(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, str]:
    """A database with a game that is as if it came from outside, in a version that is gone."""
    game = request.param
    monkeypatch.setitem(GAMES, game, replace(GAMES[game], package=Package("leduc", "1.0")))
    file = write(tmp_path / "arena.db", (game,))
    return file, game


def test_a_game_from_outside_is_verified_by_its_own_version(
    outside: tuple[Path, str], run: Run
) -> None:
    file, _ = outside

    assert run("verify", str(file)).text.endswith(" of 1 competition: all fit\n")
    assert b'"package":"leduc 1.0"' in sheets(file)[0]


@pytest.mark.parametrize("version", ["2.0", None])
def test_without_that_version_a_line_says_so_instead_of_wrong(
    outside: tuple[Path, str], version: str | None, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, game = outside
    if version is None:
        monkeypatch.delitem(GAMES, game)
        why = f"{game} of package leduc 1.0 is not installed"
    else:
        monkeypatch.setitem(GAMES, game, replace(GAMES[game], package=Package("leduc", version)))
        why = f"{game} was played by package leduc 1.0, and here it is of package leduc 2.0"

    ran = run("verify", str(file))

    matches = len(sheets(file))
    assert (ran.status, ran.err) == (3, "")
    assert ran.out.splitlines() == [
        f"note: competition {game}-00000000: its matches and its schedule cannot be verified: {why}",
        f"{matches} matches (1 of them void or taken back) of 1 competition: "
        f"{matches} not verified",
    ]
    document = json.loads(run("verify", str(file), "--json").out)
    assert (document["unverified"], document["failed"]) == (matches, [])


def test_a_document_is_not_verified_by_other_rules(
    outside: tuple[Path, str], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, game = outside
    lines = tmp_path / "matches.jsonl"
    lines.write_bytes(b"".join(sheet + b"\n" for sheet in sheets(file)))
    monkeypatch.delitem(GAMES, game)

    ran = run("verify", str(lines))

    assert ran.status == 3
    assert ran.out.splitlines()[-2:] == [
        f"note: {lines}: cannot be verified: {game} of package leduc 1.0 is not installed",
        f"{len(sheets(file))} matches: {len(sheets(file))} not verified",
    ]


def test_what_is_wrong_without_the_rules_is_wrong(
    outside: tuple[Path, str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, game = outside
    change(file, f"UPDATE seats SET score = 30000 WHERE match = '{game}-1'")
    monkeypatch.delitem(GAMES, game)

    ran = run("verify", str(file))

    assert ran.status == 1
    assert "says 30000, the record says" in ran.out


# ---- Flaws


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[:1000],
        lambda raw: raw[:20000] + bytes(len(raw) - 20000),
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw.replace(b"CREATE TABLE", b"CREATE TRBLE"),
        lambda raw: raw.replace(b"ann", b"a\0n"),
        lambda raw: raw.replace(b"ann", b"\xff\xfen"),
    ],
)
def test_a_damaged_file_is_a_line_or_a_list(
    run: Run, file: Path, damage: Callable[[bytes], bytes]
) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    file.write_bytes(damage(file.read_bytes()))

    ran = run("verify", str(file))

    assert ran.status in (1, 2)
    assert ran.failure(ran.status)


@pytest.mark.parametrize("game", GAMES)
def test_a_game_has_a_schema_and_a_transcript_of_each_house_bot(
    run: Run, tmp_path: Path, game: str
) -> None:
    run("vectors", game, str(tmp_path))
    files = sorted(file.name for file in tmp_path.iterdir())

    assert files == sorted([f"{game}.json", *(f"{game}-{bot}.jsonl" for bot in house_bots(game))])
    assert run("vectors", game, str(tmp_path), "--check").status == 0
    for file in tmp_path.glob("*.jsonl"):
        check(read(file.read_bytes().splitlines()))


@pytest.mark.e2e
def test_games_from_outside_have_them_and_ours_stay_as_they_are(tmp_path: Path) -> None:
    games = [write_toy(tmp_path / "toys", seats) for seats in (1, 2, 3, 6)]
    schemas = "import sys; from protocol.schema.__main__ import main; sys.exit(main(['--check']))"
    with CommandProcess.beside(tmp_path / "toys") as commands:
        for game in games:
            written = commands.arena(tmp_path, "vectors", game, game).text
            assert written.count("wrote ") == 4  # a schema and three bots
            assert commands.arena(tmp_path, "vectors", game, game, "--check").text == ""
        assert commands.python(tmp_path, schemas).text == ""
