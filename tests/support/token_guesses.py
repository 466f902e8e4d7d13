"""Wrong tokens, said to an arena as fast as it can be."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import suppress

__all__ = ["guess"]

_SAID_BYTES = 4096
_HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


async def guess(port: int, count: int, at_once: int = 64) -> Counter[str]:
    """Say `hello` with so many wrong tokens; what came back, and how often."""
    outcomes: Counter[str] = Counter()
    numbers = iter(range(count))

    async def one_after_another() -> None:
        for number in numbers:
            outcomes[await _one(port, f"guess {number}")] += 1

    await asyncio.gather(*(one_after_another() for _ in range(at_once)))
    return outcomes


async def _one(port: int, token: str) -> str:
    """One guess: everything in one write, and read to the end."""
    said = b""
    with suppress(OSError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(_HANDSHAKE + _hello(token))
            while chunk := await reader.read(_SAID_BYTES):
                said += chunk
                if b'"refused"' in said:
                    break
        finally:
            writer.transport.abort()
    start = said.find(b'{"type":"refused"')
    return "cut" if start < 0 else said[start : said.find(b"}", start) + 1].decode()


def _hello(token: str) -> bytes:
    """The message in a masked text frame of less than 126 bytes; the mask is zero."""
    hello = {"type": "hello", "protocol": 1, "name": "x", "games": ["x"], "token": token}
    payload = json.dumps(hello).encode()
    assert len(payload) < 126, "of one byte of length"
    return bytes([0x81, 0x80 | len(payload), 0, 0, 0, 0]) + payload
