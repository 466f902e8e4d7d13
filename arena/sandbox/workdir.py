"""What a bot finds when it starts: a fresh directory with its files, and its environment.

`prepare` and `clear` wait for disks and for the sandbox's probe: call them in a thread.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from arena.sandbox import bubblewrap, cgroup
from arena.sandbox.command import Program, VisiblePath, game_folders, search_path, views
from protocol.messages import Limits

__all__ = [
    "LOCK_SUFFIX",
    "PreparedBot",
    "clear",
    "environment",
    "prepare",
    "remove",
    "with_companions",
]

# A bot gets these of our environment, and LC_*. On Windows nothing starts without the second line.
_PASSED_ON = frozenset(
    "PATH LANG LANGUAGE JAVA_HOME TZ "
    "SYSTEMROOT SYSTEMDRIVE COMSPEC PATHEXT NUMBER_OF_PROCESSORS".split()
)
LOCK_SUFFIX = "-lock"
"""The suffix of the lock file beside a database that an arena uses."""

_COMPANIONS = ("", "-wal", "-shm", "-journal", LOCK_SUFFIX)  # the three in the middle are SQLite's


class PreparedBot(msgspec.Struct, frozen=True):
    """A bot that is ready to be started in its directory, `scratch`.

    If it is `isolated`, `command` is the sandbox around its program. `group` is None where we
    cannot make control groups.
    """

    scratch: Path
    command: tuple[str, ...]
    isolated: bool
    group: cgroup.Cgroup | None


def with_companions(paths: Sequence[Path]) -> tuple[Path, ...]:
    """The files, resolved, each with the companions that a database has, there or not."""
    return tuple(
        path.with_name(path.name + companion)
        for path in (path.resolve() for path in paths)
        for companion in _COMPANIONS
    )


def prepare(
    name: str,
    program: Program,
    limits: Limits,
    *,
    root: Path,
    hidden: Sequence[Path],
    isolate: bool,
    scratch_mib: int = bubblewrap.SCRATCH_MIB,
) -> PreparedBot:
    """Make a bot's directory, in `root`, with the files that the bot sees.

    No bot sees `root` or anything `hidden`. With `isolate` bubblewrap is used where it works; the
    directory then has `scratch_mib` of room. Raises `UsageError` if the program cannot be shown
    what it names.
    """
    isolated = isolate and bubblewrap.probe() is None
    network = not program.stdio or bubblewrap.probe(network=False) is not None
    hidden = (*hidden, root)
    shown = views(program, hidden)
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower())[:20].strip("-")
    scratch = Path(tempfile.mkdtemp(prefix=f"{plain}-", dir=root))
    command = program.command
    if isolated:
        command = tuple(
            bubblewrap.wrap(
                command,
                program=program.words[0],
                scratch=scratch,
                shown=shown,
                hidden=hidden,
                network=network,
                scratch_mib=scratch_mib,
                sealed=program.sealed,
            )
        )
    else:
        _link(scratch, shown)
    return PreparedBot(
        scratch=scratch, command=command, isolated=isolated, group=cgroup.make(scratch.name, limits)
    )


def clear(prepared: PreparedBot) -> None:
    """Remove a bot's group and directory, as far as its supervisor has not."""
    if prepared.group is not None:
        prepared.group.remove()
    remove(prepared.scratch)


def remove(folder: Path) -> None:
    """Remove a folder, however deep a bot has nested it."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:  # `rm` does it without recursion
        subprocess.run(["rm", "-rf", "--", folder], stderr=subprocess.DEVNULL, check=False)


def environment(name: str, scratch: Path, url: str, token: str) -> dict[str, str]:
    """A program's whole environment, with ARENA_URL and ARENA_TOKEN if they are not empty."""
    ours = {
        key: value
        for key, value in os.environ.items()
        if key in _PASSED_ON or key.startswith("LC_")
    }
    ours["PATH"] = search_path()
    if folders := game_folders():
        ours["PYTHONPATH"] = folders
    theirs = {"ARENA_NAME": name, "ARENA_URL": url, "ARENA_TOKEN": token}
    places = {"HOME": str(scratch), "TMPDIR": str(scratch)}
    return ours | places | {key: value for key, value in theirs.items() if value}


def _link(scratch: Path, shown: Sequence[VisiblePath]) -> None:
    """Link or copy a program's files to where it looks for them, without a sandbox."""
    for item in shown:
        if not item.place.is_absolute():
            source, place = item.source.absolute(), scratch / item.place
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                place.symlink_to(source, target_is_directory=source.is_dir())
            except OSError:
                if os.name != "nt":
                    raise
                # On Windows, making links needs a privilege, so copy.
                (shutil.copytree if source.is_dir() else shutil.copy2)(source, place)
