"""Jobs within one process: a queue between those who want matches played and those who play them.

They are taken in the order in which they were put. Nothing here outlives the process: what was not
done when an arena stopped is put again by the competitions that go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from arena.competitions.jobs import JobWatcher, MatchJob, unplayed
from arena.competitions.remote_match import RemoteMatch
from arena.engine.match import MatchResult
from arena.engine.verdict import Finding
from arena.referee.live_match import Forgives
from protocol.messages import Ending, Verdict

__all__ = ["LocalJobs"]


class LocalJobs:
    """`Jobs` in process; for one event loop."""

    def __init__(self) -> None:
        self._watchers: dict[str, JobWatcher] = {}  # of all jobs that are not done
        self._waiting: dict[str, MatchJob] = {}  # those that nobody has taken, in order
        self._arrived = asyncio.Event()
        self._on_cancel: list[Callable[[str, str], None]] = []

    def put(self, job: MatchJob, watcher: JobWatcher) -> None:
        if job.id not in self._watchers:
            self._waiting[job.id] = job
            self._arrived.set()
        self._watchers[job.id] = watcher

    async def take(self) -> MatchJob:
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()
        return self._waiting.pop(next(iter(self._waiting)))

    def forgives(self, job: str) -> Forgives:
        watcher = self._watchers.get(job)
        return _never if watcher is None else watcher.forgives

    def progress(self, job: str, match: str, decisions: int) -> None:
        if job in self._watchers and job not in self._waiting:
            self._watchers[job].progressed(job, match, decisions)

    def cancel(self, job: str, why: str) -> None:
        waiting = self._waiting.pop(job, None)
        if waiting is not None:
            self._watchers.pop(job).done(job, "", unplayed(waiting, why), None)
        elif job in self._watchers:
            for call in self._on_cancel:
                call(job, why)

    def abandon(self, job: str, why: str) -> None:
        self.cancel(job, why)

    def offend(self, job: str, seat: int, finding: Finding) -> bool:
        return False

    @property
    def at_once(self) -> int:
        return 0

    def is_portable(self, name: str, game: str) -> bool:
        return False

    def interrupted(self, competition: str) -> Sequence[MatchJob]:
        return ()

    @property
    def remote(self) -> Mapping[str, RemoteMatch]:
        return {}

    def done(self, job: str, match: str, result: MatchResult, verdict: Verdict | None) -> None:
        if job not in self._waiting and (watcher := self._watchers.pop(job, None)) is not None:
            watcher.done(job, match, result, verdict)

    def on_cancel(self, call: Callable[[str, str], None]) -> None:
        self._on_cancel.append(call)


def _never(bot: str, kind: Ending, event: str) -> bool:
    return False
