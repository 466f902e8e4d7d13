"""A worker as an arena knows it: its latest report, and whether it is of use here; pure.

A report may be anybody's who has a worker's key: what is shown of it is made fit to be shown, and
one with figures that cannot be is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from arena.records.document import UNREADABLE
from arena.workers.messages import WorkerReport, decode
from protocol.errors import one_line
from protocol.instructions import WorkerView

__all__ = ["SILENT_S", "KnownWorker", "read_report", "views_of"]

SILENT_S = 5.0
"""A worker that has not reported for so long is gone: ten of its reports are missing."""

_MOST_SLOTS = 10_000
_MOST_ATTEMPTS = 10_000  # of which some wait for their arena; a message has room for no more
_MOST_SPEED = 1e6  # in calibrations a second: no machine has 1,000
_MOST_NAMES = 1_000  # languages, commands and games each
_LONGEST_NAME = 200
_LONGEST_ERROR = 300


def read_report(worker: str, data: bytes) -> WorkerReport | None:
    """The report of a worker that the bus knows by that name; None if it is none that can be."""
    try:
        report: WorkerReport = decode(data, WorkerReport)
    except UNREADABLE:
        return None
    if not _is_possible(report):
        return None
    return msgspec.structs.replace(
        report, worker=worker, last_error=one_line(report.last_error, _LONGEST_ERROR)
    )


def _is_possible(report: WorkerReport) -> bool:
    kind = report.kind
    names = (kind.arena_version, kind.system, kind.machine, kind.isolation, report.session)
    lists = (kind.languages, kind.commands, kind.games)
    return (
        0 < report.speed <= _MOST_SPEED  # false for what is no number
        and 0 <= report.lag_ms < math.inf
        and 0 <= report.slots <= _MOST_SLOTS
        and len(report.attempts) <= _MOST_ATTEMPTS
        and min(report.cores, report.memory_mib, report.played) >= 0
        and all(len(each) <= _MOST_NAMES for each in lists)
        and all(
            len(name) <= _LONGEST_NAME and name.isprintable()
            for each in (names, *lists)
            for name in each
        )
    )


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
