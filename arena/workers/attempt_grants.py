"""Answers workers: whether an attempt may begin, and the programs of those that were granted.

An attempt is durable in the log before it is granted, so that a restarted arena knows it, and asked
again because the reply was lost, the answer is the same. While one is alive there is no other: who
fetched the job a second time forgets it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from arena.engine.verdict import FORGIVABLE
from arena.records.document import UNREADABLE
from arena.storage.attempts import AttemptRow, AttemptState
from arena.workers.attempt_log import AnnouncedJob
from arena.workers.attempt_tracker import KnownAttempt
from arena.workers.dispatch import speed_bucket
from arena.workers.messages import (
    Announcement,
    Denied,
    Granted,
    HouseBot,
    PartOfProgram,
    ProgramRequest,
    Reply,
    decode,
    encode,
)
from protocol.errors import UsageError
from protocol.vocabulary import shorten

if TYPE_CHECKING:
    from arena.workers.bus_jobs import BusJobs
    from arena.workers.put_job import PutJob

__all__ = ["AttemptGrants"]

log = logging.getLogger(__name__)


class AttemptGrants:
    """The requests of workers to `BusJobs`, each with the worker's name and its message."""

    def __init__(self, jobs: BusJobs) -> None:
        self._jobs = jobs

    async def announced(self, worker: str, data: bytes) -> bytes:
        """Reply to an `Announcement`."""
        try:
            asked: Announcement = decode(data, Announcement)
        except UNREADABLE:
            return encode(Denied("it is no announcement of this version", is_final=False))
        if asked.worker != worker:
            return encode(Denied(f"it is announced for {shorten(asked.worker)}", is_final=True))
        return encode(await self._reply(asked))

    async def requested(self, worker: str, data: bytes) -> bytes:
        """Reply to a `ProgramRequest`: only for an attempt that was granted to that worker."""
        try:
            asked: ProgramRequest = decode(data, ProgramRequest)
        except UNREADABLE:
            return encode(PartOfProgram(why="it is no request of this version"))
        attempt = await self._jobs.earlier.find(asked.attempt)
        if attempt is None or attempt.worker != worker or not attempt.is_granted:
            return encode(PartOfProgram(why="that attempt was not granted to it"))
        programs = [each for each in attempt.sent.programs if not isinstance(each, HouseBot)]
        if asked.key not in {each.key for each in programs}:
            return encode(PartOfProgram(why="no seat of that attempt plays that program"))
        try:
            return encode(PartOfProgram(await self._jobs.programs.part(asked.key, asked.offset)))
        except UsageError as error:
            return encode(PartOfProgram(why=str(error)))

    async def _reply(self, asked: Announcement) -> Reply:
        attempt = self._jobs.tracker.get(asked.attempt)
        put = self._jobs.put_called(asked.job)
        if attempt is None and put is None:
            attempt = await self._jobs.earlier.find(asked.attempt)
            put = self._jobs.put_called(asked.job)
        if attempt is not None:
            return await self._again(attempt, asked)
        if put is None:
            return Denied("it is not to be played any more", is_final=True)
        if (denied := self._why_not(put, asked.worker)) is not None:
            return denied
        return await self._begin(put, asked)

    async def _again(self, attempt: KnownAttempt, asked: Announcement) -> Reply:
        """Reply as before to who asks again."""
        announced = (attempt.job.id, attempt.worker, attempt.commitment)
        if announced != (asked.job, asked.worker, asked.commitment):
            return Denied("that id is one of another attempt", is_final=True)
        if attempt.granting is not None:
            return await asyncio.shield(attempt.granting)
        return _standing(attempt)

    def _why_not(self, put: PutJob, worker: str) -> Denied | None:
        if put.is_here:
            return Denied("the arena plays it itself", is_final=True)
        if put.living is not None:
            return Denied("another attempt at it is under way", is_final=True)
        sent_to = self._jobs.sent_to(put.job.id)
        if sent_to is None:
            return Denied("it was taken back", is_final=True)
        # The class is that of the queue, but for a worker whose speed was measured again.
        if put.job.is_alike and self._jobs.class_of(worker) != sent_to:
            return Denied("it is for workers of another class", is_final=False)
        return None

    async def _begin(self, put: PutJob, asked: Announcement) -> Reply:
        jobs = self._jobs
        assert put.sent is not None, "it was sent"
        attempt = KnownAttempt(
            asked.attempt, put.job, put.sent, asked.worker, asked.commitment, jobs.clock()
        )
        attempt.granted = Granted(
            tuple(
                tuple(
                    kind
                    for kind in sorted(FORGIVABLE)
                    if put.watcher.forgives(name, kind, f"{asked.attempt}.{seat}")
                )
                for seat, name in enumerate(put.job.players)
            )
        )
        jobs.begin(put, attempt)
        attempt.granting = asyncio.ensure_future(self._write(put, attempt))
        return await asyncio.shield(attempt.granting)

    async def _write(self, put: PutJob, attempt: KnownAttempt) -> Reply:
        jobs = self._jobs
        try:
            await jobs.attempts.announce(self._row(put, attempt))
        except UsageError as error:
            jobs.never_begun(put, attempt)
            return Denied(str(error), is_final=False)
        except Exception:
            log.exception("an attempt of %s cannot be written down", attempt.worker)
            jobs.never_begun(put, attempt)
            return Denied("the arena cannot write it down", is_final=False)
        attempt.granting = None
        attempt.is_granted = True
        attempt.listed_at = jobs.clock()
        if attempt.state is AttemptState.VOID:  # it was cancelled meanwhile
            jobs.attempts.ended(attempt.id, AttemptState.VOID, attempt.cancelled)
        else:
            jobs.matches.show(attempt)
        return _standing(attempt)

    def _row(self, put: PutJob, attempt: KnownAttempt) -> AttemptRow:
        known = self._jobs.workers.get(attempt.worker)
        bucket = None if known is None else speed_bucket(known.report.speed)
        return AttemptRow(
            id=attempt.id,
            job=put.job.id,
            competition=put.job.competition,
            pairing=put.job.pairing,
            players=put.job.players,
            worker=attempt.worker,
            commitment=attempt.commitment,
            announced_at=self._jobs.wall(),
            message=encode(AnnouncedJob(put.job, put.programs, bucket)),
        )


def _standing(attempt: KnownAttempt) -> Reply:
    """Whether an attempt that is written down may begin, or go on."""
    if attempt.state is AttemptState.OPEN and not (attempt.cancelled or attempt.is_counted):
        return attempt.granted
    return Denied(attempt.cancelled or "it was given up as lost", is_final=True)
