"""Polls the roster, so that changes by another process take effect in a running arena at once.

The database is read in a thread, and the event loop never waits for it. While it cannot be read,
everything stays as it was. A failure where a change takes effect is logged, and later changes are
still seen: a revoked token must not stay valid. The requests of other processes
(`arena/storage/roster_requests.py`) are carried out here as well.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from arena.storage.roster import Roster
from arena.storage.roster_requests import Request, RosterRequests
from arena.storage.tokens import Access
from protocol.errors import ArenaError, StoreFailed

__all__ = ["OnRequest", "RosterWatch"]

log = logging.getLogger(__name__)

_LOOK_S = 0.5  # a change is seen within that; one look takes a millisecond or two

OnRequest: TypeAlias = Callable[[Request], Awaitable[str]]
"""Carries a request out and returns its answer; raises `ArenaError` if that cannot be done."""


class RosterWatch:
    """Polls the roster, and calls `on_change` with its new content after every change.

    `seen` is the revision that is known already, `every_s` the pause between two looks.
    `on_request` carries out the `requests` of other processes; they come together or not at all.
    """

    def __init__(
        self,
        roster: Roster,
        on_change: Callable[[Access], None],
        seen: int = -1,
        every_s: float = _LOOK_S,
        requests: RosterRequests | None = None,
        on_request: OnRequest | None = None,
    ) -> None:
        self._roster = roster
        self._on_change = on_change
        self._seen = seen
        self._every_s = every_s
        self._requests = requests
        self._on_request = on_request
        self._is_blind = False

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            await self.look()

    async def look(self) -> None:
        try:
            access, asked = await asyncio.to_thread(self._read)
        except StoreFailed as error:
            if not self._is_blind:  # logged once, not twice a second
                log.warning("the roster stays as it was: %s", error)
            self._is_blind = True
            return
        self._is_blind = False
        if access is not None:
            self._seen = access.revision
            try:
                self._on_change(access)
            except Exception:
                log.exception("a change of the roster has taken effect in part")
        for key, request in asked:
            await self._carry_out(key, request)

    async def _carry_out(self, key: str, request: Request) -> None:
        """Carry out a request, unless the other process has given up meanwhile."""
        requests, on_request = self._requests, self._on_request
        assert requests is not None, "this is one of them"
        assert on_request is not None, "they come together"
        try:
            if not await asyncio.to_thread(requests.claim, key, request):
                return
            is_done = False
            try:
                text = await on_request(request)
                is_done = True
            except ArenaError as error:
                text = str(error)
            except Exception:
                log.exception("a request of another process failed")
                text = "the arena failed at this; see its log"
            if is_done:
                await self.look()  # it is in effect before the other process reads the answer
            await asyncio.to_thread(requests.answer, key, request, text, is_done=is_done)
        except StoreFailed as error:
            log.warning("cannot answer a request of another process: %s", error)

    def _read(self) -> tuple[Access | None, tuple[tuple[str, Request], ...]]:
        """The new content, None if it is unchanged, and the requests that wait."""
        if self._roster.revision() == self._seen:
            return None, ()
        access = self._roster.access()
        return access, () if self._requests is None else self._requests.waiting()
