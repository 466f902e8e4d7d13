"""Finds out what a host's machine can run, by trying it, and which resources are short."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from arena.games.catalogue import GAMES
from arena.hosts.messages import HostKind
from arena.sandbox import bubblewrap, cgroup
from arena.sandbox.command import find_program
from arena.sandbox.toolchains import installed
from protocol.version import __version__

__all__ = ["COMMANDS", "host_kind", "isolation", "shortage", "working_commands"]

_TELL_VERSION = (
    "python3 python node ruby perl php julia Rscript dotnet mono racket guile sbcl swipl runghc "
    "elixir deno bun uv bash gawk jq"
)
COMMANDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_TELL_VERSION.split(), ("--version",)),
    **dict.fromkeys(("java", "ocaml"), ("-version",)),
    **dict.fromkeys(("lua", "luajit"), ("-v",)),
    **dict.fromkeys(("sh", "dash"), ("-c", "true")),
    "escript": ("-h",),
    "awk": ("BEGIN{}",),
    "tclsh": (),
    "env": ("true",),
}
"""Programs that start bots, each with arguments that make it succeed at once."""

_TRY_S = 20.0  # enough for the first start of a JVM on a loaded machine
_AT_ONCE = 4
_MEMORY_MIB = 128  # with less, the kernel swaps and may kill processes
_DISK_MIB = 64  # programs are unpacked and started on the disk
_MEMORY = Path("/proc/meminfo")


def host_kind() -> HostKind:
    """Find out what can run on this machine; this takes a second or two."""
    return HostKind(
        arena_version=__version__,
        system=sys.platform,
        machine=platform.machine(),
        isolation=isolation(),
        languages=tuple(sorted(tool.name for tool in installed() if not tool.missing)),
        commands=working_commands(),
        games=tuple(sorted({str(game.package or name) for name, game in GAMES.items()})),
    )


def isolation() -> str:
    """Return how bots are isolated from this machine and each other; empty if they are not."""
    if bubblewrap.probe() is not None:
        return ""
    return "bubblewrap" if cgroup.probe() is not None else "bubblewrap, cgroup"


def working_commands() -> tuple[str, ...]:
    """Return those of `COMMANDS` that are on PATH and succeed."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        works = pool.map(_works, COMMANDS)
        return tuple(sorted(name for name, good in zip(COMMANDS, works, strict=True) if good))


def _works(name: str) -> bool:
    found = find_program(name)
    if found is None:
        return False
    words, nothing = (found, *COMMANDS[name]), subprocess.DEVNULL
    try:
        subprocess.run(
            words, stdin=nothing, stdout=nothing, stderr=nothing, timeout=_TRY_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def shortage(folders: Sequence[Path]) -> str:
    """Say what is short now: memory, or disk in one of these folders; empty if nothing is.

    What the system does not report is not short. This is quick enough for the event loop.
    """
    for folder in folders:
        with suppress(OSError):
            free = shutil.disk_usage(folder).free >> 20
            if free < _DISK_MIB:
                return f"{free:,} MiB of disk left"
    with suppress(OSError, ValueError):
        for line in _MEMORY.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) >> 10
                return "" if free >= _MEMORY_MIB else f"{free:,} MiB of memory left"
    return ""
