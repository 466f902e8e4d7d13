"""Sees to it that what another process changes in the roster takes effect in a running arena, within about a second.

The database is read in a thread: the event loop never waits for it. While it cannot be read everything stays as it was. Whatever goes
wrong where a change takes effect, later changes are still seen: a token that is revoked has to be.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from arena.access import Access
from arena.roster import Roster
from protocol.errors import StoreFailed

__all__ = ["RosterWatch"]

log = logging.getLogger(__name__)

_LOOK_S = 0.5  # a change is seen within that, and no look takes long


class RosterWatch:
    """Looks at the roster again and again.

    Args:
        roster: what is looked at.
        on_change: told what is in it now, whenever that has changed.
        seen: the revision that is known already.
        every_s: how often to look.
    """

    def __init__(
        self,
        roster: Roster,
        on_change: Callable[[Access], None],
        seen: int = -1,
        every_s: float = _LOOK_S,
    ) -> None:
        self._roster = roster
        self._on_change = on_change
        self._seen = seen
        self._every_s = every_s
        self._is_blind = False

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(self._every_s)
            await self.look()

    async def look(self) -> None:
        """Look once, now."""
        try:
            access = await asyncio.to_thread(self._read)
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

    def _read(self) -> Access | None:
        """What is new, if anything is."""
        if self._roster.revision() == self._seen:
            return None
        return self._roster.access()
