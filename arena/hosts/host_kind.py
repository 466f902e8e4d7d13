"""What can run on this machine: each language and command is tried, not guessed."""

from __future__ import annotations

import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from arena.games import GAMES
from arena.hosts.messages import HostKind
from arena.sandbox import bubblewrap, cgroup
from arena.sandbox.command import find_program
from arena.sandbox.toolchains import installed
from protocol.version import __version__

__all__ = ["COMMANDS", "host_kind", "isolation", "working_commands"]

COMMANDS = {
    "python3": ("--version",),
    "python": ("--version",),
    "node": ("--version",),
    "java": ("-version",),
    "ruby": ("--version",),
    "perl": ("--version",),
    "php": ("--version",),
    "lua": ("-v",),
    "luajit": ("-v",),
    "julia": ("--version",),
    "Rscript": ("--version",),
    "dotnet": ("--version",),
    "mono": ("--version",),
    "racket": ("--version",),
    "guile": ("--version",),
    "sbcl": ("--version",),
    "swipl": ("--version",),
    "ocaml": ("-version",),
    "runghc": ("--version",),
    "escript": ("-h",),
    "elixir": ("--version",),
    "deno": ("--version",),
    "bun": ("--version",),
    "uv": ("--version",),
    "bash": ("--version",),
    "sh": ("-c", "true"),
    "dash": ("-c", "true"),
    "awk": ("BEGIN{}",),
    "gawk": ("--version",),
    "jq": ("--version",),
    "tclsh": (),
    "env": ("true",),
}
"""Programs that start bots, each with arguments that make it succeed at once."""

_TRY_S = 20.0  # the first start of a JVM on a loaded machine
_AT_ONCE = 4


def host_kind() -> HostKind:
    """What can run on this machine; this takes a second or two."""
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
    """How launched bots are kept from this machine and from each other; empty if they are not."""
    if bubblewrap.probe() is not None:
        return ""
    return "bubblewrap" if cgroup.probe() is not None else "bubblewrap, cgroup"


def working_commands() -> tuple[str, ...]:
    """Those of `COMMANDS` that are on PATH and start with success."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        works = pool.map(_works, COMMANDS)
        return tuple(sorted(name for name, good in zip(COMMANDS, works, strict=True) if good))


def _works(name: str) -> bool:
    found = find_program(name)
    if found is None:
        return False
    try:
        done = subprocess.run(
            (found, *COMMANDS[name]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TRY_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
