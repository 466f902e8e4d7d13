"""`arena serve`: bots that it launches, its settings, what it reports, and how signals end it."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from arena.storage.store import CompetitionState, Store
from tests.e2e.test_tls import make
from tests.support.arena_process import ROOT, RunningProcess, alive, below, printed
from tests.support.in_process import run_here
from tests.support.late_imports import LATE
from tests.support.pipe_bot import INTERPRETER, bot, pipe_bot, slow, write_bots

if TYPE_CHECKING:
    from tests.support.gateway_bots import StartedProgram

pytestmark = pytest.mark.e2e

Serve = Callable[..., "StartedProgram"]

CRASH = r"raise SystemExit('Error: no such luck\n\tat Bot.main')"
SLEEPER = f"{INTERPRETER} -c 'import time; time.sleep(600)'"

needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no signals")


@pytest.fixture
def serve(start: Callable[..., StartedProgram], tmp_path: Path) -> Serve:
    """Start `arena serve akq --once --json` beside `good.py`, `cheat.py` and `crash.py`."""
    write_bots(tmp_path, good=pipe_bot(), cheat=pipe_bot(value='"all in"'), crash=CRASH)

    def call(*words: str) -> StartedProgram:
        settings = ("--port", "0", "--set", "hands=10", "--matches", "2")
        fixed = ("akq", "--once", "--json", *settings)
        return start("arena", "serve", *fixed, *words, cwd=tmp_path)

    return call


def test_launched_bots_play_and_what_becomes_of_them_is_told(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "class.toml").write_text(
        f"[[bot]]\ncommand = \"stdio: {INTERPRETER} good.py\"\nname = 'ann'"
    )
    offenders = (*bot("crash.py", "bad"), *bot("cheat.py"), "--bot", f"sleeper={SLEEPER}")
    words = ("--config", "class.toml", *bot("good.py"), *offenders)
    arena = serve(*words, "--hello-ms", "5000")
    line = arena.until("eliminated")
    status, out, err = arena.ends()
    report = json.loads(out)

    assert status == 0, err
    assert {row["name"] for row in report["standings"]} == {"ann", "good", "cheat"}
    assert [verdict["bot"] for verdict in report["verdicts"]] == ["cheat"]
    [pair] = {row["played"] for row in report["standings"] if row["name"] != "cheat"}
    assert pair == 2
    assert line.startswith("cheat (ace_king_queen) eliminated: ")
    assert '"all in"' in line
    assert err.count("cheat (ace_king_queen)") == 1
    assert "bad has ended: crashed: exit status 1; it said: Error: no such luck" in err.splitlines()
    assert "sleeper did not say hello with its ARENA_TOKEN within 5,000 ms" in err.splitlines()
    assert "Traceback" not in err


@needs_signals
def test_J5_a_running_arena_imports_nothing(
    start: Callable[..., StartedProgram], tmp_path: Path
) -> None:
    (tmp_path / "class.toml").write_text(
        "[[run]]\ngame = 'akq'\nhouse = ['nash', 'random']\nsettings.hands = 10\n"
        "[[run]]\ngame = 'gin'\nform = 'ladder'\nhouse = ['expert', 'random']\nsettings.games = 1\n"
    )
    config = str(tmp_path / "class.toml")
    where = ("--port", "0", "--log", "-", "--db", str(tmp_path / "class.db"))
    arena = start("tests.support.late_imports", "serve", "--config", config, *where)
    lines = [arena.until(f" {game}-") for game in ("akq", "gin", "gin")]
    arena.process.send_signal(signal.SIGTERM)
    _, out, err = arena.ends()

    assert all("completed" in line for line in lines)
    assert "round robin" in out
    assert LATE not in err


@pytest.mark.parametrize(("is_stopped", "matches"), [(False, 2), (True, 10_000)])
def test_J5_results_that_another_program_keeps_from_the_disk(
    serve: Serve, tmp_path: Path, is_stopped: bool, matches: int
) -> None:
    write_bots(tmp_path, slow=slow(0.01))
    bots = *bot("slow.py", "ann"), *bot("slow.py", "ben")
    arena = serve(*bots, "--db", "a.db", "--matches", str(matches))
    page = arena.until("the page is at ").split()[-1]
    arena.until("2 bots compete")
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        arena.until("; matches that are on are played out, no other begins: cannot write")
        with pytest.raises(HTTPError, match="503"):
            urlopen(f"{page}/healthz")
        if is_stopped:
            arena.process.terminate()
            arena.process.wait(60)
    status, out, err = arena.ends()

    if is_stopped:
        assert (status, out) == (1, "")
        assert err.splitlines()[-1].startswith(
            "arena: cannot write the database a.db: database is locked"
        )
        assert "all matches that were over" not in err
        return
    assert status == 0, err
    assert "the database is written again, and play goes on" in err.splitlines()
    assert json.loads(out)["played"] == 2
    assert printed("verify", str(tmp_path / "a.db"))["matches"] == 2


def test_a_run_has_a_title_with_spaces_everywhere(
    start: Callable[..., StartedProgram], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "class.toml").write_text(
        "[serve]\nport = 0\n[[run]]\nname = 'Friday evening'\ngame = 'akq'\n"
        "house = ['nash', 'honest']\nleast = 2\nsettings = { hands = 10 }\n"
    )

    status, _, err = start("arena", "serve", "--config", "class.toml", "--once").ends()
    assert status == 0, err
    assert printed("standings", "Friday evening")["run"] == "Friday evening"
    assert run_here("export", "out", "--competition", "Friday evening").status == 0
    assert "Friday evening: " in (tmp_path / "out/index.html").read_text()
    assert printed("verify", "arena.db")["failed"] == []


def test_a_bot_that_takes_a_name_of_the_roster_from_its_folder_is_told(
    start: Callable[..., StartedProgram], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "class.csv").write_text("name\nann\nben\n")
    (tmp_path / "class.toml").write_text(
        "[serve]\nport = 0\n[[bot]]\ncommand = 'python3 Ann/bot.py'\n"
    )
    (tmp_path / "Ann").mkdir()
    (tmp_path / "Ann/bot.py").write_text("input()")
    printed("roster", "import", "class.csv")

    arena = start("arena", "serve", "--config", "class.toml")

    arena.until(
        "on the roster, and names of bots that are launched here: Ann; those of the roster cannot"
    )


@pytest.fixture
def service(start: Callable[..., StartedProgram], tmp_path: Path) -> Serve:
    """Start `arena serve` in a folder of its own."""
    return lambda *words: start("arena", "serve", "--port", "0", *words, cwd=tmp_path)


@pytest.fixture
def slow_bots(tmp_path: Path) -> tuple[str, ...]:
    """Two bots that play without end, and leave the cores to others."""
    write_bots(tmp_path, slow=slow(0.01))
    return *bot("slow.py", "ann"), *bot("slow.py", "ben")


def processes_of(arena: StartedProgram) -> set[RunningProcess]:
    """Wait until the arena has started processes."""
    while not (started := below(arena.process.pid)):
        time.sleep(0.02)
    return started


def is_stopped(arena: StartedProgram, name: str) -> None:
    """The arena ends with status 0, and says by which signal."""
    status, _, err = arena.ends()

    assert status == 0, err
    assert err.splitlines()[-1] == (
        f"arena: stopped by {name}; all matches that were over are in arena.db, "
        "and the same command goes on from there"
    )
    assert "Traceback" not in err


@needs_signals
def test_a_signal_ends_an_arena_in_the_middle_of_matches_with_its_bots(
    service: Serve, tmp_path: Path
) -> None:
    late = ("--bot", f"late={SLEEPER}", "--hello-ms", "1000")
    house = f"{INTERPRETER} -m bots akq random"
    bots = ("--bot", f"ann={house} --name ann", "--bot", f"ben={house} --name ben")
    arena = service("akq", "--set", "hands=1000000", *late, *bots)
    arena.until("2 bots compete")
    started = below(arena.process.pid)
    arena.process.send_signal(signal.SIGHUP)

    is_stopped(arena, "SIGHUP")
    assert len(started) >= 3
    assert alive(started) == {}
    with Store(tmp_path / "arena.db", create=False) as store:
        [competition] = store.competitions()
        assert competition.state is CompetitionState.RUNNING


SLOW_START = """
import os, signal, sys
import arena.cli._serving as serving
from arena.cli import main
opened = serving.Store
def opens(*words, **options):
    os.kill(os.getpid(), signal.SIGTERM)
    return opened(*words, **options)
serving.Store = opens
sys.exit(main(["serve", "--port", "0"]))
"""


@needs_signals
def test_a_signal_while_the_database_is_opened_lets_that_be_done_first(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SLOW_START],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )

    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") <= 3
    assert "arena: stopped by SIGTERM" in done.stderr
    assert [file.name for file in tmp_path.glob("arena.db*")] == ["arena.db"]


@needs_signals
def test_more_signals_while_it_ends_do_no_harm(service: Serve, tmp_path: Path) -> None:
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    (tmp_path / "stubborn.py").write_text(stubborn)
    arena = service("--bot", f"stubborn={INTERPRETER} stubborn.py")
    port = int(arena.until("the page is at").rpartition(":")[2])
    started = processes_of(arena)
    arena.process.send_signal(signal.SIGTERM)
    with suppress(ConnectionError):  # it does not listen any more: it is ending
        while True:
            socket.create_connection(("127.0.0.1", port)).close()
    while arena.process.poll() is None:
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            arena.process.send_signal(getattr(signal, name))
        time.sleep(0.001)  # while they come quicker than asyncio takes them it does nothing else
    is_stopped(arena, "SIGTERM")
    assert alive(started) == {}


def test_what_is_started_while_it_launches_bots_is_played_once(
    service: Serve, tmp_path: Path, slow_bots: tuple[str, ...]
) -> None:
    token = printed("roster", "instructor", "--db", str(tmp_path / "arena.db"))["token"]
    late = ("--bot", f"late={SLEEPER}", "--hello-ms", "4000")
    game = ("akq", "--players", "9", "--set", "hands=1000000", "--open")
    arena = service(*game, *late, *slow_bots)
    port = int(arena.until("the page is at").rpartition(":")[2])
    here = ("--url", f"ws://127.0.0.1:{port}", "--token", token)
    while len(json.load(urlopen(f"http://127.0.0.1:{port}/api/lobby.json"))["bots"]) < 2:
        time.sleep(0.05)
    started = run_here("start", "akq", *here)
    arena.until("did not say hello")
    status = printed("status", *here)

    assert started.status == 0, started.err
    assert len(status["competitions"]) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="it has no terminals of this kind")
def test_a_closed_terminal_ends_the_arena_that_ran_in_it(tmp_path: Path) -> None:
    ours, its = os.openpty()
    arena = subprocess.Popen(
        [sys.executable, "-c", IN_TERMINAL],
        cwd=tmp_path,
        stdin=its,
        stdout=its,
        stderr=its,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    os.close(its)
    said = b""
    try:
        while b"the page is at" not in said:
            said += os.read(ours, 1000)
        os.close(ours)

        assert arena.wait(60) == 0
    finally:
        arena.kill()
        arena.wait()
    assert [file.name for file in tmp_path.glob("arena.db*")] == ["arena.db"]


IN_TERMINAL = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from arena.cli import main
sys.exit(main(["serve", "--port", "0"]))
"""


@needs_signals
def test_who_is_started_with_nohup_outlives_the_terminal(
    start: Callable[..., StartedProgram], tmp_path: Path
) -> None:
    (tmp_path / "quiet.py").write_text(
        "import signal, runpy; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
        "runpy.run_module('arena', run_name='__main__')"
    )
    arena = start(
        "quiet",
        *("serve", "--port", "0"),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
    )
    arena.until("the page is at")
    arena.process.send_signal(signal.SIGHUP)
    arena.process.send_signal(signal.SIGTERM)

    is_stopped(arena, "SIGTERM")


def test_a_renewed_certificate_is_shown_without_a_restart(service: Serve, tmp_path: Path) -> None:
    files = make(tmp_path, "arena")
    others = make(tmp_path, "other")
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    arena = service("--tls-cert", "arena.crt", "--tls-key", "arena.key")
    port = int(arena.until("the page is at").rpartition(":")[2])

    def shown() -> bytes | None:
        with (
            socket.create_connection(("127.0.0.1", port)) as raw,
            trust.wrap_socket(raw) as encrypted,
        ):
            return encrypted.getpeercert(binary_form=True)

    def until(text: str) -> set[bytes | None]:
        """The certificates that are shown until the arena says that."""
        reading = threading.Thread(target=lambda: arena.until(text))
        reading.start()
        seen = set()
        while reading.is_alive():
            seen.add(shown())
            reading.join(0.05)
        return seen

    first = shown()
    os.replace(others[0], files[0])
    seen = until("the certificate stays as it was: expected the private key of")
    os.replace(others[1], files[1])
    until("the certificate was renewed: arena.crt")

    assert seen == {first}
    assert shown() not in (first, None)
    arena.process.terminate()
    assert arena.ends()[2].count("certificate") == 2
