"""An arena as workers see it on a bus: it grants what is announced, and takes what is handed in.

Each result has to pass the check of a real arena.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping

from arena.server.background import BackgroundTasks
from arena.workers.bus import Bus, BusDown, ResultDelivery
from arena.workers.dispatch import worker_class
from arena.workers.messages import (
    Announcement,
    AttemptResult,
    BusJob,
    Command,
    Granted,
    HouseBot,
    PartOfProgram,
    ProgramRequest,
    Reply,
    SeatProgram,
    Taken,
    WorkerReport,
    decode,
    encode,
)
from arena.workers.result_fit import ExpectedAttempt, fit_of
from protocol.messages import Limits
from tests.support.fake_bots import ANY_GAME

__all__ = ["PART_BYTES", "BusArena", "bus_job"]

PART_BYTES = 1000


def bus_job(
    number: str = "job",
    *,
    players: tuple[str, ...] = ("ann", "ben"),
    programs: tuple[SeatProgram, ...] = (HouseBot("random"), HouseBot("random")),
    game: str = ANY_GAME,
    settings: Mapping[str, object] | None = None,
    limits: Limits | None = None,
) -> BusJob:
    """A job of an arena that is called `arena`."""
    return BusJob(
        arena="arena",
        id=number,
        game=game,
        settings=dict(settings or {"hands": 4}),
        limits=limits or Limits(),
        players=players,
        programs=programs,
    )


class BusArena:
    """It has one worker, and puts jobs for the class of that.

    Attributes:
        worker_class: None until that worker has reported, if it is not given.
        replies: what is said to announcements, in order; after these all are granted.
        is_prompt: results are taken as soon as they come; else the bus keeps them.
        announced, results, reports: what has come, the latest last.
        programs: the bytes of programs, by key; those that are missing are refused.
    """

    def __init__(self, bus: Bus, worker: str = "w", worker_class: str | None = "class") -> None:
        self.bus = bus
        self.worker = worker
        self.worker_class = worker_class
        self.replies: list[Reply] = []
        self.is_prompt = True
        self.announced: list[Announcement] = []
        self.results: list[AttemptResult] = []
        self.reports: list[WorkerReport] = []
        self.frames: list[bytes] = []
        self.programs: dict[str, bytes] = {}
        self.jobs: dict[str, BusJob] = {}
        self.requests: list[ProgramRequest] = []
        self._taken: set[str] = set()
        self._tasks = BackgroundTasks()
        self._news = asyncio.Event()

    async def open(self) -> BusArena:
        await self.bus.open_arena(
            "arena",
            self._on_report,
            self._on_announcement,
            self._on_program_request,
            self._on_frames,
            self._on_result,
        )
        await self.bus.open_worker(self.worker)
        if self.worker_class is None:
            report = await self.until_reported(lambda _: True)
            self.worker_class = worker_class(report.kind, report.speed)
        await self.bus.open_class(self.worker_class)
        return self

    async def put(self, job: BusJob) -> None:
        self.jobs[job.id] = job
        assert self.worker_class is not None, "it is open"
        await self.bus.put(self.worker_class, job.id, encode(job))

    async def command(self, command: Command) -> None:
        await self.bus.command(self.worker, encode(command))

    async def until_results(self, count: int = 1) -> AttemptResult:
        """Wait for so many results in all; returns the last."""
        await self.until(lambda: len(self.results) >= count)
        return self.results[-1]

    async def until(self, is_true: Callable[[], bool]) -> None:
        """Wait until something is true after a message has come."""
        while not is_true():
            self._news.clear()
            await self._news.wait()

    async def until_reported(self, is_true: Callable[[WorkerReport], bool]) -> WorkerReport:
        """Wait for a report of which this is true; returns it."""
        seen = len(self.reports)
        await self.until(lambda: len(self.reports) > seen and is_true(self.reports[-1]))
        return self.reports[-1]

    def _on_report(self, worker: str, data: bytes) -> None:
        report: WorkerReport = decode(data, WorkerReport)
        self.reports.append(report)
        for attempt in report.attempts:
            if attempt.attempt in self._taken:  # that command was lost, as any can be
                self._tasks.start(self._take(attempt.attempt))
        self._news.set()

    async def _on_announcement(self, worker: str, data: bytes) -> bytes:
        self.announced.append(decode(data, Announcement))
        self._news.set()
        return encode(self.replies.pop(0) if self.replies else Granted())

    async def _on_program_request(self, worker: str, data: bytes) -> bytes:
        request: ProgramRequest = decode(data, ProgramRequest)
        self.requests.append(request)
        self._news.set()
        whole = self.programs.get(request.key)
        if whole is None:
            return encode(PartOfProgram(why=f"there is no program {request.key}"))
        return encode(PartOfProgram(whole[request.offset : request.offset + PART_BYTES]))

    def _on_frames(self, worker: str, attempt: str, data: bytes) -> None:
        self.frames.append(data)
        self._news.set()

    async def _on_result(self, delivery: ResultDelivery) -> None:
        data = await delivery.read()
        result: AttemptResult = decode(data, AttemptResult)
        announced = next(each for each in self.announced if each.attempt == delivery.attempt)
        expected = ExpectedAttempt(
            job=self.jobs[announced.job],
            attempt=delivery.attempt,
            worker=delivery.worker,
            commitment=announced.commitment,
        )
        why = fit_of(data, expected).why
        assert not why, why
        self.results.append(result)
        if self.is_prompt:
            self._taken.add(delivery.attempt)
            await delivery.ack()
            await self._take(delivery.attempt)
        self._news.set()

    async def _take(self, attempt: str) -> None:
        with contextlib.suppress(BusDown):
            await self.command(Taken(attempt))
