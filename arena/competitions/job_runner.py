"""Plays jobs with the arena's own referee and the processes that run here.

The seats of a job are reserved first: a process from the pool for a submission, a free table of a
bot that has the name here. A job whose seats are not free waits, and later ones may be played
meanwhile, but not for ever (`_MOST_OVERTAKEN`). A match of a submission with a bot that has
connected by itself is no job; it is given to `play`, and goes the same way from there.

How many matches of submissions are played at once is bounded by the pool's `at_once`: more than
that many cannot compute at the same time, and each holds a process for every seat. A match that has
no room here is played on a host that has room for all its seats, if all of them are submissions.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import UNSET

from arena.competitions.forfeit import verdict_outside_play
from arena.competitions.host_pools import HostPools
from arena.competitions.jobs import Jobs, JobWatcher, MatchJob, unplayed
from arena.competitions.process_pool import ProcessPool, ReservedSeat, StartFailed
from arena.engine.match import MatchResult, MatchState
from arena.engine.rules import Game
from arena.engine.shuffle import commitment
from arena.engine.verdict import UNCOUNTED, Finding
from arena.games import game_named
from arena.hosts.remote_bot import HostLost
from arena.referee.bot_session import BotSession
from arena.referee.live_match import Forgives, LiveMatch
from arena.referee.referee import FAULT, Referee
from arena.server.background import BackgroundTasks
from protocol.messages import Verdict

__all__ = ["JobRunner"]

log = logging.getLogger(__name__)

_PROGRESS_S = 0.5  # between two reports of how far a match is
# Later jobs may start before one that waits for room, but only so many: a match of four seats would
# else never find four processes free among matches of two.
_MOST_OVERTAKEN = 16
# Starting a process takes as long as many a match. So matches whose processes are warm come first,
# or a class larger than the memory would start two for every match; but not for ever.
_MOST_PASSED_OVER = 100


class _NotHere(Exception):
    """A bot that a job names is not here; the text says which."""


class _RunningJob:
    """A job that was taken: it waits for its seats, its processes start, or it is played."""

    def __init__(
        self, job: MatchJob, watcher: JobWatcher, is_direct: bool, seed: bytes | None = None
    ) -> None:
        self.job = job
        self.seed = seed  # if it was drawn before; its match then has the id of the job
        self.watcher = watcher
        self.is_direct = is_direct
        self.is_submitted = any(number is not None for number in job.submissions)
        self.overtaken = 0
        self.passed_over = 0  # by matches whose processes were warm
        self.held: tuple[BotSession, ...] = ()  # each has a table kept free for it
        self.seats: dict[int, ReservedSeat] = {}
        self.pool: ProcessPool | None = None  # that of the seats
        self.task: asyncio.Task[None] | None = None
        self.table: LiveMatch | None = None


class _TakenJobWatcher:
    """Passes on what comes of a job that was taken from `Jobs`."""

    def __init__(self, jobs: Jobs, job: str) -> None:
        self._jobs = jobs
        self._job = job

    @property
    def forgives(self) -> Forgives:
        return self._jobs.forgives(self._job)

    def progressed(self, job: str, match: str, decisions: int) -> None:
        self._jobs.progress(job, match, decisions)

    def lost(self, job: str, match: str) -> None:
        """What is played here is not lost without this process."""

    def done(self, job: str, match: str, result: MatchResult, verdict: Verdict | None) -> None:
        self._jobs.done(job, match, result, verdict)


class JobRunner:
    """Takes jobs and has them played; `game_of` returns the rules of a job.

    Attributes:
        jobs: where it takes them from.
        pool: the processes of submissions here; None where none are taken.
        hosts: those on hosts; None without a bus.
    """

    def __init__(
        self,
        jobs: Jobs,
        players: Mapping[str, BotSession],
        referee: Referee,
        game_of: Callable[[MatchJob], Game] = lambda job: game_named(
            job.game, job.package or UNSET
        ),
    ) -> None:
        self.jobs = jobs
        self.pool: ProcessPool | None = None
        self.hosts: HostPools | None = None
        self._players = players
        self._referee = referee
        self._game_of = game_of
        self._loop = asyncio.get_running_loop()
        self._running: dict[str, _RunningJob] = {}
        self._waiting: dict[str, _RunningJob] = {}  # for seats, in the order in which they came
        self._is_due = False
        self._ticks: asyncio.TimerHandle | None = None
        self._tasks = BackgroundTasks()
        jobs.on_cancel(self.cancel)

    @property
    def at_once(self) -> int:
        """How many jobs with submissions are played at once, here and on hosts."""
        return max(1, sum(pool.at_once for pool in self._pools))

    async def run(self) -> None:
        """Take jobs and have them played, for ever."""
        while True:
            job = await self.jobs.take()
            self._add(_RunningJob(job, _TakenJobWatcher(self.jobs, job.id), is_direct=False))

    def play(self, job: MatchJob, watcher: JobWatcher, seed: bytes | None = None) -> None:
        """Play a match that is no job here, as one of its bots has connected by itself.

        With a `seed`, whose commitment is known elsewhere, it is a job that was taken elsewhere,
        and its match has the id of the job.
        """
        self._add(_RunningJob(job, watcher, is_direct=seed is None, seed=seed))

    def look(self) -> None:
        """Start what can be started, soon: a table or a process may be free, or a bot gone."""
        if self._waiting and not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._start_all)

    def live(self, job: str) -> LiveMatch | None:
        """The match of a job that is being played."""
        running = self._running.get(job)
        return None if running is None else running.table

    def cancel(self, job: str, why: str) -> None:
        """End a job as void; one that is not here means nothing."""
        running = self._running.get(job)
        if running is None:
            return
        if running.table is not None:
            self._referee.void(running.table, why)
        else:
            self._end(running, "", unplayed(running.job, why))

    def offend(self, job: str, seat: int, finding: Finding) -> None:
        """End a job by the offence of a seat, as it was removed; see `cancel`."""
        running = self._running.get(job)
        if running is None:
            return
        if running.table is None:
            self._end_unopened(running, seat, finding)
        else:
            player = running.table.chairs[seat].player
            self._referee.offence(player, finding, {running.table: ()})

    def close(self, why: str) -> None:
        """End all jobs that are here as void."""
        for job in tuple(self._running):
            self.cancel(job, why)
        if self._ticks is not None:
            self._ticks.cancel()

    # --- seats ---

    def _add(self, running: _RunningJob) -> None:
        self._running[running.job.id] = self._waiting[running.job.id] = running
        self.look()

    def _start_all(self) -> None:
        """Start the jobs whose seats are free, the oldest first."""
        self._is_due = False
        for prefers_warm in (True, False):
            self._start_waiting(prefers_warm)

    def _start_waiting(self, prefers_warm: bool) -> None:
        passed: list[_RunningJob] = []  # those that wait for processes
        cold: list[_RunningJob] = []
        for job, running in tuple(self._waiting.items()):
            if job not in self._waiting:
                continue  # it was cancelled meanwhile
            if prefers_warm and self._can_wait(running):
                cold.append(running)
                continue
            is_held = running.is_submitted and any(
                other.overtaken >= _MOST_OVERTAKEN for other in passed
            )
            try:
                if (is_held and self._is_busy) or not self._reserve(running):
                    if running.is_submitted:
                        passed.append(running)
                        self._ask_hosts(running)
                    continue
            except _NotHere as error:
                self._end(running, "", unplayed(running.job, str(error)))
                continue
            except Exception:
                self._failed(running)
                continue
            if running.is_submitted:
                for other in passed:
                    other.overtaken += 1
                for other in cold:
                    other.passed_over += 1
            del self._waiting[job]
            self._start(running)

    def _can_wait(self, running: _RunningJob) -> bool:
        """Whether a process would have to be started for a job, and it has not waited for long."""
        if not running.is_submitted or running.passed_over >= _MOST_PASSED_OVER:
            return False
        seats = running.job.submitted.values()
        return not any(pool.are_warm(seats) for pool in self._pools)

    @property
    def _pools(self) -> tuple[ProcessPool, ...]:
        here = () if self.pool is None else (self.pool,)
        return here if self.hosts is None else (*here, *self.hosts.pools)

    @property
    def _is_busy(self) -> bool:
        return any(pool.playing for pool in self._pools)

    def _ask_hosts(self, running: _RunningJob) -> None:
        """Look for a host with room for a match for which there is none here."""
        submitted = running.job.submitted
        if self.hosts is not None and len(submitted) == len(running.job.players):
            self.hosts.ask(running.job.game, tuple(submitted.values()))

    def _reserve(self, running: _RunningJob) -> bool:
        """Keep all seats of a job free for it, or none of them."""
        job = running.job
        submitted = job.submitted
        named = [
            self._here(running, name)
            for seat, name in enumerate(job.players)
            if seat not in submitted
        ]
        for player in named:
            if len(player.chairs) + player.held + named.count(player) > player.tables:
                return False
        if submitted:
            seats = self._seats(running, tuple(submitted.values()))
            if seats is None:
                return False
            running.seats = dict(zip(submitted, seats, strict=True))
        for player in named:
            player.held += 1
        running.held = tuple(named)
        return True

    def _seats(
        self, running: _RunningJob, wanted: Sequence[tuple[str, int]]
    ) -> Sequence[ReservedSeat] | None:
        """Seats for the submissions of a job, all in one place: where most are warm, then here."""
        is_whole = len(wanted) == len(running.job.players)
        pools = [pool for pool in self._pools if pool is self.pool or is_whole]
        for pool in sorted(pools, key=lambda pool: -pool.warm(wanted)):
            is_limited = not running.is_direct
            if is_limited and pool.playing >= pool.at_once:
                continue
            if (seats := pool.reserve(wanted)) is not None:
                running.pool = pool
                pool.playing += is_limited
                return seats
        return None

    def _here(self, running: _RunningJob, name: str) -> BotSession:
        """The bot of that name; one that went away while processes started is not waited for."""
        player = self._players.get(name)
        if player is None or player.leaving or player.session.finishing:
            raise _NotHere(f"{name} is not here")
        if running.is_submitted and (player.is_away or player.is_unresponsive):
            raise _NotHere(f"{name} is away")
        return player

    def _start(self, running: _RunningJob) -> None:
        if running.seats:
            running.task = self._tasks.start(self._seat(running))
        else:
            self._open(running, {})

    async def _seat(self, running: _RunningJob) -> None:
        """Wait for the processes of a job's submissions, and open its match."""
        seats = running.seats
        began: list[BotSession | BaseException] = []
        for _ in seats:  # the second time they are there, unless one has ended meanwhile
            began = await asyncio.gather(
                *(seat.session() for seat in seats.values()), return_exceptions=True
            )
            if any(isinstance(each, BaseException) for each in began):
                break
        running.task = None
        came = dict(zip(seats, began, strict=True))
        for seat, session in came.items():
            if isinstance(session, StartFailed):
                self._end_unopened(running, seat, session.finding)
                return
        for session in came.values():
            if isinstance(session, HostLost):
                log.warning("a submission cannot be started: %s", session)
                self._end(running, "", unplayed(running.job, f"{session}{UNCOUNTED}"))
                return
            if isinstance(session, BaseException):
                log.error("a submission cannot be started", exc_info=session)
                self._end(running, "", unplayed(running.job, FAULT))
                return
        try:
            for name, number in zip(running.job.players, running.job.submissions, strict=True):
                if number is None:
                    self._here(running, name)
        except _NotHere as error:
            self._end(running, "", unplayed(running.job, str(error)))
            return
        sessions = {seat: each for seat, each in came.items() if isinstance(each, BotSession)}
        self._open(running, sessions)

    # --- matches ---

    def _open(self, running: _RunningJob, sessions: Mapping[int, BotSession]) -> None:
        job = running.job
        players = [
            sessions[seat] if seat in sessions else self._here(running, name)
            for seat, name in enumerate(job.players)
        ]
        self._let_go(running)
        try:
            game = self._game_of(job)
            table = self._referee.open(
                game,
                game.vocabulary.read_settings(job.settings),
                players,
                job.limits,
                partial(self._over, running),
                forgives=running.watcher.forgives,
                versions=job.versions,
                drawn=None if running.seed is None else (job.id, running.seed),
                spares_away=job.spares_away,
                teams=job.teams,
            )
        except Exception:
            self._failed(running)
            return
        running.table = table
        running.watcher.progressed(job.id, table.id, 0)
        if self._ticks is None:
            self._ticks = self._loop.call_later(_PROGRESS_S, self._tick)

    def _tick(self) -> None:
        """Report how far all matches are."""
        self._ticks = None
        playing = [running for running in self._running.values() if running.table is not None]
        for running in playing:
            assert running.table is not None, "they are being played"
            running.watcher.progressed(running.job.id, running.table.id, running.table.decisions)
        if playing:
            self._ticks = self._loop.call_later(_PROGRESS_S, self._tick)

    def _over(
        self, running: _RunningJob, table: LiveMatch, result: MatchResult, verdict: Verdict | None
    ) -> None:
        self._end(running, table.id, result, verdict)

    def _end_unopened(self, running: _RunningJob, seat: int, finding: Finding) -> None:
        """End a match by an offence before it is opened: one could not be started (J2)."""
        job = running.job
        try:
            game = self._game_of(job)
            settings = game.vocabulary.read_settings(job.settings)
            seed = running.seed
            match = MatchState(
                game,
                settings,
                seed=seed or secrets.token_bytes(32),
                start=False,
                nonces=() if seed is None else ("",) * len(job.players),
                commitment=None if seed is None else commitment(seed),
                versions=job.versions,
            )
            event = finding.event or f"{job.id}.{seat}"
            name = job.players[seat]
            verdict = verdict_outside_play(
                finding,
                match=job.id,
                game=job.game,
                bot=name,
                seat=seat,
                limits=job.limits,
                event=event,
                forgiven=running.watcher.forgives(name, finding.kind, event),
            )
            match.end(finding.kind, seat, finding.text, events=(event,))
        except Exception:
            self._failed(running)
            return
        self._end(running, job.id, match.result(), verdict)
        self._referee.on_verdict(verdict)

    def _failed(self, running: _RunningJob) -> None:
        """Void a job by a fault of the arena (J5)."""
        log.exception("the match of %s cannot be opened", " and ".join(running.job.players))
        self._end(running, "", unplayed(running.job, FAULT))

    def _let_go(self, running: _RunningJob) -> None:
        """Keep no tables free for a job any more."""
        held, running.held = running.held, ()
        for player in held:
            player.held -= 1

    def _end(
        self, running: _RunningJob, match: str, result: MatchResult, verdict: Verdict | None = None
    ) -> None:
        """Say what came of a job, and give its seats back."""
        job = running.job.id
        del self._running[job]
        self._waiting.pop(job, None)
        if running.task is not None:
            running.task.cancel()
        self._let_go(running)
        if running.pool is not None:
            running.pool.playing -= not running.is_direct
        for seat in running.seats.values():
            seat.release(match)
        running.watcher.done(job, match, result, verdict)
        self.look()
