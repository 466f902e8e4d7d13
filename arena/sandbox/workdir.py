"""What a bot finds when it starts: a fresh directory, what it sees there, and an environment with nothing of the arena's own.

It waits for disks and for the sandbox's probe, so `prepare` and `clear` belong in a thread.
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
from arena.sandbox.command import Program, VisiblePath, search_path, views
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

# Of our environment, and LC_*; in the second line what nothing starts without on Windows.
_KEPT = frozenset(
    "PATH LANG LANGUAGE JAVA_HOME TZ "
    "SYSTEMROOT SYSTEMDRIVE COMSPEC PATHEXT NUMBER_OF_PROCESSORS".split()
)
# Beside a database: what SQLite puts there, and the lock of its arena.
LOCK_SUFFIX = "-lock"
"""Of the file that is locked beside a database."""

_COMPANIONS = ("", "-wal", "-shm", "-journal", LOCK_SUFFIX)


class PreparedBot(msgspec.Struct, frozen=True):
    """A bot that can be started.

    Attributes:
        scratch: its directory.
        command: what is to be executed there: its program, or the sandbox with it.
        isolated: whether that is a sandbox.
        group: its control group, if there are any here.
    """

    scratch: Path
    command: tuple[str, ...]
    isolated: bool
    group: cgroup.Cgroup | None


def with_companions(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Files, resolved, each with what lies beside it if it is a database."""
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
) -> PreparedBot:
    """Make a bot's directory with what it sees.

    Args:
        name: of the bot.
        program: its command line.
        limits: for its control group.
        root: where the directories of all bots are.
        hidden: what it must not see besides those.
        isolate: whether to use a sandbox if there is one.

    Raises:
        UsageError: it cannot be shown what it names.
    """
    isolated = isolate and bubblewrap.probe() is None
    network = not program.stdio or bubblewrap.probe(network=False) is not None
    hidden = (*hidden, root)
    shown = views(program, hidden)
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower())[:20].strip("-")
    scratch = Path(tempfile.mkdtemp(prefix=f"{plain}-", dir=root))
    command = program.words
    if isolated:
        command = tuple(
            bubblewrap.wrap(command, scratch=scratch, shown=shown, hidden=hidden, network=network)
        )
    else:
        _link(scratch, shown)
    return PreparedBot(
        scratch=scratch, command=command, isolated=isolated, group=cgroup.make(scratch.name, limits)
    )


def clear(prepared: PreparedBot) -> None:
    """Remove what a bot had, as far as its keeper has not."""
    if prepared.group is not None:
        prepared.group.remove()
    remove(prepared.scratch)


def remove(folder: Path) -> None:
    """Remove a folder with all that is in it, however deep a bot has nested it."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:  # `rm` walks without recursion
        subprocess.run(["rm", "-rf", "--", folder], stderr=subprocess.DEVNULL, check=False)


def environment(name: str, scratch: Path, url: str, token: str) -> dict[str, str]:
    """All that a program finds in its environment; the address and the token only if there are any."""
    ours = {
        key: value for key, value in os.environ.items() if key in _KEPT or key.startswith("LC_")
    }
    ours["PATH"] = search_path()
    theirs = {"ARENA_NAME": name, "ARENA_URL": url, "ARENA_TOKEN": token}
    places = {"HOME": str(scratch), "TMPDIR": str(scratch)}
    return ours | places | {key: value for key, value in theirs.items() if value}


def _link(scratch: Path, shown: Sequence[VisiblePath]) -> None:
    """Show a program its files without a sandbox; what it names by its whole path is there anyway."""
    for item in shown:
        if not item.place.is_absolute():
            place = scratch / item.place
            place.parent.mkdir(parents=True, exist_ok=True)
            _show(item.source.absolute(), place)


def _show(source: Path, place: Path) -> None:
    try:
        place.symlink_to(source, target_is_directory=source.is_dir())
    except OSError:
        if os.name != "nt":
            raise
        # Links are a privilege there: a copy.
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, place)
