"""Nobody loses on time by the network or the arena (J7), and nobody gains by pretending to.

Gateway, referee and bots run on one clock, to the millisecond.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.support.gateway_bots import GatewayArena, RawBot, in_arena
from tests.support.memory_network import line_of
from tests.support.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time

CAP_MS = 600
CAP = {"decision_ms": CAP_MS, "hard_ms": CAP_MS, "bank_ms": 0}
MOST_CREDIT_MS = 150.0  # design §5
RESOLUTION_MS = 15.0  # a tick, its slack, and rounding


async def far_away(arena: GatewayArena, bot: RawBot, each_way_ms: float) -> None:
    """Have a bot's line take so long each way, until the arena knows it."""
    line_of(bot.websocket.transport).latency_s = each_way_ms / 1000
    player = arena.gateway.players[bot.name]
    await asyncio.sleep(5)
    assert player.link.is_known
    assert player.link.floor_ms == pytest.approx(min(2 * each_way_ms, MOST_CREDIT_MS))


@pytest.mark.parametrize(
    ("each_way_ms", "thinks_ms", "ended"),
    [
        (60, 0.9 * CAP_MS, "completed"),  # it would be late without the credit
        (60, CAP_MS + RESOLUTION_MS, "timeout"),
        (200, CAP_MS - 250 - RESOLUTION_MS, "completed"),  # or holds back its pongs: 150 ms
        (200, CAP_MS - 250 + RESOLUTION_MS, "timeout"),  # and not a millisecond more
    ],
)
async def test_J7_a_decision_is_credited_with_the_link_up_to_150_ms(
    each_way_ms: float, thinks_ms: float, ended: str
) -> None:
    async with in_arena(**CAP) as arena, arena.bot() as ann:
        await far_away(arena, ann, each_way_ms)
        table = arena.open("three_card_poker", "ann", rounds=1)
        await ann.ready()
        while (message := await ann.hear())["type"] == "ask":
            await asyncio.sleep(thinks_ms / 1000)
            await ann.answer(message)
        result, verdict = await arena.result(table)

        assert result.termination.kind == ended
        if ended == "timeout":
            assert verdict is not None
            assert verdict.bank_ms == 0
            assert verdict.credit_ms == pytest.approx(min(2 * each_way_ms, MOST_CREDIT_MS), abs=0.1)
            used_ms = (verdict.taken_ms or 0) - (verdict.credit_ms or 0)
            assert CAP_MS < used_ms <= CAP_MS + RESOLUTION_MS
        else:
            assert verdict is None


@pytest.mark.parametrize(
    ("stall_s", "thinks_ms", "ended"),
    [
        (0.7, 0, "completed"),
        (0.7, CAP_MS - RESOLUTION_MS, "completed"),
        (0.7, CAP_MS + RESOLUTION_MS, "timeout"),
        (40, CAP_MS - RESOLUTION_MS, "completed"),
        (40, CAP_MS + RESOLUTION_MS, "timeout"),
    ],
)
async def test_J7_a_stall_of_the_arena_costs_nobody_time(
    stall_s: float, thinks_ms: float, ended: str
) -> None:
    async with in_arena(**CAP) as arena, arena.asked() as asked:
        virtual_loop().stands_still(stall_s)
        await asyncio.sleep(thinks_ms / 1000)
        await asked.bot.answer(asked.ask)
        await asyncio.gather(asked.bot.play(), asked.bens)
        result, verdict = await arena.result(asked.table)

        assert result.termination.kind == ended
        if verdict is not None:
            assert (verdict.taken_ms or 0) >= stall_s * 1000


@pytest.mark.virtual_time(limit_s=300)
async def test_a_ping_that_waits_behind_a_long_thought_is_no_silence() -> None:
    """One thread reads, thinks and answers."""
    long = {"decision_ms": 200_000, "hard_ms": 200_000}
    async with in_arena(**long) as arena, arena.asked(hands=1) as asked:
        asked.bot.websocket.ping_timeout = None  # of its own pings
        transport = asked.bot.websocket.transport
        player = arena.gateway.players["ann"]
        wire = player.connection
        transport.pause_reading()
        await asyncio.sleep(100)
        await asked.bot.answer(asked.ask)
        await asyncio.sleep(1)  # the pings are looked at while the other is asked
        assert player.connection is wire
        transport.resume_reading()
        await asyncio.gather(asked.bot.play(), asked.bens)

        assert player.connection is wire
        assert (await arena.result(asked.table))[1] is None
