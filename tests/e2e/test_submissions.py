"""Programs handed in to a real arena, and an arena that is killed in the middle of everything."""

from __future__ import annotations

import contextlib
import json
import os
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from arena.cli._arena_connection import Entering, SubmitterConnection, entered
from arena.storage.roster import Roster
from arena.storage.roster_csv import Student
from arena.storage.store import Store
from protocol.errors import ArenaError
from protocol.submitting import (
    Follow,
    ListSubmissions,
    Piece,
    Progressing,
    Send,
    SubmissionList,
    Submit,
)
from tests.support import arena_process
from tests.support.in_process import run_here
from tests.support.nats_server import NatsServer, nats_server
from tests.support.submitting import bot_zip

if TYPE_CHECKING:
    from tests.support.gateway_bots import StartedProgram

__all__ = ["nats_server"]

pytestmark = [pytest.mark.e2e, pytest.mark.needs("bwrap")]

_NASH = "import bots.ace_king_queen\n\n\nclass Mine(bots.ace_king_queen.Nash):\n    pass\n"
_GONE_S = 10.0
_OWNERS = ("ann", "bob", "cem")


class SubmissionArena:
    """`arena serve` that takes submissions; its settings may change when it starts again."""

    def __init__(self, start: Callable[..., StartedProgram], folder: Path, db: str | Path) -> None:
        self.folder = folder
        self._start = start
        self._db = db
        with Store(db) as store:
            roster = Roster(store.engine)
            made = roster.take([Student(name=name) for name in _OWNERS]).new
            self.tokens = {one.name: one.token for one in made}
            self.tokens["Eva"] = roster.instructor("Eva")
        self.program: StartedProgram | None = None
        self.url = ""

    def serve(self, settings: str = "") -> None:
        """Start it, and wait until it listens."""
        lines = [f"[serve]\nport = 0\ndb = {json.dumps(str(self._db))}\n[submissions]", settings]
        (self.folder / "class.toml").write_text("\n".join(lines))
        words = ("serve", "ace_king_queen", "--config", "class.toml", "--no-page")
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}
        self.program = self._start("arena", *words, cwd=self.folder, env=environment)
        self.url = self.program.until("arena at ws://").split()[2]

    def killed(self) -> dict[int, str]:
        """Kill it, and return what is left of its processes a moment later."""
        assert self.program is not None
        below = arena_process.below(self.program.process.pid)
        self.program.kill()
        end = time.monotonic() + _GONE_S
        while (left := arena_process.alive(below)) and time.monotonic() < end:
            time.sleep(0.02)
        return left

    def says(self, owner: str, *words: str, status: int = 0) -> Any:
        """A command of `arena`: its document."""
        secret = ("--url", self.url, "--token", self.tokens[owner])
        with contextlib.chdir(self.folder):
            done = run_here(*words, *secret, "--json")
        assert done.status == status, done.err
        return json.loads(done.out) if done.out else done.err

    def enters(self, owner: str) -> Entering:
        return entered(self.url, self.tokens[owner])


def upload(connection: SubmitterConnection, data: bytes, name: str) -> int:
    """Hand a program in; its number once it has arrived."""
    connection.send(Submit(name, len(data)))
    connection.expect(Send)
    connection.send(Piece(data))
    return connection.expect(Progressing).submission


def wait_until(connection: SubmitterConnection, state: str) -> Progressing:
    """What is said when a submission that is followed has come so far."""
    while (said := connection.expect(Progressing)).state != state:
        pass
    return said


@pytest.fixture
def arena(start: Callable[..., StartedProgram], tmp_path: Path) -> SubmissionArena:
    arena = SubmissionArena(start, tmp_path, tmp_path / "class.db")
    arena.serve()
    return arena


def test_a_bot_is_handed_in_from_a_terminal_and_played_as_a_version(arena: SubmissionArena) -> None:
    (arena.folder / "bot.py").write_text(_NASH)
    (arena.folder / "wrong").mkdir()
    (arena.folder / "wrong" / "bot.py").write_text("raise SystemExit('not today')\n")

    accepted = arena.says("ann", "submit", "bot.py", "--message", "the first")
    refused = arena.says("ann", "submit", "wrong/bot.py", status=1)
    listed = arena.says("ann", "submissions")
    log = arena.says("ann", "submissions", "log", str(accepted["submission"]))
    used = arena.says("ann", "submissions", "use", "v1", "--game", "ace_king_queen")
    arena.says("Eva", "submissions", "download", "1")
    disabled = arena.says("Eva", "submissions", "disable", "1")
    theirs = arena.says("bob", "submissions", "log", "1", status=1)

    assert (accepted["state"], accepted["version"]) == ("accepted", 1)
    assert accepted["text"] == "v1 is in play in ace_king_queen"
    assert {"step": "play ace_king_queen", "status": "ok"}.items() <= next(
        step for step in accepted["steps"] if step["step"].startswith("play")
    ).items()
    assert refused["state"] == "refused"
    assert refused["text"].endswith("v1 stays in play")
    assert [entry["version"] for entry in listed["entries"]] == [None, 1]
    assert [row["version"] for row in listed["in_play"]] == [1]
    assert "play ace_king_queen    ok      20 rounds" in log["check"]
    assert used["text"] == "v1 is in play in ace_king_queen"
    assert zipfile.ZipFile(arena.folder / "submission-1.zip").namelist() == ["bot.py"]
    assert disabled["in_play"] == []
    assert theirs == "arena: there is no submission 1\n"
    with pytest.raises(ArenaError, match="expected a token"), entered(arena.url, "guessed"):
        pass


def test_an_arena_that_is_killed_loses_nothing_that_has_arrived_and_keeps_nothing_half_done(
    arena: SubmissionArena, tmp_path: Path
) -> None:
    slow_build = bot_zip(bot_toml='build = "sleep 600"\nrun = "sleep 600"')
    slow_check = bot_zip(bot_toml='run = "sleep 600"')
    with arena.enters("ann") as ann, arena.enters("bob") as bob, arena.enters("cem") as cem:
        ann.send(Submit("bot.py", 100_000))
        ann.expect(Send)
        ann.send(Piece(b"x" * 40_000))
        building = upload(bob, slow_build, "bob.zip")
        wait_until(bob, "building")
        checking = upload(cem, slow_check, "cem.zip")
        left_of_build = arena.killed()
    arena.serve("build_s = 1")
    with arena.enters("cem") as cem:
        cem.send(Follow(checking))
        wait_until(cem, "checking")
        left_of_check = arena.killed()
    arena.serve("check_s = 10\ncloses = 2000-01-01T12:00:00Z")
    assert arena.program is not None
    assert " UTC" in arena.program.until("submissions were closed at 2000-01-01 ")
    with arena.enters("cem") as cem, arena.enters("Eva") as eva:
        cem.send(Follow(checking))
        refused = wait_until(cem, "refused")
        eva.send(ListSubmissions())
        entries = eva.expect(SubmissionList).entries
    spooled = [*tmp_path.glob("*-submissions/*/*"), *tmp_path.glob("cache/*/*/*/*")]

    assert left_of_build == left_of_check == {}
    assert "the check" in refused.text or "starts" in refused.text
    assert [(one.submission, one.owner, one.state) for one in entries] == [
        (checking, "cem", "refused"),
        (building, "bob", "refused"),
    ]
    assert "not done after 1 s" in entries[1].text
    assert spooled == []


@pytest.mark.needs("nats-server")
def test_J5_programs_play_on_hosts_of_which_one_is_killed_and_one_is_drained(
    start: Callable[..., StartedProgram], nats_server: NatsServer, tmp_path: Path
) -> None:
    """`take` is `submitted`: more matches than the arena plays with its one core go to hosts."""

    def host(name: str) -> StartedProgram:
        words = *nats_server.options(name), "--cache", str(tmp_path / f"cache-{name}"), "--json"
        program = start("arena", "host", *words, cwd=tmp_path)
        said_by(program, "started")
        return program

    arena = SubmissionArena(start, tmp_path, tmp_path / "class.db")
    where = nats_server.address("arena")
    arena.serve(
        f"cores = 1\n[bus]\nurl = '{where.url}'\nkey = '{where.key}'\nca = '{where.ca}'\n[[run]]\n"
        "name = 'night'\ngame = 'akq'\nmatches = 12\nleast = 3\ntake = 'submitted'\n"
        "settings = { hands = 10 }\n"
    )
    (tmp_path / "bot.py").write_text(_NASH)
    first = host("h1")
    for owner in _OWNERS:
        arena.says(owner, "submit", "bot.py")
    said_by(first, "told", "runs bots for ")
    first.kill()
    # Without a pause a slow machine has played all of it before the second host is there.
    arena.says("Eva", "pause", "night")
    second = host("h2")
    # The arena asks the killed one for room until it is missed.
    while states(arena) != {"h1": "silent", "h2": "idle"}:
        time.sleep(0.2)
    arena.says("Eva", "resume", "night")
    said_by(second, "told", "runs bots for ")
    second.process.terminate()
    said_by(second, "left")
    assert second.process.wait(60) == 0
    while (done := arena.says("Eva", "status")["competitions"]) and done[0]["settled"] < 36:
        time.sleep(0.2)

    with contextlib.chdir(tmp_path):
        # The last match is counted before it is written.
        while sum(played(rows := standings())) < 72:
            time.sleep(0.2)
        assert run_here("verify", "class.db").status == 0
    assert played(rows) == [24, 24, 24]
    assert all(row["eliminated"] is None for row in rows)


def states(arena: SubmissionArena) -> dict[str, str]:
    return {each["host"]: each["state"] for each in arena.says("Eva", "hosts")["hosts"]}


def standings() -> list[dict[str, Any]]:
    found = json.loads(run_here("standings", "--db", "class.db", "--json").out)
    rows: list[dict[str, Any]] = found["standings"]
    return rows


def played(rows: list[dict[str, Any]]) -> list[int]:
    return [row["played"] for row in rows]


def said_by(program: StartedProgram, event: str, text: str = "") -> None:
    """Wait until a host has said this."""
    assert program.process.stdout is not None
    for line in program.process.stdout:
        told = json.loads(line)
        if told["event"] == event and text in told["text"]:
            return
    raise AssertionError(f"it has ended without {event}")
