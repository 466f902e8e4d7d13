"""A bot's session with an arena, from `hello` to the last `over`. It knows no game.

A bot calls `play`, with a function that makes a `Player` for every match. The address, the token
and the name come from the environment: ARENA_URL, ARENA_TOKEN (may be unset) and ARENA_NAME. With
`--encoding msgpack` on the command line the frames are binary. protocol/README.md describes the
messages. This file imports nothing of the arena, only `websockets` and `msgpack` from PyPI.
"""

from __future__ import annotations

import argparse
import json
import math
import operator
import os
import random
import secrets
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgpack  # type: ignore[import-untyped]
from websockets.exceptions import ConnectionClosed, InvalidURI, WebSocketException
from websockets.sync.client import ClientConnection, connect

__all__ = ["Failed", "Message", "Player", "Session", "any_legal", "play"]

Message = dict[str, Any]

TABLES = 8  # matches at once
FIRST_PAUSE_S, LONGEST_PAUSE_S, PATIENCE_S = 0.1, 2.0, 60.0
SILENCE_S = 30.0  # an arena answers `hello` within this time
NOTICE_S = 0.5  # how soon an idle bot notices that it is to leave
DEAD_LINK = {  # the kernel gives up a connection after 17 s without a sign of the other machine
    "TCP_KEEPIDLE": 5,
    "TCP_KEEPALIVE": 5,  # what macOS calls it
    "TCP_KEEPINTVL": 3,
    "TCP_KEEPCNT": 4,
    "TCP_USER_TIMEOUT": 17_000,
}
DONE, CRASHED = 1000, 1011  # close codes
FINAL = (1002, 1009, 4000, 4001)  # after these the bot does not connect again


class Player:
    """Plays one match. Derive your own class from it, and replace its methods."""

    def decide(self, question: Message) -> object:
        """Answer with one of `question["legal"]`."""
        return any_legal(question["legal"])

    def hear(self, news: Message) -> None:
        """Take note of what has happened. All news come before the next question."""


def any_legal(legal: Any) -> Any:
    """A random legal answer, from a list or from a range of whole numbers."""
    if isinstance(legal, dict):
        return random.randint(legal["min"], legal["max"])
    return random.choice(legal)


def play(games: Sequence[str], make_player: Callable[[Message], Player]) -> None:
    """Play until the arena closes.

    Args:
        games: the names of the games that the bot plays.
        make_player: makes the player for one match, from the message `match`.

    Raises:
        SystemExit: the arena refuses the bot or cannot be reached, or a player failed; status 1.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--encoding", choices=("json", "msgpack"), default="json")
    is_binary = parser.parse_args().encoding == "msgpack"
    session = Session(games, make_player, is_binary=is_binary)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, session.on_signal)
    try:
        session.run()
    except Failed as failure:
        sys.exit(str(failure))  # prints it on stderr
    except KeyboardInterrupt:
        pass


class Failed(Exception):
    """The bot cannot go on. The text says why."""


class Seat:
    """The bot's seat in one match. It is forgotten when the match is over."""

    def __init__(self, match: Message, player: Player) -> None:
        self.match = match["match"]
        self.player = player
        self.ready = {"type": "ready", "match": self.match, "nonce": secrets.token_hex(16)}
        self.answered: Message = {"ask": None}

    def decide(self, ask: Message) -> Message:
        """Hear the news and decide. A question that comes again gets the same answer."""
        if ask["ask"] != self.answered["ask"]:
            self.hear(ask["news"])
            self.answer(ask["ask"], self.player.decide(ask))
        return self.answered

    def answer(self, ask: str, value: object) -> Message:
        """The message with an answer. It is stored, in case the question comes again."""
        self.answered = {"type": "answer", "match": self.match, "ask": ask, "value": value}
        return self.answered

    def hear(self, news: list[Message]) -> None:
        """Tell the player what has happened."""
        for item in news:
            self.player.hear(item)


class Session:
    """All that outlives a connection: the secret for `resume`, and the seats."""

    def __init__(
        self,
        games: Sequence[str],
        make_player: Callable[[Message], Player],
        *,
        is_binary: bool = False,
    ) -> None:
        self.url = self.place = os.environ.get("ARENA_URL", "ws://127.0.0.1:7700")
        if proxy := proxy_to(self.url):
            self.place += f" through the proxy {proxy.rpartition('@')[2]}"
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
        self.seats: dict[str, Seat] = {}
        self.refusal = ""  # the code of a `refused` that ends this connection
        self.pause_s = FIRST_PAUSE_S
        self.lost_at: float | None = None
        self.is_leaving = False
        # What `welcome` says of `finish`. None without a connection, and after `goodbye`.
        self.finish: bool | None = None

    def run(self) -> None:
        """Connect, and connect again, until the arena has closed for good.

        Raises:
            Failed: the arena refuses the bot or cannot be reached, or a player failed.
        """
        while True:
            why = "the connection was lost"
            try:
                with connect(
                    self.url,
                    proxy=proxy_to(self.url),
                    compression=None,  # frames are small: it would cost more than it saves
                    max_size=None,
                    ping_interval=None,  # the arena sends the pings, and may be stopped for a while
                ) as websocket:
                    notice_dead_link(websocket.socket)
                    code = self.talk(websocket)
            except (InvalidURI, ImportError) as error:  # SOCKS takes another package
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
            if self.is_leaving and not self.seats:
                return
            self.finish = None
            self.wait(why)

    def wait(self, why: str) -> None:
        """Pause before the next attempt, longer every time."""
        now = time.monotonic()
        if self.lost_at is None:
            self.lost_at = now
            print(f"waiting for the arena at {self.place}: {why}", file=sys.stderr)
        if now - self.lost_at > PATIENCE_S:
            raise Failed(f"no arena answers at {self.place}: {why}")
        time.sleep(self.pause_s)
        self.pause_s = min(2 * self.pause_s, LONGEST_PAUSE_S)

    def on_signal(self, number: int, stack: object) -> None:
        """Leave after the matches that are on, without an interruption of a player.

        Raises:
            KeyboardInterrupt: it is the second signal, or there is no connection.
        """
        if self.is_leaving or self.finish is None:
            raise KeyboardInterrupt
        self.is_leaving = True
        line = f"matches to finish: {len(self.seats)}; Ctrl-C again leaves now\n"
        os.write(2, line.encode())  # `print` must not be called while it is interrupted

    def goodbye(self) -> list[Message]:
        """The `goodbye` that is due, once per connection.

        An arena that does not know `finish` hears nothing while a match is on.
        """
        if not self.is_leaving or self.finish is None or (self.seats and not self.finish):
            return []
        finish = {"finish": True} if self.finish else {}
        self.finish = None
        return [{"type": "goodbye", **finish}]

    def forget(self) -> None:
        """Begin a new session, because the arena does not know ours any more."""
        self.refusal = ""
        self.seats.clear()
        self.hello.pop("resume", None)

    def talk(self, websocket: ClientConnection) -> int | None:
        """Serve one connection, from `hello` on; returns its close code, None if it was lost."""
        try:
            websocket.send(self.written(self.hello))
            deadline = time.monotonic() + SILENCE_S
            while True:
                try:
                    frame = read(websocket.recv(NOTICE_S))
                    deadline = math.inf
                except TimeoutError:
                    if time.monotonic() > deadline:
                        return None
                    frame = []
                messages = frame if isinstance(frame, list) else [frame]
                replies = [reply for reply in map(self.take, messages) if reply]
                replies += self.goodbye()
                if replies:  # all replies to one frame go into one frame
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
            reason = f"failed: {error!r}"
            websocket.close(CRASHED, reason[:40])  # at most 123 bytes of UTF-8
            raise Failed("the player has failed") from None

    def written(self, said: Message | list[Message]) -> str | bytes:
        """A message as text for a text frame, or as bytes for a binary one.

        The arena answers in the same form.
        """
        if self.is_binary:
            packed: bytes = msgpack.packb(said, default=plain)
            return packed
        return json.dumps(said, default=plain)

    def take(self, message: Message) -> Message | None:
        """Handle one message; returns the reply, if there is one."""
        match message["type"]:
            case "ask":
                return self.seats[message["match"]].decide(message)
            case "welcome":
                self.hello["resume"] = message["session"]
                self.finish = message.get("finish", False)
                self.pause_s, self.lost_at = FIRST_PAUSE_S, None
            case "match":
                name = message["match"]
                if name not in self.seats:  # after a reconnect the seat is there already
                    self.seats[name] = Seat(message, self.make_player(message))
                return self.seats[name].ready
            case "past":
                self.seats[message["match"]].hear(message["news"])
            case "over":
                if standing := message.get("standing"):  # a competition is over
                    print(standing["text"], file=sys.stderr)
                if seat := self.seats.pop(message["match"], None):
                    seat.hear(message["news"])
            case "refused":
                return self.refused(message)
            case other:
                raise ValueError(f"version 1 has no message of type {other!r}")
        return None

    def refused(self, message: Message) -> Message | None:
        """Answer again in practice mode; otherwise the arena closes the connection next."""
        print(f"{message['code']}: {message['text']}", file=sys.stderr)
        if message.get("legal") is not None:
            seat = self.seats[message["match"]]
            return seat.answer(message["ask"], any_legal(message["legal"]))
        self.refusal = message["code"]
        return None


def proxy_to(url: str) -> str | None:
    """The proxy that the environment names for an address; None for an arena on this machine."""
    host = urlsplit(url).hostname or ""
    if host in ("localhost", "::1") or host.startswith("127.") or proxy_bypass(host):
        return None
    proxies = getproxies()
    return proxies.get("https") or proxies.get("http") or proxies.get("all")


def plain(value: Any) -> object:
    """What is sent for a number, a truth value or an array of NumPy.

    Raises:
        TypeError: it is something else, which cannot be sent.
    """
    return value.tolist() if hasattr(value, "tolist") else operator.index(value)


def read(frame: str | bytes) -> Any:
    """The message or the list of messages in a frame."""
    return json.loads(frame) if isinstance(frame, str) else msgpack.unpackb(frame)


def notice_dead_link(link: socket.socket) -> None:
    """Let the kernel end the connection if the other machine or the network is gone.

    Without that the bot might wait forever.
    """
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in DEAD_LINK.items():
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    for option in options:
        with suppress(OSError):  # not every system has every option
            link.setsockopt(*option)
