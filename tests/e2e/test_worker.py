"""A worker with real processes and a bus in memory."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from arena.authoring.starter import starter
from arena.engine.verdict import Finding
from arena.games import GAMES
from arena.records.verify import check_record
from arena.sandbox.archive import canonical
from arena.sandbox.bundle import pack_bundle
from arena.sandbox.command import Program, bot_command, strategy_program
from arena.sandbox.languages import Language
from arena.workers.attempt import ProgramSource
from arena.workers.match_player import ProcessPlayer
from arena.workers.messages import (
    AttemptResult,
    Bundle,
    BusJob,
    Cancel,
    HouseBot,
    Offend,
    SeatProgram,
    Source,
)
from arena.workers.program_cache import ProgramCache
from arena.workers.worker import Worker
from arena.workers.worker_health import MachineState, WorkerHealth
from protocol.messages import Ending, Limits, Mechanism, Termination
from tests.support.bot_processes import living
from tests.support.bus_arena import PART_BYTES, BusArena, bus_job
from tests.support.memory_bus import MemoryBroker, MemoryBus
from tests.support.pipe_bot import pipe_bot
from tests.support.worker_reports import report_of

pytestmark = pytest.mark.e2e

TIMEOUT_S = 90.0
# The machine of the tests is shared with others.
LIMITS = Limits(start_ms=5_000, wall_ms=20_000, memory_mib=128)
QUICK = Limits(decision_ms=250, bank_ms=0, hard_ms=500, wall_ms=1_500, start_ms=5_000)
PROFILE = report_of("w", memory_mib=512)
REMOVED = Finding(kind=Ending.REMOVED, text="cheated", mechanism=Mechanism.INSTRUCTOR)

# A bot over its pipes that behaves as its argument says.
BOT = pipe_bot(
    first="""
what = sys.argv[1]
print("pid", os.getpid(), file=sys.stderr, flush=True)
if what == "crashes at start": sys.exit(3)
if what == "says nothing": time.sleep(600)
""",
    invited='print("plays as", os.environ["ARENA_NAME"], file=sys.stderr, flush=True)',
    asked="""
if what == "crashes": sys.exit(4)
if what == "hoards": hoard = bytearray(os.urandom(1 << 20) * 300); time.sleep(600)
if what == "sleeps": time.sleep(600)
""",
    value='"raise" if what == "cheats" else legal[0]',
)


def bot(what: str) -> Bundle:
    return Bundle(key=what, size=0, words=(what,), stdio=True, needs="", is_native=False)


GOOD, SLEEPER = bot("plays"), bot("sleeps")
HOUSE = HouseBot("random")


class WrittenPrograms:
    """House bots, a bot over WebSocket, and `BOT` over its pipes."""

    async def program(
        self, wanted: SeatProgram, game: str, name: str, fetch: Callable[[int], Awaitable[bytes]]
    ) -> Program:
        if isinstance(wanted, HouseBot):
            return Program(tuple(bot_command((game, wanted.bot), name=name)))
        return Program((sys.executable, "-c", BOT, wanted.key), stdio=True)


class RealWorker:
    """A worker with processes, the bus, and the arena that it works for."""

    def __init__(
        self, broker: MemoryBroker, arena: BusArena, player: ProcessPlayer, programs: ProgramSource
    ) -> None:
        self.broker = broker
        self.arena = arena
        self.player = player
        self.bus: MemoryBus = broker.client()
        self.worker = Worker(self.bus, player, programs, PROFILE, "class")

    async def play(self, *programs: SeatProgram, limits: Limits = LIMITS) -> AttemptResult:
        await self.put(*programs, limits=limits)
        return await self.arena.until_results(len(self.arena.results) + 1)

    async def put(
        self, *programs: SeatProgram, limits: Limits = LIMITS, number: str | None = None
    ) -> BusJob:
        number = number or f"job-{len(self.arena.announced) + 1}"
        job = bus_job(number, programs=programs, limits=limits)
        await self.arena.put(job)
        return job

    async def until_begun(self) -> str:
        """The latest attempt, once its match is opened."""
        report = await self.arena.until_reported(
            lambda report: any(
                self.player.live(each.attempt) is not None for each in report.attempts
            )
        )
        return report.attempts[-1].attempt


class FakeMachine:
    """What a test says that this machine has free."""

    def __init__(self) -> None:
        self.state = MachineState(memory_mib=10_000, disk_mib=10_000)

    def __call__(self) -> MachineState:
        return self.state


@pytest.fixture
def machine() -> FakeMachine:
    return FakeMachine()


@pytest.fixture
async def health(machine: FakeMachine) -> WorkerHealth:
    return WorkerHealth(machine, asyncio.get_running_loop().time)


@pytest.fixture
async def real(machine: FakeMachine) -> AsyncIterator[RealWorker]:
    async with working(WorkerHealth(machine, asyncio.get_running_loop().time)) as made:
        yield made


@contextlib.asynccontextmanager
async def working(
    health: WorkerHealth, idle_s: float = 300.0, programs: ProgramSource | None = None
) -> AsyncIterator[RealWorker]:
    broker = MemoryBroker()
    arena = await BusArena(broker.client()).open()
    async with (
        asyncio.timeout(TIMEOUT_S),
        ProcessPlayer("w", 2, health, idle_s=idle_s, most=8) as player,
    ):
        made = RealWorker(broker, arena, player, programs or WrittenPrograms())
        tasks = [asyncio.create_task(made.worker.run()), asyncio.create_task(health.watch())]
        yield made
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await arena.bus.close()


def pids(result: AttemptResult) -> Sequence[int]:
    """The processes of all seats that have said it on stderr in this match."""
    return [
        int(line.split()[1])
        for text in result.stderr
        for line in text.splitlines()
        if line.startswith("pid ")
    ]


async def test_house_bots_and_a_bot_over_its_pipes_play_a_match_that_verifies(
    real: RealWorker,
) -> None:
    result = await real.play(HOUSE, GOOD)

    assert result.record.termination.kind is Ending.COMPLETED
    assert result.has_begun
    assert result.record.seed is not None
    assert check_record(result.record).reasons == ()
    (announced,) = real.arena.announced
    assert result.record.commitment == announced.commitment
    assert result.stderr[0] == ""
    assert result.stderr[1].endswith("plays as ben\n")


async def test_processes_stay_warm_between_jobs_of_the_same_programs(real: RealWorker) -> None:
    first = await real.play(HOUSE, GOOD)
    second = await real.play(HOUSE, GOOD)

    assert len(pids(first)) == 1
    assert second.stderr == ("", "plays as ben\n")
    assert real.player.processes == 2


async def test_idle_processes_are_ended_when_memory_is_short(
    real: RealWorker, machine: FakeMachine
) -> None:
    await real.play(HOUSE, GOOD)
    machine.state = MachineState(memory_mib=1)
    await real.arena.until(lambda: real.player.processes == 0)


async def test_idle_processes_are_ended_after_some_time(health: WorkerHealth) -> None:
    async with working(health, idle_s=0.2) as real:
        await real.play(GOOD, GOOD)
        await real.arena.until(lambda: real.player.processes == 0)


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        ("crashes", Ending.CRASH),
        ("crashes at start", Ending.CRASH),
        ("cheats", Ending.ILLEGAL),
        ("hoards", Ending.MEMORY),
    ],
)
async def test_J3_offender_loses_and_the_evidence_is_handed_in(
    real: RealWorker, what: str, kind: Ending
) -> None:
    result = await real.play(GOOD, bot(what))

    assert result.record.termination.kind is kind
    assert result.record.termination.seat == 1
    assert result.verdict is not None
    assert (result.verdict.kind, result.verdict.bot) == (kind, "ben")
    assert result.verdict.match == result.attempt
    assert check_record(result.record).reasons == ()
    assert result.has_begun


@pytest.mark.parametrize(
    ("what", "kind"), [("sleeps", Ending.TIMEOUT), ("says nothing", Ending.ABSENT)]
)
async def test_J7_bot_that_does_not_answer_is_out_of_time(
    real: RealWorker, what: str, kind: Ending
) -> None:
    result = await real.play(GOOD, bot(what), limits=QUICK)

    assert result.record.termination.kind is kind
    assert result.verdict is not None
    assert result.voided_offence == ""


async def test_J5_bot_that_does_not_answer_is_not_charged_when_the_worker_was_in_trouble(
    real: RealWorker, machine: FakeMachine
) -> None:
    machine.state = MachineState(memory_mib=9, disk_mib=10_000)
    result = await real.play(GOOD, SLEEPER, limits=QUICK)

    assert result.record.termination.kind is Ending.VOID
    assert result.verdict is None
    assert result.voided_offence == (
        "timeout of ben is not charged, as the worker had 9 MiB of memory left"
    )
    assert check_record(result.record).reasons == ()


async def test_J5_program_that_cannot_be_started_here_is_a_void(
    real: RealWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def missing(*_: object) -> Program:
        return Program(("./bot",), stdio=True, folder=Path("/no/such/folder"))

    monkeypatch.setattr(WrittenPrograms, "program", missing)
    result = await real.play(GOOD, GOOD)

    assert result.record.termination.kind is Ending.VOID
    assert not result.has_begun


async def test_cancelled_match_is_void_and_its_processes_play_on(real: RealWorker) -> None:
    await real.put(GOOD, SLEEPER)
    attempt = await real.until_begun()
    await real.arena.command(Cancel(attempt, "stopped by the instructor"))
    result = await real.arena.until_results()

    assert result.record.termination.text == "stopped by the instructor"
    assert check_record(result.record).reasons == ()


async def test_removed_bot_loses_the_match_that_it_plays(real: RealWorker) -> None:
    await real.put(GOOD, SLEEPER)
    attempt = await real.until_begun()
    await real.arena.command(Offend(attempt, 0, REMOVED))
    result = await real.arena.until_results()

    assert result.record.termination.kind is Ending.REMOVED
    assert result.verdict is not None
    assert result.verdict.bot == "ann"


async def test_bot_that_is_removed_while_processes_start_loses_that_match(real: RealWorker) -> None:
    await real.put(GOOD, bot("says nothing"))
    await real.arena.until(lambda: len(real.arena.announced) == 1)
    attempt = real.arena.announced[0].attempt
    await real.arena.until_reported(lambda report: real.player.processes == 2)
    await real.arena.command(Offend(attempt, 1, REMOVED))
    result = await real.arena.until_results()

    assert result.record.termination.kind is Ending.REMOVED
    assert result.record.commitment == real.arena.announced[0].commitment
    assert check_record(result.record).reasons == ()


async def test_job_with_other_limits_waits_for_those_that_are_played(real: RealWorker) -> None:
    await real.put(GOOD, SLEEPER)
    attempt = await real.until_begun()
    other = Limits(memory_mib=100)
    await real.put(GOOD, GOOD, limits=other, number="other")
    await real.arena.until_reported(lambda report: len(report.attempts) == 2)
    assert real.arena.results == []
    await real.arena.command(Cancel(attempt, "stopped"))
    result = await real.arena.until_results(2)

    assert result.record.termination.kind is Ending.COMPLETED
    assert result.job.limits == other


async def test_nothing_is_left_running_when_the_worker_stops_in_the_middle(
    health: WorkerHealth,
) -> None:
    name = f"ann-{os.getpid()}"
    async with working(health) as real:
        await real.arena.put(bus_job(players=(name, "ben"), programs=(HOUSE, SLEEPER)))
        await real.until_begun()
        assert living(name) != []

    assert living(name) == []
    assert real.arena.results == []


# ---- WrittenPrograms that come over the bus


def bundle_of(program: Program, arena: BusArena) -> Bundle:
    tar = io.BytesIO()
    packed = pack_bundle(program, "ace_king_queen", (), tar)
    arena.programs[packed.key] = tar.getvalue()
    command = packed.command
    return Bundle(
        key=packed.key,
        size=packed.size,
        words=command.words,
        stdio=packed.stdio,
        needs=command.needs,
        is_native=command.is_native,
    )


def source_of(sent: bytes, arena: BusArena) -> Source:
    tar = io.BytesIO()
    made = canonical("bot.py", io.BytesIO(sent), tar)
    arena.programs[made.sha256] = tar.getvalue()
    return Source(made.sha256, made.size, "python")


async def test_bundles_over_pipes_and_websockets_and_a_submission_play(
    health: WorkerHealth, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ann.py").write_text(BOT)
    written = starter(GAMES["ace_king_queen"], Language.PYTHON, "ben").files["bot.py"]
    Path("ben.py").write_text(written)
    cache = ProgramCache(tmp_path / "cache")
    async with working(health, programs=cache) as real:
        by_pipes = Program(("python3", "ann.py", "plays"), stdio=True, folder=tmp_path)
        connecting = strategy_program("ben.py", name="ben")
        source = source_of(written.encode(), real.arena)
        ann, ben = bundle_of(by_pipes, real.arena), bundle_of(connecting, real.arena)
        results = [await real.play(ann, ben), await real.play(source, ben)]
    await cache.close()

    assert [each.record.termination for each in results] == [Termination(Ending.COMPLETED)] * 2
    assert pids(results[0]) != []
    assert len(real.arena.requests) == sum(
        -(-len(tar) // PART_BYTES) for tar in real.arena.programs.values()
    )
