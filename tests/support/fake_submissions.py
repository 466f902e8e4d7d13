"""Submissions without programs: versions that are in play, and processes that start as told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

from arena.competitions.process_pool import SeatBot, SeatProcess, StartFailed
from arena.games.verdict import Finding
from arena.referee.bot_session import BotSession
from arena.submissions.settings import SubmissionSettings
from protocol.errors import UsageError

__all__ = ["FakeHostPools", "FakeSeatPool", "FakeVersionService"]


class FakeVersionService:
    """Stands in for `SubmissionService`; submission 17 of ann is her version 7, say."""

    def __init__(self, **in_play: int) -> None:
        self.settings = SubmissionSettings()
        self.on_change: list[Callable[[], None]] = []
        self._in_play = in_play
        self._known = set(in_play.values())

    def plays(self, owner: str, submission: int | None) -> None:
        """Another submission of an owner is in play now, or none."""
        if submission is None:
            del self._in_play[owner]
        else:
            self._in_play[owner] = submission
            self._known.add(submission)
        for call in self.on_change:
            call()

    def in_play(self, game: str) -> Mapping[str, int]:
        return self._in_play

    def all_in_play(self) -> Collection[Any]:
        return [SimpleNamespace(owner=one, submission=at) for one, at in self._in_play.items()]

    def label(self, number: int) -> str:
        return f"v{number % 10}" if number in self._known else ""

    async def learn(self, numbers: Iterable[int]) -> None:
        self._known.update(numbers)

    async def close(self) -> None:
        """Nothing is on."""


class FakeSeat:
    """A reserved seat; its process starts in the next turn, unless the pool says otherwise."""

    def __init__(self, pool: FakeSeatPool, bot: SeatBot) -> None:
        self.bot = bot
        self.pool = pool
        self.is_released = False

    async def session(self) -> BotSession:
        await asyncio.sleep(0)
        await self.pool.starts.wait()
        failure = self.pool.failures.get(self.bot.name)
        if failure is not None:
            raise StartFailed(failure) if isinstance(failure, Finding) else failure
        return self.pool.make(self.bot)

    def release(self, match: str = "") -> None:
        if self.is_released:
            return
        self.is_released = True
        self.pool.released.append((self.bot.name, self.bot.submission, match))
        self.pool.reserved.remove(self)
        asyncio.get_running_loop().call_soon(self.pool.on_room)


class FakeSeatPool:
    """Stands in for `ProcessPool`: every reservation is a process of its own.

    Attributes:
        make: makes the session of a process.
        most: how many processes fit now.
        ever: how many fit if nothing else is there.
        starts: while it is not set, processes do not get ready.
        failures: by public name, why no process of it starts.
        seated: the bots of all reservations so far.
        idle: those that need not be started.
        at_once, playing: as in `ProcessPool`.
        restless: the names of bots that compute out of turn.
        released: (public name, submission, match) of all that were given back.
    """

    def __init__(self, make: Callable[[SeatBot], BotSession], most: int = 100) -> None:
        self.on_room: Callable[[], None] = lambda: None
        self.make = make
        self.most = most
        self.ever = most
        self.starts = asyncio.Event()
        self.starts.set()
        self.failures: dict[str, Finding | Exception] = {}
        self.reserved: list[FakeSeat] = []
        self.most_reserved = 0
        self.seated: list[SeatBot] = []
        self.released: list[tuple[str, int | None, str]] = []
        self.needed: set[int] = set()
        self.idle: set[SeatBot] = set()
        self.at_once = 1
        self.playing = 0
        self.restless: set[str] = set()

    def reserve(self, bots: Sequence[SeatBot]) -> Sequence[SeatProcess] | None:
        if len(bots) > self.ever:
            raise UsageError(f"expected at most {self.ever} submitted bots in a match")
        if len(self.reserved) + len(bots) > self.most:
            return None
        new = [FakeSeat(self, bot) for bot in bots]
        self.reserved += new
        self.most_reserved = max(self.most_reserved, len(self.reserved))
        self.seated += bots
        return cast(Sequence[SeatProcess], new)

    def warm(self, bots: Iterable[SeatBot]) -> int:
        return len(self.idle.intersection(bots))

    def retire_others(self, needed: Collection[int]) -> None:
        self.needed = set(needed)


class FakeHostPools:
    """Stands in for `HostPools`: one host that starts submissions and the `portable` bots.

    Attributes:
        pool: that of the host.
        at_once: how many matches are played there at once; 0 if the host is gone.
        asked: the bots of each match for which room was asked for.
    """

    def __init__(self, pool: FakeSeatPool, at_once: int, portable: Collection[str]) -> None:
        self.pool = pool
        self.at_once = pool.at_once = at_once
        self.portable = set(portable)
        self.asked: list[Sequence[SeatBot]] = []

    @property
    def pools(self) -> Sequence[FakeSeatPool]:
        return (self.pool,) if self.at_once else ()

    def is_portable(self, name: str, game: str) -> bool:
        return name in self.portable

    def ask(self, bots: Sequence[SeatBot]) -> None:
        self.asked.append(bots)
