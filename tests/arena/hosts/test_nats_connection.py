"""A connection to a bus that says what it says late."""

from __future__ import annotations

import asyncio

import pytest

from arena.competitions.elsewhere import BusAddress
from arena.hosts.bus import BusDown

pytest.importorskip("nats")

from arena.hosts.nats_connection import NatsConnection
from tests.support.arena_process import free_port

LATE_S = 0.1
INFO = b'INFO {"server_id":"x","version":"2.9.10","proto":1,"max_payload":1048576}\r\n'


async def refuse_subscriptions(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A server that answers in order, and takes its time to refuse."""
    writer.write(INFO)
    while line := await reader.readline():
        if line.startswith(b"PING"):
            writer.write(b"PONG\r\n")
        elif line.startswith(b"SUB"):
            await asyncio.sleep(LATE_S)
            writer.write(b"-ERR 'Permissions Violation for Subscription to \"it\"'\r\n")
    writer.close()


async def test_a_key_of_another_name_is_refused_however_late_the_server_says_so() -> None:
    server = await asyncio.start_server(refuse_subscriptions, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connection = NatsConnection(BusAddress(f"nats://127.0.0.1:{port}", None, None), "x", "w2")
    try:
        with pytest.raises(BusDown, match="this key is not that of w2"):
            await connection.open()
    finally:
        server.close()


async def test_where_nothing_listens_no_bus_answers() -> None:
    url = f"nats://127.0.0.1:{free_port()}"

    with pytest.raises(BusDown, match=rf"^{url}: no bus answers: .*Connect call failed"):
        await NatsConnection(BusAddress(url, None, None), "x", "w2").open()
