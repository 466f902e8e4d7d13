"""An arena with its page in a thread, and a worker on a bus in memory whose match can be watched.

The worker plays one match between bots that answer ten times a second, without an end.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from arena.competitions.admin import AdminCommands
from arena.competitions.arena_host import Host
from arena.competitions.remote_match import RemoteMatch
from arena.competitions.scheduler import Scheduler
from arena.storage.attempts import AttemptRow, AttemptState
from arena.storage.roster import Roster
from arena.storage.roster_csv import Student
from arena.storage.store import Store
from arena.web.web import Web
from arena.workers.bus import ResultDelivery
from arena.workers.known_worker import KnownWorker
from arena.workers.live_frames import LiveFrames
from arena.workers.messages import (
    Command,
    Drain,
    RunningAttempt,
    WatchAttempt,
    WorkerReport,
    decode,
    encode,
)
from arena.workers.worker_control import BusWorkers
from tests.support.fake_bots import ANY_GAME, FakeArena
from tests.support.memory_bus import MemoryBroker, MemoryBus
from tests.support.watched_arena import PlayedOnDemand
from tests.support.worker_reports import report_of

__all__ = ["LOST", "ArenaWithWorkers"]

_ARENA, _WORKER = "a1", "w1"
_TURN_S = 0.05
_READY_S = 60.0
LOST = AttemptRow(
    id="lost-with-w2",
    job="j0",
    competition="",
    pairing=0,
    players=("ann", "ben"),
    worker="w2",
    commitment="c",
    announced_at=time.time() - 60,
    message=b"",
    state=AttemptState.LOST,
    why="w2 has not reported for 5 s",
)


class _HostWithRemote(Host):
    matches: Mapping[str, RemoteMatch] = {}

    @property
    def remote(self) -> Mapping[str, RemoteMatch]:
        return self.matches


class _OneAttempt:
    def without_result(
        self, competition: str | None = None, most: int = 100
    ) -> Sequence[AttemptRow]:
        return (LOST,)


class _PlayingWorker:
    """Plays a match, reports, and sends the frames of it while somebody watches."""

    def __init__(self, bus: MemoryBus) -> None:
        self.house = FakeArena()
        self.played = PlayedOnDemand(self.house, ANY_GAME, hands=100_000).begins()
        self.is_draining = False
        self.frames: LiveFrames | None = None
        self._bus = bus

    async def run(self) -> None:
        await self._bus.on_command(_WORKER, self._commanded)
        turn = 0
        while True:
            self.house.held_up(_TURN_S)
            if turn % 2 == 0:
                self.played.goes_on()
            if turn % 10 == 0:
                await self._bus.report(_WORKER, encode(self.report))
            frames = self.frames
            if frames is not None and (data := frames.due(self.house.now)) is not None:
                await self._bus.frames(_ARENA, _WORKER, self.match, data)
            turn += 1
            await asyncio.sleep(_TURN_S)

    @property
    def match(self) -> str:
        return self.played.table.id

    @property
    def report(self) -> WorkerReport:
        attempt = RunningAttempt(
            arena=_ARENA,
            job="j1",
            attempt=self.match,
            decisions=self.played.table.decisions,
            has_begun=True,
        )
        return report_of(_WORKER, attempts=(attempt,), is_draining=self.is_draining)

    def _commanded(self, data: bytes) -> None:
        command: Command = decode(data, Command)
        match command:
            case Drain(is_draining=is_draining):
                self.is_draining = is_draining
            case WatchAttempt(is_watched=False):
                self.frames = None
            case WatchAttempt() if self.frames is not None:
                self.frames.again()
            case WatchAttempt():
                self.frames = LiveFrames(self.played.table, lambda: self.house.now)


class _ArenaSide:
    """What `BusJobs` does for those who look."""

    lost = 1

    def __init__(self, bus: MemoryBus, clock: Any) -> None:
        self.workers: dict[str, KnownWorker] = {}
        self.matches: dict[str, RemoteMatch] = {}
        self._bus = bus
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        await self._bus.open_arena(
            *(_ARENA, self._reported, self._refused, self._refused, self._framed, self._taken)
        )

    async def drain(self, worker: str, is_draining: bool) -> None:
        await self._bus.command(worker, encode(Drain(is_draining)))

    def plays(self, worker: _PlayingWorker) -> None:
        table = worker.played.table
        self.matches[table.id] = RemoteMatch(
            table.id,
            _WORKER,
            table.game,
            table.settings,
            table.limits,
            table.names,
            table.versions,
            self._clock(),
            lambda is_watched: self._watch(table.id, is_watched),
        )

    def _watch(self, match: str, is_watched: bool) -> None:
        watch = encode(WatchAttempt(match, is_watched))
        task = asyncio.get_running_loop().create_task(self._bus.command(_WORKER, watch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _reported(self, worker: str, data: bytes) -> None:
        report: WorkerReport = decode(data, WorkerReport)
        self.workers[worker] = KnownWorker(report=report, seen_at=self._clock())
        for attempt in report.attempts:
            self.matches[attempt.attempt].reported(attempt.decisions)

    def _framed(self, worker: str, attempt: str, data: bytes) -> None:
        self.matches[attempt].feed(data)

    async def _refused(self, worker: str, data: bytes) -> bytes:
        raise AssertionError("this worker asks for nothing")

    async def _taken(self, result: ResultDelivery) -> None:
        raise AssertionError("this match has no end")


class ArenaWithWorkers:
    """Use it as a context; times are of `time.monotonic`."""

    def __init__(self, folder: Path) -> None:
        self.url = ""
        self.instructor = ""
        self.owner = ""  # a token of one whose bot plays: `ann`
        self.match = ""
        self._folder = folder
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._main: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> ArenaWithWorkers:
        self._thread.start()
        assert self._ready.wait(_READY_S), "the arena has not come up"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._main is not None, "it has run"
        self._loop.call_soon_threadsafe(self._main.cancel)
        self._thread.join(_READY_S)

    @property
    def decisions(self) -> int:
        """How many have been played at the worker until now."""
        return self._worker.played.table.decisions

    def _run(self) -> None:
        runner = asyncio.Runner(loop_factory=lambda: self._loop)
        with contextlib.suppress(asyncio.CancelledError), runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._main = asyncio.current_task()
        broker = MemoryBroker()
        with Store(self._folder / "arena.db") as store:
            roster = Roster(store.engine)
            [issued] = roster.take([Student(name="ann")]).new
            self.owner, self.instructor = issued.token, roster.instructor()
            side = _ArenaSide(broker.client(), self._loop.time)
            await side.open()
            worker = self._worker = _PlayingWorker(broker.client())
            side.plays(worker)
            host = _HostWithRemote(store, page=Web)
            host.matches = side.matches
            async with host, asyncio.TaskGroup() as group:
                host.workers = BusWorkers(side, _OneAttempt(), self._loop.time)
                host.on_instruct = AdminCommands(
                    host,
                    store,
                    lambda competition: None,
                    starter=cast(Scheduler, None),
                    roster=roster,
                    lines=list,
                )
                self.url = f"http{host.url.removeprefix('ws')}"
                self.match = worker.match
                group.create_task(worker.run())
                self._ready.set()
                await asyncio.Event().wait()
