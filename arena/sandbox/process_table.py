"""Reads the system's process table: memory, parents and CPU time of processes.

There are two readers with the same methods (`Processes`): one for Linux's /proc, and one by
`psutil` for other systems, which takes three to ten times as long and knows only half of the
figures. Neither raises an error for a process that has ended meanwhile. What the figures mean for a
bot is decided in `arena/sandbox/process_usage.py`.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import cache
from typing import NamedTuple

__all__ = [
    "LinuxProcesses",
    "ProcessCpu",
    "ProcessEntry",
    "ProcessMemory",
    "Processes",
    "PsutilProcesses",
    "cpu_resolution_ms",
    "knows_waits",
    "parse_stat",
    "probe",
    "reader",
]

_MEMFD = "/memfd:"  # begins the link of a memfd in /proc/PID/fd
# A mapping of a memfd in /proc/PID/smaps: its inode and, some lines below, its PSS.
_MAPPED_MEMFD = re.compile(
    rb"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ (\d+) +/memfd:.*(?:\n[A-Z].*)*?\nPss: +(\d+) kB",
    re.MULTILINE,
)


class ProcessEntry(NamedTuple):
    """A line of the process table; `started` tells it from a later process with the same id."""

    pid: int
    parent: int
    name: str
    started: float
    is_zombie: bool


class ProcessMemory(NamedTuple):
    """The memory of a process, and its peak (the same where the system does not know the peak)."""

    rss_bytes: int
    peak_bytes: int


class ProcessCpu(NamedTuple):
    """CPU time of a process: its own, and that of its reaped children with their descendants."""

    pid: int
    started: float
    own_ms: float
    reaped_ms: float


class Processes(ABC):
    """A reader of the system's processes; None always means that the process is gone.

    Methods with a body here return the answer of a system that does not have the figure.
    """

    @abstractmethod
    def pids(self) -> set[int]:
        """The ids of all processes of the system."""

    @abstractmethod
    def entries(self, pids: Iterable[int]) -> Mapping[int, ProcessEntry]:
        """The processes with these ids that exist."""

    @abstractmethod
    def memory(self, pid: int) -> ProcessMemory | None: ...

    @abstractmethod
    def pss(self, pid: int, but: Collection[int] = ()) -> int | None:
        """The process's proportional share of its pages, in bytes, without the memfds in `but`.

        Where that cannot be read, all its resident pages.
        """

    @abstractmethod
    def cpu(self, pid: int) -> ProcessCpu | None: ...

    @abstractmethod
    def put_behind(self, pid: int) -> None:
        """Make a process, and what it starts from now on, run only when nobody else wants to."""

    def clock(self, pid: int) -> float | None:
        """The CPU time of a process without children, in ms, where it is cheap to read.

        None where it is not; then only `cpu` is available. A process whose clock has not advanced
        has not run: it has not taken memory, and not started or waited for another process.
        """
        return None

    def most_in_files(self) -> int:
        """An upper bound on the size of all files in memory on this machine, in bytes."""
        return 0

    def files(self, pid: int) -> Mapping[int, int]:
        """The memfds that the process has open: inode to size in bytes."""
        return {}

    def waits(self, pid: int, *, are_behind: bool = False) -> Mapping[int, float]:
        """By thread id, how many ms each thread of a process was ready to run without a core.

        Threads that have lowered their own priority below that of others are left out, as their
        wait proves nothing about a bot that sleeps; with `are_behind`, the arena has done that and
        they count. Empty if the process is gone, or the system does not say.
        """
        return {}


def parse_stat(line: bytes) -> tuple[ProcessEntry, int, int] | None:
    """Parse /proc/PID/stat: the entry, its own ticks, those of its reaped children.

    None if the line is incomplete.
    """
    # The name may contain anything, even brackets and spaces.
    opens, closes = line.find(b"("), line.rfind(b")")
    fields = line[closes + 2 :].split(None, 20)
    if opens < 0 or len(fields) < 20:
        return None
    # A main thread that has ended is a zombie, too, while other threads of its process go on.
    is_zombie = fields[0] in (b"Z", b"X") and int(fields[17]) <= 1
    name = line[opens + 1 : closes].decode(errors="replace")
    entry = ProcessEntry(int(line[:opens]), int(fields[1]), name, int(fields[19]), is_zombie)
    return entry, int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])


class LinuxProcesses(Processes):
    """Reads Linux's /proc; bots are `nicer` than this process by that much."""

    def __init__(self, nicer: int = 0) -> None:
        self._tick_ms = 1000 / os.sysconf("SC_CLK_TCK")
        # Bots inherit these.
        self._is_idle = _policy(0) == os.SCHED_IDLE
        self._nice = min(19, os.getpriority(os.PRIO_PROCESS, 0) + nicer)

    def pids(self) -> set[int]:
        return {int(name) for name in os.listdir("/proc") if name.isdigit()}

    def entries(self, pids: Iterable[int]) -> Mapping[int, ProcessEntry]:
        return {pid: stat[0] for pid in pids if (stat := _stat(pid)) is not None}

    def clock(self, pid: int) -> float | None:
        try:
            return time.clock_gettime_ns(_cpu_clock(pid)) / 1e6
        except OSError:
            return None

    def memory(self, pid: int) -> ProcessMemory | None:
        status = self._of_a_thread(pid, "status", b"VmHWM:")
        if status is None:
            return None
        return ProcessMemory(_kib(status, b"VmRSS:") * 1024, _kib(status, b"VmHWM:") * 1024)

    def pss(self, pid: int, but: Collection[int] = ()) -> int | None:
        rollup = self._of_a_thread(pid, "smaps_rollup", b"Pss:")
        if rollup is not None:
            counted = _mapped_memfds(pid, but) if but else 0
            return _kib(rollup, b"Pss:") * 1024 - counted
        memory = self.memory(pid)
        return None if memory is None else memory.rss_bytes

    def most_in_files(self) -> int:
        """Shmem, and all that is swapped, as some of that may be in files."""
        machine = _read("/proc/meminfo")
        if machine is None or b"\nShmem:" not in machine:
            return sys.maxsize
        swapped = _kib(machine, b"SwapTotal:") - _kib(machine, b"SwapFree:")
        return (_kib(machine, b"Shmem:") + swapped) * 1024

    def files(self, pid: int) -> Mapping[int, int]:
        """Files of memfd_create(2), whose pages are in no RSS or PSS if written and not mapped."""
        sizes: dict[int, int] = {}
        folder = f"/proc/{pid}/fd"
        with suppress(OSError):  # it has ended, or we may not inspect it
            for number in os.listdir(folder):
                path = f"{folder}/{number}"
                with suppress(OSError):  # it was just closed
                    # `stat` of any other file might hang, as the bot may provide a file system.
                    if os.readlink(path).startswith(_MEMFD):
                        file = os.stat(path)
                        sizes[file.st_ino] = file.st_blocks * 512
        return sizes

    def cpu(self, pid: int) -> ProcessCpu | None:
        """The process's CPU clock in nanoseconds; its reaped children's time in ticks."""
        stat = _stat(pid)
        if stat is None:
            return None
        entry, own_ticks, reaped_ticks = stat
        own_ms = self.clock(pid)
        if own_ms is None:  # it has just ended
            own_ms = own_ticks * self._tick_ms
        return ProcessCpu(pid, entry.started, own_ms, reaped_ticks * self._tick_ms)

    def waits(self, pid: int, *, are_behind: bool = False) -> Mapping[int, float]:
        folder = f"/proc/{pid}/task"
        waits: dict[int, float] = {}
        with suppress(OSError):  # it has ended
            for thread in os.listdir(folder):
                # time on a core, time ready without one (both in ns), and a count
                fields = (_read(f"{folder}/{thread}/schedstat") or b"").split()
                if len(fields) > 1 and (are_behind or self._is_ordinary(int(thread))):
                    waits[int(thread)] = int(fields[1]) / 1e6
        return waits

    def put_behind(self, pid: int) -> None:
        with suppress(OSError):  # it has ended
            for thread in os.listdir(f"/proc/{pid}/task"):
                with suppress(OSError):
                    os.sched_setscheduler(int(thread), os.SCHED_IDLE, os.sched_param(0))

    def _is_ordinary(self, thread: int) -> bool:
        """Whether it competes for cores as the arena does, not only for idle ones."""
        with suppress(OSError):  # it has just ended
            is_idle = _policy(thread) == os.SCHED_IDLE and not self._is_idle
            return not is_idle and os.getpriority(os.PRIO_PROCESS, thread) <= self._nice
        return False

    def _of_a_thread(self, pid: int, file: str, has: bytes) -> bytes | None:
        """A file of the process, or of another of its threads if the main thread has ended."""
        if (text := _read(f"/proc/{pid}/{file}")) and has in text:
            return text
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                if (text := _read(f"/proc/{thread}/{file}")) and has in text:
                    return text
        return None


def _stat(pid: int) -> tuple[ProcessEntry, int, int] | None:
    line = _read(f"/proc/{pid}/stat")
    return None if line is None else parse_stat(line)


def _read(path: str) -> bytes | None:
    """Read a file of /proc, None if its process has ended; ten times as fast as `open`."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(file, 8192)
    except OSError:
        return None
    finally:
        os.close(file)


def _policy(thread: int) -> int:
    """The scheduling policy of a thread; 0 is this one. Much faster than /proc/PID/task/TID."""
    return os.sched_getscheduler(thread) & ~os.SCHED_RESET_ON_FORK


def _mapped_memfds(pid: int, inodes: Collection[int]) -> int:
    """How many bytes of a process's PSS are in these memfds."""
    try:
        with open(f"/proc/{pid}/smaps", "rb") as file:
            maps = file.read()
    except OSError:
        return 0
    mapped = (map(int, match.groups()) for match in _MAPPED_MEMFD.finditer(maps))
    return sum(share * 1024 for inode, share in mapped if inode in inodes)


def _kib(text: bytes, label: bytes) -> int:
    at = text.find(b"\n" + label)
    return int(text[at + 1 + len(label) :].split(None, 1)[0]) if at >= 0 else 0


class PsutilProcesses(Processes):
    """Reads processes by `psutil`, for systems without Linux's /proc.

    Windows knows the peak of a process. macOS does not, so a peak between two samples is missed.
    Instead of PSS, both know the pages that a process shares with nobody, which is never more.
    """

    def __init__(self) -> None:
        self._psutil = importlib.import_module("psutil")

    def pids(self) -> set[int]:
        return set(self._psutil.pids())

    def entries(self, pids: Iterable[int]) -> Mapping[int, ProcessEntry]:
        entries: dict[int, ProcessEntry] = {}
        for pid in pids:
            with suppress(self._psutil.Error):
                info = self._psutil.Process(pid).as_dict(["ppid", "name", "create_time", "status"])
                entries[pid] = ProcessEntry(
                    pid,
                    info["ppid"] or 0,
                    info["name"] or "",
                    info["create_time"] or 0.0,
                    info["status"] == self._psutil.STATUS_ZOMBIE,
                )
        return entries

    def memory(self, pid: int) -> ProcessMemory | None:
        with suppress(self._psutil.Error):
            memory = self._psutil.Process(pid).memory_info()
            return ProcessMemory(memory.rss, getattr(memory, "peak_wset", memory.rss))
        return None

    def pss(self, pid: int, but: Collection[int] = ()) -> int | None:
        with suppress(self._psutil.Error):
            full = self._psutil.Process(pid).memory_full_info()
            return int(getattr(full, "pss", full.uss))
        memory = self.memory(pid)
        return None if memory is None else memory.rss_bytes

    def cpu(self, pid: int) -> ProcessCpu | None:
        """User and system time; that of children only where the system records it."""
        with suppress(self._psutil.Error):
            process = self._psutil.Process(pid)
            used = process.cpu_times()
            reaped_s = getattr(used, "children_user", 0) + getattr(used, "children_system", 0)
            own_ms = (used.user + used.system) * 1000
            return ProcessCpu(pid, process.create_time(), own_ms, reaped_s * 1000)
        return None

    def put_behind(self, pid: int) -> None:
        with suppress(self._psutil.Error):
            lowest = getattr(self._psutil, "IDLE_PRIORITY_CLASS", 19)  # Windows has classes
            self._psutil.Process(pid).nice(lowest)


def probe() -> str | None:
    """Why bots cannot be sampled on this system, in one line; None if they can."""
    if _has_proc():
        return None
    try:
        importlib.import_module("psutil")
    except ImportError:
        return "there is no /proc of Linux and no psutil: pip install 'card-arena[psutil]'"
    return None


def reader(nicer: int = 0) -> Processes:
    """The reader for this system; call it only where `probe` returns None.

    Bots are `nicer` than this process by that much.
    """
    return LinuxProcesses(nicer) if _has_proc() else PsutilProcesses()


@cache
def knows_waits() -> bool:
    """Whether this system says how long a thread was ready without a core."""
    return os.path.exists("/proc/self/schedstat")


def cpu_resolution_ms() -> float | None:
    """The step in which the CPU time of a running process grows; None if unknown."""
    if not _has_proc():
        return None
    try:
        return time.clock_getres(_cpu_clock(os.getpid())) * 1000
    except OSError:  # a kernel that hides the clock: /proc has ticks
        return 1000 / os.sysconf("SC_CLK_TCK")


def _cpu_clock(pid: int) -> int:
    """Like clock_getcpuclockid(3): one system call reads all threads of a process."""
    return ~pid << 3 | 2


def _has_proc() -> bool:
    return sys.platform == "linux" and os.path.exists("/proc/self/stat")
