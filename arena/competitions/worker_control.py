"""What an arena's people see of the machines that play for it, and can have them do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from protocol.instructions import LostAttempt, WorkerView

__all__ = ["WorkerControl"]


class WorkerControl(Protocol):
    """The workers of an arena (`arena/workers/worker_control.py`)."""

    @property
    def lost(self) -> int:
        """How many of their matches have been lost since the arena was started."""

    def workers(self) -> tuple[WorkerView, ...]:
        """Those that are there, or were lately, by name."""

    async def without_result(self) -> Sequence[LostAttempt]:
        """The latest of their matches that are lost or void."""

    async def drain(self, worker: str, is_draining: bool) -> None:
        """Have a worker begin no more matches, or begin them again.

        Raises UsageError if there is none of that name, or it cannot be told.
        """
