"""Whether this machine can run what students hand in, and how many of such bots at once.

A submitted program is anybody's code under the arena's account. It is safe where each thing that
keeps it from others works here; each is tried, not guessed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from arena.sandbox import bubblewrap, cgroup, process_table
from protocol.messages import Limits

__all__ = ["caveats", "fitting_bots", "machine_mib", "unsafe_because"]

_LEAST_BOTS = 2  # for a match
# For the arena with its database, and for the system.
_RESERVED_MIB = 512


def unsafe_because(limits: Limits) -> tuple[str, ...]:
    """Why submissions with these limits are not safe here, a line each, with what to do.

    Empty if they are.
    """
    return tuple(_reasons(limits))


def caveats() -> str:
    """What submissions that are safe here could do all the same, with what to do; or nothing."""
    lines = []
    if (why := cgroup.probe()) is not None:
        lines.append(
            f"but for memory that no process holds, which `memory by cgroup v2` would count: {why}"
        )
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        lines.append("but the arena runs as root: give it an account of its own")
    return "; ".join(lines)


def fitting_bots(limits: Limits, reserved_mib: int = 0, of_mib: int | None = None) -> int:
    """How many bots fit into `of_mib` of memory if each takes all that `limits` permit.

    It is all of this machine's by default. `reserved_mib` is kept free, beside what the arena
    itself needs: for a build.
    """
    each_mib = limits.memory_mib
    if cgroup.probe() is not None:  # else the kernel counts these directories too
        each_mib += (1 + len(bubblewrap.IN_MEMORY)) * bubblewrap.SCRATCH_MIB
    total_mib = machine_mib() if of_mib is None else of_mib
    return max(0, total_mib - _RESERVED_MIB - reserved_mib) // each_mib


def _reasons(limits: Limits) -> list[str]:
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
    return reasons


def machine_mib() -> int:
    """The memory that there is for all processes: the machine's, or that of our control group."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in ("memory.max", "memory/memory.limit_in_bytes"):  # of a container: v2, v1
        try:
            limits.append(int(Path("/sys/fs/cgroup", path).read_text()))
        except (OSError, ValueError):  # there is none, or it is `max`
            continue
    return min(limits) >> 20
