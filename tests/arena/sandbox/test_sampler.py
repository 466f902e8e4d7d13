"""When the sampler samples, and whom it tells.

What the figures mean is in test_process_usage, real systems are in tests/e2e.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping

import pytest

from arena.games.verdict import Finding
from arena.sandbox import sampler as module
from arena.sandbox.process_table import ProcessCpu, ProcessEntry, Processes, ProcessMemory
from arena.sandbox.process_usage import MIB, ROUNDING_MS
from arena.sandbox.sampler import Sampler
from protocol.messages import Limits

LIMITS = Limits(memory_mib=256, processes=4)
TIMEOUT_S = 20.0


class FakeProcesses(Processes):
    """A system's processes, as a test wants them; `pss` is not asked for without need."""

    def __init__(self) -> None:
        self.asked: list[set[int]] = []
        self.has_clocks = False
        self.all = {10: ProcessEntry(10, 1, "supervisor", 5, False)}
        self.held: dict[int, ProcessMemory] = {}
        self.shares: dict[int, int] = {}
        self.opened: dict[int, dict[int, int]] = {}
        self.mapped: dict[int, int] = {}
        self.in_files = 0
        self.asked_files = 0
        self.asked_cpu: list[int] = []
        self.times: dict[int, tuple[float, float]] = {}
        self.waited: dict[int, dict[int, float]] = {}
        self.asked_pss = 0
        self.behind: set[int] = set()
        self.broken: Exception | None = None
        self.moves_on: Callable[[], None] = lambda: None  # when a share is asked for

    def add(self, pid: int, parent: int = 10, mib: int = 10, *, pss: int = 0) -> None:
        self.held[pid] = ProcessMemory(mib * MIB, mib * MIB)
        self.shares[pid] = pss * MIB
        self.put(ProcessEntry(pid, parent, "bot", 6, False))

    def put(self, entry: ProcessEntry) -> None:
        self.all = {**self.all, entry.pid: entry}  # a thread reads the old one

    def remove(self, pid: int) -> None:
        self.all = {key: it for key, it in self.all.items() if key != pid}

    def pids(self) -> set[int]:
        if self.broken is not None:
            raise self.broken
        return set(self.all)

    def entries(self, pids: Iterable[int]) -> Mapping[int, ProcessEntry]:
        everything = self.all
        self.asked.append(set(pids))
        return {pid: everything[pid] for pid in pids if pid in everything}

    def clock(self, pid: int) -> float | None:
        return self.times.get(pid, (0, 0))[0] if self.has_clocks and pid in self.all else None

    def memory(self, pid: int) -> ProcessMemory | None:
        return self.held.get(pid)

    def pss(self, pid: int, but: Collection[int] = ()) -> int | None:
        self.moves_on()
        self.asked_pss += 1
        return self.shares.get(pid, 0) - (self.mapped.get(pid, 0) if but else 0)

    def most_in_files(self) -> int:
        return self.in_files

    def files(self, pid: int) -> Mapping[int, int]:
        self.asked_files += 1
        return self.opened.get(pid, {})

    def cpu(self, pid: int) -> ProcessCpu | None:
        self.asked_cpu.append(pid)
        if pid not in self.all:
            return None
        return ProcessCpu(pid, self.all[pid].started, *self.times.get(pid, (0, 0)))

    def waits(self, pid: int, *, are_behind: bool = False) -> Mapping[int, float]:
        return self.waited.get(pid, {}) if pid in self.all else {}

    def put_behind(self, pid: int) -> None:
        self.behind.add(pid)


class SampledBots:
    """A sampler over pretended processes, and what it has found."""

    def __init__(self) -> None:
        self.processes = FakeProcesses()
        self.found: list[tuple[str, str]] = []
        self.threads: set[int] = set()
        self._event = asyncio.Event()
        self.sampler = Sampler(LIMITS, self._note, self.processes)
        self.sampler.start()

    def watches(self, mib: int = 10) -> None:
        """From now on `ann` is watched, whose one process has so much memory."""
        self.processes.add(11, mib=mib)
        self.sampler.watch("ann", 10)

    async def finds(self) -> tuple[str, str]:
        async with asyncio.timeout(TIMEOUT_S):
            await self._event.wait()
        return self.found[-1]

    async def samples(self, count: int = 3) -> None:
        """Wait for so many more samples, and for what they have to tell."""
        until = self.sampler.samples + count
        async with asyncio.timeout(TIMEOUT_S):
            while self.sampler.samples < until:
                await asyncio.sleep(0.001)

    def _note(self, name: str, finding: Finding) -> None:
        self.found.append((name, finding.text))
        self.threads.add(threading.get_ident())
        self._event.set()


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INTERVAL_S", 0.002)
    monkeypatch.setattr(module, "PAUSE_S", 0.002)


@pytest.fixture
async def watched(_fast: None) -> AsyncIterator[SampledBots]:
    bots = SampledBots()
    yield bots
    bots.sampler.close()


async def test_a_finding_is_told_once_and_in_the_event_loop(watched: SampledBots) -> None:
    watched.watches(312)
    await watched.finds()
    await watched.samples()

    assert watched.found == [("ann", "memory 312 MiB > 256 MiB (sampled)")]
    assert watched.threads == {threading.get_ident()}


@pytest.mark.parametrize(
    ("mib", "pss", "files", "in_files", "found"),
    [
        (140, 130, {}, 0, "memory 260 MiB > 256 MiB (sampled)"),
        # What is in files counts once, however many have them open.
        (20, 15, {11: {7: 140}, 12: {7: 140, 8: 100}}, 240, "memory 270 MiB > 256 MiB (sampled)"),
    ],
    ids=["a tree", "files"],
)
async def test_what_two_samples_find(
    watched: SampledBots,
    mib: int,
    pss: int,
    files: dict[int, dict[int, int]],
    in_files: int,
    found: str,
) -> None:
    processes = watched.processes
    processes.add(11, mib=mib, pss=pss)
    processes.add(12, 11, mib=mib, pss=pss)
    processes.opened = {
        pid: {number: size * MIB for number, size in each.items()} for pid, each in files.items()
    }
    processes.in_files = in_files * MIB
    watched.sampler.watch("ann", 10)

    assert await watched.finds() == ("ann", found)
    assert processes.asked_pss == 4, "both processes, by two samples"


async def test_files_count_once_and_are_looked_for_where_they_matter(watched: SampledBots) -> None:
    processes = watched.processes
    processes.in_files = 156 * MIB
    watched.watches(100)
    await watched.samples()
    assert processes.asked_files == 0

    processes.in_files = 157 * MIB
    await watched.samples()
    assert processes.asked_files > 0

    processes.mapped, processes.opened = {11: 150 * MIB}, {11: {7: 150 * MIB}}
    processes.add(11, mib=160, pss=160)
    await watched.samples()
    assert processes.asked_pss >= 2
    assert watched.found == [], "what is in a file and mapped counts once"


async def test_a_child_with_its_parents_memory_is_nothing(watched: SampledBots) -> None:
    watched.processes.moves_on = lambda: watched.processes.remove(12)  # it executes a program
    watched.processes.add(11, mib=140, pss=130)
    watched.processes.add(12, 11, mib=140, pss=130)
    watched.sampler.watch("ann", 10)
    await watched.samples(5)

    assert watched.processes.asked_pss == 2
    assert watched.found == []


async def test_a_sample_that_waited_is_soon_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else whoever keeps the machine busy is found too late."""
    rests: list[float | None] = []

    class RecordedRests(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            rests.append(timeout)
            return super().wait(0.001)

    def waits_for_a_core() -> set[int]:
        threading.Event().wait(0.2)
        return set()

    watched = SampledBots()
    watched.sampler.close()
    monkeypatch.setattr(watched.processes, "pids", waits_for_a_core)
    sampler = Sampler(LIMITS, lambda name, finding: None, watched.processes)
    monkeypatch.setattr(sampler, "_closing", RecordedRests())
    sampler.watch("ann", 10)
    sampler.start()
    async with asyncio.timeout(TIMEOUT_S):
        while sampler.samples < 2:
            await asyncio.sleep(0.001)
    sampler.close()
    assert max(rest for rest in rests if rest is not None) < 0.2


async def test_nobody_is_found_who_is_not_watched_any_more(watched: SampledBots) -> None:
    watched.sampler.watch("ann", 10)
    watched.sampler.forget("ann")
    watched.processes.add(11, mib=312)
    await watched.samples()

    assert watched.found == []
    with pytest.raises(KeyError):
        watched.sampler.cpu_ms("ann")


async def test_a_finding_on_its_way_is_not_the_next_bots(watched: SampledBots) -> None:
    watched.watches(312)
    until = time.monotonic() + TIMEOUT_S
    while watched.sampler.samples < 3 and time.monotonic() < until:
        time.sleep(0.001)  # the loop must not run: it would tell

    assert watched.sampler.samples >= 3
    watched.processes.put(ProcessEntry(20, 1, "supervisor", 7, False))
    watched.sampler.watch("ann", 20)
    await watched.samples()

    assert watched.found == []


async def test_another_process_of_its_number_is_no_supervisor(watched: SampledBots) -> None:
    watched.sampler.watch("ann", 10)
    watched.processes.put(ProcessEntry(10, 1, "other", 99, False))
    watched.processes.times[10] = (0, 5000)
    watched.processes.add(11, mib=312)
    await watched.samples()

    assert watched.found == []
    assert watched.sampler.cpu_ms("ann") == 0


async def test_cpu_time_is_read_when_asked_and_never_runs_back(watched: SampledBots) -> None:
    watched.processes.times[10] = (70, 1000)  # a supervisor with a past
    watched.watches()
    await watched.samples()
    watched.processes.times[11] = (250, 0)

    assert watched.sampler.cpu_ms("ann") == 250
    watched.processes.remove(11)

    assert watched.sampler.cpu_ms("ann") == 250
    watched.processes.times[10] = (75, 1260)  # it has waited for it

    assert watched.sampler.cpu_ms("ann") == 260
    watched.processes.remove(10)
    await watched.samples()

    assert watched.sampler.cpu_ms("ann") == 260


async def test_a_child_nobody_waited_for_is_forgiven_after_two(watched: SampledBots) -> None:
    watched.processes.add(11)
    watched.processes.add(12, 11)
    watched.processes.times[12] = (500, 0)
    watched.sampler.watch("ann", 10)
    await watched.samples()
    watched.processes.remove(12)
    await watched.samples(4)
    watched.processes.times[11] = (0, 400)  # another one

    assert watched.sampler.cpu_ms("ann") == 900 - ROUNDING_MS


async def test_cpu_time_from_before_a_sample_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INTERVAL_S", TIMEOUT_S)

    watched = SampledBots()
    watched.processes.add(11)
    watched.processes.times[11] = (80, 0)
    watched.sampler.watch("ann", 10)

    assert watched.sampler.cpu_ms("ann") == 80, "else a decision would pay for it"
    assert watched.sampler.samples == 0
    watched.sampler.close()


@pytest.mark.parametrize(
    ("error", "line", "is_traced"),
    [
        (ValueError("a fault of ours"), "a sample failed", True),
        (
            OSError(errno.EMFILE, "Too many open files", "/proc"),
            "no bot's memory and CPU time can be sampled (too many open files, `ulimit -n` allows "
            "more): matches go on",
            False,
        ),
    ],
)
async def test_our_fault_is_logged(
    watched: SampledBots,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    line: str,
    is_traced: bool,
) -> None:
    with caplog.at_level(logging.ERROR):
        watched.processes.broken = error
        watched.watches(312)
        until = time.monotonic() + TIMEOUT_S
        while not caplog.records and time.monotonic() < until:
            await asyncio.sleep(0.001)
        watched.processes.broken = None

        assert await watched.finds() == ("ann", "memory 312 MiB > 256 MiB (sampled)")

    [record] = caplog.records
    assert (record.getMessage(), record.exc_info is not None) == (line, is_traced)


async def test_a_closed_sampler_tells_nothing_and_its_thread_has_ended() -> None:
    before = threading.active_count()
    watched = SampledBots()
    watched.watches(312)
    watched.sampler.close()
    await asyncio.sleep(0)

    assert threading.active_count() == before
    assert watched.found == []


async def test_what_its_processes_waited_for_a_core_is_asked_for(watched: SampledBots) -> None:
    watched.processes.add(11)
    watched.processes.add(12, 11)
    watched.processes.waited = {10: {10: 1000.0}, 11: {11: 30.0, 111: 5.0}, 12: {12: 7.0}}
    watched.sampler.watch("ann", 10)

    assert watched.sampler.waited_ms("ann") == 42, "without its supervisor"
    watched.processes.waited[11][11] = 40.0
    assert watched.sampler.waited_ms("ann") == 52


async def test_a_restless_bots_processes_are_put_behind_all_others_those_of_later_too(
    watched: SampledBots,
) -> None:
    watched.processes.add(11)
    is_restless: list[bool] = []
    watched.sampler.watch("ann", 10, lambda: bool(is_restless))
    await watched.samples()
    before = set(watched.processes.behind)
    is_restless.append(True)
    await watched.samples()
    watched.processes.add(12, 11)
    await watched.samples()

    assert (before, watched.processes.behind) == (set(), {11, 12})


# ---- What has not run is not read again


@pytest.fixture
def _never_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ALL", 1 << 30)


async def test_bots_and_others_that_rest_are_read_once_a_second(watched: SampledBots) -> None:
    watched.processes.has_clocks = True
    watched.processes.put(ProcessEntry(99, 1, "other", 5, False))
    watched.watches()
    await watched.samples(4)
    watched.processes.asked.clear()
    await watched.samples(2 * module.ALL)

    read = [asked for asked in watched.processes.asked if asked]
    assert set(map(frozenset, read)) == {frozenset({10, 11, 99})}
    assert 2 <= len(read) <= 3


@pytest.mark.usefixtures("_never_all")
async def test_a_bot_that_has_run_is_read_with_what_it_has_started(watched: SampledBots) -> None:
    watched.processes.has_clocks = True
    watched.processes.put(ProcessEntry(99, 1, "other", 5, False))
    watched.watches()
    await watched.samples(4)
    watched.processes.add(12, 11, mib=312)
    watched.processes.times[11] = 1.0, 0.0

    assert (await watched.finds())[0] == "ann"


@pytest.mark.usefixtures("_never_all")
async def test_a_child_that_starts_while_a_sample_is_taken_is_found_at_the_next(
    watched: SampledBots, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = watched.processes
    processes.has_clocks = True
    watched.watches()
    await watched.samples(4)
    listed = processes.pids

    def starts_just_now() -> set[int]:
        monkeypatch.setattr(processes, "pids", listed)
        before = listed()
        processes.add(12, 11, mib=312)
        processes.times[11] = 1.0, 0.0
        return before

    monkeypatch.setattr(processes, "pids", starts_just_now)
    assert (await watched.finds())[0] == "ann"


@pytest.mark.usefixtures("_never_all")
@pytest.mark.parametrize("moved", [{}, {10: (1.0, 0.0)}], ids=["its child ends", "it waits"])
async def test_who_takes_the_place_of_a_child_that_has_ended_is_found(
    watched: SampledBots, moved: dict[int, tuple[float, float]]
) -> None:
    watched.processes.has_clocks = True
    watched.processes.add(12, 11)
    watched.watches()
    await watched.samples(4)
    watched.processes.remove(11)
    watched.processes.put(ProcessEntry(12, 10, "bot", 6, False))  # adopted, and never runs
    watched.processes.held[12] = ProcessMemory(312 * MIB, 312 * MIB)
    watched.processes.times |= moved

    assert (await watched.finds())[0] == "ann"


async def test_an_id_that_became_a_bots_is_found_within_a_second(watched: SampledBots) -> None:
    watched.processes.has_clocks = True
    watched.processes.put(ProcessEntry(12, 1, "other", 5, False))
    watched.watches()
    await watched.samples(4)
    watched.processes.add(12, 11, mib=312)  # between two samples, and nothing else tells
    watched.processes.times[11] = 1.0, 0.0

    assert (await watched.finds())[0] == "ann"


async def test_cpu_time_is_read_again_only_of_what_has_run(watched: SampledBots) -> None:
    watched.sampler.close()
    processes = watched.processes
    processes.has_clocks = True
    processes.add(12, 11)
    processes.add(11)
    sampler = Sampler(LIMITS, lambda name, finding: None, processes)
    sampler.watch("ann", 10)
    sampler.cpu_ms("ann")
    processes.asked_cpu.clear()
    processes.times[11] = 5.0, 0.0

    assert sampler.cpu_ms("ann") == 5.0
    assert processes.asked_cpu == [11]
    processes.times[11] = 9.0, 7.0  # it has waited for a child

    assert sampler.cpu_ms("ann") == 16.0
    assert processes.asked_cpu == [11, 11]
