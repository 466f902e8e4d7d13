"""The arena's end of the connection in `arena check`: how the bot comes, leaves and comes back.

Only a bot that is started here knows the address. With `--listen` anybody may connect, such as a
port scanner. Once such a bot has been here, a connection is its own only if its `hello` says so.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Final

from arena.authoring.conformance import Hint, StepFailed
from arena.authoring.conformance.diagnose import GENERIC, blame_of_process, last_lines
from arena.authoring.conformance.fake_transport import (
    Broke,
    CheckEndpoint,
    Disconnected,
    Event,
    FrameReceived,
    Line,
    Opened,
    ProcessEnded,
)
from arena.engine.verdict import Finding
from arena.referee.transport import Wire
from arena.sandbox.command import Program
from protocol.codec import Encoding, decode_from_bot
from protocol.errors import ProtocolError, one_line
from protocol.messages import CLOSE_CRASHED, CLOSE_DONE, CLOSE_OVERSIZE, BotMessage, Hello, Limits
from protocol.session import Session

__all__ = ["BotConnection"]

_AFTERMATH_S = 1.0  # a process that ends after its connection does so within that time
_CLOSE_GOING = 1001  # RFC 6455: "going away"; some libraries close so at their end
_KNOWN = frozenset({Hint.BATCH, Hint.MESSAGE_LIMIT})  # earlier steps have tried all else
_LARGE_BYTES = 64 * 1024  # the lowest default limit of a known WebSocket library
# Nothing comes: the bot's standard error may say why.
_SILENT = frozenset(
    {Hint.SILENT, Hint.NOT_READY, Hint.NO_HELLO, Hint.NOT_FLUSHED, Hint.NOT_CONNECTED}
)


class BotConnection(ABC):
    """Connects to the bot, and finds the reason when the bot leaves.

    Attributes:
        hello: its first `hello`; None before.
        secrets: the `session` of every `welcome`.
        sent, came: the last message to it and from it, in one line, cut where it is long.
    """

    def __init__(
        self, limits: Limits, program: Program | None, on_frame: Callable[[str, str], None]
    ) -> None:
        self.limits: Final = limits
        self.program: Final = program
        self.is_stdio: Final = program is not None and program.stdio
        self.endpoint: Final = CheckEndpoint(limits)
        self.hello: Hello | None = None
        self.secrets: set[str] = set()
        self.sent = self.came = ""
        self._on_frame = on_frame
        self._loop = asyncio.get_running_loop()
        self._blame: Hint | None = None
        self._failed: set[tuple[Hint, str]] = set()
        self._wire: Line | None = None
        self._session = Session()
        self._pending: deque[tuple[BotMessage, float, bytes]] = deque()
        self._sent_bytes = 0  # of the last frame
        self._is_mute = False  # it has sent nothing since the last `over`
        self._is_idle = False  # nothing has been sent to it since then

    def failure(self, expected: str, came: str, hint: Hint, stderr: str = "") -> StepFailed:
        """The error to raise; `stderr` is the end of a crashed bot's standard error."""
        if not stderr and hint in _SILENT:
            stderr = last_lines(self.written())
        if hint in GENERIC:
            hint = self._blamed(hint, stderr)
        return StepFailed(self.sent, expected, came, hint, stderr)

    def _blamed(self, hint: Hint, stderr: str) -> Hint:
        """The hint of the step instead of a general one, unless the bot has failed this way before.

        Crashes differ by their standard error: a known error is not caused by this step.
        """
        way = (hint, stderr if hint is Hint.CRASHED else "")
        is_known = way in self._failed
        if is_known or self._blame is None or hint is Hint.CRASHED:
            self._failed.add(way)
        return hint if is_known or self._blame is None else self._blame

    def written(self) -> str:
        """The end of its standard error while it runs; empty if its process is not ours."""
        return ""

    async def connect(self, expected: str, hint: Hint, within_ms: float) -> None:
        """Wait for a new connection, and ignore the old one; raises `StepFailed` if none comes."""
        self._wire = None
        self._session.disconnected()
        self._pending.clear()
        until = self._loop.time() + within_ms / 1000
        strangers: dict[Wire, Line] = {}
        while self._wire is None:
            match await self.event(until):
                case None:
                    came = "connections, and none of them said its `hello`"
                    came = f"{came if strangers else 'no connection'} within {within_ms:,.0f} ms"
                    raise self.failure(expected, came, hint)
                case Opened(wire) if self._is_anybodys:
                    strangers[wire] = wire
                case Opened(wire):
                    self._wire = wire
                case FrameReceived(wire, frame, encoding) as event if wire in strangers:
                    if self._is_its_hello(frame, encoding):
                        self._wire = strangers.pop(wire)
                        await self._take(event, expected)
                case Broke(wire, error) if wire not in strangers:
                    raise self.failure(expected, str(error), hint)
                case ProcessEnded(_, finding):
                    usual = Hint.DIED if hint is Hint.NOT_CONNECTED else hint
                    raise self.failure(expected, *blame_of_process(finding, usual))
        self._on_frame("--", "the bot connects")
        for stranger in strangers:
            stranger.cut()

    @property
    def _is_anybodys(self) -> bool:
        """Whether a new connection may be somebody else's, and a `hello` can tell."""
        return self.program is None and self.hello is not None

    def _is_its_hello(self, frame: bytes, encoding: Encoding) -> bool:
        """Whether a frame is a `hello` with the bot's name, or with one of its sessions."""
        assert self.hello is not None, "it has been here before"
        try:
            first, *_ = decode_from_bot(frame, encoding)
        except (ProtocolError, ValueError):
            return False
        return isinstance(first, Hello) and (
            first.name == self.hello.name or first.resume in self.secrets
        )

    @abstractmethod
    async def _take(self, event: Event, expected: str) -> None:
        """Handle an event of the current connection."""

    async def event(self, until: float) -> Event | None:
        """The next event, or None if there is none `until` then, by the loop's clock in seconds."""
        try:
            async with asyncio.timeout_at(until):
                return await self.endpoint.events.get()
        except TimeoutError:
            return None

    def cut(self) -> None:
        """Drop its connection without a close frame."""
        self._on_frame("--", "the connection is cut")
        if self._wire is not None:
            self._wire.cut()

    def end(self, code: int, reason: str = "") -> None:
        """Close its connection with a code, or its standard input."""
        self.sent = "its input ends" if self.is_stdio else f"closed with {code}"
        self._on_frame("--", self.sent)
        if self._wire is not None:
            self._wire.close(code, reason)

    async def exited(self, within_s: float) -> Finding | str | None:
        """Wait until its process ends, and return how; None if it goes on.

        A text stands for a bot that connected again, or, if it connects by itself, that closed.
        """
        until = self._loop.time() + within_s
        while (event := await self.event(until)) is not None:
            match event:
                case ProcessEnded(_, finding):
                    return finding
                case Opened() if not self._is_anybodys:
                    return "it connected again"
                case FrameReceived(wire, frame, encoding) if wire is not self._wire:
                    if self._is_anybodys and self._is_its_hello(frame, encoding):
                        return "it connected again"
                case Disconnected(wire) if self.program is None and wire is self._wire:
                    return "it closed the connection"
        return None

    async def departed(
        self, expected: str, hint: Hint, finding: Finding | None = None
    ) -> StepFailed:
        """The error to raise when the connection is lost. Waits a moment for its process to end."""
        code = None if self._wire is None else self._wire.close_code
        told = [self._parting] if finding is None or code is not None else []
        if finding is None and self.program is not None:
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
            if code == CLOSE_OVERSIZE or (code is None and self._sent_bytes >= _LARGE_BYTES):
                hint = Hint.MESSAGE_LIMIT
            elif self._gave_reason and self._blame not in _KNOWN:
                # The bot's own reason is better than a guess of the step.
                self._failed.add((Hint.CRASHED, said))
                return StepFailed(self.sent, expected, came, Hint.CRASHED, said)
        if hint is Hint.LEFT and self._left_at_over(code, finding):
            hint = Hint.LEAVES_AT_OVER
        return self.failure(expected, came, hint, said)

    def _left_at_over(self, code: int | None, finding: Finding | None) -> bool:
        """Whether it left as a program that takes `over` for the end: in order, without a word."""
        if code is None and finding is None:
            # The exit status of a bot that connects by itself is unknown.
            is_orderly = self.program is None and self._blame is None
        else:
            is_orderly = code in (None, CLOSE_DONE, _CLOSE_GOING)
        return is_orderly and self._is_mute and (self._blame is None or self._is_idle)

    @property
    def _gave_reason(self) -> bool:
        # protocol/messages.md: a bot that has crashed closes with 1011 and a reason.
        wire = self._wire
        if wire is None or wire.close_code != CLOSE_CRASHED:
            return False
        return bool(wire.close_reason.strip())

    @property
    def _parting(self) -> str:
        wire = self._wire
        if self.is_stdio:
            return "it closed its standard output"
        if wire is None or (code := wire.close_code) is None:
            return "the connection was lost"
        said = one_line(wire.close_reason.strip())
        return f"it closed the connection with {code}{f' ({said})' if said else ''}"
