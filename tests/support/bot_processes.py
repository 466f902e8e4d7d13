"""Tools and processes that tests of launched bots need."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.arena_process import below_other_tests

__all__ = ["living", "needs"]


def needs(tool: str, why_not: str | None) -> None:
    """Skip a test for want of a tool, and say why; fail where `CI` is set, as there all is tested."""
    if why_not is not None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{tool}: {why_not}")


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
