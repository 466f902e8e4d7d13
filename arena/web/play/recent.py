"""The matches that people have played lately: kept in memory for a while, as the database does not have them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from arena.engine.match import Record
from protocol.messages import Verdict

__all__ = ["PersonalMatch", "RecentMatches"]

_MOST = 200
_MOST_ANSWERS = 1_000_000  # in all of them: some ten megabytes


class PersonalMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A match that somebody has sat down to.

    Attributes:
        match: its id.
        players: the names by seat; the person's is the first.
        record: as of any match.
        verdict: the evidence, if it ended by an offence.
        started_at: when the seats were invited, in Unix seconds.
        finished_at: when the result was known.
    """

    match: str
    players: tuple[str, ...]
    record: Record
    verdict: Verdict | None = None
    started_at: float
    finished_at: float


class RecentMatches:
    """The latest of them: so many, or fewer if they are long."""

    def __init__(self) -> None:
        self._matches: dict[str, PersonalMatch] = {}
        self._answers = 0

    def __len__(self) -> int:
        """How many there are."""
        return len(self._matches)

    def __iter__(self) -> Iterator[PersonalMatch]:
        """All of them, the oldest first."""
        return iter(self._matches.values())

    def get(self, match: str) -> PersonalMatch | None:
        """The match of that id."""
        return self._matches.get(match)

    def add(self, sat: PersonalMatch) -> None:
        """One more; the oldest go where there is no room."""
        self._matches[sat.match] = sat
        self._answers += len(sat.record.answers)
        while len(self) > 1 and (len(self) > _MOST or self._answers > _MOST_ANSWERS):
            oldest = self._matches.pop(next(iter(self._matches)))
            self._answers -= len(oldest.record.answers)
