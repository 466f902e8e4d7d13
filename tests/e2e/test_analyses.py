"""Analyses over HTTP, from an arena with its page: to whom, and that they wait for launched bots."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from arena.formats.schedule import Pairing
from arena.storage.store import Store
from arena.storage.tokens import Access, hashed
from tests.support.arena_with_page import ArenaWithPage, in_page_host
from tests.support.sample_database import SampleWriter, plan, play

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.e2e

GAME = "ace_king_queen"
TIMEOUT_S = 120.0
WAITS = "waits while bots play that the arena has launched"
ACCESS = Access(players={hashed("anns"): "ann", hashed("bens"): "ben"})
MISTAKES = "/api/matches/m/mistakes.json?seat=1"
STRENGTH = "/api/competitions/c/strength.json?bot=ann"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[ArenaWithPage]:
    """An arena with a match between ann and ben in a competition that goes on."""
    with Store(tmp_path / "arena.db") as store:
        writing = SampleWriter(store, plan(GAME), "c")
        writing.finished(Pairing(1, ("ann", "ben")), play(GAME), "m")
    async with in_page_host(tmp_path) as house:
        house.gateway.roster_changed(ACCESS)
        yield house


async def analysed(house: ArenaWithPage, path: str, **headers: str) -> Any:
    """The state that ends an analysis."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            answer = await house.get(path, **headers)
            assert answer.status == 200, answer.body
            found = json.loads(answer.body)
            if found["state"] not in ("queued", "running"):
                return found
            await asyncio.sleep(0.05)


async def test_J8_the_owner_has_its_bot_analysed_and_nobody_else_meanwhile(
    house: ArenaWithPage,
) -> None:
    hers, his = {"Authorization": "Bearer anns"}, {"Authorization": "Bearer bens"}
    mistakes = await analysed(house, MISTAKES, **hers)
    strength = await analysed(house, STRENGTH, **hers)
    others = [
        (await house.get(path, **headers)).status
        for path in (MISTAKES, STRENGTH)
        for headers in ({}, his)
    ]

    assert mistakes["mistakes"]["seat"] == 1
    assert strength["strength"]["charts"]
    assert others == [403] * 4


async def test_an_analysis_waits_while_a_launched_bot_computes(
    house: ArenaWithPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    bots = [SimpleNamespace(asks=5, pending=1)]
    monkeypatch.setattr(house.gateway.players, "launched", lambda: iter(bots))
    monkeypatch.setattr("arena.web.side_process._SLICE_S", 0.0)  # not even a second
    async with asyncio.timeout(TIMEOUT_S):
        while (waits := await status_of(house, MISTAKES))["text"] != WAITS:
            assert waits["state"] in ("queued", "running")
            await asyncio.sleep(0.05)
    still = await status_of(house, MISTAKES)
    bots.clear()
    done = await analysed(house, MISTAKES, Authorization="Bearer anns")

    assert still["text"] == WAITS
    assert done["state"] == "done"


async def status_of(house: ArenaWithPage, path: str) -> Any:
    """How far an analysis is that ann asks for."""
    answer = await house.get(path, Authorization="Bearer anns")
    assert answer.status == 200, answer.body
    return json.loads(answer.body)
