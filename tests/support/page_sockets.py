"""WebSockets of browsers without sockets: what the arena tells them, and words for cases of it.

An arena has two kinds of them, `/watch` and `/submit`. What is the same for both is here; where
tests of a kind need more, they derive their own from it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, Self, TypeVar

import msgspec
from websockets.datastructures import Headers
from websockets.http11 import Request

from arena.referee.budget import Budget
from arena.referee.transport import ConnectionOwner
from protocol.codec import Encoding
from protocol.errors import Oversize
from tests.support.scripts import Stage, fields, fit, fits

__all__ = ["FakePageConnection", "PageSocketStage", "PageSockets"]

Told = TypeVar("Told")
ConnectionT = TypeVar("ConnectionT", bound="FakePageConnection")


class FakePageConnection:
    """A connection that records what it is sent; `hears` waits for a message."""

    decode: ClassVar[Callable[[bytes], Any]] = json.loads
    frame_bytes = 64 * 1024
    buffer_bytes = 512 * 1024
    has_link = is_direct = True
    is_secure = False
    address = "10.0.0.1"
    encoding: Encoding | None = None
    close_code: int | None = None
    close_reason = ""
    min_rtt_ms: float | None = None

    def __init__(self, sockets: PageSockets[Any], number: int) -> None:
        self.peer = f"{self.address}:{number}"
        self.is_open = self.is_behind = self.is_cut = False
        self.useless = self.pings = self.status = 0
        self.budget = Budget(1)
        self.closed: tuple[int, str] | None = None
        self.heard: list[Any] = []
        self._sockets = sockets
        self._news = asyncio.Event()

    def accept(self, request: Request) -> None:
        self.is_open = bool(request.headers.get("Sec-WebSocket-Key"))

    def respond(self, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
        self.status = status

    def hand_to(self, owner: ConnectionOwner, *, frame_bytes: int, buffer_bytes: int) -> None:
        assert owner is self._sockets.owner
        assert (frame_bytes, buffer_bytes) == (self.frame_bytes, self.buffer_bytes)

    def silent_since(self, now: float) -> float | None:
        return None

    def send(self, frame: bytes, encoding: Encoding) -> None:
        assert encoding is Encoding.JSON
        if self.is_open:
            self.heard.append(type(self).decode(frame))
            self._news.set()

    def ping(self, payload: bytes) -> None:
        self.pings += 1

    def close(self, code: int, reason: str = "") -> None:
        self.closed, self.is_open = (code, reason), False

    def cut(self) -> None:
        self.is_cut, self.is_open = True, False

    def hello_received(self) -> None:
        raise AssertionError("it is no bot")

    def rest(self, until: float) -> None:
        raise AssertionError("it is no bot")

    def says(self, *messages: object) -> Self:
        """Send messages, or frames, at the present time."""
        for message in messages:
            frame = message if isinstance(message, bytes) else msgspec.json.encode(message)
            self._sockets.owner.received(self, frame, Encoding.JSON, self._sockets.now)
        return self

    def leaves(self) -> None:
        self.is_open = False
        self._sockets.owner.lost(self)

    async def hears(self, kind: type[Told], is_it: Callable[[Told], bool] = lambda _: True) -> Told:
        """The first message of a type, which may have come before; it and those before are gone."""
        async with asyncio.timeout(20):
            while True:
                for at, message in enumerate(self.heard):
                    if isinstance(message, kind) and is_it(message):
                        del self.heard[: at + 1]
                        return message
                self._news.clear()
                await self._news.wait()


class PageSockets(Generic[ConnectionT]):
    """All connections of a kind, with their clock, as an arena's gateway has them."""

    owner: Any
    """`Viewers` or `SubmitterSockets`."""

    def __init__(self, kind: type[ConnectionT]) -> None:
        self.now = 100.0
        self.blamed = 0
        self._kind = kind
        self._number = 0

    def opens(self, **headers: str) -> ConnectionT:
        """A connection that has said nothing yet."""
        self._number += 1
        connection = self._kind(self, self._number)
        said = Headers({"Sec-WebSocket-Key": "x", **headers})
        self.owner.enter(connection, Request("/", said))
        return connection

    def passes(self, seconds: float) -> None:
        """Let time pass, with a tick a second."""
        for _ in range(round(seconds)):
            self.now += 1
            self.owner.tick(self.now)

    def blame(self, address: str) -> None:
        """As the throttle."""
        self.blamed += 1


class PageSocketStage(Stage, Generic[ConnectionT]):
    """Connections by their names. A connection opens when its name first occurs."""

    def __init__(self, sockets: PageSockets[ConnectionT]) -> None:
        self._sockets = sockets
        self._opened: dict[str, ConnectionT] = {}

    def of(self, name: str) -> ConnectionT:
        if name not in self._opened:
            self._opened[name] = self.opened(name)
        return self._opened[name]

    def opened(self, name: str) -> ConnectionT:
        return self._sockets.opens()

    # --- what happens ---

    def do_pass(self, seconds: str) -> None:
        self._sockets.passes(float(seconds))

    def do_blamed(self, times: str) -> None:
        assert self._sockets.blamed == int(times)

    def by_opens(self, name: str, _: str) -> None:
        self.of(name)

    def by_asks(self, name: str, _: str) -> None:
        """Send a request that is for no WebSocket."""
        self._opened[name] = self._sockets.opens(**{"Sec-WebSocket-Key": ""})

    def by_says(self, name: str, text: str) -> None:
        text, times = _with_times(text)
        kind, _, words = text.partition(" ")
        self.of(name).says(*[{"type": kind, **fields(words)}] * times)

    def by_shouts(self, name: str, text: str) -> None:
        self.of(name).says(text.encode())

    def by_beeps(self, name: str, _: str) -> None:
        sockets = self._sockets
        sockets.owner.received(self.of(name), b"\x80", Encoding.MSGPACK, sockets.now)

    def by_misbehaves(self, name: str, text: str) -> None:
        self._sockets.owner.misbehaved(self.of(name), Oversize(text))

    def by_leaves(self, name: str, _: str) -> None:
        self.of(name).leaves()

    def by_pings(self, name: str, text: str) -> None:
        for _ in range(_with_times(text)[1]):
            self._sockets.owner.on_trivial_frame(self.of(name))

    def by_pongs(self, name: str, text: str) -> None:
        for _ in range(_with_times(text)[1]):
            self._sockets.owner.ponged(self.of(name), b"", self._sockets.now)

    def by_stalls(self, name: str, _: str) -> None:
        """Read nothing from now on."""
        self.of(name).is_behind = True

    def by_reads(self, name: str, _: str) -> None:
        self.of(name).is_behind = False
        self._sockets.owner.drained(self.of(name))

    # --- what is so ---

    def by_gets(self, name: str, status: str) -> None:
        assert (self.of(name).status, self.of(name).is_open) == (int(status), False)

    def by_pinged(self, name: str, times: str) -> None:
        assert self.of(name).pings == int(times)

    def by_stays(self, name: str, _: str) -> None:
        one = self.of(name)
        assert (one.closed, one.is_cut, one.is_open) == (None, False, True)

    def by_cut(self, name: str, _: str) -> None:
        assert self.of(name).is_cut

    def by_closed(self, name: str, text: str) -> None:
        code, _, why = text.partition(": ")
        closed = self.of(name).closed
        assert closed is not None
        assert closed == (int(code), why or closed[1])

    def by_heard(self, name: str, kinds: str) -> None:
        told = [plain(message)["type"] for message in self.of(name).heard]
        assert told == kinds.replace("nothing", "").split()

    async def by_hears(self, name: str, text: str) -> None:
        """The first message of a kind, which may have come before, is as is said."""
        kind, expected = _of_kind(text)
        message = await self.of(name).hears(object, lambda one: plain(one)["type"] == kind)
        fit(plain(message), expected)

    async def by_awaits(self, name: str, text: str) -> None:
        """The same of the first one that fits."""
        kind, expected = _of_kind(text)
        await self.of(name).hears(object, lambda one: fits(plain(one), f"type={kind}{expected}"))


def plain(message: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(message))


def _of_kind(text: str) -> tuple[str, str]:
    """A kind of messages, and what is expected of one."""
    end = min(text.find(each) % (len(text) + 1) for each in (" ", ": "))
    return text[:end], text[end:]


def _with_times(text: str) -> tuple[str, int]:
    """What is said `N times`."""
    words = text.split(" ")
    if words[-1] != "times":
        return text, 1
    return " ".join(words[:-2]), int(words[-2])
