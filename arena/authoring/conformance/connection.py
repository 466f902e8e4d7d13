"""One end of the connection with the bot of `arena check`: it comes, goes, and comes back; and whose fault it is when it does not.

A bot that is started here is the only one that connects. With `--listen` anybody may, such as a port scanner: once the bot has been
here, a connection is taken for its own only when it says so in its `hello`. What is said over the connection is in `arena/authoring/conformance/conversation.py`.
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
from protocol.codec import Encoding
from protocol.errors import one_line
from protocol.messages import CLOSE_CRASHED, CLOSE_DONE, CLOSE_OVERSIZE, BotMessage, Limits
from protocol.session import Session

__all__ = ["BotConnection"]

_AFTERMATH_S = 1.0  # after its connection a process ends soon, if it does
_CLOSE_GOING = 1001  # as a browser closes, and some libraries at the end
_KNOWN = frozenset({Hint.BATCH, Hint.MESSAGE_LIMIT})  # all else has been tried before
_LARGE_BYTES = 64 * 1024  # the least limit of a library that is known
_SILENT = frozenset(
    {Hint.SILENT, Hint.NOT_READY, Hint.NO_HELLO, Hint.NOT_FLUSHED, Hint.NOT_CONNECTED}
)
"""Why nothing comes: what it wrote to standard error may say it."""


class BotConnection(ABC):
    """Where the bot is, and how it went.

    Args:
        limits: what the bot is held to.
        is_ours: whether its process is started here.
        is_stdio: whether it speaks in lines.
        on_frame: told of every frame: who sent it, `arena`, `bot` or `--`, and the text.

    Attributes:
        sent: the last message to it, in a line.
        came: the last message of it, as it came, cut to a line.
    """

    def __init__(
        self, limits: Limits, on_frame: Callable[[str, str], None], *, is_ours: bool, is_stdio: bool
    ) -> None:
        self.limits: Final = limits
        self.is_stdio: Final = is_stdio
        self.endpoint: Final = CheckEndpoint(limits)
        self.sent = self.came = ""
        self._is_ours = is_ours
        self._on_frame = on_frame
        self._loop = asyncio.get_running_loop()
        self._blame: Hint | None = None
        self._failed: set[tuple[Hint, str]] = set()
        self._wire: Line | None = None
        self._session = Session()
        self._pending: deque[tuple[BotMessage, float, bytes]] = deque()
        self._sent_bytes = 0  # of the last frame
        self._is_mute = False  # it has said nothing since the last `over`
        self._is_idle = False  # it has been told nothing since then

    # ---- Whose fault it is

    def failure(self, expected: str, came: str, hint: Hint, stderr: str = "") -> StepFailed:
        """What is to be raised when something else came than was expected; `stderr` is the end of what a crashed bot wrote."""
        if not stderr and hint in _SILENT:
            stderr = last_lines(self.written())
        if hint in GENERIC:
            hint = self._blamed(hint, stderr)
        return StepFailed(self.sent, expected, came, hint, stderr)

    def _blamed(self, hint: Hint, stderr: str) -> Hint:
        """The step's own hint in the place of a general one, unless the bot has failed in this way before it.

        Crashes are told apart by what the program wrote: an error that has been seen before is none of this step's.
        """
        way = (hint, stderr if hint is Hint.CRASHED else "")
        is_known = way in self._failed
        if is_known or self._blame is None or hint is Hint.CRASHED:
            self._failed.add(way)
        return hint if is_known or self._blame is None else self._blame

    def written(self) -> str:
        """The end of what its process has written to standard error, as long as it runs; nothing if it is none of ours."""
        return ""

    def note(self, who: str, text: str) -> None:
        """Tell what was said, or what has happened."""
        self._on_frame(who, text)

    # ---- Coming

    async def connect(self, expected: str, hint: Hint, within_ms: float) -> None:
        """Wait for its next connection; what comes over the old one is not heard.

        Raises:
            Failed: it does not come, or its process has ended.
        """
        self._wire = None
        self._session.disconnected()
        self._pending.clear()
        until = self._loop.time() + within_ms / 1000
        strangers: dict[Wire, Line] = {}
        while self._wire is None:
            match await self.event(until):
                case None:
                    came = f"no connection within {within_ms:,.0f} ms"
                    if strangers:
                        came = f"connections, and none of them said its `hello` within {within_ms:,.0f} ms"
                    raise self.failure(expected, came, hint)
                case Opened(wire) if self._is_anybodys:
                    strangers[wire] = wire
                case Opened(wire):
                    self._wire = wire
                case FrameReceived(wire, frame, encoding) as event if wire in strangers:
                    if self.is_its_hello(frame, encoding):
                        self._wire = strangers.pop(wire)
                        await self._take(event, expected)
                case Broke(wire, error) if wire not in strangers:
                    raise self.failure(expected, str(error), hint)
                case ProcessEnded(_, finding):
                    usual = Hint.DIED if hint is Hint.NOT_CONNECTED else hint
                    raise self.failure(expected, *blame_of_process(finding, usual))
        self.note("--", "the bot connects")
        for stranger in strangers:
            stranger.cut()

    @property
    def _is_anybodys(self) -> bool:
        """Whether a new connection may be somebody else's, and the bot is known well enough to be told from them."""
        return False

    def is_its_hello(self, frame: bytes, encoding: Encoding) -> bool:
        """Whether the first frame of a connection is the bot's."""
        return True

    @abstractmethod
    async def _take(self, event: Event, expected: str) -> None:
        """Make something of what happened."""

    async def event(self, until: float) -> Event | None:
        """What happens next; None if nothing does until then, in seconds of the loop's clock."""
        try:
            async with asyncio.timeout_at(until):
                return await self.endpoint.events.get()
        except TimeoutError:
            return None

    # ---- Going

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
            match event:
                case ProcessEnded(_, finding):
                    return finding
                case Opened() if not self._is_anybodys:
                    return "it connected again"
                case FrameReceived(wire, frame, encoding) if wire is not self._wire:
                    if self._is_anybodys and self.is_its_hello(frame, encoding):
                        return "it connected again"
                case Disconnected(wire) if not self._is_ours and wire is self._wire:
                    return "it closed the connection"
        return None

    async def departed(
        self, expected: str, hint: Hint, finding: Finding | None = None
    ) -> StepFailed:
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
            if code == CLOSE_OVERSIZE or (code is None and self._sent_bytes >= _LARGE_BYTES):
                hint = Hint.MESSAGE_LIMIT
            elif self._gave_reason and self._blame not in _KNOWN:
                # It says itself what is wrong, and the step need not guess.
                self._failed.add((Hint.CRASHED, said))
                return StepFailed(self.sent, expected, came, Hint.CRASHED, said)
        if hint is Hint.LEFT and self._left_at_over(code, finding):
            hint = Hint.LEAVES_AT_OVER
        return self.failure(expected, came, hint, said)

    def _left_at_over(self, code: int | None, finding: Finding | None) -> bool:
        """Whether it went as a program does that takes `over` for the end: in order, and without another word."""
        if code is None and finding is None:
            # Who connects by itself may just drop the connection, and nobody knows how it ended.
            is_orderly = not self._is_ours and self._blame is None
        else:
            is_orderly = code in (None, CLOSE_DONE, _CLOSE_GOING)
        if self._blame is None:
            return is_orderly and self._is_mute
        return is_orderly and self._is_mute and self._is_idle

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
