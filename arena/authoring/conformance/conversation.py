"""The messages between `arena check` and the bot: sending them, waiting for them, refusing them.

As in an arena, every frame goes through the codec, and every message through `protocol.session`, in
both directions: what is refused here would be refused there.
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
from arena.sandbox.command import Program
from protocol.codec import Encoding, decode_from_bot, encode, join
from protocol.errors import OutOfTurn, ProtocolError
from protocol.messages import ArenaMessage, BotMessage, Goodbye, Limits, Over
from protocol.session import Session, State

__all__ = ["BotConversation", "Dress"]

_LOOK_S = 0.25  # between two looks at the CPU time of a bot that is waited for

Dress = Callable[[dict[str, Any]], dict[str, Any]]
"""Changes the form of a message, but not what it means to a bot."""


class BotConversation(BotConnection):
    """Exchanges messages with the bot; takes the arguments of `BotConnection`.

    Attributes:
        pongs: how many pings the bot has answered since it was started.
        has_spoken: set to True when it sends a message that counts, or a pong.
    """

    def __init__(
        self, limits: Limits, program: Program | None, on_frame: Callable[[str, str], None]
    ) -> None:
        super().__init__(limits, program, on_frame)
        self.pongs = 0
        self.has_spoken = False
        self._dress: Dress | None = None
        self._is_spaced = False
        self._delivery = Delivery.AT_ONCE

    def begin(self) -> None:
        """Forget the conversation, before the program is started again."""
        self._session, self._wire = Session(), None
        self._pending.clear()
        self._is_mute = self._is_idle = False
        self.sent = self.came = ""
        self._sent_bytes = self.pongs = 0

    @property
    def is_here(self) -> bool:
        """Whether it was welcomed, and not stopped since then. It may have left by itself."""
        return self._wire is not None and self._session.state is State.OPEN

    @property
    def encoding(self) -> Encoding:
        """The encoding of the bot's first frame; JSON until the bot has sent one."""
        encoding = None if self._wire is None else self._wire.encoding
        return encoding or Encoding.JSON

    @contextlib.contextmanager
    def speaking(
        self,
        *,
        dress: Dress | None = None,
        is_spaced: bool = False,
        delivery: Delivery = Delivery.AT_ONCE,
        blame: Hint | None = None,
    ) -> Iterator[None]:
        """Send messages in another form in a `with` block; `is_spaced` gives JSON line breaks.

        `blame` is the hint for failures in the block that have no more precise one.
        """
        before = self._dress, self._is_spaced, self._delivery, self._blame
        self._dress, self._is_spaced = dress, is_spaced
        self._delivery, self._blame = delivery, blame
        try:
            yield
        finally:
            self._dress, self._is_spaced, self._delivery, self._blame = before

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
            self._on_frame("arena", text.decode(errors="replace"))
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
        """The next message that counts, and when it arrived, by the loop's clock in seconds.

        Raises `StepFailed` if something else comes, or nothing; `hint` is for the latter.

        Args:
            late: the hint if it comes too late. It is waited for as long again, but no longer than
                `hard_ms`.
            even_repeated: whether to return a message that was said before and has no effect.
            look: called now and then; a text says what the bot has done that makes it too late.
        """
        began = self._loop.time()
        until, is_late = began + within_ms / 1000, False
        while True:
            while self._pending:
                message, arrived = self._next()
                if self._counts(message, expected) or even_repeated:
                    if is_late and late is not None:
                        took_ms = (arrived - began) * 1000
                        raise self.failure(expected, f"{self.came} after {took_ms:,.0f} ms", late)
                    return message, arrived
            event = await self.event(min(until, self._loop.time() + _LOOK_S))
            if event is not None:
                await self._take(event, expected)
            elif late is not None and (found := look()) is not None:
                raise self.failure(expected, found, late)
            elif self._loop.time() < until:
                continue
            elif late is None or is_late:
                raise self.failure(expected, f"nothing within {within_ms:,.0f} ms", hint)
            else:
                more_ms = min(within_ms, self.limits.hard_ms)
                is_late, until = True, self._loop.time() + more_ms / 1000

    async def quiet(self, expected: str, within_s: float) -> None:
        """Wait; raises `StepFailed` if the bot leaves or says something meanwhile."""
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
        """Whether the last frame holds messages that were not looked at."""
        return bool(self._pending)

    def _next(self) -> tuple[BotMessage, float]:
        message, arrived, part = self._pending.popleft()
        self.came = in_a_line(part)
        return message, arrived

    def _counts(self, message: BotMessage, expected: str) -> bool:
        """Whether a message has an effect, as `Session.note` says."""
        try:
            counts = self._session.note(message)
        except OutOfTurn as error:
            is_early = self._session.state in (State.NEW, State.GREETED)
            hint = Hint.NOT_HELLO if is_early else blame_of_turn(message)
            raise self.failure(expected, f"{error}: {self.came}", hint) from None
        self._is_mute = False
        if isinstance(message, Goodbye):
            raise self.failure(expected, self.came, Hint.LEFT)
        wire, now = self._wire, self._loop.time()
        if not counts and wire is not None and wire.budget.spend(now, 1) is not None:
            many = f"more than {self.limits.unanswered:,} messages a second that come to nothing"
            raise self.failure(expected, f"{many}, the last: {self.came}", Hint.OUT_OF_TURN)
        self.has_spoken |= counts
        return counts

    async def _take(self, event: Event, expected: str) -> None:
        match event:
            case FrameReceived(wire, frame, encoding, arrived) if wire is self._wire:
                text = _text(frame, encoding)
                self._on_frame("bot", text.decode(errors="replace"))
                try:
                    messages = decode_from_bot(frame, encoding)
                except ProtocolError as error:
                    hint = blame_of_frame(error, frame, is_stdio=self.is_stdio)
                    raise self.failure(expected, f"{error}: {in_a_line(text)}", hint) from None
                for message, part in zip(messages, messages_of(text, len(messages)), strict=True):
                    self._pending.append((message, arrived, part))
            case Broke(wire, error) if wire is self._wire:
                hint = blame_of_frame(error, b"{", is_stdio=self.is_stdio)
                raise self.failure(expected, str(error), hint)
            case Disconnected(wire) if wire is self._wire:
                raise await self.departed(expected, Hint.LEFT)
            case ProcessEnded(_, finding):
                raise await self.departed(expected, Hint.LEFT, finding)
            case Opened(wire) if self.program is None:
                wire.cut()  # somebody else's
            case Opened():
                came = "another connection, while the first one is open"
                raise self.failure(expected, came, Hint.ONE_CONNECTION)
            case Ponged(wire):
                self.pongs += 1
                self.has_spoken |= wire is self._wire


def _text(frame: bytes, encoding: Encoding) -> bytes:
    """A frame as JSON, for people; an unreadable one stays as it is."""
    if encoding is Encoding.JSON:
        return frame
    try:
        return msgspec.json.encode(msgspec.msgpack.decode(frame))
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        return frame
