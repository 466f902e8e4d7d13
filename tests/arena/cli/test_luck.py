from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arena.results import match_sums
from arena.storage.store import Store
from tests.arena.results.test_match_sums import sums, written
from tests.support.databases import rows

Run = Callable[..., Any]


@pytest.fixture
def db(tmp_path: Path) -> str:
    """A database of before with three matches."""
    where = str(tmp_path / "class.db")
    written(where, 3)
    rows(where, "ALTER TABLE matches DROP COLUMN sums")
    return where


def test_the_matches_of_an_older_arena_are_added_up_once(run: Run, db: str) -> None:
    query = "SELECT id, counts, finished_at, record, digest FROM matches"
    before = rows(db, query)

    assert run("luck", db).text == "measured 3 matches\n"
    assert None not in sums(db)
    assert run("luck", db).text == "measured 0 matches\n"
    assert run("luck", db, "--all").text == "measured 3 matches\n"
    assert rows(db, query) == before


def test_standings_say_of_what_their_intervals_are_made_before_and_after(run: Run, db: str) -> None:
    before = run("standings", "--db", db).text
    old = run("standings", "--db", db, "--json").document
    run("luck", db)
    after = run("standings", "--db", db).text
    new = run("standings", "--db", db, "--json").document

    assert "of 3 matches without sums of the hands the unit is the match" in before
    assert "; each is computed from blocks of 50 hands\n" in after
    assert (old["unit"]["without"], new["unit"]["without"]) == (3, 0)
    for one, other in zip(old["standings"], new["standings"], strict=True):
        assert one["interval"] != other["interval"]
        for row in (one, other):  # the rest is as it was
            low, high = row.pop("interval")
            assert low < row["mean"] < high
        assert one == other


def test_standings_show_what_bots_won_without_luck_once_it_is_measured(run: Run, db: str) -> None:
    assert "ithout luck" not in run("standings", "--db", db).text
    assert run("standings", "--db", db, "--json").document["luck"] == {}

    run("luck", db)

    shown = run("standings", "--db", db).text
    assert "chips per round, without luck" in shown
    assert "Without luck: the score minus what the cards gave beyond average cards" in shown
    luck = run("standings", "--db", db, "--json").document["luck"]
    assert sorted(luck) == ["ann", "ben"]
    assert luck["ann"]["mean"] == -luck["ben"]["mean"] != luck["ann"]["gain"]
    low, high = luck["ann"]["interval"]
    assert low < luck["ann"]["mean"] < high


def test_as_a_document_with_what_was_left_out(run: Run, db: str) -> None:
    rows(db, "UPDATE matches SET record = x'7b' WHERE id = 'm-2'")

    document = run("luck", db, "--json").document

    assert document["matches"] == 2
    assert [*document["left"].values()] == [1]


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


@pytest.mark.parametrize("data", [None, b"", b"no database" * 99])
def test_what_is_no_database_is_one_line_and_not_made(
    run: Run, tmp_path: Path, data: bytes | None
) -> None:
    file = tmp_path / "x.db"
    if data is not None:
        file.write_bytes(data)

    assert str(file) in run("luck", str(file)).refusal()
    assert (file.read_bytes() if file.exists() else None) == data
