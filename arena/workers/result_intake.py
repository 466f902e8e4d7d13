"""What workers hand in: checked, counted once per pairing, and acknowledged when it is written.

A result counts if its attempt was announced and is neither void nor cancelled, no other result of
its pairing counts, and the check finds nothing. One whose pairing waits for its competition to go
on comes again later; one that can never count is forgotten. A worker keeps its result until it
hears `Taken`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import msgspec

from arena.storage.attempts import AttemptState
from arena.workers.attempt_tracker import KnownAttempt
from arena.workers.bus import BusDown, ResultDelivery
from arena.workers.messages import AttemptResult, Cancel, HandInAgain, Taken
from arena.workers.result_check import CheckedAttempt, ExpectedAttempt, ResultChecker
from protocol.errors import ArenaError
from protocol.messages import Ending

if TYPE_CHECKING:
    from arena.workers.bus_jobs import BusJobs
    from arena.workers.put_job import PutJob

__all__ = ["ResultIntake"]

log = logging.getLogger(__name__)

_EARLY_S = 2.0  # between looks whether the competition of a result goes on again
_UNCLAIMED_S = 3600.0  # then its competition does not go on, or its pairing is played no more
_UNANNOUNCED = "it was not announced"


class ResultIntake:
    """The results that are handed in to `BusJobs`."""

    def __init__(self, jobs: BusJobs, checker: ResultChecker) -> None:
        self._jobs = jobs
        self._checker = checker
        self._open_rows: dict[str, tuple[float, frozenset[str]]] = {}  # by competition, and when

    async def handed_in(self, delivery: ResultDelivery) -> None:
        """Take a delivery of a result; nothing is raised."""
        try:
            await self._take(delivery)
        except BusDown:
            pass  # it is delivered again
        except Exception:
            log.exception("a result of %s cannot be taken", delivery.worker)
            await delivery.give_back(_EARLY_S)

    async def meet(self, worker: str, attempt: str) -> None:
        """Find out what an attempt is that a worker lists and nobody here remembers."""
        known = await self._jobs.earlier.find(attempt)
        if known is None or known.worker != worker:
            self._jobs.command(worker, Cancel(attempt, _UNANNOUNCED))

    async def _take(self, delivery: ResultDelivery) -> None:
        attempt = await self._jobs.earlier.find(delivery.attempt)
        if attempt is None or attempt.worker != delivery.worker or not attempt.is_granted:
            self._accuse(delivery.worker, delivery.attempt, _UNANNOUNCED)
            await delivery.ack()
            self._jobs.command(delivery.worker, Taken(delivery.attempt))
            return
        attempt.heard_at = self._jobs.clock()
        if attempt.is_settled or attempt.state is AttemptState.VOID:
            await self._settle(attempt, delivery)
        elif attempt.is_checking or attempt.is_acknowledging:
            return  # another delivery of it is under way
        elif attempt.is_counted:
            await self._acknowledge(attempt, delivery)
        elif self._jobs.put_for(attempt) is None:
            await self._unclaimed(attempt, delivery)
        else:
            await self._check(attempt, delivery)

    async def _check(self, attempt: KnownAttempt, delivery: ResultDelivery) -> None:
        expected = ExpectedAttempt(
            job=attempt.sent,
            attempt=attempt.id,
            worker=attempt.worker,
            commitment=attempt.commitment,
        )
        attempt.is_checking = True
        try:
            checked = await self._checker.check(await delivery.read(), expected)
        except BusDown:
            self._jobs.command(attempt.worker, HandInAgain(attempt.id))
            raise
        except ArenaError as error:
            self._jobs.tell_once(str(error))
            await delivery.give_back(_EARLY_S)
            return
        finally:
            attempt.is_checking = False
            # Its worker need not have listed it meanwhile.
            attempt.listed_at = attempt.heard_at = self._jobs.clock()
        put, result = self._jobs.put_for(attempt), checked.result
        if attempt.state is AttemptState.VOID:
            await self._settle(attempt, delivery)
        elif result is None:
            self._accuse(attempt.worker, attempt.id, checked.why)
            self._jobs.failed(attempt, AttemptState.VOID, f"refused: {checked.why}")
            await self._settle(attempt, delivery)
        elif put is None:
            await self._unclaimed(attempt, delivery)
        elif result.record.termination.kind is Ending.VOID:
            self._take_void(put, attempt, checked, result)
            await self._acknowledge(attempt, delivery)
        elif attempt.cancelled:  # it ended before its worker heard of that
            self._note_stderr(attempt, result)
            self._jobs.failed(attempt, AttemptState.VOID, attempt.cancelled)
            await self._acknowledge(attempt, delivery)
        else:
            self._count(put, attempt, checked, result)
            await self._acknowledge(attempt, delivery)

    def _take_void(
        self, put: PutJob, attempt: KnownAttempt, checked: CheckedAttempt, result: AttemptResult
    ) -> None:
        """Nothing came of an attempt, as it was cancelled, or by a fault of its worker."""
        jobs = self._jobs
        why = attempt.cancelled or result.voided_offence or result.record.termination.text
        attempt.state = AttemptState.VOID
        jobs.attempts.ended(attempt.id, AttemptState.VOID, why)
        if not attempt.cancelled:
            players = " and ".join(attempt.job.players)
            jobs.tell(f"{players} at worker {attempt.worker}: {why}")
        self._note_stderr(attempt, result)
        jobs.matches.hide(attempt)
        if put.living is attempt:
            match = attempt.id if result.has_begun else ""
            jobs.finish(put, match, checked.match_result, None)

    def _count(
        self, put: PutJob, attempt: KnownAttempt, checked: CheckedAttempt, result: AttemptResult
    ) -> None:
        jobs = self._jobs
        attempt.is_counted = True
        verdict = result.verdict
        if verdict is not None:
            is_forgiven = put.watcher.forgives(verdict.bot, verdict.kind, verdict.event)
            verdict = msgspec.structs.replace(verdict, forgiven=is_forgiven)
        self._note_stderr(attempt, result)
        jobs.matches.hide(attempt)
        jobs.finish(put, attempt.id, checked.match_result, verdict)
        if verdict is not None:
            jobs.on_verdict(verdict)

    def _note_stderr(self, attempt: KnownAttempt, result: AttemptResult) -> None:
        for number, text in zip(attempt.job.submissions, result.stderr, strict=False):
            if number is not None and text:
                self._jobs.note_stderr(number, attempt.id, text)

    async def _acknowledge(self, attempt: KnownAttempt, delivery: ResultDelivery) -> None:
        """Let a result go that counts, once it is written down."""
        attempt.is_acknowledging = True
        try:
            await self._jobs.attempts.flushed()
        finally:
            attempt.is_acknowledging = False
        await self._settle(attempt, delivery)

    async def _unclaimed(self, attempt: KnownAttempt, delivery: ResultDelivery) -> None:
        """Nobody has put the job of a result, or not yet: its competition may go on later."""
        now = self._jobs.clock()
        if attempt.unclaimed_since is None:
            attempt.unclaimed_since = now
        if not await self._may_count(attempt, now):
            self._jobs.void(attempt, "another result of its pairing counts, or none is wanted")
        elif now - attempt.unclaimed_since > _UNCLAIMED_S:
            self._jobs.void(attempt, "its competition did not go on")
        else:
            await delivery.give_back(_EARLY_S)
            return
        await self._settle(attempt, delivery)

    async def _may_count(self, attempt: KnownAttempt, now: float) -> bool:
        """Whether a result is still wanted; the log is read once per competition and moment."""
        competition = attempt.job.competition
        if not competition:
            return False
        read_at, open_rows = self._open_rows.get(competition, (-_EARLY_S, frozenset()))
        if now - read_at >= _EARLY_S:
            rows = await asyncio.to_thread(self._jobs.attempts.open_of, competition)
            open_rows = frozenset(row.id for row in rows)
            self._open_rows[competition] = now, open_rows
        return attempt.id in open_rows

    async def _settle(self, attempt: KnownAttempt, delivery: ResultDelivery) -> None:
        """Have the worker forget an attempt, and the bus its result."""
        attempt.is_settled = True
        await delivery.ack()
        self._jobs.command(attempt.worker, Taken(attempt.id))

    def _accuse(self, worker: str, attempt: str, why: str) -> None:
        log.warning("the result of attempt %s from worker %s is refused: %s", attempt, worker, why)
        self._jobs.tell_once(f"a result of worker {worker} is refused: {why}")
