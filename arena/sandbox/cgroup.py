"""A control group for each launched bot, where the kernel lets us: then memory and processes are limited by the kernel itself.

It takes cgroup v2 with the controllers for memory and processes, and a group that is ours to divide, such as
`systemd-run --user --scope -p Delegate=yes arena serve ...` or a container of its own. A group with processes in it cannot be divided, so the arena
first moves itself into a leaf, `arena`; the bots' groups are that leaf's siblings.

The kernel's word is exact where the sampler's comes up to 0.1 s late, but it is a limit, not a prison: a bot that runs as our user and sees
/sys/fs/cgroup could leave its group. Against that there is bubblewrap, and the sampler goes on in any case.

Everything is a file, and all paths are below `root`, so that the tests can build such a tree. On a machine that has these controllers in
version 1 only, nothing here has been tried against a kernel but groups, processes, CPU time and the end of a group.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from arena.engine.verdict import Finding
from protocol.messages import Ending, Limits, Mechanism

__all__ = ["Cgroup", "make", "probe"]

LEAF = "arena"  # where the arena itself goes
NEEDED = ("memory", "pids")
THREADS_EACH = 16  # pids.max counts threads, and a JVM or node has a dozen for itself; the sampler counts processes
NAME_BYTES = 120  # of a bot's name in that of its group, which may have 255
DELEGATE = "start it with systemd-run --user --scope -p Delegate=yes"

ROOT = Path("/")

_numbers = itertools.count(1)  # a bot may be started again before its old group is gone


class _NotDelegated(Exception):
    """Why there are no groups for us, in one line."""


class Cgroup:
    """The group of one bot.

    Attributes:
        path: its directory.
        procs: a process is moved in by writing its number here; what it starts afterwards is in, too.
    """

    def __init__(self, path: Path, limits: Limits) -> None:
        self.path = path
        self.procs = path / "cgroup.procs"
        self._limits = limits

    def cpu_ms(self) -> float:
        """CPU time of all that is or was in it; 0 when the group is gone."""
        return _table(self.path / "cpu.stat").get("usage_usec", 0) / 1000

    def finding(self) -> Finding | None:
        """What the kernel has noted against it, if anything."""
        memory = _table(self.path / "memory.events")
        # Both: a process may also be killed because the machine, or a group above, ran out; that is not the bot's doing (J5).
        was_killed = memory.get("oom_kill", 0) or memory.get("oom_group_kill", 0)
        if was_killed and memory.get("oom", 0):
            return Finding(kind=Ending.MEMORY, text=self._of_memory(), mechanism=Mechanism.CGROUP)
        if _table(self.path / "pids.events").get("max", 0):
            text = f"processes and threads over {_most_threads(self._limits)} (cgroup)"
            return Finding(kind=Ending.PROCESSES, text=text, mechanism=Mechanism.CGROUP)
        return None

    def kill(self) -> None:
        """End all processes in it, now."""
        with suppress(OSError):
            _write(self.path / "cgroup.kill", "1")
            return
        # Before Linux 5.14; the pids limit is what keeps a fork bomb from being faster.
        for pid in _words(self.procs):
            with suppress(OSError):
                os.kill(int(pid), signal.SIGKILL)

    def remove(self) -> bool:
        """Remove it, with groups that the bot has made below; False while processes are still in it."""
        for below, *_ in os.walk(self.path, topdown=False):
            _remove(Path(below))
        return not self.path.exists()

    def _of_memory(self) -> str:
        limit_mib = self._limits.memory_mib
        over = f"memory over {limit_mib} MiB"
        peak = _words(self.path / "memory.peak")
        if peak:  # at most the limit, as what goes beyond is refused
            return f"{over}: had {int(peak[0]) >> 20} MiB and wanted more (cgroup)"
        return f"{over} (cgroup)"


def probe(root: Path = ROOT) -> str | None:
    """Why there can be no groups for bots, in one line; None if there can. It leaves everything as it was."""
    try:
        group, own = _find(root)
        had_leaf = (group / LEAF).exists()
        enabled = _divide(group, own)
    except _NotDelegated as why:
        return str(why)
    trial = group / f"probe.{os.getpid()}"
    try:
        trial.mkdir()
        _limit(trial, Limits())
    except OSError as error:
        return _why_not(group, error)
    finally:
        _remove(trial)
        if enabled:
            _undo(group, own, enabled, remove_leaf=not had_leaf)
    return None


def make(name: str, limits: Limits, root: Path = ROOT) -> Cgroup | None:
    """A new group with these limits, for a bot of that name; None where that is not possible.

    The first one moves the arena itself into its leaf, where it stays.
    """
    try:
        group, own = _find(root)
        _divide(group, own)
    except _NotDelegated:
        return None
    # The pid: the group of an arena may be shared with another that it has started.
    folder = f"bot.{os.getpid()}.{next(_numbers)}.{quote(name, safe='')[:NAME_BYTES]}"
    cgroup = Cgroup(group / folder, limits)
    try:
        cgroup.path.mkdir()
        _limit(cgroup.path, limits)
    except OSError:
        cgroup.remove()
        return None
    return cgroup


def _limit(path: Path, limits: Limits) -> None:
    """Write a bot's limits into the files of its group."""
    _write(path / "memory.max", str(limits.memory_mib << 20))
    _write(path / "pids.max", str(_most_threads(limits)))
    # One process out of memory is the bot out of memory: half a bot would only be absent later.
    _write(path / "memory.oom.group", "1")
    with suppress(FileNotFoundError):  # a kernel without swap
        _write(path / "memory.swap.max", "0")


def _most_threads(limits: Limits) -> int:
    return limits.processes * THREADS_EACH


# ---- Whose group it is


def _find(root: Path) -> tuple[Path, Path]:
    """The group that is to be divided, and the one that this process is in: the same, or its leaf.

    Raises:
        _NotDelegated: there is none.
    """
    if sys.platform != "linux":
        raise _NotDelegated("not Linux")
    mount, inside, has_v1 = _mount(root)
    if mount is None:
        raise _NotDelegated(
            "only cgroup v1 has the memory controller" if has_v1 else "cgroup v2 is not mounted"
        )
    own = _own(root, mount, inside)
    group = own.parent if own.name == LEAF and own != mount else own
    offered = _words(group / "cgroup.controllers")
    missing = [name for name in NEEDED if name not in offered]
    if missing and has_v1 and "memory" in missing:
        raise _NotDelegated("only cgroup v1 has the memory controller")
    if missing:
        lacks = " and ".join(missing)
        raise _NotDelegated(f"not delegated: no {lacks} controller; {DELEGATE}")
    return group, own


def _mount(root: Path) -> tuple[Path | None, str, bool]:
    """Where cgroup v2 is mounted, which group is there, and whether version 1 has the memory."""
    mount, inside, has_v1 = None, "/", False
    for line in _lines(root / "proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        fields, (kind, _, options) = before.split(" "), after.split(" ")
        if kind == "cgroup2" and mount is None:
            inside, point = _unescape(fields[3]), _unescape(fields[4])
            mount = root / point.lstrip("/")
        elif kind == "cgroup":
            has_v1 = has_v1 or "memory" in options.split(",")
    return mount, inside, has_v1


def _unescape(field: str) -> str:
    """What mountinfo writes for a space and the like."""
    return field.encode().decode("unicode_escape")


def _own(root: Path, mount: Path, inside: str) -> Path:
    """The directory of the group that this process is in."""
    for line in _lines(root / "proc/self/cgroup"):
        number, _, path = line.split(":", 2)
        if number != "0":
            continue
        below = os.path.relpath(path, inside)
        if below == ".." or below.startswith("../") or not (mount / below).is_dir():
            raise _NotDelegated("not delegated: its own group is out of sight")
        return mount if below == "." else mount / below
    raise _NotDelegated("this process is in no group of cgroup v2")


def _divide(group: Path, own: Path) -> list[str]:
    """See to it that groups below have the controllers; we go into the leaf for that.

    Returns:
        The controllers that they did not have before.

    Raises:
        _NotDelegated: we may not; nothing has changed then.
    """
    handed_on = _words(group / "cgroup.subtree_control")
    wanted = [name for name in NEEDED if name not in handed_on]
    if not wanted:
        return []
    is_root = not (group / "cgroup.events").exists()  # which may have processes, too
    if not is_root and _others(group):
        raise _NotDelegated(f"not delegated: other processes are in {group}; {DELEGATE}")
    leaf = group / LEAF
    had_leaf = leaf.exists()
    try:
        leaf.mkdir(exist_ok=True)
        _write(leaf / "cgroup.procs", str(os.getpid()))
        _write(group / "cgroup.subtree_control", _signed("+", wanted))
    except OSError as error:
        _undo(group, own, wanted, remove_leaf=not had_leaf)
        raise _NotDelegated(_why_not(group, error)) from None
    return wanted


def _undo(group: Path, own: Path, enabled: list[str], *, remove_leaf: bool) -> None:
    """Go back to where we were: first the controllers, as no process may be where they are handed on."""
    with suppress(OSError):
        _write(group / "cgroup.subtree_control", _signed("-", enabled))
    with suppress(OSError):
        _write(own / "cgroup.procs", str(os.getpid()))
    if remove_leaf:
        _remove(group / LEAF)


def _signed(sign: str, controllers: list[str]) -> str:
    return " ".join(sign + name for name in controllers)


def _others(group: Path) -> list[str]:
    own = str(os.getpid())
    return [pid for pid in _words(group / "cgroup.procs") if pid != own]


def _why_not(group: Path, error: OSError) -> str:
    if isinstance(error, PermissionError):
        return f"not delegated: {group} belongs to somebody else; {DELEGATE}"
    return f"not delegated: {group}: {error.strerror}"


# ---- Files


def _write(path: Path, text: str) -> None:
    """Write one of the kernel's files, which are there or not.

    Raises:
        OSError: it is not there, or the kernel says no.
    """
    file = os.open(path, os.O_WRONLY | os.O_TRUNC)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def _remove(path: Path) -> None:
    """Remove a group, if nobody is in it."""
    with suppress(OSError):
        path.rmdir()


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _words(path: Path) -> list[str]:
    return " ".join(_lines(path)).split()


def _table(path: Path) -> dict[str, int]:
    """A file of lines `name number`; empty if it is not there."""
    return {name: int(number) for name, number in (line.split() for line in _lines(path))}
