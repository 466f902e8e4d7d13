"""The attempts of this arena that are in memory: which run, which are silent, what is still to say.

An attempt is alive while reports list it: one that none has listed for `SILENT_S` is lost, be it
that its worker is gone or that the worker knows nothing of it. Commands may be lost too, so each
is repeated with every report that lists its attempt. Nothing here does I/O; times are arguments.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from arena.competitions.jobs import MatchJob
from arena.competitions.remote_match import RemoteMatch
from arena.storage.attempts import AttemptRow, AttemptState
from arena.workers.known_worker import SILENT_S
from arena.workers.messages import (
    BusJob,
    Cancel,
    Command,
    Granted,
    HandInAgain,
    Offend,
    Reply,
    RunningAttempt,
    Taken,
    WatchAttempt,
)

__all__ = ["AttemptTracker", "KnownAttempt", "PairingKey", "pairing_of"]

_HAND_IN_S = 3.0  # from the end of a match until its result should be here
_OBEYS_S = 30.0  # from an order to end a match until it is taken for lost
_FRAMES_S = 3.0  # a watched match says something at least so often
_REMEMBERED_S = 60.0  # an attempt that is settled, after a report has listed it

PairingKey: TypeAlias = tuple[str, int] | tuple[str, str]
"""A competition and a pairing of it; for a job of none, empty and the job's id."""


def pairing_of(job: MatchJob) -> PairingKey:
    """Whose result an attempt at a job would be."""
    return (job.competition, job.pairing) if job.competition else ("", job.id)


class KnownAttempt:
    """An attempt that was announced here, or by an earlier process of this arena.

    Attributes:
        job, sent: what is played, as competitions and as workers see it.
        state: lost and open ones may have a result that counts; void ones may not.
        is_granted: it is written down.
        is_counted: its result is that of its pairing.
        is_settled: nothing of it is needed any more: the worker is to forget it.
        is_checking: its result has come, and is being looked at.
        cancelled: why it is to end as void, if it is.
        offence: by what it is to end, if a seat was removed.
        listed_at, heard_at: when a report last listed it, and when its result last came.
    """

    def __init__(
        self, name: str, job: MatchJob, sent: BusJob, worker: str, commitment: str, now: float
    ) -> None:
        self.id = name
        self.job = job
        self.sent = sent
        self.worker = worker
        self.commitment = commitment
        self.state = AttemptState.OPEN
        self.granted = Granted()
        self.granting: asyncio.Task[Reply] | None = None
        self.is_granted = False
        self.is_counted = False
        self.is_settled = False
        self.is_checking = False
        self.is_acknowledging = False
        self.cancelled = ""
        self.offence: Offend | None = None
        self.listed_at = now
        self.heard_at = now
        self.unclaimed_since: float | None = None
        self.remote: RemoteMatch | None = None
        self.is_watched = False
        self.frames_at = now
        self._over_at: float | None = None
        self._ordered_at: float | None = None

    @classmethod
    def of_row(cls, row: AttemptRow, job: MatchJob, sent: BusJob, now: float) -> KnownAttempt:
        """An attempt that is written down, as if it had just been heard of."""
        attempt = cls(row.id, job, sent, row.worker, row.commitment, now)
        attempt.state, attempt.is_granted = row.state, True
        attempt.cancelled = row.why if row.state is AttemptState.VOID else ""
        return attempt

    @property
    def is_running(self) -> bool:
        """Whether it was granted, and a result may come that nobody has waited for in vain."""
        is_over = self.is_counted or self.is_settled or bool(self.cancelled)
        return self.state is AttemptState.OPEN and self.is_granted and not is_over

    def is_disobeyed(self, now: float) -> bool:
        """Whether its worker has not ended it for long, though it is there and was told to."""
        is_late = self._ordered_at is not None and now - self._ordered_at > _OBEYS_S
        return is_late and (bool(self.cancelled) or self._over_at is None)

    def listed(self, running: RunningAttempt, now: float) -> Iterator[Command]:
        """Note that a report lists it; yields what its worker is to be told, again if need be."""
        self.listed_at = now
        if self._ordered_at is None and (self.cancelled or self.offence is not None):
            self._ordered_at = now
        if self.is_settled:
            yield Taken(self.id)
        elif running.is_over:
            self._over_at = now if self._over_at is None else self._over_at
            is_here = self.is_checking or self.is_acknowledging
            if not is_here and now - max(self._over_at, self.heard_at) > _HAND_IN_S:
                self.heard_at = now
                yield HandInAgain(self.id)
        elif self.cancelled:
            yield Cancel(self.id, self.cancelled)
        elif self.offence is not None:
            yield self.offence
        elif self.is_watched and now - self.frames_at > _FRAMES_S:
            self.frames_at = now
            yield WatchAttempt(self.id, True)


class AttemptTracker:
    """All attempts in memory, by id and by pairing."""

    def __init__(self) -> None:
        self._attempts: dict[str, KnownAttempt] = {}
        self._of_pairing: dict[PairingKey, list[KnownAttempt]] = {}

    def add(self, attempt: KnownAttempt) -> None:
        self._attempts[attempt.id] = attempt
        self._of_pairing.setdefault(pairing_of(attempt.job), []).append(attempt)

    def remove(self, attempt: KnownAttempt) -> None:
        del self._attempts[attempt.id]
        key = pairing_of(attempt.job)
        self._of_pairing[key].remove(attempt)
        if not self._of_pairing[key]:
            del self._of_pairing[key]

    def get(self, attempt: str) -> KnownAttempt | None:
        return self._attempts.get(attempt)

    def of_pairing(self, job: MatchJob) -> Sequence[KnownAttempt]:
        return tuple(self._of_pairing.get(pairing_of(job), ()))

    def running(self) -> list[KnownAttempt]:
        return [attempt for attempt in self._attempts.values() if attempt.is_running]

    def unsettled(self) -> list[KnownAttempt]:
        """Those that their workers may still play or hand in."""
        return [attempt for attempt in self._attempts.values() if not attempt.is_settled]

    def silent(self, now: float, since: float) -> list[KnownAttempt]:
        """The attempts that run as far as is known, and that no report has listed for too long.

        Silence counts from `since` at the earliest.
        """
        return [
            attempt for attempt in self._unheard() if now - max(attempt.listed_at, since) > SILENT_S
        ]

    def disobeyed(self, now: float) -> list[KnownAttempt]:
        """Those that their workers were to end, and list still."""
        return [attempt for attempt in self._unheard() if attempt.is_disobeyed(now)]

    def _unheard(self) -> Iterator[KnownAttempt]:
        """Those that run as far as is known, and whose result has not come."""
        for attempt in self._attempts.values():
            is_here = attempt.is_checking or attempt.is_counted or attempt.is_settled
            if attempt.state is AttemptState.OPEN and attempt.is_granted and not is_here:
                yield attempt

    def forget_settled(self, now: float) -> None:
        """Drop those of which nothing is expected; a result that comes still has its row."""
        for attempt in tuple(self._attempts.values()):
            is_expected = attempt.state is AttemptState.OPEN and not attempt.is_settled
            is_here = attempt.is_checking or attempt.is_acknowledging
            if not (is_expected or is_here) and now - attempt.listed_at > _REMEMBERED_S:
                self.remove(attempt)
