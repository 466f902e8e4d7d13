"""An arena with its page in this process, and clients that speak HTTP by hand."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from arena.competitions.live_arena import LiveArena
from arena.storage.store import Store
from arena.web.web import Web
from tests.support.gateway_bots import LIMITS, GatewayArena, RawBot

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ArenaWithPage", "HttpResponse", "PagePeer", "heard", "in_page_host", "to_end"]

UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
"""The headers with which a browser asks for a WebSocket."""


class HttpResponse(NamedTuple):
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes


class PagePeer:
    """A client that sends all requests over one connection, as a browser does."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def asks(self, path: str, method: str = "GET", **said: str) -> None:
        """Send a request, and wait for nothing."""
        headers = {"Host": "localhost"} | {key.replace("_", "-"): it for key, it in said.items()}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.writer.write(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode())

    async def hears(self, *, is_head: bool = False) -> HttpResponse:
        """The next answer; what comes after it stays."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").strip().split("\r\n")
        status, headers = int(first.split()[1]), dict(line.split(": ", 1) for line in lines)
        size = 0 if is_head else int(headers.get("Content-Length", 0))
        return HttpResponse(status, headers, await self.reader.readexactly(size))

    async def gets(self, path: str, method: str = "GET", **said: str) -> HttpResponse:
        """Ask, and hear the answer."""
        self.asks(path, method, **said)
        return await self.hears(is_head=method == "HEAD")

    def reads_nothing(self) -> None:
        self.writer.transport.pause_reading()  # type: ignore[attr-defined]


class ArenaWithPage(GatewayArena):
    """A host with its page, and its clients."""

    def __init__(self, host: LiveArena, trust: ssl.SSLContext | None = None) -> None:
        super().__init__(host.gateway, urlsplit(host.url).port or 0)
        self.host = host
        self.url = host.url
        self.trust = trust
        self.listen()

    @asynccontextmanager
    async def peer(self) -> AsyncIterator[PagePeer]:
        """A connection for requests."""
        streams = await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=self.trust, limit=1 << 20
        )
        yield PagePeer(*streams)
        streams[1].transport.abort()

    async def get(self, path: str, **said: str) -> HttpResponse:
        """A document, over a connection of its own."""
        async with self.peer() as client:
            host = {"Host": f"127.0.0.1:{self.port}", "Connection": "close"}
            return await client.gets(path, **{**host, **said})

    @asynccontextmanager
    async def stranger(self, name: str = "ann", **options: Any) -> AsyncIterator[RawBot]:
        """A connection that has not sent anything yet."""
        async with self.viewer("/") as websocket:
            yield RawBot(websocket, name, **options)

    @asynccontextmanager
    async def viewer(self, path: str = "/watch", **options: Any) -> AsyncIterator[ClientConnection]:
        """A WebSocket that has not sent anything yet."""
        if self.trust is not None:
            options["ssl"] = self.trust
        url = f"{self.url}{path}"
        async with connect(url, compression=None, max_size=None, **options) as socket:
            yield socket

    @asynccontextmanager
    async def raw_viewer(self) -> AsyncIterator[PagePeer]:
        """A viewer of which the test writes every byte."""
        async with self.peer() as client:
            client.asks("/watch", **UPGRADE)
            await client.reader.readuntil(b"\r\n\r\n")
            yield client

    async def refusal(self, path: str, **headers: str) -> tuple[int, str]:
        """The status and the line with which a WebSocket is refused."""
        with pytest.raises(InvalidStatus) as refused:
            async with self.viewer(path, additional_headers=headers):
                pass
        response = refused.value.response
        return response.status_code, bytes(response.body or b"").decode()

    @property
    def web(self) -> Web:
        assert isinstance(self.host.here.page, Web)
        return self.host.here.page

    @property
    def viewers(self) -> int:
        return len(self.web._viewers)

    @property
    def visitors(self) -> int:
        """The number of visitors that are still connected."""
        return len(self.web._visitors)

    @property
    def idle(self) -> int:
        """The number of connections that wait for another request."""
        return len(self.gateway.entrance.idle)

    async def emptied(self) -> None:
        """Wait until nobody is connected any more."""
        while self.gateway._connections:
            await asyncio.sleep(0.01)


@asynccontextmanager
async def in_page_host(
    folder: Path, trust: ssl.SSLContext | None = None, **options: Any
) -> AsyncIterator[ArenaWithPage]:
    """An arena with its page and a database in a folder; options are those of `LiveArena`."""
    with Store(folder / "arena.db") as store:
        async with LiveArena(store, **{"limits": LIMITS, "page": Web, **options}) as host:
            yield ArenaWithPage(host, trust)


async def heard(viewer: ClientConnection) -> dict[str, Any]:
    """The next message; text, as all are."""
    frame = await viewer.recv()
    assert isinstance(frame, str)
    message: dict[str, Any] = json.loads(frame)
    return message


async def to_end(viewer: ClientConnection) -> int | None:
    """The close code, after all messages have been read."""
    with suppress(ConnectionClosed):
        while True:
            await viewer.recv()
    return viewer.close_code
