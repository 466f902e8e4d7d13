"""Bots on plain `websockets`, with its keepalive: `-m tests.support.plain_bot --url U NAME...`.

The session is that of protocol/README.md: reconnect with `resume`, and answer a repeated question
again. The answers are random. Nothing of ours is imported. The exit status is 1 if a bot was
refused, or was told that it is out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import secrets
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

__all__ = ["IMPATIENT", "KEEPALIVE", "Message", "PlainBot", "Sent", "main"]

Message = dict[str, Any]

KEEPALIVE = "keepalive ping timeout"
"""The reason with which `websockets` closes a connection without pongs, with code 1011."""
IMPATIENT: dict[str, Any] = {"ping_interval": 1, "ping_timeout": 1, "close_timeout": 1}
"""Has it do so after two seconds; by default it takes forty."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0
_SILENCE_S = 30.0  # who has not answered `hello` by then is no arena
_DONE = 1000
_FINAL = (1002, 1009, 4000, 4001)


class Sent(Exception):
    """The arena has sent the bot away; the text says why."""


class PlainBot:
    """One bot, over one connection after another.

    Args:
        url: where the arena is.
        name: what it is called.
        games: what it plays.
        tables: how many matches at once.
        dial: makes a socket that is connected, where `websockets` cannot by itself.
        options: what `websockets` is to do otherwise than by default.

    Attributes:
        before_answer: awaited with every question before it is answered.
        losses: how each connection that it has lost ended, in the library's words.
        forgotten: how often the arena did not know its session.
        overs: how its matches ended.
    """

    def __init__(
        self,
        url: str,
        name: str,
        games: Sequence[str],
        tables: int = 1,
        dial: Callable[[], Awaitable[socket.socket]] | None = None,
        **options: Any,
    ) -> None:
        self.before_answer: Callable[[Message], Awaitable[None]] | None = None
        self.losses: list[str] = []
        self.forgotten = 0
        self.overs: list[Message] = []
        self._url = url
        self._dial = dial
        self._options = options
        self._hello: Message = {"type": "hello", "protocol": 1, "name": name}
        self._hello |= {"games": list(games), "tables": tables}
        self._refusal: Message | None = None
        self._pause_s = _FIRST_PAUSE_S

    async def run(self) -> None:
        """Play until the arena closes.

        Raises:
            Sent: the arena does not want this bot.
        """
        while True:
            code = None
            try:
                if self._dial is not None:
                    self._options["sock"] = await self._dial()
                async with connect(
                    self._url, compression=None, max_size=None, **self._options
                ) as websocket:
                    code = await self._talk(websocket)
            except (OSError, WebSocketException) as error:
                self.losses.append(f"no connection: {error or type(error).__name__}")
            refusal, self._refusal = self._refusal, None
            if refusal is not None and refusal["code"] == "session":
                self.forgotten += 1
                self._hello.pop("resume")
            elif refusal is not None:
                raise Sent(f"{refusal['code']}: {refusal['text']}")
            elif code == _DONE:
                return
            elif code in _FINAL:
                raise Sent(f"closed with {code}")
            await asyncio.sleep(self._pause_s)
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    async def play_one(self) -> None:
        """Play until it has heard the end of a match, and vanish."""
        running = asyncio.create_task(self.run())
        try:
            while not self.overs:
                assert not running.done(), running.exception()
                await asyncio.sleep(0.05)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def _talk(self, websocket: ClientConnection) -> int | None:
        """One connection; the code that the arena closed it with, None if it was lost."""
        try:
            await websocket.send(json.dumps(self._hello))
            message = json.loads(await asyncio.wait_for(websocket.recv(), _SILENCE_S))
            while True:
                reply = await self._take(message)
                if reply is not None:
                    await websocket.send(json.dumps(reply))
                message = json.loads(await websocket.recv())
        except TimeoutError:
            self.losses.append("no answer to hello")
            return None
        except ConnectionClosed as closed:
            if closed.rcvd is None or closed.rcvd.code != _DONE:
                self.losses.append(str(closed))
            return None if closed.rcvd is None else closed.rcvd.code

    async def _take(self, message: Message) -> Message | None:
        ids = {key: message.get(key) for key in ("match", "ask")}
        match message["type"]:
            case "welcome":
                self._hello["resume"] = message["session"]
                self._pause_s = _FIRST_PAUSE_S
            case "match":
                nonce = secrets.token_hex(8)
                return {"type": "ready", "match": ids["match"], "nonce": nonce}
            case "ask":
                if self.before_answer is not None:
                    await self.before_answer(message)
                value = any_legal(message["legal"])
                return {"type": "answer", **ids, "value": value}
            case "over":
                self.overs.append(message)
            case "refused":
                self._refusal = message
        return None


def any_legal(legal: Any) -> object:
    """One of a list, or a whole number of a range."""
    if isinstance(legal, dict):
        return random.randint(legal["min"], legal["max"])
    return random.choice(legal)


async def _freeze(message: Message) -> None:
    """Stop, as Ctrl-Z does; whoever started us has us go on."""
    os.kill(os.getpid(), signal.SIGSTOP)


async def _play(bots: list[PlainBot]) -> list[str]:
    """What they complain of at the end."""
    outcomes = await asyncio.gather(*(bot.run() for bot in bots), return_exceptions=True)
    complaints = [str(outcome) for outcome in outcomes if outcome is not None]
    for bot in bots:
        told = [over["verdict"]["text"] for over in bot.overs if over["verdict"]]
        complaints += told + ["its session was not known"] * bot.forgotten
    return complaints


def main() -> int:
    """Read the command line and play."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="+")
    parser.add_argument("--url", required=True)
    parser.add_argument("--game", action="append", required=True)
    parser.add_argument("--tables", type=int, default=1)
    parser.add_argument("--freeze", action="store_true", help="stop at every question")
    options = parser.parse_args()
    bots = [PlainBot(options.url, name, options.game, options.tables) for name in options.names]
    if options.freeze:
        for bot in bots:
            bot.before_answer = _freeze
    complaints = asyncio.run(_play(bots))
    for bot in bots:
        for loss in bot.losses:
            print(f"lost: {loss}", file=sys.stderr)
    print("\n".join(complaints), file=sys.stderr)
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(main())
