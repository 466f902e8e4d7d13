"""Ctrl-C in the middle of a command: what is said, and what stays as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from arena.cli import mistakes
from arena.records.mistakes import mistakes_of
from arena.results import match_sums
from arena.results.export import export
from arena.storage.store import Store

if TYPE_CHECKING:
    from tests.arena.cli.conftest import Run


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def db(tmp_path: Path) -> str:
    return str(tmp_path / "class.db")


@pytest.mark.parametrize("done", [0, 2])
def test_mistakes_shows_what_was_found_until_then(
    run: Run, toy_db: None, db: str, done: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [None] * done

    def found(*args: object) -> object:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return mistakes_of(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(mistakes, "mistakes_of", found)
    ran = run("mistakes", "toy_two", "--seat", "ben", "--db", db, "--json")

    assert ran.failure(130) == f"interrupted after {done} of 5 matches"
    documents = [json.loads(line) for line in ran.out.splitlines()]
    assert [(one["matches"], one["of"]) for one in documents] == [(2, 5)] * bool(done)


def test_export_leaves_everything_as_it_was(
    run: Run, two_courses_db: None, db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write: Callable[..., Any] = export
    monkeypatch.setattr("arena.cli.export.export", lambda *args: write(*args[:-1], interrupted))
    folder = tmp_path / "results"
    said = run("export", str(folder), "--db", db).refusal(130)

    assert said == f"interrupted; {folder} is as it was"
    assert {path.suffix for path in tmp_path.iterdir()} <= {".db", ".db-wal", ".db-shm"}


def test_luck_says_how_many_are_left(
    run: Run, older_db: None, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(match_sums, "recompute", interrupted)

    assert run("luck", db).refusal(130) == (
        "interrupted; 3 matches left, and the same command goes on"
    )


def test_luck_refuses_while_an_arena_runs_on_the_database(
    run: Run, older_db: None, db: str
) -> None:
    with Store(db, exclusive=True):
        line = run("luck", db).refusal()

    assert line.startswith(f"expected a database that no other arena runs on, {db} is in use")
