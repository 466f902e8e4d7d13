"""Reports what holds launched bots to their limits on this machine, and why a layer fails here.

Each layer is tried, not guessed from the system's name. A layer that does not work is not an error:
its line says why, and what to do about it. Nothing is left changed.

A submitted program is anybody's code under the arena's account. It is safe only where every layer
that isolates it works.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import platform
import sys
import time
from pathlib import Path

import msgspec

from arena.sandbox import bubblewrap, cgroup, process_table
from protocol.messages import Limits

__all__ = [
    "DoctorReport",
    "Layer",
    "caveats",
    "examine",
    "fitting_bots",
    "machine_mib",
    "unsafe_because",
]

RESERVED_FILES = 64  # for the database, the log, libraries, connections before their hello
# Per launched bot: its connection or two pipes, its stderr, three for its supervisor.
LAUNCHED_FILES = 8
_LEAST_BOTS = 2  # for a match
_RESERVED_MIB = 512  # for the arena with its database, and for the system
COARSE_S = 0.001  # decisions are charged in milliseconds
PR_GET_CHILD_SUBREAPER = 37  # linux/prctl.h


class Layer(msgspec.Struct, frozen=True):
    """A line of the report: whether a layer works here, and how, or why not and what to do."""

    name: str
    active: bool
    detail: str


class DoctorReport(msgspec.Struct, frozen=True):
    """What `arena doctor` prints."""

    layers: tuple[Layer, ...]


def examine() -> DoctorReport:
    """Try every layer and report which ones work. This takes some tens of milliseconds."""
    return DoctorReport(tuple(Layer(name, *check()) for name, check in _CHECKS.items()))


def unsafe_because(limits: Limits) -> tuple[str, ...]:
    """Why submissions with these limits are not safe here, one line each, with what to do.

    Empty if they are safe.
    """
    reasons = []
    if (why := bubblewrap.probe(network=False)) is not None:
        todo = "install bubblewrap and allow it user and network namespaces"
        if sys.platform != "linux":
            todo = "run the arena on Linux, or in a virtual machine"
        reasons.append(f"no isolation without a network: {why}; {todo}")
    else:
        if not bubblewrap.knows("--size"):
            reasons.append("files in memory are not bounded: install bubblewrap 0.7 or later")
        if not bubblewrap.knows("--disable-userns"):
            reasons.append("user namespaces within are not forbidden: install bubblewrap 0.8")
    if (why := process_table.probe()) is not None and cgroup.probe() is not None:
        reasons.append(f"neither memory nor processes are limited: {why}")
    if sys.platform == "linux" and (count := fitting_bots(limits)) < _LEAST_BOTS:
        reasons.append(
            f"expected memory for {_LEAST_BOTS} bots of {limits.memory_mib} MiB, got "
            f"{machine_mib():,} MiB in all, enough for {count}; lower memory_mib of [limits]"
        )
    return tuple(reasons)


def caveats() -> str:
    """What submissions could still do here although they are safe, and what to do; or nothing."""
    lines = []
    if (why := cgroup.probe()) is not None:
        lines.append(
            f"but for memory that no process holds, which `memory by cgroup v2` would count: {why}"
        )
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        lines.append("but the arena runs as root: give it an account of its own")
    return "; ".join(lines)


def fitting_bots(limits: Limits, reserved_mib: int = 0, of_mib: int | None = None) -> int:
    """How many bots fit into `of_mib` of memory if each uses all that `limits` allow.

    `of_mib` is all of this machine's memory by default. `reserved_mib`, for a build, is kept free
    besides what the arena itself needs.
    """
    each_mib = limits.memory_mib
    if cgroup.probe() is not None:  # otherwise the kernel counts these directories, too
        each_mib += (1 + len(bubblewrap.IN_MEMORY)) * bubblewrap.SCRATCH_MIB
    total_mib = machine_mib() if of_mib is None else of_mib
    return max(0, total_mib - _RESERVED_MIB - reserved_mib) // each_mib


def machine_mib() -> int:
    """The memory for all processes: the machine's, or that of our control group if smaller."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in ("memory.max", "memory/memory.limit_in_bytes"):  # limits of a container: v2, v1
        try:
            limits.append(int(Path("/sys/fs/cgroup", path).read_text()))
        except (OSError, ValueError):  # there is no such file, or it says `max`
            continue
    return min(limits) >> 20


# ---- The layers


def _no_sampling() -> str | None:
    if sys.platform == "win32":
        return "launched bots have no supervisor on Windows"
    return process_table.probe()


def _sampler() -> tuple[bool, str]:
    why = _no_sampling()
    source = "/proc" if sys.platform == "linux" else "psutil"
    how = f"memory and processes of launched bots, ten times a second, from {source}"
    return why is None, why or how


def _cgroup() -> tuple[bool, str]:
    why = cgroup.probe()
    how = "a group for each launched bot; the kernel itself limits memory and processes"
    return why is None, why or how


def _isolation() -> tuple[bool, str]:
    why = bubblewrap.probe()
    if why is None:
        return True, "launched bots see the system's programs and one directory of their own"
    todo = "run the arena on Linux, or in a virtual machine"
    if sys.platform == "linux":
        todo = (
            "install bubblewrap and allow it unprivileged user namespaces "
            "(on Ubuntu 24.04 it takes an AppArmor profile for bwrap)"
        )
    return False, (
        f"not isolated: {why}. Launched bots can read and write what you can: "
        f"{todo}, or start only bots that you trust"
    )


def _submissions() -> tuple[bool, str]:
    limits = Limits()
    if reasons := unsafe_because(limits):
        return False, "not safe here: " + "; ".join(reasons)
    room = f"memory for {fitting_bots(limits):,} bots at once of {limits.memory_mib} MiB"
    but = caveats()
    return True, f"safe here, {but}; {room}" if but else f"safe here; {room}"


def _subreaper() -> tuple[bool, str]:
    if sys.platform != "linux":
        return False, "not Linux: a bot that leaves its process group can outlive its match"
    is_set = ctypes.c_int()
    try:
        refused = ctypes.CDLL(None).prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(is_set), 0, 0, 0)
    except (OSError, AttributeError) as error:
        return False, f"the C library has no prctl: {error}"
    if refused:
        return False, "the kernel has none (it takes Linux 3.4)"
    return True, "orphans of a launched bot are found and ended with it"


def _cpu() -> tuple[bool, str]:
    if (why := _no_sampling()) is not None:
        return False, f"{why}; launched bots are charged the time on the wall"
    step = process_table.cpu_resolution_ms()
    if step is None:
        how = "in the steps of psutil; children that have ended are estimates"
        return True, f"whole process trees, {how}"
    steps = _short(step / 1000)
    return True, f"whole process trees; steps of {steps}, 10 ms for children that have ended"


def _clock() -> tuple[bool, str]:
    steps = {
        "monotonic clock": time.get_clock_info("monotonic").resolution,
        "event loop": _loop_resolution_s(),
    }
    text = ", ".join(f"{name}: steps of {_short(step)}" for name, step in steps.items())
    return max(steps.values()) <= COARSE_S, text


def _loop_resolution_s() -> float:
    loop = asyncio.new_event_loop()
    try:
        began = now = loop.time()
        while now == began:
            now = loop.time()
        return now - began
    finally:
        loop.close()


def _open_files() -> tuple[bool, str]:
    if sys.platform == "win32":
        return True, "no limit is known on Windows"
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return True, "no limit"
    left = max(0, soft - RESERVED_FILES)
    text = (
        f"at most {soft:,}: good for about {left:,} bots that connect "
        f"or {left // LAUNCHED_FILES:,} launched ones"
    )
    if hard == resource.RLIM_INFINITY or soft < hard:
        most = "no limit" if hard == resource.RLIM_INFINITY else f"{hard:,}"
        text += f"; ulimit -n can raise it (up to: {most})"
    return left > 0, text


def _system() -> tuple[bool, str]:
    cores = os.cpu_count() or 1
    return True, (
        f"{platform.python_implementation()} {platform.python_version()} "
        f"on {platform.platform()}, {cores} {'core' if cores == 1 else 'cores'}"
    )


def _short(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


_CHECKS = {
    "sampler": _sampler,
    "memory by cgroup v2": _cgroup,
    "isolation by bubblewrap": _isolation,
    "submissions": _submissions,
    "subreaper": _subreaper,
    "CPU metering": _cpu,
    "clock": _clock,
    "open files": _open_files,
    "Python and platform": _system,
}
