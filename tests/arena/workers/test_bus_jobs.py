"""Jobs over a bus: who plays them, what counts, and what becomes of lost attempts."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

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
    Drain,
    Granted,
    HandInAgain,
    Offend,
    PartOfProgram,
    ProgramRequest,
    Reply,
    RunningAttempt,
    Taken,
    WatchAttempt,
    decode,
    encode,
)
from protocol.errors import StoreFailed
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
from tests.support.memory_bus import MemoryBroker

pytestmark = pytest.mark.virtual_time(limit_s=300)

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
        self.queue = broker.jobs_of(self.worker_class).messages
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
        told = commitment(seed)
        asked = Announcement(job=job, attempt=attempt, commitment=told, worker=self.name)
        reply: Reply = decode(await self.bus.announce("a1", self.name, encode(asked)), Reply)
        return reply

    async def part_of(self, key: str) -> PartOfProgram:
        """What the arena says when it asks for a program, as for `attempt1`."""
        asked = ProgramRequest(worker=self.name, attempt="attempt1", key=key, offset=0)
        return decode(await self.bus.program_part("a1", self.name, encode(asked)), PartOfProgram)

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

    def worker(self, name: str = "w1", **more: Any) -> HandWorker:
        return HandWorker(self.broker, name, **more)

    def put(self, number: int = 0, **more: Any) -> StageJobWatcher:
        watcher = StageJobWatcher()
        self.jobs.put(a_job(number, **more), watcher)
        return watcher

    def states(self) -> list[AttemptState]:
        return [row.state for row in self.database.rows.values()]


@pytest.fixture
async def arena() -> AsyncIterator[HandArena]:
    arena = HandArena()
    await arena.start()
    yield arena
    await arena.jobs.close()


@pytest.fixture
async def worker(arena: HandArena) -> HandWorker:
    return arena.worker()


class BegunMatch(NamedTuple):
    """A match as `attempt1` that a worker has begun, and what may happen to it."""

    arena: HandArena
    worker: HandWorker
    watcher: StageJobWatcher
    job: BusJob

    async def hands_in(self, attempt: str = "attempt1", **more: Any) -> None:
        """The worker hands a result in, which is looked at within a second."""
        await self.worker.hand_in(self.job, attempt, **more)
        await asyncio.sleep(1)

    async def happens(self, acts: str) -> None:
        """What happens, in order; a number is a pause in seconds."""
        for act in acts.split():
            match act.split(":"):
                case ["silent" | "speaks"]:
                    self.worker.is_silent = act == "silent"
                case ["unlisted"]:
                    self.worker.running.clear()
                case ["over"]:
                    self.worker.lists(self.job, "attempt1", is_over=True)
                case ["cut" | "back"]:
                    self.arena.bus.is_cut = act == "cut"
                case ["cancel"]:
                    self.arena.jobs.cancel(self.job.id, "enough")
                    assert self.arena.states() == [AttemptState.VOID], "no arena takes it up"
                case ["abandon"]:
                    self.arena.jobs.abandon(self.job.id, "enough")
                case ["offend"]:
                    assert self.arena.jobs.offend(self.job.id, 0, FINDING)
                    assert not self.arena.jobs.offend("nobody", 0, FINDING)
                case ["restart"]:
                    await self.arena.restart()
                case ["written", match]:
                    self.arena.database.write(0, match)
                    await self.arena.database.flushed()
                case ["denied", attempt]:
                    reply = await self.worker.announce(self.job.id, attempt)
                    assert reply == Denied("another attempt at it is under way", is_final=True)
                case ["hands-in", *void]:
                    await self.hands_in(void="".join(void))
                case ["stranger" as attempt]:
                    await self.hands_in(attempt)
                case ["sends"]:
                    await self.worker.hand_in(self.job)
                case ["redelivered"]:
                    self.arena.broker.redeliver()
                case ["unchecked" | "checked"]:
                    self.arena.checker.fault = "no process" if act == "unchecked" else ""
                case ["double"]:
                    self.arena.worker(session="s2")
                case ["ended" | "plays"]:
                    assert bool(self.watcher.ended) is (act == "ended")
                case _:
                    await asyncio.sleep(float(act))


@pytest.fixture
async def begun(arena: HandArena, worker: HandWorker) -> BegunMatch:
    watcher = arena.put()
    job, _ = await worker.begin()
    await asyncio.sleep(1)
    return BegunMatch(arena, worker, watcher, job)


# --- who plays a job ---


async def test_only_two_jobs_per_slot_are_on_the_bus() -> None:
    stage = BusStage(20)
    await stage.start_arena()
    HandWorker(stage.broker, slots=3)
    await asyncio.sleep(2)

    assert stage.jobs.at_once == stage.on_bus == 6
    await stage.close()


async def test_what_no_worker_may_have_is_played_here_and_told_once(arena: HandArena) -> None:
    for number in (0, 1):
        arena.put(number, players=("here", "ben"))

    assert [(await arena.jobs.take()).pairing for _ in (0, 1)] == [0, 1]
    assert arena.told == ["matches are played by the arena itself: here is of this machine only"]


@pytest.mark.parametrize(
    ("languages", "why"), [((), "no worker has programs in python"), (None, "no worker is there")]
)
async def test_what_no_worker_can_play_is_played_here(
    arena: HandArena, languages: tuple[str, ...] | None, why: str
) -> None:
    if languages is not None:
        arena.worker(kind=msgspec.structs.replace(KIND, languages=languages))
    watcher = arena.put()
    job = await arena.jobs.take()
    arena.jobs.progress(job.id, "m1", 4)
    arena.jobs.done(job.id, "m1", play_rules(job, SEED).result(), None)

    assert (watcher.came, watcher.ended) == ([("m1", 4)], [("m1", "completed")])
    assert arena.told == [f"matches are played by the arena itself: {why}"]


async def test_who_drains_gets_no_jobs_others_do(arena: HandArena, worker: HandWorker) -> None:
    other = arena.worker("w2", speed=100.0)
    await asyncio.sleep(1)
    await arena.jobs.drain("w2", True)
    for number in range(4):
        arena.put(number)
    await asyncio.sleep(1)

    assert len(worker.queue) == 4
    assert other.of(Drain)[0] == Drain(True)
    worker.more["is_draining"] = True
    await arena.jobs.drain("w2", False)
    await asyncio.sleep(2)
    assert len(other.queue) == 4
    assert not worker.queue


async def test_alike_matches_say_that_they_wait(arena: HandArena) -> None:
    slow = arena.worker()
    arena.put(0, is_alike=True)
    await slow.begin()
    arena.worker("w2", speed=40.0)
    slow.is_silent = True
    await asyncio.sleep(20)

    assert arena.told[1:] == [
        "matches that are to be alike wait, such as of ann and ben, for a worker of "
        "speed class 5 (7.6 to 11.4 calibrations/s): none is here"
    ]


# --- announcements ---


async def test_an_attempt_is_announced_once_and_its_id_is_its_own(begun: BegunMatch) -> None:
    arena, worker, _, job = begun
    replies = await asyncio.gather(*(worker.announce(job.id, "attempt1") for _ in range(3)))
    other = await worker.announce(job.id, "attempt1", b"8" * 32)

    assert len(arena.database.rows) == 1
    assert set(replies) == {Granted((tuple(sorted(replies[0].forgiven[0])), ()))}  # type: ignore[union-attr]
    assert other == Denied("that id is one of another attempt", is_final=True)


async def test_one_of_attempts_at_once_is_granted(arena: HandArena, worker: HandWorker) -> None:
    arena.put()
    await worker.fetch()
    is_durable = []

    async def announce(attempt: str) -> Reply:
        reply = await worker.announce("c-0-0", attempt)
        if isinstance(reply, Granted):
            is_durable.append(attempt in arena.database.rows)
        return reply

    first, second, *others = await asyncio.gather(
        *map(announce, ("attempt1", "attempt1", "attempt2", "attempt3"))
    )
    assert isinstance(first, Granted)
    assert first == second
    assert is_durable == [True, True], "before any reply grants it"
    assert others == [Denied("another attempt at it is under way", is_final=True)] * 2


async def test_what_is_done_or_played_here_is_denied(arena: HandArena, worker: HandWorker) -> None:
    arena.put(1, players=("here", "ben"))
    await arena.jobs.take()
    done, here = [await worker.announce(job, "attempt1") for job in ("nobody", "c-1-0")]

    assert done == Denied("it is not to be played any more", is_final=True)
    assert here == Denied("the arena plays it itself", is_final=True)


async def test_programs_are_for_whom_the_attempt_was_granted_to(begun: BegunMatch) -> None:
    arena, worker, _, _ = begun

    assert await worker.part_of("key of ann") == PartOfProgram(b"tar")
    assert (await worker.part_of("key of eve")).why == (
        "no seat of that attempt plays that program"
    )
    other = await arena.worker("w2").part_of("key of ann")
    assert other.why == "that attempt was not granted to it"
    await arena.restart()
    assert await worker.part_of("key of ann") == PartOfProgram(b"tar"), "it is still granted"


# --- what becomes of it ---


class Course(NamedTuple):
    """What happens to a match, and what becomes of it.

    Attributes:
        ended: how its job ended, or why it is void; nothing if it did not end.
        heard: what the worker was told, and how often at least: most is told with each report.
    """

    acts: str
    ended: str = ""
    state: AttemptState = AttemptState.OPEN
    told: str = ""
    heard: Mapping[Command, int] = MappingProxyType({})
    losses: int = 0
    is_played: bool = False


CANCEL, TAKEN, AGAIN = Cancel("attempt1", "enough"), Taken("attempt1"), HandInAgain("attempt1")
UNWANTED = Cancel("attempt1", "another result of its pairing counts, or none is wanted")
OFFEND = Offend("attempt1", 0, FINDING)
MAY_BE_LOST = "a match of worker w1 may be lost: nothing is heard of them"
OPEN, LOST, VOID = AttemptState.OPEN, AttemptState.LOST, AttemptState.VOID
UNANNOUNCED = "a result of worker w1 is refused: it was not announced"
TWO_WORKERS = "two workers are called w1: give each a name of its own"
GIVEN_UP = "worker w1 does not end attempt1, which is given up"
COURSES = {
    "a void result is passed on with what the worker says": Course(
        "hands-in:full", "full", VOID, "ann and ben at worker w1: full", {TAKEN: 1}
    ),
    "a result counts once however often it comes, and is checked once": Course(
        "sends 0.005 redelivered 0.005 redelivered 1 hands-in hands-in",
        "completed",
        heard={TAKEN: 3},
    ),
    "a result that was not announced is refused, which is told once": Course(
        "stranger stranger", "", OPEN, UNANNOUNCED, {Taken("stranger"): 2}, is_played=True
    ),
    "a result waits while none can be checked, which is told once": Course(
        "unchecked hands-in 6 plays checked 3", "completed", OPEN, "no process", {TAKEN: 1}
    ),
    "a match of two workers of a name is not lost": Course(
        "double 20 hands-in", "completed", OPEN, TWO_WORKERS, {TAKEN: 1}
    ),
    "a result that does not come is asked for": Course("over 8", heard={AGAIN: 2}, is_played=True),
    "an attempt that its worker does not list is lost": Course(
        "unlisted 7", state=LOST, told=MAY_BE_LOST, losses=1
    ),
    "a lost attempt that is heard of again goes on": Course(
        "silent 7 speaks 1 denied:attempt2", "", LOST, MAY_BE_LOST, {}, losses=1, is_played=True
    ),
    "nothing is lost while the bus is down for a while": Course("cut 25 back 10", is_played=True),
    "a match ends when its worker says so, which is told to with each report": Course(
        "cancel 2 plays hands-in:enough", "enough", VOID, heard={CANCEL: 4, TAKEN: 1}
    ),
    "a match that its worker does not end is given up": Course(
        "cancel 40 ended hands-in", "enough", VOID, GIVEN_UP, {CANCEL: 60, TAKEN: 1}
    ),
    "a removed bot is out of a match that its worker does not end": Course(
        "offend 40", "ann was removed", VOID, GIVEN_UP, {OFFEND: 60}
    ),
    "a removed bot ends the match by its offence": Course(
        "offend 2 plays silent 7", "ann was removed", LOST, MAY_BE_LOST, {OFFEND: 4}
    ),
    "a cancelled match of a silent worker is void and its result refused": Course(
        "silent cancel 7 ended hands-in", "enough", VOID, MAY_BE_LOST, {CANCEL: 1, TAKEN: 1}
    ),
    "a match that ends before its worker hears of the cancel is void": Course(
        "cancel hands-in", "enough", VOID, heard={CANCEL: 1, TAKEN: 1}
    ),
    "cancelled and abandoned a match is over and its result refused": Course(
        "cancel abandon ended hands-in", "enough", VOID, heard={CANCEL: 1, TAKEN: 1}
    ),
    "a result whose pairing has another is forgotten": Course(
        "restart written:elsewhere hands-in", state=VOID, heard={TAKEN: 1, UNWANTED: 1}
    ),
    "a result that is written down is taken when it comes again after a restart": Course(
        "written:attempt1 restart hands-in", heard={TAKEN: 1}
    ),
}


@pytest.mark.parametrize("course", COURSES.values(), ids=COURSES)
async def test_what_becomes_of_a_match_of_a_worker(begun: BegunMatch, course: Course) -> None:
    await begun.happens(course.acts)

    arena, worker, watcher, _ = begun
    match = "attempt1" if course.ended == "completed" else ""
    assert watcher.ended == [(match, course.ended)] * (course.ended != "")
    assert watcher.came[-1] == ("attempt1", 3)
    assert watcher.losses == ["attempt1"] * course.losses
    assert arena.states() == [course.state]
    assert arena.told == [course.told] * (course.told != "")
    assert arena.checker.checks <= 1
    assert [*arena.jobs.remote] == ["attempt1"] * course.is_played
    counts = Counter(worker.commands)
    assert counts.keys() == course.heard.keys()
    assert all(counts[each] >= least for each, least in course.heard.items())
    assert counts[AGAIN] == course.heard.get(AGAIN, 0)


# --- results ---


async def test_a_refused_result_is_a_loss_and_the_job_goes_on(begun: BegunMatch) -> None:
    arena, worker, watcher, job = begun
    await begun.hands_in(job=msgspec.structs.replace(job, players=("eve", "ben")))
    del worker.running["attempt1"]

    assert watcher.losses == ["attempt1"]
    assert arena.states() == [VOID]
    assert arena.told == ["a result of worker w1 is refused: it is not what was announced"]
    await worker.begin("attempt2")
    await begun.hands_in("attempt2")
    assert watcher.ended == [("attempt2", "completed")]


async def test_verdict_and_stderr_are_passed_on_the_arena_forgives(begun: BegunMatch) -> None:
    arena, _, watcher, job = begun
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
    await begun.hands_in(verdict=verdict, stderr=("oh", "no"))

    assert arena.verdicts == watcher.verdicts == [msgspec.structs.replace(verdict, forgiven=True)]
    assert arena.stderr == [(1, "attempt1", "oh")]


# --- lost attempts ---


async def test_J5_after_three_losses_a_match_is_void(arena: HandArena, worker: HandWorker) -> None:
    watcher = arena.put()
    for number in range(3):
        await worker.begin(f"attempt{number}")
        worker.running.clear()
    await asyncio.sleep(10)

    assert len(watcher.losses) == arena.jobs.lost == 3
    assert watcher.ended == [("", FAULT)]
    assert not worker.queue


async def test_the_late_result_of_a_lost_attempt_counts_if_first(begun: BegunMatch) -> None:
    arena, worker, watcher, job = begun
    worker.is_silent = True
    other = arena.worker("w2")
    await other.begin("attempt2")
    await begun.hands_in()
    await other.hand_in(job, "attempt2")
    await asyncio.sleep(1)

    assert watcher.ended == [("attempt1", "completed")]
    assert arena.database.rows["attempt2"].state is VOID
    assert other.of(Cancel)[0] == Cancel("attempt2", "another result of its pairing counts")
    assert other.of(Taken)


async def test_a_late_result_counts_while_the_arena_plays_itself(begun: BegunMatch) -> None:
    arena, worker, watcher, job = begun
    cancelled: list[str] = []
    arena.jobs.on_cancel(lambda job, why: cancelled.append(job))
    worker.is_silent = True
    taken = await arena.jobs.take()
    await begun.hands_in()
    arena.jobs.done(taken.id, "m2", play_rules(job, SEED).result(), None)

    assert cancelled == [job.id]
    assert watcher.ended == [("attempt1", "completed")]


async def test_a_bus_that_stays_away_leaves_the_jobs_to_the_arena(begun: BegunMatch) -> None:
    arena, _, watcher, job = begun
    arena.bus.is_cut = True

    assert (await arena.jobs.take()).id == job.id
    assert watcher.losses == ["attempt1"]


# --- cancel, abandon, offend ---


async def test_a_job_that_waits_is_cancelled_at_once(arena: HandArena, worker: HandWorker) -> None:
    watcher = arena.put()
    await worker.fetch()
    for _ in range(2):
        arena.jobs.cancel("c-0-0", "enough")
    await asyncio.sleep(0.1)

    assert watcher.ended == [("", "enough")]
    assert isinstance(await worker.announce("c-0-0", "attempt1"), Denied)
    assert not worker.queue


async def test_unannounced_attempts_are_few_lookups(arena: HandArena, worker: HandWorker) -> None:
    for number in range(5_000):
        name = f"{number:08}"
        worker.running[name] = RunningAttempt(
            arena="a1", job="j", attempt=name, has_begun=True, is_over=True
        )
    await asyncio.sleep(0.7)

    assert 0 < len(arena.database.looked_up) < 100
    assert worker.of(Cancel)


async def test_cancelled_what_an_earlier_arena_began_ends_there(begun: BegunMatch) -> None:
    arena, worker, _, _ = begun
    jobs = await arena.restart()
    watcher = StageJobWatcher()
    [job] = jobs.interrupted("c")
    jobs.put(job, watcher)
    jobs.cancel(job.id, "its competition is over")
    await asyncio.sleep(1)

    assert watcher.ended == [("", "its competition is over")]
    assert worker.of(Cancel)
    assert arena.states() == [VOID]


async def test_unreadable_attempts_do_not_stop_a_job(arena: HandArena, worker: HandWorker) -> None:
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


async def test_cancelled_while_written_it_is_void(arena: HandArena, worker: HandWorker) -> None:
    watcher = arena.put()
    await worker.fetch()
    asked = asyncio.ensure_future(worker.announce("c-0-0", "attempt1"))
    await asyncio.sleep(0.001)
    arena.jobs.cancel("c-0-0", "enough")

    assert watcher.ended == [("", "enough")]
    assert await asked == Denied("enough", is_final=True)
    assert arena.states() == [VOID]


async def test_a_stopped_arena_takes_the_result_of_a_match_later(begun: BegunMatch) -> None:
    arena, worker, _, job = begun
    await begun.happens("abandon ended restart hands-in 5")  # its competition does not go on yet

    assert worker.commands == []
    assert [each.id for each in arena.jobs.interrupted("c")] == [job.id]
    later = arena.put(0, name="c-0-1")
    await asyncio.sleep(3)
    assert later.ended == [("attempt1", "completed")]
    assert worker.of(Taken)


async def test_a_pairing_still_played_is_not_begun_after_a_restart(begun: BegunMatch) -> None:
    arena, worker, _, _ = begun
    await arena.restart()
    later = arena.put(0, name="c-0-1")
    await asyncio.sleep(10)

    assert later.came[-1] == ("attempt1", 3)
    assert await worker.bus.fetch(worker.worker_class, 1.0) is None
    worker.running.clear()
    await worker.begin("attempt2")
    assert later.losses == ["attempt1"]


async def test_a_result_counts_not_yet_durable_at_a_kill() -> None:
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


async def test_a_match_elsewhere_is_watched_until_it_is_over(begun: BegunMatch) -> None:
    arena, worker, _, _ = begun
    match = arena.jobs.remote["attempt1"]
    match.watch(True)
    await asyncio.sleep(0.1)

    assert (match.worker, match.names, match.decisions) == ("w1", ("ann", "ben"), 3)
    assert worker.of(WatchAttempt) == [WatchAttempt("attempt1", True)]
    await asyncio.sleep(4)
    assert len(worker.of(WatchAttempt)) == 2  # nothing has come: it was lost
    await begun.hands_in()
    assert match.is_over


async def test_put_again_a_job_has_its_later_watcher(begun: BegunMatch) -> None:
    later = begun.arena.put()
    await begun.hands_in()

    assert (begun.watcher.ended, later.ended) == ([], [("attempt1", "completed")])
