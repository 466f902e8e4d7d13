"""The process that analyses, as it is: what it answers, how it gives way, and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.formats.formats import schedule_of
from arena.storage.store import Store
from arena.web.analysis_client import AnalysisClient
from arena.web.analysis_process import NICENESS, PAUSE, RESUME
from arena.web.analysis_tasks import AnalysisKind, AnalysisQuestion, AnalysisTask
from arena.web.answering_process import PROCESSING, Header
from arena.web.play.recent import PersonalMatch
from arena.web.reader_client import ReaderClient
from tests.support.arena_process import state
from tests.support.page_reader import PUBLIC
from tests.support.sample_database import SampleWriter, personal_match, plan, play, write

pytestmark = pytest.mark.e2e

TIMEOUT_S = 60.0
GAME = "ace_king_queen"
COMPETITION = f"{GAME}-00000000"
LONG = {"hands": 20_000}
LONG_MATCH = "long-1"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished competition, and one with matches that take seconds to judge."""
    file = write(tmp_path_factory.mktemp("analyses") / "arena.db", [GAME])
    with Store(file) as store:
        writer = SampleWriter(store, plan(GAME, settings=LONG), "long")
        pairing = next(schedule_of(writer.plan))[0]
        writer.finished(pairing, play(GAME, settings=LONG), LONG_MATCH)
        store.competition_finished("long", 2_000.0, ())
    return file


@asynccontextmanager
async def analysing(file: Path) -> AsyncIterator[AnalysisClient]:
    """A client that is closed at the end, and leaves no process."""
    with Store(file) as store:
        reader = ReaderClient(store)
        client = AnalysisClient(store, reader)
        try:
            yield client
            pid = client.process.pid
        finally:
            await client.close()
            await reader.close()
    assert pid is None or state(pid) == ""


async def document(
    client: AnalysisClient, path: str, sat: PersonalMatch | None = None, **query: str
) -> dict[str, Any]:
    """The state that ends an analysis."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            answer = await client.ask(f"/api/{path}", query, PUBLIC, sat)
            found: dict[str, Any] = msgspec.json.decode(answer.body)
            if found["state"] not in ("queued", "running"):
                return found
            await asyncio.sleep(0.02)


async def started(client: AnalysisClient) -> int:
    """Its process, once there is one."""
    async with asyncio.timeout(TIMEOUT_S):
        while client.process.pid is None or not client.process.has_answered:
            await asyncio.sleep(0.01)
    return client.process.pid


# ---- Answers


async def test_mistakes_and_strength_come_from_the_process(file: Path) -> None:
    async with analysing(file) as client:
        mistakes = await document(client, f"matches/{GAME}-1/mistakes.json", seat="2")
        strength = await document(client, f"competitions/{COMPETITION}/strength.json", bot="ann")

        assert mistakes["state"] == strength["state"] == "done"
        assert mistakes["mistakes"]["seat"] == 2
        assert strength["strength"]["bot"] == "ann"


async def test_it_has_the_lowest_priority_before_it_does_anything(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(NICENESS)
    async with analysing(file) as client, asyncio.timeout(TIMEOUT_S):
        await client.ask(f"/api/matches/{GAME}-1/mistakes.json", {}, PUBLIC)
        while (pid := client.process.pid) is None or os.getpriority(os.PRIO_PROCESS, pid) < 19:
            await asyncio.sleep(0.01)
        while os.sched_getscheduler(pid) != os.SCHED_IDLE:
            await asyncio.sleep(0.01)

        assert not client.process.has_answered


async def test_a_persons_match_goes_with_the_question(file: Path) -> None:
    async with analysing(file) as client:
        found = await document(client, "matches/p-1/mistakes.json", sat=personal_match(GAME))

        assert found["state"] == "done"
        assert found["mistakes"]["decisions"] > 0


async def test_a_process_that_is_killed_costs_one_answer(file: Path) -> None:
    path = f"matches/{LONG_MATCH}/mistakes.json"
    async with analysing(file) as client:
        asking = asyncio.create_task(document(client, path))
        os.kill(await started(client), signal.SIGKILL)
        failed = await asking
        other = await document(client, f"matches/{GAME}-1/mistakes.json")

        assert failed["state"] == "failed"
        assert other["state"] == "done"


# ---- Pauses and ends


COMPUTES = """
from arena.web import analysis_process
from arena.web.analysis_answers import AnalysisAnswers

def compute(self, question, tell):
    while True:
        tell(1, 2)

AnalysisAnswers.answer = compute
analysis_process._NEWS_S = 0.02
analysis_process._MOST_CPU_S = {most_cpu_s}
analysis_process.main()
"""


def computing(file: Path, most_cpu_s: float = 100.0) -> subprocess.Popen[bytes]:
    """The process at a task that never ends, of which it says how far it is."""
    process = subprocess.Popen(
        [sys.executable, "-c", COMPUTES.format(most_cpu_s=most_cpu_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    task = AnalysisTask(kind=AnalysisKind.MISTAKES, id="m", bot="ann", seat=1)
    process.stdin.write(json.dumps({"db": str(file)}).encode() + b"\n")
    process.stdin.write(msgspec.json.encode(AnalysisQuestion(id=1, task=task)) + b"\n")
    process.stdin.flush()
    for _ in range(3):
        assert heard(process) == PROCESSING
    return process


def heard(process: subprocess.Popen[bytes]) -> int:
    """The status of the next thing that it says; 0 if it has ended."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        return 0
    header = msgspec.json.decode(line, type=Header)
    process.stdout.read(header.bytes)
    return header.status


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def until_paused(pid: int) -> None:
    """Wait until it has used no processor for a while."""
    give_up_at = time.monotonic() + TIMEOUT_S
    before = -1.0
    while (now := cpu_s(pid)) != before:
        assert time.monotonic() < give_up_at, "it computes on"
        before = now
        time.sleep(0.2)


def test_it_pauses_and_goes_on_wherever_it_is(file: Path) -> None:
    with computing(file) as process:
        assert process.stdin is not None
        for _ in range(2):
            process.stdin.write(PAUSE)
            process.stdin.flush()
            until_paused(process.pid)
            before = cpu_s(process.pid)
            process.stdin.write(RESUME)
            process.stdin.flush()
            give_up_at = time.monotonic() + TIMEOUT_S
            while cpu_s(process.pid) < before + 0.05:
                assert heard(process) == PROCESSING
                assert time.monotonic() < give_up_at
        process.stdin.close()
        while heard(process):
            pass
        assert process.wait(TIMEOUT_S) == 0


def test_it_ends_with_its_input_while_it_is_paused_too(file: Path) -> None:
    with computing(file) as process:
        assert process.stdin is not None
        process.stdin.write(PAUSE)
        process.stdin.flush()
        process.send_signal(signal.SIGINT)  # Ctrl-C is for the arena
        until_paused(process.pid)
        process.stdin.close()

        assert process.wait(TIMEOUT_S) == 0


def test_a_task_that_takes_too_much_cpu_ends_it(file: Path) -> None:
    with computing(file, most_cpu_s=0.3) as process:
        while heard(process):
            pass

        assert process.wait(TIMEOUT_S) == -signal.SIGPROF


READS = """
        await reader.ask("/api/competitions.json", {}, Viewer())
        process = reader.process
"""
ANALYSES = """
        client = AnalysisClient(store, reader)
        await client.ask("/api/matches/long-1/mistakes.json", {}, Viewer())
        process = client.process
        while process.pid is None or not process.has_answered:
            await asyncio.sleep(0.01)
        process.order(b"pause\\n")
"""
ARENA = """
import asyncio, sys
from arena.records.visibility import Viewer
from arena.storage.store import Store
from arena.web.analysis_client import AnalysisClient
from arena.web.reader_client import ReaderClient

async def main():
    with Store(sys.argv[1]) as store:
        reader = ReaderClient(store)
{asks}
        print(process.pid, flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.parametrize("asks", [READS, ANALYSES], ids=["reader", "analyses"])
def test_an_arena_that_is_killed_leaves_no_process(file: Path, asks: str) -> None:
    arena = subprocess.Popen(
        [sys.executable, "-c", ARENA.format(asks=asks), str(file)],
        stdout=subprocess.PIPE,
        text=True,
    )
    with arena:
        assert arena.stdout is not None
        pid = int(arena.stdout.readline())
        assert state(pid) not in ("", "Z")
        os.kill(pid, signal.SIGINT)  # Ctrl-C is for the arena
        arena.kill()

    give_up_at = time.monotonic() + TIMEOUT_S
    while state(pid) not in ("", "Z"):
        assert time.monotonic() < give_up_at
        time.sleep(0.01)
