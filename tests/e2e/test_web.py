"""The page of an arena on real sockets: encrypted, with the process that reads, and as it is served."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from websockets.asyncio.client import connect

from arena.formats.schedule import Pairing
from arena.server.listener import Certificate
from arena.server.reply import text
from arena.server.websocket import Connection
from arena.storage.store import Store
from arena.storage.tokens import Access, hashed
from tests.e2e.test_tls import logged, make
from tests.support.arena_with_page import ArenaWithPage, heard, in_page_host, to_end
from tests.support.gateway_bots import LIMITS, RawBot
from tests.support.sample_database import SampleWriter, plan, play

if TYPE_CHECKING:
    from tests.support.gateway_bots import StartedProgram

pytestmark = pytest.mark.e2e

Run = Callable[..., AbstractAsyncContextManager[ArenaWithPage]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make(tmp_path_factory.mktemp("tls"), "arena")


@pytest.fixture
def in_house(tmp_path: Path, files: tuple[Path, Path], caplog: pytest.LogCaptureFixture) -> Run:
    """Opens arenas with a page, and checks that nothing is logged."""

    @asynccontextmanager
    async def opened(is_encrypted: bool = False, **options: Any) -> AsyncIterator[ArenaWithPage]:
        trust = None
        if is_encrypted:
            trust = ssl.create_default_context(cafile=files[0])
            options["tls"] = Certificate(*files).current
        with caplog.at_level("WARNING"):
            async with in_page_host(tmp_path, trust, **options) as house:
                yield house
        assert logged(caplog) == []

    return opened


async def test_the_page_and_documents_come_over_one_connection(in_house: Run) -> None:
    async with in_house(is_encrypted=True) as house, house.bot("ann"):
        async with house.peer() as client:
            page = await client.gets("/")
            named = {*re.findall(r'(?:href|src)="([^"]+)"', page.body.decode())}
            for path in sorted(f"/{name}" for name in named):
                answer = await client.gets(path)
                assert (answer.status, len(answer.body) > 0) == (200, True)
                is_static = path.startswith("/static/")
                assert ("immutable" in answer.headers["Cache-Control"]) is is_static
            lobby = json.loads((await client.gets("/api/lobby.json")).body)
            listed = json.loads((await client.gets("/api/competitions.json")).body)
            metrics = (await client.gets("/metrics")).body.decode()
            unknown = await client.gets("/api/nothing.json")

            assert page.headers["Content-Type"] == "text/html; charset=utf-8"
            assert len(named) > 3
            assert [bot["name"] for bot in lobby["bots"]] == ["ann"]
            assert (listed, unknown.status) == ({"competitions": []}, 404)
            assert 'arena_bots{state="here"} 1' in metrics
            assert f'arena_http_requests_total{{code="200"}} {len(named) + 3}' in metrics
            assert len(house.gateway._connections) == 2
            assert "Connection" not in page.headers
            assert (house.idle, len(house.gateway.throttle)) == (1, 0)

            closed = await client.gets("/healthz", Connection="close")
            assert closed.headers["Connection"] == "close"
            assert await client.reader.read() == b""
        assert house.idle == 0


async def test_a_viewer_sees_the_lobby_and_matches_until_the_arena_closes(in_house: Run) -> None:
    async with (
        in_house(is_encrypted=True) as house,
        house.bots("ann", "ben") as bots,
        house.viewer() as viewer,
    ):
        await viewer.send('{"type":"watch","topic":"lobby"}')
        lobby = await heard(viewer)
        table = house.open("ace_king_queen", "ann", "ben", hands=4)
        watch = {"type": "watch", "topic": "match", "match": table.id}
        await viewer.send(json.dumps(watch))
        await asyncio.gather(*(bot.play() for bot in bots))
        seen = []
        while "gone" not in seen:
            kind = (await heard(viewer))["type"]
            if kind != "lobby":  # another one may have been on its way
                seen.append(kind)
        await house.gateway.close()

        assert lobby["type"] == "lobby"
        assert {bot["name"] for bot in lobby["bots"]} == {"ann", "ben"}
        assert seen[0] == "scene"
        assert await to_end(viewer) == 1000


async def test_an_encrypted_answer_that_is_not_read_is_not_forgotten(
    in_house: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.server.http._IDLE_S", 0.01)
    size = 16_000_000
    async with in_house(is_encrypted=True) as house:
        async with house.peer() as client:
            monkeypatch.setattr("arena.web.web.text", lambda *_: text(200, "x" * (size - 1)))
            client.reads_nothing()
            client.asks("/healthz")
            while house.web.served[200] < 1:
                await asyncio.sleep(0)

            assert (house.visitors, house.idle) == (1, 0)

            await asyncio.sleep(0.1)  # longer than it may be idle
            client.writer.transport.resume_reading()  # type: ignore[attr-defined]
            assert len((await client.hears()).body) == size
            assert await client.reader.read() == b""  # now it was idle
        await house.emptied()


@pytest.mark.parametrize("frame", [b"\x89\x80\0\0\0\0", b"\x01\x80\0\0\0\0"])
async def test_what_a_viewer_says_after_it_was_closed_is_not_read_for_long(
    in_house: Run, monkeypatch: pytest.MonkeyPatch, frame: bytes
) -> None:
    async with in_house() as house:
        read: list[int] = []
        reads = Connection.buffer_updated

        def counting(connection: Connection, nbytes: int) -> None:
            read.append(nbytes)
            reads(connection, nbytes)

        async with house.raw_viewer() as client:
            monkeypatch.setattr(Connection, "buffer_updated", counting)
            with suppress(ConnectionError):
                while house.viewers:
                    client.writer.write(frame * 1000)
                    await client.writer.drain()

        assert 0 < sum(read) <= 64 * 1024
        await house.still_plays()


async def test_there_is_an_end_to_visitors_that_do_not_read(
    in_house: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.server.visitors._MOST", 10)
    async with in_house() as house, AsyncExitStack() as stack:
        for _ in range(30):
            client = await stack.enter_async_context(house.peer())
            client.reads_nothing()
            client.asks("/")
        while len(house.gateway.throttle):
            await asyncio.sleep(0)

        assert house.visitors <= 10
        assert (await house.get("/")).status == 200


async def test_viewers_watch_below_the_base_path_and_bots_play_at_any(in_house: Run) -> None:
    limits = msgspec.structs.replace(LIMITS, grace_ms=1)
    async with in_house(base_path="/arena/", limits=limits) as house:
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


# --- analyses ---

MISTAKES = "/api/matches/m/mistakes.json?seat=1"


async def test_J8_an_owners_analysis_waits_while_a_launched_bot_computes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(tmp_path / "arena.db") as store:
        writing = SampleWriter(store, plan("ace_king_queen"), "c")
        writing.finished(Pairing(1, ("ann", "ben")), play("ace_king_queen"), "m")
    bots = [SimpleNamespace(asks=5, pending=1)]
    monkeypatch.setattr("arena.web.side_process._SLICE_S", 0.0)  # not even a second
    async with asyncio.timeout(120), in_page_host(tmp_path) as house:
        house.gateway.roster_changed(Access(players={hashed("anns"): "ann", hashed("bens"): "ben"}))
        monkeypatch.setattr(house.gateway.players, "launched", lambda: iter(bots))

        async def until(*states: str) -> Any:
            """What ann is told, once her analysis stands so."""
            while True:
                answer = await house.get(MISTAKES, Authorization="Bearer anns")
                assert answer.status == 200, answer.body
                found = json.loads(answer.body)
                if found["state"] in states or found["text"] in states:
                    return found
                await asyncio.sleep(0.05)

        waits = await until("waits while bots play that the arena has launched", "done", "failed")
        assert waits["state"] in ("queued", "running")
        others = [await house.get(MISTAKES), await house.get(MISTAKES, Authorization="Bearer bens")]
        bots.clear()
        done = await until("done", "failed")

    assert (done["state"], done["mistakes"]["seat"]) == ("done", 1)
    assert [answer.status for answer in others] == [403, 403]


# --- as it is served ---


async def fetched(port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.0\r\nHost: localhost:{port}\r\n\r\n".encode())
    said = await reader.read(-1)
    writer.close()
    return said


SETTINGS = """
[serve]
port = 0
page = false
origin = ["https://a.example"]
trusted_proxy = ["127.0.0.1", "fd00::/8"]
"""


async def test_an_arena_without_a_page_has_a_greeting(
    start: Callable[..., StartedProgram], tmp_path: Path
) -> None:
    """With a page, and below a path, it is served in `test_serve` and `test_nginx`."""
    (tmp_path / "class.toml").write_text(SETTINGS)
    program = start("arena", "serve", "--config", "class.toml", cwd=tmp_path)
    found = re.search(r":(\d+)(/\S*)? ", program.until("arena at"))
    assert found
    said = await fetched(int(found[1]), "/")

    assert (b"<html" in said, b"Card Arena is running here" in said) == (False, True)
