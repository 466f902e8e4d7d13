"""`arena worker` as a process of its own, on a real bus."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from arena.workers import nats_bus
from arena.workers.bus import ARENA_USER
from arena.workers.messages import HouseBot
from protocol.messages import Ending
from tests.support.arena_process import ROOT
from tests.support.bot_processes import living
from tests.support.bus_arena import BusArena, bus_job
from tests.support.in_process import run_here
from tests.support.nats_server import NatsServer, nats_server

__all__ = ["nats_server"]

pytestmark = pytest.mark.e2e

TIMEOUT_S = 120.0
HOUSE = HouseBot("random")
LONG = {"hands": 100_000}


class WorkerCommand:
    """A worker that was started with `--json`, and the arena that it works for."""

    def __init__(self, process: Process, arena: BusArena) -> None:
        self.process = process
        self.arena = arena
        self.name = f"ann-{os.getpid()}"  # of a bot that no other test has

    async def until_event(self, event: str) -> dict[str, object]:
        assert self.process.stdout is not None, "it was made with one"
        while line := await self.process.stdout.readline():
            told: dict[str, object] = json.loads(line)
            if told["event"] == event:
                return told
        raise AssertionError(f"it has ended without {event}")

    async def begin(self, settings: dict[str, int]) -> None:
        """Put a match, and wait until it is played."""
        players = (self.name, "ben")
        await self.arena.put(bus_job(players=players, programs=(HOUSE, HOUSE), settings=settings))
        await self.arena.until_reported(
            lambda report: any(each.decisions > 0 for each in report.attempts)
        )
        assert living(self.name) != []

    async def until_nothing_is_left(self) -> None:
        while living(self.name):
            await asyncio.sleep(0.05)  # the processes of a killed worker tell nobody of their end


@pytest.fixture
async def worker(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[WorkerCommand]:
    bus = await nats_bus.connect(nats_server.address(ARENA_USER), "test", ARENA_USER)
    words = ("worker", *nats_server.options("w1"), "--cores", "2", "--json")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "arena", *words, "--cache", str(tmp_path / "cache")),
        stdout=PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    async with asyncio.timeout(TIMEOUT_S):
        arena = BusArena(bus, worker="w1", worker_class=None)
        made = WorkerCommand(process, await arena.open())
        yield made
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await made.until_nothing_is_left()
        await bus.close()


async def test_worker_says_what_it_can_play_and_finishes_it_at_ctrl_c(
    worker: WorkerCommand,
) -> None:
    started = await worker.until_event("started")
    await worker.begin({"hands": 3_000})
    worker.process.send_signal(signal.SIGINT)
    leaving = await worker.until_event("leaving")
    status = await worker.process.wait()

    assert leaving["text"] == "takes no more matches; 1 match left · Ctrl-C again stops it"
    assert status == 0
    [record] = [each.record for each in worker.arena.results]
    assert (record.termination.kind, record.worker) == (Ending.COMPLETED, "w1")
    assert (started["worker"], started["cores"]) == ("w1", 2)
    assert living(worker.name) == []


@pytest.mark.parametrize(("number", "status"), [("SIGINT", 130), ("SIGTERM", 0), ("SIGKILL", -9)])
async def test_a_worker_that_is_stopped_at_once_leaves_nothing(
    worker: WorkerCommand, number: str, status: int
) -> None:
    await worker.begin(LONG)
    worker.process.send_signal(signal.Signals[number])
    if number == "SIGINT":
        await worker.until_event("leaving")
        while worker.process.returncode is None:  # an impatient user presses it again
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.process.pid, signal.SIGINT)  # asyncio's own would reap it
            await asyncio.sleep(0.01)

    assert await worker.process.wait() == status
    assert worker.arena.results == []
    if number == "SIGKILL":
        await worker.until_nothing_is_left()
    assert living(worker.name) == []


def test_wrong_name_game_or_bus_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.cli.worker.speed", lambda: 1.0)  # it takes two seconds
    for command, words, expected in (
        ("worker", ("--name", "a.b"), "expected a name of at most 32 letters"),
        ("worker", ("--games", "chess"), "unknown game 'chess'"),
        ("worker", ("--cache", "/usr/share/card-arena"), "expected a cache that bots do not see"),
        ("worker", (), "127.0.0.1:1"),
        ("host", ("--name", "arena"), "expected a name of at most 32 letters"),
        ("host", ("--cache", "/usr/share/card-arena"), "expected a cache that bots do not see"),
        ("host", ("--bus-key", "none.nk"), "cannot read none.nk"),
        ("host", (), "127.0.0.1:1"),
    ):
        fixed = (command, "--cache", str(tmp_path), "--bus", "nats://127.0.0.1:1")
        done = run_here(*fixed, *words)

        assert done.status in (1, 2)
        [line] = done.err.splitlines()
        assert expected in line
