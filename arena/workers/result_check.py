"""Checks what a worker has handed in before it counts: who controls one may send anything.

What no check can see is the worker's word: answers, times, and offences other than `illegal`.
"""

from __future__ import annotations

import msgspec

from arena.engine.statistics import UnitSums
from arena.workers.messages import AttemptResult, BusJob

__all__ = ["CheckedAttempt", "ExpectedAttempt", "ResultChecker"]


class ExpectedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt as it was announced, and the job that the arena has put."""

    job: BusJob
    attempt: str
    worker: str
    commitment: str


class CheckedAttempt(msgspec.Struct, frozen=True):
    """The result if it counts; else None, and in one line why not.

    `units` are the sums of its units, as in `MatchResult`; they follow from the replay.
    """

    result: AttemptResult | None
    why: str = ""
    units: UnitSums | None = None


class ResultChecker:
    """Checks results in processes of their own, which start with the first one."""

    async def check(self, data: bytes, expected: ExpectedAttempt) -> CheckedAttempt:
        """Check an `AttemptResult`; nothing is raised, whatever the data, and it has an end."""
        raise NotImplementedError

    async def close(self) -> None:
        """End the processes; what is being checked is refused."""
