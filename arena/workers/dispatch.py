"""Which class of workers gets which job. Pure: `BusJobs` does the sending.

Workers of one kind and one bucket of speed are a class, and each class has one queue on the bus.
Only so many jobs are on each queue (`_QUEUED`); all others wait here, in the order in which they
were put, so that who is fast gets more of them. Jobs that need the same of a worker wait in one
lane, so the effort per job does not grow with the number of jobs.

Where matches are to be played `alike`, all of the same group (the bots of a competition that meet)
go to the bucket that had room for the first of them, or all of them are played by the arena.
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

from arena.competitions.jobs import MatchJob
from arena.workers.messages import Bundle, HouseBot, SeatProgram, Source, WorkerKind, encode

__all__ = [
    "Dispatch",
    "Group",
    "JobNeed",
    "WorkerPower",
    "missing",
    "need_of",
    "speed_bucket",
    "worker_class",
]

_FACTOR = 1.5  # between the speeds of a bucket: `alike` promises no more
_QUEUED = 2  # jobs on the bus per slot: one is played, the next is there when it ends

Group: TypeAlias = tuple[str, frozenset[str]]
"""A competition, and bots that meet in it."""


def worker_class(kind: WorkerKind, speed: float) -> str:
    """The name of the class of a worker, the same at both ends of the bus."""
    return f"{hashlib.sha256(encode(kind)).hexdigest()[:12]}-s{speed_bucket(speed)}"


def speed_bucket(speed: float) -> int:
    """The number of the range that a speed is in, in calibrations a second."""
    return math.floor(math.log(max(speed, 1e-9)) / math.log(_FACTOR))


class JobNeed(msgspec.Struct, frozen=True, kw_only=True):
    """What a job needs of a worker."""

    game: str  # as in `WorkerKind.games`
    languages: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    machine: str = ""  # `linux x86_64` if a program may fit that only
    is_isolated: bool = False


def need_of(
    job: MatchJob, programs: Sequence[SeatProgram], machine: str, is_isolated: bool
) -> JobNeed:
    """What a job needs; `machine` is that of the arena, where native bundles were made."""
    sources = {each.language for each in programs if isinstance(each, Source)}
    bundles = [each for each in programs if isinstance(each, Bundle)]
    return JobNeed(
        game=job.package or job.game,
        languages=tuple(sorted(sources)),
        commands=tuple(sorted({each.needs for each in bundles if each.needs})),
        machine=machine if any(each.is_native for each in bundles) else "",
        is_isolated=is_isolated and any(not isinstance(each, HouseBot) for each in programs),
    )


def missing(kind: WorkerKind, need: JobNeed) -> str:
    """What workers of a kind lack for a job, in words; empty if they can play it."""
    if need.game not in kind.games:
        return f"the game {need.game}"
    for language in need.languages:
        if language not in kind.languages:
            return f"programs in {language}"
    for command in need.commands:
        if command not in kind.commands:
            return f"the program {command}"
    if need.machine not in ("", f"{kind.system} {kind.machine}"):
        return f"a machine of {need.machine}"
    if need.is_isolated and not kind.isolation:
        return "isolation of bots"
    return ""


class WorkerPower(msgspec.Struct, frozen=True):
    """A worker that takes jobs now."""

    kind: WorkerKind
    speed: float
    slots: int


class _WorkerClass:
    """The living workers of a class that take jobs."""

    def __init__(self, kind: WorkerKind, bucket: int) -> None:
        self.kind = kind
        self.bucket = bucket
        self.slots = 0
        self._plays: dict[JobNeed, bool] = {}

    def plays(self, need: JobNeed, bucket: int | None) -> bool:
        if bucket not in (None, self.bucket):
            return False
        if need not in self._plays:
            self._plays[need] = not missing(self.kind, need)
        return self._plays[need]


class _DispatchedJob:
    """A job that waits, or is on the queue of a class."""

    def __init__(self, job: str, number: int, need: JobNeed, group: Group | None) -> None:
        self.job = job
        self.number = number
        self.need = need
        self.group = group
        self.worker_class: str | None = None
        self.lane: _Lane | None = None  # while it waits


class _Lane:
    """The waiting jobs that need the same, the oldest first; `bucket` is None for any speed."""

    def __init__(self, need: JobNeed, bucket: int | None) -> None:
        self.need = need
        self.bucket = bucket
        self.unplayed_since: float | None = None  # no worker that is there can play them
        self.is_told = False
        self._heap: list[tuple[int, str]] = []
        self._waiting: dict[str, _DispatchedJob] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, entry: _DispatchedJob) -> None:
        self._waiting[entry.job] = entry
        heapq.heappush(self._heap, (entry.number, entry.job))

    def remove(self, job: str) -> None:
        self._waiting.pop(job, None)
        while self._heap and self._heap[0][1] not in self._waiting:
            heapq.heappop(self._heap)
        if not self._waiting:
            self._heap.clear()

    @property
    def oldest(self) -> _DispatchedJob:
        return self._waiting[self._heap[0][1]]

    def entries(self) -> Iterator[_DispatchedJob]:
        return iter(tuple(self._waiting.values()))


_HERE: Final = "here"  # where a group is played if the arena plays it


class Dispatch:
    """The jobs that workers are to play and that are not done, by class."""

    def __init__(self) -> None:
        self._entries: dict[str, _DispatchedJob] = {}
        self._number = 0
        self._lanes: dict[tuple[JobNeed, int | None], _Lane] = {}
        self._classes: dict[str, _WorkerClass] = {}
        self._on_bus: defaultdict[str, set[str]] = defaultdict(set)  # by class, gone ones too
        self._places: dict[Group, int | str] = {}  # by group, a bucket or `_HERE`

    # --- workers ---

    def workers_are(self, workers: Iterable[WorkerPower]) -> None:
        """Say which workers take jobs from now on."""
        classes: dict[str, _WorkerClass] = {}
        for worker in workers:
            if worker.slots < 1:
                continue
            name = worker_class(worker.kind, worker.speed)
            if name not in classes:
                former = self._classes.get(name)
                classes[name] = former or _WorkerClass(worker.kind, speed_bucket(worker.speed))
                classes[name].slots = 0
            classes[name].slots += worker.slots
        self._classes = classes

    @property
    def classes(self) -> Sequence[str]:
        """Those with workers that take jobs."""
        return tuple(self._classes)

    @property
    def at_once(self) -> int:
        """How many jobs are on the bus at most."""
        return sum(_QUEUED * each.slots for each in self._classes.values())

    # --- jobs ---

    def add(self, job: str, need: JobNeed, group: Group | None = None) -> bool:
        """Have a job wait for a worker; False if its group is played by the arena."""
        place = None if group is None else self._places.get(group)
        if place == _HERE:
            return False
        entry = self._entries[job] = _DispatchedJob(job, self._number, need, group)
        self._number += 1
        self._wait(entry)
        return True

    def remove(self, job: str) -> None:
        """Forget a job, wherever it is; one that is not here means nothing."""
        entry = self._entries.pop(job, None)
        if entry is not None:
            self._leave(entry)

    def again(self, job: str) -> None:
        """Have a job wait in its old place, as it is on no queue any more."""
        entry = self._entries[job]
        if entry.worker_class is not None:
            self._leave(entry)
            self._wait(entry)

    def next(self) -> tuple[str, str] | None:
        """The job that is to be put on the bus now, and its class; None if none is, or no room."""
        for name, workers in sorted(self._classes.items(), key=lambda each: self._fill(each[0])):
            if self._fill(name) >= _QUEUED:
                return None
            while (entry := self._oldest_for(workers)) is not None:
                self._leave(entry)
                if entry.group is not None:
                    place = self._places.setdefault(entry.group, workers.bucket)
                    if place != workers.bucket:  # another of its group was first
                        self._wait(entry)
                        continue
                entry.worker_class = name
                self._on_bus[name].add(entry.job)
                return entry.job, name
        return None

    def on_bus(self) -> Iterator[tuple[str, str, bool]]:
        """The jobs that are on queues: each with its class, and whether anybody takes from that."""
        for name, jobs in self._on_bus.items():
            for job in tuple(jobs):
                yield job, name, name in self._classes

    def class_of(self, job: str) -> str | None:
        """On whose queue a job is."""
        entry = self._entries.get(job)
        return None if entry is None else entry.worker_class

    def __contains__(self, job: str) -> bool:
        return job in self._entries

    def plays_here(self, group: Group) -> None:
        """Have all further matches of a group played by the arena, if none was played elsewhere."""
        self._places.setdefault(group, _HERE)

    def plays_at(self, group: Group, bucket: int) -> None:
        """Have all further matches of a group played at a speed, as earlier ones were."""
        self._places.setdefault(group, bucket)

    def why_not(self, need: JobNeed) -> str:
        """What the workers that take jobs lack, in words."""
        lacks = {missing(each.kind, need) for each in self._classes.values()} - {""}
        return f"no worker has {min(lacks)}" if lacks else "no worker is there"

    def homeless(self, now: float, patience_s: float) -> list[tuple[str, JobNeed]]:
        """Take out the jobs that no worker could play for so long, with what they need."""
        homeless = []
        for lane in self._unplayed(now, patience_s):
            if lane.bucket is not None:
                continue
            for entry in lane.entries():
                place = _HERE
                if entry.group is not None:
                    place = str(self._places.setdefault(entry.group, _HERE))
                self._leave(entry)
                if place == _HERE:
                    del self._entries[entry.job]
                    homeless.append((entry.job, entry.need))
                else:
                    self._wait(entry)
        return homeless

    def waiting_alike(self, now: float, patience_s: float) -> list[tuple[str, str]]:
        """Where matches wait for their class: a job, and what is missing; each class once."""
        waiting = []
        for lane in self._unplayed(now, patience_s):
            if lane.bucket is not None and len(lane) and not lane.is_told:
                lane.is_told = True
                waiting.append((lane.oldest.job, self._wanted(lane.need, lane.bucket)))
        return waiting

    # --- within ---

    def _wanted(self, need: JobNeed, bucket: int) -> str:
        """What workers of a bucket lack, or that there are none."""
        least = _FACTOR**bucket
        speed = f"speed class {bucket} ({least:,.1f} to {least * _FACTOR:,.1f} calibrations/s)"
        of_speed = [each for each in self._classes.values() if each.bucket == bucket]
        if not of_speed:
            return f"a worker of {speed}: none is here"
        return f"a worker of {speed} with {missing(of_speed[0].kind, need)}"

    def _unplayed(self, now: float, patience_s: float) -> list[_Lane]:
        """The lanes that no worker could play for so long."""
        found = []
        for lane in tuple(self._lanes.values()):
            if any(each.plays(lane.need, lane.bucket) for each in self._classes.values()):
                lane.unplayed_since, lane.is_told = None, False
                continue
            if lane.unplayed_since is None:
                lane.unplayed_since = now
            if now - lane.unplayed_since >= patience_s:
                found.append(lane)
        return found

    def _fill(self, name: str) -> float:
        return len(self._on_bus[name]) / self._classes[name].slots

    def _oldest_for(self, workers: _WorkerClass) -> _DispatchedJob | None:
        oldest = [
            lane.oldest
            for lane in self._lanes.values()
            if len(lane) and workers.plays(lane.need, lane.bucket)
        ]
        return min(oldest, key=lambda entry: entry.number, default=None)

    def _wait(self, entry: _DispatchedJob) -> None:
        place = None if entry.group is None else self._places.get(entry.group)
        bucket = place if isinstance(place, int) else None
        key = (entry.need, bucket)
        if key not in self._lanes:
            self._lanes[key] = _Lane(entry.need, bucket)
        entry.lane = self._lanes[key]
        entry.lane.add(entry)

    def _leave(self, entry: _DispatchedJob) -> None:
        """Take a job from its lane, or off the count of its queue."""
        if entry.lane is not None:
            entry.lane.remove(entry.job)
            entry.lane = None
        elif entry.worker_class is not None:
            self._on_bus[entry.worker_class].discard(entry.job)
            entry.worker_class = None
