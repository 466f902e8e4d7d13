"""The offences found in a tree of processes, and its CPU time; real systems are in tests/e2e."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from arena.games.verdict import Finding
from arena.sandbox.process_table import ProcessCpu, ProcessEntry
from arena.sandbox.process_usage import (
    MIB,
    ROUNDING_MS,
    Meter,
    Peak,
    ProcessReading,
    WaitMeter,
    judge,
    tree_of,
)
from protocol.messages import Ending, Limits, Mechanism

LIMITS = Limits(memory_mib=256, processes=4)
TIMEOUT_S = 20.0


def reading(pid: int, mib: float, *, peak: float = 0) -> ProcessReading:
    return ProcessReading(pid, int(mib * MIB), int(max(mib, peak) * MIB))


def text_of(finding: Finding | None) -> str:
    return "" if finding is None else finding.text


# ---- judge


SANDBOX = [reading(pid, 1)._replace(is_structure=True) for pid in (98, 99)]
JUDGED: dict[str, tuple[list[ProcessReading], str]] = {
    "nothing": ([], ""),
    "at the limit": ([reading(1, 256)], ""),
    "a page over it": ([reading(1, 256 + 1 / 256)], "memory 257 MiB > 256 MiB (sampled)"),
    "the largest": ([reading(1, 300), reading(2, 310)], "memory 310 MiB > 256 MiB (sampled)"),
    "pages that may be shared": ([reading(1, 200), reading(2, 200)], ""),
    "as many processes as it may have": ([reading(pid, 1) for pid in range(4)], ""),
    "the sandbox, which is none": ([*SANDBOX, *(reading(pid, 1) for pid in range(4))], ""),
    "memory of the sandbox": (
        [*SANDBOX, reading(1, 300)._replace(is_structure=True)],
        "memory 300 MiB > 256 MiB (sampled)",
    ),
}


@pytest.mark.parametrize(("tree", "found"), JUDGED.values(), ids=JUDGED)
def test_what_a_tree_holds_is_judged(tree: list[ProcessReading], found: str) -> None:
    assert text_of(judge(tree, LIMITS)) == found


def test_what_processes_hold_together_counts_once() -> None:
    tree = [reading(1, 200), reading(2, 200)]

    assert judge(tree, LIMITS, 256 * MIB) is None
    assert text_of(judge(tree, LIMITS, 256 * MIB + 1)) == "memory 257 MiB > 256 MiB (sampled)"


def test_a_finding_says_what_it_is_and_how_it_was_found() -> None:
    tree = [reading(pid, 1) for pid in range(5)]

    assert judge(tree, LIMITS) == Finding(
        kind=Ending.PROCESSES, text="processes 5 > 4 (sampled)", mechanism=Mechanism.SAMPLED
    )
    assert judge([reading(1, 20, peak=312)], LIMITS) == Finding(
        kind=Ending.MEMORY, text="memory 312 MiB > 256 MiB (sampled)", mechanism=Mechanism.SAMPLED
    )


# ---- Peak


def test_a_peak_is_the_most_at_one_moment_and_stays() -> None:
    one = Peak().and_now([reading(1, 20, peak=300)])
    two = Peak().and_now([reading(1, 200), reading(2, 150)])

    assert (one.memory_bytes, one.processes) == (300 * MIB, 1)
    assert (two.memory_bytes, two.processes) == (350 * MIB, 2)
    assert two.and_now([]) == two, "the processes have gone"
    assert two.and_now([reading(1, 400)]) == Peak(400 * MIB, 2)
    assert Peak().and_now([*SANDBOX, reading(2, 20)]).processes == 1


# ---- tree_of


def table(*lines: str) -> list[ProcessEntry]:
    """Lines like `11 < 10 name`, with a Z behind for a zombie."""
    entries = []
    for line in lines:
        pid, _, parent, name, *zombie = line.split()
        entries.append(ProcessEntry(int(pid), int(parent), name, 0.0, bool(zombie)))
    return entries


def pids(supervisor: int, *lines: str) -> tuple[list[int], set[int]]:
    tree, structure = tree_of(supervisor, table(*lines))
    return [entry.pid for entry in tree], structure


BWRAP = "11 < 10 bwrap, 12 < 11 bwrap"
TREES: dict[str, tuple[str, list[int], set[int]]] = {
    "all below it, parents first": (
        "5 < 30 grandchild, 10 < 1 supervisor, 30 < 10 bot, 31 < 10 orphan, 99 < 1 other, 98 < 99 x",
        [30, 31, 5],
        set(),
    ),
    "a supervisor that is gone": ("30 < 1 bot", [], set()),
    "numbers that were used again are no loop": (
        "10 < 12 supervisor, 11 < 10 a, 12 < 11 b, 7 < 7 c",
        [11, 12],
        set(),
    ),
    "a sandbox": (f"{BWRAP}, 13 < 12 bot, 14 < 12 orphan", [11, 12, 13, 14], {11, 12}),
    "a relay in it, once": (
        f"{BWRAP}, 13 < 12 arena-relay, 14 < 13 bot, 15 < 12 arena-relay",
        [11, 12, 13, 15, 14],
        {11, 12, 13},
    ),
    "a relay without it": ("11 < 10 arena-relay, 12 < 11 arena-relay", [11, 12], {11}),
    "a bot called bwrap": (f"{BWRAP}, 13 < 12 bwrap, 14 < 13 bwrap", [11, 12, 13, 14], {11, 12}),
    "bwrap below a bot": ("11 < 10 bot, 12 < 11 bwrap", [11, 12], set()),
    "two of them side by side": ("11 < 10 bwrap, 12 < 10 bwrap", [11, 12], set()),
    "two below one": (f"{BWRAP}, 13 < 11 bwrap", [11, 12, 13], {11}),
    "a zombie beside it": (f"9 < 10 true Z, {BWRAP}", [9, 11, 12], {11, 12}),
}


@pytest.mark.parametrize(("lines", "below", "of_the_sandbox"), TREES.values(), ids=TREES)
def test_what_belongs_to_a_bot(lines: str, below: list[int], of_the_sandbox: set[int]) -> None:
    assert pids(10, *lines.split(", ")) == (below, of_the_sandbox)


# ---- Meter


def metered(*samples: Mapping[int, tuple[float, float]]) -> list[float]:
    """What a meter shows after each sample of {pid: (own, reaped)}."""
    meter = Meter()
    shown = []
    for sample in samples:
        meter.read(ProcessCpu(pid, 0, *times) for pid, times in sample.items())
        meter.forgive()
        shown.append(meter.total_ms)
    return shown


Samples = list[dict[int, tuple[float, float]]]

METERED: dict[str, tuple[Samples, list[float]]] = {
    "they add up": ([{1: (10, 0)}, {1: (15, 0), 2: (5, 0)}], [10, 20]),
    "reaped later": ([{1: (10, 0), 2: (500, 0)}, {1: (10, 540)}, {1: (10, 540)}], [510, 550, 550]),
    "not waited for yet": ([{1: (0, 0), 2: (500, 0)}, {1: (0, 0)}, {1: (0, 500)}], [500] * 3),
    "never waited for": ([{1: (0, 0), 2: (500, 0)}, {1: (0, 0)}, {1: (0, 0)}], [500] * 3),
    "seen by no sample": ([{1: (10, 0)}, {1: (10, 80)}], [10, 90]),
    "a grandchild on its way up": (
        [{1: (0, 0), 2: (100, 0), 3: (200, 0)}, {1: (0, 0), 2: (100, 200)}, {1: (0, 300)}],
        [300] * 3,
    ),
    "a clock that is coarser for once": ([{1: (57, 0)}, {1: (50, 0)}, {1: (58, 0)}], [57, 57, 58]),
}


@pytest.mark.parametrize(("samples", "shown"), METERED.values(), ids=METERED)
def test_cpu_time_counts_once(samples: Samples, shown: list[float]) -> None:
    assert metered(*samples) == shown


def test_a_child_that_nobody_waited_for_does_not_pay_for_later_ones() -> None:
    shown = metered(
        {1: (0, 0), 2: (500, 0)},
        *[{1: (0, 0)}] * 5,
        {1: (0, 400)},  # another one, which was never seen
    )

    assert shown[-2] == 500
    assert shown[-1] == pytest.approx(900, abs=ROUNDING_MS)


def test_the_kernels_rounding_is_not_charged_child_by_child() -> None:
    meter = Meter()
    for number in range(1, 101):  # each takes 15 ms, of which the kernel shows ticks
        seen = 15.0 * (number - 1) // 10 * 10
        meter.read([ProcessCpu(1, 0, 0, seen), ProcessCpu(100 + number, 0, 15, 0)])
        meter.forgive()
        for _ in range(3):
            meter.read([ProcessCpu(1, 0, 0, 15.0 * number // 10 * 10)])
            meter.forgive()

    assert meter.total_ms == pytest.approx(1500, abs=2 * ROUNDING_MS)


# ---- Waits for a core


WAITED = {
    "all threads together": ([{1: 100.0, 2: 50.0}, {1: 130.0, 2: 50.0, 3: 5.0}, {}], 185),
    "another thread of the same number": ([{1: 100.0}, {1: 30.0}], 130),
}


@pytest.mark.parametrize(("samples", "total_ms"), WAITED.values(), ids=WAITED)
def test_what_threads_waited_counts_once(samples: list[dict[int, float]], total_ms: float) -> None:
    meter = WaitMeter()
    for waits in samples:
        meter.read(waits)

    assert meter.total_ms == total_ms


def test_a_number_that_is_used_again_is_another_process() -> None:
    meter = Meter()
    meter.read([ProcessCpu(1, 100, 50, 0)])
    meter.read([ProcessCpu(1, 200, 10, 0)])

    assert meter.total_ms == 60
