"""Keeps the last matches that were played on this machine, for `arena replay last`.

They are files in the user's state directory, one per match. If the disk is full or read-only, no
match is kept and nothing fails.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import msgspec

from arena.games.match import Record
from protocol.errors import ArenaError

__all__ = ["MOST_KEPT", "LabMatch", "LabMatches", "recent_match"]

MOST_KEPT = 20
_MOST_BYTES = 5_000_000  # of one match, so that 20 of them are no burden


class LabMatch(msgspec.Struct, frozen=True):
    """A match: its bots' names by seat, its record, and when it was played, in Unix seconds."""

    players: tuple[str, ...]
    record: Record
    finished_at: float


class LabMatches:
    """Remembers the last matches of a command, and writes them to disk at its end."""

    def __init__(self) -> None:
        self._matches: deque[tuple[Sequence[int], Record, float]] = deque(maxlen=MOST_KEPT)

    def add(self, bots: Sequence[int], record: Record) -> None:
        """Remember a match; `bots` are the bots' numbers by seat."""
        self._matches.append((bots, record, time.time()))

    def keep(self, names: Sequence[str]) -> None:
        """Write the matches to disk if possible, and remove older files.

        `names` are the bots' names, by number.
        """
        with contextlib.suppress(OSError, RuntimeError):  # no home, no space, no permission
            folder = _folder()
            folder.mkdir(parents=True, exist_ok=True)
            for number, (bots, record, finished_at) in enumerate(self._matches):
                players = tuple(names[bot] for bot in bots)
                encoded = msgspec.json.encode(LabMatch(players, record, finished_at))
                if len(encoded) <= _MOST_BYTES:
                    _write(folder / f"{time.time_ns():020}-{number:02}.json", encoded)
            for old in _kept(folder)[MOST_KEPT:]:
                old.unlink(missing_ok=True)


def recent_match(number: int) -> LabMatch | None:
    """Return the last match for 1, the one before for 2; None if it was not kept.

    Raises `ArenaError` if its file cannot be read.
    """
    path = None
    with contextlib.suppress(OSError, RuntimeError):
        path = next(iter(_kept(_folder())[number - 1 : number]), None)
    if path is None:
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=LabMatch)
    except (OSError, msgspec.DecodeError, UnicodeError) as error:
        raise ArenaError(f"{path} cannot be read: {error}") from None


def _folder() -> Path:
    """Return the directory of the matches; raises `RuntimeError` if the user has no home."""
    told = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_STATE_HOME", "")
    if os.path.isabs(told):  # the XDG specification ignores relative paths
        base = Path(told)
    elif sys.platform == "win32":
        base = Path.home() / "AppData/Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library/Application Support"
    else:
        base = Path.home() / ".local/state"
    return base / "card-arena" / "matches"


def _kept(folder: Path) -> list[Path]:
    """Return the files of matches, newest first."""
    return sorted(folder.glob("*.json"), reverse=True)


def _write(path: Path, encoded: bytes) -> None:
    """Write a whole file or none."""
    unfinished = path.with_suffix(f".{os.getpid()}")
    try:
        unfinished.write_bytes(encoded)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
