"""A stage whose pairings are played over a bus in memory, by real workers and real rules.

Processes are missing: `RulesPlayer` has a seat answer at random, after a while of virtual time.
`FakeDatabase` keeps what outlives an arena, and forgets what was not durable when one is killed.
`BusStage` puts what its database has no result of, as a stage of a competition does.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from arena.competitions.jobs import MatchJob, unplayed
from arena.engine.match import MatchResult, MatchState
from arena.engine.shuffle import commitment
from arena.engine.verdict import Finding
from arena.games import GAMES
from arena.records.verify import check_record
from arena.referee.live_match import Forgives, LiveMatch
from arena.sandbox.command import Program
from arena.storage.attempts import AttemptRow
from arena.workers.attempt import DrawnAttempt, PlayedAttempt, draw_attempt
from arena.workers.attempt_log import MemoryAttempts
from arena.workers.bus import BusDown
from arena.workers.bus_jobs import BusJobs
from arena.workers.dispatch import worker_class
from arena.workers.messages import (
    AttemptResult,
    HouseBot,
    SeatProgram,
    Source,
    WorkerKind,
    WorkerReport,
    decode,
)
from arena.workers.result_check import CheckedAttempt, ExpectedAttempt, ResultChecker
from arena.workers.worker import Worker
from bots.strategy import choose
from protocol.errors import ArenaError, UsageError
from protocol.messages import Ending, Limits, Verdict
from protocol.version import __version__
from tests.support.faulty_bus import Faults, FaultyBus
from tests.support.memory_bus import MemoryBroker

__all__ = [
    "GAME",
    "KIND",
    "BusStage",
    "FakeDatabase",
    "FakePrograms",
    "RecordChecker",
    "RulesPlayer",
    "StageJobWatcher",
    "a_job",
    "a_report",
]

GAME = next(game for game in GAMES.values() if game.seats == 2)
SETTINGS = msgspec.to_builtins(GAME.vocabulary.read_settings(dict(GAME.rounds(1))))
KIND = WorkerKind(
    arena_version=__version__,
    system="linux",
    machine="x86_64",
    isolation="",
    languages=("python",),
    commands=(),
    games=tuple(sorted(GAMES)),
)
WRITING_S = 0.01  # until what is written is durable


def a_job(number: int = 0, name: str = "", **more: Any) -> MatchJob:
    fields = {
        "id": name or f"c-{number}-0",
        "game": GAME.name,
        "settings": SETTINGS,
        "limits": Limits(),
        "players": ("ann", "ben"),
        "submissions": (1, None),
        "competition": "c",
        "pairing": number,
    }
    return msgspec.convert({**fields, **more}, MatchJob)


def a_report(worker: str = "w1", **more: Any) -> WorkerReport:
    fields = {"session": "s1", "kind": KIND, "speed": 10.0, "cores": 2, "slots": 2}
    return WorkerReport(**{"worker": worker, "memory_mib": 1_000, **fields, **more})


def begin_rules(seed: bytes, **more: Any) -> MatchState:
    settings = GAME.vocabulary.read_settings(SETTINGS)
    return MatchState(GAME, settings, seed=seed, commitment=commitment(seed), **more)


def play_rules(job: object, seed: bytes) -> MatchState:
    """A match of these rules, played to its end."""
    rng = random.Random(seed)
    match = begin_rules(seed, nonces=("n1", "n2"))
    while match.pending is not None:
        match.answer(choose(match.pending.question.choices, rng), None, 1)
    return match


class RulesPlayer:
    """A `MatchPlayer` and a `ProgramSource` without processes; a match lasts `lasts_s`."""

    def __init__(self, lasts_s: float = 1.0) -> None:
        self.lasts_s = lasts_s
        self.began: list[str] = []
        self._ends: dict[str, asyncio.Future[tuple[Ending, int | None, str]]] = {}

    async def play(
        self, attempt: DrawnAttempt, programs: Sequence[Program], on_progress: Callable[[int], None]
    ) -> PlayedAttempt:
        end = self._ends[attempt.id] = asyncio.get_running_loop().create_future()
        self.began.append(attempt.id)
        on_progress(0)
        try:
            await asyncio.wait([end], timeout=self.lasts_s)
        finally:
            del self._ends[attempt.id]
        if not end.done():
            return PlayedAttempt(record=play_rules(attempt.job, attempt.seed).result().record)
        match = begin_rules(attempt.seed, nonces=("", ""), start=False)
        match.end(*end.result())
        return PlayedAttempt(record=match.result().record)

    def cancel(self, attempt: str, why: str) -> None:
        self._end(attempt, Ending.VOID, None, why)

    def offend(self, attempt: str, seat: int, finding: Finding) -> None:
        self._end(attempt, finding.kind, seat, finding.text)

    def live(self, attempt: str) -> LiveMatch | None:
        return None

    async def program(
        self, wanted: SeatProgram, game: str, name: str, fetch: Callable[[int], Awaitable[bytes]]
    ) -> Program:
        if isinstance(wanted, Source):
            assert await fetch(0) == b"tar", "as in FakePrograms"
        return Program(("true",))

    def _end(self, attempt: str, kind: Ending, seat: int | None, text: str) -> None:
        end = self._ends.get(attempt)
        if end is not None and not end.done():
            end.set_result((kind, seat, text))


class FakePrograms:
    """A `PortablePrograms`: submissions are in `language`, and bots called `here` stay here."""

    def __init__(self, language: str = "python") -> None:
        self.language = language

    async def of(self, job: MatchJob) -> Sequence[SeatProgram]:
        if "here" in job.players:
            raise UsageError("here is of this machine only")
        return [
            HouseBot(name) if number is None else Source(f"key of {name}", 3, self.language)
            for name, number in zip(job.players, job.submissions, strict=True)
        ]

    def is_portable(self, name: str, game: str) -> bool:
        return name != "here"

    async def part(self, key: str, offset: int) -> bytes:
        return b"tar"


class RecordChecker(ResultChecker):
    """The least that a check looks at, without processes; with a `fault` none can be made."""

    def __init__(self) -> None:
        self.checks = 0
        self.fault = ""

    async def check(self, data: bytes, expected: ExpectedAttempt) -> CheckedAttempt:
        if self.fault:
            raise ArenaError(self.fault)
        self.checks += 1
        await asyncio.sleep(WRITING_S)
        result: AttemptResult = decode(data, AttemptResult)
        record = result.record
        told = record.commitment if result.has_begun else expected.commitment
        said = (result.job, result.attempt, result.worker, told)
        if said != (expected.job, expected.attempt, expected.worker, expected.commitment):
            return CheckedAttempt(None, "it is not what was announced")
        reasons = check_record(record).reasons if result.has_begun else ()
        return CheckedAttempt(None if reasons else result, " ".join(reasons))

    async def close(self) -> None:
        pass


class FakeDatabase(MemoryAttempts):
    """Attempts, and the matches of one competition with one result per pairing."""

    def __init__(self) -> None:
        super().__init__()
        self.counted: dict[int, str] = {}
        self.twice: list[str] = []
        self.looked_up: list[str] = []
        self._matches: set[str] = set()
        self._written: list[tuple[int, str]] = []

    async def announce(self, row: AttemptRow) -> None:
        await asyncio.sleep(WRITING_S)
        await super().announce(row)

    def get(self, attempt: str) -> AttemptRow | None:
        self.looked_up.append(attempt)
        return super().get(attempt)

    def write(self, pairing: int, match: str) -> None:
        self._written.append((pairing, match))

    async def flushed(self) -> None:
        await asyncio.sleep(WRITING_S)
        for pairing, match in self._written:
            self._matches.add(match)
            if self.counted.setdefault(pairing, match) != match:
                self.twice.append(match)
        self._written.clear()

    def crash(self) -> None:
        self._written.clear()

    def open_of(self, competition: str) -> Sequence[AttemptRow]:
        return [
            row
            for row in super().open_of(competition)
            if row.pairing not in self.counted and row.id not in self._matches
        ]

    def is_recorded(self, attempt: str) -> bool:
        return attempt in self._matches


class StageJobWatcher:
    """A `JobWatcher` that keeps what it is told, and passes on the end."""

    def __init__(self, on_done: Callable[[str, str, MatchResult], None] = lambda *_: None) -> None:
        self.on_done = on_done
        self.came: list[tuple[str, int]] = []
        self.losses: list[str] = []
        self.ended: list[tuple[str, str]] = []  # match, and kind or why it is void
        self.verdicts: list[Verdict | None] = []

    @property
    def forgives(self) -> Forgives:
        return lambda bot, kind, event: bot == "ann"

    def progressed(self, job: str, match: str, decisions: int) -> None:
        self.came.append((match, decisions))

    def lost(self, job: str, match: str) -> None:
        self.losses.append(match)

    def done(self, job: str, match: str, result: MatchResult, verdict: Verdict | None) -> None:
        ended = result.termination
        self.ended.append((match, ended.text if ended.kind is Ending.VOID else ended.kind.value))
        self.verdicts.append(verdict)
        self.on_done(job, match, result)


class BusStage:
    """A stage of so many pairings, its arena, its workers, and their bus."""

    def __init__(
        self, pairings: int = 4, faults: Faults | None = None, *, plays_here: bool = True
    ) -> None:
        self.broker = MemoryBroker()
        self.faults = faults or Faults()
        self.database = FakeDatabase()
        self.told: list[str] = []
        self.decided: set[int] = set()
        self.again: list[str] = []  # what was done a second time in one arena
        self.players: dict[str, RulesPlayer] = {}
        self.workers: dict[str, Worker] = {}
        self.buses: dict[str, FaultyBus] = {}
        self._pairings = range(pairings)
        self._numbers = itertools.count()
        self._plays_here = plays_here
        self._work: dict[str, asyncio.Task[None]] = {}
        self._here: list[asyncio.Task[None]] = []
        self._open: dict[int, str] = {}
        self._is_stopping = False

    # --- the arena ---

    async def start_arena(self) -> None:
        self.bus = FaultyBus(self.broker, self.faults)
        self.jobs = BusJobs(self.bus, "a1", self.database, RecordChecker(), programs=FakePrograms())
        self.jobs.tell = self.told.append
        self._is_stopping = False
        self.decided = set()
        while True:
            try:
                await self.jobs.start()
                break
            except BusDown:
                await asyncio.sleep(0.5)
        if self._plays_here:
            self._here = [asyncio.ensure_future(self._play_here())]
        self._open.clear()
        for number in self._pairings:
            if number not in self.database.counted:
                self._put(number)

    async def kill_arena(self) -> None:
        """As by SIGKILL: nothing is said, and what is not durable is gone."""
        self.database.crash()
        self._is_stopping = True
        self.bus.is_cut = True
        await self.bus.close()
        await self.jobs.close()
        self._stop_here()
        self.database.crash()

    async def stop_arena(self) -> None:
        self._is_stopping = True
        for job in tuple(self._open.values()):
            self.jobs.abandon(job, "the arena stops")
        await self.jobs.close()
        await self.bus.close()
        self._stop_here()
        await self.database.flushed()

    def cancel(self, number: int) -> None:
        if number in self._open:
            self.jobs.cancel(self._open[number], "the instructor said so")

    @property
    def is_done(self) -> bool:
        return len(self.database.counted) == len(self._pairings)

    async def until_done(self, within_s: float) -> None:
        async with asyncio.timeout(within_s):
            while not self.is_done:
                await asyncio.sleep(0.1)
                await self.database.flushed()

    def _put(self, number: int) -> None:
        job = a_job(number, f"c-{number}-{next(self._numbers)}")
        self._open[number] = job.id

        def on_done(job: str, match: str, result: MatchResult) -> None:
            if self._open.get(number) == job:
                del self._open[number]
            if self._is_stopping:
                return
            if result.termination.kind is Ending.VOID:
                self._put(number)
            elif number in self.decided:
                self.again.append(match)
            else:
                self.decided.add(number)
                self.database.write(number, match)

        self.jobs.put(job, StageJobWatcher(on_done))

    async def _play_here(self) -> None:
        playing: dict[str, asyncio.Task[None]] = {}

        async def play(job: MatchJob) -> None:
            await asyncio.sleep(1.0)
            match, seed = draw_attempt()
            self.jobs.done(job.id, f"here-{match}", play_rules(job, seed).result(), None)

        def cancel(job: str, why: str) -> None:
            if (task := playing.pop(job, None)) is not None and not task.done():
                task.cancel()
                self.jobs.done(job, "", unplayed(a_job(), why), None)

        self.jobs.on_cancel(cancel)
        while True:
            job = await self.jobs.take()
            playing[job.id] = asyncio.ensure_future(play(job))
            self._here.append(playing[job.id])

    def _stop_here(self) -> None:
        for task in self._here:
            task.cancel()
        self._here = []

    # --- workers ---

    def start_worker(self, name: str, lasts_s: float = 1.0, **more: Any) -> Worker:
        bus = self.buses[name] = FaultyBus(self.broker, self.faults)
        profile = a_report(name, session=f"s{next(self._numbers)}", **more)
        player = self.players.setdefault(name, RulesPlayer(lasts_s))
        worker = self.workers[name] = Worker(
            bus, player, player, profile, worker_class(profile.kind, profile.speed)
        )
        self._work[name] = asyncio.ensure_future(worker.run())
        return worker

    async def kill_worker(self, name: str) -> None:
        """As by SIGKILL: nothing is said any more."""
        await self.buses[name].close()
        task = self._work.pop(name)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        del self.workers[name]

    async def close(self) -> None:
        await self.jobs.close()
        self._stop_here()
        for name in tuple(self.workers):
            await self.kill_worker(name)

    @property
    def began(self) -> list[str]:
        """All matches that workers have begun, in order for each."""
        return [match for player in self.players.values() for match in player.began]

    @property
    def on_bus(self) -> int:
        """How many jobs and results the bus has."""
        queues = (*self.broker.jobs.values(), *self.broker.results.values())
        return sum(len(queue.messages) for queue in queues)
