"""How a system is asked for its processes: what they hold, whose children they are, and the CPU time that they have used.

Two readers behind the same functions (`Processes`): Linux's /proc, and `psutil` where there is none. They only read, and raise nothing for a
process that has ended meanwhile; what the figures mean for a bot is the business of `arena/sandbox/sampler.py`.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import NamedTuple, Protocol

__all__ = [
    "LinuxProcesses",
    "ProcessCpu",
    "ProcessEntry",
    "ProcessMemory",
    "Processes",
    "PsutilProcesses",
    "Stat",
    "cpu_resolution_ms",
    "parse_stat",
    "probe",
    "reader",
]


_MEMFD = "/memfd:"  # what the link of such a file begins with, wherever it is looked at
# Of a mapping of one: its inode, and after lines of which each begins with a capital its share.
_MAPPED_MEMFD = re.compile(
    rb"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ (\d+) +/memfd:.*(?:\n[A-Z].*)*?\nPss: +(\d+) kB",
    re.MULTILINE,
)


class ProcessEntry(NamedTuple):
    """A line of the table of processes; `started` tells it from a later one with the same number."""

    pid: int
    parent: int
    name: str
    started: float
    is_zombie: bool


class ProcessMemory(NamedTuple):
    """What a process holds, and the most it ever held (the same, where the system does not know)."""

    rss_bytes: int
    peak_bytes: int


class ProcessCpu(NamedTuple):
    """CPU time of a process: its own, and that of children that it has waited for, theirs included."""

    pid: int
    started: float
    own_ms: float
    reaped_ms: float


class Processes(Protocol):
    """How a system is asked for its processes; None always means that the process is gone."""

    def table(self) -> Mapping[int, ProcessEntry]:
        """All processes."""

    def memory(self, pid: int) -> ProcessMemory | None:
        """What it holds."""

    def pss(self, pid: int, but: Collection[int] = ()) -> int | None:
        """Its fair share of the pages it holds, in bytes; all of them if it may not be seen. Files in memory with the inodes
        `but` do not count.
        """

    def most_in_files(self) -> int:
        """What all files in memory on this machine hold together at most, in bytes."""

    def files(self, pid: int) -> Mapping[int, int]:
        """The files in memory that it has open and that are in no directory: by inode, what each holds in bytes."""

    def cpu(self, pid: int) -> ProcessCpu | None:
        """Its CPU time."""


class Stat(NamedTuple):
    """What we use of /proc/PID/stat."""

    entry: ProcessEntry
    own_ticks: int
    reaped_ticks: int


def parse_stat(line: bytes) -> Stat | None:
    """Read /proc/PID/stat, whose second field is a name with whatever the process likes in it; None if it is cut off."""
    opens, closes = line.find(b"("), line.rfind(b")")
    fields = line[closes + 2 :].split(None, 20)
    if opens < 0 or len(fields) < 20:
        return None
    # A main thread that has ended is a zombie too, while other threads of its process go on.
    is_zombie = fields[0] in (b"Z", b"X") and int(fields[17]) <= 1
    entry = ProcessEntry(
        int(line[:opens]),
        int(fields[1]),
        line[opens + 1 : closes].decode(errors="replace"),
        int(fields[19]),
        is_zombie,
    )
    return Stat(entry, int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14]))


class LinuxProcesses:
    """Linux's /proc."""

    def __init__(self) -> None:
        self._tick_ms = 1000 / os.sysconf("SC_CLK_TCK")

    def table(self) -> Mapping[int, ProcessEntry]:
        """All processes."""
        stats = (self._stat(int(pid)) for pid in os.listdir("/proc") if pid.isdigit())
        return {stat.entry.pid: stat.entry for stat in stats if stat}

    def memory(self, pid: int) -> ProcessMemory | None:
        """VmRSS and VmHWM."""
        status = self._of_a_thread(pid, "status", b"VmHWM:")
        if status is None:
            return None
        return ProcessMemory(_kib(status, b"VmRSS:") * 1024, _kib(status, b"VmHWM:") * 1024)

    def pss(self, pid: int, but: Collection[int] = ()) -> int | None:
        """Pss; of a process that does not let itself be looked at, VmRSS."""
        rollup = self._of_a_thread(pid, "smaps_rollup", b"Pss:")
        if rollup is not None:
            counted = _mapped_memfds(pid, but) if but else 0
            return _kib(rollup, b"Pss:") * 1024 - counted
        memory = self.memory(pid)
        return None if memory is None else memory.rss_bytes

    def most_in_files(self) -> int:
        """Shmem, and all that is swapped, as some of it may be theirs."""
        machine = _read("/proc/meminfo")
        if machine is None or b"\nShmem:" not in machine:
            return sys.maxsize
        swapped = _kib(machine, b"SwapTotal:") - _kib(machine, b"SwapFree:")
        return (_kib(machine, b"Shmem:") + swapped) * 1024

    def files(self, pid: int) -> Mapping[int, int]:
        """What memfd_create(2) made: neither RSS nor PSS has what is written to it and not mapped."""
        found: dict[int, int] = {}
        folder = f"/proc/{pid}/fd"
        with suppress(OSError):  # it has ended, or does not let itself be looked at
            for number in os.listdir(folder):
                path = f"{folder}/{number}"
                with suppress(OSError):  # closed just now
                    # Only these are asked for more: a file system of the bot's own might never answer.
                    if os.readlink(path).startswith(_MEMFD):
                        file = os.stat(path)
                        found[file.st_ino] = file.st_blocks * 512
        return found

    def cpu(self, pid: int) -> ProcessCpu | None:
        """The process's CPU clock, which counts nanoseconds; what its children took is known in ticks."""
        stat = self._stat(pid)
        if stat is None:
            return None
        own_ms = stat.own_ticks * self._tick_ms
        with suppress(OSError):  # it has ended just now
            own_ms = time.clock_gettime_ns(_cpu_clock(pid)) / 1e6
        reaped_ms = stat.reaped_ticks * self._tick_ms
        return ProcessCpu(pid, stat.entry.started, own_ms, reaped_ms)

    def _stat(self, pid: int) -> Stat | None:
        line = _read(f"/proc/{pid}/stat")
        return None if line is None else parse_stat(line)

    def _of_a_thread(self, pid: int, file: str, has: bytes) -> bytes | None:
        """What that file says of the process; if its main thread has ended it is another one that knows."""
        if (text := _read(f"/proc/{pid}/{file}")) and has in text:
            return text
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                if (text := _read(f"/proc/{thread}/{file}")) and has in text:
                    return text
        return None


def _read(path: str) -> bytes | None:
    """A file of /proc, None if its process has ended; a tenth of the time that `open` takes."""
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


def _mapped_memfds(pid: int, inodes: Collection[int]) -> int:
    """A process's share, in bytes, of the pages of those files that it has mapped."""
    try:
        with open(f"/proc/{pid}/smaps", "rb") as file:
            maps = file.read()
    except OSError:
        return 0
    found = (map(int, one.groups()) for one in _MAPPED_MEMFD.finditer(maps))
    return sum(share * 1024 for inode, share in found if inode in inodes)


def _kib(text: bytes, label: bytes) -> int:
    at = text.find(b"\n" + label)
    return int(text[at + 1 + len(label) :].split(None, 1)[0]) if at >= 0 else 0


class PsutilProcesses:
    """`psutil`, for systems without Linux's /proc.

    Windows knows the peak of a process; macOS does not, so that one between two samples is missed. Both know only the pages that a process
    shares with nobody, which is never more than its fair share: they never find memory that is not there.
    """

    def __init__(self) -> None:
        self._psutil = importlib.import_module("psutil")

    def table(self) -> Mapping[int, ProcessEntry]:
        """All processes."""
        zombie = self._psutil.STATUS_ZOMBIE
        wanted = ["pid", "ppid", "name", "create_time", "status"]
        return {
            found["pid"]: ProcessEntry(
                found["pid"],
                found["ppid"] or 0,
                found["name"] or "",
                found["create_time"] or 0.0,
                found["status"] == zombie,
            )
            for found in (each.info for each in self._psutil.process_iter(wanted))
        }

    def memory(self, pid: int) -> ProcessMemory | None:
        """The resident set, and on Windows its peak."""
        with suppress(self._psutil.Error):
            found = self._psutil.Process(pid).memory_info()
            return ProcessMemory(found.rss, getattr(found, "peak_wset", found.rss))
        return None

    def pss(self, pid: int, but: Collection[int] = ()) -> int | None:
        """The fair share, or what is not shared, or else all."""
        with suppress(self._psutil.Error):
            found = self._psutil.Process(pid).memory_full_info()
            return int(getattr(found, "pss", found.uss))
        memory = self.memory(pid)
        return None if memory is None else memory.rss_bytes

    def most_in_files(self) -> int:
        """Not known, and not asked for."""
        return 0

    def files(self, pid: int) -> Mapping[int, int]:
        """None are known."""
        return {}

    def cpu(self, pid: int) -> ProcessCpu | None:
        """User and system time; that of children only where the system keeps it."""
        with suppress(self._psutil.Error):
            process = self._psutil.Process(pid)
            used = process.cpu_times()
            reaped_s = getattr(used, "children_user", 0) + getattr(used, "children_system", 0)
            own_ms = (used.user + used.system) * 1000
            return ProcessCpu(pid, process.create_time(), own_ms, reaped_s * 1000)
        return None


def probe() -> str | None:
    """Why bots cannot be sampled on this system; None if they can."""
    if _has_proc():
        return None
    try:
        importlib.import_module("psutil")
    except ImportError:
        return "there is no /proc of Linux and no psutil: pip install 'card-arena[psutil]'"
    return None


def reader() -> Processes:
    """What reads this system; only where `probe` has found nothing that is missing."""
    return LinuxProcesses() if _has_proc() else PsutilProcesses()


def cpu_resolution_ms() -> float | None:
    """The smallest step of CPU time that is seen of a process that runs; None where that is not known."""
    if not _has_proc():
        return None
    try:
        return time.clock_getres(_cpu_clock(os.getpid())) * 1000
    except OSError:  # a kernel that hides it: what /proc says is left
        return 1000 / os.sysconf("SC_CLK_TCK")


def _cpu_clock(pid: int) -> int:
    """What clock_getcpuclockid(3) returns: of all threads of a process, in nanoseconds, by one call of the kernel."""
    return ~pid << 3 | 2


def _has_proc() -> bool:
    return sys.platform == "linux" and os.path.exists("/proc/self/stat")
