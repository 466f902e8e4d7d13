"""The conversation with the bot of `arena check`: what it is told and how, what is heard of it, and what is wrong with that.

Every frame goes through the codec and every message through the table of turns of `protocol/session.py`, in both directions, as in an
arena: what is refused here would be refused there. Steps say what they send and what they wait for; how it can go wrong, and which hint
fits, is decided here and in `arena/check_judge.py`, once for all steps.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from arena.check import Failed, Hint
from arena.check_judge import (
    GENERIC,
    blame_of_frame,
    blame_of_process,
    blame_of_turn,
    in_a_line,
)
from arena.check_wire import (
    Broke,
    Came,
    Delivery,
    Desk,
    Ended,
    Event,
    Gone,
    Line,
    Opened,
    Ponged,
)
from arena.verdict import Finding
from protocol.codec import Encoding, decode_from_bot, encode, join
from protocol.errors import OutOfTurn, ProtocolError
from protocol.messages import ArenaMessage, BotMessage, Goodbye, Limits, Over
from protocol.session import Session, State

__all__ = ["Dress", "Talk"]

_AFTERMATH_S = 1.0  # after its connection a process ends soon, if it does

Dress = Callable[[dict[str, Any]], dict[str, Any]]
"""Gives a message another look that means the same to a bot."""


class Talk:
    """One end of the wire, the arena's.

    Args:
        limits: what the bot is held to.
        is_ours: whether its process is started here.
        is_stdio: whether it speaks in lines.
        on_frame: told of every frame: who sent it, `arena`, `bot` or `--`, and the text.

    Attributes:
        sent: the last message to it, in a line.
        pongs: how many pings it has answered since it was started.
    """

    def __init__(
        self,
        limits: Limits,
        on_frame: Callable[[str, str], None],
        *,
        is_ours: bool,
        is_stdio: bool,
    ) -> None:
        self.limits: Final = limits
        self.is_stdio: Final = is_stdio
        self.desk: Final = Desk(limits)
        self.sent = ""
        self.pongs = 0
        self._is_ours = is_ours
        self._on_frame = on_frame
        self._loop = asyncio.get_running_loop()
        self._dress: Dress | None = None
        self._is_spaced = False
        self._delivery = Delivery.AT_ONCE
        self._blame: Hint | None = None
        self._wire: Line | None = None
        self._session = Session()
        self._pending: deque[tuple[BotMessage, float]] = deque()
        self._since_over = False  # it has said nothing since then

    def begin(self) -> None:
        """Forget all that was said: a program is started anew."""
        self._session, self._wire = Session(), None
        self._pending.clear()
        self._since_over = False
        self.sent = ""
        self.pongs = 0

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

    def failure(self, expected: str, came: str, hint: Hint) -> Failed:
        """What is to be raised when something else came than was expected."""
        if self._blame is not None and hint in GENERIC:
            hint = self._blame
        return Failed(self.sent, expected, came, hint)

    # ---- The connection

    async def connect(self, expected: str, hint: Hint, within_ms: float) -> None:
        """Wait for its next connection; what comes over the old one is not heard.

        Raises:
            Failed: it does not come, or its process has ended.
        """
        self._wire = None
        self._session.disconnected()
        self._pending.clear()
        until = self._loop.time() + within_ms / 1000
        while self._wire is None:
            match await self.event(until):
                case None:
                    came = f"no connection within {within_ms:,.0f} ms"
                    raise self.failure(expected, came, hint)
                case Opened(wire):
                    self.note("--", "the bot connects")
                    self._wire = wire
                case Broke(_, error):
                    raise self.failure(expected, str(error), hint)
                case Ended(_, finding):
                    usual = Hint.DIED if hint is Hint.NOT_CONNECTED else hint
                    raise self.failure(expected, *blame_of_process(finding, usual))

    def cut(self) -> None:
        """Drop its connection without a word."""
        self.note("--", "the connection is cut")
        if self._wire is not None:
            self._wire.cut()

    def end(self, code: int, reason: str = "") -> None:
        """Close its connection with a code, or its input."""
        what = "its input ends" if self.is_stdio else f"closed with {code}"
        self.note("--", what)
        self.sent = what
        if self._wire is not None:
            self._wire.close(code, reason)

    async def exited(self, within_s: float) -> Finding | str | None:
        """Wait until its process ends: how it did, or why nobody knows, or None if it goes on; a connection is a reason, too."""
        until = self._loop.time() + within_s
        while (event := await self.event(until)) is not None:
            if isinstance(event, Ended):
                return event.finding
            if isinstance(event, Opened):
                return "it connected again"
            if isinstance(event, Gone) and not self._is_ours:
                return "it closed the connection"
        return None

    # ---- Talking

    async def say(self, *messages: ArenaMessage, joined: bool = False) -> None:
        """Send messages, each in a frame of its own or all in one."""
        encoding = self.encoding
        frames = []
        for message in messages:
            self._session.note(message)
            frames.append(self._encoded(message, encoding))
            self._since_over = isinstance(message, Over) or self._since_over
        if joined:
            frames = [join(frames, encoding)]
        for frame in frames:
            text = _text(frame, encoding)
            self.sent = in_a_line(text)
            self.note("arena", text.decode(errors="replace"))
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
    ) -> tuple[BotMessage, float]:
        """The next message that counts, and when it arrived, in seconds of the loop's clock.

        Args:
            expected: what is waited for, for people.
            hint: why it does not come at all.
            within_ms: how long to wait for it.
            late: why it comes, but as long again after that.
            even_repeated: also one that comes to nothing, as it has been said before.

        Raises:
            Failed: something else came, or nothing.
        """
        began = self._loop.time()
        until, is_late = began + within_ms / 1000, False
        while True:
            while self._pending:
                message, arrived = self._pending.popleft()
                if self._counts(message, expected) or even_repeated:
                    if is_late and late is not None:
                        took_ms = (arrived - began) * 1000
                        came = f"{in_a_line(message)} after {took_ms:,.0f} ms"
                        raise self.failure(expected, came, late)
                    return message, arrived
            event = await self.event(until)
            if event is not None:
                await self._take(event, expected)
            elif late is None or is_late:
                came = f"nothing within {within_ms:,.0f} ms"
                raise self.failure(expected, came, hint)
            else:
                is_late, until = True, self._loop.time() + within_ms / 1000

    async def quiet(self, expected: str, within_s: float) -> None:
        """It says nothing for a while, and stays.

        Raises:
            Failed: it does not.
        """
        until = self._loop.time() + within_s
        while True:
            while self._pending:
                message, _ = self._pending.popleft()
                if self._counts(message, expected):
                    came = in_a_line(message)
                    raise self.failure(expected, came, blame_of_turn(message))
            if (event := await self.event(until)) is None:
                return
            await self._take(event, expected)

    @property
    def has_more(self) -> bool:
        """Whether there is more of the frame that came last."""
        return bool(self._pending)

    # ---- Within

    def _counts(self, message: BotMessage, expected: str) -> bool:
        """Whether a message has any effect; see `Session.note`."""
        try:
            counts = self._session.note(message)
        except OutOfTurn as error:
            is_early = self._session.state in (State.NEW, State.GREETED)
            hint = Hint.NOT_HELLO if is_early else blame_of_turn(message)
            came = f"{error}: {in_a_line(message)}"
            raise self.failure(expected, came, hint) from None
        self._since_over = False
        if isinstance(message, Goodbye):
            raise self.failure(expected, in_a_line(message), Hint.LEFT)
        return counts

    async def event(self, until: float) -> Event | None:
        """What happens next; None if nothing does until then, in seconds of the loop's clock."""
        try:
            async with asyncio.timeout_at(until):
                return await self.desk.events.get()
        except TimeoutError:
            return None

    async def _take(self, event: Event, expected: str) -> None:
        """Make something of what happened."""
        match event:
            case Came(wire, frame, encoding, arrived) if wire is self._wire:
                text = _text(frame, encoding)
                self.note("bot", text.decode(errors="replace"))
                try:
                    messages = decode_from_bot(frame, encoding)
                except ProtocolError as error:
                    hint = blame_of_frame(error, frame, is_stdio=self.is_stdio)
                    came = f"{error}: {in_a_line(text)}"
                    raise self.failure(expected, came, hint) from None
                self._pending.extend((message, arrived) for message in messages)
            case Broke(wire, error) if wire is self._wire:
                hint = blame_of_frame(error, b"{", is_stdio=self.is_stdio)
                raise self.failure(expected, str(error), hint)
            case Gone(wire) if wire is self._wire:
                raise await self.departed(expected, Hint.LEFT)
            case Ended(_, finding):
                usual = Hint.LEFT if finding.exit_status == 0 else Hint.CRASHED
                raise self.failure(expected, *blame_of_process(finding, usual))
            case Opened(wire) if not self._is_ours:
                wire.cut()  # somebody else's
            case Opened():
                came = "another connection, while the first one is open"
                raise self.failure(expected, came, Hint.ONE_CONNECTION)
            case Ponged():
                self.pongs += 1

    async def departed(self, expected: str, hint: Hint) -> Failed:
        """The connection is gone: with its process, if that ends soon."""
        wire = self._wire
        came = "the connection was lost"
        if self.is_stdio:
            came = "it closed its standard output"
        elif wire is not None and (code := wire.close_code) is not None:
            reason = f" ({wire.close_reason})" if wire.close_reason else ""
            came = f"it closed the connection with {code}{reason}"
        finding = None
        if self._is_ours:
            finding = await self.exited(_AFTERMATH_S)
        if isinstance(finding, Finding):
            if hint is Hint.LEFT and finding.exit_status != 0:
                hint = Hint.CRASHED
            told, hint = blame_of_process(finding, hint)
            came = f"{came}, {told}"
        if hint is Hint.LEFT and self._since_over:
            hint = Hint.LEAVES_AT_OVER
        return self.failure(expected, came, hint)

    def note(self, who: str, text: str) -> None:
        """Tell what was said, or what has happened."""
        self._on_frame(who, text)


def _text(frame: bytes, encoding: Encoding) -> bytes:
    """A frame as JSON, for people; what cannot be read stays as it is."""
    if encoding is Encoding.JSON:
        return frame
    try:
        return msgspec.json.encode(msgspec.msgpack.decode(frame))
    except (msgspec.MsgspecError, ValueError, TypeError):
        return frame
