"""The bots of one arena on a host, by what the arena says."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from arena.hosts.hosted_bots import HostedBots
from arena.hosts.messages import Source, StartBot, WantedPart, from_host, on_link
from arena.hosts.program_cache import Fetch
from arena.referee.compute_gate import ComputeGate
from protocol.errors import ArenaError
from protocol.messages import Limits

START = StartBot(
    seat=1,
    name="ann1",
    game="ace_king_queen",
    program=Source("k", 1, "python"),
    limits=Limits(),
    stderr_bytes=100,
)


class SilentArena:
    """The arena's end of a link, which hears and does not answer."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def tell(self, message: bytes) -> None:
        self.heard.append(from_host(message))

    def carry(self, piece: bytes) -> None: ...

    def cut(self) -> None: ...


async def test_what_is_fetched_for_an_arena_ends_with_its_link() -> None:
    arena, fetching = SilentArena(), list[asyncio.Future[bytes]]()

    async def programs(wanted: object, game: str, name: str, fetch: Fetch) -> Any:
        fetching.append(asyncio.ensure_future(fetch(0)))  # others may wait for it, too
        await asyncio.Event().wait()

    bots = HostedBots(
        arena, Limits(), ComputeGate(1), programs, (), lambda: 0.0, lambda has_come: None
    )
    bots.message(on_link(START))
    while not arena.heard:
        await asyncio.sleep(0)
    assert (arena.heard, bots.programs) == ([WantedPart("k", 0)], ("k",))
    await bots.close()

    with pytest.raises(ArenaError, match="the link to the arena was lost"):
        await fetching[0]
