"""The processes beside an arena as they are: what they answer, how they give way, and how they end."""

from __future__ import annotations

import asyncio
import gzip
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
from arena.web.analyses import Analyses
from arena.web.document_reader import DocumentReader
from arena.web.questions import AnalysisKind, AnalysisTask, PageAnswer, PersonalMatch, SideQuestion
from arena.web.side_process import SideProcess
from arena.web.side_program import NICENESS, PAUSE, PROCESSING, RESUME, Header
from tests.support import databases
from tests.support.arena_process import state
from tests.support.databases import Server
from tests.support.sample_database import SampleWriter, personal_match, plan, play, write

pytestmark = pytest.mark.e2e

TIMEOUT_S = 60.0
GAME = "ace_king_queen"
COMPETITION = f"{GAME}-00000000"
LONG = {"hands": 20_000}
LIST = "competitions.json"
RECORD = "matches/long-1/record.json"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished competition, and one with a match that takes seconds to judge."""
    file = write(tmp_path_factory.mktemp("beside") / "arena.db", [GAME])
    with Store(file) as store:
        writer = SampleWriter(store, plan(GAME, settings=LONG), "long")
        pairing = next(schedule_of(writer.plan))[0]
        writer.finished(pairing, play(GAME, settings=LONG), "long-1")
        store.competition_finished("long", 2_000.0, ())
    return file


def asked(path: str, **more: Any) -> SideQuestion:
    return SideQuestion(path=f"/api/{path}", **more)


class Beside:
    """Both processes of an arena."""

    def __init__(self, store: Store) -> None:
        self.idle = SideProcess(store, is_idle=True)
        self.reader = DocumentReader(store)
        self.analyses = Analyses(self.idle, self.reader)

    async def reads(self, path: str, **more: Any) -> PageAnswer:
        return await self.reader.ask("", asked(path, **more))

    async def analysis(
        self, path: str, sat: PersonalMatch | None = None, **query: str
    ) -> dict[str, Any]:
        """The state that ends an analysis."""
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                answer = await self.analyses.ask("", asked(path, personal_match=sat, query=query))
                found: dict[str, Any] = msgspec.json.decode(answer.body)
                if found["state"] not in ("queued", "running"):
                    return found
                await asyncio.sleep(0.02)


@asynccontextmanager
async def beside(where: Path | str) -> AsyncIterator[Beside]:
    """Processes that are ended at the end, and leave nothing."""
    with Store(where) as store:
        both = Beside(store)
        try:
            yield both
            pids = both.idle.pid, both.reader.process.pid
        finally:
            await both.idle.close()
            await both.reader.process.close()
    assert [state(pid) for pid in pids if pid is not None] in ([], [""], ["", ""])


# ---- Answers


async def test_documents_come_as_they_are_or_packed_and_errors_in_a_line(file: Path) -> None:
    async with beside(file) as both:
        plain = await both.reads(RECORD)
        packed = await both.reads(RECORD, packs=True)
        tiny = await both.reads("matches/x", packs=True)
        bad = await both.reads("x" * 2_000, packs=True)

        assert (plain.status, plain.is_packed, packed.is_packed) == (200, False, True)
        assert len(packed.body) < len(plain.body) / 2
        assert gzip.decompress(packed.body) == plain.body
        assert packed.etag == plain.etag is not None
        assert (tiny.status, tiny.etag, tiny.is_packed) == (404, None, False)
        assert (bad.status, bad.is_packed) == (404, False), "it repeats what was asked"
        assert bad.body.count(b"\n") == 0


async def test_names_of_all_kinds_and_matches_of_people_go_through_the_pipe(file: Path) -> None:
    sat = personal_match("gin_rummy")
    async with beside(file) as both:
        for name in ("näh", "a\nb", "\u2028", "\x00", "x" * 5_000):
            at = f"competitions/{COMPETITION}/bot.json"
            assert (await both.reads(at, query={"name": name})).status == 404
        answer = await both.reads("matches/p-1.json", personal_match=sat)

        assert msgspec.json.decode(answer.body)["players"] == list(sat.players)


async def test_mistakes_and_strength_come_from_the_process(file: Path) -> None:
    async with beside(file) as both:
        mistakes = await both.analysis(f"matches/{GAME}-1/mistakes.json", seat="2")
        strength = await both.analysis(f"competitions/{COMPETITION}/strength.json", bot="ann")
        persons = await both.analysis("matches/p-1/mistakes.json", personal_match(GAME))

        assert mistakes["state"] == strength["state"] == persons["state"] == "done"
        assert mistakes["mistakes"]["seat"] == 2
        assert strength["strength"]["bot"] == "ann"
        assert persons["mistakes"]["decisions"] > 0


async def test_a_process_that_is_killed_costs_one_answer(file: Path) -> None:
    async with beside(file) as both:
        asking = asyncio.create_task(both.analysis("matches/long-1/mistakes.json"))
        async with asyncio.timeout(TIMEOUT_S):
            while not both.idle.has_answered:
                await asyncio.sleep(0.01)
        assert both.idle.pid is not None
        os.kill(both.idle.pid, signal.SIGKILL)
        failed = await asking
        other = await both.analysis(f"matches/{GAME}-1/mistakes.json")

        assert (failed["state"], other["state"]) == ("failed", "done")


# ---- Priorities, pauses and ends


async def test_both_give_way_to_whoever_plays(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NICENESS)
    async with beside(file) as both, asyncio.timeout(TIMEOUT_S):
        await both.analyses.ask("", asked(f"matches/{GAME}-1/mistakes.json"))
        while (pid := both.idle.pid) is None or os.getpriority(os.PRIO_PROCESS, pid) < 19:
            await asyncio.sleep(0.01)
        while os.sched_getscheduler(pid) != os.SCHED_IDLE:
            await asyncio.sleep(0.01)
        reads = both.reader.process.pid or 0
        usual = os.getpriority(os.PRIO_PROCESS, 0)

        assert os.getpriority(os.PRIO_PROCESS, reads) >= min(usual + 10, 19)
        assert os.getpgid(reads) != os.getpgid(0)


async def test_ctrl_c_is_for_the_arena(file: Path) -> None:
    async with beside(file) as both:
        await both.reads(LIST)
        pid = both.reader.process.pid or 0
        os.kill(pid, signal.SIGINT)

        assert (await both.reads(RECORD)).status == 200
        assert both.reader.process.pid == pid


COMPUTES = """
from arena.web import side_program
from arena.web.document_answers import DocumentAnswers

def compute(self, question, tell):
    while True:
        tell(1, 2)

DocumentAnswers.answer = compute
side_program._NEWS_S = 0.02
side_program._MOST_CPU_S = {most_cpu_s}
side_program.main()
"""


def computing(file: Path, most_cpu_s: float = 100.0) -> subprocess.Popen[bytes]:
    """The process at a task that never ends, of which it says how far it is."""
    process = subprocess.Popen(
        [sys.executable, "-c", COMPUTES.format(most_cpu_s=most_cpu_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    task = AnalysisTask(kind=AnalysisKind.MISTAKES, id="m", bot="ann", seat=1)
    say(process, json.dumps(str(file)).encode() + b"\n")
    say(process, msgspec.json.encode(SideQuestion(task=task)) + b"\n")
    for _ in range(3):
        assert heard(process) == PROCESSING
    return process


def say(process: subprocess.Popen[bytes], line: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(line)
    process.stdin.flush()


def ends(process: subprocess.Popen[bytes]) -> int:
    """End its input, and return its status."""
    assert process.stdin is not None
    process.stdin.close()
    while heard(process):
        pass
    return process.wait(TIMEOUT_S)


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
        for _ in range(2):
            say(process, PAUSE)
            until_paused(process.pid)
            before = cpu_s(process.pid)
            say(process, RESUME)
            give_up_at = time.monotonic() + TIMEOUT_S
            while cpu_s(process.pid) < before + 0.05:
                assert heard(process) == PROCESSING
                assert time.monotonic() < give_up_at
        assert ends(process) == 0


def test_it_ends_with_its_input_while_it_is_paused_too(file: Path) -> None:
    with computing(file) as process:
        say(process, PAUSE)
        process.send_signal(signal.SIGINT)  # Ctrl-C is for the arena
        until_paused(process.pid)

        assert ends(process) == 0


def test_a_question_that_takes_too_much_cpu_ends_it(file: Path) -> None:
    with computing(file, most_cpu_s=0.3) as process:
        while heard(process):
            pass

        assert process.wait(TIMEOUT_S) == -signal.SIGPROF


def test_what_is_no_question_ends_it_with_a_line(file: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "arena.web.side_program"],
        input=json.dumps(str(file)).encode() + b"\nnothing\n",
        capture_output=True,
        check=False,
    )

    assert done.returncode in (0, 1)  # its input may have ended before
    assert b"Traceback" not in done.stderr
    assert done.stderr.count(b"\n") <= 1


ARENA = """
import asyncio, sys
from arena.storage.store import Store
from tests.arena.web.test_side_process import Beside, asked

async def main():
    with Store(sys.argv[1]) as store:
        both = Beside(store)
        await both.analyses.ask("", asked("matches/long-1/mistakes.json"))
        while not both.idle.has_answered:
            await asyncio.sleep(0.01)
        both.idle.give_way(computing=True)
        print(both.idle.pid, both.reader.process.pid, flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


def test_an_arena_that_is_killed_leaves_no_process(file: Path) -> None:
    arena = subprocess.Popen(
        [sys.executable, "-c", ARENA, str(file)], stdout=subprocess.PIPE, text=True
    )
    with arena:
        assert arena.stdout is not None
        pids = [int(pid) for pid in arena.stdout.readline().split()]
        for pid in pids:
            assert state(pid) not in ("", "Z")
            os.kill(pid, signal.SIGINT)  # Ctrl-C is for the arena
        arena.kill()

    assert len(pids) == 2
    give_up_at = time.monotonic() + TIMEOUT_S
    while any(state(pid) not in ("", "Z") for pid in pids):
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


async def test_a_password_is_on_no_command_line_and_in_no_answer(postgres: Server) -> None:
    async with beside(postgres.tcp(postgres.url())) as both:
        assert (await both.reads(LIST)).status == 200
        for about in ("cmdline", "environ"):
            words = Path(f"/proc/{both.reader.process.pid}/{about}").read_bytes()
            for secret in (databases.PASSWORD, databases.PASSWORD.replace(" ", "%20")):
                assert secret.encode() not in words
