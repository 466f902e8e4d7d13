"""Proxies before the arena: a real nginx, set up as the manual says, and a slow one.

The slow one delays bytes each way and keeps their order, as the network of a bot far away does. It
knows nothing of WebSocket, and delays pings and messages alike.
"""

from __future__ import annotations

import asyncio
import random
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from tests.support.arena_process import free_port
from tests.support.documents import DOCUMENTS
from tests.support.needs import tool

__all__ = ["SlowProxy", "nginx"]

_LISTENS_S = 20.0
_HTTP = """
daemon off;
pid {folder}/pid;
error_log {folder}/errors;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{ours}
}}
"""


@contextmanager
def nginx(
    folder: Path, arena: int, path: str = "/", tls: tuple[Path, Path] | None = None, port: int = 0
) -> Iterator[int]:
    """An nginx in front of an arena's port; yields its own port.

    Without an installed nginx the test is skipped; where `CI` is set, it fails.

    Args:
        folder: where its files are.
        arena: the port of the arena.
        path: below which the arena is.
        tls: a certificate and its key; without them it speaks plainly.
        port: where it listens, 0 for any.
    """
    program = tool("nginx")
    port, file = port or free_port(), folder / "nginx.conf"
    file.write_text(_configuration(folder, port, arena, path, tls))
    process = subprocess.Popen((program, "-c", str(file), "-p", str(folder), "-e", "stderr"))
    try:
        _until_it_listens(port)
        yield port
    finally:
        process.terminate()
        process.wait()


def _configuration(
    folder: Path, port: int, arena: int, path: str, tls: tuple[Path, Path] | None
) -> str:
    """The manual's configuration with ports and a certificate of ours, or without TLS."""
    manual = DOCUMENTS["arena/server/operations.md"]
    [ours] = re.findall(r"^```nginx\n(.*?)^```", manual, re.M | re.S)
    if tls is None:
        ours = re.sub(r"^ *ssl_\w+ .*\n", "", ours, flags=re.M)
    else:
        for mine, theirs in zip(tls, ("fullchain.pem", "privkey.pem"), strict=True):
            ours = ours.replace(f"/etc/ssl/arena/{theirs}", str(mine))
    secure = "" if tls is None else " ssl"
    here = f"listen 127.0.0.1:{port}{secure};"
    ours, count = re.subn(r"listen 443 ssl;", here, ours)
    assert count == 1
    ours, count = re.subn(r"location / ", f"location {path} ", ours)
    assert count == 1
    ours, count = re.subn(r"127\.0\.0\.1:7700", f"127.0.0.1:{arena}", ours)
    assert count == 1
    return _HTTP.format(folder=folder, ours=ours)


def _until_it_listens(port: int) -> None:
    give_up = time.monotonic() + _LISTENS_S
    while time.monotonic() < give_up:
        with suppress(OSError), closing(socket.create_connection(("127.0.0.1", port))):
            return
    raise AssertionError("nginx does not listen")


class SlowProxy:
    """A slow network; within its context `url` leads to the arena.

    Args:
        port: the arena's port on this machine.
        delay_ms: the least delay of a byte, each way.
        jitter_ms: a random delay beyond that, at most.
    """

    def __init__(self, port: int, delay_ms: float = 60.0, jitter_ms: float = 20.0) -> None:
        self.url = ""
        self._port = port
        self._delay_s = delay_ms / 1000
        self._jitter_s = jitter_ms / 1000
        self._random = random.Random("jitter")
        self._lines: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> SlowProxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"ws://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for line in self._lines:
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)

    async def _accept(self, near: asyncio.StreamReader, to_near: asyncio.StreamWriter) -> None:
        far, to_far = await asyncio.open_connection("127.0.0.1", self._port)
        for reader, writer in ((near, to_far), (far, to_near)):
            line = asyncio.create_task(self._carry(reader, writer))
            self._lines.add(line)
            line.add_done_callback(self._lines.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one direction, until its end has arrived, too."""
        line: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        arriving = asyncio.create_task(_deliver(line, writer))
        loop, due = asyncio.get_running_loop(), 0.0
        try:
            while chunk := await _read(reader):
                takes_s = self._delay_s + self._random.uniform(0, self._jitter_s)
                due = max(due, loop.time() + takes_s)  # none overtakes another
                line.put_nowait((due, chunk))
            line.put_nowait((max(due, loop.time() + self._delay_s), b""))
            await arriving
        finally:
            arriving.cancel()
            writer.close()


async def _read(reader: asyncio.StreamReader) -> bytes:
    """Some bytes; none at the end, also of a connection that was reset."""
    with suppress(ConnectionError):
        return await reader.read(65536)
    return b""


async def _deliver(line: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
    """Write each chunk when it is due, up to the empty one."""
    loop = asyncio.get_running_loop()
    while True:
        due, chunk = await line.get()
        await asyncio.sleep(due - loop.time())
        if not chunk:
            return
        writer.write(chunk)
