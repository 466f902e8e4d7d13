"""Keeps the client's session: its secret, and the seed of every running match's strategy.

It is kept in memory, and saved in a session file (bots/session_file.py) if there is one. If the
file cannot be used, an event reports that, and the bot plays on without it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Container
from pathlib import Path

from bots.session_file import SavedSession, SessionFile, SessionUnusable

__all__ = ["Keeper"]


class Keeper:
    """One bot's session.

    Args:
        url: the arena's address.
        name: the bot's name there.
        seed: the n-th strategy of a session gets "<seed>:n". With None it gets a random seed if
            there is a file to save it in, so that the strategy can be rebuilt, and none otherwise.
        path: the session file, if any.
        on_event: called with a line if the file cannot be used.
    """

    def __init__(
        self,
        url: str,
        name: str,
        *,
        seed: str | None,
        path: Path | None,
        on_event: Callable[[str], None],
    ) -> None:
        self._seed = seed
        self._path = path
        self._on_event = on_event
        self._kept = SavedSession(url=url, name=name)
        self._file: SessionFile | None = None
        self._is_new = False
        self._is_restored = False
        self._notice = ""

    @property
    def secret(self) -> str | None:
        """The value for `resume`; None without a session."""
        return self._kept.secret or None

    def open(self) -> None:
        """Lock the file and read it; an error is reported at the next `welcome`."""
        if self._path is None:
            return
        try:
            self._file = SessionFile(self._path)
            found = self._file.read(self._kept.url, self._kept.name)
        except SessionUnusable as error:
            self._notice = _without(error)
            self.close()
        else:
            self._is_restored = found is not None
            self._kept = found or self._kept

    def welcome(self, secret: str) -> None:
        """Save a new secret at once, since the old one is no longer valid."""
        self._kept.secret, self._is_new = secret, True
        self._is_restored = False
        self.save()
        if self._notice:
            self._on_event(self._notice)
            self._notice = ""

    def seed_of(self, match: str) -> str | None:
        """Return the seed for the strategy of a match, the same at every call."""
        kept = self._kept
        if match not in kept.seeds:
            kept.made += 1
            if self._seed is not None:
                kept.seeds[match] = f"{self._seed}:{kept.made}"
            else:
                kept.seeds[match] = secrets.token_hex(16) if self._file else None
            self._is_new = True
        return kept.seeds[match]

    def misses(self, seats: Container[str]) -> bool:
        """Whether the session has, or may have, a match without one of these seats."""
        # Which matches of a session from a file still run is unknown until the arena has answered.
        return self._is_restored or any(match not in seats for match in self._kept.seeds)

    def over(self, match: str) -> bool:
        """Forget a finished match; False if it is unknown."""
        if match not in self._kept.seeds:
            return False
        del self._kept.seeds[match]
        self._is_new = True
        return True

    def forget(self) -> None:
        """Forget a session that the arena no longer knows."""
        self._kept = SavedSession(url=self._kept.url, name=self._kept.name)
        self._is_restored = False

    def save(self) -> None:
        """Write the file if anything has changed."""
        if self._file is None or not self._is_new:
            return
        self._is_new = False
        try:
            self._file.write(self._kept)
        except SessionUnusable as error:
            self._on_event(_without(error))
            self.drop()  # the file's old secret is no longer valid

    def drop(self) -> None:
        """Remove the file of a session that has ended."""
        if self._file is not None:
            self._file.remove()
        self.close()

    def close(self) -> None:
        """Unlock the file, for the next process."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _without(error: SessionUnusable) -> str:
    return f"{error}; going on without a session file"
