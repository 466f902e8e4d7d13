"""Which offences a worker charges, and which may come of its own machine (J5)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection

import msgspec
import pytest

from arena.hosts import host_health
from arena.hosts.host_health import MachineState, WorkerHealth, measure
from protocol.messages import Ending, Limits, Mechanism, Verdict

FINE = MachineState(memory_mib=4_000, disk_mib=50_000)


class MeasuredMachine:
    """One whose health is measured as a test says, by a clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.health = WorkerHealth(lambda: FINE, lambda: self.now)

    def be_in(self, trouble: str) -> None:
        match trouble:
            case "lag":
                self.health.lagged(1_500)
            case "memory":
                self.health.look(MachineState(memory_mib=50, disk_mib=50_000))
            case "disk":
                self.health.look(MachineState(memory_mib=4_000, disk_mib=3))
            case "start":
                self.health.started(7.25)


@pytest.fixture
def machine() -> MeasuredMachine:
    return MeasuredMachine()


def verdict(
    kind: Ending, mechanism: Mechanism = Mechanism.WALL_CAP, exit_status: int | None = None
) -> Verdict:
    found = Verdict(
        kind=kind, match="m", game="g", bot="ann", seat=0, text="", bank_ms=0, limits=Limits()
    )
    return msgspec.structs.replace(found, mechanism=mechanism, exit_status=exit_status)


TROUBLES = {
    "lag": "the worker stood still for 1,500 ms",
    "memory": "the worker had 50 MiB of memory left",
    "disk": "the worker had 3 MiB of disk left",
    "start": "the worker took 7.2 s to start a program",
}


OFFENCES: tuple[tuple[Verdict, Collection[str]], ...] = (  # and the troubles that excuse them
    (verdict(Ending.ABSENT), TROUBLES),
    (verdict(Ending.ABSENT, Mechanism.SESSION), TROUBLES),
    (verdict(Ending.MEMORY, Mechanism.SAMPLED), TROUBLES),
    (verdict(Ending.TIMEOUT), TROUBLES),
    (verdict(Ending.TIMEOUT, Mechanism.WALL_CLOCK), TROUBLES),
    (verdict(Ending.CRASH, Mechanism.EXIT, exit_status=-9), ("memory",)),  # it was killed
    (verdict(Ending.ILLEGAL, Mechanism.RULES), ()),
    (verdict(Ending.MALFORMED, Mechanism.WIRE), ()),
    (verdict(Ending.TIMEOUT, Mechanism.CPU_CLOCK), ()),
    (verdict(Ending.ABSENT, Mechanism.CPU_CLOCK), ()),
    (verdict(Ending.CPU, Mechanism.CPU_CLOCK), ()),
    (verdict(Ending.PROCESSES, Mechanism.SAMPLED), ()),
    (verdict(Ending.CRASH, Mechanism.EXIT, exit_status=1), ()),
    (verdict(Ending.REMOVED, Mechanism.INSTRUCTOR), ()),
)


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize(("offence", "excused_by"), OFFENCES)
def test_J5_offence_is_charged_unless_trouble_may_have_caused_it(
    machine: MeasuredMachine, trouble: str, offence: Verdict, excused_by: Collection[str]
) -> None:
    machine.be_in(trouble)

    expected = TROUBLES[trouble] if trouble in excused_by else ""
    assert machine.health.excuse(offence, since=99.0) == expected


def test_what_is_no_trouble_excuses_nothing(machine: MeasuredMachine) -> None:
    machine.health.lagged(400)
    machine.health.look(FINE)
    machine.health.started(0.2)
    machine.health.look(MachineState())  # a machine that does not say what it has
    for ending in (Ending.ABSENT, Ending.MEMORY):
        assert machine.health.excuse(verdict(ending), since=0.0) == ""
    machine.be_in("lag")

    assert machine.health.excuse(verdict(Ending.TIMEOUT), since=100.5) == "", "it was before"


def test_trouble_of_an_hour_ago_is_forgotten(machine: MeasuredMachine) -> None:
    machine.be_in("lag")
    machine.now += 4_000
    machine.health.started(5.0)

    assert machine.health.excuse(verdict(Ending.TIMEOUT), since=0.0) == (
        "the worker took 5.0 s to start a program"
    )


def test_lag_is_the_worst_of_the_last_seconds(machine: MeasuredMachine) -> None:
    machine.health.lagged(40)
    machine.now += 3
    machine.health.lagged(7)
    assert machine.health.lag_ms == 40
    machine.now += 3
    machine.health.lagged(2)

    assert machine.health.lag_ms == 7


def test_memory_is_short_until_there_is_more(machine: MeasuredMachine) -> None:
    machine.be_in("memory")
    assert machine.health.is_short_of_memory
    machine.health.look(FINE)

    assert not machine.health.is_short_of_memory


async def test_stall_of_the_event_loop_excuses_what_is_found_right_after_it() -> None:
    clock = [0.0]
    health = WorkerHealth(lambda: FINE, lambda: clock[0])
    watching = asyncio.create_task(health.watch())
    await asyncio.sleep(0)
    clock[0] = 3.1  # its sleep of 0.1 s is not over yet
    found = health.excuse(verdict(Ending.ABSENT), since=0.0)
    watching.cancel()

    assert found == "the worker stood still for 3,000 ms"


async def test_stall_of_the_event_loop_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_health, "_LOOK_S", 0.001)
    monkeypatch.setattr(host_health, "_LAG_MS", 20)
    health = WorkerHealth(lambda: FINE, asyncio.get_running_loop().time)
    watching = asyncio.create_task(health.watch())
    await asyncio.sleep(0)
    time.sleep(0.05)
    while health.lag_ms < 20:
        await asyncio.sleep(0)
    watching.cancel()

    assert health.excuse(verdict(Ending.ABSENT), since=0.0).startswith("the worker stood still for")


def test_this_machine_says_what_it_has_free(tmp_path_factory: pytest.TempPathFactory) -> None:
    state = measure([tmp_path_factory.getbasetemp()])

    assert state.disk_mib is not None
    assert state.disk_mib > 0
