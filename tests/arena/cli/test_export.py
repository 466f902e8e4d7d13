from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arena.formats.spec import Form
from arena.results.export import export
from arena.storage.store import Store
from protocol.messages import Ending, Termination
from tests.support.written_competition import WrittenCompetition, plan, play

Run = Callable[..., Any]


@pytest.fixture
def db(tmp_path: Path) -> str:
    """Two competitions: one is over, one goes on."""
    file = tmp_path / "class.db"
    with Store(file) as store:
        for id_, run in (("akq-1", "monday"), ("akq-2", "friday")):
            course = WrittenCompetition(
                store, plan(Form.ROUND_ROBIN, ("ann", "ben"), run=run, matches=2), id_
            )
            course.notes(1, ("ann", "ben"), play(seed=1, hands=4))
            if id_ == "akq-1":
                course.notes(2, ("ben", "ann"), play(seed=2, hands=4))
                course.ends()
    return str(file)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "results"


def test_all_competitions(run: Run, db: str, folder: Path) -> None:
    out = run("export", str(folder), "--db", db).text

    assert out.splitlines() == [
        f"{folder / 'akq-1'}: 6 files, 2 matches",
        f"{folder / 'akq-2'}: 5 files",
        f"{folder / 'index.html'} shows them",
    ]
    assert (folder / "akq-2" / "matches.csv").is_file()
    assert not (folder / "akq-2" / "matches.jsonl").exists()


def test_matches_that_no_table_counts_are_told_from_the_others(
    run: Run, db: str, folder: Path
) -> None:
    void = Termination(Ending.VOID, None, "the arena was stopped")
    with Store(db) as store:
        played = WrittenCompetition(store, plan(Form.ROUND_ROBIN, ("ann", "ben")), "akq-3")
        played.plays(1, ("ann", "ben"), (0, 0), void)
        played.notes(1, ("ann", "ben"), play(seed=1, hands=4))
        played.ends()
    written = run("export", str(folder), "--db", db, "--competition", "akq-3")

    first, *_ = written.out.splitlines()
    assert first == f"{folder / 'akq-3'}: 6 files, 2 matches (1 of them void or taken back)"
    assert "2 matches (1 of them void or taken back) of 1 comp" in run("verify", str(folder)).err


def test_those_that_are_named(run: Run, db: str, folder: Path) -> None:
    argv = ("export", str(folder), "--db", db, "--unfinished", "--json")
    document = run(*argv, "--competition", "friday").document

    assert document["folder"] == str(folder)
    assert document["files"] == ["index.html", "export.json"]
    [friday] = document["competitions"]
    assert (friday["id"], friday["folder"], friday["matches"]) == ("akq-2", "akq-2", 1)
    assert json.loads((folder / "export.json").read_text())["competitions"] == [friday]


def test_arena_verify_takes_what_is_written(run: Run, db: str, folder: Path) -> None:
    run("export", str(folder), "--db", db)
    lines = folder / "akq-1" / "matches.jsonl"
    good = run("verify", str(lines))
    lines.write_text(lines.read_text().replace('"score', '"s0re', 1))

    assert "2 matches: all fit" in good.text
    assert run("verify", str(lines)).status == 1


def test_an_earlier_export(run: Run, db: str, folder: Path) -> None:
    argv = ("export", str(folder), "--db", db, "--no-matches")
    assert run(*argv).status == 0
    said = run(*argv).refusal()

    assert said == f"{folder} has an export already; expected --force to replace it"
    assert run(*argv, "--force").status == 0


def test_nothing_to_write(run: Run, tmp_path: Path, folder: Path) -> None:
    with Store(tmp_path / "empty.db"):
        pass
    argv = ("export", str(folder), "--db")

    said = run(*argv, str(tmp_path / "empty.db")).refusal(1)
    assert said.startswith("expected competitions in ")
    assert "found no file" in run(*argv, str(tmp_path / "none.db")).refusal()
    assert not folder.exists()


def test_a_competition_that_is_not_there(run: Run, db: str, folder: Path) -> None:
    said = run("export", str(folder), "--db", db, "--competition", "tcp").refusal()

    assert said.startswith("expected the id of a competition")
    assert not folder.exists()


def test_a_place_that_cannot_be_written(run: Run, db: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = run("export", str(tmp_path / "file" / "x"), "--db", db).refusal(1)

    assert "file" in said


def test_ctrl_c_leaves_everything_as_it_was(
    run: Run, db: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write: Callable[..., Any] = export

    def interrupted(*args: Any) -> Any:
        def tick() -> None:
            raise KeyboardInterrupt

        return write(*args[:-1], tick)

    monkeypatch.setattr("arena.cli.export.export", interrupted)
    said = run("export", str(folder), "--db", db).refusal(130)

    assert said == f"interrupted; {folder} is as it was"
    assert {path.suffix for path in folder.parent.iterdir()} <= {".db", ".db-wal", ".db-shm"}


def test_decisions_with_what_they_cost(run: Run, db: str, folder: Path) -> None:
    argv = ["export", str(folder), "--db", db, "--costs", "--no-matches"]
    run(*argv)

    with open(folder / "akq-1" / "decisions.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["match"] for row in rows} == {"akq-1-1", "akq-1-2"}
    assert {row["name"] for row in rows} == {"ann", "ben"}
    assert {row["cost_unit"] for row in rows} == {"chips"}
    assert all(float(row["cost"]) >= 0 and row["best"] for row in rows)
    assert not (folder / "akq-1" / "matches.jsonl").exists()
    assert not (folder / "akq-2" / "decisions.csv").exists()
