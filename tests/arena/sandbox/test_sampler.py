"""What is found in a tree of processes, and what its CPU time adds up to; the systems' own tables are in tests/e2e."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import threading
import time
from collections.abc import Collection, Mapping

import pytest

from arena.engine.verdict import Finding
from arena.sandbox import sampler as module
from arena.sandbox.process_table import Cpu, Entry, Memory, probe
from arena.sandbox.sampler import (
    MIB,
    Meter,
    Peak,
    ProcessReading,
    Sampler,
    judge,
    tree_of,
)
from protocol.messages import Ending, Limits, Mechanism

LIMITS = Limits(memory_mib=256, processes=4)
TIMEOUT_S = 20.0


def reading(
    pid: int, mib: float, *, peak: float = 0, pss: float | None = None
) -> ProcessReading:
    return ProcessReading(
        pid,
        int(mib * MIB),
        int(max(mib, peak) * MIB),
        None if pss is None else int(pss * MIB),
    )


def text_of(finding: Finding | None) -> str:
    return "" if finding is None else finding.text


# ---- judge


def test_a_process_at_the_limit_is_within_it() -> None:
    assert judge([reading(1, 256)], LIMITS) is None


def test_a_process_over_the_limit_is_found_by_its_peak_though_it_is_small_again() -> (
    None
):
    finding = judge([reading(1, 20, peak=312)], LIMITS)

    assert finding == Finding(
        kind=Ending.MEMORY,
        text="memory 312 MiB > 256 MiB (sampled)",
        mechanism=Mechanism.SAMPLED,
    )


def test_a_page_over_the_limit_is_not_told_as_equal_to_it() -> None:
    finding = judge([reading(1, 256 + 1 / 256)], LIMITS)

    assert text_of(finding) == "memory 257 MiB > 256 MiB (sampled)"


def test_the_largest_process_is_the_one_that_is_told() -> None:
    finding = judge([reading(1, 300), reading(2, 310)], LIMITS)

    assert text_of(finding) == "memory 310 MiB > 256 MiB (sampled)"


def test_a_tree_is_not_judged_by_pages_that_may_be_shared() -> None:
    assert judge([reading(1, 200), reading(2, 200)], LIMITS) is None


def test_a_tree_that_shares_its_pages_is_within_the_limit() -> None:
    tree = [reading(1, 200, pss=105), reading(2, 200, pss=105)]

    assert judge(tree, LIMITS) is None


def test_a_tree_that_holds_too_much_together_is_found() -> None:
    tree = [reading(1, 140, pss=130), reading(2, 140, pss=130)]

    assert text_of(judge(tree, LIMITS)) == "memory 260 MiB > 256 MiB (sampled)"


def test_a_share_that_is_not_known_finds_nothing() -> None:
    tree = [reading(1, 250, pss=250), reading(2, 140)]

    assert judge(tree, LIMITS) is None


def test_one_process_too_many_is_found() -> None:
    tree = [reading(pid, 1) for pid in range(5)]

    assert judge(tree[:4], LIMITS) is None
    assert judge(tree, LIMITS) == Finding(
        kind=Ending.PROCESSES,
        text="processes 5 > 4 (sampled)",
        mechanism=Mechanism.SAMPLED,
    )


def test_the_sandbox_is_no_process_of_the_bot_but_its_memory_is() -> None:
    tree = [reading(pid, 1)._replace(is_structure=pid < 2) for pid in range(6)]
    fat = reading(1, 300)._replace(is_structure=True)

    assert judge(tree, LIMITS) is None
    assert text_of(judge([*tree, fat], LIMITS)) == "memory 300 MiB > 256 MiB (sampled)"


def test_nothing_is_found_where_nothing_is() -> None:
    assert judge([], LIMITS) is None


# ---- Peak


def test_a_peak_is_the_most_of_a_process_or_of_all_at_one_moment() -> None:
    one = Peak().and_now([reading(1, 20, peak=300)])
    two = Peak().and_now([reading(1, 200), reading(2, 150)])

    assert (one.memory_bytes, one.processes) == (300 * MIB, 1)
    assert (two.memory_bytes, two.processes) == (350 * MIB, 2)


def test_a_peak_stays_when_the_processes_have_gone() -> None:
    peak = Peak().and_now([reading(1, 20), reading(2, 20)])

    assert peak.and_now([]) == peak
    assert peak.and_now([reading(1, 50)]) == Peak(50 * MIB, 2)


def test_the_sandbox_is_none_of_the_processes_at_the_peak() -> None:
    bwrap = reading(1, 1)._replace(is_structure=True)

    assert Peak().and_now([bwrap, reading(2, 20)]).processes == 1


# ---- tree_of


def table(*lines: str) -> list[Entry]:
    """Lines like `11 < 10 name`, with a Z behind for a zombie."""
    entries = []
    for line in lines:
        pid, _, parent, name, *zombie = line.split()
        entries.append(Entry(int(pid), int(parent), name, 0.0, bool(zombie)))
    return entries


def pids(keeper: int, *lines: str) -> tuple[list[int], set[int]]:
    tree, structure = tree_of(keeper, table(*lines))
    return [entry.pid for entry in tree], structure


def test_a_tree_is_all_that_is_below_the_keeper_with_parents_first() -> None:
    lines = ("5 < 30 grandchild", "10 < 1 keeper", "30 < 10 bot", "31 < 10 orphan")

    assert pids(10, *lines, "99 < 1 other", "98 < 99 others") == ([30, 31, 5], set())


def test_a_keeper_that_is_gone_has_no_tree() -> None:
    assert pids(10, "30 < 1 bot") == ([], set())


def test_a_table_that_was_read_while_numbers_were_used_again_is_no_loop() -> None:
    assert pids(10, "10 < 12 keeper", "11 < 10 a", "12 < 11 b", "7 < 7 c") == (
        [11, 12],
        set(),
    )


def test_the_sandbox_is_two_processes_between_keeper_and_bot() -> None:
    lines = ("11 < 10 bwrap", "12 < 11 bwrap", "13 < 12 bot", "14 < 12 orphan")

    assert pids(10, *lines) == ([11, 12, 13, 14], {11, 12})


def test_a_bot_that_calls_itself_like_the_sandbox_hides_nobody_else() -> None:
    lines = ("11 < 10 bwrap", "12 < 11 bwrap", "13 < 12 bwrap", "14 < 13 bwrap")

    assert pids(10, *lines)[1] == {11, 12}
    assert pids(10, "11 < 10 bot", "12 < 11 bwrap")[1] == set()
    assert pids(10, "11 < 10 bwrap", "12 < 10 bwrap")[1] == set()
    assert pids(10, "11 < 10 bwrap", "12 < 11 bwrap", "13 < 11 bwrap")[1] == {11}


def test_a_zombie_beside_the_sandbox_does_not_hide_it() -> None:
    assert pids(10, "9 < 10 true Z", "11 < 10 bwrap", "12 < 11 bwrap")[1] == {11, 12}


# ---- Meter


def metered(*samples: Mapping[int, tuple[float, float]]) -> list[float]:
    """What a meter shows after each sample of {pid: (own, reaped)}."""
    meter = Meter()
    shown = []
    for sample in samples:
        meter.read(Cpu(pid, 0, *times) for pid, times in sample.items())
        meter.forgive()
        shown.append(meter.total_ms)
    return shown


def test_processes_add_up() -> None:
    assert metered({1: (10, 0)}, {1: (15, 0), 2: (5, 0)}) == [10, 20]


def test_a_child_that_was_waited_for_is_not_counted_twice() -> None:
    assert metered(
        {1: (10, 0), 2: (500, 0)},
        {1: (10, 540)},  # it took 40 ms more before its end
        {1: (10, 540)},
    ) == [510, 550, 550]


def test_a_child_that_its_parent_has_not_waited_for_yet_is_not_counted_twice() -> None:
    assert metered({1: (0, 0), 2: (500, 0)}, {1: (0, 0)}, {1: (0, 500)}) == [500] * 3


def test_a_child_that_nobody_waits_for_is_not_forgotten() -> None:
    assert metered({1: (0, 0), 2: (500, 0)}, {1: (0, 0)}, {1: (0, 0)}) == [500] * 3


def test_a_child_that_nobody_waited_for_does_not_pay_for_later_ones() -> None:
    shown = metered(
        {1: (0, 0), 2: (500, 0)},
        *[{1: (0, 0)}] * 5,
        {1: (0, 400)},  # another one, which was never seen
    )

    assert shown[-2] == 500
    assert shown[-1] == pytest.approx(900, abs=module.ROUNDING_MS)


def test_a_child_that_no_sample_has_seen_counts_when_it_was_waited_for() -> None:
    assert metered({1: (10, 0)}, {1: (10, 80)}) == [10, 90]


def test_a_grandchild_is_counted_once_on_its_way_up() -> None:
    assert (
        metered(
            {1: (0, 0), 2: (100, 0), 3: (200, 0)},
            {1: (0, 0), 2: (100, 200)},
            {1: (0, 300)},
        )
        == [300] * 3
    )


def test_the_kernels_rounding_is_not_charged_child_by_child() -> None:
    meter = Meter()
    for number in range(1, 101):  # each takes 15 ms, of which the kernel shows ticks
        seen = 15.0 * (number - 1) // 10 * 10
        meter.read([Cpu(1, 0, 0, seen), Cpu(100 + number, 0, 15, 0)])
        meter.forgive()
        for _ in range(3):
            meter.read([Cpu(1, 0, 0, 15.0 * number // 10 * 10)])
            meter.forgive()

    assert meter.total_ms == pytest.approx(1500, abs=2 * module.ROUNDING_MS)


def test_a_number_that_is_used_again_is_another_process() -> None:
    meter = Meter()
    meter.read([Cpu(1, 100, 50, 0)])
    meter.read([Cpu(1, 200, 10, 0)])

    assert meter.total_ms == 60


def test_a_clock_that_is_read_coarser_for_once_does_not_count_twice() -> None:
    assert metered({1: (57, 0)}, {1: (50, 0)}, {1: (58, 0)}) == [57, 57, 58]


# ---- Sampler


class Pretended:
    """A system's processes, as a test wants them; `pss` is not asked for without need."""

    def __init__(self) -> None:
        self.entries = {10: Entry(10, 1, "keeper", 5, False)}
        self.held: dict[int, Memory] = {}
        self.shares: dict[int, int] = {}
        self.opened: dict[int, dict[int, int]] = {}
        self.mapped: dict[int, int] = {}
        self.in_files = 0
        self.asked_files = 0
        self.times: dict[int, tuple[float, float]] = {}
        self.asked_pss = 0
        self.broken = False

    def add(self, pid: int, parent: int = 10, mib: int = 10, *, pss: int = 0) -> None:
        self.held[pid] = Memory(mib * MIB, mib * MIB)
        self.shares[pid] = pss * MIB
        self.put(Entry(pid, parent, "bot", 6, False))

    def put(self, entry: Entry) -> None:
        self.entries = {**self.entries, entry.pid: entry}  # a thread reads the old one

    def remove(self, pid: int) -> None:
        self.entries = {key: it for key, it in self.entries.items() if key != pid}

    def table(self) -> Mapping[int, Entry]:
        if self.broken:
            raise ValueError("a fault of ours")
        return self.entries

    def memory(self, pid: int) -> Memory | None:
        return self.held.get(pid)

    def pss(self, pid: int, but: Collection[int] = ()) -> int | None:
        self.asked_pss += 1
        return self.shares.get(pid, 0) - (self.mapped.get(pid, 0) if but else 0)

    def most_in_files(self) -> int:
        return self.in_files

    def files(self, pid: int) -> Mapping[int, int]:
        self.asked_files += 1
        return self.opened.get(pid, {})

    def cpu(self, pid: int) -> Cpu | None:
        if pid not in self.entries:
            return None
        return Cpu(pid, self.entries[pid].started, *self.times.get(pid, (0, 0)))


class Watched:
    """A sampler over pretended processes, and what it has found."""

    def __init__(self) -> None:
        self.processes = Pretended()
        self.found: list[tuple[str, str]] = []
        self.threads: set[int] = set()
        self._event = asyncio.Event()
        self.sampler = Sampler(LIMITS, self._note, self.processes)
        self.sampler.start()

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


def test_a_finding_is_told_once_and_in_the_event_loop() -> None:
    async def main() -> None:
        watched = Watched()
        watched.processes.add(11, mib=312)
        watched.sampler.watch("ann", 10)
        await watched.finds()
        await watched.samples()
        watched.sampler.close()

        assert watched.found == [("ann", "memory 312 MiB > 256 MiB (sampled)")]
        assert watched.threads == {threading.get_ident()}

    asyncio.run(main())


def test_a_hog_is_found_in_a_grandchild() -> None:
    async def main() -> None:
        watched = Watched()
        watched.processes.add(11)
        watched.processes.add(12, 11)
        watched.processes.add(13, 12, mib=300)
        watched.sampler.watch("ann", 10)

        assert (await watched.finds())[1] == "memory 300 MiB > 256 MiB (sampled)"
        watched.sampler.close()

    asyncio.run(main())


def test_a_tree_is_found_when_two_samples_agree() -> None:
    async def main() -> None:
        watched = Watched()
        watched.processes.add(11, mib=140, pss=130)
        watched.processes.add(12, 11, mib=140, pss=130)
        watched.sampler.watch("ann", 10)

        assert (await watched.finds())[1] == "memory 260 MiB > 256 MiB (sampled)"
        assert watched.processes.asked_pss == 4
        watched.sampler.close()

    asyncio.run(main())


def test_a_child_that_has_its_parents_memory_for_a_moment_is_nothing() -> None:
    class Moment(Pretended):
        def pss(self, pid: int, but: Collection[int] = ()) -> int | None:
            self.remove(12)  # it has executed another program, and ended
            return super().pss(pid, but)

    async def main() -> None:
        watched = Watched()
        watched.sampler.close()
        found: list[str] = []
        moment = Moment()
        moment.add(11, mib=140, pss=130)
        moment.add(12, 11, mib=140, pss=130)
        sampler = Sampler(LIMITS, lambda name, finding: found.append(name), moment)
        sampler.start()
        sampler.watch("ann", 10)
        async with asyncio.timeout(TIMEOUT_S):
            while sampler.samples < 5:
                await asyncio.sleep(0.001)
        sampler.close()

        assert moment.asked_pss == 2
        assert found == []

    asyncio.run(main())


def test_what_is_in_files_counts_once_however_many_have_them_open() -> None:
    async def main() -> None:
        watched = Watched()
        watched.processes.add(11, mib=20, pss=15)
        watched.processes.add(12, 11, mib=20, pss=15)
        watched.processes.opened = {
            11: {7: 140 * MIB},
            12: {7: 140 * MIB, 8: 100 * MIB},
        }
        watched.processes.in_files = 240 * MIB
        watched.sampler.watch("ann", 10)

        assert (await watched.finds())[1] == "memory 270 MiB > 256 MiB (sampled)"
        watched.sampler.close()

    asyncio.run(main())


def test_what_is_in_a_file_and_mapped_counts_once() -> None:
    async def main() -> None:
        watched = Watched()
        watched.processes.add(11, mib=160, pss=160)
        watched.processes.mapped = {11: 150 * MIB}
        watched.processes.opened = {11: {7: 150 * MIB}}
        watched.processes.in_files = 150 * MIB
        watched.sampler.watch("ann", 10)
        await watched.samples()
        watched.sampler.close()

        assert watched.found == []
        assert watched.processes.asked_pss >= 2

    asyncio.run(main())


def test_nobody_looks_for_files_where_there_are_too_few_to_matter() -> None:
    async def main() -> None:
        watched = Watched()
        watched.processes.add(11, mib=100)
        watched.processes.in_files = 156 * MIB
        watched.sampler.watch("ann", 10)
        await watched.samples()
        assert watched.processes.asked_files == 0

        watched.processes.in_files = 157 * MIB
        await watched.samples()
        watched.sampler.close()

        assert watched.processes.asked_files > 0
        assert watched.found == []

    asyncio.run(main())


def test_zombies_do_not_count() -> None:
    async def main() -> None:
        watched = Watched()
        for pid in range(20, 30):
            watched.processes.add(pid)
            zombie = watched.processes.entries[pid]._replace(is_zombie=True)
            watched.processes.put(zombie)
        watched.sampler.watch("ann", 10)
        await watched.samples()
        watched.sampler.close()

        assert watched.found == []

    asyncio.run(main())


def test_a_sample_that_waited_for_a_core_is_not_followed_by_a_long_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else whoever keeps the machine busy is found too late."""
    rests: list[float | None] = []

    class Recorded(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            rests.append(timeout)
            return super().wait(0.001)

    async def main() -> None:
        watched = Watched()
        watched.sampler.close()
        monkeypatch.setattr(watched.processes, "table", waits_for_a_core)
        sampler = Sampler(LIMITS, lambda name, finding: None, watched.processes)
        monkeypatch.setattr(sampler, "_closing", Recorded())
        sampler.watch("ann", 10)
        sampler.start()
        async with asyncio.timeout(TIMEOUT_S):
            while sampler.samples < 2:
                await asyncio.sleep(0.001)
        sampler.close()

    def waits_for_a_core() -> Mapping[int, Entry]:
        threading.Event().wait(0.2)
        return {}

    asyncio.run(main())
    assert max(rest for rest in rests if rest is not None) < 0.2


def test_nobody_is_found_who_is_not_watched_any_more() -> None:
    async def main() -> None:
        watched = Watched()
        watched.sampler.watch("ann", 10)
        watched.sampler.forget("ann")
        watched.processes.add(11, mib=312)
        await watched.samples()
        watched.sampler.close()

        assert watched.found == []
        with pytest.raises(KeyError):
            watched.sampler.cpu_ms("ann")

    asyncio.run(main())


def test_a_finding_that_is_on_its_way_is_not_the_next_bots_of_that_name() -> None:
    async def main() -> None:
        watched = Watched()
        watched.processes.add(11, mib=312)
        watched.sampler.watch("ann", 10)
        until = time.monotonic() + TIMEOUT_S
        while watched.sampler.samples < 3 and time.monotonic() < until:
            time.sleep(0.001)  # the loop must not run: it would tell

        assert watched.sampler.samples >= 3
        watched.processes.put(Entry(20, 1, "keeper", 7, False))
        watched.sampler.watch("ann", 20)
        await watched.samples()
        watched.sampler.close()

        assert watched.found == []

    asyncio.run(main())


def test_another_process_with_the_keepers_number_is_not_the_keeper() -> None:
    async def main() -> None:
        watched = Watched()
        watched.sampler.watch("ann", 10)
        watched.processes.put(Entry(10, 1, "other", 99, False))
        watched.processes.times[10] = (0, 5000)
        watched.processes.add(11, mib=312)
        await watched.samples()

        assert watched.found == []
        assert watched.sampler.cpu_ms("ann") == 0
        watched.sampler.close()

    asyncio.run(main())


def test_cpu_time_is_read_when_it_is_asked_for_and_never_runs_backwards() -> None:
    async def main() -> None:
        watched = Watched()
        watched.processes.times[10] = (70, 1000)  # a keeper with a past
        watched.processes.add(11)
        watched.sampler.watch("ann", 10)
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
        watched.sampler.close()

    asyncio.run(main())


def test_a_child_that_nobody_waited_for_is_forgiven_after_two_samples() -> None:
    async def main() -> None:
        watched = Watched()
        watched.processes.add(11)
        watched.processes.add(12, 11)
        watched.processes.times[12] = (500, 0)
        watched.sampler.watch("ann", 10)
        await watched.samples()
        watched.processes.remove(12)
        await watched.samples(4)
        watched.processes.times[11] = (0, 400)  # another one

        assert watched.sampler.cpu_ms("ann") == 900 - module.ROUNDING_MS
        watched.sampler.close()

    asyncio.run(main())


def test_cpu_time_that_was_used_before_the_first_sample_is_known_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "INTERVAL_S", TIMEOUT_S)

    async def main() -> None:
        watched = Watched()
        watched.processes.add(11)
        watched.processes.times[11] = (80, 0)
        watched.sampler.watch("ann", 10)

        assert watched.sampler.cpu_ms("ann") == 80, "else a decision would pay for it"
        assert watched.sampler.samples == 0
        watched.sampler.close()

    asyncio.run(main())


def test_a_fault_of_ours_is_logged_once_and_is_nobodys_offence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        watched = Watched()
        watched.processes.broken = True
        watched.processes.add(11, mib=312)
        watched.sampler.watch("ann", 10)
        until = time.monotonic() + TIMEOUT_S
        while not caplog.records and time.monotonic() < until:
            await asyncio.sleep(0.001)
        watched.processes.broken = False

        assert await watched.finds() == ("ann", "memory 312 MiB > 256 MiB (sampled)")
        watched.sampler.close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())

    [record] = caplog.records
    assert record.exc_info is not None


def test_a_closed_sampler_tells_nothing_and_its_thread_has_ended() -> None:
    async def main() -> None:
        before = threading.active_count()
        watched = Watched()
        watched.processes.add(11, mib=312)
        watched.sampler.watch("ann", 10)
        watched.sampler.close()
        await asyncio.sleep(0)

        assert threading.active_count() == before
        assert watched.found == []

    asyncio.run(main())


def test_a_system_without_a_reader_finds_nothing_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("arena.sandbox.process_table._has_proc", lambda: False)
    monkeypatch.setattr(importlib, "import_module", missing)

    async def main() -> None:
        sampler = Sampler(LIMITS, lambda name, finding: None)
        sampler.start()
        sampler.watch("ann", os.getpid())

        assert sampler.cpu_ms("ann") == 0
        assert sampler.inactive == probe()
        sampler.close()

    asyncio.run(main())
    assert "pip install 'card-arena[psutil]'" in (probe() or "")
