"""Connections of a bot to an arena that is a script: what it says, step by step, without a network.

`dialled` lets a client get to them, one after the other, when it connects.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from websockets.exceptions import ConnectionClosedError

import bots.reach
from protocol.ace_king_queen import HandOver, Open
from protocol.codec import Encoding, encode
from protocol.messages import (
    ArenaMessage,
    Ask,
    Ending,
    FinalStanding,
    Limits,
    Match,
    Over,
    Past,
    Termination,
    Welcome,
)
from protocol.vocabulary import News

__all__ = [
    *("NEWS", "FakeTransport", "Says", "ScriptedConnection", "Step"),
    *("STANDING_LINE", "ask", "competition_over", "dialled", "match", "over", "past", "welcome"),
]

NEWS = HandOver(1, 0, ("A", "K"), "check", None, (1, -1), (1, -1))


def welcome(session: str = "secret", *, finish: bool = False) -> Welcome:
    return Welcome(1, "ann", session, Limits(), finish=finish)


def match(name: str = "m") -> Match:
    seats, settings = ("ann", "ben"), {"hands": 1000}
    return Match(name, "ace_king_queen", 0, seats, settings, Limits(), "hash")


def ask(number: int = 1, match: str = "m", news: tuple[News, ...] = ()) -> Ask:
    return Ask(match, f"{match}:{number}", Open(number, "K"), news, 1000, 1000)


def past(number: int = 1, match: str = "m", answer: str = "bet") -> Past:
    return Past(match, f"{match}:{number}", Open(number, "K"), (NEWS,), answer)


def over(match: str = "m", news: tuple[News, ...] = ()) -> Over:
    return Over(match, news, (1, -1), Termination(Ending.COMPLETED), None)


STANDING = FinalStanding(
    competition="akq-1",
    run="week 3",
    game="ace_king_queen",
    rank=2,
    players=12,
    score=15.5,
    interval=(4.1, 26.9),
    text="week 3 is over · rank 2 of 12",
    page="/course/#/c/akq-1",
)
"""What a bot is told when a competition is over, and how it says so after `ws://arena`."""
STANDING_LINE = "week 3 is over · rank 2 of 12 · http://arena/course/#/c/akq-1"


def competition_over() -> Over:
    completed = Termination(Ending.COMPLETED)
    return Over("akq-1", (), (), completed, None, standing=STANDING)


Says = ArenaMessage | list[ArenaMessage] | bytes
"""A frame: one message, several, or as it is."""
Step = Says | tuple[Says, ...] | int | Callable[[], object]
"""A frame, some that are read together, the code of the end, or what happens in between."""


class FakeTransport:
    """What a connection goes over: a socket, if there is one."""

    def __init__(self, link: socket.socket | None = None) -> None:
        self._link = link

    def get_extra_info(self, name: str) -> socket.socket | None:
        assert name == "socket"
        return self._link

    def abort(self) -> None:
        """The connection is cut."""


class ScriptedConnection:
    """One connection: what the arena says in it, one step after another, and what it hears."""

    def __init__(self, *script: Step, encoding: Encoding = Encoding.JSON) -> None:
        self.heard: list[Any] = []
        self.frames = 0
        self.answers_pings = True
        self.closed: tuple[int, str] | None = None
        self.close_code: int | None = None
        self.close_reason: str | None = None
        self.transport = FakeTransport()
        self.on_read: Callable[[list[bytes]], int] | None = None
        self.backlog = 0
        self.takes = asyncio.Event()
        self.takes.set()
        self._unhandled: list[bytes] = []
        self._script = list(script)
        self._encoding = encoding

    async def recv(self, decode: bool) -> bytes:
        """The next frame that is not handled at once, see `FrameConnection`."""
        assert decode is False
        while not self._unhandled:
            await self.breathe()
            if not self._script:
                await self.end()
            step = self._script.pop(0)
            if isinstance(step, int):
                self.close_code, self.close_reason = step, "because"
                raise ConnectionClosedError(None, None)
            if callable(step):
                step()
                continue
            together = step if isinstance(step, tuple) else (step,)
            frames = [self._written(frame) for frame in together]
            self.frames += len(frames)
            handled = 0
            if self.on_read is not None and not self.backlog:
                handled = self.on_read(frames)
            self._unhandled = frames[handled:]
            self.backlog += len(self._unhandled)
        return self._unhandled.pop(0)

    async def breathe(self) -> None:
        """Let the loop run before a step, as a socket does."""
        await asyncio.sleep(0)

    async def end(self) -> None:
        """The script is over, and the arena says nothing more."""
        await asyncio.get_running_loop().create_future()

    def _written(self, says: Says) -> bytes:
        if isinstance(says, bytes):
            return says
        if isinstance(says, list):
            parts = b",".join(encode(message, self._encoding) for message in says)
            return b"[%b]" % parts
        return encode(says, self._encoding)

    def say(self, frame: bytes, text: bool) -> None:
        assert text is (self._encoding is Encoding.JSON)
        decoder = msgspec.json if text else msgspec.msgpack
        self.heard.append(decoder.decode(frame))

    async def send(self, frame: bytes, text: bool) -> None:
        await self.takes.wait()
        self.say(frame, text)

    async def ping(self) -> asyncio.Future[float]:
        pong = asyncio.get_running_loop().create_future()
        if self.answers_pings:
            pong.set_result(0.0)
        return pong

    async def close(self, code: int = 1000, reason: str = "") -> None:
        self.closed = (code, reason)

    def messages(self) -> list[Any]:
        """All that the client said, whatever frames it came in."""
        return [
            message
            for frame in self.heard
            for message in (frame if isinstance(frame, list) else [frame])
        ]

    def said(self, kind: str) -> list[Any]:
        return [message for message in self.messages() if message["type"] == kind]


def dialled(
    monkeypatch: pytest.MonkeyPatch, lines: Iterable[ScriptedConnection | Exception]
) -> None:
    """Set what a client gets to when it connects, time after time: a line, or an error."""
    left = iter(lines)

    @asynccontextmanager
    async def connect(url: str, **_: object) -> Any:
        line = next(left)
        if isinstance(line, Exception):
            raise line
        yield line

    monkeypatch.setattr(bots.reach, "connect", connect)
    monkeypatch.setattr("random.uniform", lambda low, high: 0.0)  # no pauses
