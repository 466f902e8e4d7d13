"""What a client keeps of its session besides its seats: the secret, and what every running match's strategy was seeded with.

In memory in any case, and in a session file (bots/session_file.py) as long as there is one that can be written. Whatever is wrong with
that file is told in a line, and the bot plays on without it.
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
        name: what the bot calls itself there.
        seed: the n-th strategy of a session gets "<seed>:n". With None it gets one at random if there is a file to keep it in, so
            that it can be brought back as it was, and none otherwise.
        path: the session file, if there is to be one.
        on_event: told in a line when the file cannot be used.
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
        """What `resume` takes; None without a session."""
        return self._kept.secret or None

    def open(self) -> None:
        """Lock the file and read it; what is wrong with it is told when the bot is `welcome`."""
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
        """Keep a new secret at once, as the last one is worth nothing any more."""
        self._kept.secret, self._is_new = secret, True
        self._is_restored = False
        self.save()
        if self._notice:
            self._on_event(self._notice)
            self._notice = ""

    def seed_of(self, match: str) -> str | None:
        """What the strategy of a match is seeded with: the same whenever it is made."""
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
        """Whether there is a match that is not among these seats, or may be: nothing was heard of a file's session yet."""
        return self._is_restored or any(match not in seats for match in self._kept.seeds)

    def over(self, match: str) -> bool:
        """A match is over; False if it is not known here."""
        if match not in self._kept.seeds:
            return False
        del self._kept.seeds[match]
        self._is_new = True
        return True

    def forget(self) -> None:
        """The arena has no such session: the next `welcome` begins another."""
        self._kept = SavedSession(url=self._kept.url, name=self._kept.name)
        self._is_restored = False

    def save(self) -> None:
        """Write the file if anything is new."""
        if self._file is None or not self._is_new:
            return
        self._is_new = False
        try:
            self._file.write(self._kept)
        except SessionUnusable as error:
            self._on_event(_without(error))
            self.drop()  # an old session is worth nothing

    def drop(self) -> None:
        """The session has ended: remove the file."""
        if self._file is not None:
            self._file.remove()
        self.close()

    def close(self) -> None:
        """Leave the file to the next process."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _without(error: SessionUnusable) -> str:
    return f"{error}; going on without a session file"
