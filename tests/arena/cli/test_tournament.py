"""What `arena tournament` leaves behind; how it is called and what it shows is in tournament.cram."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.arena.cli.conftest import THROWN
from tests.support.in_process import Run


def test_without_db_the_results_are_thrown_away(
    run: Run, tournament_called: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("tournament", "round_robin", "akq", "random", "random")
    assert run(*words).status == run(*words, "--db", "mine.db").status == 0

    thrown, kept = THROWN[-2:]
    assert not thrown.parent.exists()
    assert (kept, kept.exists()) == (Path("mine.db"), True)
