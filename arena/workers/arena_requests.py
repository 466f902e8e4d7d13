"""What a worker asks and tells an arena, as often as it takes: the bus may be away for a while."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from arena.workers.attempt import WorkerAttempt
from arena.workers.bus import Bus, BusDown
from arena.workers.messages import (
    Announcement,
    PartOfProgram,
    ProgramRequest,
    Reply,
    decode,
    encode,
)
from protocol.errors import ArenaError

__all__ = ["ArenaRequests"]

log = logging.getLogger(__name__)

_AGAIN_S = 1.0  # between two tries at what the bus did not carry
_ANNOUNCEMENTS = 5  # so often an arena is asked while the bus is up
_KEPT_S = 3600.0  # a result that the bus has, in case it loses everything


class ArenaRequests:
    """The requests of a worker of that name; `note` gets a line about what cannot be read."""

    def __init__(self, bus: Bus, worker: str, note: Callable[[str], None]) -> None:
        self._bus = bus
        self._worker = worker
        self._note = note

    async def announce(self, attempt: WorkerAttempt) -> Reply | None:
        """What the arena says to an attempt; None if it does not answer."""
        announcement = encode(
            Announcement(
                job=attempt.job.id,
                attempt=attempt.id,
                commitment=attempt.drawn.commitment,
                worker=self._worker,
            )
        )
        tries = 0
        while tries < _ANNOUNCEMENTS:
            tries += self._bus.is_up  # cut off it goes on, as it may be granted already
            try:
                data = await self._bus.announce(attempt.job.arena, self._worker, announcement)
                reply: Reply = decode(data, Reply)
                return reply
            except BusDown as error:
                log.debug("attempt %s: %s", attempt.id, error)
            except msgspec.DecodeError as error:
                self._note(f"what arena {attempt.job.arena} replies cannot be read: {error}")
                return None
            await asyncio.sleep(_AGAIN_S)
        return None

    async def fetch_part(self, attempt: WorkerAttempt, key: str, offset: int) -> bytes:
        """Bytes of a program; waits while the bus is away.

        Raises `BusDown` if the arena does not answer, and `ArenaError` if it refuses.
        """
        request = encode(
            ProgramRequest(worker=self._worker, attempt=attempt.id, key=key, offset=offset)
        )
        while True:
            try:
                reply = await self._bus.program_part(attempt.job.arena, self._worker, request)
                break
            except BusDown:
                if self._bus.is_up:
                    raise
                await asyncio.sleep(_AGAIN_S)
        part: PartOfProgram = decode(reply, PartOfProgram)
        if part.why:
            raise ArenaError(part.why)
        return part.data

    async def hand_in(self, attempt: WorkerAttempt, result: bytes) -> None:
        """Hand a result in until the bus has it and the arena has taken it."""
        while not attempt.is_taken:
            attempt.is_wanted_again = False
            attempt.news.clear()
            await self.until_up(
                partial(self._bus.hand_in, attempt.job.arena, self._worker, attempt.id, result)
            )
            try:
                async with asyncio.timeout(_KEPT_S):
                    while not (attempt.is_taken or attempt.is_wanted_again):
                        await attempt.news.wait()
                        attempt.news.clear()
            except TimeoutError:
                return  # the bus has it; who put the job may have been killed for good

    async def until_up(self, action: Callable[[], Awaitable[None]]) -> None:
        """Do something on the bus, as often as it takes."""
        while True:
            try:
                await action()
                return
            except BusDown as error:
                log.debug("the bus: %s", error)
                await asyncio.sleep(_AGAIN_S)
