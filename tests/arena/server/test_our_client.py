"""Our own client against the arena: two implementations of the wire meet, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from arena.games.catalogue import GAMES
from bots.client import Client
from bots.strategy import BaseStrategy
from protocol.codec import Encoding
from protocol.errors import Unreachable
from protocol.messages import Ending
from protocol.strategy import find, house_bots
from protocol.vocabulary import Question
from tests.support.gateway_bots import SHORT, GatewayArena, in_arena
from tests.support.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time


@asynccontextmanager
async def clients(
    arena: GatewayArena, game: str, *strategies: Any, **options: Any
) -> AsyncIterator[list[str]]:
    """Clients that play a strategy each, until the context ends; their names."""
    names = [f"bot {number}" for number in range(len(strategies))]
    async with asyncio.TaskGroup() as group:
        playing = [
            group.create_task(Client(arena.url, name, {game: strategy}, **options).run())
            for name, strategy in zip(names, strategies, strict=True)
        ]
        await arena.until(lambda: set(names) <= set(arena.gateway.players))
        yield names
        for client in playing:
            client.cancel()


@pytest.mark.parametrize("game", GAMES)
async def test_house_bots_play_every_game(arena: GatewayArena, game: str) -> None:
    bots = [find(game, bot) for bot in house_bots(game)]
    async with clients(arena, game, *bots, encoding=Encoding.MSGPACK) as names:
        for first in range(len(names) - GAMES[game].seats + 1):
            seated = names[first : first + GAMES[game].seats]
            table = arena.open(game, *seated, **SHORT[game])
            result, verdict = await arena.result(table)

            assert result.termination.kind is Ending.COMPLETED
            assert verdict is None


async def test_a_bot_comes_back_with_its_memory_when_its_connection_is_lost(
    arena: GatewayArena,
) -> None:
    learner = find("ace_king_queen", "learner")
    made: list[object] = []

    def make() -> Any:
        made.append(learner())
        return made[-1]

    async with clients(arena, "ace_king_queen", make) as [name], arena.bot("raw") as raw:
        table = arena.open("ace_king_queen", name, "raw", hands=200)
        raws = asyncio.create_task(raw.play())
        losses = 0
        while not raws.done():
            await asyncio.sleep(0.02)
            connection = arena.gateway.players[name].connection
            if connection is not None and losses < 3:
                connection.cut()
                losses += 1
        _, verdict = await arena.result(table)

        assert (verdict, losses, len(made)) == (None, 3, 1)


async def test_a_bot_gives_up_when_its_patience_ends() -> None:
    async with in_arena() as arena:
        simple = {"blackjack": find("blackjack", "simple")}
        playing = asyncio.create_task(Client(arena.url, "ann", simple, patience_s=20).run())
        await arena.until(lambda: arena.plays("ann"))
        connection = arena.gateway.players["ann"].connection
        assert connection is not None
        virtual_loop().network.servers.clear()
        connection.cut()
        began_s = virtual_loop().time()
        with pytest.raises(Unreachable, match="no arena answers at ws://"):
            await playing

        assert 20 <= virtual_loop().time() - began_s < 40  # and the last pause


class AlwaysRaises(BaseStrategy):
    """Says what is never legal."""

    def decide(self, question: Question[Any]) -> object:
        return "raise"


async def test_in_practice_a_bot_that_plays_illegally_plays_on(arena: GatewayArena) -> None:
    arena.gateway.referee.practice = True
    told: list[str] = []
    async with clients(arena, "blackjack", AlwaysRaises, on_event=told.append) as [name]:
        _, verdict = await arena.result(arena.open("blackjack", name, hands=5))

        assert verdict is None
    refused = [line for line in told if "refused: " in line]
    assert refused, "at least its first bet; after that it may be broke"
    assert all('"raise"' in line and "; answered " in line for line in refused)
