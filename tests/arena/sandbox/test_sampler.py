"""When the sampler samples, what it reads, and whom it tells.

What the figures mean is in test_process_usage, real systems are in tests/e2e. In most tests words
say what happens on a machine where `ann` is the bot below process 10:

    11=140, 12<11=140/130    a process with so many MiB, in the place of another; its parent is 10
                             unless it is said, and its share of the pages 0
    99<1, 10<1@99            one without memory, such as somebody else's; it started at that time
    -12                      it has ended
    starts=…, vanish=12      it starts, or has ended, while a sample is taken
    cpu11=250, cpu10=5+90    the ms that it used, and those of its children that it has waited for
    waits11=30,5             for how many ms its threads have waited for a core
    files11=7:140, mapped11=7    the MiB of its memfds by inode; of what its share contains
    machine=240              what all files in memory hold
    clocks, rarely           the system has a clock for each process; not all is read now and then
    watch, watch=20, forget  ann is watched, below another supervisor, or no more
    behind                   it is restless from now on
    x3, X                    samples; one after which the event loop has no turn
    cpu?250, waits?42, shares?2, looked?0, behind?11,12    what the sampler knows or has asked for

Behind `>` stands what is told of ann.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import re
import threading
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
PROCESS = re.compile(r"(\d+)(?:<(\d+))?(?:=(\d+)(?:/(\d+))?)?(?:@(\d+))?")
ANN_312 = "memory 312 MiB > 256 MiB (sampled)"


class FakeProcesses(Processes):
    """A system's processes, as words have them."""

    def __init__(self) -> None:
        self.all = {10: ProcessEntry(10, 1, "supervisor", 5, False)}
        self.held: dict[int, ProcessMemory] = {}
        self.shares: dict[int, int] = {}
        self.opened: dict[int, dict[int, int]] = {}
        self.mapped: dict[int, int] = {}
        self.times: dict[int, tuple[float, float]] = {}
        self.waited: dict[int, dict[int, float]] = {}
        self.in_files = 0
        self.has_clocks = False
        self.asked: dict[str, list[object]] = {"entries": [], "pss": [], "files": [], "cpu": []}
        self.behind: set[int] = set()
        self.on_pids: Callable[[], object] = lambda: None
        self.on_pss: Callable[[], object] = lambda: None

    def put(self, word: str) -> None:
        found = PROCESS.fullmatch(word)
        assert found, word
        pid, parent, mib, share, started = (int(text or 0) for text in found.groups())
        self.all[pid] = ProcessEntry(pid, parent or 10, "bot", started or 6, False)
        if mib:
            self.held[pid] = ProcessMemory(mib * MIB, mib * MIB)
            self.shares[pid] = share * MIB

    def pids(self) -> set[int]:
        before = set(self.all)
        self.on_pids()
        return before

    def entries(self, pids: Iterable[int]) -> Mapping[int, ProcessEntry]:
        self.asked["entries"].append({*pids})
        return {pid: self.all[pid] for pid in pids if pid in self.all}

    def clock(self, pid: int) -> float | None:
        return self.times.get(pid, (0, 0))[0] if self.has_clocks and pid in self.all else None

    def memory(self, pid: int) -> ProcessMemory | None:
        return self.held.get(pid)

    def pss(self, pid: int, but: Collection[int] = ()) -> int | None:
        self.on_pss()
        self.asked["pss"].append(pid)
        return self.shares.get(pid, 0) - (self.mapped.get(pid, 0) if but else 0)

    def most_in_files(self) -> int:
        return self.in_files

    def files(self, pid: int) -> Mapping[int, int]:
        self.asked["files"].append(pid)
        return self.opened.get(pid, {})

    def cpu(self, pid: int) -> ProcessCpu | None:
        self.asked["cpu"].append(pid)
        entry = self.all.get(pid)
        return entry and ProcessCpu(pid, entry.started, *self.times.get(pid, (0, 0)))

    def waits(self, pid: int, *, are_behind: bool = False) -> Mapping[int, float]:
        return self.waited.get(pid, {}) if pid in self.all else {}

    def put_behind(self, pid: int) -> None:
        self.behind.add(pid)


class SampledMachine:
    """A sampler over pretended processes, and what it has found."""

    def __init__(self) -> None:
        self.processes = FakeProcesses()
        self.found: list[str] = []
        self.threads: set[int] = set()
        self.event = asyncio.Event()
        self.is_behind = False
        self.sampler = Sampler(LIMITS, self._note, self.processes)

    async def does(self, words: str) -> None:
        for word in words.split():
            name, number, sign, about = re.fullmatch(r"([a-zX]*)(\d*)([=?]?)(.*)", word).groups()  # type: ignore[union-attr]
            if sign == "?":
                assert self._knows(name) == about, word
            elif not name and word.startswith("-"):
                del self.processes.all[int(word[1:])]
            elif not name:
                self.processes.put(word)
            elif name in ("x", "X"):
                for _ in range(int(number or 1)):
                    self.sampler.sample()
                    if name == "x":
                        await asyncio.sleep(0)
            else:
                self._changes(name, int(number or 0), about)

    def _changes(self, name: str, pid: int, about: str) -> None:
        processes = self.processes
        match name:
            case "cpu":
                own, _, reaped = about.partition("+")
                processes.times[pid] = float(own), float(reaped or 0)
            case "waits":
                waited = enumerate(map(float, about.split(",")))
                processes.waited[pid] = {100 * pid + thread: ms for thread, ms in waited}
            case "files":
                sizes = (each.split(":") for each in about.split(","))
                processes.opened[pid] = {int(inode): int(mib) * MIB for inode, mib in sizes}
            case "mapped":
                processes.mapped[pid] = int(about) * MIB
            case "machine":
                processes.in_files = int(about) * MIB
            case "clocks":
                processes.has_clocks = True
            case "vanish":
                processes.on_pss = lambda: processes.all.pop(int(about), None)
            case "starts":
                processes.on_pids = lambda: self._starts(about)
            case "watch":
                self.sampler.watch("ann", int(about or 10), lambda: self.is_behind)
            case "forget":
                self.sampler.forget("ann")
            case "behind":
                self.is_behind = True
            case _:
                raise AssertionError(name)

    def _starts(self, word: str) -> None:
        self.processes.put(word)
        self.processes.times[11] = 1.0, 0.0
        self.processes.on_pids = lambda: None

    def _knows(self, name: str) -> str:
        match name:
            case "cpu":
                return f"{self.sampler.cpu_ms('ann'):g}"
            case "waits":
                return f"{self.sampler.waited_ms('ann'):g}"
            case "behind":
                return ",".join(map(str, sorted(self.processes.behind)))
        return str(len(self.processes.asked[{"shares": "pss", "looked": "files"}[name]]))

    def _note(self, name: str, finding: Finding) -> None:
        assert name == "ann"
        self.found.append(finding.text)
        self.threads.add(threading.get_ident())
        self.event.set()


@pytest.fixture
async def machine(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SampledMachine]:
    monkeypatch.setattr(module, "INTERVAL_S", 0.002)
    monkeypatch.setattr(module, "PAUSE_S", 0.002)
    machine = SampledMachine()
    yield machine
    machine.sampler.close()


ROWS = {
    "a finding is told once": f"11=312 watch x3 > {ANN_312}",
    "a tree is judged by its shares at two samples": (
        "11=140/130 12<11=140/130 watch x shares?2 x2 shares?4 > memory 260 MiB > 256 MiB (sampled)"
    ),
    "also if nothing has run since the first": (
        "clocks 11=140/130 12<11=10 watch x4 12<11=140/130 cpu12=1 x2 "
        "> memory 260 MiB > 256 MiB (sampled)"
    ),
    "what is in files counts once, however many have them open": (
        "11=20/15 12<11=20/15 files11=7:140 files12=7:140,8:100 machine=240 watch x2 "
        "> memory 270 MiB > 256 MiB (sampled)"
    ),
    "files are looked for where they matter": (
        "machine=156 11=100 watch x3 looked?0 machine=157 x3 looked?3"
    ),
    "what is in a file and mapped counts once": (
        "machine=157 11=160/160 mapped11=150 files11=7:150 watch x3 shares?3"
    ),
    "a child with its parent's memory is nothing": (
        "vanish=12 11=140/130 12<11=140/130 watch x5 shares?2"
    ),
    "nobody is found who is not watched any more": "watch forget 11=312 x3",
    "a finding on its way is not the next bot's": "11=312 watch X 20<1@7 watch=20 x3",
    "another process of its number is no supervisor": (
        "watch 10<1@99 cpu10=0+5000 11=312 x3 cpu?0"
    ),
    # --- CPU time and waits ---
    "cpu time is read when asked, also of who has ended": (
        "cpu10=70+1000 11=10 watch x3 cpu11=250 cpu?250 -11 cpu?250 cpu10=75+1260 cpu?260 "
        "-10 x3 cpu?260"
    ),
    "a child that nobody waited for is forgiven after two": (
        f"11=10 12<11=10 cpu12=500 watch x3 -12 x4 cpu11=0+400 cpu?{900 - ROUNDING_MS:g}"
    ),
    "cpu time before the first sample is known, or a decision would pay": (
        "11=10 cpu11=80 watch cpu?80"
    ),
    "waits are those of its processes, without its supervisor's": (
        "11=10 12<11=10 waits10=1000 waits11=30,5 waits12=7 watch waits?42 waits11=40,5 waits?52"
    ),
    "the processes of a restless bot are put behind, those of later too": (
        "11=10 watch x3 behind? behind x3 12<11=10 x behind?11,12"
    ),
    # --- what has not run is not read again ---
    "who has run is read with what it has started": (
        f"clocks 99<1 11=10 watch x4 12<11=312 cpu11=1 x > {ANN_312}"
    ),
    "a child that starts during a sample is found at the next": (
        f"clocks 11=10 watch x4 starts=12<11=312 x2 > {ANN_312}"
    ),
    "who takes the place of a child that has ended is found": (
        f"clocks 11=10 12<11=312 watch x0 -11 12<10=312 x2 > {ANN_312}"
    ),
    "also if its supervisor waits": f"clocks 11=10 watch x4 -11 12=312 cpu10=1 x2 > {ANN_312}",
}


@pytest.mark.parametrize("title", ROWS)
async def test_what_is_sampled(
    title: str, machine: SampledMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, _, told = ROWS[title].partition(" > ")
    if "clocks" in words:
        monkeypatch.setattr(module, "ALL", 1 << 30)
    await machine.does(words)

    assert "; ".join(machine.found) == told


async def test_bots_and_others_that_rest_are_read_once_a_second(machine: SampledMachine) -> None:
    await machine.does("clocks 99<1 11=10 watch x4")
    machine.processes.asked["entries"].clear()
    await machine.does(f"x{2 * module.ALL}")

    assert [asked for asked in machine.processes.asked["entries"] if asked] == [{10, 11, 99}] * 2


async def test_an_id_that_became_a_bots_is_found_within_a_second(machine: SampledMachine) -> None:
    await machine.does(f"clocks 12<1 11=10 watch x4 12<11=312 cpu11=1 x{module.ALL}")

    assert machine.found == [ANN_312]


async def test_cpu_time_is_read_again_only_of_what_has_run(machine: SampledMachine) -> None:
    await machine.does("clocks 11=10 12<11=10 watch cpu?0")
    machine.processes.asked["cpu"].clear()
    await machine.does("cpu11=5 cpu?5 cpu11=9+7 cpu?16")

    assert machine.processes.asked["cpu"] == [11, 11]


async def test_nobody_knows_a_bot_that_is_not_watched(machine: SampledMachine) -> None:
    await machine.does("watch forget")

    with pytest.raises(KeyError):
        machine.sampler.cpu_ms("ann")


# ---- The thread


async def test_a_thread_samples_and_the_event_loop_tells(machine: SampledMachine) -> None:
    await machine.does("11=312 watch")
    machine.sampler.start()
    async with asyncio.timeout(TIMEOUT_S):
        await machine.event.wait()

    assert machine.threads == {threading.get_ident()}
    assert machine.found == [ANN_312]


async def test_a_sample_that_waited_is_soon_followed(
    machine: SampledMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whoever keeps the machine busy is found too late."""
    rests: list[float | None] = []

    class RecordedRests(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            rests.append(timeout)
            return super().wait(0.001)

    monkeypatch.setattr(machine.sampler, "_closing", RecordedRests())
    machine.processes.on_pids = lambda: threading.Event().wait(0.2)  # for a core
    await machine.does("watch")
    machine.sampler.start()
    async with asyncio.timeout(TIMEOUT_S):
        while machine.sampler.samples < 2:
            await asyncio.sleep(0.001)

    assert max(rest for rest in rests if rest is not None) < 0.2


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
async def test_our_fault_is_logged_and_it_goes_on(
    machine: SampledMachine,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    line: str,
    is_traced: bool,
) -> None:
    def fails() -> None:
        if not caplog.records:
            raise error

    machine.processes.on_pids = fails
    with caplog.at_level(logging.ERROR):
        await machine.does("11=312 watch")
        machine.sampler.start()
        async with asyncio.timeout(TIMEOUT_S):
            await machine.event.wait()

    [record] = caplog.records
    assert (record.getMessage(), record.exc_info is not None) == (line, is_traced)


async def test_a_closed_sampler_tells_nothing_and_its_thread_has_ended() -> None:
    before = threading.active_count()
    machine = SampledMachine()
    machine.sampler.start()
    await machine.does("11=312 watch")
    machine.sampler.close()
    await asyncio.sleep(0)

    assert threading.active_count() == before
    assert machine.found == []
