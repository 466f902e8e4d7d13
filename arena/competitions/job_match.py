"""A match that is played as a job, as those see it who have opened it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import UNSET

from arena.competitions.job_runner import JobRunner
from arena.competitions.jobs import MatchJob
from arena.engine.match import MatchResult
from arena.engine.verdict import UNCOUNTED, Finding
from arena.referee.live_match import Forgives, LiveMatch
from arena.referee.seat import MatchSeat
from protocol.messages import Verdict

__all__ = ["JobMatch", "OnMatchOver", "OpenMatch", "is_fault"]


class JobMatch:
    """It watches its job, and has what stages need of a `LiveMatch`.

    `begin` has it played; `on_lost` is called when an attempt is lost and another one is to begin.
    A match `is_direct` if it is no job, as one of its bots has connected by itself. One that
    `was_begun` is played for an earlier arena, as far as is known.

    Attributes:
        id: that of the match, and that of the job until the match has begun.
        is_cancelled: it was made void here, so that it is nobody's fault.
        losses: how many attempts were lost with the machine that played them.
        opened_at: when the match began, on the loop's clock; until then, since when it waits.
    """

    def __init__(
        self,
        job: MatchJob,
        runner: JobRunner,
        forgives: Forgives,
        expected: float,
        clock: Callable[[], float],
        on_over: OnMatchOver,
        on_lost: Callable[[JobMatch], None],
        *,
        is_direct: bool = False,
        was_begun: bool = False,
    ) -> None:
        self.id = job.id
        self.names = job.players
        self.forgives = forgives
        self.opened_at = clock()
        self.decisions = 0
        self.losses = 0
        self.is_cancelled = False
        self.has_begun = was_begun
        self.submissions = job.submissions
        self._job = job
        self._runner = runner
        self._expected = max(1.0, expected)
        self._clock = clock
        self._on_over = on_over
        self._on_lost = on_lost
        self._is_direct = is_direct
        self._is_offended = False  # it ends by that, so it is not to be cancelled
        self._began: dict[str, float] = {}  # each attempt

    @property
    def progress(self) -> float:
        """How far it has come: 1 is the end of a match of usual length."""
        return self.decisions / self._expected

    @property
    def live(self) -> LiveMatch | None:
        """The match itself, while it is played in this process."""
        return self._runner.live(self._job.id)

    @property
    def chairs(self) -> Sequence[MatchSeat]:
        """The seats of the match, while it is played in this process."""
        live = self.live
        return () if live is None else live.chairs

    def begin(self) -> None:
        """Have it played."""
        if self._is_direct:
            self._runner.play(self._job, self)
        else:
            self._runner.jobs.put(self._job, self)

    def cancel(self, why: str) -> None:
        """Have it end as void."""
        if self._is_direct:
            self._runner.cancel(self._job.id, why)
        elif not self._is_offended:
            self.is_cancelled = True
            self._runner.jobs.cancel(self._job.id, why)

    def close(self, why: str) -> None:
        """Have it end as void now, whatever another machine says of it later."""
        if not self._is_direct:
            self._runner.jobs.cancel(self._job.id, why)
        self.abandon(why)

    def abandon(self, why: str) -> None:
        """Have it end as void, unless it goes on without this arena."""
        if self._is_direct:
            self._runner.cancel(self._job.id, why)
        else:
            self._runner.jobs.abandon(self._job.id, why)

    def offend(self, name: str, finding: Finding) -> bool:
        """Have it end by the offence of a bot; whether another machine plays it and does that."""
        if not (self._is_direct or self._is_offended):
            seat = self.names.index(name)
            self._is_offended = self._runner.jobs.offend(self._job.id, seat, finding)
        return self._is_offended

    def progressed(self, job: str, match: str, decisions: int) -> None:
        if not self.has_begun or self.id != match:
            self.has_begun, self.id = True, match
            self.opened_at = self._began.setdefault(match, self._clock())
        self.decisions = decisions

    def lost(self, job: str, match: str) -> None:
        self.losses += 1
        if self.id in (match, job):
            self.has_begun, self.id, self.decisions = False, job, 0
            self.opened_at = self._clock()
            self._is_offended = False
            self._on_lost(self)

    def done(self, job: str, match: str, result: MatchResult, verdict: Verdict | None) -> None:
        if match:
            self.progressed(job, match, len(result.record.answers))
        else:
            self.has_begun = False
        self._on_over(self, result, verdict)


def is_fault(table: OpenMatch, result: MatchResult) -> bool:
    """Whether a void match was spoilt by the arena or a worker (J5), or by bots that were away."""
    is_cancelled = isinstance(table, JobMatch) and table.is_cancelled
    is_elsewhere = result.record.worker is not UNSET
    is_uncounted = result.termination.text.endswith(UNCOUNTED)
    return is_uncounted or (is_elsewhere and not is_cancelled)


OpenMatch: TypeAlias = LiveMatch | JobMatch
"""A match that a stage has opened."""
OnMatchOver: TypeAlias = Callable[[OpenMatch, MatchResult, Verdict | None], None]
