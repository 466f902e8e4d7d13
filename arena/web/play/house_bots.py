"""The house bots that play against people: one process for each, at many tables, from when it is first wanted until nobody has wanted it
for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from arena.games import game_named
from arena.sandbox.bot_spec import unused
from protocol.errors import ArenaError
from protocol.strategy import house_bots

if TYPE_CHECKING:
    from arena.competitions.arena_host import Host

__all__ = ["Servants"]

_IDLE_S = 60.0  # who plays again should not wait for a process once more


class _Servant:
    """One process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.users = 0
        self.is_up = False
        self.starting: asyncio.Task[None] | None = None
        self.idle: asyncio.TimerHandle | None = None


class Servants:
    """The house bots of a parlour.

    Args:
        host: starts and stops them.
        on_failed: told the name of one that cannot be started, and why.
    """

    def __init__(self, host: Host, on_failed: Callable[[str, str], None]) -> None:
        self._host = host
        self._on_failed = on_failed
        self._known: dict[str, tuple[str, ...]] = {}
        self._servants: dict[tuple[str, str], _Servant] = {}
        self._loop = asyncio.get_running_loop()
        self.names: Mapping[str, _Servant] = {}
        self.tables = host.limits.tables

    def known(self, game: str) -> Collection[str]:
        """The house bots that there are for a game."""
        if game not in self._known:  # to look for them takes milliseconds
            self._known[game] = tuple(house_bots(game))
        return self._known[game]

    def free(self, game: str, bot: str) -> int:
        """How many tables more it can play at."""
        servant = self._servants.get((game, bot))
        return self.tables - (0 if servant is None else servant.users)

    def take(self, game: str, bot: str) -> str:
        """Somebody wants to play against it; what it is called at the table. It comes as soon as it is up."""
        servant = self._servants.get((game, bot))
        if servant is None or self._is_gone(servant):
            servant = self._start(game, bot)
        servant.users += 1
        if servant.idle is not None:
            servant.idle.cancel()
            servant.idle = None
        return servant.name

    def leave(self, name: str) -> None:
        """Somebody does not play against it any more."""
        for key, servant in self._servants.items():
            if servant.name == name:
                servant.users -= 1
                if not servant.users:
                    servant.idle = self._loop.call_later(_IDLE_S, self._stop, key)

    def is_gone(self, name: str) -> bool:
        """Whether it was up and has ended, or cannot be started."""
        servant = self.names.get(name)
        return servant is None or self._is_gone(servant)

    def close(self) -> None:
        """The arena closes, and stops them."""
        for servant in self._servants.values():
            if servant.idle is not None:
                servant.idle.cancel()
            if servant.starting is not None:
                servant.starting.cancel()

    # --- within ---

    def _is_gone(self, servant: _Servant) -> bool:
        return servant.is_up and servant.name not in self._host.crew

    def _start(self, game: str, bot: str) -> _Servant:
        taken = self._host.presence.taken
        name = f"house:{bot}"
        if self._host.presence.is_taken(
            name
        ):  # another game's, or the one before that is going
            name = unused(f"{name} ({game_named(game).vocabulary.alias})", taken)
        servant = _Servant(name)
        self._put((game, bot), servant)
        servant.starting = self._loop.create_task(self._call(game, bot, servant))
        servant.starting.add_done_callback(partial(self._started, (game, bot), servant))
        return servant

    async def _call(self, game: str, bot: str, servant: _Servant) -> None:
        await self._host.crew.call_house(game, servant.name, bot, self.tables)
        servant.is_up = True

    def _started(
        self, key: tuple[str, str], servant: _Servant, task: asyncio.Task[None]
    ) -> None:
        servant.starting = None
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            return
        if self._servants.get(key) is servant:
            self._put(key, None)
        text = str(error) if isinstance(error, ArenaError) else "the arena failed"
        self._on_failed(servant.name, text)

    def _stop(self, key: tuple[str, str]) -> None:
        """Nobody has wanted it for a while."""
        servant = self._servants[key]
        self._put(key, None)
        if servant.starting is not None:
            servant.starting.cancel()
        self._host.crew.dismiss(servant.name)

    def _put(self, key: tuple[str, str], servant: _Servant | None) -> None:
        if servant is None:
            with suppress(KeyError):
                del self._servants[key]
        else:
            self._servants[key] = servant
        self.names = {one.name: one for one in self._servants.values()}
