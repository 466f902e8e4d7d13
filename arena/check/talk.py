"""The conversation with the bot of `arena check`: what it is told and how, what is heard of it, and what is wrong with that.

Every frame goes through the codec and every message through the table of turns of `protocol/session.py`, in both directions, as in an
arena: what is refused here would be refused there. Steps say what they send and what they wait for; how it can go wrong, and which hint
fits, is decided here and in `arena/check/judge.py`, once for all steps.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from arena.check import Failed, Hint
from arena.check.judge import (
    GENERIC,
    blame_of_frame,
    blame_of_process,
    blame_of_turn,
    in_a_line,
    last_lines,
    messages_of,
)
from arena.check.wire import (
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
from protocol.errors import OutOfTurn, ProtocolError, one_line
from protocol.messages import (
    CLOSE_CRASHED,
    CLOSE_OVERSIZE,
    ArenaMessage,
    BotMessage,
    Goodbye,
    Limits,
    Over,
)
from protocol.session import Session, State

__all__ = ["Dress", "Talk"]

_AFTERMATH_S = 1.0  # after its connection a process ends soon, if it does
_LOOK_S = 0.25  # how often a bot that is waited for is looked at
_KNOWN = frozenset({Hint.BATCH, Hint.MESSAGE_LIMIT})  # all else has been tried before
_LARGE_BYTES = 64 * 1024  # the least limit of a library that is known
_SILENT = frozenset(
    {Hint.SILENT, Hint.NOT_READY, Hint.NO_HELLO, Hint.NOT_FLUSHED, Hint.NOT_CONNECTED}
)
"""Why nothing comes: what it wrote to standard error may say it."""

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
        came: the last message of it, as it came, cut to a line.
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
        self.sent = self.came = ""
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
        self._pending: deque[tuple[BotMessage, float, bytes]] = deque()
        self._sent_bytes = 0  # of the last frame
        self._since_over = False  # it has said nothing since then

    def begin(self) -> None:
        """Forget all that was said: a program is started anew."""
        self._session, self._wire = Session(), None
        self._pending.clear()
        self._since_over = False
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

    def failure(self, expected: str, came: str, hint: Hint, stderr: str = "") -> Failed:
        """What is to be raised when something else came than was expected; `stderr` is the end of what a crashed bot wrote."""
        if not stderr and hint in _SILENT:
            stderr = last_lines(self.written())
        if self._blame is not None and hint in GENERIC:
            hint = self._blame
        return Failed(self.sent, expected, came, hint, stderr)

    def written(self) -> str:
        """The end of what its process has written to standard error, as long as it runs; nothing if it is none of ours."""
        return ""

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
        self._since_over = False
        if isinstance(message, Goodbye):
            raise self.failure(expected, self.came, Hint.LEFT)
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
                parts = messages_of(text, len(messages))
                for message, part in zip(messages, parts, strict=True):
                    self._pending.append((message, arrived, part))
            case Broke(wire, error) if wire is self._wire:
                hint = blame_of_frame(error, b"{", is_stdio=self.is_stdio)
                raise self.failure(expected, str(error), hint)
            case Gone(wire) if wire is self._wire:
                raise await self.departed(expected, Hint.LEFT)
            case Ended(_, finding):
                raise await self.departed(expected, Hint.LEFT, finding)
            case Opened(wire) if not self._is_ours:
                wire.cut()  # somebody else's
            case Opened():
                came = "another connection, while the first one is open"
                raise self.failure(expected, came, Hint.ONE_CONNECTION)
            case Ponged():
                self.pongs += 1

    async def departed(
        self, expected: str, hint: Hint, finding: Finding | None = None
    ) -> Failed:
        """The connection is gone: with its process, if that ends soon or has ended already."""
        told = [] if finding is not None else [self._parting]
        code = None if self._wire is None else self._wire.close_code
        if code is not None:
            told = [self._parting]
        if finding is None and self._is_ours:
            found = await self.exited(_AFTERMATH_S)
            finding = found if isinstance(found, Finding) else None
        said = ""
        if finding is not None:
            if hint is Hint.LEFT and finding.exit_status != 0:
                hint = Hint.CRASHED
            ended, hint, said = blame_of_process(finding, hint)
            told.append(ended)
        elif code == CLOSE_CRASHED:
            hint, said = Hint.CRASHED, last_lines(self.written())
        came = ", ".join(told)
        if hint not in (Hint.MEMORY, Hint.PROCESSES):
            if code == CLOSE_OVERSIZE or (
                code is None and self._sent_bytes >= _LARGE_BYTES
            ):
                hint = Hint.MESSAGE_LIMIT
            elif self._gave_reason and self._blame not in _KNOWN:
                # It says itself what is wrong, and the step need not guess.
                return Failed(self.sent, expected, came, Hint.CRASHED, said)
        if hint is Hint.LEFT and self._since_over and self._blame is None:
            hint = Hint.LEAVES_AT_OVER
        return self.failure(expected, came, hint, said)

    @property
    def _gave_reason(self) -> bool:
        """Whether it has closed as the document demands of a bot that crashes."""
        wire = self._wire
        if wire is None or wire.close_code != CLOSE_CRASHED:
            return False
        return bool(wire.close_reason.strip())

    @property
    def _parting(self) -> str:
        """How the connection ended."""
        wire = self._wire
        if self.is_stdio:
            return "it closed its standard output"
        if wire is None or (code := wire.close_code) is None:
            return "the connection was lost"
        said = one_line(wire.close_reason.strip())
        return f"it closed the connection with {code}{f' ({said})' if said else ''}"

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
