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

__all__ = ["HouseBots"]

_IDLE_S = 60.0  # who plays again should not wait for a process once more


class _HouseBotProcess:
    """One process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.users = 0
        self.is_up = False
        self.starting: asyncio.Task[None] | None = None
        self.idle: asyncio.TimerHandle | None = None


class HouseBots:
    """The house bots of a parlour.

    Args:
        host: starts and stops them.
        on_failed: told the name of one that cannot be started, and why.
    """

    def __init__(self, host: Host, on_failed: Callable[[str, str], None]) -> None:
        self._host = host
        self._on_failed = on_failed
        self._known: dict[str, tuple[str, ...]] = {}
        self._bots: dict[tuple[str, str], _HouseBotProcess] = {}
        self._loop = asyncio.get_running_loop()
        self.names: Mapping[str, _HouseBotProcess] = {}
        self.tables = host.limits.tables

    def known(self, game: str) -> Collection[str]:
        """The house bots that there are for a game."""
        if game not in self._known:  # to look for them takes milliseconds
            self._known[game] = tuple(house_bots(game))
        return self._known[game]

    def free(self, game: str, bot: str) -> int:
        """How many tables more it can play at."""
        process = self._bots.get((game, bot))
        return self.tables - (0 if process is None else process.users)

    def take(self, game: str, bot: str) -> str:
        """Somebody wants to play against it; what it is called at the table. It comes as soon as it is up."""
        process = self._bots.get((game, bot))
        if process is None or self._is_gone(process):
            process = self._start(game, bot)
        process.users += 1
        if process.idle is not None:
            process.idle.cancel()
            process.idle = None
        return process.name

    def leave(self, name: str) -> None:
        """Somebody does not play against it any more."""
        for key, process in self._bots.items():
            if process.name == name:
                process.users -= 1
                if not process.users:
                    process.idle = self._loop.call_later(_IDLE_S, self._stop, key)

    def is_gone(self, name: str) -> bool:
        """Whether it was up and has ended, or cannot be started."""
        process = self.names.get(name)
        return process is None or self._is_gone(process)

    def close(self) -> None:
        """The arena closes, and stops them."""
        for process in self._bots.values():
            if process.idle is not None:
                process.idle.cancel()
            if process.starting is not None:
                process.starting.cancel()

    # --- within ---

    def _is_gone(self, process: _HouseBotProcess) -> bool:
        return process.is_up and process.name not in self._host.supervisor

    def _start(self, game: str, bot: str) -> _HouseBotProcess:
        taken = self._host.presence.taken
        name = f"house:{bot}"
        if self._host.presence.is_taken(name):  # another game's, or the one before that is going
            name = unused(f"{name} ({game_named(game).vocabulary.alias})", taken)
        process = _HouseBotProcess(name)
        self._put((game, bot), process)
        process.starting = self._loop.create_task(self._call(game, bot, process))
        process.starting.add_done_callback(partial(self._started, (game, bot), process))
        return process

    async def _call(self, game: str, bot: str, process: _HouseBotProcess) -> None:
        await self._host.supervisor.launch_house_bot(game, process.name, bot, self.tables)
        process.is_up = True

    def _started(
        self, key: tuple[str, str], process: _HouseBotProcess, task: asyncio.Task[None]
    ) -> None:
        process.starting = None
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            return
        if self._bots.get(key) is process:
            self._put(key, None)
        text = str(error) if isinstance(error, ArenaError) else "the arena failed"
        self._on_failed(process.name, text)

    def _stop(self, key: tuple[str, str]) -> None:
        """Nobody has wanted it for a while."""
        process = self._bots[key]
        self._put(key, None)
        if process.starting is not None:
            process.starting.cancel()
        self._host.supervisor.dismiss(process.name)

    def _put(self, key: tuple[str, str], process: _HouseBotProcess | None) -> None:
        if process is None:
            with suppress(KeyError):
                del self._bots[key]
        else:
            self._bots[key] = process
        self.names = {one.name: one for one in self._bots.values()}
