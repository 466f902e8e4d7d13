"""A proxy before the arena: a real nginx, set up as the manual says."""

from __future__ import annotations

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

__all__ = ["nginx"]

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
