"""The latest matches that people have played, in memory: they are not in the database."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from arena.engine.match import Record
from protocol.messages import Verdict

__all__ = ["PersonalMatch", "RecentMatches"]

_MOST = 200
_MOST_ANSWERS = 1_000_000  # in all of them: about ten megabytes


class PersonalMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A match that a person has played; the name of the person is the first of `players`.

    `verdict` is on the offence that ended it, None if there was none. The match started when the
    seats were invited, and finished when the result was known; times are Unix seconds.
    """

    match: str
    players: tuple[str, ...]
    record: Record
    verdict: Verdict | None = None
    started_at: float
    finished_at: float


class RecentMatches:
    """The latest 200 matches, or fewer if they are long; iterates over them, the oldest first."""

    def __init__(self) -> None:
        self._matches: dict[str, PersonalMatch] = {}
        self._answers = 0

    def __len__(self) -> int:
        return len(self._matches)

    def __iter__(self) -> Iterator[PersonalMatch]:
        return iter(self._matches.values())

    def get(self, match: str) -> PersonalMatch | None:
        return self._matches.get(match)

    def add(self, match: PersonalMatch) -> None:
        """Add a match, and drop the oldest ones if there is no room."""
        self._matches[match.match] = match
        self._answers += len(match.record.answers)
        while len(self) > 1 and (len(self) > _MOST or self._answers > _MOST_ANSWERS):
            oldest = self._matches.pop(next(iter(self._matches)))
            self._answers -= len(oldest.record.answers)
