from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arena.formats.spec import Form
from arena.results.export import export
from arena.storage.store import Store
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


def test_arena_verify_takes_what_is_written(run: Run, db: str, folder: Path) -> None:
    run("export", str(folder), "--db", db)
    lines = folder / "akq-1" / "matches.jsonl"
    good = run("verify", str(lines))
    lines.write_text(lines.read_text().replace('"score', '"s0re', 1))

    assert "2 matches: all fit" in good.text
    assert run("verify", str(lines)).status == 1


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
