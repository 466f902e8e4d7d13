"""An arena in one piece: bots that it launches, several competitions at once, names that are kept."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from arena.games import GAMES
from arena.host import Host
from arena.plan import Form, plan_of
from arena.program import Program
from arena.store import Store
from protocol.errors import ArenaError
from protocol.messages import Ending, Limits

pytestmark = pytest.mark.e2e

TIMEOUT_S = 60.0
LIMITS = Limits(decision_ms=2_000, hard_ms=4_000, wall_ms=2_000, hello_ms=20_000)

BOT = """
import json, sys, time
def say(**message): print(json.dumps(message), flush=True)
games = {}
if "late" in sys.argv: sys.stdin.readline()
say(type="hello", protocol=1, name="x", games=["three_card_poker", "blackjack"], tables=2)
for line in sys.stdin:
    heard = json.loads(line)
    if heard["type"] == "match":
        games[heard["match"]] = heard["game"]
        say(type="ready", match=heard["match"], nonce="n")
    elif heard["type"] == "ask" and games[heard["match"]] not in sys.argv:
        legal = heard["legal"]
        value = legal["min"] if isinstance(legal, dict) else legal[0]
        say(type="answer", match=heard["match"], ask=heard["ask"], value=value)
"""
"""A bot over its pipes: it never answers in the games that its command line names, and with `late` waits before hello."""


def program(*words: str) -> Program:
    return Program((sys.executable, "-c", BOT, *words), stdio=True)


@asynccontextmanager
async def arena(tmp_path: Path) -> AsyncIterator[Host]:
    with Store(tmp_path / "arena.db") as store:
        async with asyncio.timeout(TIMEOUT_S), Host(store, limits=LIMITS) as host:
            yield host


async def come(host: Host, *names: str) -> None:
    while set(names) - set(host.gateway.players):
        await host.wait_for_change()


async def refusal(host: Host, name: str) -> tuple[str, str]:
    """What a stranger is told who wants to be called so: the type and the code."""
    hello = f'{{"type":"hello","protocol":1,"name":"{name}","games":["blackjack"]}}'
    async with connect(host.url) as websocket:
        await websocket.send(hello)
        heard: dict[str, Any] = json.loads(await websocket.recv())
        return heard["type"], heard.get("code", "")


async def greeted(websocket: ClientConnection, name: str) -> str:
    """What a bot is called that says hello."""
    hello = {"type": "hello", "protocol": 1, "name": name, "games": ["blackjack"]}
    await websocket.send(json.dumps(hello))
    welcome: dict[str, str] = json.loads(await websocket.recv())
    return welcome["bot"]


def league(host: Host, game: str, *players: str, **settings: object) -> Any:
    rules = GAMES[game]
    return host.play(
        host.compete(
            plan_of(
                rules, rules.vocabulary.read_settings(settings), players, limits=LIMITS
            )
        )
    )


def test_J3_a_launched_bot_that_is_late_in_one_competition_goes_on_in_another(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with arena(tmp_path) as host:
            await host.launch_program(program("three_card_poker"), "ann")
            await come(host, "ann")
            late, fine = await asyncio.gather(
                league(host, "three_card_poker", "ann"),
                league(host, "blackjack", "ann", hands=200),
            )

            assert [verdict.kind for verdict in late.verdicts] == [Ending.TIMEOUT]
            assert fine.verdicts == ()

    asyncio.run(main())


def test_a_name_is_launched_once_and_the_first_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with arena(tmp_path) as host:
            await host.launch_program(program(), "ann")
            with pytest.raises(ArenaError, match="expected a name that no bot has"):
                await host.launch_program(program(), "ann")
            await come(host, "ann")
            report = await league(host, "blackjack", "ann", hands=2)
            enforced = host.gateway.players["ann"].enforced

            assert report.verdicts == ()
            assert enforced.startswith("time, memory and processes")

    asyncio.run(main())


def test_a_bot_that_looks_like_one_that_was_launched_is_not_launched(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with arena(tmp_path) as host:
            await host.launch_program(program(), "ann")
            with pytest.raises(ArenaError, match="got 'ANN', and 'ann' is here"):
                await host.launch_program(program(), "ANN")

    asyncio.run(main())


def test_who_comes_back_in_other_letters_is_who_it_was(tmp_path: Path) -> None:
    async def main() -> None:
        async with arena(tmp_path) as host:
            playing = asyncio.create_task(league(host, "blackjack", "Ann", hands=2))
            for said in ("ANN", "ann"):
                async with connect(host.url) as websocket:
                    assert await greeted(websocket, said) == "Ann"
                    assert await refusal(host, "aNN") == ("refused", "name")
                    assert host.count("blackjack") == 1
                    await websocket.send('{"type":"goodbye"}')
                    await websocket.wait_closed()
            playing.cancel()
        async with arena(tmp_path) as host, connect(host.url) as websocket:
            assert await greeted(websocket, "aNN") == "Ann", "in a later arena, too"

    asyncio.run(main())


def test_nobody_takes_the_name_of_a_launched_bot_before_it_says_hello(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with arena(tmp_path) as host:
            await host.launch_program(program("late"), "ann")

            assert await refusal(host, "ann") == ("refused", "name")
            assert "ann" not in host.gateway.players

    asyncio.run(main())


def test_a_bot_that_has_ended_may_be_launched_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with arena(tmp_path) as host:
            gone = Program((sys.executable, "-c", "raise SystemExit(3)"))
            await host.launch_program(gone, "ann")
            while "ann" not in host.ended:
                await host.wait_for_change()

            assert host.ended["ann"] == "crashed: exit status 3"

            while True:  # until what it had has been cleared away
                try:
                    await host.launch_program(program(), "ann")
                    break
                except ArenaError:
                    await asyncio.sleep(0.01)
            await come(host, "ann")

            assert "ann" not in host.ended

    asyncio.run(main())


def test_one_owner_with_many_names_does_not_hold_a_ladder_up(tmp_path: Path) -> None:
    """Each of its bots takes a match and drops its connection; at most two did so before the first match had ended."""
    game = GAMES["ace_king_queen"]
    limits = Limits(hello_ms=20_000, grace_ms=300)
    plan = plan_of(
        game,
        game.vocabulary.read_settings({"hands": 2}),
        ("ann", "ben"),
        Form.LADDER,
        limits=limits,
        pause_s=0.01,
    )

    async def ghosts(host: Host, names: Iterator[int]) -> None:
        while True:
            hello = {"type": "hello", "protocol": 1, "games": [game.name]}
            async with connect(host.url) as websocket:
                hello["name"] = f"eve/{next(names)}"
                await websocket.send(json.dumps(hello))
                while '"match"' not in str(await websocket.recv()):
                    pass
                websocket.transport.abort()

    async def main() -> None:
        with Store(tmp_path / "arena.db") as store:
            async with asyncio.timeout(TIMEOUT_S), Host(store, limits=limits) as host:
                names = itertools.count(1)
                haunts = [asyncio.create_task(ghosts(host, names)) for _ in range(4)]
                await come(host, *(f"eve/{n}" for n in range(1, 5)))
                for name in plan.players:
                    await host.launch((game.name, "honest"), name)
                await come(host, *plan.players)
                ladder = host.compete(plan)
                playing = asyncio.create_task(host.play(ladder))
                met: Counter[bool] = Counter()
                while met[True] < 20:
                    await asyncio.sleep(0.05)
                    results = store.results(ladder.id)
                    met = Counter(set(one.players) == {"ann", "ben"} for one in results)
                    assert met[False] <= 6
                ladder.close()
                await playing
                for haunt in haunts:
                    haunt.cancel()

    asyncio.run(main())
