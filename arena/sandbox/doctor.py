"""What holds launched bots to their limits on this machine, and why not where something does not.

Each layer is tried, not guessed from the system's name. Nothing here raises and nothing is left changed: a layer that does not
work is a line that says why, and what to do about it if there is something to do.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import platform
import sys
import time

import msgspec

from arena.sandbox import bubblewrap, cgroup, process_table

__all__ = ["DoctorReport", "Layer", "examine"]

RESERVED_FILES = 64  # the database, the log, libraries, connections of strangers
# A launched bot: its connection or two pipes, its stderr, and two pipes and a handle for its keeper.
LAUNCHED_FILES = 8
COARSE_S = 0.001  # decisions are charged in milliseconds
PR_GET_CHILD_SUBREAPER = 37  # linux/prctl.h


class Layer(msgspec.Struct, frozen=True):
    """A line of the report.

    Attributes:
        name: what it is about.
        active: whether it works here.
        detail: how, or why not and what to do.
    """

    name: str
    active: bool
    detail: str


class DoctorReport(msgspec.Struct, frozen=True):
    """All layers."""

    layers: tuple[Layer, ...]


def examine() -> DoctorReport:
    """Try everything; takes some tens of milliseconds."""
    return DoctorReport(
        (
            _sampler(),
            _cgroup(),
            _isolation(),
            _subreaper(),
            _cpu(),
            _clock(),
            _open_files(),
            _system(),
        )
    )


def _no_sampling() -> str | None:
    """Why nothing can be sampled here."""
    if sys.platform == "win32":
        return "launched bots have no keeper on Windows"
    return process_table.probe()


def _sampler() -> Layer:
    why = _no_sampling()
    how = "memory and processes of launched bots, ten times a second, from " + (
        "/proc" if sys.platform == "linux" else "psutil"
    )
    return Layer("sampler", why is None, why or how)


def _cgroup() -> Layer:
    why = cgroup.probe()
    how = "a group for each launched bot; the kernel itself limits memory and processes"
    return Layer("memory by cgroup v2", why is None, why or how)


def _isolation() -> Layer:
    why = bubblewrap.probe()
    if why is None:
        how = "launched bots see the system's programs and one directory of their own"
        return Layer("isolation by bubblewrap", True, how)
    if sys.platform == "linux":
        todo = (
            "install bubblewrap and allow it unprivileged user namespaces "
            "(on Ubuntu 24.04 it takes an AppArmor profile for bwrap)"
        )
    else:
        todo = "run the arena on Linux, or in a virtual machine"
    text = (
        f"not isolated: {why}. Launched bots can read and write what you can: "
        f"{todo}, or start only bots that you trust"
    )
    return Layer("isolation by bubblewrap", False, text)


def _subreaper() -> Layer:
    name = "subreaper"
    if sys.platform != "linux":
        text = "not Linux: a bot that leaves its process group can outlive its match"
        return Layer(name, False, text)
    is_set = ctypes.c_int()
    try:
        refused = ctypes.CDLL(None).prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(is_set), 0, 0, 0)
    except (OSError, AttributeError) as error:
        return Layer(name, False, f"the C library has no prctl: {error}")
    if refused:
        return Layer(name, False, "the kernel has none (it takes Linux 3.4)")
    return Layer(name, True, "orphans of a launched bot are found and ended with it")


def _cpu() -> Layer:
    name = "CPU metering"
    if (why := _no_sampling()) is not None:
        return Layer(name, False, f"{why}; launched bots are charged the time on the wall")
    step = process_table.cpu_resolution_ms()
    if step is None:
        text = "whole process trees, in the steps of psutil; children that have ended are estimates"
    else:
        text = f"whole process trees; steps of {_short(step / 1000)}, 10 ms for children that have ended"
    return Layer(name, True, text)


def _clock() -> Layer:
    steps = {
        "monotonic clock": time.get_clock_info("monotonic").resolution,
        "event loop": _loop_resolution_s(),
    }
    text = ", ".join(f"{name}: steps of {_short(step)}" for name, step in steps.items())
    return Layer("clock", max(steps.values()) <= COARSE_S, text)


def _loop_resolution_s() -> float:
    loop = asyncio.new_event_loop()
    try:
        began = now = loop.time()
        while now == began:
            now = loop.time()
        return now - began
    finally:
        loop.close()


def _open_files() -> Layer:
    name = "open files"
    if sys.platform == "win32":
        return Layer(name, True, "no limit is known on Windows")
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return Layer(name, True, "no limit")
    left = max(0, soft - RESERVED_FILES)
    text = (
        f"at most {soft:,}: good for about {left:,} bots that connect "
        f"or {left // LAUNCHED_FILES:,} launched ones"
    )
    if hard == resource.RLIM_INFINITY or soft < hard:
        most = "no limit" if hard == resource.RLIM_INFINITY else f"{hard:,}"
        text += f"; ulimit -n can raise it (up to: {most})"
    return Layer(name, left > 0, text)


def _system() -> Layer:
    cores = os.cpu_count() or 1
    text = (
        f"{platform.python_implementation()} {platform.python_version()} "
        f"on {platform.platform()}, {cores} {'core' if cores == 1 else 'cores'}"
    )
    return Layer("Python and platform", True, text)


def _short(seconds: float) -> str:
    """A short time in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
