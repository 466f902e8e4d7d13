"""Which workers are there, by their reports: who is alive, of use, draining, or has a double.

A worker of another version is refused with one line, which it shows, and the instructor is told
once. Reports may be lost, late and out of order; one of a former session is not believed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from arena.records.document import UNREADABLE
from arena.workers.dispatch import WorkerPower, worker_class
from arena.workers.known_worker import SILENT_S, KnownWorker, read_report
from arena.workers.messages import BUS_VERSION, Command, Dismissal, Drain, WorkerReport, decode
from protocol.version import __version__

__all__ = ["WorkerRegistry"]

_REFUSED_AGAIN_S = 5.0  # commands may be lost
_LATE_S = 5.0  # no report is later than that on a bus that works
_MOST_CLASSES = 32  # of a worker that is started again and again: each leaves a queue on the bus
_MOST_SESSIONS = 100  # that are remembered of a worker
_MOST_LINES = 10  # that are said of a worker


class _AnyReport(msgspec.Struct, frozen=True):
    """What reports of all versions have."""

    version: int = 0


class WorkerRegistry:
    """The workers that have reported, by name.

    `command` sends a command to a worker, `tell` says a line to the instructor, and `changed` is
    called when other workers take jobs than before.

    Attributes:
        workers: also those that are silent or refused.
        heard_since: silence counts from then on, as the bus or this process stood still before.
    """

    def __init__(
        self,
        command: Callable[[str, Command], None],
        tell: Callable[[str], None],
        changed: Callable[[], None],
        now: float,
    ) -> None:
        self.workers: dict[str, KnownWorker] = {}
        self.heard_since = now
        self._command = command
        self._tell = tell
        self._changed = changed
        self._refused_at: dict[str, float] = {}
        self._told: dict[str, set[str]] = {}  # by worker
        self._classes: dict[str, set[str]] = {}  # by worker, those it was of
        self._former: dict[str, dict[str, float]] = {}  # by worker: sessions, and when they ended
        self._drains: dict[str, bool] = {}

    def reported(self, worker: str, data: bytes, now: float) -> WorkerReport | None:
        """Take a report; returns it if it is one of a worker that is of use.

        That of a former session is returned as well: if two workers have one name, the matches of
        neither are lost.
        """
        report = read_report(worker, data)
        if report is None:
            self._refuse(worker, _why_unreadable(data), now)
            return None
        why = _other_version(report) or self._too_changeable(report)
        if not self._is_of_latest_session(worker, report, now):
            self._look_for_double(worker, report, now)
            return None if why else report
        former = self.workers.get(worker)
        known = KnownWorker(report=report, seen_at=now, refused=why)
        self.workers[worker] = known
        if why:
            self._refuse(worker, why, now)
        elif (wanted := self._drains.get(worker)) is not None:
            if wanted == report.is_draining:
                del self._drains[worker]
            else:
                self._command(worker, Drain(wanted))
        if former is None or _power(former) != _power(known) or not self.is_alive(former, now):
            self._changed()
        return None if why else report

    def is_alive(self, known: KnownWorker, now: float) -> bool:
        return now - max(known.seen_at, self.heard_since) <= SILENT_S

    def powers(self, now: float) -> Iterator[WorkerPower]:
        """The workers that take jobs now."""
        for known in self.workers.values():
            power = _power(known)
            is_to_drain = self._drains.get(known.name, False)
            if power is not None and self.is_alive(known, now) and not is_to_drain:
                yield power

    def class_of(self, worker: str) -> str | None:
        """The class of a worker that is of use."""
        known = self.workers.get(worker)
        if known is None or known.refused:
            return None
        return worker_class(known.report.kind, known.report.speed)

    def drain(self, worker: str, is_draining: bool) -> None:
        """Have a worker take no jobs any more, or again; repeated until it says so."""
        self._drains[worker] = is_draining
        self._command(worker, Drain(is_draining))
        self._changed()

    def names(self, now: float) -> Mapping[str, bool]:
        """All that are of use, and whether each is alive."""
        return {
            name: self.is_alive(known, now)
            for name, known in self.workers.items()
            if not known.refused
        }

    def _is_of_latest_session(self, worker: str, report: WorkerReport, now: float) -> bool:
        former = self._former.setdefault(worker, {})
        if report.session in former:
            return False
        known = self.workers.get(worker)
        if known is not None and known.report.session != report.session:
            former[known.report.session] = now
            if len(former) > _MOST_SESSIONS:
                del former[next(iter(former))]
        return True

    def _look_for_double(self, worker: str, report: WorkerReport, now: float) -> None:
        """Say it if a report of a former session is no late one."""
        if now - self._former[worker][report.session] > _LATE_S:
            self._tell_once(worker, f"two workers are called {worker}: give each a name of its own")

    def _too_changeable(self, report: WorkerReport) -> str:
        classes = self._classes.setdefault(report.worker, set())
        name = worker_class(report.kind, report.speed)
        if len(classes) < _MOST_CLASSES:
            classes.add(name)
        return "" if name in classes else "what it can play has changed too often"

    def _refuse(self, worker: str, why: str, now: float) -> None:
        if now - self._refused_at.get(worker, -_REFUSED_AGAIN_S) >= _REFUSED_AGAIN_S:
            self._refused_at[worker] = now
            self._command(worker, Dismissal(why))
        self._tell_once(worker, f"worker {worker} is refused: {why}")

    def _tell_once(self, worker: str, line: str) -> None:
        told = self._told.setdefault(worker, set())
        if line not in told and len(told) < _MOST_LINES:
            told.add(line)
            self._tell(line)


def _power(known: KnownWorker) -> WorkerPower | None:
    report = known.report
    if known.refused or report.is_draining:
        return None
    return WorkerPower(report.kind, report.speed, report.slots)


def _why_unreadable(data: bytes) -> str:
    """Why a report is none: that of another version may not be read as one."""
    try:
        version: int = decode(data, _AnyReport).version
    except UNREADABLE:
        version = 0
    if version not in (0, BUS_VERSION):
        return _of_bus(version)
    return "its reports cannot be read: install the version of the arena there"


def _other_version(report: WorkerReport) -> str:
    if report.version != BUS_VERSION:
        return _of_bus(report.version)
    if report.kind.arena_version != __version__:
        return f"it is Card Arena {report.kind.arena_version}, this arena is {__version__}"
    return ""


def _of_bus(version: int) -> str:
    return f"it speaks version {version} of the bus, this arena {BUS_VERSION}"
