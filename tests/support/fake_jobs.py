"""Jobs that other machines play: a test says what becomes of each, or has all of them played."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count

import msgspec

from arena.competitions.forfeit import verdict_outside_play
from arena.competitions.jobs import JobWatcher, MatchJob, unplayed
from arena.competitions.local_jobs import LocalJobs
from arena.competitions.remote_match import RemoteMatch
from arena.engine.match import MatchResult, MatchState
from arena.engine.verdict import Finding
from arena.games import GAMES
from arena.referee.live_match import Forgives
from arena.referee.referee import FAULT, MOST_VOIDS
from protocol.messages import Ending, Mechanism, Verdict
from protocol.vocabulary import Range

__all__ = ["WORKER", "FakeJobs"]

WORKER = "w1"
"""The name of the machine that plays them."""
_PLAYS_S = 0.001


class FakeJobs:
    """`Jobs` of which a worker plays those whose bots are `portable` or submitted.

    It does what `BusJobs` does, in the same order, but only when a test says so. What it cannot
    play is played by the arena.

    Attributes:
        at_once: how many the worker takes at once; 0 if it is gone.
        portable: the names of launched bots that it can play.
        put_here: by id, all jobs that it was given, done or not.
        waiting: the ids of those that have not begun.
        matches: by job, the match that is played as it.
        earlier: what it plays for an arena that was stopped.
        cancelled: why each job was cancelled that was begun.
        abandoned: the jobs of which the arena wants to hear later.
        offended: by job, the seat and what it was ended for.
    """

    def __init__(self, at_once: int = 4, portable: Collection[str] = ()) -> None:
        self.at_once = at_once
        self.portable = set(portable)
        self.put_here: dict[str, MatchJob] = {}
        self.waiting: list[str] = []
        self.matches: dict[str, str] = {}
        self.earlier: list[MatchJob] = []
        self.cancelled: dict[str, str] = {}
        self.abandoned: list[str] = []
        self.offended: dict[str, tuple[int, Finding]] = {}
        self.on_verdict: Callable[[Verdict], None] = lambda verdict: None
        self._local = LocalJobs()
        self._watchers: dict[str, JobWatcher] = {}
        self._losses: dict[str, int] = {}
        self._numbers = count(1)
        self._plays_all = False

    # --- what a test has happen ---

    @property
    def open_jobs(self) -> list[MatchJob]:
        """Those that are not done."""
        return [self.put_here[job] for job in self._watchers]

    def plays_all(self) -> None:
        """From now on every job is played to its end, a millisecond after it was put."""
        self._plays_all = True
        for job in tuple(self.waiting):
            asyncio.get_running_loop().call_later(_PLAYS_S, self._play, job)

    def begins(self, job: str) -> str:
        """The worker begins a job; returns the match."""
        if job in self.waiting:
            self.waiting.remove(job)
        match = self.matches[job] = f"{WORKER}-{next(self._numbers)}"
        self.says(job, 1)
        return match

    def says(self, job: str, decisions: int) -> None:
        """It reports how far a match is."""
        self._watchers[job].progressed(job, self.matches[job], decisions)

    def loses(self, job: str) -> None:
        """The worker is gone with the match, which waits again; the third time it is void."""
        watcher = self._watchers[job]
        watcher.lost(job, self.matches.pop(job))
        losses = self._losses[job] = self._losses.get(job, 0) + 1
        if losses == MOST_VOIDS:
            self._done(job, "", unplayed(self.put_here[job], FAULT), None)
        else:
            self.waiting.append(job)

    def ends(self, job: str, offender: int | None = None, kind: Ending = Ending.CRASH) -> None:
        """A match is over: as legal answers make it, or by the offence of a seat."""
        put, match = self.put_here[job], self.matches.pop(job)
        game = GAMES[put.game]
        settings = game.vocabulary.read_settings(put.settings)
        seed = next(self._numbers).to_bytes(32, "big")
        versions = put.versions
        state = MatchState(game, settings, seed=seed, versions=versions)
        verdict = None
        if offender is not None:
            verdict = self._verdict(put, match, offender, kind)
            state.end(kind, offender, verdict.text, events=(verdict.event,))
        while state.pending is not None:
            legal = state.pending.question.choices
            state.answer(legal.min if isinstance(legal, Range) else legal[0])
            state.take_news()
        result = state.result()
        record = msgspec.structs.replace(result.record, worker=WORKER)
        self._done(job, match, msgspec.structs.replace(result, record=record), verdict)

    # --- Jobs ---

    def put(self, job: MatchJob, watcher: JobWatcher) -> None:
        if not self._is_playable(job):
            self._local.put(job, watcher)
            return
        is_new = job.id not in self.put_here
        self.put_here[job.id] = job
        self._watchers[job.id] = watcher
        if is_new and job.id not in self.matches:
            self.waiting.append(job.id)
            if self._plays_all:
                asyncio.get_running_loop().call_later(_PLAYS_S, self._play, job.id)

    async def take(self) -> MatchJob:
        return await self._local.take()

    def forgives(self, job: str) -> Forgives:
        return self._local.forgives(job)

    def progress(self, job: str, match: str, decisions: int) -> None:
        self._local.progress(job, match, decisions)

    def cancel(self, job: str, why: str) -> None:
        if job not in self._watchers:
            self._local.cancel(job, why)
        elif job in self.matches:
            self.cancelled.setdefault(job, why)
        else:
            self._done(job, "", unplayed(self.put_here[job], why), None)

    def void(self, job: str, why: str = "") -> None:
        """The worker hands a match in that is void, as it was cancelled or by a fault of its own."""
        match = self.matches.pop(job)
        result = unplayed(self.put_here[job], why or self.cancelled[job])
        record = msgspec.structs.replace(result.record, worker=WORKER)
        self._done(job, match, msgspec.structs.replace(result, record=record), None)

    def abandon(self, job: str, why: str) -> None:
        if job not in self.matches:
            self.cancel(job, why)
            return
        if job in self.cancelled:
            del self.matches[job]
        else:
            self.abandoned.append(job)
        self._watchers.pop(job).done(job, "", unplayed(self.put_here[job], why), None)

    def offend(self, job: str, seat: int, finding: Finding) -> bool:
        if job not in self.matches:
            return False
        self.offended.setdefault(job, (seat, finding))
        return True

    def is_portable(self, name: str, game: str) -> bool:
        return name in self.portable

    def interrupted(self, competition: str) -> Sequence[MatchJob]:
        return [job for job in self.earlier if job.competition == competition]

    @property
    def remote(self) -> Mapping[str, RemoteMatch]:
        return {}

    def done(self, job: str, match: str, result: MatchResult, verdict: Verdict | None) -> None:
        self._local.done(job, match, result, verdict)

    def on_cancel(self, call: Callable[[str, str], None]) -> None:
        self._local.on_cancel(call)

    # --- within ---

    def _is_playable(self, job: MatchJob) -> bool:
        if job.id in self.matches:
            return True
        return self.at_once > 0 and all(
            number is not None or name in self.portable
            for name, number in zip(job.players, job.submissions, strict=True)
        )

    def _play(self, job: str) -> None:
        if job in self.waiting:
            self.begins(job)
            self.ends(job)

    def _done(self, job: str, match: str, result: MatchResult, verdict: Verdict | None) -> None:
        if job in self.waiting:
            self.waiting.remove(job)
        self._watchers.pop(job).done(job, match, result, verdict)
        if verdict is not None:
            self.on_verdict(verdict)

    def _verdict(self, put: MatchJob, match: str, seat: int, kind: Ending) -> Verdict:
        name, event = put.players[seat], f"{match}.{seat}"
        return verdict_outside_play(
            Finding(kind=kind, text="failed elsewhere", mechanism=Mechanism.EXIT),
            match=match,
            game=put.game,
            bot=name,
            seat=seat,
            limits=put.limits,
            event=event,
            forgiven=self._watchers[put.id].forgives(name, kind, event),
        )
