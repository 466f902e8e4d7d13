"""The page over a network in memory: requests as browsers, proxies and rogues send them."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from arena.server.reply import pack
from arena.storage.store import Store
from arena.storage.writer import Backlog
from protocol.messages import Limits
from tests.support.arena_with_page import UPGRADE, ArenaWithPage, heard, in_page_host
from tests.support.gateway_bots import LIMITS
from tests.support.virtual_time import memory_folder

pytestmark = pytest.mark.virtual_time(limit_s=600)

BIG = 100  # connections at once
WATCH_LOBBY = '{"type":"watch","topic":"lobby"}'
LATER = "/docs/LICENSE"
"""A path that is answered from a thread."""

InHouse = Callable[..., AbstractAsyncContextManager[ArenaWithPage]]


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as folder:
        yield folder


@pytest.fixture
def in_house(folder: Path, caplog: pytest.LogCaptureFixture) -> InHouse:
    """Opens arenas with a page, and checks that nothing is logged."""

    @asynccontextmanager
    async def opened(**options: Any) -> AsyncIterator[ArenaWithPage]:
        with caplog.at_level("WARNING"):
            async with in_page_host(folder, **options) as house:
                yield house
        assert caplog.messages == []

    return opened


@pytest.fixture
async def house(in_house: InHouse) -> AsyncIterator[ArenaWithPage]:
    """An arena without options."""
    async with in_house() as house:
        yield house


# --- files and documents ---


async def test_the_lobby_is_packed_once_until_it_changes(
    house: ArenaWithPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed: list[bytes] = []

    def counting(body: bytes, effort: int) -> bytes | None:
        packed.append(body)
        return pack(body, effort)

    monkeypatch.setattr("arena.web.web.pack", counting)
    monkeypatch.setattr("arena.server.reply._TINY_BYTES", 100)
    async with house.bot("nobody-else"):  # no other test has had the same lobby
        plain = await house.get("/api/lobby.json")
        for _ in range(5):
            answer = await house.get("/api/lobby.json", Accept_Encoding="gzip")

            assert answer.headers["Content-Encoding"] == "gzip"
            assert len(answer.body) == int(answer.headers["Content-Length"])
            assert gzip.decompress(answer.body) == plain.body
        assert len(packed) == 1

        async with house.bot("ann"):
            await asyncio.sleep(1.1)  # for a second the document is kept
            await house.get("/api/lobby.json", Accept_Encoding="gzip")
        assert len(packed) == 2


async def test_where_the_database_is_that_fails_strangers_need_not_know(
    house: ArenaWithPage, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Backlog(3, 2.5, f"cannot write the database {folder}: disk full")
    with monkeypatch.context() as patch:
        patch.setattr(Store, "backlog", kept)
        await asyncio.sleep(1.1)  # for a second the lobby is kept
        answer = await house.get("/healthz")
        lobby = await house.get("/api/lobby.json")

    said = "3 results are not on the disk yet"
    assert (answer.status, answer.body.decode()) == (503, f"{said}; the arena's log says why\n")
    assert json.loads(lobby.body)["arena"]["unwritten"] == said
    assert str(folder).encode() not in lobby.body
    await asyncio.sleep(1.1)
    assert (await house.get("/healthz")).status == 200


async def test_a_program_that_offers_another_protocol_is_answered(house: ArenaWithPage) -> None:
    answer = await house.get("/healthz", Connection="Upgrade", Upgrade="h2c")

    assert (answer.status, answer.body) == (200, b"ok\n")


async def test_limits_of_bots_are_not_those_of_the_page(in_house: InHouse) -> None:
    """An answer may be longer than what may wait for a bot that reads slowly."""
    async with in_house(limits=Limits(buffer_bytes=1024)) as house:
        answer = await house.get(await a_script(house))

        assert answer.status == 200
        assert len(answer.body) == int(answer.headers["Content-Length"]) > 10_000


async def a_script(house: ArenaWithPage) -> str:
    """The path of a large file of the page."""
    page = await house.get("/")
    [script, *_] = re.findall(r'"(static/[^"]+/lib/preact.js)"', page.body.decode())
    return f"/{script}"


# --- browsers ---


@pytest.mark.parametrize("path", ["/watch", "/"])
async def test_only_our_own_page_may_watch_and_play(house: ArenaWithPage, path: str) -> None:
    for host in (f"127.0.0.1:{house.port}", f"localhost:{house.port}"):
        async with house.peer() as client:
            client.asks(path, **UPGRADE, Host=host, Origin=f"http://{host}")
            status, _ = (await client.reader.readuntil(b"\r\n")).split()[1:3]
            assert status == b"101"
    for origin in ("http://evil.example", "null", "http://localhost:1"):
        refused, said = await house.refusal(path, Origin=origin)

        assert refused == 403
        assert said.startswith("expected an Origin that is this arena's own")
        assert said.count("\n") == 1
    evil = f"evil.example:{house.port}"  # a name that was made to point here
    async with house.peer() as client:
        answer = await client.gets(path, **UPGRADE, Host=evil, Origin=f"http://{evil}")
        assert answer.status == 403
    assert (await house.get("/api/lobby.json", Host=evil)).status == 403
    await house.still_plays()


async def test_a_proxy_that_was_named_may(in_house: InHouse) -> None:
    async with (
        in_house(origins=("https://arena.example.org",)) as house,
        house.viewer(origin="https://arena.example.org") as viewer,
    ):
        await viewer.send(WATCH_LOBBY)

        assert (await heard(viewer))["type"] == "lobby"


# --- viewers ---


async def test_who_watches_or_is_idle_is_no_stranger_any_more(
    in_house: InHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.server.visitors._MOST_IDLE_NEAR", 5)
    limits = msgspec.structs.replace(LIMITS, strangers=2)
    async with in_house(limits=limits) as house, AsyncExitStack() as stack:
        there = []
        for _ in range(8):
            await stack.enter_async_context(house.viewer())
            there.append(await stack.enter_async_context(house.peer()))
            await there[-1].gets("/healthz")
        gone = [await client.reader.read() for client in there[:3]]

        assert gone == [b""] * 3, "those who were idle for longest"
        assert (house.idle, house.viewers, len(house.gateway.throttle)) == (5, 8, 0)
        assert (await there[3].gets("/healthz")).status == 200
        await house.still_plays()


async def test_a_viewer_that_stops_reading_is_cut_before_it_costs_memory(
    house: ArenaWithPage,
) -> None:
    async with house.raw_viewer() as deaf:
        deaf.reads_nothing()
        [watcher] = house.web._viewers._peers.values()
        most = 0
        while house.viewers:
            watcher.send(b'"' + b"x" * 100_000 + b'"')
            transport = watcher.connection._transport  # type: ignore[attr-defined]
            if transport is not None:
                most = max(most, transport.get_write_buffer_size())
            await asyncio.sleep(0)

    assert 0 < most <= 512 * 1024
    await house.still_plays()


# --- rogues ---


async def test_who_is_gone_before_its_answer_harms_nothing(house: ArenaWithPage) -> None:
    for _ in range(BIG):
        async with house.peer() as client:
            client.asks(LATER)
            await asyncio.sleep(0)
    await house.emptied()

    assert (await house.get(LATER)).status == 200


async def floods(house: ArenaWithPage, asks: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Play matches while many clients send requests; then a bot comes from the same address."""
    is_on, answered = True, 0

    async def repeats() -> None:
        nonlocal answered
        while is_on:
            with suppress(OSError, EOFError, ConnectionClosed, InvalidStatus, TimeoutError):
                await asks()
            answered += 1
            await asyncio.sleep(0)

    async with house.bot("ann") as ann, house.bot("ben") as ben:
        crowd = [asyncio.ensure_future(repeats()) for _ in range(20)]
        house.open("ace_king_queen", "ann", "ben", hands=20)
        await asyncio.gather(ann.play(), ben.play())
        async with house.bot("late"):
            is_on = False
        await asyncio.gather(*crowd)

    assert answered >= 20
    assert {result.termination.kind.value for result, _ in house.over.values()} == {"completed"}


async def _watches(house: ArenaWithPage) -> None:
    async with house.viewer() as viewer:
        for _ in range(5):
            await viewer.send(WATCH_LOBBY)
            await heard(viewer)


async def _pipelines(house: ArenaWithPage) -> None:
    async with house.peer() as client:
        for _ in range(200):
            client.asks("/api/lobby.json")
        for _ in range(200):
            await client.hears()


@pytest.mark.parametrize(
    "asks",
    [
        lambda house: house.get("/"),
        lambda house: house.get("/api/lobby.json"),
        lambda house: house.get("/docs/?q=card"),
        lambda house: house.get("/api/lobby.json", Authorization="Bearer guessed"),
        _watches,
        _pipelines,
    ],
    ids=["files", "documents", "search", "guesses", "viewers", "pipelines"],
)
async def test_a_flood_harms_no_match(
    house: ArenaWithPage, request: pytest.FixtureRequest, asks: Callable[..., Any]
) -> None:
    await floods(house, partial(asks, house))

    if "guesses" in request.node.name:
        assert house.gateway.throttle._is_failing("127.0.0.1")


# --- one connection for many requests ---


@pytest.mark.parametrize("ends", [False, True])
async def test_requests_that_come_at_once_are_answered_in_order(
    house: ArenaWithPage, ends: bool
) -> None:
    async with house.peer() as client:
        paths = [LATER, "/healthz", "/nothing", "/metrics"] * 50
        for path in paths:
            client.asks(path)
        if ends:
            client.writer.write_eof()
        for path in paths:
            answer = await client.hears()
            assert answer.status == (404 if path == "/nothing" else 200)
            assert (answer.body == b"ok\n") is (path == "/healthz")
        if ends:
            assert await client.reader.read() == b""
    await house.emptied()
    await house.still_plays()


async def test_a_connection_that_has_fetched_may_become_a_websocket(house: ArenaWithPage) -> None:
    async with house.peer() as client:
        await client.gets("/healthz")
        client.asks("/watch", **UPGRADE)
        client.writer.write(b"\x81\xa0\0\0\0\0" + WATCH_LOBBY.encode())
        answer = await client.hears()
        frame = await client.reader.readuntil(b'"type":"lobby"')

        assert (answer.status, frame[0]) == (101, 0x81)
        assert (house.viewers, house.idle) == (1, 0)


async def test_who_is_idle_for_long_is_closed(house: ArenaWithPage) -> None:
    async with house.peer() as client:
        await client.gets("/healthz")
        since = asyncio.get_running_loop().time()

        assert await client.reader.read() == b""
        assert 15 <= asyncio.get_running_loop().time() - since <= 17
    await house.emptied()
    assert not house.gateway.throttle._failures, "it was no failure"


async def test_who_asks_on_and_reads_nothing_is_not_answered_on(house: ArenaWithPage) -> None:
    async with house.peer() as client:
        script = await a_script(house)
        client.reads_nothing()
        for _ in range(1000):
            client.asks(script)
        await asyncio.sleep(5)  # there is nothing else to do meanwhile

        assert 0 < house.web.served[200] < 900
        waiting = (
            connection._transport.get_write_buffer_size()  # type: ignore[attr-defined]
            for connection in house.gateway._connections
        )
        assert 0 < sum(waiting) < 200_000


# --- below a path, and without a page ---


async def test_all_is_below_the_base_path_and_nothing_beside_it(in_house: InHouse) -> None:
    async with in_house(base_path="/arena/") as house:
        page = await house.get("/arena/")
        named = re.findall(r'(?:href|src)="([^"]+)"', page.body.decode())
        documents = ("docs/", "docs/bots/README.md", "docs/?q=bank")
        for path in ("api/lobby.json", "healthz", *named, *documents):
            assert (await house.get(f"/arena/{path}")).status == 200, path
        for path in ("/", "/api/lobby.json", "/healthz", "/favicon.svg", "/arenas/"):
            answer = await house.get(path)

            assert answer.status == 404
            assert answer.body == b"there is nothing here; this arena is at /arena/\n"
        assert len(named) > 3
        assert house.url == f"ws://127.0.0.1:{house.port}/arena/"
        for path, where in (("/arena?a=1", "/arena/?a=1"), ("/arena/docs", "docs/")):
            moved = await house.get(path)
            assert (moved.status, moved.headers["Location"]) == (307, where)


async def test_without_a_page_there_is_a_greeting_and_bots_play(in_house: InHouse) -> None:
    async with in_house(page=None) as house:
        for path in ("/", "/healthz", "/api/lobby.json"):
            answer = await house.get(path)

            assert (answer.status, answer.headers["Connection"]) == (200, "close")
            assert b"Card Arena is running here" in answer.body
        assert (await house.refusal("/", Origin="http://evil.example"))[0] == 403
        async with house.viewer() as bot:  # any path is a bot's
            await bot.send(WATCH_LOBBY)
            assert (await heard(bot))["type"] == "refused"
        await house.still_plays()
