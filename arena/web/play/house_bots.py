"""The house bots that play against people: one process each, for many tables.

A process is started for the first person who wants to play against it, and stopped when nobody has
played against it for a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from arena.games.catalogue import game_named
from arena.sandbox.bot_spec import unused
from protocol.errors import ArenaError
from protocol.strategy import house_bots

if TYPE_CHECKING:
    from arena.competitions.live_arena import LiveArena

__all__ = ["HouseBots"]

_IDLE_S = 60.0  # so that a person who plays again need not wait for a new process


class _HouseBotProcess(msgspec.Struct, eq=False):
    game: str
    bot: str
    name: str
    users: int = 0
    is_up: bool = False
    starting: asyncio.Task[None] | None = None
    idle: asyncio.TimerHandle | None = None


class HouseBots:
    """The processes of the house bots that play against people, each at up to `tables` tables.

    `on_failed` is called with the name of a bot that cannot be started, and why.

    Attributes:
        by_name: the processes by the bots' names at the table.
    """

    def __init__(self, arena: LiveArena, on_failed: Callable[[str, str], None]) -> None:
        self._arena = arena
        self._on_failed = on_failed
        self._known: dict[str, tuple[str, ...]] = {}
        self._loop = asyncio.get_running_loop()
        self.by_name: dict[str, _HouseBotProcess] = {}
        self.tables = arena.limits.tables

    def known(self, game: str) -> Collection[str]:
        """Return the installed house bots of a game."""
        if game not in self._known:  # finding them takes milliseconds
            self._known[game] = tuple(house_bots(game))
        return self._known[game]

    def free(self, game: str, bot: str) -> int:
        """Return the number of further tables that a bot can take."""
        process = self._process(game, bot)
        return self.tables - (0 if process is None else process.users)

    def take(self, game: str, bot: str) -> str:
        """Take a bot for one more table, and return its name there; it connects once started."""
        process = self._process(game, bot)
        if process is None or self._is_gone(process):
            process = self._start(game, bot)
        process.users += 1
        if process.idle is not None:
            process.idle.cancel()
            process.idle = None
        return process.name

    def leave(self, name: str) -> None:
        """Free one table of the bot with this name at the table."""
        process = self.by_name.get(name)
        if process is not None:
            process.users -= 1
            if not process.users:
                process.idle = self._loop.call_later(_IDLE_S, self._stop, process)

    def is_gone(self, name: str) -> bool:
        """Whether a bot has ended, or could not be started."""
        process = self.by_name.get(name)
        return process is None or self._is_gone(process)

    def close(self) -> None:
        """Cancel pending timers; the arena stops the processes itself."""
        for process in tuple(self.by_name.values()):
            self._forget(process)

    # --- internal ---

    def _process(self, game: str, bot: str) -> _HouseBotProcess | None:
        of_game = (each for each in self.by_name.values() if each.game == game)
        return next((each for each in of_game if each.bot == bot), None)

    def _is_gone(self, process: _HouseBotProcess) -> bool:
        return process.is_up and process.name not in self._arena.supervisor

    def _start(self, game: str, bot: str) -> _HouseBotProcess:
        taken = self._arena.here.taken
        name = f"house:{bot}"
        # A bot of another game has this name, or the previous process has not left yet.
        if self._arena.here.is_taken(name):
            name = unused(f"{name} ({game_named(game).vocabulary.alias})", taken)
        if (gone := self._process(game, bot)) is not None:
            self._forget(gone)
        process = self.by_name[name] = _HouseBotProcess(game, bot, name)
        process.starting = self._loop.create_task(self._launch(process))
        process.starting.add_done_callback(partial(self._started, process))
        return process

    async def _launch(self, process: _HouseBotProcess) -> None:
        await self._arena.supervisor.launch_house_bot(
            process.game, process.name, process.bot, self.tables
        )
        process.is_up = True

    def _started(self, process: _HouseBotProcess, task: asyncio.Task[None]) -> None:
        process.starting = None
        if task.cancelled() or (error := task.exception()) is None:
            return
        self._forget(process)
        text = str(error) if isinstance(error, ArenaError) else "the arena failed"
        self._on_failed(process.name, text)

    def _stop(self, process: _HouseBotProcess) -> None:
        self._forget(process)
        self._arena.supervisor.dismiss(process.name)

    def _forget(self, process: _HouseBotProcess) -> None:
        if self.by_name.get(process.name) is process:
            del self.by_name[process.name]
        for pending in (process.idle, process.starting):
            if pending is not None:
                pending.cancel()
