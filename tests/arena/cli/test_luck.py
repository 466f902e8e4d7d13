from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arena.results import match_sums
from arena.storage.store import Store
from tests.arena.results.test_match_sums import written
from tests.support.databases import rows

Run = Callable[..., Any]


@pytest.fixture
def db(tmp_path: Path) -> str:
    """A database of before with three matches."""
    where = str(tmp_path / "class.db")
    written(where, 3)
    rows(where, "ALTER TABLE matches DROP COLUMN sums")
    return where


def test_it_refuses_while_an_arena_runs_on_the_database(run: Run, db: str) -> None:
    with Store(db, exclusive=True):
        line = run("luck", db).refusal()

    assert line.startswith(f"expected a database that no other arena runs on, {db} is in use")


def test_ctrl_c_says_how_many_are_left(run: Run, db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(store: Store, **_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(match_sums, "recompute", interrupted)

    line = run("luck", db).refusal(130)

    assert line == "interrupted; 3 matches left, and the same command goes on"
