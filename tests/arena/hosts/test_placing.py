"""Which hosts can run a program, and whom a host gives its room."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from arena.hosts.bot_host import BotHost, LinkHandler
from arena.hosts.directory import HostDirectory, unfit
from arena.hosts.link import BotLink
from arena.hosts.messages import (
    BotsPlaced,
    Bundle,
    DrainHost,
    HostReport,
    HouseBot,
    PlaceBots,
    Source,
    decode,
    encode,
)
from protocol.errors import ArenaError
from protocol.messages import Limits
from tests.support.fake_bots import ANY_GAME
from tests.support.hosted_arena import KIND
from tests.support.silent_link import SilentLink

pytestmark = pytest.mark.virtual_time

PYTHON, JAVA = Source("k", 1, "python"), Source("k", 1, "java")
NODE = Bundle("k", 1, ("node", "bot.js"), stdio=True, needs="node", is_native=False)


@pytest.mark.parametrize(
    ("kind", "program", "why"),
    [
        ({}, PYTHON, ""),
        ({}, JAVA, "it lacks java"),
        ({}, HouseBot("nash"), ""),
        ({"games": ()}, HouseBot("nash"), f"it lacks the game {ANY_GAME}"),
        ({}, NODE, "it lacks node"),
        ({"commands": ("node",)}, NODE, ""),
        ({"isolation": ""}, PYTHON, "it does not isolate bots"),
        ({"arena_version": "0.1"}, PYTHON, "it has version 0.1, the arena "),
    ],
)
def test_what_a_host_lacks_is_said(kind: dict[str, Any], program: Any, why: str) -> None:
    found = unfit(msgspec.structs.replace(KIND, **kind), [program], ANY_GAME, isolated=True)
    assert found.startswith(why)
    assert bool(found) == bool(why)


class ScriptedHosts:
    """A bus with hosts that have room as they report, and refuse or accept; `asked` in order."""

    is_up = True

    def __init__(self, **accepts: bool) -> None:
        self.asked: list[str] = []
        self._accepts = accepts
        self._heard: Callable[[str, bytes], None] = lambda host, data: None

    async def on_reports(self, call: Callable[[str, bytes], None]) -> None:
        self._heard = call

    async def place(self, host: str, data: bytes) -> bytes:
        wanted: PlaceBots = decode(data, PlaceBots)
        assert wanted.ticket == f"ticket of {host}"
        self.asked.append(host)
        return encode(BotsPlaced(host, "" if self._accepts[host] else "it is full"))

    async def drain(self, host: str, data: bytes) -> None:
        raise AssertionError("nobody drains")

    def report(self, host: str, room: int) -> None:
        report = HostReport(
            host=host, session="s", kind=KIND, cores=1, memory_mib=1, bots=0, room=room
        )
        self._heard(host, encode(report))


@pytest.mark.parametrize(
    ("room", "accepts", "warm_at", "load", "asked"),
    [
        ({"a": 2, "b": 4}, "a b", "", {}, "b"),
        ({"a": 2, "b": 4}, "a b", "a", {}, "a"),
        ({"a": 2, "b": 4}, "a b", "", {"b": 0.5}, "a"),
        ({"a": 2, "b": 4}, "a", "", {}, "b a"),
        ({"a": 2, "b": 4}, "b", "", {"b": 1.0}, "a"),
        ({"a": 2, "b": 0}, "b", "", {"a": 0.5}, "a b"),
        ({"a": 0, "b": 0}, "", "b", {}, "b a"),
    ],
)
async def test_hosts_are_asked_in_turn_until_one_has_room(
    room: dict[str, int], accepts: str, warm_at: str, load: dict[str, float], asked: str
) -> None:
    bus = ScriptedHosts(**{host: host in accepts.split() for host in room})
    directory = HostDirectory(bus, "a1", Limits(), "ws://a1", lambda host: f"ticket of {host}")
    await directory.open()
    for host, bots in room.items():
        bus.report(host, bots)
    placed = await directory.place(2, [PYTHON, PYTHON], ANY_GAME, warm_at, load)

    assert bus.asked == asked.split()
    assert placed == (bus.asked[-1] if bus.asked[-1] in accepts.split() else "")


class AskedHost:
    """A host with memory for four bots, and what it answers; links to `unreachable` fail."""

    def __init__(self) -> None:
        self.shortage = ""
        self.told: list[str] = []
        report = HostReport(
            host="h1", session="s", kind=KIND, cores=1, memory_mib=1, bots=0, room=0
        )
        self.host = BotHost(
            report,
            lambda limits: 4,
            self._programs,
            (),
            self._open,
            lambda: self.shortage,
            self.told.append,
        )

    async def says(self, arena: str, bots: int) -> str:
        wanted = PlaceBots(arena=arena, bots=bots, limits=Limits(), url=arena, ticket="t")
        answer: BotsPlaced = decode(await self.host.place(encode(wanted)), BotsPlaced)
        return answer.why

    async def _programs(self, *wanted: object) -> Any:
        raise AssertionError("nothing is started")

    async def _open(
        self, url: str, ticket: str, ca: str, opened: Callable[[BotLink], LinkHandler]
    ) -> None:
        if url == "unreachable":
            raise ArenaError("no arena answers")
        opened(SilentLink())
        await asyncio.Event().wait()


async def test_all_bots_of_a_match_have_room_or_none() -> None:
    asked = AskedHost()
    assert await asked.says("a", 3) == ""
    assert await asked.says("a", 2) == "it has no memory left for them"
    assert await asked.says("a", 1) == ""
    await asyncio.sleep(11)  # nobody has come, and the room is kept for ten seconds
    assert await asked.says("a", 4) == ""
    await asked.host.close()


async def test_arenas_that_wait_have_their_turn() -> None:
    asked = AskedHost()
    assert [await asked.says(arena, bots) for arena, bots in (("a", 1), ("b", 3))] == ["", ""]
    assert await asked.says("a", 1) == "it has no memory left for them"
    await asyncio.sleep(11)
    assert await asked.says("a", 5) == "it has no memory left for them"
    assert await asked.says("b", 2) == "it is the turn of a"
    assert await asked.says("a", 2) == ""
    assert await asked.says("b", 2) == ""
    await asked.host.close()


async def test_a_host_that_drains_leaves_or_is_short_takes_none() -> None:
    asked = AskedHost()
    asked.shortage = "10 MiB of disk left"
    assert await asked.says("a", 1) == "it has 10 MiB of disk left"
    asked.shortage = ""
    asked.host.drain(encode(DrainHost(is_draining=True)))
    assert await asked.says("a", 1) == "it takes no more bots"
    asked.host.drain(encode(DrainHost(is_draining=False)))
    assert await asked.says("unreachable", 1) == "no arena answers"
    assert await asked.says("a", 1) == ""
    asked.host.leave()
    assert await asked.says("a", 1) == "it takes no more bots"
    answer: BotsPlaced = decode(await asked.host.place(b"nonsense"), BotsPlaced)
    assert answer.why.startswith("expected a request for room")
    await asked.host.close()


async def test_why_an_arena_cannot_be_reached_is_told_and_reported_until_one_is() -> None:
    asked = AskedHost()
    for _ in range(2):
        assert await asked.says("unreachable", 1) == "no arena answers"
    assert (asked.told, asked.host.report.last_error) == (["no arena answers"], "no arena answers")
    asked.shortage = "10 MiB of disk left"
    assert asked.host.report.last_error == "10 MiB of disk left"
    asked.shortage = ""
    assert await asked.says("a", 1) == ""
    assert asked.host.report.last_error == ""
    await asked.host.close()


async def test_an_order_that_changes_nothing_is_not_told() -> None:
    asked = AskedHost()
    for is_draining in (False, True, True, False):
        asked.host.drain(encode(DrainHost(is_draining=is_draining)))

    assert asked.told == ["takes no more bots", "takes bots again"]
    await asked.host.close()
