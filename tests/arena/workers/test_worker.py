"""What a worker does with jobs, its arena and the bus, whatever plays its matches."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from types import SimpleNamespace

import pytest

from arena.engine.shuffle import commitment
from arena.engine.verdict import Finding
from arena.referee.live_match import LiveMatch
from arena.sandbox.command import Program
from arena.workers import arena_requests
from arena.workers import worker as worker_module
from arena.workers.attempt import DrawnAttempt, PlayedAttempt, void_attempt
from arena.workers.bus import BusDown
from arena.workers.messages import (
    AttemptResult,
    Bundle,
    BusJob,
    Cancel,
    Denied,
    Dismissal,
    Drain,
    Granted,
    HandInAgain,
    Offend,
    SeatProgram,
    Taken,
    WatchAttempt,
)
from arena.workers.worker import Worker
from protocol.errors import ArenaError
from protocol.messages import Ending, Mechanism, Termination
from tests.support.bus_arena import BusArena, bus_job
from tests.support.memory_bus import MemoryBroker, MemoryBus
from tests.support.worker_reports import report_of

SOON_S = 20.0
PROFILE = report_of("w", slots=2)
REMOVED = Finding(kind=Ending.REMOVED, text="cheated", mechanism=Mechanism.INSTRUCTOR)
BUNDLE = Bundle(key="k", size=2500, words=("./bot",), stdio=True, needs="", is_native=True)


class FakePlayer:
    """Each attempt is over when a test says so; what was asked of it is noted.

    Attributes:
        playing: the attempts, the progress that each may report, and the future of their ends.
        is_slow: attempts begin when a test says so.
    """

    def __init__(self) -> None:
        self.played: list[DrawnAttempt] = []
        self.programs: list[Sequence[Program]] = []
        self.ends: dict[str, asyncio.Future[PlayedAttempt]] = {}
        self.offences: list[tuple[str, int]] = []
        self.begin: dict[str, Callable[[int], None]] = {}
        self.is_slow = False
        self.news = asyncio.Event()

    async def play(
        self, attempt: DrawnAttempt, programs: Sequence[Program], on_progress: Callable[[int], None]
    ) -> PlayedAttempt:
        end = self.ends[attempt.id] = asyncio.get_running_loop().create_future()
        self.played.append(attempt)
        self.programs.append(programs)
        self.begin[attempt.id] = on_progress
        if not self.is_slow:
            on_progress(0)
        self.news.set()
        played: PlayedAttempt = await end
        return played

    def cancel(self, attempt: str, why: str) -> None:
        if attempt in self.ends and not self.ends[attempt].done():
            drawn = next(each for each in self.played if each.id == attempt)
            self.ends[attempt].set_result(void_attempt(drawn, why))

    def offend(self, attempt: str, seat: int, finding: Finding) -> None:
        self.offences.append((attempt, seat))
        self.news.set()

    def live(self, attempt: str) -> LiveMatch | None:
        return None

    async def until(self, is_true: Callable[[], bool]) -> None:
        while not is_true():
            self.news.clear()
            await self.news.wait()

    async def until_playing(self, count: int = 1) -> DrawnAttempt:
        await self.until(lambda: len(self.played) >= count)
        return self.played[-1]

    def end(self, attempt: str) -> None:
        drawn = next(each for each in self.played if each.id == attempt)
        self.ends[attempt].set_result(void_attempt(drawn, "it is over"))


class FakeProgramSource:
    """Fetches a whole program; a house bot needs none."""

    def __init__(self) -> None:
        self.fetched: list[bytes] = []

    async def program(
        self, wanted: SeatProgram, game: str, name: str, fetch: Callable[[int], Awaitable[bytes]]
    ) -> Program:
        if isinstance(wanted, Bundle):
            data = b""
            while len(data) < wanted.size:
                data += await fetch(len(data))
            self.fetched.append(data)
        return Program((wanted.key,), stdio=True)


class WorkerBench:
    """An arena, a worker and the bus between them."""

    working: asyncio.Task[None]

    def __init__(self, broker: MemoryBroker, arena: BusArena) -> None:
        self.broker = broker
        self.arena = arena
        self.bus: MemoryBus = broker.client()
        self.player = FakePlayer()
        self.programs = FakeProgramSource()
        self.told: list[str] = []
        numbers = iter(range(1000))
        self.worker = Worker(
            self.bus,
            self.player,
            self.programs,
            PROFILE,
            "class",
            draw=lambda: (f"attempt-{next(numbers)}", b"s" * 32),
            tell=self.told.append,
        )

    @property
    def queued(self) -> list[str]:
        """The jobs that the bus still has."""
        return [job for _, job in self.broker.jobs_of("class").messages]

    async def plays(self, *jobs: BusJob) -> DrawnAttempt:
        """Put jobs, and wait until one is played."""
        for job in jobs or (bus_job(),):
            await self.arena.put(job)
        return await self.player.until_playing()

    async def ends(self, attempt: DrawnAttempt) -> AttemptResult:
        """An attempt is over, and its result is handed in."""
        self.player.end(attempt.id)
        return await self.arena.until_results()


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[WorkerBench]:
    """One whose worker works, and does not wait for long."""
    for name, value in {"_REPORT_S": 0.02, "_AGAIN_S": 0.02, "_GIVE_BACK_S": 0.02}.items():
        monkeypatch.setattr(worker_module, name, value)
    monkeypatch.setattr(arena_requests, "_AGAIN_S", 0.02)
    async with asyncio.timeout(SOON_S):
        broker = MemoryBroker()
        made = WorkerBench(broker, await BusArena(broker.client()).open())
        made.working = asyncio.create_task(made.worker.run())
        yield made
        made.working.cancel()
        await asyncio.gather(made.working, return_exceptions=True)
        await made.arena.bus.close()


async def test_J6_an_attempt_is_announced_with_its_commitment_first(bench: WorkerBench) -> None:
    forgiven = ((Ending.CRASH,), ())
    bench.arena.replies = [Granted(forgiven)]
    attempt = await bench.plays()

    (announced,) = bench.arena.announced
    assert announced.attempt == attempt.id
    assert announced.commitment == commitment(attempt.seed)
    assert (announced.job, announced.worker) == ("job", "w")
    assert attempt.forgiven == forgiven


async def test_a_job_is_done_when_the_arena_has_taken_its_result(bench: WorkerBench) -> None:
    bench.arena.is_prompt = False
    job = bus_job()
    attempt = await bench.plays(job)
    result = await bench.ends(attempt)

    assert (result.job, result.attempt, result.worker) == (job, attempt.id, "w")
    assert bench.queued == ["job"]
    await bench.arena.command(Taken(attempt.id))
    await bench.arena.until_reported(lambda report: not report.attempts)
    assert bench.queued == []


async def test_only_so_many_attempts_as_there_are_slots(bench: WorkerBench) -> None:
    await bench.plays(*map(bus_job, "123"))
    await bench.arena.until_reported(lambda report: len(report.attempts) == 2)

    assert len(bench.player.played) == 2
    bench.player.end(bench.player.played[0].id)
    third = await bench.player.until_playing(3)
    assert third.job.id == "3"


async def test_denied_for_good_or_for_now_a_job_is_gone_or_comes_again(bench: WorkerBench) -> None:
    for_good = Denied("it has a result", is_final=True)
    bench.arena.replies = [for_good, Denied("not yet", is_final=False)]
    attempt = await bench.plays(bus_job("1"), bus_job("2"))

    first, second, third = bench.arena.announced
    assert (first.job, second.job, third.job) == ("1", "2", "2")
    assert second.attempt != third.attempt == attempt.id
    await bench.arena.until_reported(lambda report: len(report.attempts) == 1)
    assert bench.queued == ["2"], "what is denied for good is never delivered again"


@pytest.mark.parametrize("lost", [1, arena_requests._ANNOUNCEMENTS])
async def test_lost_replies_are_asked_for_until_it_gives_up(bench: WorkerBench, lost: int) -> None:
    calls = itertools.count(1)
    announce = bench.bus.announce

    async def lose_some(arena: str, worker: str, data: bytes) -> bytes:
        reply = await announce(arena, worker, data)
        if next(calls) <= lost:
            raise BusDown("the reply was lost")
        return reply

    bench.bus.announce = lose_some  # type: ignore[method-assign]
    attempt = await bench.plays()

    *before, last = [each.attempt for each in bench.arena.announced]
    assert before == ["attempt-0"] * lost
    assert last == attempt.id == f"attempt-{int(lost > 1)}"


async def test_job_delivered_again_while_played_is_no_attempt(bench: WorkerBench) -> None:
    attempt = await bench.plays()
    bench.broker.redeliver()
    await bench.arena.put(bus_job("other"))
    await bench.player.until_playing(2)

    assert [each.job.id for each in bench.player.played] == ["job", "other"]
    bench.player.end(attempt.id)
    await bench.arena.until_reported(lambda report: len(report.attempts) == 1)
    assert bench.queued == ["other"]


async def test_job_delivered_again_after_its_end_is_another_attempt(bench: WorkerBench) -> None:
    bench.arena.is_prompt = False
    attempt = await bench.plays()
    await bench.ends(attempt)
    bench.arena.replies = [Denied("it has a result", is_final=True)]
    bench.broker.redeliver()
    await bench.arena.until(lambda: len(bench.arena.announced) == 2)

    assert len(bench.player.played) == 1


async def test_programs_are_fetched_in_parts_when_it_is_granted(bench: WorkerBench) -> None:
    program = bytes(range(250)) * 10
    bench.arena.programs[BUNDLE.key] = program
    attempt = await bench.plays(bus_job(programs=(BUNDLE, BUNDLE)))

    assert bench.programs.fetched == [program]
    assert [each.offset for each in bench.arena.requests] == [0, 1000, 2000]
    assert {each.attempt for each in bench.arena.requests} == {attempt.id}
    assert bench.player.programs == [(Program(("k",), stdio=True),) * 2]


@pytest.mark.parametrize(
    ("why", "is_slow", "programs"),
    [
        ("there is no program k", False, (BUNDLE, BUNDLE)),
        ("the player has failed", False, ()),
        ("cancelled", False, ()),
        ("cancelled", True, ()),  # before it has begun
    ],
)
async def test_what_is_not_played_to_its_end_is_void_with_the_reason(
    bench: WorkerBench, why: str, is_slow: bool, programs: tuple[Bundle, ...]
) -> None:
    bench.player.is_slow = is_slow
    await bench.arena.put(bus_job(programs=programs) if programs else bus_job())
    if not programs:
        attempt = await bench.player.until_playing()
        if why == "cancelled":
            await bench.arena.command(Cancel(attempt.id, why))
        else:
            bench.player.ends[attempt.id].set_exception(ArenaError(why))
    result = await bench.arena.until_results()

    assert result.record.termination == Termination(Ending.VOID, None, why)
    assert not result.has_begun
    assert result.record.worker == "w" or programs or is_slow
    assert [end.cancelled() for end in bench.player.ends.values()] == [is_slow] * (not programs)
    report = await bench.arena.until_reported(lambda report: not report.attempts)
    assert report.last_error == ("" if why == "cancelled" else why)


async def test_who_cannot_play_rests(bench: WorkerBench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: object) -> Program:
        raise ArenaError("cannot write a program: the disk is full")

    monkeypatch.setattr(bench.worker, "_rest_s", 0.2)
    monkeypatch.setattr(bench.programs, "program", fails)
    for number in range(20):
        await bench.arena.put(bus_job(f"job-{number}"))
    await bench.arena.until_reported(lambda report: report.is_draining)
    await asyncio.sleep(1)
    assert 2 <= len(bench.arena.results) <= 6

    monkeypatch.undo()
    monkeypatch.setattr(bench.worker, "_rests_until", 0.0)
    monkeypatch.setattr(worker_module, "_AGAIN_S", 0.02)
    await bench.player.until_playing()
    await bench.arena.until_reported(lambda report: not report.is_draining)


async def test_no_jobs_when_disk_short(bench: WorkerBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.worker, "_shortage", lambda: "3 MiB of disk left")
    await bench.arena.until_reported(lambda report: report.is_draining)
    await bench.arena.put(bus_job())
    await bench.arena.until_reported(
        lambda report: report.last_error == "takes no jobs: 3 MiB of disk left"
    )
    assert bench.player.played == []

    monkeypatch.setattr(bench.worker, "_shortage", lambda: "")
    await bench.player.until_playing()


async def test_removed_bot_offends_also_if_its_match_begins_later(bench: WorkerBench) -> None:
    bench.player.is_slow = True
    attempt = await bench.plays()
    await bench.arena.command(Offend(attempt.id, 1, REMOVED))
    await bench.player.until(lambda: len(bench.player.offences) == 1)
    bench.player.begin[attempt.id](0)
    await bench.player.until(lambda: len(bench.player.offences) == 2)

    assert bench.player.offences == [(attempt.id, 1)] * 2


async def test_result_is_handed_in_again_when_the_bus_has_lost_it(bench: WorkerBench) -> None:
    bench.arena.is_prompt = False
    attempt = await bench.plays()
    await bench.ends(attempt)
    bench.broker.lose_everything()
    await bench.arena.command(HandInAgain(attempt.id))
    await bench.arena.until_results(2)

    assert [each.attempt for each in bench.arena.results] == [attempt.id] * 2


async def test_match_ends_while_the_bus_is_away_handed_in_later(bench: WorkerBench) -> None:
    attempt = await bench.plays()
    bench.broker.stop()
    bench.player.end(attempt.id)
    await asyncio.sleep(0)
    assert bench.arena.results == []
    bench.broker.start()
    result = await bench.arena.until_results()

    assert result.attempt == attempt.id


async def test_drained_worker_takes_no_jobs_until_it_is_told_to(bench: WorkerBench) -> None:
    await bench.arena.command(Drain())
    await bench.arena.until_reported(lambda report: report.is_draining)
    await bench.arena.put(bus_job())
    seen = len(bench.arena.reports)
    await bench.arena.until(lambda: len(bench.arena.reports) > seen + 3)
    assert bench.arena.announced == []
    await bench.arena.command(Drain(False))
    await bench.player.until_playing()

    assert bench.told == ["draining: no more jobs are taken", "takes jobs again"]


async def test_worker_that_leaves_ends_when_its_last_result_is_taken(bench: WorkerBench) -> None:
    attempt = await bench.plays()
    bench.worker.leave()
    await bench.arena.put(bus_job("2"))
    bench.player.end(attempt.id)
    await bench.working

    assert [each.attempt for each in bench.arena.results] == [attempt.id]
    assert bench.queued == ["2"]


async def test_J5_worker_that_is_stopped_hands_nothing_in_and_gives_its_jobs_back(
    bench: WorkerBench,
) -> None:
    attempt = await bench.plays()
    bench.working.cancel()
    await bench.arena.until(lambda: bench.arena.reports[-1].is_draining)

    assert bench.player.ends[attempt.id].cancelled()
    assert bench.arena.reports[-1].attempts == ()
    assert bench.arena.results == []
    assert (await bench.broker.client().fetch("class", 0)) is not None


async def test_refusal_is_told_once_in_one_line_and_reported(bench: WorkerBench) -> None:
    for _ in range(2):
        await bench.arena.command(Dismissal("version 1 of the bus, expected 2"))
    report = await bench.arena.until_reported(lambda report: report.last_error != "")

    assert report.last_error == "version 1 of the bus, expected 2"
    assert bench.told == ["refused: version 1 of the bus, expected 2"]


async def test_garbage_from_the_bus_is_reported_and_stops_nothing(bench: WorkerBench) -> None:
    await bench.arena.bus.command("w", b"\xc1")
    await bench.arena.bus.put("class", "bad", b"\xc1")
    await bench.plays()
    report = await bench.arena.until_reported(lambda report: "cannot be read" in report.last_error)

    assert len(report.attempts) == 1


async def test_report_says_how_far_each_attempt_is(bench: WorkerBench) -> None:
    bench.arena.is_prompt = False
    attempt = await bench.plays()
    bench.player.begin[attempt.id](17)
    report = await bench.arena.until_reported(
        lambda report: [each.decisions for each in report.attempts] == [17]
    )
    assert report.attempts[0].has_begun
    assert not report.attempts[0].is_over
    bench.player.end(attempt.id)
    report = await bench.arena.until_reported(
        lambda report: [each.is_over for each in report.attempts] == [True]
    )

    assert report.played == 1


class FakeFrames:
    """Three frames, and once more from the first when somebody has missed one."""

    def __init__(self) -> None:
        self.sent = 0

    @property
    def is_over(self) -> bool:
        return self.sent == 3

    def again(self) -> None:
        self.sent = 0

    def due(self, now: float, matches: int = 1) -> bytes | None:
        self.sent += 1
        return b"frame %d" % self.sent


async def test_watched_frames_are_sent(bench: WorkerBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakePlayer, "live", lambda *_: SimpleNamespace(match=None))
    monkeypatch.setattr(bench.worker, "_frames_of", lambda table: FakeFrames())
    attempt = await bench.plays()
    await bench.arena.command(WatchAttempt(attempt.id, True))
    await bench.arena.until(lambda: len(bench.arena.frames) == 3)

    assert bench.arena.frames == [b"frame 1", b"frame 2", b"frame 3"]
