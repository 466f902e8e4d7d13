"""The file in which a client saves its session, to go on after its process was killed.

It holds the session's secret and the seed of every running match's strategy. The strategies
themselves are rebuilt from the questions and answers that the arena repeats. Anyone with the secret
could play as the bot, so only the owner can read the file, and no message shows the secret.

A lock file beside it, held while the bot runs, keeps a second bot of that name from taking over the
session. Windows has no `fcntl` and therefore no lock: a second bot there replaces the first.

A file that is not a session of this bot is never changed.
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
    """The session file cannot be read, written or locked, or belongs to another bot."""


class SavedSession(
    msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="type", tag="session"
):
    """The content of a session file.

    Attributes:
        url: the arena's address.
        name: the bot's name there.
        secret: the value for `resume`; empty before the first `welcome`.
        made: how many strategies the session has had.
        seeds: the seed of every running match's strategy, by the match's id.
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
        """Read the bot's session at that address; None if there is none.

        Raises:
            SessionUnusable: the file has other content, and must not be overwritten.
        """
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable("read", error) from None
        if not data:
            return None  # an empty file, made by `mktemp`, say
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
        """Replace the session atomically.

        There is no fsync: the file must survive the process, not the machine.

        Raises:
            SessionUnusable: the file cannot be written; the old one is unchanged.
        """
        new = self._path.with_name(f"{self._path.name}.new")
        try:
            new.unlink(missing_ok=True)  # left by a killed process
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL  # never follow a link
            with open(os.open(new, flags, 0o600), "wb") as file:
                file.write(msgspec.json.encode(kept))
            new.replace(self._path)
        except OSError as error:
            raise self._unusable("written", error) from None

    def remove(self) -> None:
        """Delete the file. Errors are ignored, since the arena forgets the session as well."""
        with contextlib.suppress(OSError):
            self._path.unlink()

    def close(self) -> None:
        """Release the lock."""
        if self._lock is None:
            return
        with contextlib.suppress(OSError):
            self._lock_path.unlink()  # before releasing the lock; see `_take_lock`
        os.close(self._lock)
        self._lock = None

    @property
    def _shown(self) -> str:
        return one_line(str(self._path))

    def _unusable(self, done: str, error: OSError) -> SessionUnusable:
        why = error.strerror or type(error).__name__
        return SessionUnusable(f"the session cannot be {done} in {self._shown}: {why}")

    def _take_lock(self) -> None:
        # The lock is a separate file, because `write` replaces the session file. Its previous owner
        # may delete it after we have opened but before we have locked it: then try again.
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
    """Return the default path of a bot's session file, one for every name at every address.

    Raises:
        SessionUnusable: this user has no home folder.
    """
    windows = sys.platform == "win32"
    told = os.environ.get("LOCALAPPDATA" if windows else "XDG_STATE_HOME", "")
    if os.path.isabs(told):  # the XDG specification ignores relative paths
        base = Path(told)
    else:
        try:
            base = Path.home() / ("AppData/Local" if windows else ".local/state")
        except RuntimeError:
            raise SessionUnusable("there is no home to keep the session in") from None
    digest = hashlib.sha256(f"{url}\n{name}".encode(errors="surrogatepass")).hexdigest()[:16]
    return base / "card-arena" / f"{digest}.json"
