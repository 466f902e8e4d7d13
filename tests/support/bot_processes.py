"""Processes of launched bots."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tests.support.arena_process import below_other_tests

__all__ = ["living"]


def living(name: str) -> list[int]:
    """All processes of a launched bot, with its supervisor, but not those of a concurrent test."""
    pids = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            if f"ARENA_NAME={name}".encode() in variables:
                pids.append(int(pid))
    others = {process.pid for process in below_other_tests()}
    return [pid for pid in pids if pid not in others]
