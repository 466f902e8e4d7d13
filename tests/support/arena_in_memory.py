"""A whole arena in virtual time: a `LiveArena` with its database and writer, and bots by hand.

Nobody is launched here, as a process has a clock of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from arena.competitions.competition import Competition
from arena.competitions.live_arena import LiveArena
from arena.formats.spec import Form, Plan, plan_of
from arena.games.catalogue import GAMES
from arena.storage.models import CompetitionReport
from arena.storage.store import Store
from protocol.messages import Limits
from tests.support.gateway_bots import LIMITS, GatewayArena
from tests.support.virtual_time import memory_folder

__all__ = ["HostArena", "in_host", "plan_for"]


class HostArena(GatewayArena):
    """A host, its store, and the bots that connect to it."""

    def __init__(self, host: LiveArena, store: Store) -> None:
        super().__init__(host.gateway, int(host.url.rpartition(":")[2]))
        self.host = host
        self.store = store
        self._playing: list[asyncio.Task[CompetitionReport]] = []
        self._beside: list[asyncio.Task[Any]] = []
        self.listen()

    def begin(self, plan: Plan | Competition) -> asyncio.Task[CompetitionReport]:
        """Begin to play a plan, or a competition."""
        competition = self.host.compete(plan) if isinstance(plan, Plan) else plan
        self._playing.append(asyncio.ensure_future(self.host.play(competition)))
        return self._playing[-1]

    def beside(self, work: Any) -> asyncio.Task[Any]:
        """Run something until the arena closes; if it fails, so does `close`."""
        self._beside.append(asyncio.ensure_future(work))
        return self._beside[-1]

    async def close(self) -> None:
        """End all that runs beside the test."""
        for task in (*self._playing, *self._beside):
            task.cancel()
        await asyncio.gather(*self._playing, return_exceptions=True)
        for outcome in await asyncio.gather(*self._beside, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome

    async def come(self, *names: str, **options: Any) -> None:
        """Have bots come that play until the arena closes."""
        here = asyncio.Event()

        async def play(name: str) -> None:
            async with self.bot(name, **options) as bot:
                waited.discard(name)
                if not waited:
                    here.set()
                await bot.plays_on()

        waited = set(names)
        for name in names:
            self.beside(play(name))
        await here.wait()


@asynccontextmanager
async def in_host(
    folder: Path | None = None, *, limits: Limits = LIMITS, **options: Any
) -> AsyncIterator[HostArena]:
    """An arena with a database in this folder, or in one of its own; options are those of `LiveArena`."""
    if folder is None:
        with memory_folder() as folder:
            async with in_host(folder, limits=limits, **options) as arena:
                yield arena
        return
    with Store(folder / "arena.db") as store:
        async with LiveArena(store, limits=limits, **options) as host:
            arena = HostArena(host, store)
            try:
                yield arena
            finally:
                await arena.close()
        await store.flushed()


def plan_for(game: str, players: tuple[str, ...], *form: Form, **more: Any) -> Plan:
    """A plan for a short competition; `settings` are those of its game."""
    rules = GAMES[game]
    settings = rules.vocabulary.read_settings(more.pop("settings", {}))
    return plan_of(rules, settings, players, *form, **{"limits": LIMITS, **more})
