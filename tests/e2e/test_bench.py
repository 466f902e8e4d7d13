"""`arena bench` in small sizes: real processes, a match or two, rounds that last a blink."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.tools.bench.against import against, checked_out
from tests.tools.bench.games import worked
from tests.tools.bench.groups import Group
from tests.tools.bench.network import Turns, network_rate

from arena.engine.rules import Trial
from arena.games import GAMES
from bots.ace_king_queen import Bluffer
from bots.client import Client
from protocol.codec import Encoding
from protocol.errors import ArenaError
from protocol.messages import Match, Over
from tests.support.arena_process import ROOT, alive, below, state
from tests.support.git_repository import commit_all, git
from tests.tools.bench.idle import too_few_files

pytestmark = pytest.mark.e2e

# More decisions than the questions of 64 matches that may be on their way when a turn begins, so
# that every process works in every turn, even on a busy machine.
BLINK = Turns(rounds=2, seconds=0.05, decisions=100)
TABLES, HANDS = 3, 10


async def test_our_client_plays_the_prototype_to_its_end() -> None:
    words = ("-m", "tests.tools.bench.prototype", str(TABLES), str(HANDS), "3")
    prototype = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdout=asyncio.subprocess.PIPE
    )
    overs: list[tuple[Match, Over]] = []
    all_over = asyncio.Event()

    def on_over(match: Match, over: Over) -> None:
        overs.append((match, over))
        if len(overs) == 2 * TABLES:
            all_over.set()

    try:
        assert prototype.stdout is not None
        url = (await prototype.stdout.readline()).decode().split()[-1]
        async with asyncio.TaskGroup() as group:
            bots = [
                group.create_task(
                    Client(
                        url,
                        name,
                        {"ace_king_queen": Bluffer},
                        tables=TABLES,
                        encoding=Encoding.MSGPACK,
                        on_over=on_over,
                    ).run()
                )
                for name in ("one", "two")
            ]
            async with asyncio.timeout(60):
                await all_over.wait()
            for bot in bots:
                bot.cancel()
    finally:
        prototype.kill()
        await prototype.wait()

    for match, over in overs:
        assert over.termination.kind == "completed"
        assert sum(over.scores) == 0
        assert over.news[-1].scores == over.scores  # type: ignore[attr-defined]
        assert over.news[-1].round == HANDS  # type: ignore[attr-defined]
        assert match.settings == {"hands": HANDS}


async def test_an_arena_is_measured_beside_a_prototype_and_an_echo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tests.tools.bench.processes._START_S", 280.0
    )  # on a machine with other work
    rate = await network_rate(tmp_path, Encoding.JSON, 4, BLINK)

    assert (rate.tables, rate.encoding, rate.delay_ms) == (4, "json", 0)
    for figure in (rate.decisions_per_s, rate.echo_per_s, rate.prototype_per_s, rate.server_us):
        assert figure > 0
    assert rate.server_us_range[0] <= rate.server_us <= rate.server_us_range[1]
    assert [*tmp_path.iterdir()] == []


async def test_a_game_that_cannot_be_played_is_an_error_of_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = Trial({"hands": 0})
    game = msgspec.structs.replace(GAMES["gin_rummy"], bench=settings)
    monkeypatch.setattr("tests.tools.bench.games.game_named", lambda name: game)

    with pytest.raises(ArenaError, match=r"\Agin_rummy of ours was to be timed: [^\n]+\Z"):
        await worked("gin_rummy", 0.01)


async def test_two_trees_are_driven_and_compared(tmp_path: Path) -> None:
    repository = clone_into(tmp_path / "repository")
    files = tmp_path / "files"
    files.mkdir()

    with checked_out("HEAD", repository) as tree:
        rows = await against(tree, (Group.DEADWOOD,), files, BLINK)

    assert [row.row for row in rows] == ["deadwood of random hands", "deadwood of rich hands"]
    for row in rows:
        assert 0 < row.low <= row.ratio <= row.high
        assert row.level == 0.5
        assert row.verdict == "too few rounds to say"


def clone_into(folder: Path) -> Path:
    """A repository with this tree's packages in its only commit."""
    folder.mkdir()
    for package in ("arena", "bots", "protocol"):
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, folder / package, ignore=skip)
    git(folder, "init")
    commit_all(folder)
    return folder


def test_a_limit_of_open_files_that_is_too_low_is_one_line_and_the_rest_goes_on() -> None:
    done = subprocess.run(
        ["sh", "-c", f"ulimit -n 500 && exec {sys.executable} -m arena bench idle --json"],
        capture_output=True,
        text=True,
        check=True,
    )

    measured = json.loads(done.stdout)
    assert measured["idle"] is None
    [note] = measured["notes"]
    assert note == "idle: 5,000 bots need a limit of 5,350 open files, this system has 500"
    assert done.stderr == ""


def test_a_limit_that_is_high_enough_is_no_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    for most in (None, 5_350):
        monkeypatch.setattr("tests.tools.bench.idle.most_files", lambda most=most: most)

        assert too_few_files(5_000) is None


def test_a_signal_stops_all_that_is_measured(tmp_path: Path) -> None:
    process = start_bench(tmp_path, "clients")
    until(lambda: len(below(process.pid)) >= 2)
    started = below(process.pid)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)

    assert (process.returncode, out) == (130, "")
    assert err == "arena: interrupted, all that was measured is stopped\n"
    assert alive(started) == {}
    assert [*tmp_path.iterdir()] == []


def test_all_that_is_measured_ends_with_a_bench_that_is_killed(tmp_path: Path) -> None:
    with start_bench(tmp_path, "clients") as process:
        try:
            # The third process of `clients` starts when the second, a client, stands still.
            until(lambda: len(below(process.pid)) >= 3)
            process.send_signal(signal.SIGSTOP)  # it starts no more
            until(lambda: state(process.pid) == "T")
            started = below(process.pid)
        finally:
            process.kill()

    try:
        until(lambda: not alive(started))
    finally:
        for pid in alive(started):
            os.kill(pid, signal.SIGKILL)


def start_bench(folder: Path, *words: str) -> subprocess.Popen[str]:
    """`arena bench WORDS` with its temporary files in a folder."""
    return subprocess.Popen(
        [sys.executable, "-m", "arena", "bench", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )


def until(is_so: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < give_up
