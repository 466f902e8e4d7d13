"""The page over real sockets, with requests by hand, as browsers, proxies and rogues send them."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import re
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

import arena.web.viewer_socket
from arena.competitions.arena_host import Host
from arena.server.listener import Certificate
from arena.server.reply import pack, text
from arena.server.websocket import Connection
from arena.storage.store import Store
from arena.storage.tokens import Access, hashed
from arena.web.web import Web
from protocol.errors import StoreFailed
from protocol.messages import Limits
from tests.e2e.test_tls import logged, make
from tests.support.gateway_bots import LIMITS, GatewayArena, RawBot

if TYPE_CHECKING:
    from tests.support.gateway_bots import StartedProgram

pytestmark = pytest.mark.e2e

BIG = 100  # connections at once


class HttpResponse(NamedTuple):
    """All that was received until the connection was closed."""

    status: int
    headers: dict[str, str]
    body: bytes


class ArenaWithPage(GatewayArena):
    """A host with its page, and its clients."""

    def __init__(self, host: Host, trust: ssl.SSLContext | None) -> None:
        super().__init__(host.gateway, urlsplit(host.url).port or 0)
        self.host = host
        self.url = host.url
        self.trust = trust

    async def sends(self, request: bytes, *, ends: bool = False) -> HttpResponse:
        """Send bytes, and return the response."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=self.trust)
        said = b""
        try:
            writer.write(request)
            if ends:
                writer.write_eof()
            while chunk := await reader.read(65536):
                said += chunk
        except ConnectionError:
            pass
        finally:
            writer.close()
        head, _, body = said.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        return HttpResponse(int(first.split()[1]) if first else 0, headers, body)

    async def get(self, path: str, **said: str) -> HttpResponse:
        headers = {"Host": f"127.0.0.1:{self.port}", "Connection": "close"}
        headers |= {name.replace("_", "-"): value for name, value in said.items()}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return await self.sends(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())

    @asynccontextmanager
    async def stranger(self, name: str = "ann", **options: Any) -> AsyncIterator[RawBot]:
        """A connection that has not sent anything yet."""
        async with self.viewer("/") as websocket:
            yield RawBot(websocket, name, **options)

    @asynccontextmanager
    async def viewer(self, path: str = "/watch", **options: Any) -> AsyncIterator[ClientConnection]:
        if self.trust is not None:
            options["ssl"] = self.trust
        url = f"{self.url}{path}"
        async with connect(url, compression=None, max_size=None, **options) as socket:
            yield socket

    async def refusal(self, path: str, **headers: str) -> tuple[int, str]:
        """The status and the line with which a WebSocket is refused."""
        with pytest.raises(InvalidStatus) as refused:
            async with self.viewer(path, additional_headers=headers):
                pass
        response = refused.value.response
        return response.status_code, bytes(response.body or b"").decode()

    @property
    def viewers(self) -> int:
        assert isinstance(self.host.web, Web)
        return len(self.host.web._viewers)

    @property
    def visitors(self) -> int:
        """The number of visitors that are still connected."""
        assert isinstance(self.host.web, Web)
        return len(self.host.web._site._visitors)

    async def emptied(self) -> None:
        """Wait until nobody is connected any more."""
        while self.gateway._connections:
            await asyncio.sleep(0.01)


Run = Callable[..., AbstractAsyncContextManager[ArenaWithPage]]


@pytest.fixture
def in_house(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Run:
    """Opens arenas with a page, and checks that nothing is logged."""

    @asynccontextmanager
    async def opened(
        *, tls: tuple[Path, Path] | None = None, **options: Any
    ) -> AsyncIterator[ArenaWithPage]:
        options.setdefault("limits", LIMITS)
        options.setdefault("page", Web)
        encrypted = None if tls is None else Certificate(*tls).current
        trust = tls and ssl.create_default_context(cafile=tls[0])
        with caplog.at_level(logging.WARNING), Store(tmp_path / "arena.db") as store:
            async with Host(store, tls=encrypted, **options) as host:
                yield ArenaWithPage(host, trust or None)
        assert logged(caplog) == []

    return opened


@pytest.fixture
async def house(in_house: Run) -> AsyncIterator[ArenaWithPage]:
    """An arena without options."""
    async with in_house() as house:
        yield house


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return make(tmp_path, "arena")


async def heard(viewer: ClientConnection) -> dict[str, Any]:
    """The next message; text, as all are."""
    frame = await viewer.recv()
    assert isinstance(frame, str)
    message: dict[str, Any] = json.loads(frame)
    return message


async def ended(viewer: ClientConnection) -> int | None:
    """The close code, after all messages have been read."""
    with suppress(ConnectionClosed):
        while True:
            await viewer.recv()
    return viewer.close_code


# --- files ---


@pytest.mark.parametrize("is_encrypted", [False, True], ids=["plain", "tls"])
async def test_the_page_loads_with_all_that_it_names(
    in_house: Run, is_encrypted: bool, request: pytest.FixtureRequest
) -> None:
    tls = request.getfixturevalue("files") if is_encrypted else None
    async with in_house(tls=tls) as house:
        page = await house.get("/")
        named = re.findall(r'(?:href|src)="([^"]+)"', page.body.decode())
        wanted = sorted(f"/{address}" for address in {*named})
        found = await asyncio.gather(*map(house.get, wanted))

        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        assert len(wanted) > 3
        assert {answer.status for answer in found} == {200}
        for path, answer in zip(wanted, found, strict=True):
            assert len(answer.body) == int(answer.headers["Content-Length"])
            is_static = path.startswith("/static/")
            assert ("immutable" in answer.headers["Cache-Control"]) is is_static


async def test_a_browser_that_has_it_is_told_so_and_may_have_it_packed(
    house: ArenaWithPage,
) -> None:
    page = await house.get("/")
    packed = await house.get("/", Accept_Encoding="gzip, deflate, br")
    again = await house.get("/", If_None_Match=page.headers["ETag"])

    assert gzip.decompress(packed.body) == page.body
    assert packed.headers["ETag"] == page.headers["ETag"]
    assert (again.status, again.body) == (304, b"")


async def test_every_answer_has_the_policy_and_is_closed_for_whoever_wants_that(
    house: ArenaWithPage,
) -> None:
    paths = (
        "/",
        "/favicon.svg",
        "/static/0123456789abcdef/app.js",
        "/static/../../../etc/passwd",
        "/api/lobby.json",
        "/api/nothing.json",
        "/api/lobby.json?a=%ff",
        "/healthz",
        "/metrics",
        "/nothing",
        "/docs/",
        "/docs/?q=bank",
        "/docs/nothing",
    )
    for path in paths:
        answer = await house.get(path)

        assert answer.headers["Connection"] == "close", path
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert [(await house.get(path)).status for path in paths] == (
        [200, 200, 404, 404, 200, 404, 400, 200, 200, 404, 200, 200, 404]
    )


async def test_documents_figures_and_health(house: ArenaWithPage) -> None:
    async with house.bot("ann"):
        lobby = json.loads((await house.get("/api/lobby.json")).body)
        listed = json.loads((await house.get("/api/competitions.json")).body)
        metrics = (await house.get("/metrics")).body.decode()

        assert [bot["name"] for bot in lobby["bots"]] == ["ann"]
        assert listed == {"competitions": []}
        assert (await house.get("/healthz")).body == b"ok\n"
        assert 'arena_bots{state="here"} 1' in metrics
        assert 'arena_http_requests_total{code="200"} 2' in metrics


async def test_the_lobby_is_packed_once_until_it_changes(
    in_house: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed: list[bytes] = []

    def counting(body: bytes, effort: int) -> bytes | None:
        packed.append(body)
        return pack(body, effort)

    monkeypatch.setattr("arena.web.web.pack", counting)
    monkeypatch.setattr("arena.server.reply._TINY_BYTES", 100)
    monkeypatch.setattr("arena.web.web._LOBBY_S", 0.0)

    async with in_house() as house:
        plain = await house.get("/api/lobby.json")
        for _ in range(5):
            answer = await house.get("/api/lobby.json", Accept_Encoding="gzip")

            assert answer.headers["Content-Encoding"] == "gzip"
            assert len(answer.body) == int(answer.headers["Content-Length"])
            assert gzip.decompress(answer.body) == plain.body
        assert len(packed) == 1

        async with house.bot("ann"):
            await house.get("/api/lobby.json", Accept_Encoding="gzip")
        assert len(packed) == 2


async def test_where_the_database_is_that_fails_strangers_need_not_know(
    tmp_path: Path, in_house: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(store: Store, within_s: float | None = None) -> None:
        raise StoreFailed(f"cannot write the database {tmp_path}: disk full")

    monkeypatch.setattr(Store, "flush", fails)

    async with in_house() as house:
        answer = await house.get("/healthz")

        assert answer.status == 503
        assert answer.body.count(b"\n") == 1
        assert str(tmp_path).encode() not in answer.body


async def test_a_token_that_is_wrong_is_told_in_one_line(house: ArenaWithPage) -> None:
    answer = await house.get("/api/lobby.json", Authorization="Bearer guessed")

    assert answer.status == 401
    assert list(json.loads(answer.body)) == ["error"]


async def test_only_get_and_head_are_answered(house: ArenaWithPage) -> None:
    for method in ("POST", "PUT", "DELETE"):
        request = f"{method} /api/lobby.json HTTP/1.0\r\nHost: localhost\r\n\r\n"
        answer = await house.sends(request.encode())

        assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


async def test_a_program_that_offers_another_protocol_is_answered(house: ArenaWithPage) -> None:
    answer = await house.get("/healthz", Connection="Upgrade", Upgrade="h2c")

    assert (answer.status, answer.body) == (200, b"ok\n")


# --- browsers ---


async def test_our_own_page_may_watch_and_play(house: ArenaWithPage) -> None:
    for name in ("127.0.0.1", "localhost"):
        here = {"origin": f"http://{name}:{house.port}"}
        host = {"Host": f"{name}:{house.port}"}
        for path in ("/watch", "/"):
            request = (
                f"GET {path} HTTP/1.1\r\nHost: {host['Host']}\r\n"
                f"Origin: {here['origin']}\r\nUpgrade: websocket\r\n"
                "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
            answer = await house.sends(request.encode(), ends=True)

            assert answer.status == 101


@pytest.mark.parametrize("path", ["/watch", "/"])
async def test_other_pages_may_not(house: ArenaWithPage, path: str) -> None:
    for origin in ("http://evil.example", "null", "http://localhost:1"):
        status, said = await house.refusal(path, Origin=origin)

        assert status == 403
        assert said.startswith("expected an Origin that is this arena's own")
        assert said.count("\n") == 1
    assert house.viewers == 0
    await house.still_plays()


async def test_a_name_that_was_made_to_point_here_is_found_out(house: ArenaWithPage) -> None:
    evil = f"evil.example:{house.port}"
    request = (
        f"GET /watch HTTP/1.1\r\nHost: {evil}\r\nOrigin: http://{evil}\r\n"
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )

    assert (await house.sends(request.encode())).status == 403
    assert (await house.get("/api/lobby.json", Host=evil)).status == 403


async def test_a_proxy_that_was_named_may(in_house: Run) -> None:
    async with (
        in_house(origins=("https://arena.example.org",)) as house,
        house.viewer(origin="https://arena.example.org") as viewer,
    ):
        await viewer.send('{"type":"watch","topic":"lobby"}')

        assert (await heard(viewer))["type"] == "lobby"


# --- viewers ---


@pytest.mark.parametrize("is_encrypted", [False, True], ids=["plain", "tls"])
async def test_a_viewer_sees_the_lobby_and_matches_and_is_told_when_the_arena_closes(
    in_house: Run, is_encrypted: bool, request: pytest.FixtureRequest
) -> None:
    tls = request.getfixturevalue("files") if is_encrypted else None
    async with (
        in_house(tls=tls) as house,
        house.bot("ann") as ann,
        house.bot("ben") as ben,
        house.viewer() as viewer,
    ):
        await viewer.send('{"type":"watch","topic":"lobby"}')
        lobby = await heard(viewer)
        table = house.open("ace_king_queen", "ann", "ben", hands=4)
        watch = {"type": "watch", "topic": "match", "match": table.id}
        await viewer.send(json.dumps(watch))
        await asyncio.gather(ann.play(), ben.play())
        seen = []
        while "gone" not in seen:
            kind = (await heard(viewer))["type"]
            if kind != "lobby":  # another one may have been on its way
                seen.append(kind)
        await house.gateway.close()

        assert lobby["type"] == "lobby"
        assert {bot["name"] for bot in lobby["bots"]} == {"ann", "ben"}
        assert seen[0] == "scene"
        assert await ended(viewer) == 1000


async def test_a_viewer_is_no_bot_and_a_bot_no_viewer(house: ArenaWithPage) -> None:
    async with house.viewer() as viewer:
        await viewer.send('{"type":"hello","protocol":1,"name":"x","games":[]}')

        assert (await heard(viewer))["code"] == "malformed"
        assert await ended(viewer) == 1002
    async with house.viewer("/") as bot:
        await bot.send('{"type":"watch","topic":"lobby"}')

        assert (await heard(bot))["type"] == "refused"


async def test_a_viewer_with_a_wrong_token_is_refused_and_closed(house: ArenaWithPage) -> None:
    for word in (
        '{"type":"watch","topic":"lobby","token":"guessed"}',
        '{"type":"instruct","action":"stop","token":"guessed","protocol":1}',
    ):
        async with house.viewer() as viewer:
            await viewer.send(word)

            assert (await heard(viewer))["code"] == "token"
            assert await ended(viewer) == 4001


async def test_a_token_that_is_revoked_shows_nothing_more(house: ArenaWithPage) -> None:
    access = Access(revision=1, instructors={hashed("hers"): "Eva"})
    house.gateway.roster_changed(access)
    async with house.viewer() as hers, house.viewer() as anybody:
        await hers.send('{"type":"watch","topic":"lobby","token":"hers"}')
        await anybody.send('{"type":"watch","topic":"lobby"}')
        await asyncio.gather(heard(hers), heard(anybody))
        house.gateway.roster_changed(Access(revision=2))

        assert await ended(hers) == 4001
        assert anybody.close_code is None


@pytest.mark.parametrize(
    "frame",
    ["nonsense", b"\x80", '{"type":"watch"}', "x" * 70_000, '{"type":"unwatch"}' * 2],
    ids=["text", "binary", "half", "large", "two"],
)
async def test_nonsense_is_the_end_of_a_viewer_only(
    house: ArenaWithPage, frame: str | bytes
) -> None:
    async with house.viewer() as viewer:
        await viewer.send(frame)

        assert await ended(viewer) in (1002, 1009)
    await house.still_plays()


async def test_a_viewer_that_floods_is_closed(house: ArenaWithPage) -> None:
    async with house.viewer() as viewer:
        with suppress(ConnectionClosed):
            for _ in range(1000):
                await viewer.send('{"type":"unwatch"}')

        assert await ended(viewer) == 1002
    await house.still_plays()


@pytest.mark.parametrize("frame", [b"\x89\x80\0\0\0\0", b"\x01\x80\0\0\0\0"])
async def test_what_a_viewer_says_after_it_was_closed_is_not_read_for_long(
    house: ArenaWithPage, monkeypatch: pytest.MonkeyPatch, frame: bytes
) -> None:
    read: list[int] = []
    reads = Connection.buffer_updated

    def counting(connection: Connection, nbytes: int) -> None:
        read.append(nbytes)
        reads(connection, nbytes)

    _, writer = await opened(house)
    monkeypatch.setattr(Connection, "buffer_updated", counting)
    with suppress(ConnectionError):
        while house.viewers:
            writer.write(frame * 1000)
            await writer.drain()
    writer.transport.abort()

    assert sum(read) <= 64 * 1024
    await house.still_plays()


async def test_who_watches_is_no_stranger_any_more(in_house: Run) -> None:
    limits = msgspec.structs.replace(LIMITS, strangers=2)

    async with in_house(limits=limits) as house:
        async with AsyncExitStack() as stack:
            for _ in range(5):
                await stack.enter_async_context(house.viewer())

            assert len(house.gateway.login.throttle) == 0
            assert house.viewers == 5
        await house.still_plays()


async def opened(house: ArenaWithPage) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", house.port, limit=1024)
    writer.write(
        b"GET /watch HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
        b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer


async def deaf(house: ArenaWithPage) -> asyncio.StreamWriter:
    """A viewer that never reads."""
    _, writer = await opened(house)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    return writer


async def test_a_viewer_that_stops_reading_is_cut_before_it_costs_memory(
    house: ArenaWithPage,
) -> None:
    writer = await deaf(house)
    assert isinstance(house.host.web, Web)
    [watcher] = house.host.web._viewers._watchers.values()
    most = 0
    while house.viewers:
        watcher.send(b'"' + b"x" * 100_000 + b'"')
        transport = watcher.connection._transport  # type: ignore[attr-defined]
        if transport is not None:
            most = max(most, transport.get_write_buffer_size())
        await asyncio.sleep(0)

    assert most <= 512 * 1024
    await house.still_plays()
    writer.transport.abort()


async def test_a_viewer_that_is_behind_for_long_is_cut_however_little_waits(
    in_house: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arena.web.viewer_socket, "_BEHIND_S", 0.1)
    monkeypatch.setattr(arena.web.viewer_socket, "_LOOK_S", 0.05)

    async with in_house() as house:
        writer = await deaf(house)
        assert isinstance(house.host.web, Web)
        [watcher] = house.host.web._viewers._watchers.values()
        while not watcher.is_behind:
            watcher.send(b'"' + b"x" * 100_000 + b'"')
            await asyncio.sleep(0)
        while house.viewers:
            await asyncio.sleep(0.01)
        await house.still_plays()
        writer.transport.abort()


# --- rogues ---


@pytest.mark.parametrize("more", [b"", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 300_000])
async def test_what_follows_the_last_request_means_nothing(
    house: ArenaWithPage, more: bytes
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", house.port)
    writer.write(b"GET /api/competitions.json HTTP/1.0\r\nHost: localhost\r\n\r\n")
    while not house.visitors:
        await asyncio.sleep(0)
    writer.write(more)
    said = b""
    with suppress(ConnectionError):
        said = await reader.read(100)
    writer.close()

    assert said[:12] in ({b"HTTP/1.1 200"} if not more else {b"", b"HTTP/1.1 200"})
    await house.emptied()


@pytest.mark.parametrize("path", ["/", "/api/competitions.json"])
async def test_who_says_that_it_will_say_no_more_gets_its_answer(
    house: ArenaWithPage, path: str
) -> None:
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    answer = await house.sends(request, ends=True)

    assert answer.status == 200
    assert len(answer.body) == int(answer.headers["Content-Length"])
    await house.emptied()


async def test_who_is_gone_before_its_answer_harms_nothing(house: ArenaWithPage) -> None:
    for _ in range(BIG):
        _, writer = await asyncio.open_connection("127.0.0.1", house.port)
        writer.write(b"GET /api/competitions.json HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.sleep(0)
        writer.transport.abort()
    await house.emptied()

    assert (await house.get("/api/competitions.json")).status == 200


def completed(house: ArenaWithPage) -> set[str]:
    return {result.termination.kind.value for result, _ in house.over.values()}


async def floods(house: ArenaWithPage, asks: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Play matches while many clients send requests; then a bot comes from the same address."""
    is_on = True

    async def repeats() -> None:
        while is_on:
            with suppress(OSError, ConnectionClosed, InvalidStatus, TimeoutError):
                await asks()

    async with house.bot("ann") as ann, house.bot("ben") as ben:
        crowd = [asyncio.ensure_future(repeats()) for _ in range(20)]
        for _ in range(5):
            house.open("ace_king_queen", "ann", "ben", hands=50)
            await asyncio.gather(ann.play(), ben.play())
        async with house.bot("late"):
            is_on = False
        await asyncio.gather(*crowd)

    assert completed(house) == {"completed"}


@pytest.mark.parametrize(
    "path", ["/", "/api/lobby.json", "/api/competitions.json", "/docs/?q=card"]
)
async def test_a_flood_of_requests_harms_no_match(house: ArenaWithPage, path: str) -> None:
    await floods(house, lambda: house.get(path))


async def test_whoever_asks_without_end_is_put_off_and_others_play(
    in_house: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.server.throttle._ASKS", 100)
    monkeypatch.setattr("arena.server.throttle._ASKS_PER_S", 1)

    async with in_house() as house:
        await floods(house, lambda: house.get("/"))

        assert house.gateway.login.throttle._is_failing("127.0.0.1")


async def test_a_flood_of_viewers_harms_no_match(house: ArenaWithPage) -> None:
    async def watches() -> None:
        async with house.viewer() as viewer:
            for _ in range(5):
                await viewer.send('{"type":"watch","topic":"lobby"}')
                await heard(viewer)

    await floods(house, watches)


async def test_those_who_guess_tokens_stand_in_line_and_good_ones_get_in(
    house: ArenaWithPage,
) -> None:
    async def guesses() -> None:
        await house.get("/api/lobby.json", Authorization="Bearer guessed")

    await floods(house, guesses)
    throttle = house.gateway.login.throttle

    assert throttle._is_failing("127.0.0.1")


async def test_there_is_an_end_to_visitors_that_do_not_read(
    in_house: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.server.visitors._MOST", 10)

    async with in_house() as house:
        writers = []
        for _ in range(30):
            _, writer = await asyncio.open_connection("127.0.0.1", house.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            writers.append(writer)
        while len(house.gateway.login.throttle):
            await asyncio.sleep(0)

        assert house.visitors <= 10
        assert (await house.get("/")).status == 200
        for writer in writers:
            writer.transport.abort()


# --- one connection for many requests ---


class Peer:
    """A client that sends all requests over one connection, as a browser does."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def asks(self, path: str, method: str = "GET", **said: str) -> None:
        """Send a request, and wait for nothing."""
        headers = {"Host": "localhost", **said}
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        self.writer.write(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode())

    async def hears(self, *, is_head: bool = False) -> HttpResponse:
        """The next answer; what comes after it stays."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        size = 0 if is_head else int(headers.get("Content-Length", 0))
        body = await self.reader.readexactly(size)
        return HttpResponse(int(first.split()[1]), headers, body)

    async def gets(self, path: str, method: str = "GET", **said: str) -> HttpResponse:
        """Ask, and hear the answer."""
        self.asks(path, method, **said)
        return await self.hears(is_head=method == "HEAD")


@asynccontextmanager
async def peer(house: ArenaWithPage) -> AsyncIterator[Peer]:
    reader, writer = await asyncio.open_connection("127.0.0.1", house.port, ssl=house.trust)
    yield Peer(reader, writer)
    writer.transport.abort()


def idle(house: ArenaWithPage) -> int:
    return len(house.gateway.entrance.idle)


@pytest.mark.parametrize("is_encrypted", [False, True], ids=["plain", "tls"])
async def test_many_requests_come_over_one_connection(
    in_house: Run, is_encrypted: bool, request: pytest.FixtureRequest
) -> None:
    tls = request.getfixturevalue("files") if is_encrypted else None
    async with in_house(tls=tls) as house:
        async with peer(house) as client:
            page = await client.gets("/")
            wanted = re.findall(r'"([^"]*static/[^"]+)"', page.body.decode())
            for path in ("/healthz", "/api/lobby.json", "/api/competitions.json"):
                assert (await client.gets(path)).status == 200
            assert (await client.gets("/nothing")).status == 404
            for path in wanted:
                assert (await client.gets("/" + path.removeprefix("/"))).status == 200

            assert len(house.gateway._connections) == 1
            assert "Connection" not in page.headers
            assert (idle(house), len(house.gateway.login.throttle)) == (1, 0)

            closed = await client.gets("/healthz", Connection="close")
            assert closed.headers["Connection"] == "close"
            assert await client.reader.read() == b""
        await house.emptied()

        assert idle(house) == 0


@pytest.mark.parametrize("ends", [False, True])
async def test_requests_that_come_at_once_are_answered_in_order(
    house: ArenaWithPage, ends: bool
) -> None:
    async with peer(house) as client:
        paths = ["/api/competitions.json", "/healthz", "/nothing", "/metrics"] * 50
        for path in paths:
            client.asks(path)
        if ends:
            client.writer.write_eof()
        kinds = {"/nothing": 404}
        for path in paths:
            answer = await client.hears()
            assert answer.status == kinds.get(path, 200)
            assert (answer.body == b"ok\n") is (path == "/healthz")
        if ends:
            assert await client.reader.read() == b""
    await house.emptied()
    await house.still_plays()


async def test_head_is_answered_like_get_without_the_body(house: ArenaWithPage) -> None:
    async with peer(house) as client:
        for path in (
            *("/", "/api/lobby.json", "/api/competitions.json", "/healthz"),
            *("/docs/", "/docs/?q=bank"),
        ):
            head = await client.gets(path, "HEAD")
            got = await client.gets(path)
            head.headers.pop("Date")
            got.headers.pop("Date")
            # The lobby's document has a clock in it.
            assert (head.status, head.headers.keys()) == (200, got.headers.keys())
            assert head.headers["ETag"] == got.headers["ETag"] if ("ETag" in got.headers) else True
            assert int(head.headers["Content-Length"]) > 0


async def test_a_request_with_a_body_is_refused_in_one_line(house: ArenaWithPage) -> None:
    async with peer(house) as client:
        await client.gets("/healthz")
        client.asks("/healthz", "POST", Content_Length="5")
        client.writer.write(b"hello")
        answer = await client.hears()

        assert (answer.status, answer.body.count(b"\n")) == (400, 1)
        assert b"without a body" in answer.body
        assert answer.headers["Connection"] == "close"
        assert await client.reader.read() == b""


async def test_a_request_in_pieces_after_another_is_answered(house: ArenaWithPage) -> None:
    async with peer(house) as client:
        whole = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        client.writer.write(whole + whole[:10])
        await client.hears()
        for byte in whole[10:]:
            client.writer.write(bytes([byte]))
            await asyncio.sleep(0)

        assert (await client.hears()).body == b"ok\n"


async def test_a_connection_that_has_fetched_may_become_a_websocket(house: ArenaWithPage) -> None:
    async with peer(house) as client:
        await client.gets("/healthz")
        client.writer.write(
            b"GET /watch HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            b"\x81\xa0\0\0\0\0" + b'{"type":"watch","topic":"lobby"}'
        )
        answer = await client.hears()
        frame = await client.reader.readuntil(b'"type":"lobby"')

        assert (answer.status, frame[0]) == (101, 0x81)
        assert (house.viewers, idle(house)) == (1, 0)


async def test_an_encrypted_answer_that_is_not_read_is_not_forgotten(
    in_house: Run, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.server.http_connection._IDLE_S", 0.01)
    size = 16_000_000

    async with in_house(tls=files) as house:
        async with peer(house) as client:
            assert isinstance(house.host.web, Web)
            monkeypatch.setattr(
                house.host.web._site, "_health", lambda: text(200, "x" * (size - 1))
            )
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            client.asks("/healthz")
            while house.host.web._site.served[200] < 1:
                await asyncio.sleep(0)

            assert (house.visitors, idle(house)) == (1, 0)

            await asyncio.sleep(0.1)  # longer than it may be idle
            client.writer.transport.resume_reading()  # type: ignore[attr-defined]
            assert len((await client.hears()).body) == size
            assert await client.reader.read() == b""  # now it was idle
        await house.emptied()


async def test_who_is_idle_is_no_stranger_and_keeps_nobody_out(
    in_house: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.server.visitors._MOST_IDLE_NEAR", 5)

    async with (
        in_house(limits=msgspec.structs.replace(LIMITS, strangers=2)) as house,
        AsyncExitStack() as stack,
    ):
        there = []
        for _ in range(8):
            client = await stack.enter_async_context(peer(house))
            await client.gets("/healthz")
            there.append(client)
        gone = [await client.reader.read() for client in there[:3]]

        assert gone == [b""] * 3, "those who were idle for longest"
        assert (idle(house), len(house.gateway.login.throttle)) == (5, 0)
        assert (await there[3].gets("/healthz")).status == 200
        await house.still_plays()


async def test_who_is_idle_for_long_is_closed(
    in_house: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.server.http_connection._IDLE_S", 0.05)

    async with in_house() as house:
        async with peer(house) as client:
            await client.gets("/healthz")

            assert await client.reader.read() == b""
        await house.emptied()
        assert not house.gateway.login.throttle._failures, "it was no failure"


async def test_who_asks_without_end_over_one_connection_stands_in_line(
    in_house: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.server.throttle._ASKS", 100)
    monkeypatch.setattr("arena.server.throttle._ASKS_PER_S", 1)

    async with in_house() as house:
        throttle = house.gateway.login.throttle
        async with house.bot("ann") as ann, peer(house) as client:
            for _ in range(111):
                await client.gets("/healthz")
            house.open("blackjack", "ann", hands=1)
            throttle._credit_s = -0.005
            client.asks("/healthz")
            while not throttle._line:
                await asyncio.sleep(0)

            assert throttle._is_failing("127.0.0.1")

            await client.hears()  # in its turn
            await ann.play()


async def test_pipelined_floods_harm_no_match(house: ArenaWithPage) -> None:
    async def asks() -> None:
        async with peer(house) as client:
            for _ in range(200):
                client.asks("/api/lobby.json")
            for _ in range(200):
                await client.hears()

    await floods(house, asks)


async def test_who_asks_on_and_reads_nothing_is_not_answered_on(house: ArenaWithPage) -> None:
    async with peer(house) as client:
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        page = await house.get("/")
        script = re.findall(r'"([^"]*lib/preact.js)"', page.body.decode())[0]
        for _ in range(1000):
            client.asks("/" + script.removeprefix("/"))
        assert isinstance(house.host.web, Web)
        before, served = -1, house.host.web._site.served
        while served[200] > before:
            before = served[200]
            await asyncio.sleep(0.2)

        assert before < 900
        waiting = (
            connection._transport.get_write_buffer_size()  # type: ignore[attr-defined]
            for connection in house.gateway._connections
        )
        assert sum(waiting) < 200_000


# --- below a path ---


async def test_all_is_below_the_base_path_and_nothing_beside_it(in_house: Run) -> None:
    async with in_house(base_path="/arena/") as house:
        page = await house.get("/arena/")
        named = re.findall(r'(?:href|src)="([^"]+)"', page.body.decode())
        documents = ("docs/", "docs/bots/README.md", "docs/?q=bank")
        for path in (
            *("api/lobby.json", "api/competitions.json", "healthz"),
            *(*named, *documents),
        ):
            assert (await house.get(f"/arena/{path}")).status == 200, path
        for path in ("/", "/api/lobby.json", "/healthz", "/favicon.svg", "/arenas/"):
            answer = await house.get(path)

            assert answer.status == 404
            assert answer.body == b"there is nothing here; this arena is at /arena/\n"
        assert len(named) > 3
        assert house.url == f"ws://127.0.0.1:{house.port}/arena/"

        moved = await house.get("/arena?a=1")
        assert (moved.status, moved.headers["Location"]) == (307, "/arena/?a=1")
        moved = await house.get("/arena/docs")
        assert (moved.status, moved.headers["Location"]) == (307, "docs/")


async def test_viewers_watch_below_the_base_path_and_bots_play_at_any(in_house: Run) -> None:
    async with in_house(
        base_path="/arena/", limits=msgspec.structs.replace(LIMITS, grace_ms=1)
    ) as house:
        async with house.viewer("watch") as viewer:
            await viewer.send('{"type":"watch","topic":"lobby"}')
            assert (await heard(viewer))["type"] == "lobby"
            assert house.viewers == 1
        for url in (house.url, house.url[:-1], house.url.removesuffix("arena/")):
            async with connect(url) as bot:
                await RawBot(bot, "ann").hello()
            while house.gateway.players:
                await asyncio.sleep(0.01)
        house.url = house.url.removesuffix("/arena/")
        await house.still_plays()


@pytest.mark.parametrize("word", ["arena", "/a b/", "//", "/arena", ""])
def test_what_is_no_base_path_is_refused_at_once(
    start: Callable[..., StartedProgram], tmp_path: Path, word: str
) -> None:
    program = start("arena", "serve", "--base-path", word, cwd=tmp_path)
    status, _, said = program.ends()

    assert (status, said.count("\n")) == (2, 1)
    assert (
        f"expected a path such as /arena/, of letters, digits, '-', '.', '_' and '~' between slashes, got {word!r}"
        in said
    )
    assert not list(tmp_path.iterdir())


async def test_what_arena_serve_prints_has_the_base_path_of_its_file(
    start: Callable[..., StartedProgram], tmp_path: Path
) -> None:
    (tmp_path / "class.toml").write_text('[serve]\nport = 0\nbase_path = "/arena/"\n')
    program = start("arena", "serve", "--config", "class.toml", cwd=tmp_path)
    found = re.search(r"ws://127.0.0.1:(\d+)/arena/ ", program.until("arena at"))
    page = program.until("the page is at")

    assert found
    assert page.split()[-1] == f"http://127.0.0.1:{found[1]}/arena/"
    assert b"<html" in await fetched(int(found[1]), "/arena/")


# --- without a page, and from the command line ---


async def test_without_a_page_there_is_a_greeting_and_bots_play(in_house: Run) -> None:
    async with in_house(page=None) as house:
        for path in ("/", "/healthz", "/api/lobby.json"):
            answer = await house.get(path)

            assert (answer.status, answer.headers["Connection"]) == (200, "close")
            assert b"Card Arena is running here" in answer.body
        assert (await house.refusal("/", Origin="http://evil.example"))[0] == 403
        async with house.viewer() as bot:  # any path is a bot's
            await bot.send('{"type":"watch","topic":"lobby"}')
            assert (await heard(bot))["type"] == "refused"
        await house.still_plays()


def at(line: str) -> int:
    found = re.search(r":(\d+) ", line)
    assert found is not None, line
    return int(found[1])


async def fetched(port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.0\r\nHost: localhost:{port}\r\n\r\n".encode())
    said = await reader.read(-1)
    writer.close()
    return said


@pytest.mark.parametrize("words", [(), ("--no-page",)])
async def test_arena_serve_has_a_page_unless_it_is_told_not_to(
    start: Callable[..., StartedProgram], tmp_path: Path, words: tuple[str, ...]
) -> None:
    program = start("arena", "serve", "--port", "0", *words, cwd=tmp_path)
    said = await fetched(at(program.until("arena at")), "/")

    assert (b"<html" in said) == (not words)
    assert (b"Card Arena is running here" in said) == bool(words)


async def test_the_file_of_settings_says_so_too(
    start: Callable[..., StartedProgram], tmp_path: Path
) -> None:
    file = tmp_path / "class.toml"
    file.write_text(
        '[serve]\nport = 0\npage = false\norigin = ["https://a.example"]\ntrusted_proxy = ["127.0.0.1"]\n'
    )
    program = start("arena", "serve", "--config", "class.toml", cwd=tmp_path)
    said = await fetched(at(program.until("arena at")), "/")

    assert b"Card Arena is running here" in said


@pytest.mark.parametrize("word", ["arena.example.org", "https://a/b", "ftp://a"])
def test_what_is_no_origin_is_refused_at_once(
    start: Callable[..., StartedProgram], tmp_path: Path, word: str
) -> None:
    status, _, said = start("arena", "serve", "--origin", word, cwd=tmp_path).ends()

    assert status == 2
    assert "expected an origin such as https://arena.example.org" in said
    assert "Traceback" not in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("word", ["localhost", "10.0.0.1/8", "1.2.3.4:80", "all"])
def test_what_is_no_proxy_is_refused_at_once(
    start: Callable[..., StartedProgram], tmp_path: Path, word: str
) -> None:
    program = start("arena", "serve", "--trusted-proxy", word, cwd=tmp_path)
    status, _, said = program.ends()

    assert status == 2
    assert "expected a proxy's address or network such as 127.0.0.1" in said
    assert "Traceback" not in said
    assert not list(tmp_path.iterdir())


ORIGIN = ("--origin", "https://arena.example.org")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_a_proxy_that_nobody_trusts_is_refused_in_one_line(
    start: Callable[..., StartedProgram], tmp_path: Path, host: str
) -> None:
    program = start("arena", "serve", "--host", host, *ORIGIN, cwd=tmp_path)
    status, _, said = program.ends()

    assert (status, said.count("\n")) == (2, 1)
    assert "expected --trusted-proxy beside --origin" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words",
    [
        (*ORIGIN, "--trusted-proxy", "127.0.0.1", "--trusted-proxy", "fd00::/8"),
        (*ORIGIN, "--open"),
        (*ORIGIN, "--host", "0.0.0.0"),
        ("--trusted-proxy", "127.0.0.1"),
    ],
)
def test_who_says_what_the_proxy_means_is_served(
    start: Callable[..., StartedProgram], tmp_path: Path, words: tuple[str, ...]
) -> None:
    program = start("arena", "serve", "--port", "0", *words, cwd=tmp_path)

    program.until("arena at")


async def test_limits_of_bots_are_not_those_of_the_page(in_house: Run) -> None:
    """An answer may be longer than what may wait for a bot that reads slowly."""

    async with in_house(limits=Limits(buffer_bytes=1024)) as house:
        page = await house.get("/")
        [script] = re.findall(r'"(static/[^"]+/lib/preact.js)"', page.body.decode())[:1]
        answer = await house.get(f"/{script}")

        assert answer.status == 200
        assert len(answer.body) == int(answer.headers["Content-Length"]) > 10_000
