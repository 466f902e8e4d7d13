"""Jobs over a bus: who plays them, what counts, and what becomes of lost attempts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from arena.engine.shuffle import commitment
from arena.engine.verdict import Finding
from arena.referee.referee import FAULT
from arena.storage.attempts import AttemptRow, AttemptState
from arena.workers.attempt import DrawnAttempt, PlayedAttempt, WorkerAttempt, void_attempt
from arena.workers.bus import BusDown, JobDelivery
from arena.workers.bus_jobs import BusJobs
from arena.workers.dispatch import worker_class
from arena.workers.messages import (
    Announcement,
    BusJob,
    Cancel,
    Command,
    Denied,
    Dismissal,
    Drain,
    Granted,
    HandInAgain,
    Offend,
    PartOfProgram,
    ProgramRequest,
    Reply,
    RunningAttempt,
    Source,
    Taken,
    WatchAttempt,
    decode,
    encode,
)
from arena.workers.result_check import CheckedAttempt, ExpectedAttempt
from protocol.errors import ArenaError, StoreFailed
from protocol.messages import Ending, Mechanism, Verdict
from tests.support.bus_stage import (
    KIND,
    BusStage,
    FakeDatabase,
    FakePrograms,
    RecordChecker,
    StageJobWatcher,
    a_job,
    a_report,
    play_rules,
)
from tests.support.faulty_bus import Faults
from tests.support.memory_bus import MemoryBroker
from tests.support.virtual_time import in_virtual_time

FINDING = Finding(kind=Ending.REMOVED, text="ann was removed", mechanism=Mechanism.RULES)
SEED = b"7" * 32


class HandWorker:
    """A worker that does what a test says, and reports twice a second unless it is silent."""

    def __init__(self, broker: MemoryBroker, name: str = "w1", **more: Any) -> None:
        self.name = name
        self.bus = broker.client()
        self.commands: list[Command] = []
        self.running: dict[str, RunningAttempt] = {}
        self.is_silent = False
        self.more = more
        self.worker_class = worker_class(KIND, a_report(**more).speed)
        self._task = asyncio.ensure_future(self._report())

    async def _report(self) -> None:
        await self.bus.on_command(
            self.name, lambda data: self.commands.append(decode(data, Command))
        )
        while True:
            if not self.is_silent:
                attempts = tuple(self.running.values())
                data = encode(a_report(self.name, attempts=attempts, **self.more))
                await self.bus.report(self.name, data)
            await asyncio.sleep(0.5)

    async def fetch(self) -> JobDelivery:
        while True:
            with contextlib.suppress(BusDown):  # nobody has opened the queue yet
                if (delivery := await self.bus.fetch(self.worker_class, 60.0)) is not None:
                    return delivery
            await asyncio.sleep(0.5)

    async def announce(self, job: str, attempt: str, seed: bytes = SEED) -> Reply:
        asked = Announcement(
            job=job, attempt=attempt, commitment=commitment(seed), worker=self.name
        )
        reply: Reply = decode(await self.bus.announce("a1", self.name, encode(asked)), Reply)
        return reply

    async def begin(self, attempt: str = "attempt1") -> tuple[BusJob, JobDelivery]:
        """Fetch a job, announce an attempt at it, and begin it."""
        while True:
            delivery = await self.fetch()
            job: BusJob = decode(delivery.data, BusJob)
            reply = await self.announce(job.id, attempt)
            if isinstance(reply, Granted):
                self.lists(job, attempt)
                return job, delivery
            assert reply.is_final, "it is one of an earlier arena"
            await delivery.ack()

    def lists(self, job: BusJob, attempt: str, *, is_over: bool = False) -> None:
        self.running[attempt] = RunningAttempt(
            arena="a1", job=job.id, attempt=attempt, decisions=3, has_begun=True, is_over=is_over
        )

    async def hand_in(
        self, job: BusJob, attempt: str = "attempt1", /, *, void: str = "", **more: Any
    ) -> None:
        drawn = DrawnAttempt(id=attempt, seed=SEED, job=job, worker=self.name)
        played = PlayedAttempt(record=play_rules(job, SEED).result().record)
        if void:
            played = void_attempt(drawn, void)
        result = msgspec.structs.replace(
            WorkerAttempt(drawn, delivery=None).result_of(played),  # type: ignore[arg-type]
            **more,
        )
        await self.bus.hand_in("a1", self.name, attempt, encode(result))

    def of(self, kind: type[Command]) -> list[Command]:
        return [command for command in self.commands if isinstance(command, kind)]


class CancellingWatcher(StageJobWatcher):
    """Cancels what is lost twice, in the next turn of the loop."""

    def __init__(self, jobs: BusJobs) -> None:
        super().__init__()
        self._jobs = jobs

    def lost(self, job: str, match: str) -> None:
        super().lost(job, match)
        if len(self.losses) > 1:
            asyncio.get_running_loop().call_soon(self._jobs.cancel, job, "not now")


class HandArena:
    """`BusJobs` alone, whose jobs a test puts."""

    def __init__(self) -> None:
        self.broker = MemoryBroker()
        self.database = FakeDatabase()
        self.told: list[str] = []
        self.verdicts: list[Verdict] = []
        self.stderr: list[tuple[int, str, str]] = []

    async def start(self) -> BusJobs:
        self.bus = self.broker.client()
        self.checker = RecordChecker()
        self.jobs = BusJobs(self.bus, "a1", self.database, self.checker, programs=FakePrograms())
        self.jobs.tell = self.told.append
        self.jobs.on_verdict = self.verdicts.append
        self.jobs.note_stderr = lambda *noted: self.stderr.append(noted)
        await self.jobs.start()
        return self.jobs

    async def restart(self) -> BusJobs:
        await self.jobs.close()
        await self.bus.close()
        return await self.start()

    def put(self, number: int = 0, **more: Any) -> StageJobWatcher:
        watcher = StageJobWatcher()
        self.jobs.put(a_job(number, **more), watcher)
        return watcher

    def states(self) -> list[AttemptState]:
        return [row.state for row in self.database.rows.values()]


async def begun() -> tuple[HandArena, HandWorker, StageJobWatcher, BusJob]:
    """An arena with one job, that a worker has begun."""
    arena = HandArena()
    await arena.start()
    worker = HandWorker(arena.broker)
    watcher = arena.put()
    job, _ = await worker.begin()
    await asyncio.sleep(1)
    return arena, worker, watcher, job


# --- who plays a job ---


@in_virtual_time
async def test_all_pairings_are_played_by_workers() -> None:
    stage = BusStage(20)
    for name in ("w1", "w2"):
        stage.start_worker(name)
    await stage.start_arena()
    await stage.until_done(60)
    await stage.close()

    assert len(stage.began) == 20
    assert stage.told == []
    assert stage.on_bus == 0


@in_virtual_time
async def test_only_two_jobs_per_slot_are_on_the_bus() -> None:
    stage = BusStage(20)
    await stage.start_arena()
    HandWorker(stage.broker, slots=3)
    await asyncio.sleep(2)

    assert stage.jobs.at_once == stage.on_bus == 6
    await stage.close()


@in_virtual_time
async def test_what_no_worker_may_have_is_played_here_and_told_once() -> None:
    arena = HandArena()
    jobs = await arena.start()
    for number in (0, 1):
        arena.put(number, players=("here", "ben"))

    assert [(await jobs.take()).pairing for _ in (0, 1)] == [0, 1]
    assert arena.told == ["matches are played by the arena itself: here is of this machine only"]
    await jobs.close()


@pytest.mark.parametrize(
    ("languages", "why"), [((), "no worker has programs in python"), (None, "no worker is there")]
)
@in_virtual_time
async def test_what_no_worker_can_play_is_played_here(
    languages: Sequence[str] | None, why: str
) -> None:
    arena = HandArena()
    jobs = await arena.start()
    if languages is not None:
        kind = msgspec.structs.replace(KIND, languages=tuple(languages))
        HandWorker(arena.broker, kind=kind)
    watcher = arena.put()
    job = await jobs.take()
    jobs.progress(job.id, "m1", 4)
    jobs.done(job.id, "m1", play_rules(job, SEED).result(), None)

    assert (watcher.came, watcher.ended) == ([("m1", 4)], [("m1", "completed")])
    assert arena.told == [f"matches are played by the arena itself: {why}"]
    await jobs.close()


@in_virtual_time
async def test_a_worker_that_drains_gets_no_jobs_and_others_get_its_own() -> None:
    arena = HandArena()
    jobs = await arena.start()
    worker = HandWorker(arena.broker)
    other = HandWorker(arena.broker, "w2", speed=100.0)
    await asyncio.sleep(1)
    await jobs.drain("w2", True)
    for number in range(4):
        arena.put(number)
    await asyncio.sleep(1)

    assert len(arena.broker.jobs_of(worker.worker_class).messages) == 4
    assert other.of(Drain)[0] == Drain(True)
    other.more["is_draining"] = True
    worker.more["is_draining"] = True
    other.more["is_draining"] = False
    await jobs.drain("w2", False)
    await asyncio.sleep(2)
    assert len(arena.broker.jobs_of(other.worker_class).messages) == 4
    assert not arena.broker.jobs_of(worker.worker_class).messages
    await jobs.close()


@in_virtual_time
async def test_a_worker_of_another_version_gets_no_job() -> None:
    arena = HandArena()
    jobs = await arena.start()
    old = msgspec.structs.replace(KIND, arena_version="0.0.1")
    worker = HandWorker(arena.broker, kind=old)
    arena.put()

    assert (await jobs.take()).id == "c-0-0"
    assert worker.of(Dismissal)
    await jobs.close()


@in_virtual_time
async def test_alike_matches_say_that_they_wait() -> None:
    arena = HandArena()
    jobs = await arena.start()
    slow = HandWorker(arena.broker)
    arena.put(0, is_alike=True)
    await slow.begin()
    HandWorker(arena.broker, "w2", speed=40.0)
    slow.is_silent = True
    await asyncio.sleep(20)

    assert arena.told[1:] == [
        "matches that are to be alike wait, such as of ann and ben, for a worker of "
        "speed class 5 (7.6 to 11.4 calibrations/s): none is here"
    ]
    await jobs.close()


# --- announcements ---


@in_virtual_time
async def test_an_announcement_that_is_repeated_gets_the_same_reply() -> None:
    arena, worker, _, job = await begun()
    replies = await asyncio.gather(*(worker.announce(job.id, "attempt1") for _ in range(3)))

    assert len(arena.database.rows) == 1
    assert set(replies) == {Granted((tuple(sorted(replies[0].forgiven[0])), ()))}  # type: ignore[union-attr]
    await arena.jobs.close()


@in_virtual_time
async def test_an_attempt_is_durable_before_any_reply_grants_it() -> None:
    arena = HandArena()
    jobs = await arena.start()
    worker = HandWorker(arena.broker)
    arena.put()
    await worker.fetch()

    async def announce() -> bool:
        reply = await worker.announce("c-0-0", "attempt1")
        return isinstance(reply, Granted) and "attempt1" in arena.database.rows

    assert all(await asyncio.gather(announce(), announce()))
    await jobs.close()


@in_virtual_time
async def test_announced_twice_at_the_same_time_one_is_granted() -> None:
    arena = HandArena()
    jobs = await arena.start()
    worker = HandWorker(arena.broker)
    arena.put()
    await worker.fetch()
    replies = await asyncio.gather(*(worker.announce("c-0-0", f"attempt{n}") for n in range(3)))

    assert sorted(map(type, replies), key=str) == [Denied, Denied, Granted]
    assert replies[1] == Denied("another attempt at it is under way", is_final=True)
    await jobs.close()


@in_virtual_time
async def test_what_is_done_or_played_here_is_denied_for_good() -> None:
    arena = HandArena()
    jobs = await arena.start()
    arena.put(1, players=("here", "ben"))
    await jobs.take()
    worker = HandWorker(arena.broker)

    assert await worker.announce("nobody", "attempt1") == Denied(
        "it is not to be played any more", is_final=True
    )
    assert await worker.announce("c-1-0", "attempt1") == Denied(
        "the arena plays it itself", is_final=True
    )
    await jobs.close()


@in_virtual_time
async def test_the_id_of_another_attempt_is_denied() -> None:
    arena, worker, _, job = await begun()

    reply = await worker.announce(job.id, "attempt1", b"8" * 32)

    assert reply == Denied("that id is one of another attempt", is_final=True)
    await arena.jobs.close()


@in_virtual_time
async def test_programs_are_for_whom_the_attempt_was_granted_to() -> None:
    arena, worker, _, _ = await begun()
    other = HandWorker(arena.broker, "w2")

    async def ask(who: HandWorker, key: str) -> PartOfProgram:
        asked = ProgramRequest(worker=who.name, attempt="attempt1", key=key, offset=0)
        data = await who.bus.program_part("a1", who.name, encode(asked))
        return decode(data, PartOfProgram)

    assert await ask(worker, "key of ann") == PartOfProgram(b"tar")
    assert (await ask(worker, "key of eve")).why == "no seat of that attempt plays that program"
    assert (await ask(other, "key of ann")).why == "that attempt was not granted to it"
    await arena.jobs.close()


# --- results ---


@in_virtual_time
async def test_a_result_counts_once_however_often_it_comes() -> None:
    arena, worker, watcher, job = await begun()
    await worker.hand_in(job)
    for _ in range(2):
        await asyncio.sleep(0.005)  # while it is checked
        arena.broker.redeliver()
    await asyncio.sleep(1)
    for _ in range(2):
        await worker.hand_in(job)
        await asyncio.sleep(1)

    assert watcher.came[-1] == ("attempt1", 3)
    assert arena.checker.checks == 1
    assert watcher.ended == [("attempt1", "completed")]
    assert {*worker.of(Taken)} == {Taken("attempt1")}
    assert len(worker.of(Taken)) >= 3
    assert not arena.jobs.remote
    await arena.jobs.close()


@in_virtual_time
async def test_a_result_that_was_not_announced_is_refused_and_told_of_once() -> None:
    arena, worker, watcher, job = await begun()
    for attempt in ("stranger1", "stranger2"):
        await worker.hand_in(job, attempt)
        await asyncio.sleep(1)

    assert watcher.ended == []
    assert arena.told == ["a result of worker w1 is refused: it was not announced"]
    assert worker.of(Taken) == [Taken("stranger1"), Taken("stranger2")]
    await arena.jobs.close()


@in_virtual_time
async def test_a_result_waits_while_none_can_be_checked_and_that_is_told_once() -> None:
    arena, worker, watcher, job = await begun()

    async def fails(data: bytes, expected: ExpectedAttempt) -> CheckedAttempt:
        raise ArenaError("no process")

    check, arena.checker.check = arena.checker.check, fails  # type: ignore[method-assign]
    await worker.hand_in(job)
    await asyncio.sleep(7)
    assert arena.told == ["no process"]
    assert watcher.ended == []

    arena.checker.check = check  # type: ignore[method-assign]
    await asyncio.sleep(3)
    assert watcher.ended == [("attempt1", "completed")]
    await arena.jobs.close()


@in_virtual_time
async def test_a_refused_result_is_a_loss_and_the_job_goes_on() -> None:
    arena, worker, watcher, job = await begun()
    await worker.hand_in(job, job=msgspec.structs.replace(job, players=("eve", "ben")))
    await asyncio.sleep(1)
    del worker.running["attempt1"]

    assert watcher.losses == ["attempt1"]
    assert arena.states() == [AttemptState.VOID]
    assert arena.told == ["a result of worker w1 is refused: it is not what was announced"]
    await worker.begin("attempt2")
    await worker.hand_in(job, "attempt2")
    await asyncio.sleep(1)
    assert watcher.ended == [("attempt2", "completed")]
    await arena.jobs.close()


@in_virtual_time
async def test_a_void_result_is_passed_on_with_what_the_worker_says() -> None:
    arena, worker, watcher, job = await begun()
    await worker.hand_in(job, void="its disk was full")
    await asyncio.sleep(1)

    assert watcher.ended == [("", "its disk was full")]
    assert arena.told == ["ann and ben at worker w1: its disk was full"]
    assert arena.states() == [AttemptState.VOID]
    await arena.jobs.close()


@in_virtual_time
async def test_verdict_and_stderr_are_passed_on_and_the_arena_says_what_is_forgiven() -> None:
    arena, worker, watcher, job = await begun()
    verdict = Verdict(
        kind=Ending.CRASH,
        match="attempt1",
        game=job.game,
        bot="ann",
        seat=0,
        text="",
        bank_ms=0,
        limits=job.limits,
    )
    await worker.hand_in(job, verdict=verdict, stderr=("oh", "no"))
    await asyncio.sleep(1)

    assert arena.verdicts == watcher.verdicts == [msgspec.structs.replace(verdict, forgiven=True)]
    assert arena.stderr == [(1, "attempt1", "oh")]
    await arena.jobs.close()


@in_virtual_time
async def test_a_result_that_does_not_come_is_asked_for() -> None:
    arena, worker, _, job = await begun()
    worker.lists(job, "attempt1", is_over=True)
    await asyncio.sleep(8)

    assert worker.of(HandInAgain) == [HandInAgain("attempt1")] * 2
    assert arena.states() == [AttemptState.OPEN]
    await arena.jobs.close()


# --- lost attempts ---


@in_virtual_time
async def test_an_attempt_of_a_silent_worker_is_lost_and_another_one_plays() -> None:
    arena, worker, watcher, _ = await begun()
    worker.is_silent = True
    other = HandWorker(arena.broker, "w2")
    job, _ = await other.begin("attempt2")
    await other.hand_in(job, "attempt2")
    await asyncio.sleep(1)

    assert watcher.losses == ["attempt1"]
    assert watcher.ended == [("attempt2", "completed")]
    assert arena.told == ["a match of worker w1 may be lost: nothing is heard of them"]
    await arena.jobs.close()


@in_virtual_time
async def test_an_attempt_that_its_worker_does_not_list_is_lost() -> None:
    arena, worker, watcher, _ = await begun()
    worker.running.clear()
    await asyncio.sleep(7)

    assert watcher.losses == ["attempt1"]
    assert arena.states() == [AttemptState.LOST]
    await arena.jobs.close()


@in_virtual_time
async def test_J5_after_three_lost_attempts_the_match_is_void() -> None:
    arena = HandArena()
    jobs = await arena.start()
    worker = HandWorker(arena.broker)
    watcher = arena.put()
    for number in range(3):
        await worker.begin(f"attempt{number}")
        worker.running.clear()
    await asyncio.sleep(10)

    assert len(watcher.losses) == jobs.lost == 3
    assert watcher.ended == [("", FAULT)]
    assert not arena.broker.jobs_of(worker.worker_class).messages
    await jobs.close()


@in_virtual_time
async def test_the_late_result_of_a_lost_attempt_counts_if_it_is_the_first() -> None:
    arena, worker, watcher, job = await begun()
    worker.is_silent = True
    other = HandWorker(arena.broker, "w2")
    await other.begin("attempt2")
    await worker.hand_in(job)
    await asyncio.sleep(1)
    await other.hand_in(job, "attempt2")
    await asyncio.sleep(1)

    assert watcher.ended == [("attempt1", "completed")]
    assert arena.database.rows["attempt2"].state is AttemptState.VOID
    assert other.of(Cancel)[0] == Cancel("attempt2", "another result of its pairing counts")
    assert other.of(Taken)
    await arena.jobs.close()


@in_virtual_time
async def test_a_late_result_counts_while_the_arena_plays_the_match_itself() -> None:
    arena, worker, watcher, job = await begun()
    cancelled: list[str] = []
    arena.jobs.on_cancel(lambda job, why: cancelled.append(job))
    worker.is_silent = True
    taken = await arena.jobs.take()
    await worker.hand_in(job)
    await asyncio.sleep(1)
    arena.jobs.done(taken.id, "m2", play_rules(job, SEED).result(), None)

    assert cancelled == [job.id]
    assert watcher.ended == [("attempt1", "completed")]
    await arena.jobs.close()


@in_virtual_time
async def test_a_lost_attempt_that_is_heard_of_again_goes_on() -> None:
    arena, worker, watcher, job = await begun()
    worker.is_silent = True
    await asyncio.sleep(7)
    worker.is_silent = False
    await asyncio.sleep(1)

    assert watcher.losses == ["attempt1"]
    assert [*arena.jobs.remote] == ["attempt1"]
    assert await worker.announce(job.id, "attempt2") == Denied(
        "another attempt at it is under way", is_final=True
    )
    await arena.jobs.close()


@in_virtual_time
async def test_nothing_is_lost_while_the_bus_is_down_for_a_while() -> None:
    arena, _, watcher, _ = await begun()
    arena.bus.is_cut = True
    await asyncio.sleep(25)
    arena.bus.is_cut = False
    await asyncio.sleep(10)

    assert watcher.losses == []
    await arena.jobs.close()


@in_virtual_time
async def test_a_bus_that_stays_away_leaves_the_jobs_to_the_arena() -> None:
    arena, _, watcher, job = await begun()
    arena.bus.is_cut = True

    assert (await arena.jobs.take()).id == job.id
    assert watcher.losses == ["attempt1"]
    await arena.jobs.close()


@in_virtual_time
async def test_what_the_bus_loses_is_put_again() -> None:
    stage = BusStage(8, plays_here=False)
    await stage.start_arena()
    stage.start_worker("w1", slots=1)
    await asyncio.sleep(2)
    stage.broker.lose_everything()
    await stage.until_done(60)

    assert len(stage.began) == 8
    await stage.close()


@in_virtual_time
async def test_a_program_that_is_fetched_when_the_arena_restarts_comes_from_the_next() -> None:
    arena, worker, _, job = await begun()
    key = next(each.key for each in job.programs if isinstance(each, Source))
    jobs = await arena.restart()
    asked = ProgramRequest(worker="w1", attempt="attempt1", key=key, offset=0)
    part: PartOfProgram = decode(
        await worker.bus.program_part("a1", "w1", encode(asked)), PartOfProgram
    )

    assert part == PartOfProgram(b"tar")
    await jobs.close()


# --- cancel, abandon, offend ---


@in_virtual_time
async def test_a_job_that_waits_is_cancelled_at_once_and_taken_back() -> None:
    arena = HandArena()
    jobs = await arena.start()
    worker = HandWorker(arena.broker)
    watcher = arena.put()
    await worker.fetch()
    for _ in range(2):
        jobs.cancel("c-0-0", "enough")
    await asyncio.sleep(0.1)

    assert watcher.ended == [("", "enough")]
    assert isinstance(await worker.announce("c-0-0", "attempt1"), Denied)
    assert not arena.broker.jobs_of(worker.worker_class).messages
    await jobs.close()


@in_virtual_time
async def test_a_match_that_is_played_ends_when_its_worker_says_so() -> None:
    arena, worker, watcher, job = await begun()
    arena.jobs.cancel(job.id, "enough")
    await asyncio.sleep(2)

    assert watcher.ended == []
    assert len(worker.of(Cancel)) >= 4  # again with each report, as it may be lost
    await worker.hand_in(job, void="enough")
    await asyncio.sleep(1)
    assert watcher.ended == [("", "enough")]
    await arena.jobs.close()


@in_virtual_time
async def test_a_match_that_its_worker_does_not_end_is_given_up() -> None:
    arena, worker, watcher, job = await begun()
    arena.jobs.cancel(job.id, "enough")
    await asyncio.sleep(40)
    await worker.hand_in(job)
    await asyncio.sleep(1)

    assert watcher.ended == [("", "enough")]
    assert arena.states() == [AttemptState.VOID]
    assert arena.told == ["worker w1 does not end attempt1, which is given up"]
    await arena.jobs.close()


@in_virtual_time
async def test_a_removed_bot_is_out_of_a_match_that_its_worker_does_not_end() -> None:
    arena, _, watcher, job = await begun()
    arena.jobs.offend(job.id, 0, FINDING)
    await asyncio.sleep(40)

    assert watcher.ended == [("", "ann was removed")]
    await arena.jobs.close()


@in_virtual_time
async def test_thousands_of_attempts_that_were_never_announced_are_few_lookups() -> None:
    arena = HandArena()
    jobs = await arena.start()
    worker = HandWorker(arena.broker)
    for number in range(5_000):
        name = f"{number:08}"
        worker.running[name] = RunningAttempt(
            arena="a1", job="j", attempt=name, has_begun=True, is_over=True
        )
    await asyncio.sleep(0.2)

    assert 0 < len(arena.database.looked_up) < 100
    assert worker.of(Cancel)
    await jobs.close()


@in_virtual_time
async def test_a_match_of_two_workers_of_a_name_is_not_lost() -> None:
    arena, worker, watcher, job = await begun()
    double = HandWorker(arena.broker, session="s2")
    await asyncio.sleep(20)
    await worker.hand_in(job)
    await asyncio.sleep(1)

    assert double.running == {}
    assert watcher.losses == []
    assert [match for match, _ in watcher.ended] == ["attempt1"]
    assert arena.told == ["two workers are called w1: give each a name of its own"]
    await arena.jobs.close()


@in_virtual_time
async def test_a_cancelled_match_of_a_silent_worker_is_void_and_its_result_refused() -> None:
    arena, worker, watcher, job = await begun()
    worker.is_silent = True
    arena.jobs.cancel(job.id, "enough")
    await asyncio.sleep(7)
    await worker.hand_in(job)
    await asyncio.sleep(1)

    assert watcher.ended == [("", "enough")]
    assert watcher.losses == []
    assert arena.states() == [AttemptState.VOID]
    assert worker.of(Taken)
    await arena.jobs.close()


@in_virtual_time
async def test_a_match_that_ends_before_its_worker_hears_of_the_cancel_is_void() -> None:
    arena, worker, watcher, job = await begun()
    arena.jobs.cancel(job.id, "enough")

    assert arena.states() == [AttemptState.VOID], "another arena does not take it up"

    await worker.hand_in(job)
    await asyncio.sleep(1)
    assert watcher.ended == [("", "enough")]
    assert arena.jobs.lost == 0
    assert worker.of(Taken)
    await arena.jobs.close()


@in_virtual_time
async def test_cancelled_and_abandoned_a_match_is_over_and_its_result_refused() -> None:
    arena, worker, watcher, job = await begun()
    for end in (arena.jobs.cancel, arena.jobs.abandon):
        end(job.id, "stopped")

    assert watcher.ended == [("", "stopped")]

    await worker.hand_in(job)
    await asyncio.sleep(1)
    assert watcher.ended == [("", "stopped")]
    assert arena.states() == [AttemptState.VOID]
    assert worker.of(Taken)
    await arena.jobs.close()


@in_virtual_time
async def test_cancelled_at_once_what_an_earlier_arena_began_is_ended_at_its_worker() -> None:
    arena, worker, _, _ = await begun()
    jobs = await arena.restart()
    watcher = StageJobWatcher()
    [job] = jobs.interrupted("c")
    jobs.put(job, watcher)
    jobs.cancel(job.id, "its competition is over")
    await asyncio.sleep(1)

    assert watcher.ended == [("", "its competition is over")]
    assert worker.of(Cancel)
    assert arena.states() == [AttemptState.VOID]
    await jobs.close()


@in_virtual_time
async def test_a_job_that_is_cancelled_when_it_is_lost_again_goes_to_no_worker() -> None:
    arena, worker, _, job = await begun()
    watcher = CancellingWatcher(arena.jobs)
    arena.jobs.put(a_job(), watcher)
    worker.running.clear()
    await asyncio.sleep(7)
    worker.lists(job, "attempt1")
    await asyncio.sleep(1)
    worker.running.clear()
    await asyncio.sleep(7)
    arena.put(1)
    await asyncio.sleep(1)
    await arena.jobs.drain("w1", True)

    assert watcher.losses == ["attempt1"] * 2
    assert watcher.ended == [("", "not now")]
    assert (await arena.jobs.take()).id == "c-1-0"
    await arena.jobs.close()


@in_virtual_time
async def test_a_job_is_played_though_earlier_attempts_cannot_be_read() -> None:
    arena = HandArena()
    jobs = await arena.start()
    worker = HandWorker(arena.broker)
    reads: list[str] = []

    def fails(competition: str) -> Sequence[AttemptRow]:
        reads.append(competition)
        raise StoreFailed("no")

    arena.database.open_of = fails  # type: ignore[method-assign]
    arena.put()
    await worker.begin()
    arena.put(1)
    await worker.begin("attempt2")

    assert reads == ["c", "c"]
    await jobs.close()


@in_virtual_time
async def test_cancelled_while_it_is_written_down_an_attempt_does_not_begin() -> None:
    arena = HandArena()
    jobs = await arena.start()
    worker = HandWorker(arena.broker)
    watcher = arena.put()
    await worker.fetch()
    asked = asyncio.ensure_future(worker.announce("c-0-0", "attempt1"))
    await asyncio.sleep(0.001)
    jobs.cancel("c-0-0", "enough")

    assert watcher.ended == [("", "enough")]
    assert await asked == Denied("enough", is_final=True)
    assert arena.states() == [AttemptState.VOID]
    await jobs.close()


@in_virtual_time
async def test_a_removed_bot_ends_the_match_by_its_offence() -> None:
    arena, worker, watcher, job = await begun()

    assert arena.jobs.offend(job.id, 0, FINDING)
    assert not arena.jobs.offend("nobody", 0, FINDING)
    await asyncio.sleep(2)
    assert {*worker.of(Offend)[1:]} == {Offend("attempt1", 0, FINDING)}
    worker.is_silent = True
    await asyncio.sleep(7)
    assert watcher.ended == [("", "ann was removed")]
    await arena.jobs.close()


@in_virtual_time
async def test_a_stopped_arena_leaves_a_match_to_its_worker_and_takes_the_result_later() -> None:
    arena, worker, watcher, job = await begun()
    arena.jobs.abandon(job.id, "the arena stops")
    assert watcher.ended == [("", "the arena stops")]
    jobs = await arena.restart()
    await worker.hand_in(job)
    await asyncio.sleep(5)  # its competition does not go on yet

    assert worker.of(Taken) == worker.of(Cancel) == []
    assert [each.id for each in jobs.interrupted("c")] == [job.id]
    later = StageJobWatcher()
    jobs.put(a_job(0, "c-0-1"), later)
    await asyncio.sleep(3)
    assert later.ended == [("attempt1", "completed")]
    assert worker.of(Taken)
    await jobs.close()


@in_virtual_time
async def test_a_pairing_that_is_still_played_is_not_begun_again_after_a_restart() -> None:
    arena, worker, _, _ = await begun()
    jobs = await arena.restart()
    later = StageJobWatcher()
    jobs.put(a_job(0, "c-0-1"), later)
    await asyncio.sleep(10)

    assert later.came[-1] == ("attempt1", 3)
    assert await worker.bus.fetch(worker.worker_class, 1.0) is None
    worker.running.clear()
    await worker.begin("attempt2")
    assert later.losses == ["attempt1"]
    await jobs.close()


@in_virtual_time
async def test_a_result_whose_pairing_has_another_is_forgotten() -> None:
    arena, worker, _, job = await begun()
    jobs = await arena.restart()
    arena.database.write(0, "elsewhere")
    await arena.database.flushed()
    await worker.hand_in(job)
    await asyncio.sleep(1)

    assert arena.states() == [AttemptState.VOID]
    assert worker.of(Taken)
    await jobs.close()


@in_virtual_time
async def test_a_result_that_is_written_down_is_taken_when_it_comes_again_after_a_restart() -> None:
    arena, worker, _, job = await begun()
    arena.database.write(0, "attempt1")
    await arena.database.flushed()
    jobs = await arena.restart()
    await worker.hand_in(job)
    await asyncio.sleep(1)

    assert arena.states() == [AttemptState.OPEN]
    assert worker.of(Taken)
    await jobs.close()


@in_virtual_time
async def test_a_result_counts_that_was_not_yet_durable_when_the_arena_was_killed() -> None:
    stage = BusStage(3, plays_here=False)
    await stage.start_arena()
    stage.start_worker("w1")
    while not stage.decided:
        await asyncio.sleep(0.001)
    await stage.kill_arena()
    assert not stage.database.counted
    await stage.start_arena()
    await stage.until_done(60)

    assert len(stage.began) == 3
    await stage.close()


@in_virtual_time
async def test_a_command_that_ends_leaves_nothing_with_the_workers() -> None:
    stage = BusStage(6, plays_here=False)
    await stage.start_arena()
    worker = stage.start_worker("w1", lasts_s=60.0)
    await asyncio.sleep(3)
    assert worker.unfinished == 2
    await stage.jobs.close(forever=True)
    await asyncio.sleep(3)

    assert worker.unfinished == 0
    assert stage.on_bus == 0
    await stage.kill_worker("w1")


# --- those who watch ---


@in_virtual_time
async def test_a_match_elsewhere_is_watched_until_it_is_over() -> None:
    arena, worker, _, job = await begun()
    match = arena.jobs.remote["attempt1"]
    match.watch(True)
    await asyncio.sleep(0.1)

    assert (match.worker, match.names, match.decisions) == ("w1", ("ann", "ben"), 3)
    assert worker.of(WatchAttempt) == [WatchAttempt("attempt1", True)]
    await asyncio.sleep(4)
    assert len(worker.of(WatchAttempt)) == 2  # nothing has come: it was lost
    await worker.hand_in(job)
    await asyncio.sleep(1)
    assert match.is_over
    await arena.jobs.close()


@in_virtual_time
async def test_put_again_a_job_has_its_later_watcher() -> None:
    arena, worker, earlier, job = await begun()
    later = arena.put()
    await worker.hand_in(job)
    await asyncio.sleep(1)

    assert (earlier.ended, later.ended) == ([], [("attempt1", "completed")])
    await arena.jobs.close()


@in_virtual_time
async def test_without_faults_a_faulty_bus_is_a_bus() -> None:
    stage = BusStage(5, Faults(0.0))
    stage.start_worker("w1")
    await stage.start_arena()
    await stage.until_done(60)

    assert len(stage.began) == len(stage.database.rows) == 5
    await stage.close()
