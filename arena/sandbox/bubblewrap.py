"""Isolation by bubblewrap: a bot runs in namespaces of its own.

It sees the system's programs, the files that it is shown, and one directory to write in. It does
not see the arena's database, records and tokens, other bots' directories and people's homes.
Bubblewrap needs unprivileged user namespaces, which many systems forbid: call `probe` first.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from arena.sandbox.command import (
    SYSTEM,
    VisiblePath,
    expose,
    find_program,
    game_packages,
    holds_home,
)
from arena.sandbox.scarcity import is_scarce, scarcity_in
from protocol.errors import one_line

__all__ = ["IN_MEMORY", "SCRATCH_MIB", "knows", "probe", "wrap"]

_PROBE_S = 10.0  # for a loaded machine; it usually takes some milliseconds
# This memory is charged to no process: enough for locks and pipes, too little to hoard data in.
SCRATCH_MIB = 64
"""The size of each of a bot's three directories in memory, where bubblewrap can bound it."""
IN_MEMORY = ("/dev/shm", "/tmp")
"""Two of these directories; the third is the one that the bot starts in."""
_VIRTUAL = ("bin", "lib", "lib64", "include", "share", "pyvenv.cfg")  # Python's own
_INSTALLED = ("/opt", "/usr/local")  # system directories into which people install programs
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
    """Why bubblewrap cannot be used, in one line, or None if it can; it is tried only once.

    Without a network it needs one more permission, which some machines lack. Raises OSError if this
    machine has no descriptor, process or memory left for the trial, which would decide nothing.
    """
    if sys.platform != "linux":
        return "bubblewrap is there for Linux only"
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (no bwrap on PATH)"
    try:
        done = subprocess.run(
            [*_frame(network=network, sealed=not network), "--remount-ro", "/", "--", "true"],
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
        if is_scarce(error):
            raise
        return f"bubblewrap does not start: {error.strerror}"
    if done.returncode:
        said = one_line(done.stderr.strip()) or f"exit status {done.returncode}"
        if (lacking := scarcity_in(said)) is not None:
            raise lacking
        return f"bubblewrap is blocked on this machine: {said}"
    return None


def wrap(
    command: Sequence[str],
    *,
    scratch: Path,
    shown: Sequence[VisiblePath] = (),
    hidden: Sequence[Path] = (),
    network: bool = True,
    program: str | None = None,
    scratch_mib: int = SCRATCH_MIB,
    sealed: bool = False,
) -> list[str]:
    """The command line that runs a program in a sandbox, where it can only write to `scratch`.

    The program starts in `scratch`. Relative places in `shown` are below it, and `command` is
    looked up there or on PATH. The `hidden` paths are resolved, and are not seen even in the
    system's directories. What `program`, by default the first word of `command`, needs is seen. A
    `sealed` program does not see files installed beside the system that only our account may read.
    """
    support = tuple(_support(program or command[0]))
    words = _frame(hidden, network=network, sealed=sealed, support=support)
    bound = [Path(path) for path in SYSTEM]
    outside: list[VisiblePath] = []
    for path in support:
        if not _is_in(path, bound) and not holds_home(path):
            bound.append(path)
            outside += expose(path, path, hidden)
    outside += (
        item for item in shown if item.place.is_absolute() and not _is_in(item.place, bound)
    )
    for item in sorted(outside, key=lambda item: len(item.place.parts)):
        words += ["--ro-bind-try", str(item.source), str(item.place)]
    # In memory where that can be bounded, so that no bot fills the arena's disk.
    words += _tmpfs(str(scratch), scratch_mib) or ["--bind", str(scratch), str(scratch)]
    for item in shown:
        if not item.place.is_absolute():
            words += ["--ro-bind-try", str(item.source), str(scratch / item.place)]
    return [*words, "--remount-ro", "/", "--chdir", str(scratch), "--", *command]


def _is_in(path: Path, folders: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _frame(
    hidden: Sequence[Path] = (),
    *,
    network: bool,
    sealed: bool = False,
    support: Sequence[Path] = (),
) -> list[str]:
    """Bubblewrap's own words: its namespaces and the system's directories.

    Of the paths hidden from a `sealed` program, those that `support` it stay visible.
    """
    words = [shutil.which("bwrap") or "bwrap", *_NAMESPACES]
    if not network:
        words.append("--unshare-net")
    if knows("--disable-userns"):  # in a user namespace it could mount memory of its own
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
    folders = ("/etc", *_INSTALLED) if sealed else ("/etc",)
    needed = frozenset((*support, *_python_and_java()))
    secrets = chain.from_iterable(_secrets(folder, needed) for folder in folders)
    for secret in filter(os.path.lexists, secrets):
        if os.path.isdir(secret):
            words += ["--tmpfs", secret, "--remount-ro", secret]
        else:
            words += ["--ro-bind", os.devnull, secret]
    # The kernel lets root's processes change settings of the whole machine there, even
    # unprivileged.
    words += ["--proc", "/proc", "--ro-bind-try", "/proc/sys", "/proc/sys"]
    words += ["--dev", "/dev", "--remount-ro", "/dev"]
    # Files in memory are charged to no process: bound them, or forbid them.
    for folder in IN_MEMORY:
        words += _tmpfs(folder) or ["--tmpfs", folder, "--remount-ro", folder]
    return words


@functools.cache
def _secrets(folder: str, support: frozenset[Path]) -> tuple[str, ...]:
    """What our account may read in a folder but not everybody, as found at the first call.

    A bot runs under our account, and there may be passwords, keys and tokens. Paths in `support` do
    not count, even if they were installed for our account alone.
    """
    shared = {*SYSTEM, "/usr/local"}
    needed = {str(place) for path in support for place in (path, path.resolve())} - shared
    secrets = []
    for top, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if os.path.join(top, name) not in needed]
        private = [
            name
            for name in folders + files
            if _is_private(path := os.path.join(top, name))
            and not any(need.startswith(f"{path}/") for need in needed)
        ]
        secrets += [os.path.join(top, name) for name in private]
        folders[:] = [name for name in folders if name not in private]
    return tuple(sorted(secrets))


def _is_private(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:  # it has just disappeared
        return False
    if stat.S_ISDIR(found.st_mode):
        return found.st_mode & 0o005 != 0o005 and os.access(path, os.X_OK)
    is_for_all = found.st_mode & stat.S_IROTH
    return stat.S_ISREG(found.st_mode) and not is_for_all and os.access(path, os.R_OK)


def _tmpfs(folder: str, mib: int = SCRATCH_MIB) -> list[str]:
    """A bounded directory in memory; empty where bubblewrap cannot bound one."""
    return ["--size", str(mib << 20), "--tmpfs", folder] if knows("--size") else []


@functools.cache
def knows(option: str) -> bool:
    """Whether bubblewrap has an option: `--size` since 0.7, `--disable-userns` since 0.8."""
    done = subprocess.run(
        [shutil.which("bwrap") or "bwrap", "--help"],
        capture_output=True,
        timeout=_PROBE_S,
        check=False,
    )
    return option.encode() in done.stdout + done.stderr


# ---- What a program needs besides the system


def _support(command: str) -> Iterator[Path]:
    """Yield our Python with its packages and games, JAVA_HOME, and the program's installation."""
    yield from _python_and_java()
    if os.path.dirname(command) and not os.path.isabs(command):
        return  # it is in the bot's own folder
    program = find_program(command)
    while program:
        place = _installation(Path(program))
        if not (_is_virtual() and place.resolve() == Path(sys.prefix).resolve()):
            yield place
        if not os.path.islink(program):
            return
        link = os.readlink(program)
        program = os.path.normpath(os.path.join(os.path.dirname(program), link))


def _python_and_java() -> Iterator[Path]:
    yield Path(sys.base_prefix)
    if _is_virtual():  # people may keep their database and tokens beside these
        yield from (Path(sys.prefix, name) for name in _VIRTUAL)
    # Other folders have packages that a .pth file added.
    yield from (Path(entry) for entry in sys.path if os.path.basename(entry) == "site-packages")
    for package in ("bots", "protocol"):
        spec = importlib.util.find_spec(package)
        for place in (spec and spec.submodule_search_locations) or ():
            yield Path(place)
    yield from game_packages()
    if java := os.environ.get("JAVA_HOME"):
        yield Path(java)


def _is_virtual() -> bool:
    return sys.prefix != sys.base_prefix


def _installation(program: Path) -> Path:
    """The folder that a program needs to run: `jdk` for `jdk/bin/java`, but never a home."""
    folder = program.parent
    whole = folder.parent if folder.name in ("bin", "sbin", "shims") else folder
    for candidate in (whole, folder):
        # ~/.local has bin, and private data of programs, too.
        if candidate.name != ".local" and not holds_home(candidate):
            return candidate
    return program
