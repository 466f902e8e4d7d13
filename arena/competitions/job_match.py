"""A match that is played as a job, as those see it who have opened it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from arena.competitions.jobs import MatchJob
from arena.engine.match import MatchResult
from arena.referee.live_match import Forgives, LiveMatch
from arena.referee.seat import MatchSeat
from protocol.messages import Verdict

__all__ = ["JobMatch", "OnMatchOver", "OpenMatch"]


class JobMatch:
    """It watches its job, and has what stages need of a `LiveMatch`.

    Attributes:
        id: that of the match, and that of the job until the match has begun.
        losses: how many attempts were lost with the machine that played them.
        opened_at: when the match began, on the loop's clock; until then, when the job was put.
    """

    def __init__(
        self,
        job: MatchJob,
        on_over: OnMatchOver,
        forgives: Forgives,
        expected: float,
        clock: Callable[[], float],
        cancel: Callable[[str, str], None],
        live: Callable[[str], LiveMatch | None],
    ) -> None:
        self.id = job.id
        self.names = job.players
        self.forgives = forgives
        self.opened_at = clock()
        self.decisions = 0
        self.losses = 0
        self.has_begun = False
        self.submissions = job.submissions
        self._job = job.id
        self._on_over = on_over
        self._expected = max(1.0, expected)
        self._clock = clock
        self._cancel = cancel
        self._live = live

    @property
    def progress(self) -> float:
        """How far it has come: 1 is the end of a match of usual length."""
        return self.decisions / self._expected

    @property
    def live(self) -> LiveMatch | None:
        """The match itself, while it is played in this process."""
        return self._live(self._job)

    @property
    def chairs(self) -> Sequence[MatchSeat]:
        """The seats of the match, while it is played in this process."""
        live = self.live
        return () if live is None else live.chairs

    def cancel(self, why: str) -> None:
        """Have it end as void."""
        self._cancel(self._job, why)

    def progressed(self, job: str, match: str, decisions: int) -> None:
        if not self.has_begun:
            self.has_begun, self.id, self.opened_at = True, match, self._clock()
        self.decisions = decisions

    def lost(self, job: str, match: str) -> None:
        self.losses += 1
        self.has_begun, self.id, self.decisions = False, job, 0

    def done(self, job: str, match: str, result: MatchResult, verdict: Verdict | None) -> None:
        if match:
            self.progressed(job, match, len(result.record.answers))
        self._on_over(self, result, verdict)


OpenMatch: TypeAlias = LiveMatch | JobMatch
"""A match that a stage has opened."""
OnMatchOver: TypeAlias = Callable[[OpenMatch, MatchResult, Verdict | None], None]
