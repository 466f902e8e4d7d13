"""Sees to it that what another process changes in the roster takes effect in a running arena, within about a second.

The database is read in a thread: the event loop never waits for it. While it cannot be read everything stays as it was. Whatever goes
wrong where a change takes effect, later changes are still seen: a token that is revoked has to be. What other processes ask of the
arena (`arena/storage/roster_requests.py`) is carried out here as well.
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

_LOOK_S = 0.5  # a change is seen within that, and no look takes long

OnRequest: TypeAlias = Callable[[Request], Awaitable[str]]
"""Carries a request out and says what came of it; raises `ArenaError` if that cannot be done."""


class RosterWatch:
    """Looks at the roster again and again.

    Args:
        roster: what is looked at.
        on_change: told what is in it now, whenever that has changed.
        seen: the revision that is known already.
        every_s: how often to look.
        requests: what other processes ask.
        on_request: carries that out.
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
        """Look until cancelled."""
        while True:
            await asyncio.sleep(self._every_s)
            await self.look()

    async def look(self) -> None:
        """Look once, now."""
        try:
            access, asked = await asyncio.to_thread(self._read)
        except StoreFailed as error:
            if not self._is_blind:  # once, not twice a second
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
        """Do what another process asks, unless it has given up meanwhile."""
        requests, on_request = self._requests, self._on_request
        assert requests is not None, "there is a request"
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
                await self.look()  # who asked finds it in effect
            await asyncio.to_thread(requests.answer, key, request, text, is_done=is_done)
        except StoreFailed as error:
            log.warning("a request of another process stays without an answer: %s", error)

    def _read(self) -> tuple[Access | None, tuple[tuple[str, Request], ...]]:
        """What is new, if anything is, and what is asked."""
        if self._roster.revision() == self._seen:
            return None, ()
        access = self._roster.access()
        return access, () if self._requests is None else self._requests.waiting()
