"""A real nats-server, set up by `arena bus init`: TLS, keys, and permissions of each role."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from arena.competitions.elsewhere import BusAddress
from arena.hosts.bus_setup import set_up
from tests.support.needs import tool

__all__ = ["NatsServer", "nats_server"]

_READY_S = 30.0


class NatsServer:
    """A server on a port of its own, whose files are in a folder."""

    def __init__(self, folder: Path, hosts: tuple[str, ...] = ("h1", "h2")) -> None:
        self.files = set_up(folder, ["localhost", "127.0.0.1"], hosts)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        conf = self.files.server_conf.read_text()
        self.files.server_conf.write_text(conf.replace("0.0.0.0:4222", f"127.0.0.1:{self.port}"))
        self._process: subprocess.Popen[str] | None = None
        self.pid = 0
        self.start()

    def address(self, user: str, port: int | None = None) -> BusAddress:
        """Where a user finds it; `port` is that of a proxy before it."""
        url = f"tls://localhost:{port or self.port}"
        return BusAddress(url, self.files.key(user), self.files.ca)

    def options(self, user: str) -> list[str]:
        """The options of a command that uses it."""
        where = self.address(user)
        return ["--bus", where.url, "--bus-key", str(where.key), "--bus-ca", str(where.ca)]

    def start(self) -> None:
        """Start it, and wait until it answers."""
        log = self.files.folder / "log"
        # The shell ends it when the pipe from here is closed, even by our death.
        with log.open("ab") as stderr:
            self._process = process = subprocess.Popen(
                [
                    *("sh", "-c", '"$@" & echo $!; read _; kill $!; wait $!', "sh"),
                    *(tool("nats-server"), "-c", str(self.files.server_conf)),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        assert process.stdout is not None, "it was made with one"
        self.pid = int(process.stdout.readline())
        give_up_at = time.monotonic() + _READY_S
        while not self._answers():
            assert time.monotonic() < give_up_at, log.read_text()
            time.sleep(0.02)

    def kill(self) -> None:
        """`kill -9`."""
        os.kill(self.pid, signal.SIGKILL)
        self.stop()

    def reload(self) -> None:
        """Have it read its configuration again."""
        os.kill(self.pid, signal.SIGHUP)

    def stop(self) -> None:
        if self._process is not None:
            self._process.communicate(timeout=_READY_S)
            self._process = None

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                return connection.recv(4) == b"INFO"
        except OSError:
            return False


@pytest.fixture
def nats_server(tmp_path: Path) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path / "bus")
    try:
        yield server
    finally:
        server.stop()
