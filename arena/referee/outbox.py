"""Writes the players' outboxes one tick of the event loop after something was put into them.

So a frame carries as much as possible, and there is one writer per connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from arena.referee.bot_session import BotSession

__all__ = ["Outboxes"]

log = logging.getLogger(__name__)


class Outboxes:
    """The outboxes of all players of a gateway.

    `on_here` is called with a player that has been told all that it had missed, `on_done` with one
    that has been told the end of its last match and takes no other (J10), `on_failed` with one to
    whom the arena could not write, by its own fault.
    """

    def __init__(
        self,
        lag_s: Callable[[float], float],
        on_here: Callable[[BotSession], None],
        on_done: Callable[[BotSession], None],
        on_failed: Callable[[BotSession], None],
    ) -> None:
        self._lag_s = lag_s
        self._on_here = on_here
        self._on_done = on_done
        self._on_failed = on_failed
        self._dirty: dict[BotSession, None] = {}
        self._loop = asyncio.get_running_loop()

    def mark_dirty(self, player: BotSession) -> None:
        if not self._dirty:
            self._loop.call_soon(self.flush)
        self._dirty[player] = None

    def flush(self) -> None:
        dirty, self._dirty = self._dirty, {}
        now = self._loop.time()
        lag_s = self._lag_s(now)
        for player in dirty:
            was_away = player.is_away
            try:
                player.flush(now, lag_s)
                if was_away and not player.is_away:
                    self._on_here(player)
                if player.session.finishing and not player.chairs:
                    self._on_done(player)
            except Exception:
                log.exception("the arena failed to write to %s", player.public_name)
                self._on_failed(player)

    def flush_now(self, player: BotSession) -> None:
        """Write a player's outbox before its connection is closed."""
        now = self._loop.time()
        player.flush(now, self._lag_s(now))
