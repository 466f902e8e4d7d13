"""Bots on plain `websockets`, with its keepalive: `-m tests.support.plain_bot --url U NAME`.

The session is that of protocol/README.md: reconnect with `resume`, and answer a repeated question
again. The answers are random. Nothing of ours is imported. What happens to its connections is on
stderr; each ends when the arena closes, or does not want it any more.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import sys
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

__all__ = ["main"]

IMPATIENT: dict[str, Any] = {"ping_interval": 1, "ping_timeout": 1, "close_timeout": 1}
"""Has the library close a connection two seconds after the last pong; by default it takes forty."""

_PAUSE_S = 0.2
_THINKS_S = 0.01  # before each answer, so that the bot leaves the cores to others
_FINAL = (1000, 1002, 1009, 4000, 4001)


class PlainBot:
    """One bot, over one connection after another."""

    def __init__(self, options: argparse.Namespace, name: str) -> None:
        self._url: str = options.url
        self._freezes: bool = options.freeze
        self._options = IMPATIENT if options.impatient else {}
        self._hello = {"type": "hello", "protocol": 1, "name": name}
        self._hello |= {"games": [options.game], "tables": 1}

    async def run(self) -> None:
        while True:
            try:
                async with connect(
                    self._url, compression=None, max_size=None, **self._options
                ) as websocket:
                    await self._talk(websocket)
            except ConnectionClosed as closed:
                print(f"lost: {closed}", file=sys.stderr, flush=True)
                if closed.rcvd is not None and closed.rcvd.code in _FINAL:
                    return
            except (OSError, WebSocketException) as error:
                print(f"no connection: {error}", file=sys.stderr, flush=True)
            await asyncio.sleep(_PAUSE_S)

    async def _talk(self, websocket: ClientConnection) -> None:
        await websocket.send(json.dumps(self._hello))
        while True:
            message = json.loads(await websocket.recv())
            ids = {key: message.get(key) for key in ("match", "ask")}
            match message["type"]:
                case "welcome":
                    if self._hello.get("resume"):
                        print("welcome again", file=sys.stderr, flush=True)
                    self._hello["resume"] = message["session"]
                case "match":
                    reply = {"type": "ready", "match": ids["match"], "nonce": "plain"}
                    await websocket.send(json.dumps(reply))
                case "ask":
                    if self._freezes:
                        os.kill(os.getpid(), signal.SIGSTOP)  # whoever started us has us go on
                    await asyncio.sleep(_THINKS_S)
                    legal = message["legal"]
                    value = legal["min"] if isinstance(legal, dict) else random.choice(legal)
                    await websocket.send(json.dumps({"type": "answer", **ids, "value": value}))


async def play(options: argparse.Namespace) -> None:
    names = [f"{options.name} {n}" for n in range(options.count)] or [options.name]
    await asyncio.gather(*(PlainBot(options, name).run() for name in names))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name")
    parser.add_argument("--url", required=True)
    parser.add_argument("--game", required=True)
    parser.add_argument(
        "--count", type=int, default=0, help="open this many bots: NAME 0, NAME 1, …"
    )
    parser.add_argument("--freeze", action="store_true", help="stop at every question")
    parser.add_argument("--impatient", action="store_true", help="close after two silent seconds")
    asyncio.run(play(parser.parse_args()))


if __name__ == "__main__":
    main()
