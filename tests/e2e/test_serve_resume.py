"""`arena serve` that is stopped and started again on the same database: what goes on, what stays as it was, what is not played twice."""

from __future__ import annotations

import json
import shlex
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.test_pipe import PYTHON
from tests.support import independent_audit

if TYPE_CHECKING:
    from tests.support.gateway_bots import StartedProgram

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is no signal there"),
]

Serve = Callable[..., "StartedProgram"]

TIMES = 15
MATCHES = 3 * TIMES  # of two bots with each other, and of each with itself
BOTS = tuple(f"{name}=stdio: {shlex.quote(sys.executable)} bot.py" for name in ("ann", "ben"))
WITH_BOTS = ("--bot", BOTS[0], "--bot", BOTS[1])
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
    """Start `arena serve` in a folder with a bot, on a database that stays, with a line on stderr for every match."""
    bot = PYTHON.replace("sys.argv[1]", '"me", tables=2')
    (tmp_path / "bot.py").write_text(bot)

    def call(*words: str) -> StartedProgram:
        return start("arena", "serve", "--log", "-", *words, cwd=tmp_path)

    return call


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


def ask(tmp_path: Path, *words: str) -> Any:
    """What `arena ... --json` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "arena", *words, "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def played(tmp_path: Path, file: str) -> list[list[int]]:
    """The numbers of the pairings that count, in every competition that there is."""
    book = independent_audit.read(tmp_path / file)
    assert [*independent_audit.whole(book)] == []
    return [[one.pairing for one in book.of(of.id)] for of in book.competitions]


# ---- Stopped and started again


@pytest.mark.parametrize("again", [WITH_BOTS, ()], ids=["same command", "no bots"])
def test_what_ctrl_c_stops_goes_on_with_the_same_database(
    serve: Serve, tmp_path: Path, again: tuple[str, ...]
) -> None:
    fixed = ("--port", "0", "--db", "x.db", *GAME)
    status, out, err = interrupt(serve(*fixed, *WITH_BOTS))

    assert (status, out) == (130, "")
    assert (
        err.splitlines()[-1]
        == "arena: stopped; all matches that were over are in x.db, and the same command goes on from there"
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
    serve: Serve, tmp_path: Path, free_port: int
) -> None:
    token = ask(tmp_path, "roster", "instructor", "prof", "--db", "x.db")["token"]
    fixed = ("--port", str(free_port), "--db", "x.db", *GAME, *WITH_BOTS)
    to = ("--url", f"ws://127.0.0.1:{free_port}", "--token", token)
    arena = serve(*fixed)
    arena.until("completed")
    paused = ask(tmp_path, "pause", *to)
    arena.process.send_signal(signal.SIGINT)
    assert arena.ends()[0] == 130
    [before] = played(tmp_path, "x.db")

    arena = serve(*fixed)
    line = arena.until("goes on: ")  # all bots are there by then
    [progress] = ask(tmp_path, "status", *to)["competitions"]

    assert paused["competitions"][0]["state"] == "paused"
    assert line.endswith(f"{len(before)} of {MATCHES} matches played (paused)\n")
    assert (progress["state"], progress["settled"]) == ("paused", len(before))
    assert progress["waits_for"] == []

    resumed = ask(tmp_path, "resume", *to)
    status, _, err = arena.ends()

    assert resumed["competitions"][0]["state"] == "running"
    assert status == 0, err
    assert played(tmp_path, "x.db") == [[*range(1, MATCHES + 1)]]
    with closing(sqlite3.connect(tmp_path / "x.db")) as database:
        acts = database.execute("SELECT who, what FROM actions ORDER BY number")
        assert [*acts] == [("prof", "pause"), ("prof", "resume")]


def test_what_the_instructor_has_done_survives_a_kill(
    serve: Serve, tmp_path: Path, free_port: int
) -> None:
    token = ask(tmp_path, "roster", "instructor", "prof", "--db", "x.db")["token"]
    eve = BOTS[0].replace("ann", "eve")
    bots = (*WITH_BOTS, "--bot", eve, "--players", "3")
    fixed = ("--port", str(free_port), "--db", "x.db", *GAME, *bots)
    to = ("--url", f"ws://127.0.0.1:{free_port}", "--token", token)
    arena = serve(*fixed)
    competition, pairing, match = arena.until("completed").split()[2:5]
    ask(tmp_path, "void", match, *to)
    ask(tmp_path, "remove", "eve", *to)
    arena.kill()

    status, out, err = serve(*fixed).ends()
    book = independent_audit.read(tmp_path / "x.db")
    [one] = book.competitions

    assert status == 0, err
    assert (one.id, one.state) == (competition, "finished")
    assert [*independent_audit.whole(book)] == []
    assert [*independent_audit.pairings(one, book.of(one.id), {"eve"}, set())] == []
    assert not book.matches[match].counts
    again = [m.id for m in book.of(one.id) if m.pairing == int(pairing)]
    assert match not in again
    assert len(again) == ("eve" not in book.matches[match].players)
    rows = {row["name"]: row["eliminated"] for row in json.loads(out)["standings"]}
    assert rows.pop("eve")["kind"] == "removed"
    assert rows == {"ann": None, "ben": None}


# ---- Runs


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
