"""People at an arena: they ask for a seat at `/watch`, and play over another WebSocket.

What else may happen at their tables is in `tests/arena/web/play/test_tables.py`, in virtual time.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection

from arena.games.catalogue import GAMES
from arena.games.replay import replay
from arena.sandbox.launcher import LaunchedBot
from arena.server.websocket import Connection
from protocol.strategy import house_bots
from tests.support.arena_with_page import ArenaWithPage, heard, in_page_host
from tests.support.gateway_bots import SHORT, Message, RawBot

pytestmark = pytest.mark.e2e

AKQ = "ace_king_queen"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[ArenaWithPage]:
    async with in_page_host(tmp_path) as house:
        yield house


async def ask(eye: ClientConnection, game: str, *against: str) -> Message:
    """Ask for a seat; returns the answer."""
    sit = {"type": "sit", "game": game, "name": "Pat", "against": against, "settings": SHORT[game]}
    await eye.send(json.dumps(sit))
    return await heard(eye)


@asynccontextmanager
async def seated(house: ArenaWithPage, game: str, *against: str) -> AsyncIterator[RawBot]:
    """A person who has said hello; it looks at the page meanwhile."""
    async with house.viewer() as eye:
        seat = await ask(eye, game, *against)
        async with house.stranger(seat["name"]) as person:
            await person.hello(token=seat["token"], games=[game])
            yield person


async def test_a_person_plays_house_bots(house: ArenaWithPage) -> None:
    """In each game somebody plays in a browser, in page/test_people."""
    game = "high_low"
    bots = list(house_bots(game))
    against = [f"house:{bots[n % len(bots)]}" for n in range(GAMES[game].seats - 1)]
    async with seated(house, game, *against) as person:
        match = await person.ready()
        assert match["seats"] == ["Pat", *against]
        assert match["limits"]["decision_ms"] == 600_000
        assert {k: match["settings"][k] for k in SHORT[game]} == SHORT[game]

        [over] = await person.play()
        assert over["termination"]["kind"] == "completed"
        code, _, closed = await person.refused()
        assert (code, closed) == ("", 1000)
    kept = house.web.people.record(over["match"].rpartition(".")[0])
    assert kept is not None
    assert replay(kept.record).scores == tuple(over["scores"])
    assert house.host.here.names(game) == ()


async def test_who_plays_too_fast_for_a_person_is_read_more_slowly_and_bots_are_not(
    house: ArenaWithPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    rested: list[str] = []
    rest = Connection.rest

    def counted(connection: Connection, until: float) -> None:
        rested.append(connection.peer)
        rest(connection, until)

    monkeypatch.setattr(Connection, "rest", counted)
    monkeypatch.setattr("arena.web.play.tables._SAVED_EACH_S", 0.0)
    monkeypatch.setattr("arena.web.play.tables._SHARE_EACH", 0.5)
    async with house.bot("bob") as bob, seated(house, AKQ, "bob") as person:
        peer: Any = house.gateway.players["Pat"].connection
        (over,), _ = await asyncio.gather(person.play(), bob.play())

    assert over["termination"]["kind"] == "completed", "it was only slower"
    assert len(rested) > 2, "at what it sent"
    assert set(rested) == {peer.peer}


async def test_a_house_bot_that_is_killed_ends_its_match_and_is_started_again(
    house: ArenaWithPage,
) -> None:
    bot = f"house:{next(iter(house_bots(AKQ)))}"
    async with seated(house, AKQ, bot) as person:
        await person.ready()
        await person.hears("ask")
        ours = house.host.supervisor._ours[bot].launched
        assert isinstance(ours, LaunchedBot)
        os.kill(ours.pid, signal.SIGKILL)
        ended = (await person.hears("over"))["termination"]
        assert (ended["kind"], ended["seat"]) == ("crash", 1)
        await person.closed()
    async with seated(house, AKQ, bot) as again:
        [over] = await again.play()
        assert over["termination"]["kind"] == "completed"
