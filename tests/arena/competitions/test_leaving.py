"""Bots that leave: they finish the matches that are on, and only what they miss afterwards counts."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress

import pytest
from websockets.exceptions import ConnectionClosed

from arena.formats.spec import Form
from bots.client import Client
from protocol.strategy import find
from tests.support.arena_in_memory import HostArena, in_host, plan_for
from tests.support.gateway_bots import RawBot

pytestmark = pytest.mark.virtual_time(limit_s=600, tick_s=0.1)

GAME = "ace_king_queen"
FINISH = {"type": "goodbye", "finish": True}


class Leaver:
    """A client of ours that leaves as soon as it plays."""

    def __init__(self, arena: HostArena, name: str = "ann", tables: int = 2) -> None:
        self.events: list[str] = []
        self.overs = 0
        self._arena, self._name = arena, name
        self._client = Client(
            arena.url,
            name,
            {GAME: find(GAME, "nash")},
            tables=tables,
            on_event=self.events.append,
            on_over=lambda match, over: self._over(),
        )

    def _over(self) -> None:
        self.overs += 1

    async def plays_on(self) -> None:
        await self._client.run()

    def finish(self) -> None:
        self._client.finish()

    async def leaves(self, times: int = 1) -> int:
        """Play, press Ctrl-C, and play to the end; returns how many matches were on."""
        running = asyncio.ensure_future(self._client.run())
        await self._arena.until(lambda: self._arena.plays(self._name))
        bot = self._arena.gateway.players[self._name]
        while not bot.answers:
            await asyncio.sleep(0.001)
        playing, over = len(bot.chairs), self.overs
        for _ in range(times):
            self._client.finish()
        await running
        assert self.overs - over == playing
        return playing


async def test_J10_who_leaves_a_ladder_twenty_times_in_a_match_has_never_offended() -> None:
    async with in_host() as arena:
        await arena.come("ben", "cem", tables=8)
        plan = plan_for(GAME, ("ben", "cem"), Form.LADDER, settings={"hands": 30})
        competition = arena.host.compete(plan)
        playing = arena.begin(competition)
        for _ in range(20):
            leaver = Leaver(arena)
            on = await leaver.leaves()

            assert on >= 1
            assert leaver.events[-1] == "leaving a ladder costs nothing"
            assert re.search(r"goes on · rank \d of 3 · rating .* after \d+ ", leaver.events[-2])
        dan, eve = Leaver(arena, "dan", tables=8), Leaver(arena, "eve")
        staying = asyncio.ensure_future(dan.plays_on())
        await arena.until(lambda: arena.plays("dan"))
        await eve.leaves()
        assert not any("rank" in event for event in dan.events), "only who leaves is told"
        dan.finish()
        await staying
        competition.close()
        report = await playing
        await arena.store.flushed()
        rows = arena.store.results(report.competition)

    assert report.verdicts == ()
    assert {row.result.termination.kind for row in rows} == {"completed"}
    assert sum("ann" in row.players for row in rows) >= 20


@pytest.mark.parametrize("comes_back", [True, False])
async def test_J10_elsewhere_its_matches_wait_and_then_it_is_absent(comes_back: bool) -> None:
    async with in_host() as arena:
        await arena.come("ben", "cem", tables=8)
        plan = plan_for(
            GAME, ("ann", "ben", "cem"), matches=4, settings={"hands": 30}, wait_s=20, run="cup"
        )
        playing = arena.begin(plan)
        leaver = Leaver(arena)
        on = await leaver.leaves()
        if comes_back:
            await asyncio.sleep(15)
            await arena.come("ann", tables=8)
        report = await playing

    left = 8 - on
    assert leaver.events[-1] == (
        f"{left} matches wait for you in cup for up to 20 s, then you are absent"
    )
    expected = [] if comes_back else [("ann", "absent")]
    assert [(verdict.bot, verdict.kind) for verdict in report.verdicts] == expected


async def test_J10_it_is_not_in_what_begins_meanwhile() -> None:
    async with in_host() as arena, arena.bot("ann", tables=4) as ann:
        await arena.come("ben", tables=8)
        presence = arena.host.here
        arena.begin(plan_for(GAME, ("ann", "ben"), matches=1, settings={"hands": 30}))
        match = await ann.ready()
        await ann.say(**FINISH)
        await arena.until(lambda: presence.names(GAME) == ("ben",))
        before = presence.count(GAME), presence.has_new(GAME)
        arena.begin(plan_for(GAME, ("ann", "ben"), matches=3, settings={"hands": 30}))
        await asyncio.sleep(0.01)
        heard = await last(ann)

    assert before == (1, True)  # `ben`
    assert heard == {match["match"]}
    assert ann.websocket.close_code == 1000


async def last(bot: RawBot) -> set[str]:
    """Play until the arena closes; returns the matches that were played."""
    heard: set[str] = set()
    with suppress(ConnectionClosed):
        while True:
            message = await bot.hear()
            heard.add(message["match"])
            if message["type"] == "match":
                await bot.say(type="ready", match=message["match"], nonce="n")
            elif message["type"] == "ask":
                await bot.answer(message)
    return heard


async def test_J10_who_leaves_between_matches_is_closed_at_once() -> None:
    async with in_host() as arena, arena.bot("ann") as ann:
        await ann.say(**FINISH)

        assert await ann.closed() == 1000
        assert ann.websocket.close_reason == "goodbye"
        assert "ann" not in arena.gateway.players


async def test_J10_a_goodbye_after_it_is_one_in_the_middle_of_the_match() -> None:
    async with in_host() as arena, arena.asked() as asked:
        await asked.bot.say(FINISH, FINISH, {"type": "goodbye"})
        result, _ = await arena.result(asked.table)

    assert result.termination.text == "said goodbye in the middle of the match"


async def test_J10_a_goodbye_said_again_has_no_effect_and_counts_as_useless() -> None:
    async with in_host() as arena, arena.asked() as asked:
        await asked.bot.say(*[FINISH] * 3)
        await arena.until(lambda: arena.gateway.players["ann"].session.finishing)
        connection = arena.gateway.players["ann"].connection

        assert getattr(connection, "useless") == 2  # noqa: B009


@pytest.mark.parametrize("says_again", [True, False])
async def test_J7_after_a_lost_connection_it_is_said_again(says_again: bool) -> None:
    async with in_host() as arena:
        await arena.come("ben", tables=8)
        plan = plan_for(GAME, ("ann", "ben"), matches=3, settings={"hands": 30}, wait_s=5)
        async with arena.bot("ann") as ann:
            playing = arena.begin(plan)
            await ann.ready()
            await ann.hears("ask")
            await ann.say(**FINISH)
            await ann.vanish()
        async with arena.back(ann) as back:
            if says_again:
                await back.say(**FINISH)
            arena.beside(back.plays_on())
            report = await playing

    assert (len(back.overs) == 1) is says_again
    assert [verdict.kind for verdict in report.verdicts] == ["absent"] * says_again


async def test_J10_in_an_elimination_it_is_told_of_what_is_drawn_next() -> None:
    names = tuple(f"bot {number}" for number in range(8))
    async with in_host() as arena:
        await arena.come(*names)
        plan = plan_for(
            "high_low", names, Form.ELIMINATION, settings={"max_shuffles": 1}, run="cup", wait_s=9
        )
        competition = arena.host.compete(plan)
        playing = arena.begin(competition)
        while not any(table.match for table in arena.gateway.referee.tables):
            await asyncio.sleep(0.001)
        costs = competition.leaving_costs("bot 1")
        await playing

    assert costs == "what is drawn next waits for you in cup for up to 9 s, then you are absent"
