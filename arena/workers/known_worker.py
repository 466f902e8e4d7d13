"""A worker as an arena knows it: its latest report, and whether it is of use here; pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from arena.workers.messages import WorkerReport
from protocol.instructions import WorkerView

__all__ = ["SILENT_S", "KnownWorker", "views_of"]

SILENT_S = 5.0
"""A worker that has not reported for so long is gone: ten of its reports are missing."""


class KnownWorker(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker has said last.

    Attributes:
        seen_at: when its latest report came, on the loop's clock.
        refused: one line why it is of no use to this arena, as another version; else empty.
    """

    report: WorkerReport
    seen_at: float
    refused: str = ""

    @property
    def name(self) -> str:
        return self.report.worker

    @property
    def running(self) -> int:
        """How many matches it plays now, of all arenas."""
        return sum(not attempt.is_over for attempt in self.report.attempts)

    def is_alive(self, now: float) -> bool:
        return now - self.seen_at <= SILENT_S

    def state(self, now: float) -> str:
        """As in `WorkerView`."""
        if self.refused:
            return "refused"
        if not self.is_alive(now):
            return "silent"
        if self.report.is_draining:
            return "draining"
        return "working" if self.running else "idle"

    def view(self, now: float) -> WorkerView:
        """The worker as an instructor is shown it."""
        report, kind = self.report, self.report.kind
        return WorkerView(
            name=report.worker,
            state=self.state(now),
            why=self.refused,
            running=self.running,
            slots=report.slots,
            played=report.played,
            cores=report.cores,
            speed=report.speed,
            memory_mib=report.memory_mib,
            lag_ms=report.lag_ms,
            system=f"{kind.system} {kind.machine}",
            isolation=kind.isolation,
            languages=kind.languages,
            games=kind.games,
            last_error=report.last_error,
            seen_s=round(max(0.0, now - self.seen_at), 1),
        )


def views_of(workers: Iterable[KnownWorker], now: float) -> tuple[WorkerView, ...]:
    """All of them by name."""
    return tuple(worker.view(now) for worker in sorted(workers, key=lambda each: each.name))
