"""Where an arena notes the attempts that it has granted, as `BusJobs` uses it.

An arena with a database has `arena.storage.attempts.Attempts`; a command that plays no competition
has `MemoryAttempts`, as nothing of it goes on when its process ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from arena.competitions.jobs import MatchJob
from arena.storage.attempts import AttemptRow, AttemptState
from arena.workers.messages import SeatProgram

__all__ = ["AnnouncedJob", "AttemptLog", "MemoryAttempts"]


class AnnouncedJob(msgspec.Struct, frozen=True):
    """What `AttemptRow.message` holds, in msgpack: all that a restarted arena needs of a job."""

    job: MatchJob
    programs: tuple[SeatProgram, ...]  # by seat, as they were sent
    bucket: int | None = None  # of speed, of the class that it was sent to


class AttemptLog(Protocol):
    """`arena.storage.attempts.Attempts`; what reads is called in a thread."""

    async def announce(self, row: AttemptRow) -> None: ...
    def ended(self, attempt: str, state: AttemptState, why: str) -> None: ...
    async def flushed(self) -> None: ...
    def get(self, attempt: str) -> AttemptRow | None: ...
    def of(self, competition: str) -> Sequence[AttemptRow]: ...
    def open_of(self, competition: str) -> Sequence[AttemptRow]: ...
    def is_recorded(self, attempt: str) -> bool: ...


class MemoryAttempts:
    """An `AttemptLog` of one process, which nobody reads later; matches are not recorded here."""

    def __init__(self) -> None:
        self.rows: dict[str, AttemptRow] = {}

    async def announce(self, row: AttemptRow) -> None:
        self.rows[row.id] = row

    def ended(self, attempt: str, state: AttemptState, why: str) -> None:
        row = self.rows.get(attempt)
        if row is not None and row.state is not AttemptState.VOID:
            self.rows[attempt] = msgspec.structs.replace(row, state=state, why=why)

    async def flushed(self) -> None:
        """Nothing is written."""

    def get(self, attempt: str) -> AttemptRow | None:
        return self.rows.get(attempt)

    def of(self, competition: str) -> Sequence[AttemptRow]:
        return [row for row in self.rows.values() if row.competition == competition]

    def open_of(self, competition: str) -> Sequence[AttemptRow]:
        return [row for row in self.of(competition) if row.state is not AttemptState.VOID]

    def is_recorded(self, attempt: str) -> bool:
        return False
