"""Wrong tokens, said to an arena as fast as it can be."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress

from tests.support.gateway_bots import HANDSHAKE, hello_frame

__all__ = ["guess"]

_SAID_BYTES = 4096


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
            writer.write(HANDSHAKE + hello_frame("x", token=token))
            while chunk := await reader.read(_SAID_BYTES):
                said += chunk
                if b'"refused"' in said:
                    break
        finally:
            writer.transport.abort()
    start = said.find(b'{"type":"refused"')
    return "cut" if start < 0 else said[start : said.find(b"}", start) + 1].decode()
