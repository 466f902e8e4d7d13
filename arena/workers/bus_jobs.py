"""Jobs that other machines play, over the bus; what no worker can play is played by the arena.

A job waits in `Dispatch` until a class of workers has room, is put on the queue of that class, and
is played once a worker has announced an attempt at it and got `Granted` (`AttemptGrants`). What
comes of it arrives as a result (`ResultIntake`), or nothing does, and the attempt is lost (J5).

The bus may lose anything at any time, and workers too. So all that a message brings about is the
same if it comes twice, and what matters is repeated until it has happened: jobs are put again every
`_REPEAT_S`, commands with every report that shows that they are still needed. What must outlive
this process is in the log of attempts.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from arena.competitions.jobs import JobWatcher, MatchJob, unplayed
from arena.competitions.local_jobs import LocalJobs
from arena.competitions.remote_match import RemoteMatch
from arena.engine.match import MatchResult
from arena.engine.verdict import Finding
from arena.referee.live_match import Forgives
from arena.referee.referee import FAULT, MOST_VOIDS
from arena.server.background import BackgroundTasks
from arena.storage.attempts import AttemptState
from arena.workers.attempt_grants import AttemptGrants
from arena.workers.attempt_log import AttemptLog
from arena.workers.attempt_tracker import AttemptTracker, KnownAttempt, PairingKey, pairing_of
from arena.workers.bus import Bus, BusDown
from arena.workers.dispatch import Dispatch, need_of
from arena.workers.earlier_attempts import EarlierAttempts
from arena.workers.job_sender import JobSender
from arena.workers.known_worker import KnownWorker
from arena.workers.messages import Cancel, Command, Offend, RunningAttempt, Taken, encode
from arena.workers.put_job import NoPrograms, PortablePrograms, PutJob, bus_job
from arena.workers.remote_matches import RemoteMatches
from arena.workers.result_check import ResultChecker
from arena.workers.result_intake import ResultIntake
from arena.workers.worker_registry import WorkerRegistry
from protocol.errors import UsageError
from protocol.messages import Ending, Verdict

__all__ = ["BusJobs"]

log = logging.getLogger(__name__)

_TICK_S = 0.5  # as often as workers report
_REPEAT_S = 5.0  # until what the bus may have lost is there again
_STALL_S = 1.0  # a tick so late: this process stood still, and heard nobody
_BUS_DOWN_S = 30.0  # a bus that starts again takes some seconds; then its workers are gone
_PATIENCE_S = 3.0  # workers report twice a second, and one that is started again takes a moment
_CLOSING_S = 2.0  # for what is on its way when the arena stops
_LOOKUPS = 16  # attempts that a worker lists and nobody remembers, at once


class BusJobs:
    """`Jobs` over a bus; for one event loop, in which it is made.

    Attributes:
        programs: where the programs of jobs come from; without it workers play nothing.
        tell: says a line to the instructor.
        on_verdict: is given every verdict of another machine, as a referee's is.
        note_stderr: is given the submission, the match, and what its process wrote.
        is_isolated: bots are isolated here, so they have to be elsewhere.
        machine: the system and architecture of the arena, `linux x86_64`.
        lost: of how many attempts nothing came since the start, refused ones too.
    """

    def __init__(
        self,
        bus: Bus,
        arena: str,
        attempts: AttemptLog,
        checker: ResultChecker,
        *,
        programs: PortablePrograms | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.bus = bus
        self.arena = arena
        self.attempts = attempts
        self.programs: PortablePrograms = programs or NoPrograms()
        self.tell: Callable[[str], None] = log.info
        self.on_verdict: Callable[[Verdict], None] = lambda verdict: None
        self.note_stderr: Callable[[int, str, str], None] = lambda number, match, text: None
        self.is_isolated = False
        self.machine = ""
        self.lost = 0
        self.tracker = AttemptTracker()
        self.wall = wall
        self.clock = asyncio.get_running_loop().time
        self.tasks = BackgroundTasks(_log_failure)
        self._registry = WorkerRegistry(
            self.command, lambda line: self.tell(line), self._look, self.clock()
        )
        self._dispatch = Dispatch()
        self.earlier = EarlierAttempts(arena, attempts, self.tracker, self._dispatch)
        self.matches = RemoteMatches(self.tracker, self.command, self.clock)
        self._local = LocalJobs()
        self._grants = AttemptGrants(self)
        self._intake = ResultIntake(self, checker)
        self._put: dict[str, PutJob] = {}
        self._by_pairing: dict[PairingKey, PutJob] = {}
        self._sender = JobSender(bus, self._dispatch, self._put, self._registry)
        self._told: set[str] = set()
        self._met: set[tuple[str, str]] = set()  # (worker, attempt) that are looked up
        self._sending: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tick_due = self._up_at = self._repeat_due = self.clock()

    async def start(self) -> None:
        """Begin to listen; raises `BusDown`."""
        await self.bus.open_arena(
            self.arena,
            self._reported,
            self._grants.announced,
            self._grants.requested,
            self.matches.framed,
            self._intake.handed_in,
        )
        self._registry.heard_since = self._up_at = self._tick_due = self.clock()
        self._sending = self.tasks.start(self._sender.run())
        self._tick()

    async def close(self, *, forever: bool = False) -> None:
        """Listen no more; attempts go on, unless it is `forever`."""
        if self._timer is not None:
            self._timer.cancel()
        if self._sending is not None:
            self._sending.cancel()
        try:
            async with asyncio.timeout(_CLOSING_S):
                if self.bus.is_up:
                    await self._sender.finish()
                if forever:
                    await self._end_all()
                await self.bus.close_arena(forever=forever)
        except (BusDown, TimeoutError):
            log.info("the bus could not be told that the arena has ended")
        self.tasks.cancel()
        await self.tasks.ended()

    async def _end_all(self) -> None:
        """Have workers forget what nobody takes any more."""
        for attempt in self.tracker.unsettled():
            for command in (Cancel(attempt.id, "the arena has ended"), Taken(attempt.id)):
                await self.bus.command(attempt.worker, encode(command))

    # --- Jobs ---

    def put(self, job: MatchJob, watcher: JobWatcher) -> None:
        put = self._put.get(job.id)
        if put is not None:
            put.watcher = watcher
            return
        put = self._put[job.id] = self._by_pairing[pairing_of(job)] = PutJob(job, watcher)
        self.tasks.start(self._place(put))

    async def take(self) -> MatchJob:
        return await self._local.take()

    def forgives(self, job: str) -> Forgives:
        return self._local.forgives(job)

    def progress(self, job: str, match: str, decisions: int) -> None:
        self._local.progress(job, match, decisions)

    def cancel(self, job: str, why: str) -> None:
        put = self._put.get(job)
        if put is None:
            return
        attempt = put.living
        if put.is_here:
            self._local.cancel(job, why)
        elif attempt is not None and attempt.is_granted:
            if not attempt.cancelled:
                attempt.cancelled = why
                self.attempts.ended(attempt.id, AttemptState.VOID, why)  # for the next arena
            self.command(attempt.worker, Cancel(attempt.id, attempt.cancelled))
        else:
            if attempt is not None:  # it is being written down, and is then denied
                attempt.cancelled, attempt.state = why, AttemptState.VOID
            for earlier in self.tracker.of_pairing(put.job):  # `_place` has not found it yet
                if earlier.job.id == job and earlier.is_running:
                    self.void(earlier, why)
            self.finish(put, "", unplayed(put.job, why), None)

    def abandon(self, job: str, why: str) -> None:
        put = self._put.get(job)
        if put is not None and put.living is not None and put.living.is_granted:
            attempt = put.living
            self._forget(put)
            if attempt.cancelled:
                self.void(attempt, attempt.cancelled)
            put.watcher.done(job, "", unplayed(put.job, why), None)
        else:
            self.cancel(job, why)

    def offend(self, job: str, seat: int, finding: Finding) -> bool:
        put = self._put.get(job)
        attempt = None if put is None else put.living
        if attempt is None or not attempt.is_granted:
            return False
        attempt.offence = attempt.offence or Offend(attempt.id, seat, finding)
        self.command(attempt.worker, attempt.offence)
        return True

    @property
    def at_once(self) -> int:
        """With those that wait at the workers, so that none is idle while a result is checked."""
        return self._dispatch.at_once

    def is_portable(self, name: str, game: str) -> bool:
        return self.programs.is_portable(name, game)

    def interrupted(self, competition: str) -> Sequence[MatchJob]:
        self.earlier.load_now(competition)
        jobs = {
            attempt.job.pairing: attempt.job
            for attempt in self.tracker.running()
            if attempt.job.competition == competition
            and pairing_of(attempt.job) not in self._by_pairing
        }
        return tuple(jobs.values())

    @property
    def remote(self) -> Mapping[str, RemoteMatch]:
        return self.matches.by_id

    def done(self, job: str, match: str, result: MatchResult, verdict: Verdict | None) -> None:
        self._local.done(job, match, result, verdict)

    def on_cancel(self, call: Callable[[str, str], None]) -> None:
        self._local.on_cancel(call)

    # --- workers ---

    @property
    def workers(self) -> Mapping[str, KnownWorker]:
        """All workers that have reported, by name."""
        return self._registry.workers

    async def drain(self, worker: str, is_draining: bool) -> None:
        """Have a worker take no jobs any more, or again."""
        self._registry.drain(worker, is_draining)

    def command(self, worker: str, command: Command) -> None:
        """Send a command, which may be lost."""
        self.tasks.start(self._command(worker, command))

    async def _command(self, worker: str, command: Command) -> None:
        try:
            await self.bus.command(worker, encode(command))
        except BusDown:
            log.debug("%s for %s is not sent: the bus is down", command, worker)

    def class_of(self, worker: str) -> str | None:
        """The class of a worker, if it is known and of use."""
        return self._registry.class_of(worker)

    def sent_to(self, job: str) -> str | None:
        """The class that a job was sent to."""
        return self._dispatch.class_of(job)

    def _reported(self, worker: str, data: bytes) -> None:
        now = self.clock()
        report = self._registry.reported(worker, data, now)
        for running in () if report is None else report.attempts:
            if running.arena == self.arena:
                self._listed(worker, running, now)

    def _listed(self, worker: str, running: RunningAttempt, now: float) -> None:
        """A worker says that it has an attempt."""
        attempt = self.tracker.get(running.attempt)
        if attempt is None:
            if running.has_begun or running.is_over:  # else it may be about to ask
                self._meet(worker, running.attempt)
            return
        if attempt.worker != worker:
            return
        for command in attempt.listed(running, now):
            self.command(worker, command)
        put = self.put_for(attempt)
        if put is None or attempt.is_settled or attempt.state is AttemptState.VOID:
            return
        if attempt.state is AttemptState.LOST and put.living is None and not put.is_here:
            self._revive(put, attempt)
        if attempt.remote is not None:
            attempt.remote.reported(running.decisions, running.scores)
        if put.living is attempt and running.has_begun:
            put.watcher.progressed(put.job.id, attempt.id, running.decisions)

    def _meet(self, worker: str, attempt: str) -> None:
        """Look an attempt up, or when it is listed again if there are too many."""
        key = worker, attempt
        if key not in self._met and len(self._met) < _LOOKUPS:
            self._met.add(key)
            task = self.tasks.start(self._intake.meet(worker, attempt))
            task.add_done_callback(lambda _: self._met.discard(key))

    # --- what becomes of a job ---

    async def _place(self, put: PutJob) -> None:
        """Find out who plays a job that was put."""
        try:
            await self.earlier.load(put.job)
        except Exception:  # an attempt that goes on all the same may still be the first
            log.exception("the earlier attempts at %s cannot be read", put.job.id)
        if not self.is_put(put):
            return
        for attempt in self.tracker.of_pairing(put.job):
            is_same = attempt.job.players == put.job.players
            if is_same and attempt.is_running and self.put_for(attempt) is put:
                put.living = attempt  # of an earlier arena, or of this one before it was abandoned
                self.matches.show(attempt)
                return
        await self._have_played(put)

    async def _have_played(self, put: PutJob) -> None:
        """Have a job wait for a worker, or be played here if workers cannot."""
        why = "a fault of the arena"
        if put.sent is None:
            try:
                put.programs = tuple(await self.programs.of(put.job))
                put.sent = bus_job(self.arena, put.job, put.programs)
            except UsageError as error:
                why = str(error)
            except Exception:
                log.exception("the programs of %s cannot be sent", put.job.id)
        if put.living is not None or not self.is_put(put):
            return
        if put.sent is None:
            self._play_here(put, why)
            return
        need = need_of(put.job, put.programs, self.machine, self.is_isolated)
        if self._dispatch.add(put.job.id, need, put.group):
            self._sender.look()
        else:
            self._play_here(put, "the others between these bots were played here")

    def _play_here(self, put: PutJob, why: str) -> None:
        if put.group is not None:
            self._dispatch.plays_here(put.group)
        self.tell_once(f"matches are played by the arena itself: {why}")
        put.is_here = True
        self._local.put(put.job, _LocalWatcher(self, put))

    def is_put(self, put: PutJob) -> bool:
        """Whether a job is not done yet."""
        return self._put.get(put.job.id) is put

    def put_called(self, job: str) -> PutJob | None:
        return self._put.get(job)

    def put_for(self, attempt: KnownAttempt) -> PutJob | None:
        """The job that an attempt would bring the result of: that of its pairing."""
        put = self._put.get(attempt.job.id) or self._by_pairing.get(pairing_of(attempt.job))
        return put if put is not None and put.job.players == attempt.job.players else None

    def finish(self, put: PutJob, match: str, result: MatchResult, verdict: Verdict | None) -> None:
        """End a job; once more does nothing."""
        if not self.is_put(put):
            return
        self._forget(put)
        if put.is_here:  # another machine was first, or it ended here, and this does nothing
            self._local.cancel(put.job.id, "another result of it counts")
        if result.termination.kind is not Ending.VOID:
            for other in self.tracker.of_pairing(put.job):
                if other.id != match:
                    self.void(other, "another result of its pairing counts")
        put.watcher.done(put.job.id, match, result, verdict)

    def _forget(self, put: PutJob) -> None:
        del self._put[put.job.id]
        key = pairing_of(put.job)
        if self._by_pairing.get(key) is put:
            del self._by_pairing[key]
        self._take_back(put.job.id)
        if put.living is not None:
            self.matches.hide(put.living)
            put.living = None

    def _take_back(self, job: str) -> None:
        """Have no worker begin a job."""
        worker_class = self._dispatch.class_of(job)
        self._dispatch.remove(job)
        if worker_class is not None:
            self._sender.take_back(worker_class, job)
        self._sender.look()  # there may be room for another one

    # --- what becomes of an attempt ---

    def begin(self, put: PutJob, attempt: KnownAttempt) -> None:
        """An attempt is to be written down; until it is lost, no other is granted."""
        put.living = attempt
        self.tracker.add(attempt)

    def never_begun(self, put: PutJob, attempt: KnownAttempt) -> None:
        """An attempt could not be written down: its job goes on as before."""
        self.tracker.remove(attempt)
        if put.living is attempt:
            put.living = None

    def void(self, attempt: KnownAttempt, why: str) -> None:
        """No result of an attempt counts any more, and it should end."""
        if attempt.is_counted or attempt.state is AttemptState.VOID:
            return
        attempt.state = AttemptState.VOID
        attempt.cancelled = attempt.cancelled or why
        self.attempts.ended(attempt.id, AttemptState.VOID, why)
        self.matches.hide(attempt)
        self.command(attempt.worker, Cancel(attempt.id, attempt.cancelled))

    def failed(self, attempt: KnownAttempt, state: AttemptState, why: str) -> None:
        """Nothing has come of an attempt: it is lost, or its result was refused (J5)."""
        put = self.put_for(attempt)
        self.lost += not attempt.cancelled
        if attempt.cancelled:
            state, why = AttemptState.VOID, attempt.cancelled
        attempt.state = state
        self.attempts.ended(attempt.id, state, why)
        self.matches.hide(attempt)
        if put is None or put.living is not attempt:
            return
        put.living = None
        if attempt.cancelled or attempt.offence is not None:
            told = attempt.cancelled or (attempt.offence.finding.text if attempt.offence else "")
            self.finish(put, "", unplayed(put.job, told), None)
            return
        put.losses += 1
        put.watcher.lost(put.job.id, attempt.id)
        if put.losses >= MOST_VOIDS:
            self.finish(put, "", unplayed(put.job, FAULT), None)
        elif self.is_put(put):
            self._again(put)

    def _again(self, put: PutJob) -> None:
        """Have a job played that has no attempt any more."""
        worker_class = self._dispatch.class_of(put.job.id)
        if worker_class is not None:  # who had it may not say for a while that it is gone
            self._sender.take_back(worker_class, put.job.id)
            self._dispatch.again(put.job.id)
            self._sender.look()
        elif put.job.id not in self._dispatch:
            self.tasks.start(self._have_played(put))

    def _revive(self, put: PutJob, attempt: KnownAttempt) -> None:
        """A lost attempt goes on, and nobody else plays its job."""
        attempt.state = AttemptState.OPEN
        put.living = attempt
        self._take_back(put.job.id)
        self.matches.show(attempt)

    # --- time ---

    def _tick(self) -> None:
        """Look who is silent, and repeat what may be lost."""
        now = self.clock()
        if self.bus.is_up:
            self._up_at = now
        is_unheard = not self.bus.is_up and now - self._up_at <= _BUS_DOWN_S
        if is_unheard or now - self._tick_due > _STALL_S:
            self._registry.heard_since = now
        self._tick_due = now + _TICK_S
        self._timer = asyncio.get_running_loop().call_at(self._tick_due, self._tick)
        try:
            self._end_silent(now)
            self._look()
            self.tracker.forget_settled(now)
            if now >= self._repeat_due:
                self._repeat_due = now + _REPEAT_S
                self._sender.repeat()
        except Exception:
            log.exception("a look at the workers has failed")
        self._sender.look()

    def _end_silent(self, now: float) -> None:
        lost = self.tracker.silent(now, self._registry.heard_since)
        for worker, number in Counter(attempt.worker for attempt in lost).items():
            matches = "a match" if number == 1 else f"{number:,} matches"
            self.tell(f"{matches} of worker {worker} may be lost: nothing is heard of them")
        for attempt in lost:
            self.failed(
                attempt, AttemptState.LOST, f"nothing was heard of it from {attempt.worker}"
            )
        for attempt in self.tracker.disobeyed(now):
            self.tell_once(f"worker {attempt.worker} does not end {attempt.id}, which is given up")
            self.failed(attempt, AttemptState.VOID, f"{attempt.worker} has not ended it")

    def _look(self) -> None:
        """See who takes jobs now, and what becomes of jobs that nobody takes."""
        now = self.clock()
        self._dispatch.workers_are(self._registry.powers(now))
        for job, worker_class, is_taken in tuple(self._dispatch.on_bus()):
            if not is_taken and self._put[job].living is None:
                self._sender.take_back(worker_class, job)
                self._dispatch.again(job)
        for job, need in self._dispatch.homeless(now, _PATIENCE_S):
            self._play_here(self._put[job], self._dispatch.why_not(need))
        for job, wanted in self._dispatch.waiting_alike(now, _PATIENCE_S):
            players = " and ".join(self._put[job].job.players)
            self.tell(f"matches that are to be alike wait, such as of {players}, for {wanted}")
        self._sender.look()

    # --- words ---

    def tell_once(self, line: str) -> None:
        """Say a line to the instructor that was not said before."""
        if line not in self._told:
            self._told.add(line)
            self.tell(line)


class _LocalWatcher:
    """Watches a job that the arena plays itself."""

    def __init__(self, jobs: BusJobs, put: PutJob) -> None:
        self._jobs = jobs
        self._put = put

    @property
    def forgives(self) -> Forgives:
        return self._put.watcher.forgives

    def progressed(self, job: str, match: str, decisions: int) -> None:
        if self._jobs.is_put(self._put):
            self._put.watcher.progressed(job, match, decisions)

    def lost(self, job: str, match: str) -> None:
        """What is played here is not lost without this process."""

    def done(self, job: str, match: str, result: MatchResult, verdict: Verdict | None) -> None:
        self._jobs.finish(self._put, match, result, verdict)


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a task of the bus has failed", exc_info=error)
