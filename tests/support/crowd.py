"""Many bots in one process: `python -m tests.support.crowd --url ws://... --count 250 --game GAME`.

Each has a connection of its own and gives any legal answer at once. It plays until the arena closes
or its connection is lost. With `--restless S` it drops its connection now and then, after S seconds
on average, and resumes its session.

Nothing of ours is imported: the bots drive the sans-I/O protocol of `websockets`, so that hundreds
of them fit beside the arena on two cores. The exit status is 1 if a bot was refused or is out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from typing import Any

from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.uri import WebSocketURI, parse_uri

__all__ = ["main"]

Message = dict[str, Any]

_AT_ONCE = 50  # connections that are being made: the listening socket's queue is short


class CrowdBot(asyncio.Protocol):
    """One bot, over one connection after another."""

    def __init__(self, uri: WebSocketURI, name: str, games: list[str], tables: int) -> None:
        self.complains = False
        self._name = name
        self._uri = uri
        self._hello = {"type": "hello", "protocol": 1, "name": name}
        self._hello |= {"games": games, "tables": tables}
        self._session: str | None = None
        self._random = random.Random(name)
        self._lost = asyncio.Event()
        self._welcome = asyncio.Event()

    async def connect(self) -> None:
        """Be welcome, for the first time or again."""
        self._lost.clear()
        self._welcome.clear()
        self._wire = ClientProtocol(self._uri, max_size=None)
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self, self._uri.host, self._uri.port)
        await self._welcome.wait()

    async def stay(self, restless_s: float | None) -> None:
        """Play until the connection is lost for good."""
        while True:
            patience_s = restless_s and self._random.expovariate(1 / restless_s)
            try:
                await asyncio.wait_for(self._lost.wait(), patience_s)
            except TimeoutError:
                self._transport.abort()
                await self._lost.wait()
                await self.connect()
            else:
                return

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "it is a stream's"
        self._transport = transport
        self._wire.send_request(self._wire.connect())
        hello = self._hello
        if self._session is not None:
            hello = {**hello, "resume": self._session}
        self._first = hello
        self._flush()

    def data_received(self, data: bytes) -> None:
        self._wire.receive_data(data)
        for event in self._wire.events_received():
            if not isinstance(event, Frame):
                self._say(self._first)  # the handshake is over
            elif event.opcode is Opcode.TEXT:
                self._hear(json.loads(bytes(event.data)))
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost.set()
        self._welcome.set()

    def _hear(self, message: Message) -> None:
        match message["type"]:
            case "ask":
                legal = message["legal"]
                value = (
                    self._random.randint(legal["min"], legal["max"])
                    if isinstance(legal, dict)
                    else self._random.choice(legal)
                )
                ids = {"match": message["match"], "ask": message["ask"]}
                self._say({"type": "answer", **ids, "value": value})
            case "match":
                ids = {"match": message["match"], "nonce": str(self._random.random())}
                self._say({"type": "ready", **ids})
            case "welcome":
                self._session = message["session"]
                self._welcome.set()
            case "over" if message.get("verdict"):
                self._complain(f"is out: {message['verdict']['text']}")
            case "refused":
                self._complain(f"was refused: {message['text']}")

    def _complain(self, why: str) -> None:
        self.complains = True
        print(f"{self._name} {why}", file=sys.stderr, flush=True)

    def _say(self, message: Message) -> None:
        self._wire.send_text(json.dumps(message).encode())

    def _flush(self) -> None:
        for data in self._wire.data_to_send():
            if data:
                self._transport.write(data)
            else:
                self._transport.close()


async def play(options: argparse.Namespace) -> int:
    """Play until all connections are lost; how many bots complain."""
    uri = parse_uri(options.url)
    bots = [
        CrowdBot(uri, f"{options.name} {number}", options.game, options.tables)
        for number in range(options.count)
    ]
    connecting = asyncio.Semaphore(_AT_ONCE)

    async def live(bot: CrowdBot) -> None:
        async with connecting:
            await bot.connect()
        await bot.stay(options.restless)

    await asyncio.gather(*map(live, bots))
    return sum(bot.complains for bot in bots)


def main() -> int:
    """Read the command line and play."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--url", required=True)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--name", default="crowd")
    parser.add_argument("--game", action="append", required=True)
    parser.add_argument("--tables", type=int, default=1)
    parser.add_argument("--restless", type=float, metavar="S")
    return int(asyncio.run(play(parser.parse_args())) > 0)


if __name__ == "__main__":
    sys.exit(main())
