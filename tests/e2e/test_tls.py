"""An arena behind TLS: our own client, floods and accidents, with certificates that are made for the test."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.asyncio.client import connect

from arena.conduct import Conduct
from arena.gateway import Gateway
from arena.tls import context
from protocol.errors import UsageError
from protocol.messages import Limits
from tests.e2e.conftest import LIMITS, TIMEOUT_S, Arena, Raw

pytestmark = pytest.mark.e2e

Files = tuple[Path, Path]


def openssl(*words: str) -> None:
    if shutil.which("openssl") is None:
        assert not os.environ.get("CI"), "openssl is not installed"
        pytest.skip("openssl is not installed")
    subprocess.run(["openssl", *words], check=True, capture_output=True)


def make(folder: Path, name: str, *options: str) -> Files:
    """A certificate for this machine that signs itself, and its key."""
    cert, key = folder / f"{name}.crt", folder / f"{name}.key"
    openssl(
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
        *("-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", "/CN=arena"),
        *("-addext", "subjectAltName=IP:127.0.0.1", *(options or ("-nodes",))),
    )
    return cert, key


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return make(tmp_path_factory.mktemp("tls"), "arena")


class Secure(Arena):
    """An arena whose port is encrypted; `plain` is a second one that is not."""

    def __init__(self, gateway: Gateway, port: int, plain: int, cert: Path) -> None:
        super().__init__(gateway, port)
        self.url = f"wss://127.0.0.1:{port}"
        self.plain = plain
        self.trust = ssl.create_default_context(cafile=cert)

    @asynccontextmanager
    async def stranger(self, name: str = "ann", **options: Any) -> AsyncIterator[Raw]:
        async with connect(
            self.url, ssl=self.trust, compression=None, max_size=None
        ) as websocket:
            yield Raw(websocket, name, **options)

    async def raw(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection without TLS to the port that wants it."""
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def emptied(self) -> None:
        """Nobody is connected any more."""
        while self.gateway._connections:
            await asyncio.sleep(0.01)


@pytest.fixture
def in_arena(
    files: Files, caplog: pytest.LogCaptureFixture
) -> Callable[[Callable[[Secure], Any]], None]:
    """Run a scenario in an arena of its own; nothing is logged, and nothing is left."""

    def run(scenario: Callable[[Secure], Any], limits: Limits = LIMITS) -> None:
        async def main() -> None:
            loop = asyncio.get_running_loop()
            arenas: list[Secure] = []
            gateway = Gateway(Conduct(loop.time), limits, lambda: arenas[0].changed())
            port = await gateway.open("127.0.0.1", 0, context(*files))
            plain = await gateway.open("127.0.0.1", 0)
            arenas.append(Secure(gateway, port, plain, files[0]))
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    await scenario(arenas[0])
            finally:
                await gateway.close()
                await asyncio.sleep(0)

        with caplog.at_level(logging.WARNING):
            asyncio.run(main())
        assert [record.getMessage() for record in caplog.records] == []

    return run


# --- playing ---


@pytest.mark.parametrize("encoding", ["json", "msgpack"])
def test_bots_play_over_tls_and_beside_it(in_arena: Any, encoding: str) -> None:
    async def scenario(arena: Secure) -> None:
        beside = Arena(arena.gateway, arena.plain)
        async with (
            arena.bot("ann", encoding=encoding) as ann,
            beside.bot("ben", encoding=encoding) as ben,
        ):
            table = arena.open("ace_king_queen", "ann", "ben", hands=50)
            await asyncio.gather(ann.play(), ben.play())
            result, _ = await arena.result(table)

            assert result.termination.kind == "completed"

    in_arena(scenario)


def test_our_own_client_connects(in_arena: Any, files: Files, start: Any) -> None:
    async def scenario(arena: Secure) -> None:
        environment = {**os.environ, "SSL_CERT_FILE": str(files[0])}
        words = ("bots", "ace_king_queen", "honest", "--url", arena.url)
        programs = [
            start(*words, "--no-session", "--name", name, env=environment)
            for name in ("ann", "ben")
        ]
        await arena.until(lambda: len(arena.gateway.players) == 2)
        table = arena.open("ace_king_queen", "ann", "ben", hands=50)
        result, _ = await arena.result(table)

        assert result.termination.kind == "completed"
        await arena.gateway.close()
        for program in programs:
            status, _, said = await asyncio.to_thread(program.ends)
            assert (status, "connected as" in said) == (0, True), said

    in_arena(scenario)


def test_who_does_not_encrypt_is_told_that_it_may_have_to(
    in_arena: Any, start: Any
) -> None:
    async def scenario(arena: Secure) -> None:
        url = f"ws://127.0.0.1:{arena.port}"
        for words in (
            ("arena", "connect", "akq", "honest"),
            ("arena", "status", "--token", "secret"),
        ):
            program = start(*words, "--url", url)
            status, _, said = await asyncio.to_thread(program.ends)

            assert status == 1
            assert said.startswith(f"arena: no arena answers at {url}: ")
            assert said.endswith("; it may be a wss:// address\n")

    in_arena(scenario)


def test_who_does_not_trust_the_certificate_is_gone(in_arena: Any) -> None:
    async def scenario(arena: Secure) -> None:
        with pytest.raises(ssl.SSLCertVerificationError):
            async with connect(arena.url):
                pass
        await arena.emptied()
        await arena.still_plays()

    in_arena(scenario)


def test_a_lost_connection_comes_back(in_arena: Any) -> None:
    async def scenario(arena: Secure) -> None:
        async with arena.bot("ann") as ann, arena.bot("ben") as ben:
            table = arena.open("ace_king_queen", "ann", "ben", hands=20)
            await asyncio.gather(ann.ready(), ben.ready())
            await ann.vanish()  # without TLS's own farewell
            playing = asyncio.create_task(ben.play())
            async with arena.stranger("ann") as back:
                await back.hello(resume=ann.session)
                await asyncio.gather(back.play(), playing)
            result, _ = await arena.result(table)

            assert result.termination.kind == "completed"

    in_arena(scenario)


@pytest.mark.skipif(
    not hasattr(socket, "TCP_INFO"), reason="this system has no TCP_INFO"
)
def test_J4_the_link_is_measured_as_without(
    in_arena: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.player._PING_S", 0.0)
    monkeypatch.setattr("arena.gateway._PROBE_S", 0.0)

    async def scenario(arena: Secure) -> None:
        async with arena.bot("ann") as ann:
            player = arena.gateway.players["ann"]
            reading = asyncio.create_task(ann.hear())  # answers pings
            while not player.link.is_known:
                await asyncio.sleep(0.01)
            reading.cancel()
            assert player.connection is not None
            least_ms = player.connection.min_rtt_ms

            assert least_ms is not None
            assert 0 < least_ms < 100
            assert player.floor_ms < 100

    in_arena(scenario)


# --- accidents and attacks ---


def test_J2_a_frame_beyond_the_limit_is_oversize(in_arena: Any) -> None:
    async def scenario(arena: Secure) -> None:
        async with arena.bot("ann") as ann:
            await ann.websocket.send("x" * (LIMITS.frame_bytes + 1))

            assert (await ann.refused())[::2] == ("oversize", 1009)
        await arena.still_plays()

    in_arena(scenario)


def test_a_flood_of_what_means_nothing_is_malformed(
    in_arena: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.connection._CLOSE_S", 0.2)

    async def scenario(arena: Secure) -> None:
        async with arena.bot("ann") as ann:
            with suppress(Exception):
                for _ in range(200):
                    await ann.websocket.send("[]")

            assert (await ann.refused())[::2] == ("malformed", 1002)
        await arena.still_plays()

    in_arena(scenario, msgspec.structs.replace(LIMITS, unanswered=10))


def test_J2_a_reader_that_never_reads_is_cut(in_arena: Any) -> None:
    async def scenario(arena: Secure) -> None:
        async with arena.bot("ann") as ann:
            player = arena.gateway.players["ann"]
            ann.websocket.transport.pause_reading()
            wire = player.connection
            assert wire is not None
            while wire.is_open:
                wire.send(b'"' + b"x" * 60_000 + b'"', player._encoding)
                await asyncio.sleep(0)
            await arena.emptied()
            ann.websocket.transport.abort()
        await arena.still_plays()

    in_arena(scenario, msgspec.structs.replace(LIMITS, buffer_bytes=64 * 1024))


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        b"\x16\x03\x01\xff\xff" + bytes(5000),
        os.urandom(300),
    ],
    ids=["nothing", "plain text", "half a handshake", "a bad one", "anything"],
)
@pytest.mark.parametrize("ends", ["waits", "closes", "resets"])
def test_who_cannot_speak_tls_is_cut(in_arena: Any, said: bytes, ends: str) -> None:
    async def scenario(arena: Secure) -> None:
        reader, writer = await arena.raw()
        writer.write(said)
        with suppress(ConnectionError):
            await writer.drain()
        if ends == "closes":
            writer.write_eof()
        elif ends == "resets":
            writer.transport.abort()
        if ends != "resets":
            with suppress(ConnectionError):
                while await reader.read(1000):
                    pass
        writer.close()
        await arena.emptied()
        assert len(arena.gateway.reception.strangers) == 0
        await arena.still_plays()

    in_arena(scenario, msgspec.structs.replace(LIMITS, hello_ms=200))


def test_an_end_without_farewell_is_a_lost_connection(in_arena: Any) -> None:
    async def scenario(arena: Secure) -> None:
        async with arena.bot("ann") as ann:
            tcp = ann.websocket.transport.get_extra_info("socket")
            with socket.socket(fileno=os.dup(tcp.fileno())) as same:
                same.shutdown(socket.SHUT_WR)
            await arena.until(lambda: arena.gateway.players["ann"].connection is None)
        await arena.still_plays()

    in_arena(scenario)


def test_an_arena_closes_while_somebody_shakes_hands(in_arena: Any) -> None:
    async def scenario(arena: Secure) -> None:
        reader, writer = await arena.raw()
        writer.write(b"\x16\x03\x01\x02\x00\x01")
        while not arena.gateway._connections:
            await asyncio.sleep(0.01)
        await arena.gateway.close()

        assert not arena.gateway._connections
        with suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()

    in_arena(scenario)


def test_after_failures_handshakes_wait_for_their_turns(in_arena: Any) -> None:
    async def scenario(arena: Secure) -> None:
        async with arena.bot("ann") as ann:
            arena.open("blackjack", "ann", hands=1)
            for _ in range(20):
                _, writer = await arena.raw()
                writer.write(b"GET / HTTP/1.1\r\n\r\n")
                writer.write_eof()
                await writer.wait_closed() if writer.is_closing() else writer.close()
            while arena.gateway.reception.strangers:
                await asyncio.sleep(0.01)
            waiting = [await arena.raw() for _ in range(30)]
            async with arena.bot("ben"):
                assert "ben" in arena.gateway.players
            for _, writer in waiting:
                writer.transport.abort()
            await ann.play()

    # In the line hello may take as long as on the busiest machine.
    in_arena(scenario, msgspec.structs.replace(LIMITS, hello_ms=60_000))


# --- the files ---


def test_what_is_wrong_with_the_files_is_told(files: Files, tmp_path: Path) -> None:
    cert, key = files
    _, other_key = make(tmp_path, "other")
    _, locked = make(tmp_path, "locked", "-passout", "pass:secret")
    rsa_key = tmp_path / "rsa.key"
    openssl("genrsa", "-out", str(rsa_key), "2048")
    der = tmp_path / "arena.der"
    openssl("x509", "-in", str(cert), "-outform", "der", "-out", str(der))
    damaged = tmp_path / "damaged.crt"
    damaged.write_text(cert.read_text()[:200] + cert.read_text()[260:])
    missing = tmp_path / "missing.pem"
    wrong = {
        (
            missing,
            key,
        ): f"expected a certificate, cannot read {missing}: No such file or directory",
        (
            cert,
            missing,
        ): f"expected a private key, cannot read {missing}: No such file or directory",
        (
            tmp_path,
            key,
        ): f"expected a certificate, cannot read {tmp_path}: Is a directory",
        (der, key): f"expected a certificate in PEM, {der} has none",
        (key, key): f"expected a certificate in PEM, {key} has none",
        (cert, cert): f"expected a private key in PEM, {cert} has none",
        (cert, other_key): f"expected the private key of {cert}, got {other_key}",
        (cert, rsa_key): f"expected the private key of {cert}, got {rsa_key}",
        (cert, locked): f"expected a private key without a password, {locked} has one",
    }
    for (one, two), text in wrong.items():
        with pytest.raises(UsageError) as why:
            context(one, two)
        assert str(why.value) == text
    with pytest.raises(UsageError, match=rf"^cannot use {damaged} with {key}: \w"):
        context(damaged, key)
