"""Bubblewrap: a bot in namespaces of its own, that sees the system's programs, what it is shown, and one directory to write in.

The arena's database, records and tokens, other bots' directories and people's homes are not in there at all. It works where
unprivileged user namespaces do, which many systems forbid: `probe` tries it. Nothing here raises when there is no
bubblewrap; ask `probe` first.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from arena.sandbox.command import SYSTEM, VisiblePath, expose, find_program, holds_home
from protocol.errors import one_line

__all__ = ["probe", "wrap"]

_PROBE_S = 10.0  # a loaded machine; it takes some milliseconds
_TMPFS_BYTES = 64 << 20  # of memory that is nobody's: enough for locks and pipes, no place to hoard
# Within /etc, for an arena that runs as root: what it may read and a bot need not.
_SECRETS = ("shadow", "shadow-", "gshadow", "gshadow-", "sudoers", "ssh", "ssl/private")
_NAMESPACES = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--die-with-parent",
    "--new-session",
    "--cap-drop",
    "ALL",
)


@functools.cache
def probe(*, network: bool = True) -> str | None:
    """Why bubblewrap cannot be used, in one line, or None if it can; it is tried once.

    Args:
        network: False to ask for programs without a network, for which some machines lack a permission more.
    """
    if sys.platform != "linux":
        return "bubblewrap is there for Linux only"
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (no bwrap on PATH)"
    try:
        done = subprocess.run(
            [*_frame(network=network), "--remount-ro", "/", "--", "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"bubblewrap does not end within {_PROBE_S:.0f} s"
    except OSError as error:
        return f"bubblewrap does not start: {error.strerror}"
    if done.returncode:
        said = one_line(done.stderr.strip()) or f"exit status {done.returncode}"
        return f"bubblewrap is blocked on this machine: {said}"
    return None


def wrap(
    command: Sequence[str],
    *,
    scratch: Path,
    shown: Sequence[VisiblePath] = (),
    hidden: Sequence[Path] = (),
    network: bool = True,
) -> list[str]:
    """The command line that runs a program in a sandbox.

    Args:
        command: the program and its arguments; its first word is looked up on PATH, or from the scratch directory.
        scratch: the only directory it can write in, where it starts.
        shown: what it sees besides the system; relative places are in the scratch directory.
        hidden: resolved paths of what it must not see, even if it lies in the system's directories.
        network: whether it can connect to anything.
    """
    words = _frame(hidden, network=network)
    bound = [Path(path) for path in SYSTEM]
    outside: list[VisiblePath] = []
    for path in _support(command[0]):
        if not _is_in(path, bound) and not holds_home(path):
            bound.append(path)
            outside += expose(path, path, hidden)
    outside += (
        item for item in shown if item.place.is_absolute() and not _is_in(item.place, bound)
    )
    for item in sorted(outside, key=lambda item: len(item.place.parts)):
        words += ["--ro-bind-try", str(item.source), str(item.place)]
    if _knows("--size"):  # in memory: no bot fills the arena's disk
        words += ["--size", str(_TMPFS_BYTES), "--tmpfs", str(scratch)]
    else:
        words += ["--bind", str(scratch), str(scratch)]
    for item in shown:
        if not item.place.is_absolute():
            words += ["--ro-bind-try", str(item.source), str(scratch / item.place)]
    return [*words, "--remount-ro", "/", "--chdir", str(scratch), "--", *command]


def _is_in(path: Path, folders: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _frame(hidden: Sequence[Path] = (), *, network: bool) -> list[str]:
    """Bubblewrap with its namespaces, the system's directories, and nothing of anybody."""
    words = [shutil.which("bwrap") or "bwrap", *_NAMESPACES]
    if not network:
        words.append("--unshare-net")
    if _knows("--disable-userns"):  # within one it could mount memory of its own
        words.append("--disable-userns")
    for path in SYSTEM:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            for item in expose(Path(path), Path(path), hidden):
                words += ["--ro-bind-try", str(item.source), str(item.place)]
    names = os.path.realpath("/etc/resolv.conf")  # often a link to somewhere in /run
    if not names.startswith("/etc/"):
        words += ["--ro-bind-try", names, names]
    for secret in (os.path.join("/etc", name) for name in _SECRETS):
        if os.path.isdir(secret):
            words += ["--tmpfs", secret, "--remount-ro", secret]
        elif os.access(secret, os.R_OK):
            words += ["--ro-bind", os.devnull, secret]
    words += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
    # Files in memory count for no process: they are few, or there are none.
    for folder in ("/dev/shm", "/tmp"):
        if _knows("--size"):
            words += ["--size", str(_TMPFS_BYTES), "--tmpfs", folder]
        else:
            words += ["--tmpfs", folder, "--remount-ro", folder]
    return words


@functools.cache
def _knows(option: str) -> bool:
    """Whether this bubblewrap has an option: it can bound a tmpfs since 0.7, and forbid further namespaces since 0.8."""
    done = subprocess.run(
        [shutil.which("bwrap") or "bwrap", "--help"],
        capture_output=True,
        timeout=_PROBE_S,
        check=False,
    )
    return option.encode() in done.stdout + done.stderr


# ---- What a program needs besides the system


def _support(command: str) -> Iterator[Path]:
    """Where the program is installed, a Python with our packages, and a Java."""
    yield Path(sys.base_prefix)
    yield Path(sys.prefix)
    for package in ("bots", "protocol"):
        spec = importlib.util.find_spec(package)
        for place in (spec and spec.submodule_search_locations) or ():
            yield Path(place)
    if java := os.environ.get("JAVA_HOME"):
        yield Path(java)
    found = find_program(command)
    if os.path.dirname(command) and not os.path.isabs(command):
        return  # among what it is shown
    while found:
        yield _installation(Path(found))
        found = (
            os.path.normpath(os.path.join(os.path.dirname(found), os.readlink(found)))
            if os.path.islink(found)
            else None
        )


def _installation(program: Path) -> Path:
    """What has to be there for a program to run: of `jdk/bin/java` the `jdk`, but never a home."""
    folder = program.parent
    whole = folder.parent if folder.name in ("bin", "sbin", "shims") else folder
    for candidate in (whole, folder):
        # ~/.local has bin in it, and also what people's programs keep.
        if candidate.name != ".local" and not holds_home(candidate):
            return candidate
    return program
