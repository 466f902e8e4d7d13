"""Loads a bot's file as it was at a git commit, such as `mybot.py@HEAD~3`."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from arena.games.catalogue import game_named
from arena.games.rules import Game
from arena.lab.in_process import Entrant, entrant
from protocol.errors import UnknownBot, UsageError
from protocol.strategy import load_file

__all__ = ["bot_path", "entrants_of", "game_of", "is_file"]

_VERSION = re.compile(r"(?P<file>.+\.py)@(?P<commit>.+)", re.DOTALL)
_GIT_S = 60.0  # for one git command; an archive of a large folder takes a second


def is_file(bot: str) -> bool:
    """Whether `bot` is a FILE.py or FILE.py@COMMIT."""
    return bot.endswith(".py") or _VERSION.fullmatch(bot) is not None


@contextlib.contextmanager
def bot_path(bot: str) -> Iterator[str]:
    """Give the block a path for FILE@COMMIT; any other `bot` stays as it is.

    During the block, the file's folder as it was at that commit is in a temporary folder.
    Raises `UsageError` without git, and `UnknownBot` if there is no such commit or file.
    """
    version = _VERSION.fullmatch(bot)
    if version is None:
        yield bot
        return
    file, commit = Path(version["file"]), version["commit"]
    with tempfile.TemporaryDirectory(prefix="arena-") as folder:
        yield str(_extracted(bot, file, commit, Path(folder).resolve()))


def _extracted(bot: str, file: Path, commit: str, target: Path) -> Path:
    # The file's folder may no longer exist, so start from the nearest parent that does.
    near = next(
        path for path in (file.absolute().parent, *file.absolute().parents) if path.is_dir()
    )
    top = _git(bot, near, "rev-parse", "--show-toplevel")
    if top is None:
        raise UnknownBot(f"{bot}: expected {near} in a git repository, found none")
    root = Path(top.decode().strip()).resolve()
    sha = _git(bot, root, "rev-parse", "--verify", "--end-of-options", f"{commit}^{{commit}}")
    if sha is None:
        raise UnknownBot(f"{bot}: expected a commit after the @, found none named {commit!r}")
    place = (near.resolve() / file.absolute().relative_to(near)).relative_to(root)
    tree = sha.decode().strip()
    if _git(bot, root, "cat-file", "-e", f"{tree}:{place.as_posix()}") is None:
        raise UnknownBot(f"{bot}: {place.as_posix()} is not in commit {commit}; see git log")
    folder = place.parent.as_posix()
    archive = _git(
        bot, root, "archive", "--format=tar", tree if folder == "." else f"{tree}:{folder}"
    )
    try:
        with tarfile.open(fileobj=io.BytesIO(archive or b"")) as tar:
            tar.extractall(target, filter="data")
    except (tarfile.TarError, OSError) as error:
        raise UnknownBot(f"{bot}: its folder at that commit cannot be unpacked: {error}") from None
    return target / place.name


def _git(bot: str, folder: Path, *words: str) -> bytes | None:
    """Run git and return its output; None if it fails."""
    try:
        done = subprocess.run(
            ["git", *words],
            cwd=folder,
            capture_output=True,
            timeout=_GIT_S,
            check=False,
            # Inside a git hook, these variables point to the hook's own repository.
            env={name: value for name, value in os.environ.items() if name[:4] != "GIT_"},
        )
    except FileNotFoundError:
        raise UsageError(f"{bot}: expected git on this machine, found none") from None
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{bot}: git cannot be used: {error}") from None
    return done.stdout if done.returncode == 0 else None


def game_of(path: str) -> Game:
    """Return the game that the bot in a file plays; raises what `load_file` raises."""
    return game_named(load_file(Path(path)).game)


def entrants_of(game: Game, bots: Sequence[str], paths: Sequence[str]) -> tuple[Entrant, ...]:
    """Load the bots at these paths, with their names from `bots`."""
    return tuple(
        Entrant(bot, entrant(game, path).make) for bot, path in zip(bots, paths, strict=True)
    )
