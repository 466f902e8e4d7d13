"""What a machine has too little of to run bots fairly: memory or disk."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

__all__ = ["shortage"]

_MEMORY_MIB = 128  # with less the kernel swaps, and looks for whom to kill
_DISK_MIB = 64  # programs are unpacked and started there
_MEMORY = Path("/proc/meminfo")


def shortage(folders: Sequence[Path]) -> str:
    """What is short now, in words: memory, or disk in one of these folders; empty if nothing is.

    What a system does not say is not short. It is called in the event loop, so it is quick.
    """
    for folder in folders:
        with suppress(OSError):
            free = shutil.disk_usage(folder).free >> 20
            if free < _DISK_MIB:
                return f"{free:,} MiB of disk left"
    memory = _free_memory_mib()
    return "" if memory is None or memory >= _MEMORY_MIB else f"{memory:,} MiB of memory left"


def _free_memory_mib() -> int | None:
    """The memory that programs can still get; None if this system does not say."""
    with suppress(OSError, ValueError):
        for line in _MEMORY.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) >> 10
    return None
