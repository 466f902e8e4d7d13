"""The attempts that an earlier process of the arena has granted, read from the log when needed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from arena.competitions.jobs import MatchJob
from arena.storage.attempts import AttemptRow
from arena.workers.attempt_log import AnnouncedJob, AttemptLog
from arena.workers.attempt_tracker import AttemptTracker, KnownAttempt
from arena.workers.dispatch import Dispatch, Group
from arena.workers.messages import decode
from arena.workers.put_job import bus_job

__all__ = ["EarlierAttempts"]


class EarlierAttempts:
    """Fills the tracker of arena `arena`, and says where matches were played that are alike."""

    def __init__(
        self, arena: str, attempts: AttemptLog, tracker: AttemptTracker, dispatch: Dispatch
    ) -> None:
        self._arena = arena
        self._attempts = attempts
        self._tracker = tracker
        self._dispatch = dispatch
        self._loads: dict[str, asyncio.Task[None]] = {}  # by competition

    async def load(self, job: MatchJob) -> None:
        """Have the attempts of a job's competition in memory."""
        if not job.competition:
            return
        if job.competition not in self._loads:
            load = asyncio.ensure_future(self._load(job.competition, job.is_alike))
            self._loads[job.competition] = load
        try:
            await asyncio.shield(self._loads[job.competition])
        except Exception:
            self._loads.pop(job.competition, None)  # the next job has it read again
            raise

    def load_now(self, competition: str) -> None:
        """The same at once; the database is read in the event loop."""
        if competition not in self._loads:
            self._take_over(self._attempts.open_of(competition))

    async def find(self, attempt: str) -> KnownAttempt | None:
        """An attempt from memory or the log; None if there is none."""
        if (known := self._tracker.get(attempt)) is not None:
            return known
        row, is_recorded = await asyncio.to_thread(self._read, attempt)
        if row is not None:
            self._take_over((row,))
        known = self._tracker.get(attempt)
        if known is not None and is_recorded:
            known.is_counted = known.is_settled = True
        return known

    def _read(self, attempt: str) -> tuple[AttemptRow | None, bool]:
        return self._attempts.get(attempt), self._attempts.is_recorded(attempt)

    async def _load(self, competition: str, is_alike: bool) -> None:
        self._take_over(await asyncio.to_thread(self._attempts.open_of, competition))
        if is_alike:
            for group, bucket in (await asyncio.to_thread(self._places, competition)).items():
                self._dispatch.plays_at(group, bucket)

    def _places(self, competition: str) -> dict[Group, int]:
        """At what speed the matches of each group have been played; called in a thread."""
        places: dict[Group, int] = {}
        for row in self._attempts.of(competition):
            announced = _announced(row)
            if announced is not None and announced.bucket is not None:
                group = competition, frozenset(announced.job.players)
                places.setdefault(group, announced.bucket)
        return places

    def _take_over(self, rows: Sequence[AttemptRow]) -> None:
        for row in rows:
            announced = _announced(row)
            if announced is not None and self._tracker.get(row.id) is None:
                sent = bus_job(self._arena, announced.job, announced.programs)
                self._tracker.add(KnownAttempt.of_row(row, announced.job, sent, _now()))


def _announced(row: AttemptRow) -> AnnouncedJob | None:
    """What is written of an attempt; None if another version has written it."""
    try:
        return decode(row.message, AnnouncedJob)
    except msgspec.MsgspecError:
        return None


def _now() -> float:
    return asyncio.get_running_loop().time()
