"""The plumbing of a bot: its connection to the arena, from `hello` to the last `over`. It knows no game.

A bot calls `play` and brings a `Player` for every match. The address, the token and the name come from the environment:
ARENA_URL, ARENA_TOKEN (left out if not set) and ARENA_NAME. With `--encoding msgpack` on the command line the frames are binary.
What is said on the wire is described in protocol/README.md. Nothing of the arena's is imported, only `websockets` and `msgpack`
from PyPI.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgpack  # type: ignore[import-untyped]
from websockets.exceptions import ConnectionClosed, InvalidURI, WebSocketException
from websockets.sync.client import ClientConnection, connect

__all__ = ["Failed", "Message", "Player", "Session", "any_legal", "play"]

Message = dict[str, Any]

TABLES = 8  # matches at once
FIRST_PAUSE_S, LONGEST_PAUSE_S, PATIENCE_S = 0.1, 2.0, 60.0
SILENCE_S = 30.0  # who has not answered `hello` by then is no arena
DEAD_LINK = {  # when the kernel gives up a connection whose other end is gone
    "TCP_KEEPIDLE": 5,
    "TCP_KEEPALIVE": 5,  # what macOS calls it
    "TCP_KEEPINTVL": 3,
    "TCP_KEEPCNT": 4,
    "TCP_USER_TIMEOUT": 17_000,
}
DONE, CRASHED = 1000, 1011  # close codes
FINAL = (1002, 1009, 4000, 4001)  # those after which it is no use to come back


class Player:
    """Plays one match. Derive from it, and replace what your bot does better."""

    def decide(self, question: Message) -> object:
        """Answer with one of `question["legal"]`."""
        return any_legal(question["legal"])

    def hear(self, news: Message) -> None:
        """Take note of what has happened: each piece of news, before the question that comes with it."""


def any_legal(legal: Any) -> Any:
    """Any legal answer: one of a list, or a whole number of a range."""
    if isinstance(legal, dict):
        return random.randint(legal["min"], legal["max"])
    return random.choice(legal)


def play(games: Sequence[str], make_player: Callable[[Message], Player]) -> None:
    """Play until the arena closes.

    Args:
        games: what the bot plays.
        make_player: makes the player of one match from the arena's `match`.

    Raises:
        SystemExit: with status 1: the arena refuses the bot or cannot be reached, or a player raised.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--encoding", choices=("json", "msgpack"), default="json")
    is_binary = parser.parse_args().encoding == "msgpack"
    try:
        Session(games, make_player, is_binary=is_binary).run()
    except Failed as failure:
        sys.exit(str(failure))  # prints it on stderr
    except KeyboardInterrupt:
        pass


class Failed(Exception):
    """It cannot go on; the text says why."""


class Chair:
    """What belongs to one match, and is forgotten when it is over."""

    def __init__(self, match: Message, player: Player) -> None:
        self.match = match["match"]
        self.player = player
        self.ready = {"type": "ready", "match": self.match, "nonce": secrets.token_hex(16)}
        self.answered: Message = {"ask": None}

    def decide(self, ask: Message) -> Message:
        """Hear the news and decide; a question that comes again gets the same answer again."""
        if ask["ask"] != self.answered["ask"]:
            self.hear(ask["news"])
            self.answer(ask["ask"], self.player.decide(ask))
        return self.answered

    def answer(self, ask: str, value: object) -> Message:
        """The message with an answer, kept in case it has to be said again."""
        self.answered = {"type": "answer", "match": self.match, "ask": ask, "value": value}
        return self.answered

    def hear(self, news: list[Message]) -> None:
        """Tell the player what has happened."""
        for item in news:
            self.player.hear(item)


class Session:
    """What outlives a connection: the secret that `resume` takes, and the chairs."""

    def __init__(
        self,
        games: Sequence[str],
        make_player: Callable[[Message], Player],
        *,
        is_binary: bool = False,
    ) -> None:
        self.url = os.environ.get("ARENA_URL", "ws://127.0.0.1:7700")
        self.hello: Message = {
            "type": "hello",
            "protocol": 1,
            "name": os.environ.get("ARENA_NAME", "python"),
            "games": list(games),
            "tables": TABLES,
            "batch": True,
            "client": "card-arena example (python)",
        }
        if token := os.environ.get("ARENA_TOKEN"):
            self.hello["token"] = token
        self.make_player = make_player
        self.is_binary = is_binary
        self.chairs: dict[str, Chair] = {}
        self.refusal = ""  # the code of a `refused` that ends this connection
        self.pause_s = FIRST_PAUSE_S
        self.lost_at: float | None = None

    def run(self) -> None:
        """Connect, and connect again, until the arena has closed for good.

        Raises:
            Failed: the arena refuses the bot or cannot be reached, or a player raised.
        """
        while True:
            why = "the connection was lost"
            try:
                with connect(
                    self.url,
                    compression=None,  # frames are small: it costs more than it saves
                    max_size=None,
                    ping_interval=None,  # the arena pings, and may stand still
                ) as websocket:
                    notice_dead_link(websocket.socket)
                    code = self.talk(websocket)
            except InvalidURI as error:
                raise Failed(str(error)) from None
            except (OSError, WebSocketException) as error:
                code, why = None, str(error) or type(error).__name__
            if self.refusal == "session":
                self.forget()
            elif self.refusal:
                raise Failed("the arena refuses this bot")
            elif code == DONE:
                return
            elif code in FINAL:
                raise Failed(f"the arena closed with code {code}")
            self.wait(why)

    def wait(self, why: str) -> None:
        """Pause before the next attempt, longer every time."""
        now = time.monotonic()
        if self.lost_at is None:
            self.lost_at = now
            print(f"waiting for the arena at {self.url}: {why}", file=sys.stderr)
        if now - self.lost_at > PATIENCE_S:
            raise Failed(f"no arena answers at {self.url}: {why}")
        time.sleep(self.pause_s)
        self.pause_s = min(2 * self.pause_s, LONGEST_PAUSE_S)

    def forget(self) -> None:
        """The arena does not know our session any more: begin a new one."""
        self.refusal = ""
        self.chairs.clear()
        self.hello.pop("resume", None)

    def talk(self, websocket: ClientConnection) -> int | None:
        """One connection, from `hello` on; the code that it was closed with, None if it was lost."""
        try:
            websocket.send(self.written(self.hello))
            silence_s: float | None = SILENCE_S
            while True:
                try:
                    frame = read(websocket.recv(silence_s))
                except TimeoutError:
                    return None
                silence_s = None
                messages = frame if isinstance(frame, list) else [frame]
                replies = [reply for reply in map(self.take, messages) if reply]
                if replies:  # to one frame, in one frame
                    said = replies if len(replies) > 1 else replies[0]
                    websocket.send(self.written(said))
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else None
        except KeyboardInterrupt:
            with suppress(ConnectionClosed):
                websocket.send(self.written({"type": "goodbye"}))
                websocket.close()
            raise
        except Exception as error:
            traceback.print_exc()
            websocket.close(CRASHED, repr(error)[:40])  # there is room for 123 bytes
            raise Failed("the player has failed") from None

    def written(self, said: Message | list[Message]) -> str | bytes:
        """What goes into a frame, a text frame for `str` and a binary one for `bytes`; the arena answers in the same form."""
        if self.is_binary:
            packed: bytes = msgpack.packb(said)
            return packed
        return json.dumps(said)

    def take(self, message: Message) -> Message | None:
        """Do what one message asks for; the reply, if it wants one."""
        match message["type"]:
            case "welcome":
                self.hello["resume"] = message["session"]
                self.pause_s, self.lost_at = FIRST_PAUSE_S, None
            case "match":
                name = message["match"]
                if name not in self.chairs:  # after a reconnect it is
                    self.chairs[name] = Chair(message, self.make_player(message))
                return self.chairs[name].ready
            case "ask":
                return self.chairs[message["match"]].decide(message)
            case "past":
                self.chairs[message["match"]].hear(message["news"])
            case "over":
                if chair := self.chairs.pop(message["match"], None):
                    chair.hear(message["news"])
            case "refused":
                return self.refused(message)
            case other:
                raise ValueError(f"version 1 has no message of type {other!r}")
        return None

    def refused(self, message: Message) -> Message | None:
        """In practice, answer again; else the arena closes the connection after this."""
        print(f"{message['code']}: {message['text']}", file=sys.stderr)
        if message.get("legal") is not None:
            chair = self.chairs[message["match"]]
            return chair.answer(message["ask"], any_legal(message["legal"]))
        self.refusal = message["code"]
        return None


def read(frame: str | bytes) -> Any:
    """The message or the list of messages in a frame."""
    return json.loads(frame) if isinstance(frame, str) else msgpack.unpackb(frame)


def notice_dead_link(link: socket.socket) -> None:
    """Have the kernel end the connection if the other machine, or the network, is gone: we might wait for ever."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in DEAD_LINK.items():
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    for option in options:
        with suppress(OSError):  # not every system can do all of it
            link.setsockopt(*option)
