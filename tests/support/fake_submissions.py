"""Submissions without programs: versions that are in play, and processes that start as told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

from arena.competitions.process_pool import ReservedSeat, StartFailed
from arena.engine.names import process_name
from arena.engine.verdict import Finding
from arena.referee.bot_session import BotSession
from arena.submissions.settings import SubmissionSettings

__all__ = ["FakeSeatPool", "FakeVersionService"]


class FakeVersionService:
    """Stands in for `SubmissionService`; submission 17 of ann is her version 7, say."""

    def __init__(self, **in_play: int) -> None:
        self.settings = SubmissionSettings()
        self.on_change: list[Callable[[], None]] = []
        self._in_play = in_play

    def plays(self, owner: str, submission: int | None) -> None:
        """Another submission of an owner is in play now, or none."""
        if submission is None:
            del self._in_play[owner]
        else:
            self._in_play[owner] = submission
        for call in self.on_change:
            call()

    def in_play(self, game: str) -> Mapping[str, Any]:
        return {
            owner: SimpleNamespace(submission=number, version=number % 10)
            for owner, number in self._in_play.items()
        }

    def all_in_play(self) -> Collection[Any]:
        return [SimpleNamespace(owner=one, submission=at) for one, at in self._in_play.items()]

    async def get(self, number: int) -> Any:
        return SimpleNamespace(version=number % 10)


class FakeSeat:
    """A reserved seat; its process starts in the next turn, unless the pool says otherwise."""

    def __init__(self, pool: FakeSeatPool, name: str, submission: int) -> None:
        self.of = name, submission
        self.pool = pool
        self.is_released = False

    async def session(self) -> BotSession:
        await asyncio.sleep(0)
        await self.pool.starts.wait()
        failure = self.pool.failures.get(self.of[0])
        if failure is not None:
            raise StartFailed(failure) if isinstance(failure, Finding) else failure
        return self.pool.make(*self.of)

    def release(self, match: str = "") -> None:
        if self.is_released:
            return
        self.is_released = True
        self.pool.released.append((*self.of, match))
        self.pool.reserved.remove(self)
        asyncio.get_running_loop().call_soon(self.pool.on_room)


class FakeSeatPool:
    """Stands in for `ProcessPool`: every reservation is a process of its own.

    Attributes:
        make: makes the session of a process.
        most: how many processes fit.
        starts: while it is not set, processes do not get ready.
        failures: by public name, why no process of it starts.
        seated: (public name, submission) of all reservations so far.
        idle: (public name, submission) of those that need not be started.
        at_once, playing: as in `ProcessPool`.
        released: the same, with the match, of all that were given back.
    """

    def __init__(self, make: Callable[[str, int], BotSession], most: int = 100) -> None:
        self.on_room: Callable[[], None] = lambda: None
        self.make = make
        self.most = most
        self.starts = asyncio.Event()
        self.starts.set()
        self.failures: dict[str, Finding | Exception] = {}
        self.reserved: list[FakeSeat] = []
        self.most_reserved = 0
        self.seated: list[tuple[str, int]] = []
        self.released: list[tuple[str, int, str]] = []
        self.needed: set[tuple[str, int]] = set()
        self.idle: set[tuple[str, int]] = set()
        self.at_once = 1
        self.playing = 0

    def reserve(self, seats: Sequence[tuple[str, int]]) -> Sequence[ReservedSeat] | None:
        if len(self.reserved) + len(seats) > self.most:
            return None
        new = [FakeSeat(self, *seat) for seat in seats]
        self.reserved += new
        self.most_reserved = max(self.most_reserved, len(self.reserved))
        self.seated += seats
        return cast(Sequence[ReservedSeat], new)

    def warm(self, seats: Iterable[tuple[str, int]]) -> int:
        return len(self.idle.intersection(seats))

    def are_warm(self, seats: Iterable[tuple[str, int]]) -> bool:
        return self.idle.issuperset(seats)

    def retire_others(self, needed: Collection[tuple[str, int]]) -> None:
        self.needed = set(needed)

    def process(self, name: str) -> str:
        """A name for the next process of a bot."""
        return process_name(name, len(self.seated))
