"""A real nginx in front of an arena on loopback, set up as `arena/server/operations.md` says."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.asyncio.client import connect
from websockets.frames import Frame, Opcode
from websockets.sync.client import connect as comes

from arena.storage.tokens import Access
from tests.arena.server.test_access import ANN, BEN, REFUSED, ROSTER
from tests.e2e.test_tls import make
from tests.support import proxy
from tests.support.arena_process import free_port
from tests.support.browser import BrowserWindow, browser
from tests.support.gateway_bots import (
    LIMITS,
    TIMEOUT_S,
    GatewayArena,
    RawBot,
    StartedProgram,
    in_arena_with,
)
from tests.support.page_player import sit_down

pytestmark = pytest.mark.e2e

ELSEWHERE, FARTHER = "127.0.0.2", "127.0.0.3"  # where nginx finds its clients


@pytest.fixture
def nginx(tmp_path: Path) -> Iterator[Callable[..., int]]:
    """Start one in front of an arena's port, on a port, below a path, with TLS; its own port."""
    with ExitStack() as stack:

        def start(*where: Any) -> int:
            return stack.enter_context(proxy.nginx(tmp_path, *where))

        yield start


class Proxied(GatewayArena):
    """An arena and the way to it."""

    def __init__(self, arena: GatewayArena, port: int) -> None:
        super().__init__(arena.gateway, arena.port)
        self.over, self._changed = arena.over, arena._changed
        self.url = f"ws://127.0.0.1:{port}"

    @asynccontextmanager
    async def stranger(
        self, name: str = "ann", *, near: str = ELSEWHERE, **options: Any
    ) -> AsyncIterator[RawBot]:
        """A client at this address that claims to be forwarded for another."""
        claims = {"X-Forwarded-For": "192.0.2.99"}
        async with connect(
            self.url, compression=None, local_addr=(near, 0), additional_headers=claims
        ) as websocket:
            yield RawBot(websocket, name, **options)


@pytest.fixture
def behind(nginx: Callable[[int], int]) -> Callable[..., AbstractAsyncContextManager[Proxied]]:
    """An arena behind nginx."""

    @asynccontextmanager
    async def proxied(
        access: Access | None = ROSTER, requires_token: bool = True, **limits: int
    ) -> AsyncIterator[Proxied]:
        changed = msgspec.structs.replace(LIMITS, **limits)
        async with in_arena_with(changed, access=access, requires_token=requires_token) as arena:
            arena.gateway.entrance.proxies.trust(["127.0.0.1"])
            port = await asyncio.to_thread(nginx, arena.port)
            yield Proxied(arena, port)

    return proxied


@pytest.fixture
async def arena(
    behind: Callable[..., AbstractAsyncContextManager[Proxied]],
) -> AsyncIterator[Proxied]:
    """An arena that requires tokens."""
    async with behind() as arena:
        yield arena


async def test_without_a_token_nobody_gets_in_through_it(arena: Proxied) -> None:
    for fields in ({}, {"token": "guessed"}):
        async with arena.stranger() as bot:
            await bot.say(**bot.a_hello(**fields))

            assert (await bot.hear(), await bot.closed()) == (REFUSED, 4001)


async def test_with_tokens_bots_play_through_it(arena: Proxied) -> None:
    async with arena.stranger("ann") as ann, arena.stranger("ben", near=FARTHER) as ben:
        await ann.hello(token=ANN)
        await ben.hello(token=BEN)
        addresses = {
            name: player.connection and player.connection.address
            for name, player in arena.gateway.players.items()
        }
        table = arena.open("ace_king_queen", "ann", "ben", hands=20)
        await asyncio.gather(ann.play(), ben.play())
        result, _ = await arena.result(table)

        assert addresses == {"ann": ELSEWHERE, "ben": FARTHER}
        assert result.termination.kind == "completed"


async def test_clients_are_counted_apart_whatever_they_claim(behind: Any) -> None:
    async with (
        behind(None, requires_token=False, per_address=1) as arena,
        arena.stranger("ann") as ann,
        arena.stranger("too") as too,
    ):
        await ann.hello()
        await too.say(**too.a_hello())

        assert (await too.hears("refused"))["code"] == "address"

        async with arena.stranger("ben", near=FARTHER) as ben:
            await ben.hello()


# --- without nginx: what a request that waits must not lose ---


def says(address: str, *messages: dict[str, Any]) -> bytes:
    """A request that a proxy passes on from an address, and what its client sends next."""
    head = (
        "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        f"X-Forwarded-For: {address}\r\n\r\n"
    )
    frames = (
        Frame(Opcode.TEXT, json.dumps(message).encode()).serialize(mask=True)
        for message in messages
    )
    return head.encode() + b"".join(frames)


HELLO = {"type": "hello", "protocol": 1, "name": "ben", "games": ["blackjack"], "token": BEN}


async def test_what_came_with_a_request_that_waits_is_heard() -> None:
    async with (
        asyncio.timeout(TIMEOUT_S),
        in_arena_with(LIMITS, access=ROSTER, requires_token=True) as arena,
        arena.stranger("ann") as ann,
    ):
        arena.gateway.entrance.proxies.trust(["127.0.0.1"])
        throttle = arena.gateway.throttle
        await ann.hello(token=ANN)
        arena.open("blackjack", "ann", hands=1)
        for _ in range(10):
            throttle.blame(FARTHER)
        throttle._share.spend(asyncio.get_running_loop().time(), 0.015)  # 100 ms of waiting
        reader, writer = await asyncio.open_connection("127.0.0.1", arena.port)
        writer.write(says(FARTHER, HELLO))
        while not throttle._line:
            await asyncio.sleep(0)

        assert "ben" not in arena.gateway.players

        assert b" 101 " in await reader.readuntil(b"\r\n")
        await reader.readuntil(b'"welcome"')
        writer.transport.abort()


# --- `arena serve` ---


def test_below_a_path_with_tls_people_play_and_look_on_and_bots_come(
    start: Any, nginx: Any, tmp_path: Path
) -> None:
    tls, port = make(tmp_path, "proxy"), free_port()
    arena = start(
        *("arena", "serve", "--port", "0", "--trusted-proxy", "127.0.0.1", "--open"),
        *("--origin", f"https://127.0.0.1:{port}", "--base-path", "/arena/"),
        *("--db", str(tmp_path / "db")),
    )
    found = re.search(r":(\d+)/arena/ ", arena.until("arena at"))
    assert found
    nginx(int(found[1]), "/arena/", tls, port)
    at = f"127.0.0.1:{port}/arena"

    trust = ssl.create_default_context(cafile=tls[0])
    hello = '{"type":"hello","protocol":1,"name":"ann","games":["blackjack"]}'

    with browser() as chromium, comes(f"wss://{at}/", ssl=trust) as bot:
        look = BrowserWindow(chromium, f"https://{at}")
        page = look.to()
        page.get_by_text(f"A bot connects to wss://{at}/;").first.wait_for()
        bot.send(hello)
        assert '"welcome"' in str(bot.recv(TIMEOUT_S))
        page.get_by_text("ann", exact=True).first.wait_for()
        person = sit_down(look, "ace_king_queen", "Pia", Hands=2)
        while person.may_move() or person.go_on.is_visible():
            if person.moves.count():
                person.move()
            else:
                before = person.shown()
                person.go_on.click()
                person.changed(before)
        person.result.wait_for()
        look.sound("the result of a match")
        page.get_by_text("Step through the record").click()
        page.locator(".felt").wait_for()
        look.sound("its record")
        look.to("#/competitions")
        look.sound("what was played")
        asked = {path for path in look.fetched if not path.startswith("/arena/")}
        assert asked == set()
        assert look.fetched
        page.goto(f"https://{at}")  # without the last slash
        page.wait_for_url(f"https://{at}/")
        page.get_by_text("ann", exact=True).first.wait_for()
        assert [cookie.get("secure") for cookie in page.context.cookies()] == [True]
        look.close()


async def test_who_shares_the_proxys_connection_is_counted_apart(arena: Proxied) -> None:
    """A client is not charged for the one before it on the same connection of the proxy."""

    seen: list[str] = []
    entrance = arena.gateway.entrance
    requested = entrance.requested

    def noting(caller: Any, request: Any) -> None:
        seen.append(caller.address)
        requested(caller, request)

    entrance.requested = noting  # type: ignore[method-assign]
    for near in (ELSEWHERE, FARTHER) * 10:
        async with fetching(arena, near) as (reader, writer):
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            assert b" 200 " in await reader.read()

    assert seen == [ELSEWHERE, FARTHER] * 10
    assert len(entrance.idle) == len(arena.gateway._connections) < 20
    assert arena.gateway.throttle._near == {}

    async with arena.stranger("ann") as ann:  # perhaps over one of them, too
        await ann.hello(token=ANN)
        player = arena.gateway.players["ann"]
        assert player.connection is not None
        assert player.connection.address == ELSEWHERE


@asynccontextmanager
async def fetching(
    arena: Proxied, near: str
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to the proxy from that address."""
    port = int(arena.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(near, 0))
    yield reader, writer
    writer.close()


def test_bots_that_the_arena_launches_need_no_roster(start: Any, tmp_path: Path) -> None:
    bot = f"{sys.executable} -m bots ace_king_queen honest --no-session"
    arena: StartedProgram = start(
        *("arena", "serve", "ace_king_queen", "--port", "0", "--once", "--json"),
        *("--trusted-proxy", "127.0.0.1", "--db", str(tmp_path / "db")),
        *("--set", "hands=20", "--bot", f"ann={bot}", "--bot", f"ben={bot}"),
    )
    status, said, told = arena.ends()

    assert status == 0, told
    assert "so nobody can connect but the bots that are launched here" in told
    assert '"ann"' in said
