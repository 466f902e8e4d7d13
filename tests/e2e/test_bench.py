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

from arena.engine.rules import Trial
from arena.games import GAMES
from arena.lab.bench import Group
from arena.lab.bench.against import against, checked_out
from arena.lab.bench.clients import arena_server, our_bots
from arena.lab.bench.games import deadwood_cost, game_rate, worked
from arena.lab.bench.network import (
    MeasuredSide,
    Turns,
    client_costs,
    in_turn,
    match_rate,
    network_rate,
    steady_server,
)
from arena.lab.bench.processes import loaded, module
from arena.lab.idle_connections import too_few_files
from bots.ace_king_queen import Bluffer
from bots.client import Client
from protocol.codec import Encoding
from protocol.errors import ArenaError
from protocol.messages import Match, Over
from tests.support.arena_process import ROOT, alive, below, state

pytestmark = pytest.mark.e2e

# More decisions than the questions of 64 matches that may be on their way when a turn begins, so
# that every process works in every turn, even on a busy machine.
BLINK = Turns(rounds=2, seconds=0.05, decisions=100)
EACH_ENCODING = pytest.mark.parametrize("encoding", [*Encoding])
TABLES, HANDS = 3, 10


@EACH_ENCODING
@pytest.mark.parametrize("together", [1, 3])
async def test_our_client_plays_the_prototype_to_its_end(encoding: Encoding, together: int) -> None:
    words = ("-m", "arena.lab.bench.prototype", str(TABLES), str(HANDS), str(together))
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
                        encoding=encoding,
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


@pytest.mark.parametrize(("encoding", "tables"), [(Encoding.JSON, 4), (Encoding.MSGPACK, 1)])
async def test_an_arena_is_measured_beside_a_prototype_and_an_echo(
    tmp_path: Path, encoding: Encoding, tables: int
) -> None:
    rate = await network_rate(tmp_path, encoding, tables, BLINK)

    assert (rate.tables, rate.encoding, rate.delay_ms) == (tables, encoding.value, 0)
    for figure in (rate.decisions_per_s, rate.echo_per_s, rate.prototype_per_s, rate.server_us):
        assert figure > 0
    assert rate.server_us_range[0] <= rate.server_us <= rate.server_us_range[1]
    assert [*tmp_path.iterdir()] == []


async def test_over_a_slow_network_a_match_waits_for_its_delay(tmp_path: Path) -> None:
    rate = await network_rate(tmp_path, Encoding.JSON, 1, Turns(1, 0.4), delay_ms=20)

    # A decision takes 40 ms on its way, which makes 25 in a second, where there are thousands
    # without a delay. A busy machine may see some more of them in a window.
    assert 0 < rate.decisions_per_s < 100
    assert 0 < rate.echo_per_s < 100


async def test_clients_are_measured_beside_a_thin_one(tmp_path: Path) -> None:
    ours, example = await client_costs(tmp_path, Encoding.MSGPACK, BLINK)

    assert (ours.client, example.client) == ("ours", "example")
    for cost in (ours, example):
        assert cost.client_us > 0
        assert cost.thin_us > 0
        assert cost.ratio_range[0] <= cost.ratio <= cost.ratio_range[1]


async def test_a_round_robin_of_many_bots_is_measured(tmp_path: Path) -> None:
    rate = await match_rate(tmp_path, BLINK, bots=40)

    assert rate.bots == 40
    assert rate.matches_per_s > 0
    assert rate.server_us > 0


async def test_games_are_measured_in_process() -> None:
    rate = await game_rate("three_card_poker", rounds=1, seconds=0.01)

    assert (rate.game, rate.bot) == ("three_card_poker", "random")
    assert rate.rounds_per_s > 0
    assert rate.decisions_per_s > 0


@pytest.mark.parametrize("hands", ["random", "rich"])
async def test_deadwood_is_measured(hands: str) -> None:
    cost = await deadwood_cost(hands, rounds=1, seconds=0.01)

    assert cost.hands == hands
    assert cost.us > 0
    assert (cost.open_spiel_us is None) == (cost.ratio is None)


async def test_a_game_that_cannot_be_played_is_an_error_of_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = Trial({"hands": 0})
    game = msgspec.structs.replace(GAMES["gin_rummy"], bench=settings)
    monkeypatch.setattr("arena.lab.bench.games.game_named", lambda name: game)

    with pytest.raises(ArenaError, match=r"\Agin_rummy of ours was to be timed: [^\n]+\Z"):
        await worked("gin_rummy", 0.01)


@pytest.mark.parametrize(("game", "bot"), [("blackjack", "simple"), ("high_low", "random")])
async def test_a_bot_that_costs_next_to_nothing_is_timed(game: str, bot: str) -> None:
    assert (await game_rate(game, rounds=1, seconds=0.01)).bot == bot


async def test_two_trees_are_driven_and_compared(tmp_path: Path) -> None:
    repository = clone_into(tmp_path / "repository")
    files = tmp_path / "files"
    files.mkdir()

    with checked_out("HEAD", repository) as tree:
        rows = await against(
            tree, (Group.TABLES, Group.DEADWOOD), files, BLINK, tables_of_rows=(4,)
        )

    assert [row.row for row in rows] == [
        "server, 4 matches",
        "deadwood of random hands",
        "deadwood of rich hands",
    ]
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
    for words in (
        ("init", "--quiet"),
        ("add", "."),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "one"),
    ):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    return folder


async def test_the_other_tree_is_what_is_measured(tmp_path: Path) -> None:
    repository = clone_into(tmp_path / "repository")
    (repository / "arena/competitions/arena_host.py").write_text("raise SystemExit('other tree')")

    with pytest.raises(ArenaError, match="has ended: other tree"):
        await in_turn(tmp_path, [steady_server(4, tree=repository)], BLINK)


async def test_clients_that_end_are_an_error_and_not_a_figure(tmp_path: Path) -> None:
    gone = module("no.such.client")
    side = MeasuredSide(arena_server(1), [gone], 1)

    with pytest.raises(ArenaError, match=r"has ended: .*no\.such"):
        await in_turn(tmp_path, [side], BLINK)


async def test_the_clients_stand_still_between_turns(tmp_path: Path) -> None:
    server, clients = arena_server(2), our_bots(Encoding.JSON, 2)

    async with loaded(tmp_path, server, clients, tables=2) as side:
        until(lambda: states_below().count("T") == 1)
        first = await side.turn(0, decisions=500)
        until(lambda: states_below().count("T") == 1)

    assert first.decisions >= 500


def states_below() -> list[str]:
    return [state(one.pid) for one in below(os.getpid())]


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
        monkeypatch.setattr("arena.lab.idle_connections.most_files", lambda most=most: most)

        assert too_few_files(5_000) is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_all_that_is_measured(number: signal.Signals, tmp_path: Path) -> None:
    process = start_bench(tmp_path, "clients")
    until(lambda: len(below(process.pid)) >= 2)
    started = below(process.pid)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)

    assert (process.returncode, out) == (130, "")
    assert err == "arena: interrupted, all that was measured is stopped\n"
    assert alive(started) == {}
    assert [*tmp_path.iterdir()] == []


def test_sigterm_while_a_commit_is_checked_out_leaves_no_files(tmp_path: Path) -> None:
    repository = clone_into(tmp_path / "repository")
    files, programs = tmp_path / "files", tmp_path / "programs"
    files.mkdir()
    programs.mkdir()
    git = programs / "git"
    git.write_text(
        f"""#!/bin/sh
        case "$*" in *" archive "*) kill -TERM $PPID;; esac
        exec {shutil.which("git")} "$@"
        """
    )
    git.chmod(0o755)

    done = subprocess.run(
        [sys.executable, "-m", "arena", "bench", "--against", "HEAD"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "TMPDIR": str(files),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        },
    )

    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "arena: interrupted, all that was measured is stopped\n"
    assert [*files.iterdir()] == []


@pytest.mark.parametrize("words", [("clients",), ("--idle", "100")], ids=" ".join)
def test_all_that_is_measured_ends_with_a_bench_that_is_killed(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    with start_bench(tmp_path, *words) as process:
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
