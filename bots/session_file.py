"""The file in which a client keeps its session, so that the same bot goes on after its process was killed.

It holds the session's secret and what every running match's strategy was seeded with, nothing of the strategies themselves: they are
rebuilt from what the arena says was asked and answered. Whoever reads the secret can play in the bot's place: only its owner can
read the file, and nothing here shows what is in it.

A lock beside it, held while the bot runs, keeps a second bot of that name from taking the session over. Windows has none
(there is no `fcntl`): a second bot there replaces the first.

A file that is no session of this bot is left as it is, whatever it may be.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from pathlib import Path
from typing import TypeAlias

import msgspec

from protocol.errors import ArenaError, one_line

if sys.platform != "win32":
    import fcntl

__all__ = ["SavedSession", "SessionFile", "SessionUnusable", "default_place"]

Seed: TypeAlias = str | None


class SessionUnusable(ArenaError):
    """The session file cannot be read, written or locked, or is another's."""


class SavedSession(
    msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="type", tag="session"
):
    """What outlives the process.

    Attributes:
        url: the arena's address.
        name: what the bot calls itself there.
        secret: what `resume` takes; empty before the first `welcome`.
        made: how many strategies the session has had.
        seeds: what the strategy of every running match was seeded with, by the match's id.
    """

    url: str
    name: str
    secret: str = ""
    made: int = 0
    seeds: dict[str, Seed] = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Kept(url={self.url!r}, name={self.name!r})"  # never the secret


class SessionFile:
    """One bot's session file, locked until it is closed.

    Raises:
        SessionUnusable: another process has it, or its folder cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock_path = path.with_name(f"{path.name}.lock")
        self._lock: int | None = None
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._take_lock()
        except OSError as error:
            raise self._unusable("kept", error) from None

    def read(self, url: str, name: str) -> SavedSession | None:
        """The session that this bot had at that address; None if there is none.

        Raises:
            SessionUnusable: there is something else in the file; it must not be written.
        """
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable("read", error) from None
        if not data:
            return None  # made by `mktemp`, say
        try:
            kept = msgspec.json.decode(data, type=SavedSession)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise SessionUnusable(
                f"{self._shown} is no session of ours; delete it or choose another file"
            ) from None
        if (kept.url, kept.name) != (url, name):
            bot = one_line(f"{kept.name!r} at {kept.url}")
            raise SessionUnusable(f"{self._shown} is the session of {bot}; choose another file")
        return kept

    def write(self, kept: SavedSession) -> None:
        """Put a session in the place of the last one, at once and whole.

        It survives the process, which is all it has to: there is no waiting for the disk.

        Raises:
            SessionUnusable: it cannot be written; what was there still is.
        """
        new = self._path.with_name(f"{self._path.name}.new")
        try:
            new.unlink(missing_ok=True)  # of a process that was killed meanwhile
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL  # no one else's file or link
            with open(os.open(new, flags, 0o600), "wb") as file:
                file.write(msgspec.json.encode(kept))
            new.replace(self._path)
        except OSError as error:
            raise self._unusable("written", error) from None

    def remove(self) -> None:
        """There is nothing to go on with."""
        with contextlib.suppress(OSError):  # the arena forgets the session, too
            self._path.unlink()

    def close(self) -> None:
        """Let go of the lock."""
        if self._lock is None:
            return
        with contextlib.suppress(OSError):
            self._lock_path.unlink()  # while it is ours; see `_take_lock`
        os.close(self._lock)
        self._lock = None

    @property
    def _shown(self) -> str:
        return one_line(str(self._path))

    def _unusable(self, done: str, error: OSError) -> SessionUnusable:
        why = error.strerror or type(error).__name__
        return SessionUnusable(f"the session cannot be {done} in {self._shown}: {why}")

    def _take_lock(self) -> None:
        """Lock the file beside it; its own place is taken by another file at every writing.

        Whoever had the lock before may have unlinked that file between our opening and our locking it; then we try again.
        """
        if sys.platform == "win32":
            return
        while self._lock is None:
            lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(self._lock_path, lock):
                    self._lock = lock
            except BlockingIOError:
                raise SessionUnusable(
                    f"another process of this bot has its session in {self._shown}"
                ) from None
            finally:
                if self._lock is None:
                    os.close(lock)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def default_place(url: str, name: str) -> Path:
    """Where a bot's session is kept unless it is told otherwise: a file for every name at every address.

    Raises:
        SessionUnusable: this user has no home.
    """
    windows = sys.platform == "win32"
    told = os.environ.get("LOCALAPPDATA" if windows else "XDG_STATE_HOME", "")
    if os.path.isabs(told):  # as the XDG specification has it
        base = Path(told)
    else:
        try:
            base = Path.home() / ("AppData/Local" if windows else ".local/state")
        except RuntimeError:
            raise SessionUnusable("there is no home to keep the session in") from None
    digest = hashlib.sha256(f"{url}\n{name}".encode(errors="surrogatepass")).hexdigest()[:16]
    return base / "card-arena" / f"{digest}.json"
