"""`arena serve` that is stopped and started again on the same database: what it plays then."""

from __future__ import annotations

import json
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.test_pipe import PYTHON, bot, write_bots
from tests.support import independent_audit
from tests.support.arena_process import printed, run

if TYPE_CHECKING:
    from tests.support.gateway_bots import StartedProgram

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is no signal there"),
]

Serve = Callable[..., "StartedProgram"]

TIMES = 15
MATCHES = 3 * TIMES  # of two bots with each other, and of each with itself
WITH_BOTS = (*bot("bot.py", "ann"), *bot("bot.py", "ben"))
GAME = ("akq", "--once", "--json", "--matches", str(TIMES), "--set", "hands=200")
HOUSE = """
[serve]
port = 0
db = "class.db"
once = true

[[run]]
name = "evening"
game = "ace_king_queen"
least = 2
matches = {matches}
house = ["nash", "honest"]
with_itself = false
settings = {{ hands = 50 }}
{at}
"""


@pytest.fixture
def serve(start: Callable[..., StartedProgram], tmp_path: Path) -> Serve:
    """Start `arena serve` in a folder with a bot, with a line on stderr for every match."""
    write_bots(tmp_path, hello='"me", tables=2', bot=PYTHON)
    return lambda *words: start("arena", "serve", "--log", "-", *words, cwd=tmp_path)


@pytest.fixture
def evening(serve: Serve, tmp_path: Path) -> Callable[..., StartedProgram]:
    """Start `arena serve` with a file that has one run of two house bots."""

    def call(at: datetime | None = None, matches: int = 2) -> StartedProgram:
        when = "" if at is None else f"at = {at.isoformat()}"
        (tmp_path / "class.toml").write_text(HOUSE.format(at=when, matches=matches))
        return serve("--config", "class.toml")

    return call


def interrupt(arena: StartedProgram, after: str = "completed") -> tuple[int, str, str]:
    """Ctrl-C, once that has been said."""
    arena.until(after)
    arena.process.send_signal(signal.SIGINT)
    return arena.ends()


@pytest.fixture
def address(tmp_path: Path, free_port: int) -> tuple[str, ...]:
    """The options of an instructor's commands to an arena on the free port."""
    token = printed("roster", "instructor", "prof", "--db", str(tmp_path / "x.db"))["token"]
    return "--url", f"ws://127.0.0.1:{free_port}", "--token", token


def played(tmp_path: Path, file: str) -> list[list[int]]:
    """The numbers of the pairings that count, in every competition that there is."""
    book = independent_audit.read(tmp_path / file)
    assert [*independent_audit.whole(book)] == []
    return [
        [match.pairing for match in book.of(competition.id)] for competition in book.competitions
    ]


# ---- Stopped and started again


@pytest.mark.parametrize("again", [WITH_BOTS, ()], ids=["same command", "no bots"])
def test_what_ctrl_c_stops_goes_on_with_the_same_database(
    serve: Serve, tmp_path: Path, again: tuple[str, ...]
) -> None:
    fixed = ("--port", "0", "--db", "x.db", *GAME)
    status, out, err = interrupt(serve(*fixed, *WITH_BOTS))

    assert (status, out) == (130, "")
    assert err.splitlines()[-1] == (
        "arena: stopped; all matches that were over are in x.db, "
        "and the same command goes on from there"
    )
    [before] = played(tmp_path, "x.db")
    assert 0 < len(before) < MATCHES
    assert "Traceback" not in err

    status, out, err = serve(*fixed, *again).ends()
    report = json.loads(out)

    assert status == 0, err
    assert "Traceback" not in err
    assert err.count("goes on: ") == 1
    assert f"{len(before)} of {MATCHES} matches played" in err
    assert played(tmp_path, "x.db") == [[*range(1, MATCHES + 1)]]
    assert (report["played"], report["verdicts"]) == (MATCHES, [])
    assert err.count(" · completed") == MATCHES - len(before)


def test_a_paused_competition_is_paused_when_the_arena_starts_again(
    serve: Serve, tmp_path: Path, free_port: int, address: tuple[str, ...]
) -> None:
    fixed = ("--port", str(free_port), "--db", "x.db", *GAME, *WITH_BOTS)
    arena = serve(*fixed)
    arena.until("completed")
    paused = printed("pause", *address)
    arena.process.send_signal(signal.SIGINT)
    assert arena.ends()[0] == 130
    [before] = played(tmp_path, "x.db")

    arena = serve(*fixed)
    line = arena.until("goes on: ")  # all bots are there by then
    [progress] = printed("status", *address)["competitions"]

    assert paused["competitions"][0]["state"] == "paused"
    assert line.endswith(f"{len(before)} of {MATCHES} matches played (paused)\n")
    assert (progress["state"], progress["settled"]) == ("paused", len(before))
    assert progress["waits_for"] == []

    resumed = printed("resume", *address)
    status, _, err = arena.ends()

    assert resumed["competitions"][0]["state"] == "running"
    assert status == 0, err
    assert played(tmp_path, "x.db") == [[*range(1, MATCHES + 1)]]
    with closing(sqlite3.connect(tmp_path / "x.db")) as database:
        acts = database.execute("SELECT who, what FROM actions ORDER BY number")
        assert [*acts] == [("prof", "pause"), ("prof", "resume")]


def test_what_the_instructor_has_done_survives_a_kill(
    serve: Serve, tmp_path: Path, free_port: int, address: tuple[str, ...]
) -> None:
    bots = (*WITH_BOTS, *bot("bot.py", "eve"), "--players", "3")
    fixed = ("--port", str(free_port), "--db", "x.db", *GAME, *bots)
    arena = serve(*fixed)
    competition, pairing, match = arena.until("completed").split()[2:5]
    printed("void", match, *address)
    printed("remove", "eve", *address)
    arena.kill()

    status, out, err = serve(*fixed).ends()
    book = independent_audit.read(tmp_path / "x.db")
    [row] = book.competitions
    matches = book.of(competition)

    assert status == 0, err
    assert (row.id, row.state) == (competition, "finished")
    assert [*independent_audit.whole(book)] == []
    assert [*independent_audit.pairings(row, matches, {"eve"}, set())] == []
    assert not book.matches[match].counts
    again = [played.id for played in matches if played.pairing == int(pairing)]
    assert match not in again
    # It may have been played again before eve was removed.
    assert len(again) <= 1
    assert again or "eve" in book.matches[match].players
    rows = {row["name"]: row["eliminated"] for row in json.loads(out)["standings"]}
    assert rows.pop("eve")["kind"] == "removed"
    assert rows == {"ann": None, "ben": None}


# ---- Runs

SETTLING = """
[serve]
port = 0
db = "class.db"
once = true

[[run]]
name = "evening"
game = "ace_king_queen"
least = 4
house = ["nash", "honest", "bluffer", "random"]
settle = "pairs"
matches = 6
most = 40
settings = { hands = 10 }
"""


def test_K6_a_settling_run_that_is_killed_goes_on_alike_and_is_verified(
    serve: Serve, tmp_path: Path
) -> None:
    (tmp_path / "class.toml").write_text(SETTLING)
    for after in (8, 60):  # in the first two blocks, and in later ones
        arena = serve("--config", "class.toml")
        for _ in range(after):
            arena.until("completed")
        arena.kill()
    status, out, err = serve("--config", "class.toml").ends()
    report = printed("standings", "--db", str(tmp_path / "class.db"))
    verified = printed("verify", str(tmp_path / "class.db"))
    [numbers] = played(tmp_path, "class.db")

    assert status == 0, err + out
    assert err.count("goes on: evening") == 1
    assert numbers == [*range(1, len(numbers) + 1)]
    assert len(numbers) > 100
    assert verified["failed"] == []
    rows = report["standings"]
    assert all(row["rank_low"] <= row["rank"] <= row["rank_high"] for row in rows)
    assert all(cell["mark"] in "<>=?" for cell in report["cross_table"]["nash"].values())

    # Who forges a result must forge all blocks that follow from it.
    with closing(sqlite3.connect(tmp_path / "class.db")) as database, database:
        database.execute("UPDATE matches SET pairing = ? WHERE pairing = ?", (1_000, len(numbers)))
    forged = run("verify", str(tmp_path / "class.db"))

    assert forged.returncode == 1
    assert "the schedule asks for no pairing 1000" in forged.stdout


def test_a_run_without_a_time_is_not_played_twice(
    evening: Callable[..., StartedProgram], tmp_path: Path
) -> None:
    first = evening().ends()
    again = evening().ends()

    assert (first[0], again[0]) == (0, 0), first[2] + again[2]
    assert played(tmp_path, "class.db") == [[1, 2]]
    assert "evening is not played again: it was akq-" in again[2]
    assert " · completed" not in again[2]


@pytest.mark.parametrize("how", ["played", "interrupted"])
def test_a_run_whose_time_has_just_passed_starts_late_and_only_once(
    evening: Callable[..., StartedProgram], tmp_path: Path, how: str
) -> None:
    at = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=20)
    matches = 2 if how == "played" else 200
    arena = evening(at, matches)
    if how == "interrupted":
        assert interrupt(arena)[0] == 130
        [before] = played(tmp_path, "class.db")
        assert 0 < len(before) < matches
    else:
        assert arena.ends()[0] == 0
    status, _, err = evening(at, matches).ends()

    assert status == 0, err
    assert played(tmp_path, "class.db") == [[*range(1, matches + 1)]]
    assert ("goes on: evening" in err) is (how == "interrupted")
    [competition] = independent_audit.read(tmp_path / "class.db").competitions
    assert competition.plan["due_at"] == at.timestamp()


def test_a_run_whose_time_is_long_past_is_left_out_and_that_is_said(
    evening: Callable[..., StartedProgram], tmp_path: Path
) -> None:
    at = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2)
    status, _, err = evening(at).ends()

    assert status == 0, err
    assert f"evening was not played at {at.astimezone():%a %d %b %H:%M}" in err
    assert played(tmp_path, "class.db") == []
