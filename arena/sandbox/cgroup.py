"""A control group for each launched bot: the kernel itself limits memory and processes.

It needs cgroup v2 with the controllers for memory and processes, and a group that we may divide.
`systemd-run --user --scope -p Delegate=yes arena serve ...` or a container of its own gives us such
a group. A group with processes in it cannot be divided. So the arena first moves itself into a
leaf, `arena`, and the bots' groups are siblings of that leaf.

The kernel limits exactly and at once, where the sampler is up to 0.1 s late. But a control group
does not confine: a bot that runs as our user and sees /sys/fs/cgroup could leave its group.
bubblewrap prevents that, and the sampler runs in any case.

All paths are below `root`, so that tests can build such a tree. The limits have been tested only on
such a tree; groups, processes, CPU time and the end of a group also on a kernel.
"""

from __future__ import annotations

import itertools
import os
import sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from arena.games.verdict import Finding
from protocol.messages import Ending, Limits, Mechanism

__all__ = ["Cgroup", "make", "probe"]

LEAF = "arena"  # the group of the arena's own process
NEEDED = ("memory", "pids")
THREADS_EACH = 16  # pids.max counts threads, and a JVM or node has a dozen of its own
NAME_BYTES = 120  # of a bot's name in the name of its group, which may have 255
DELEGATE = "start it with systemd-run --user --scope -p Delegate=yes"

ROOT = Path("/")

_numbers = itertools.count(1)  # a bot may be started again before its old group is gone


class _NotDelegated(Exception):
    """Why we cannot make groups, in one line."""


class Cgroup:
    """The control group of one bot."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.path = path
        # A process whose id is written here moves in, with everything that it starts later.
        self.procs = path / "cgroup.procs"
        self._limits = limits

    def cpu_ms(self) -> float:
        """CPU time of all processes that are or were in the group; 0 when the group is gone."""
        return _table(self.path / "cpu.stat").get("usage_usec", 0) / 1000

    def finding(self) -> Finding | None:
        """The limit that the bot exceeded according to the kernel, if any."""
        memory = _table(self.path / "memory.events")
        # Read both counters: a process is also killed when the machine, or a group above, runs out
        # of memory, and that is not the bot's offence (J5).
        was_killed = memory.get("oom_kill", 0) or memory.get("oom_group_kill", 0)
        if was_killed and memory.get("oom", 0):
            return Finding(kind=Ending.MEMORY, text=self._of_memory(), mechanism=Mechanism.CGROUP)
        if _table(self.path / "pids.events").get("max", 0):
            text = f"processes and threads over {_most_threads(self._limits)} (cgroup)"
            return Finding(kind=Ending.PROCESSES, text=text, mechanism=Mechanism.CGROUP)
        return None

    def remove(self) -> bool:
        """Remove the group and those below it; False while there are processes in it."""
        for below, *_ in os.walk(self.path, topdown=False):
            _remove(Path(below))
        return not self.path.exists()

    def _of_memory(self) -> str:
        limit_mib = self._limits.memory_mib
        over = f"memory over {limit_mib} MiB"
        peak = _words(self.path / "memory.peak")
        if peak:  # never above the limit, as the kernel refuses more
            return f"{over}: had {int(peak[0]) >> 20} MiB and wanted more (cgroup)"
        return f"{over} (cgroup)"


def probe(root: Path = ROOT) -> str | None:
    """Why bots cannot have groups, in one line; None if they can. It changes nothing."""
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
    """Make a group with these limits for a bot; None where that is not possible.

    The first call moves the arena into its leaf, where it stays.
    """
    try:
        group, own = _find(root)
        _divide(group, own)
    except _NotDelegated:
        return None
    # With our pid, as an arena may share its group with another arena that it has started.
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
    _write(path / "memory.max", str(limits.memory_mib << 20))
    _write(path / "pids.max", str(_most_threads(limits)))
    # The kernel ends the whole bot, not one process: half a bot would only be absent later.
    _write(path / "memory.oom.group", "1")
    with suppress(FileNotFoundError):  # a kernel without swap
        _write(path / "memory.swap.max", "0")


def _most_threads(limits: Limits) -> int:
    return limits.processes * THREADS_EACH


# ---- Whose group it is


def _find(root: Path) -> tuple[Path, Path]:
    """The group to divide, and our own group: the same group, or its leaf."""
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
    """Where cgroup v2 is mounted, which group is there, and whether version 1 has `memory`."""
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
    """Undo the octal escapes of spaces and the like in mountinfo."""
    return field.encode().decode("unicode_escape")


def _own(root: Path, mount: Path, inside: str) -> Path:
    for line in _lines(root / "proc/self/cgroup"):
        number, _, path = line.split(":", 2)
        if number != "0":
            continue
        below = os.path.relpath(path, inside)
        if below == ".." or below.startswith("../") or not (mount / below).is_dir():
            raise _NotDelegated("not delegated: the arena's own group is not visible here")
        return mount if below == "." else mount / below
    raise _NotDelegated("this process is in no group of cgroup v2")


def _divide(group: Path, own: Path) -> list[str]:
    """Enable the controllers for groups below, which moves this process into the leaf.

    Returns the newly enabled ones. Raises `_NotDelegated`, with nothing changed, if we may not.
    """
    handed_on = _words(group / "cgroup.subtree_control")
    wanted = [name for name in NEEDED if name not in handed_on]
    if not wanted:
        return []
    is_root = not (group / "cgroup.events").exists()  # the root may have processes anyway
    others = set(_words(group / "cgroup.procs")) - {str(os.getpid())}
    if others and not is_root:
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
    """Undo `_divide`: the controllers first, as a group that enables them takes no process."""
    with suppress(OSError):
        _write(group / "cgroup.subtree_control", _signed("-", enabled))
    with suppress(OSError):
        _write(own / "cgroup.procs", str(os.getpid()))
    if remove_leaf:
        _remove(group / LEAF)


def _signed(sign: str, controllers: list[str]) -> str:
    return " ".join(sign + name for name in controllers)


def _why_not(group: Path, error: OSError) -> str:
    if isinstance(error, PermissionError):
        return f"not delegated: {group} belongs to somebody else; {DELEGATE}"
    return f"not delegated: {group}: {error.strerror}"


# ---- Files


def _write(path: Path, text: str) -> None:
    """Write one of the kernel's files; unlike `Path.write_text`, it never creates one."""
    file = os.open(path, os.O_WRONLY | os.O_TRUNC)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def _remove(path: Path) -> None:
    """Remove a group if no process is in it."""
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
    """Read a file of lines `name number`; empty if it does not exist."""
    return {name: int(number) for name, number in (line.split() for line in _lines(path))}
