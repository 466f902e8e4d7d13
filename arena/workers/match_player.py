"""Plays attempts with processes of this machine, as an arena plays the matches of submissions.

It is an arena without a database, competitions and a page: a gateway on loopback that lets nobody
in but what it has launched, the referee, the supervisor of bots, the pool of processes that stay
warm between attempts, and the runner that seats them. All of it belongs to one set of limits for
launched bots. A job with others waits until what is played has ended, and gets its own.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import msgspec

from arena.competitions.bot_supervisor import BotSupervisor
from arena.competitions.job_runner import JobRunner
from arena.competitions.jobs import MatchJob
from arena.competitions.local_jobs import LocalJobs
from arena.competitions.process_pool import ProcessPool, launches_here
from arena.engine.match import MatchResult, Record
from arena.engine.verdict import Finding
from arena.games.replay import replay
from arena.referee.compute_gate import ComputeGate
from arena.referee.live_match import Forgives, LiveMatch
from arena.referee.referee import Referee
from arena.sandbox.command import Program, find_program
from arena.sandbox.safety import fitting_bots
from arena.server.address import ArenaAddress
from arena.server.gateway import Gateway
from arena.workers.attempt import DrawnAttempt, PlayedAttempt, void_attempt
from arena.workers.worker_health import WorkerHealth
from protocol.errors import ArenaError
from protocol.messages import Ending, Limits, Termination, Verdict

__all__ = ["ProcessPlayer", "launch_limits"]

_STOPPED = "the worker was stopped"
_BUILD_MIB = 1024  # a program may be built meanwhile
_IDLE_S = 300.0  # between two matches of a competition
_LOOK_S = 1.0


def launch_limits(limits: Limits) -> Limits:
    """The limits without what only a match is held to, and any match can have its own of."""
    default = Limits()
    return msgspec.structs.replace(
        limits,
        decision_ms=default.decision_ms,
        bank_ms=default.bank_ms,
        hard_ms=default.hard_ms,
        wall_bank_ms=default.wall_bank_ms,
        grace_ms=default.grace_ms,  # a ladder's is shorter than that of all other runs
        silence_ms=default.silence_ms,
    )


class ProcessPlayer:
    """A `MatchPlayer`; use it as an asynchronous context.

    Args:
        cores: how many bots compute at once.
        hidden: files that no bot sees.
        idle_s: for how long a process that has nothing to play stays warm.
        most: how many processes there are at once; by default as many as fit into memory.
    """

    def __init__(
        self,
        worker: str,
        cores: int,
        health: WorkerHealth,
        hidden: Sequence[Path] = (),
        *,
        idle_s: float = _IDLE_S,
        most: int | None = None,
    ) -> None:
        self._worker = worker
        self._cores = cores
        self._health = health
        self._hidden = hidden
        self._idle_s = idle_s
        self._most = most
        self._loop = asyncio.get_running_loop()
        self._playing: dict[str, _LaunchedMatches] = {}
        self._matches: _LaunchedMatches | None = None
        self._turn = asyncio.Lock()
        self._ended = asyncio.Event()
        self._looks: asyncio.Task[None] | None = None

    async def __aenter__(self) -> ProcessPlayer:
        self._looks = self._loop.create_task(self._look())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._looks is not None:
            self._looks.cancel()
        if self._matches is not None:
            await self._matches.close()

    @property
    def processes(self) -> int:
        """How many there are, with those that start or end."""
        return 0 if self._matches is None else len(self._matches.pool)

    @property
    def programs_in_use(self) -> Collection[str]:
        """The keys of the programs whose processes are here; may be called in a thread."""
        return () if (matches := self._matches) is None else matches.programs_in_use

    async def play(
        self, attempt: DrawnAttempt, programs: Sequence[Program], on_progress: Callable[[int], None]
    ) -> PlayedAttempt:
        for program in programs:
            if (why := _missing(program)) is not None:  # it would be charged with a crash
                raise ArenaError(why)
        since = self._loop.time()
        watcher = _AttemptWatcher(attempt, on_progress)
        async with self._turn:
            matches = await self._matches_with(launch_limits(attempt.job.limits))
            self._playing[attempt.id] = matches
        try:
            over = await matches.play(attempt, programs, watcher)
        finally:
            del self._playing[attempt.id]
            self._ended.set()
        return await self._judged(attempt, over, since)

    def cancel(self, attempt: str, why: str) -> None:
        if (matches := self._playing.get(attempt)) is not None:
            matches.runner.cancel(attempt, why)

    def offend(self, attempt: str, seat: int, finding: Finding) -> None:
        if (matches := self._playing.get(attempt)) is not None:
            matches.runner.offend(attempt, seat, finding)

    def live(self, attempt: str) -> LiveMatch | None:
        matches = self._playing.get(attempt)
        return None if matches is None else matches.runner.live(attempt)

    # --- within ---

    async def _matches_with(self, limits: Limits) -> _LaunchedMatches:
        """What plays with these limits; waits until what is played with others has ended."""
        if self._matches is not None and self._matches.limits != limits:
            while self._playing:
                self._ended.clear()
                await self._ended.wait()
            former, self._matches = self._matches, None
            await former.close()
        if self._matches is None:
            most = self._most or max(2, fitting_bots(limits, _BUILD_MIB))
            matches = _LaunchedMatches(limits, self._cores, most, self._hidden, self._worker)
            matches.pool.idle_s = self._idle_s
            matches.supervisor.on_started = self._health.started
            await matches.open()
            self._matches = matches
        return self._matches

    async def _judged(self, attempt: DrawnAttempt, over: _MatchEnd, since: float) -> PlayedAttempt:
        """The result of an attempt, void if this machine may be why a bot has offended (J5)."""
        if not over.match:
            return void_attempt(attempt, over.result.termination.text)
        played = PlayedAttempt(record=over.result.record, verdict=over.verdict, stderr=over.stderr)
        if over.verdict is None:
            return played
        why = self._health.excuse(over.verdict, since)
        if not why:
            return played
        text = f"{over.verdict.kind.value} of {over.verdict.bot} is not charged, as {why}"
        record = await asyncio.to_thread(_voided, played.record, text)
        return msgspec.structs.replace(played, record=record, verdict=None, voided_offence=text)

    async def _look(self) -> None:
        """End processes that are idle when memory is short."""
        while True:
            await asyncio.sleep(_LOOK_S)
            if self._health.is_short_of_memory and self._matches is not None:
                self._matches.pool.end_idle()


class _MatchEnd(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an attempt here; `match` is empty if none was opened."""

    match: str
    result: MatchResult
    verdict: Verdict | None
    stderr: tuple[str, ...]


class _AttemptWatcher:
    """Waits for the end of an attempt that the runner plays, as a `JobWatcher`."""

    def __init__(self, attempt: DrawnAttempt, on_progress: Callable[[int], None]) -> None:
        self.over: asyncio.Future[_MatchEnd] = asyncio.get_running_loop().create_future()
        self._attempt = attempt
        self._on_progress = on_progress
        self.stderr = [""] * len(attempt.job.players)

    @property
    def forgives(self) -> Forgives:
        by_bot = dict(zip(self._attempt.job.players, self._attempt.forgiven, strict=False))
        return lambda bot, kind, event: kind in by_bot.get(bot, ())

    def progressed(self, job: str, match: str, decisions: int) -> None:
        self._on_progress(decisions)

    def lost(self, job: str, match: str) -> None:
        """What is played here is not lost without this process."""

    def done(self, job: str, match: str, result: MatchResult, verdict: Verdict | None) -> None:
        if self.over.done():  # the caller was cancelled
            return
        self.over.set_result(
            _MatchEnd(match=match, result=result, verdict=verdict, stderr=tuple(self.stderr))
        )


class _LaunchedMatches:
    """A private arena for bots with the same launch limits."""

    def __init__(
        self, limits: Limits, cores: int, most: int, hidden: Sequence[Path], worker: str
    ) -> None:
        self.limits = limits
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self.referee = Referee(self._loop.time)
        self._gateway = Gateway(
            self.referee, limits, self._on_change, self._on_offence, requires_token=True
        )
        self._address = ArenaAddress("127.0.0.1", 0, None)
        self.supervisor = BotSupervisor(
            self._gateway,
            limits,
            hidden,
            url=lambda: self._address.near_url,
            wait_for_change=self._until_changed,
            on_offence=self._on_offence,
            on_change=self._on_change,
        )
        self.runner = JobRunner(LocalJobs(), self._gateway.players, self.referee)
        self._programs: dict[int, Program] = {}
        self._numbers: dict[tuple[str, str], int] = {}  # by (name, key of the program)
        self._watchers: dict[str, tuple[_AttemptWatcher, tuple[int, ...]]] = {}
        self.pool = self.runner.pool = ProcessPool(
            self.supervisor,
            self._gateway,
            ComputeGate(cores),
            launches_here(self.supervisor, self._program),
            most,
            self._note_stderr,
        )
        self.pool.on_room = self.runner.look

    async def open(self) -> None:
        await self._address.open(self._gateway)

    async def close(self) -> None:
        """End all matches as void, and all processes."""
        self.supervisor.closes()
        self.runner.close(_STOPPED)
        self.pool.close()
        await self._gateway.close()
        await self.supervisor.close()

    async def play(
        self, attempt: DrawnAttempt, programs: Sequence[Program], watcher: _AttemptWatcher
    ) -> _MatchEnd:
        job = attempt.job
        seats = tuple(
            self._number(name, wanted.key, program)
            for name, wanted, program in zip(job.players, job.programs, programs, strict=True)
        )
        self._watchers[attempt.id] = watcher, seats
        try:
            self.runner.play(_match_job(attempt, seats), watcher, attempt.seed)
            return await watcher.over
        finally:
            self.runner.cancel(attempt.id, _STOPPED)
            del self._watchers[attempt.id]

    @property
    def programs_in_use(self) -> Collection[str]:
        numbers = self.pool.submissions
        return {key for (_, key), number in tuple(self._numbers.items()) if number in numbers}

    def _number(self, name: str, key: str, program: Program) -> int:
        """The number by which the pool knows the program of a bot."""
        number = self._numbers.setdefault((name, key), len(self._numbers) + 1)
        self._programs[number] = program
        return number

    async def _program(self, number: int) -> Program:
        return self._programs[number]

    def _note_stderr(self, number: int, match: str, text: str) -> None:
        watcher, seats = self._watchers[match]
        seat = next(
            seat for seat, other in enumerate(seats) if other == number and not watcher.stderr[seat]
        )
        watcher.stderr[seat] = text

    def _on_change(self) -> None:
        self._changed.set()
        self._gateway.players.take_moved()
        self.runner.look()

    def _on_offence(self, name: str, finding: Finding) -> None:
        self.supervisor.offended(name, finding)
        self._changed.set()

    async def _until_changed(self) -> None:
        self._changed.clear()
        await self._changed.wait()


def _missing(program: Program) -> str | None:
    """What this machine lacks to start a program, in one line."""
    word, folder = program.command[0], program.folder
    if folder is not None and not folder.is_dir():
        return f"the worker has lost the program in {folder}"
    if os.path.dirname(word):
        is_there = os.path.exists(os.path.join(folder or "", word))
    else:
        is_there = find_program(word) is not None
    return None if is_there else f"the worker has no {word}"


def _match_job(attempt: DrawnAttempt, seats: tuple[int, ...]) -> MatchJob:
    job = attempt.job
    return MatchJob(
        id=attempt.id,
        game=job.game,
        settings=job.settings,
        limits=job.limits,
        players=job.players,
        submissions=seats,
        package=job.package,
        versions=job.versions,
    )


def _voided(record: Record, why: str) -> Record:
    """The same match, void after its last answer."""
    void = msgspec.structs.replace(
        record,
        termination=Termination(Ending.VOID, None, why),
        also_out=msgspec.UNSET,
        events=msgspec.UNSET,
    )
    again = replay(void)
    return msgspec.structs.replace(void, scores=again.scores, points=again.points)
