"""The conversation with the bot of `arena check`: what it is told and how, what is heard of it, and what is wrong with that.

Every frame goes through the codec and every message through the table of turns of `protocol/session.py`, in both directions, as in an
arena: what is refused here would be refused there. Steps say what they send and what they wait for; how it can go wrong, and which hint
fits, is decided here, in `arena/authoring/conformance/connection.py` and in `arena/authoring/conformance/diagnose.py`, once for all steps.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from arena.authoring.conformance import Hint
from arena.authoring.conformance.connection import BotConnection
from arena.authoring.conformance.diagnose import (
    blame_of_frame,
    blame_of_turn,
    in_a_line,
    messages_of,
)
from arena.authoring.conformance.fake_transport import (
    Broke,
    Delivery,
    Disconnected,
    Event,
    FrameReceived,
    Opened,
    Ponged,
    ProcessEnded,
)
from protocol.codec import Encoding, decode_from_bot, encode, join
from protocol.errors import OutOfTurn, ProtocolError
from protocol.messages import ArenaMessage, BotMessage, Goodbye, Limits, Over
from protocol.session import Session, State

__all__ = ["BotConversation", "Dress"]

_LOOK_S = 0.25  # how often a bot that is waited for is looked at

Dress = Callable[[dict[str, Any]], dict[str, Any]]
"""Gives a message another look that means the same to a bot."""


class BotConversation(BotConnection):
    """The arena's end of the connection; its arguments are those of `BotConnection`.

    Attributes:
        pongs: how many pings it has answered since it was started.
        has_spoken: whether it has said something that counts, or answered a ping, since this was last set to False.
    """

    def __init__(
        self, limits: Limits, on_frame: Callable[[str, str], None], *, is_ours: bool, is_stdio: bool
    ) -> None:
        super().__init__(limits, on_frame, is_ours=is_ours, is_stdio=is_stdio)
        self.pongs = 0
        self.has_spoken = False
        self._dress: Dress | None = None
        self._is_spaced = False
        self._delivery = Delivery.AT_ONCE

    def begin(self) -> None:
        """Forget all that was said: a program is started anew."""
        self._session, self._wire = Session(), None
        self._pending.clear()
        self._is_mute = self._is_idle = False
        self.sent = self.came = ""
        self._sent_bytes = self.pongs = 0

    @property
    def is_here(self) -> bool:
        """Whether it was let in, and not stopped since then; it may have gone by itself."""
        return self._wire is not None and self._session.state is State.OPEN

    @property
    def encoding(self) -> Encoding:
        """That of its first frame."""
        encoding = None if self._wire is None else self._wire.encoding
        return encoding or Encoding.JSON

    # ---- How it is spoken to, and what is its fault meanwhile

    @contextlib.contextmanager
    def speaking(
        self,
        *,
        dress: Dress | None = None,
        is_spaced: bool = False,
        delivery: Delivery = Delivery.AT_ONCE,
        blame: Hint | None = None,
    ) -> Iterator[None]:
        """While in here messages look so, are written so, and what goes wrong has this hint, unless there is a more precise one."""
        before = self._dress, self._is_spaced, self._delivery, self._blame
        self._dress, self._is_spaced = dress, is_spaced
        self._delivery, self._blame = delivery, blame
        try:
            yield
        finally:
            self._dress, self._is_spaced, self._delivery, self._blame = before

    # ---- Talking

    async def say(self, *messages: ArenaMessage, joined: bool = False) -> None:
        """Send messages, each in a frame of its own or all in one."""
        encoding = self.encoding
        frames = []
        for message in messages:
            self._session.note(message)
            frames.append(self._encoded(message, encoding))
            self._is_idle = isinstance(message, Over)
            self._is_mute |= self._is_idle
        if joined:
            frames = [join(frames, encoding)]
        for frame in frames:
            text = _text(frame, encoding)
            self.sent = in_a_line(text)
            self.note("arena", text.decode(errors="replace"))
            self._sent_bytes = len(frame)
            if self._wire is not None:
                await self._wire.deliver(frame, encoding, self._delivery)

    def _encoded(self, message: ArenaMessage, encoding: Encoding) -> bytes:
        if self._dress is None:
            return encode(message, encoding)
        dressed = self._dress(msgspec.json.decode(encode(message, Encoding.JSON)))
        if encoding is Encoding.MSGPACK:
            return msgspec.msgpack.encode(dressed)
        frame = msgspec.json.encode(dressed)
        return msgspec.json.format(frame, indent=0) if self._is_spaced else frame

    async def hear(
        self,
        expected: str,
        hint: Hint,
        within_ms: float,
        late: Hint | None = None,
        *,
        even_repeated: bool = False,
        look: Callable[[], str | None] = lambda: None,
    ) -> tuple[BotMessage, float]:
        """The next message that counts, and when it arrived, in seconds of the loop's clock.

        Args:
            expected: what is waited for, for people.
            hint: why it does not come at all.
            within_ms: how long to wait for it.
            late: why it comes, but as long again after that, or at most as long as `hard_ms`.
            even_repeated: also one that comes to nothing, as it has been said before.
            look: what it has done meanwhile that makes it too late, if it has.

        Raises:
            Failed: something else came, or nothing.
        """
        began = self._loop.time()
        until, is_late = began + within_ms / 1000, False
        while True:
            while self._pending:
                message, arrived = self._next()
                if self._counts(message, expected) or even_repeated:
                    if is_late and late is not None:
                        took_ms = (arrived - began) * 1000
                        came = f"{self.came} after {took_ms:,.0f} ms"
                        raise self.failure(expected, came, late)
                    return message, arrived
            event = await self.event(min(until, self._loop.time() + _LOOK_S))
            if event is not None:
                await self._take(event, expected)
            elif late is not None and (found := look()) is not None:
                raise self.failure(expected, found, late)
            elif self._loop.time() < until:
                continue
            elif late is None or is_late:
                came = f"nothing within {within_ms:,.0f} ms"
                raise self.failure(expected, came, hint)
            else:
                more_ms = min(within_ms, self.limits.hard_ms)
                is_late, until = True, self._loop.time() + more_ms / 1000

    async def quiet(self, expected: str, within_s: float) -> None:
        """It says nothing for a while, and stays.

        Raises:
            Failed: it does not.
        """
        until = self._loop.time() + within_s
        while True:
            while self._pending:
                message, _ = self._next()
                if self._counts(message, expected):
                    raise self.failure(expected, self.came, blame_of_turn(message))
            if (event := await self.event(until)) is None:
                return
            await self._take(event, expected)

    @property
    def has_more(self) -> bool:
        """Whether there is more of the frame that came last."""
        return bool(self._pending)

    # ---- Within

    def _next(self) -> tuple[BotMessage, float]:
        """The message that came first of those that nobody has looked at."""
        message, arrived, part = self._pending.popleft()
        self.came = in_a_line(part)
        return message, arrived

    def _counts(self, message: BotMessage, expected: str) -> bool:
        """Whether a message has any effect; see `Session.note`."""
        try:
            counts = self._session.note(message)
        except OutOfTurn as error:
            is_early = self._session.state in (State.NEW, State.GREETED)
            hint = Hint.NOT_HELLO if is_early else blame_of_turn(message)
            came = f"{error}: {self.came}"
            raise self.failure(expected, came, hint) from None
        self._is_mute = False
        if isinstance(message, Goodbye):
            raise self.failure(expected, self.came, Hint.LEFT)
        if not counts and self._wire is not None:
            now = self._loop.time()
            if self._wire.budget.spend(now, 1) is not None:
                most = self.limits.unanswered
                came = f"more than {most:,} messages a second that come to nothing, the last: {self.came}"
                raise self.failure(expected, came, Hint.OUT_OF_TURN)
        self.has_spoken |= counts
        return counts

    async def _take(self, event: Event, expected: str) -> None:
        """Make something of what happened."""
        match event:
            case FrameReceived(wire, frame, encoding, arrived) if wire is self._wire:
                text = _text(frame, encoding)
                self.note("bot", text.decode(errors="replace"))
                try:
                    messages = decode_from_bot(frame, encoding)
                except ProtocolError as error:
                    hint = blame_of_frame(error, frame, is_stdio=self.is_stdio)
                    came = f"{error}: {in_a_line(text)}"
                    raise self.failure(expected, came, hint) from None
                parts = messages_of(text, len(messages))
                for message, part in zip(messages, parts, strict=True):
                    self._pending.append((message, arrived, part))
            case Broke(wire, error) if wire is self._wire:
                hint = blame_of_frame(error, b"{", is_stdio=self.is_stdio)
                raise self.failure(expected, str(error), hint)
            case Disconnected(wire) if wire is self._wire:
                raise await self.departed(expected, Hint.LEFT)
            case ProcessEnded(_, finding):
                raise await self.departed(expected, Hint.LEFT, finding)
            case Opened(wire) if not self._is_ours:
                wire.cut()  # somebody else's
            case Opened():
                came = "another connection, while the first one is open"
                raise self.failure(expected, came, Hint.ONE_CONNECTION)
            case Ponged(wire):
                self.pongs += 1
                self.has_spoken |= wire is self._wire


def _text(frame: bytes, encoding: Encoding) -> bytes:
    """A frame as JSON, for people; what cannot be read stays as it is."""
    if encoding is Encoding.JSON:
        return frame
    try:
        return msgspec.json.encode(msgspec.msgpack.decode(frame))
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        return frame
