"""Which workers are there, by their reports."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from arena.workers.messages import BUS_VERSION, Command, Dismissal, Drain, WorkerReport, encode
from arena.workers.worker_registry import WorkerRegistry
from protocol.version import __version__
from tests.support.bus_stage import KIND, a_report


class RegistryLog:
    """A registry, and what it has said."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.told: list[str] = []
        self.changes = 0
        self.registry = WorkerRegistry(
            lambda worker, command: self.commands.append(command),
            self.told.append,
            self._changed,
            0.0,
        )

    def _changed(self) -> None:
        self.changes += 1

    def report(self, now: float = 0.0, **more: Any) -> WorkerReport | None:
        return self.registry.reported("w1", encode(a_report(**more)), now)

    @property
    def slots(self) -> int:
        return sum(power.slots for power in self.registry.powers(0.0))


@pytest.fixture
def log() -> RegistryLog:
    return RegistryLog()


OLD = msgspec.structs.replace(KIND, arena_version="0.0.1")


def test_a_worker_of_another_version_is_refused_and_told_of_once(log: RegistryLog) -> None:
    for now in (0.0, 0.5, 6.0):
        assert log.report(now, kind=OLD) is None

    why = f"it is Card Arena 0.0.1, this arena is {__version__}"
    assert log.commands == [Dismissal(why)] * 2
    assert log.told == [f"worker w1 is refused: {why}"]
    assert log.slots == 0
    assert log.registry.workers["w1"].refused


VERSION_9 = f"it speaks version 9 of the bus, this arena {BUS_VERSION}"
UNREADABLE = "its reports cannot be read: install the version of the arena there"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (encode(a_report(version=9)), VERSION_9),
        (encode({"version": 9, "new": 1}), VERSION_9),
        (b"\xc1", UNREADABLE),
        (b"\x81\xa6worker\xa1\xff", UNREADABLE),
        (b"\x81\xa1x" + b"\x91" * 500_000 + b"\xc0", UNREADABLE),
    ],
)
def test_a_worker_that_speaks_otherwise_is_refused(log: RegistryLog, data: bytes, why: str) -> None:
    assert log.registry.reported("w1", data, 0.0) is None

    assert log.commands == [Dismissal(why)]
    assert log.told == [f"worker w1 is refused: {why}"]


@pytest.mark.parametrize(
    "more",
    [
        {"speed": math.inf},
        {"speed": math.nan},
        {"speed": -1.0},
        {"lag_ms": math.nan},
        {"slots": 1 << 40},
        {"session": "s" * 1_000},
        {"kind": msgspec.structs.replace(KIND, games=("\x1b[31m",))},
        {"kind": msgspec.structs.replace(KIND, commands=("c",) * 100_000)},
    ],
)
def test_a_report_that_cannot_be_is_refused_alone(log: RegistryLog, more: dict[str, Any]) -> None:
    log.registry.reported("w2", encode(a_report("w2")), 0.0)
    for _ in range(3):
        assert log.report(**more) is None

    assert log.slots == 2
    assert len(log.told) == 1


def test_a_report_has_the_bus_name_and_its_fault_in_one_line(log: RegistryLog) -> None:
    fault = "a\x1b[2J\nb" * 1_000
    report = log.registry.reported("w1", encode(a_report("w2", last_error=fault)), 0.0)

    assert report is not None
    assert report.worker == "w1"
    assert report.last_error.isprintable()
    assert 0 < len(report.last_error) <= 300


def test_who_is_refused_in_ever_other_words_is_told_ten_times(log: RegistryLog) -> None:
    for version in range(2, 100):
        log.registry.reported("w1", encode({"version": version}), 0.0)

    assert len(log.told) == 10


def test_a_worker_that_is_ever_another_has_few_queues(log: RegistryLog) -> None:
    for number in range(100):
        kind = msgspec.structs.replace(KIND, machine=f"m{number}")
        log.report(session=f"s{number}", kind=kind)

    assert log.told == ["worker w1 is refused: what it can play has changed too often"]
    assert len(log.registry._former["w1"]) <= 100


def test_that_others_take_jobs_is_said_when_it_changes(log: RegistryLog) -> None:
    changes = []
    for more in ({}, {}, {"slots": 4}, {"is_draining": True}, {"is_draining": True}):
        log.report(**more)
        changes.append(log.changes)

    assert changes == [1, 1, 2, 3, 3]
    assert log.slots == 0


def test_silence_counts_from_when_somebody_could_be_heard(log: RegistryLog) -> None:
    log.report()
    known = log.registry.workers["w1"]

    assert not log.registry.is_alive(known, 5.1)
    log.registry.heard_since = 4.0
    assert log.registry.is_alive(known, 5.1)


def test_a_drain_is_repeated_until_the_worker_says_so(log: RegistryLog) -> None:
    log.report()
    log.registry.drain("w1", True)
    assert log.slots == 0
    log.report()
    log.report(is_draining=True)
    log.report()  # somebody else has resumed it

    assert log.commands == [Drain(True)] * 2
    assert log.slots == 2


def test_two_sessions_of_a_name_are_told_of_once_unless_one_is_late(log: RegistryLog) -> None:
    log.report(0.0, session="s1")
    log.report(1.0, session="s2", slots=4)

    assert log.report(2.0, session="s1") is not None
    assert log.slots == 4, "what is late says only what it plays"
    assert log.told == []
    for now in (9.0, 9.5):
        log.report(now, session="s1")
    assert log.told == ["two workers are called w1: give each a name of its own"]
