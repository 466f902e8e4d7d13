"""An arena behind TLS: our own client, floods and accidents, with certificates of its own."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
from websockets.asyncio.client import connect

from arena.server.gateway import Gateway
from arena.server.listener import Certificate, context, offer
from protocol.errors import UsageError
from protocol.messages import Limits
from tests.support.gateway_bots import (
    LIMITS,
    TIMEOUT_S,
    GatewayArena,
    RawBot,
    all_of,
    in_arena_with,
)
from tests.support.needs import tool

pytestmark = pytest.mark.e2e

Files = tuple[Path, Path]


def openssl(*words: str) -> None:
    subprocess.run([tool("openssl"), *words], check=True, capture_output=True)


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


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """All that was logged in a test, and since."""
    records = [*caplog.get_records("call"), *caplog.get_records("teardown")]
    return [record.getMessage() for record in records]


class Secure(GatewayArena):
    """An arena whose port is encrypted; `plain` is a second port that is not."""

    def __init__(self, gateway: Gateway, port: int, plain: int, cert: Path) -> None:
        super().__init__(gateway, port)
        self.url = f"wss://127.0.0.1:{port}"
        self.plain = plain
        self.trust = ssl.create_default_context(cafile=cert)

    @asynccontextmanager
    async def stranger(self, name: str = "ann", **options: Any) -> AsyncIterator[RawBot]:
        async with connect(self.url, ssl=self.trust, compression=None, max_size=None) as websocket:
            yield RawBot(websocket, name, **options)

    async def raw(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection without TLS to the port that wants it."""
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def emptied(self) -> None:
        """Wait until nobody is connected."""
        while self.gateway._connections:
            await asyncio.sleep(0.01)


@pytest.fixture
def in_arena(
    files: Files, caplog: pytest.LogCaptureFixture
) -> Callable[..., AbstractAsyncContextManager[Secure]]:
    """Open an arena; nothing may be logged."""

    @asynccontextmanager
    async def opened(limits: Limits = LIMITS) -> AsyncIterator[Secure]:
        with caplog.at_level(logging.WARNING):
            async with in_arena_with(limits) as plain:
                gateway = plain.gateway
                port = await gateway.open("127.0.0.1", 0, Certificate(*files).current)
                arena = Secure(gateway, port, plain.port, files[0])
                gateway.on_change = arena.changed
                yield arena
        assert logged(caplog) == []

    return opened


@pytest.fixture
async def arena(
    in_arena: Callable[..., AbstractAsyncContextManager[Secure]],
) -> AsyncIterator[Secure]:
    """An arena with the usual limits."""
    async with in_arena() as arena:
        yield arena


# --- playing ---


@pytest.mark.parametrize("encoding", ["json", "msgpack"])
async def test_bots_play_over_tls_and_beside_it(arena: Secure, encoding: str) -> None:
    beside = GatewayArena(arena.gateway, arena.plain)
    async with (
        arena.bot("ann", encoding=encoding) as ann,
        beside.bot("ben", encoding=encoding) as ben,
    ):
        table = arena.open("ace_king_queen", "ann", "ben", hands=50)
        await asyncio.gather(ann.play(), ben.play())
        result, _ = await arena.result(table)

        assert result.termination.kind == "completed"


async def test_a_request_is_known_to_have_come_over_tls(arena: Secure) -> None:
    page = Mock()
    page.answer.side_effect = lambda visitor, _: visitor.cut()
    arena.gateway.entrance.page = page
    for port, trust in ((arena.port, arena.trust), (arena.plain, None)):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
        writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        with suppress(OSError):
            await reader.read()
        writer.close()
    said = [call.args[0].is_secure for call in page.answer.call_args_list]

    assert said == [True, False]


async def test_who_does_not_trust_the_certificate_is_gone(arena: Secure) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        async with connect(arena.url):
            pass
    await arena.emptied()
    await arena.still_plays()


# --- accidents and attacks ---


HALF = b"\x16\x03\x01\x02\x00\x01"  # of a handshake


@pytest.mark.parametrize(
    ("said", "ends"),
    [
        *((HALF, ends) for ends in ("waits", "closes", "resets")),
        (b"", "waits"),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "waits"),
        (b"\x16\x03\x01\xff\xff" + bytes(5000), "closes"),
        (os.urandom(300), "resets"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{len(value)} bytes",
)
async def test_who_cannot_speak_tls_is_cut(in_arena: Any, said: bytes, ends: str) -> None:
    async with in_arena(msgspec.structs.replace(LIMITS, hello_ms=200)) as arena:
        reader, writer = await arena.raw()
        writer.write(said)
        with suppress(ConnectionError):
            await writer.drain()
        if ends == "closes":
            writer.write_eof()
        if ends == "resets":
            writer.transport.abort()
        else:
            await all_of(reader)
        writer.close()
        await arena.emptied()
        assert len(arena.gateway.throttle) == 0
        await arena.still_plays()


async def test_an_end_without_farewell_is_a_lost_connection(arena: Secure) -> None:
    async with arena.bot("ann") as ann:
        tcp = ann.websocket.transport.get_extra_info("socket")
        with socket.socket(fileno=os.dup(tcp.fileno())) as same:
            same.shutdown(socket.SHUT_WR)
        await arena.until(lambda: arena.gateway.players["ann"].connection is None)
    await arena.still_plays()


async def test_an_arena_closes_while_somebody_shakes_hands(arena: Secure) -> None:
    reader, writer = await arena.raw()
    writer.write(HALF)
    while not arena.gateway._connections:
        await asyncio.sleep(0.01)
    await arena.gateway.close()

    assert not arena.gateway._connections
    with suppress(ConnectionError):
        assert await reader.read() == b""
    writer.close()


# --- what is offered ---


class Fake:
    """The context of a Python that can set one group only."""

    def __init__(self) -> None:
        self.options = ssl.Options(0)
        self.minimum_version: ssl.TLSVersion | None = None
        self.chosen: list[str] = []

    def set_ciphers(self, suites: str) -> None:
        assert suites.split("+")[0] == "ECDHE"

    def set_ecdh_curve(self, name: str) -> None:
        self.chosen.append(name)


class Newer(Fake):
    def set_groups(self, groups: str) -> None:
        self.chosen.append(groups)


@pytest.mark.parametrize(("made", "chosen"), [(Fake(), "prime256v1"), (Newer(), "X25519:P-256")])
def test_as_many_curves_are_offered_as_can_be_set(made: Fake, chosen: str) -> None:
    offer(made)

    assert made.chosen == [chosen]
    assert made.options & ssl.OP_NO_RENEGOTIATION
    assert made.minimum_version == ssl.TLSVersion.TLSv1_2


def s_client(arena: Secure, *options: str) -> str:
    """What OpenSSL's client prints of a connection with these options."""
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{arena.port}", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    return done.stdout


@pytest.mark.parametrize(
    ("options", "is_offered"),
    [
        (("-tls1_3", "-groups", "P-256"), True),
        (("-tls1_3", "-groups", "X25519:P-256"), True),
        (("-tls1_3", "-groups", "P-384"), False),
        (("-tls1_3", "-groups", "ffdhe2048"), False),
        (("-tls1_3", "-groups", "ffdhe8192"), False),
        (("-tls1_2", "-cipher", "ECDHE+AESGCM"), True),
        (("-tls1_2", "-cipher", "ECDHE+AES+SHA256"), False),
        (("-tls1_2", "-cipher", "DHE"), False),
        (("-tls1_2", "-cipher", "kRSA"), False),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
async def test_only_cheap_key_exchange_is_offered(
    arena: Secure, options: tuple[str, ...], is_offered: bool
) -> None:
    said = await asyncio.to_thread(s_client, arena, *options)

    assert ("Cipher is (NONE)" not in said) is is_offered, said
    await arena.emptied()


async def test_a_handshake_that_comes_byte_by_byte_ends_well(arena: Secure) -> None:
    async def carry(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, at_once: int
    ) -> None:
        with suppress(ConnectionError):  # an end that has closed may reset the connection
            while not writer.is_closing() and (data := await reader.read(at_once)):
                writer.write(data)
                await asyncio.sleep(0)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async def through(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, away = await asyncio.open_connection("127.0.0.1", arena.port)
        await asyncio.gather(carry(reader, away, 1), carry(there, writer, 4096))
        is_over.set()

    is_over = asyncio.Event()
    server = await asyncio.start_server(through, "127.0.0.1", 0)
    near = server.sockets[0].getsockname()[1]
    async with connect(f"wss://127.0.0.1:{near}", ssl=arena.trust) as websocket:
        assert (await RawBot(websocket, "ann").hello())["bot"] == "ann"
    await is_over.wait()
    server.close()


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
    gone = f"cannot read {missing}: No such file or directory"
    wrong = {
        (missing, key): f"expected a certificate, {gone}",
        (cert, missing): f"expected a private key, {gone}",
        (tmp_path, key): f"expected a certificate, cannot read {tmp_path}: Is a directory",
        (der, key): f"expected a certificate in PEM, {der} has none: it looks like a binary file",
        (key, key): f"expected a certificate in PEM, {key} has none",
        (cert, cert): f"expected a private key in PEM, {cert} has none",
        (cert, other_key): f"expected the private key of {cert}, got {other_key}",
        (cert, rsa_key): f"expected the private key of {cert}, got {rsa_key}",
        (cert, locked): f"expected a private key without a password, {locked} has one",
    }
    for pair, text in wrong.items():
        with pytest.raises(UsageError) as why:
            context(*pair)
        assert str(why.value) == text
    with pytest.raises(UsageError, match=rf"^cannot use {damaged} with {key}: \w"):
        context(damaged, key)
