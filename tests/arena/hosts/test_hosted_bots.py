"""The bots of one arena on a host, by what the arena says."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from arena.hosts.hosted_bots import BotHost, HostedBots
from arena.hosts.messages import Source, StartBot, WantedPart, on_link
from arena.hosts.program_cache import Fetch
from protocol.errors import ArenaError
from protocol.messages import Limits
from tests.support.hosted_arena import report_of
from tests.support.silent_link import SilentLink

START = StartBot(
    seat=1,
    name="ann1",
    game="ace_king_queen",
    program=Source("k", 1, "python"),
    limits=Limits(),
    stderr_bytes=100,
)


async def test_what_is_fetched_for_an_arena_ends_with_its_link() -> None:
    link, fetching = SilentLink(), list[asyncio.Future[bytes]]()

    async def programs(wanted: object, game: str, name: str, fetch: Fetch) -> Any:
        fetching.append(asyncio.ensure_future(fetch(0)))  # others may wait for it, too
        await asyncio.Event().wait()

    async def not_opened(*wanted: object) -> None:
        raise AssertionError("it is open")

    host = BotHost(report_of("h1"), lambda limits: 1, programs, (), not_opened)
    bots = HostedBots(host, "a1", Limits())
    bots.link = link
    bots.message(on_link(START))
    while not link.told:
        await asyncio.sleep(0)
    assert link.told == [WantedPart("k", 0)]
    assert bots.programs == ("k",)
    await bots.close()

    with pytest.raises(ArenaError, match="the link to the arena was lost"):
        await fetching[0]
