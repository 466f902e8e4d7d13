"""A worker: takes jobs of its class from the bus, has them played, and hands their results in.

It draws seed and id of an attempt, announces them, and plays only what was granted (J6). It needs
the bus to begin and to end a match, but not in between: cut off, it plays on and hands in later.
A job stays claimed (`in_progress`) until the arena has taken its result.

A worker that cannot play would be done with every job at once, and make all of them void. So it
takes none for a while, longer each time, and none while its machine is short of memory or disk; to
arenas it is then a worker that drains.

Nothing here knows processes, or which bus it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable
from functools import partial

import msgspec

from arena.referee.live_match import LiveMatch
from arena.referee.referee import FAULT
from arena.sandbox.build_cache import BuildFailed
from arena.sandbox.command import Program
from arena.server.background import BackgroundTasks
from arena.workers.arena_requests import ArenaRequests
from arena.workers.attempt import (
    DrawnAttempt,
    FrameSource,
    MatchPlayer,
    PlayedAttempt,
    ProgramSource,
    WorkerAttempt,
    draw_attempt,
    void_attempt,
)
from arena.workers.bus import Bus, BusDown, JobDelivery
from arena.workers.messages import (
    BusJob,
    Cancel,
    Command,
    Denied,
    Dismissal,
    Drain,
    Granted,
    HandInAgain,
    Offend,
    SeatProgram,
    Taken,
    WatchAttempt,
    WorkerReport,
    decode,
    encode,
)
from protocol.errors import ArenaError, one_line

__all__ = ["Worker"]

log = logging.getLogger(__name__)

_REPORT_S = 0.5  # an arena takes a worker for gone after 5 s
_FETCH_S = 5.0
_AGAIN_S = 1.0  # between two tries at what the bus did not carry
_GIVE_BACK_S = 5.0  # before a job whose arena does not answer is delivered again
_FRAMES_S = 0.05  # between two looks at what is due
_REST_S, _LONGEST_REST_S = 1.0, 60.0  # after an attempt that could not be played here
_MOST_UNTAKEN = 4  # results for each slot that wait for an arena: more work only piles up


class Worker:
    """Works for all arenas of a bus.

    Args:
        profile: what it says of itself, as its first report.
        worker_class: the class of jobs that it takes.
        draw: returns a fresh id of an attempt, and a seed.
        lag_ms: how late its event loop was at worst in the last seconds.
        shortage: what its machine is short of just now, in words; empty if of nothing.
        frames_of: what is sent of a match that is watched.
        tell: gets one line about what an operator should know.
    """

    def __init__(
        self,
        bus: Bus,
        player: MatchPlayer,
        programs: ProgramSource,
        profile: WorkerReport,
        worker_class: str,
        *,
        draw: Callable[[], tuple[str, bytes]] = draw_attempt,
        lag_ms: Callable[[], float] = lambda: 0.0,
        shortage: Callable[[], str] = lambda: "",
        frames_of: Callable[[LiveMatch], FrameSource] | None = None,
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.name = profile.worker
        self._bus = bus
        self._requests = ArenaRequests(bus, profile.worker, self._note)
        self._player = player
        self._programs = programs
        self._profile = profile
        self._class = worker_class
        self._draw = draw
        self._lag_ms = lag_ms
        self._shortage = shortage
        self._frames_of = frames_of
        self._tell = tell
        self._attempts: dict[str, WorkerAttempt] = {}
        self._is_draining = False
        self.is_leaving = False
        self._played = 0
        self._rest_s = _REST_S
        self._rests_until = -math.inf
        self._last_error = ""
        self._refusals: set[str] = set()
        self._changed = asyncio.Event()
        self._tasks = BackgroundTasks()
        self._loop = asyncio.get_running_loop()

    @property
    def report(self) -> WorkerReport:
        return msgspec.structs.replace(
            self._profile,
            attempts=tuple(
                attempt.report(self._scores(attempt)) for attempt in self._attempts.values()
            ),
            is_draining=not self._takes_jobs,
            lag_ms=self._lag_ms(),
            played=self._played,
            last_error=self._last_error,
        )

    async def run(self) -> None:
        """Work until `leave` was called and all that has begun is handed in and taken.

        Cancelled, it stops at once, and hands nothing in: an arena sees its attempts as lost.
        """
        await self._requests.until_up(partial(self._bus.on_command, self.name, self._commanded))
        reporting = self._tasks.start(self._report_always())
        fetching = self._tasks.start(self._fetch_always())
        for task in (reporting, fetching):
            task.add_done_callback(lambda _: self._changed.set())
        try:
            while not self.is_leaving or self._attempts:
                await self._until_changed()
                for task in (reporting, fetching):
                    if task.done():  # it has failed
                        task.result()
        finally:
            for task in (reporting, fetching):
                task.cancel()
            unfinished, self._attempts = tuple(self._attempts.values()), {}
            self._tasks.cancel()
            await self._tasks.ended()
            # Arenas and other workers learn of it sooner than by its silence.
            self._is_draining = True
            with contextlib.suppress(BusDown):
                await self._bus.report(self.name, encode(self.report))
            for attempt in unfinished:
                if not attempt.is_over:  # else its result counts, once the arena has it
                    await attempt.delivery.give_back(0)

    def _scores(self, attempt: WorkerAttempt) -> tuple[int, ...]:
        table = self._player.live(attempt.id)
        return () if table is None or table.match is None else table.match.scores

    def drain(self, is_draining: bool = True) -> None:
        """Take no jobs any more, or again."""
        self._is_draining = is_draining or self.is_leaving
        self._changed.set()

    def leave(self) -> None:
        """Take no jobs any more, and have `run` return when the last is done."""
        self.is_leaving = True
        self.drain()

    @property
    def unfinished(self) -> int:
        """How many attempts are not over, or not taken yet."""
        return len(self._attempts)

    # --- taking jobs ---

    @property
    def _takes_jobs(self) -> bool:
        is_fit = self._loop.time() >= self._rests_until and not self._shortage()
        return is_fit and not self._is_draining

    @property
    def _has_room(self) -> bool:
        playing = sum(not attempt.is_over for attempt in self._attempts.values())
        most = self._profile.slots * (1 + _MOST_UNTAKEN)
        return playing < self._profile.slots and len(self._attempts) < most

    async def _fetch_always(self) -> None:
        while True:
            while self._is_draining or not self._has_room:
                await self._until_changed()
            if not self._takes_jobs:
                if shortage := self._shortage():
                    self._note(f"takes no jobs: {shortage}")
                await asyncio.sleep(_AGAIN_S)
                continue
            try:
                delivery = await self._bus.fetch(self._class, _FETCH_S)
            except BusDown as error:  # or no arena has jobs for its class yet
                log.debug("no jobs: %s", error)
                await asyncio.sleep(_AGAIN_S)
                continue
            if delivery is not None:
                await self._delivered(delivery)

    async def _delivered(self, delivery: JobDelivery) -> None:
        if not self._takes_jobs:
            await delivery.give_back(0)
            return
        try:
            job: BusJob = decode(delivery.data, BusJob)
        except msgspec.DecodeError as error:
            self._note(f"a job cannot be read: {error}")
            await delivery.give_back(_GIVE_BACK_S)
            return
        for attempt in self._attempts.values():
            if (attempt.job.arena, attempt.job.id) == (job.arena, job.id) and not attempt.is_over:
                attempt.delivery = delivery  # it is delivered again while it is played here
                return
        number, seed = self._draw()
        drawn = DrawnAttempt(id=number, seed=seed, job=job, worker=self.name)
        attempt = self._attempts[number] = WorkerAttempt(drawn, delivery)
        self._tasks.start(self._run(attempt))

    async def _run(self, attempt: WorkerAttempt) -> None:
        """See an attempt through, from its announcement until its result is taken."""
        claim = self._tasks.start(_claim(attempt))
        try:
            if not await self._is_granted(attempt):
                return
            played = await self._play(attempt)
            self._played += 1
            attempt.result = encode(attempt.result_of(played))
            self._changed.set()
            await self._requests.hand_in(attempt, attempt.result)
            await attempt.delivery.ack()
        finally:
            claim.cancel()
            if attempt.watching is not None:
                attempt.watching.cancel()
            self._attempts.pop(attempt.id, None)
            self._changed.set()

    async def _is_granted(self, attempt: WorkerAttempt) -> bool:
        """Announce an attempt; if it may not begin, its job is given back or acknowledged."""
        reply = await self._requests.announce(attempt)
        match reply:
            case Granted(forgiven=forgiven):
                attempt.drawn = msgspec.structs.replace(attempt.drawn, forgiven=forgiven)
                return True
            case Denied(is_final=True):
                await attempt.delivery.ack()
            case _:
                await attempt.delivery.give_back(_GIVE_BACK_S)
        return False

    # --- playing ---

    async def _play(self, attempt: WorkerAttempt) -> PlayedAttempt:
        if attempt.void:
            return void_attempt(attempt.drawn, attempt.void)
        attempt.work = self._loop.create_task(self._prepare_and_play(attempt))
        try:
            played = await attempt.work
            self._rest_s = _REST_S
            return played
        except BuildFailed as error:  # which says more of the program than of this machine
            self._note(str(error))
            return void_attempt(attempt.drawn, str(error))
        except asyncio.CancelledError:
            if not attempt.void or attempt.id not in self._attempts:
                raise
            return void_attempt(attempt.drawn, attempt.void)
        except (ArenaError, BusDown) as error:
            self._note(str(error))
            self._rest()
            return void_attempt(attempt.drawn, str(error))
        except Exception as error:
            log.exception("attempt %s cannot be played", attempt.id)
            self._note(f"{type(error).__name__}: {error}")
            self._rest()
            return void_attempt(attempt.drawn, FAULT)

    def _rest(self) -> None:
        """Take no jobs for a while, as this one could not be played."""
        now = self._loop.time()
        if now >= self._rests_until:  # else others had begun as well
            self._rests_until = now + self._rest_s
            self._rest_s = min(2 * self._rest_s, _LONGEST_REST_S)

    async def _prepare_and_play(self, attempt: WorkerAttempt) -> PlayedAttempt:
        programs = await self._programs_of(attempt)
        progressed = partial(self._progressed, attempt)
        return await self._player.play(attempt.drawn, programs, progressed)

    def _progressed(self, attempt: WorkerAttempt, decisions: int) -> None:
        if not attempt.has_begun and attempt.offence is not None:
            self._loop.call_soon(self._player.offend, attempt.id, *attempt.offence)
        attempt.has_begun = True
        attempt.decisions = decisions

    async def _programs_of(self, attempt: WorkerAttempt) -> tuple[Program, ...]:
        job = attempt.job
        programs: dict[SeatProgram, Program] = {}
        for name, wanted in zip(job.players, job.programs, strict=True):
            if wanted not in programs:
                fetch = partial(self._requests.fetch_part, attempt, wanted.key)
                programs[wanted] = await self._programs.program(wanted, job.game, name, fetch)
        return tuple(programs[wanted] for wanted in job.programs)

    # --- what arenas say ---

    def _commanded(self, data: bytes) -> None:
        try:
            command: Command = decode(data, Command)
        except msgspec.DecodeError as error:
            self._note(f"a command cannot be read: {error}")
            return
        match command:
            case Drain(is_draining=is_draining):
                self._tell(
                    "draining: no more jobs are taken" if is_draining else "takes jobs again"
                )
                self.drain(is_draining)
            case Dismissal(why=why):
                self._refused(why)
            case _:
                attempt = self._attempts.get(command.attempt)
                if attempt is not None:
                    self._told(attempt, command)

    def _told(self, attempt: WorkerAttempt, command: Command) -> None:
        match command:
            case Cancel(why=why) if not attempt.is_over:
                attempt.void = attempt.void or why or FAULT
                if attempt.has_begun:
                    self._player.cancel(attempt.id, attempt.void)
                elif attempt.work is not None:
                    attempt.work.cancel()
            case Offend(seat=seat, finding=finding) if not attempt.is_over:
                attempt.offence = seat, finding
                self._player.offend(attempt.id, seat, finding)
            case Taken():
                attempt.is_taken = True
                attempt.news.set()
            case HandInAgain():
                attempt.is_wanted_again = True
                attempt.news.set()
            case WatchAttempt(is_watched=is_watched):
                self._watch(attempt, is_watched)

    def _refused(self, why: str) -> None:
        self._last_error = one_line(why)
        if why not in self._refusals:
            self._refusals.add(why)
            self._tell(f"refused: {self._last_error}")

    # --- what it says ---

    async def _report_always(self) -> None:
        while True:
            with contextlib.suppress(BusDown):
                await self._bus.report(self.name, encode(self.report))
            await asyncio.sleep(_REPORT_S)

    def _watch(self, attempt: WorkerAttempt, is_watched: bool) -> None:
        """Send the frames of an attempt, all of the round again, or none any more."""
        if attempt.watching is not None and is_watched:
            if attempt.frames is not None:
                attempt.frames.again()
        elif attempt.watching is not None:
            attempt.watching.cancel()
            attempt.watching = attempt.frames = None
        elif is_watched and self._frames_of is not None and not attempt.is_over:
            attempt.watching = self._tasks.start(self._send_frames(attempt, self._frames_of))

    async def _send_frames(
        self, attempt: WorkerAttempt, frames_of: Callable[[LiveMatch], FrameSource]
    ) -> None:
        while (table := self._player.live(attempt.id)) is None:
            await asyncio.sleep(_FRAMES_S)
        frames = attempt.frames = frames_of(table)
        while not frames.is_over:
            watched = sum(other.frames is not None for other in self._attempts.values())
            data = frames.due(self._loop.time(), max(1, watched))
            if data is not None:
                with contextlib.suppress(BusDown):
                    await self._bus.frames(attempt.job.arena, self.name, attempt.id, data)
            await asyncio.sleep(_FRAMES_S)
        attempt.frames = None

    def _note(self, error: str) -> None:
        before, self._last_error = self._last_error, one_line(error)
        if self._last_error != before:
            self._tell(self._last_error)

    async def _until_changed(self) -> None:
        self._changed.clear()
        await self._changed.wait()


async def _claim(attempt: WorkerAttempt) -> None:
    """Say that a job is in progress until this is cancelled."""
    while True:
        await asyncio.sleep(attempt.delivery.ack_wait_s / 3)
        await attempt.delivery.in_progress()
