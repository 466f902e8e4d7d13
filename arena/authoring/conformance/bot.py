"""The bot that `arena check` tests: starts it or waits for it, talks to it, and ends it.

As in an arena, every frame goes through the codec, and every message through `protocol.session`, in
both directions: what is refused here would be refused there.

With `--listen` the bot connects by itself. Where `arena check` would restart a bot, it asks this
one to reconnect. As anybody may connect then, such as a port scanner, later connections count as
the bot's only if their `hello` proves it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from arena.authoring.conformance import Hint, StepFailed
from arena.authoring.conformance.diagnose import (
    GENERIC,
    blame_of_frame,
    blame_of_hello,
    blame_of_process,
    blame_of_turn,
    in_a_line,
    is_garbled,
    last_lines,
    messages_of,
    readable,
)
from arena.authoring.conformance.wire import (
    Broke,
    CheckEndpoint,
    Disconnected,
    Event,
    FrameReceived,
    Line,
    Opened,
    Perturbation,
    ProcessEnded,
)
from arena.games.verdict import Finding
from arena.sandbox.launcher import LaunchedBot, Launcher, Program
from arena.sandbox.process_usage import Peak
from protocol.codec import Encoding, decode_from_bot, join
from protocol.errors import ArenaError, OutOfTurn, ProtocolError, UsageError, one_line
from protocol.messages import (
    CLOSE_CRASHED,
    CLOSE_DONE,
    CLOSE_OVERSIZE,
    CLOSE_REFUSED,
    CLOSE_RESTART,
    VERSION,
    ArenaMessage,
    BotMessage,
    Goodbye,
    Hello,
    Limits,
    Over,
    Refused,
    Welcome,
)
from protocol.session import Session, State

__all__ = ["CONNECTED_AGAIN", "BotUnderTest"]

CONNECTED_AGAIN = "it connected again"
"""The finding for a bot that was to end but connected again."""

_AWAITED_MS = 600_000  # for a bot that a person starts by hand
_LOOK_S = 0.25  # between two checks of a silent bot's CPU time
# The check gives up a bot that neither sends nor computes earlier than an arena does, so that its
# author learns of the fault within half a minute.
_PATIENCE_MS = 16_000
_LESS_PATIENCE_MS = 5_000  # after it was silent once
_BACK_MS = 10_000  # for it to reconnect
_AFTERMATH_S = 1.0  # a process that ends after its connection does so within this time
_CLOSE_GOING = 1001  # RFC 6455: "going away"; sent by some libraries when they end
_KNOWN = frozenset({Hint.BATCH, Hint.MESSAGE_LIMIT})  # earlier steps have tried everything else
_LARGE_BYTES = 64 * 1024  # the lowest default limit of a known WebSocket library
# At these hints nothing came; the bot's standard error may say why.
_SILENT = frozenset(
    {Hint.SILENT, Hint.NOT_READY, Hint.NO_HELLO, Hint.NOT_FLUSHED, Hint.NOT_CONNECTED}
)


class BotUnderTest:
    """The bot under test, and the conversation with it.

    Args:
        program: how to start it; None for a bot that connects by itself.
        name: the bot's name if it is started here.
        on_frame: called with every frame: its sender, `arena`, `bot` or `--`, and its text.
        on_wait: called with what a person must do for the check to go on.
        hidden: files and folders that the bot must not see.

    Attributes:
        hello: its first `hello`; None before.
        practice, is_practice: the `practice` of the next `welcome`, and of the last one.
        sessions: the `session` of every `welcome`.
        sent, came: the last message to and from the bot, each in one line, shortened if long.
        has_spoken: whether it has sent a message with an effect since the last `welcome`.
        peak: the most memory and processes seen so far, in any of its runs.
        cpu_ms: the CPU time of the runs that have ended.
    """

    def __init__(
        self,
        program: Program | None,
        name: str,
        limits: Limits,
        on_frame: Callable[[str, str], None] = lambda who, text: None,
        on_wait: Callable[[str], None] = lambda text: None,
        hidden: Iterable[Path] = (),
    ) -> None:
        self.limits: Final = limits
        self.program: Final = program
        self.is_stdio: Final = program is not None and program.stdio
        self.endpoint: Final = CheckEndpoint(limits)
        self.hello: Hello | None = None
        self.practice = self.is_practice = False
        self.sessions: list[str] = []
        self.sent = self.came = ""
        self.has_spoken = False
        self.launched: LaunchedBot | None = None
        self.peak = Peak()
        self.cpu_ms = 0.0
        self._name = self._usual_name = name
        self._on_frame, self._on_wait = on_frame, on_wait
        self._loop = asyncio.get_running_loop()
        events = self.endpoint.events
        self._launcher = Launcher(
            limits, hidden, lambda name, finding: events.put_nowait(ProcessEnded(finding))
        )
        self._token: str | None = None
        self._was_here = self._was_silent = False
        self._perturbation = Perturbation()
        self._failed: set[tuple[Hint, str]] = set()
        self._wire: Line | None = None
        self._session = Session()
        self._pending: deque[tuple[BotMessage, float, bytes]] = deque()
        self._sent_bytes = 0  # of the last frame
        self._is_mute = False  # the bot has sent nothing since the last `over`
        self._is_idle = False  # we have sent nothing since then

    @property
    def name(self) -> str:
        return self._name if self.program is not None or self.hello is None else self.hello.name

    @property
    def is_here(self) -> bool:
        """Whether the bot was welcomed and not stopped since. It may have left on its own."""
        return self._wire is not None and self._session.state is State.OPEN

    @property
    def encoding(self) -> Encoding:
        """The encoding of the bot's first frame; JSON until the bot has sent one."""
        encoding = None if self._wire is None else self._wire.encoding
        return encoding or Encoding.JSON

    @property
    def back_ms(self) -> float:
        """How long to wait for the bot to reconnect."""
        return min(self.limits.grace_ms, _BACK_MS)

    @property
    def has_more(self) -> bool:
        """Whether the last frame has messages that were not processed yet."""
        return bool(self._pending)

    @property
    def is_metered(self) -> bool:
        """Whether the bot's limits are CPU time, as for bots started by an arena, not wall time."""
        return self.launched is not None and self.launched.is_metered

    def used_ms(self) -> float:
        """The CPU time of the bot's process so far; 0 if it is not measured."""
        return self.launched.cpu_ms() if self.launched and self.launched.is_metered else 0.0

    def waited_ms(self) -> float | None:
        """How long the bot's process has waited for a core so far; None if it is not measured."""
        return None if self.launched is None else self.launched.waited_ms()

    def failure(self, expected: str, came: str, hint: Hint, stderr: str = "") -> StepFailed:
        """Make the error to raise; `stderr` is the end of a crashed bot's standard error.

        If `hint` is in `GENERIC`, the perturbation's own hint replaces it. It does not if the bot
        has failed so before, with that hint or by a crash with the same standard error: then this
        step is not the cause.
        """
        if not stderr and hint in _SILENT:
            stderr = self._last_lines
        if hint in GENERIC:
            way = (hint, stderr if hint is Hint.CRASHED else "")
            blame = None if way in self._failed else self._perturbation.blame
            if blame is None or hint is Hint.CRASHED:
                self._failed.add(way)
            hint = blame or hint
        return StepFailed(self.sent, expected, came, hint, stderr)

    @property
    def _last_lines(self) -> str:
        """The end of the running bot's standard error; empty if its process is not ours."""
        return last_lines(self._launcher.tail(self._name))

    # --- start and end ---

    async def launch(self, name: str | None = None) -> None:
        """Start the bot's process, under another name if given. Does nothing with `--listen`.

        Raises `StepFailed` if it cannot be executed, and `UsageError` if it can never work here.
        """
        self._session, self._wire = Session(), None
        self._pending.clear()
        self._is_mute = self._is_idle = False
        self.sent = self.came = ""
        self._sent_bytes = 0
        self.hello, self._name = None, name or self._usual_name
        self.endpoint.admits = None
        if self.program is None:
            return
        while not self.endpoint.events.empty():  # drop the previous process's events
            self.endpoint.events.get_nowait()
        self._token = None if self.is_stdio else secrets.token_urlsafe(16)
        self._on_frame("--", "the program is started")
        try:
            self.launched = await self._launcher.start(
                self._name, self.program, url=self.endpoint.url, token=self._token or ""
            )
        except UsageError:
            raise
        except ArenaError as error:
            raise self.failure("it starts", str(error), Hint.NOT_STARTED) from None
        if (pipes := self.launched.pipes) is not None:
            self._wire = await self.endpoint.attach(self._name, pipes)

    async def arrive(self) -> None:
        """Wait until the bot connects or writes a first line; raises `StepFailed` if it ends first.

        A bot that does not connect in time fails here; one that writes no line fails in `greet`.
        """
        if self.is_stdio:
            await self._first_line()
            return
        within_ms: float = self.limits.start_ms + self.limits.hello_ms
        if self.program is None:
            self._on_wait(f"waiting for the bot at {self.endpoint.url}")
            within_ms = self.back_ms if self._was_here else _AWAITED_MS
        hint = Hint.NOT_BACK if self._was_here else Hint.NOT_CONNECTED
        await self.connect("it connects", hint, within_ms)
        self._was_here = self.program is None

    async def _first_line(self) -> None:
        expected = "a first line"
        until = self._loop.time() + self.limits.hello_ms / 2000  # `greet` waits for the rest
        match event := await self.endpoint.next_event(until):
            case ProcessEnded(finding):
                raise self.failure(expected, *blame_of_process(finding, Hint.DIED))
            case Disconnected():
                raise await self._departed(expected, Hint.DIED)
            case FrameReceived() | Broke():
                self.endpoint.events.put_nowait(event)  # `greet` judges it

    async def stop(self, code: int | None = None) -> None:
        """End the bot. Without `code`, a bot that connects by itself is asked to reconnect."""
        if self._wire is not None and self._wire.is_open:
            usual = CLOSE_RESTART if self.program is None else CLOSE_DONE
            self._wire.close(code or usual)
        if self.launched is not None:
            self.peak = Peak(*map(max, self.peak, self.launched.peak()))
            self.cpu_ms += self.launched.cpu_ms()
        self.launched = self._wire = None
        await self._launcher.stop(self._name)

    async def close(self) -> None:
        await self.stop(CLOSE_DONE)
        await self._launcher.close()
        self.endpoint.close()

    # --- greeting ---

    async def greet(self) -> Hello:
        """Wait for the bot's `hello`; `StepFailed` if it is late, or wrong except in `resume`."""
        hint = Hint.NOT_FLUSHED if self.is_stdio else Hint.NO_HELLO
        message, _ = await self.hear("`hello`", hint, self.limits.hello_ms)
        if not isinstance(message, Hello):  # such as an instructor's message
            raise self.failure("`hello`", self.came, Hint.NOT_HELLO)
        wrong = blame_of_hello(message, token=self._token, before=self.hello)
        is_ours = wrong is None and self.program is not None
        if is_ours and is_garbled(message.name, self._name, is_utf8=_is_utf8()):
            wrong = f'"name":"{self._name}", as in ARENA_NAME', Hint.NAME
        if wrong is not None:
            expected, why = wrong
            raise self.failure(expected, self.came, why)
        if self._wire is not None:
            self._wire.hello_received()
        return message

    async def meet(self) -> Hello:
        """Receive the bot's `hello`, refuse a foreign session if it resumes one, and welcome it."""
        hello = await self.greet()
        if hello.resume is not None and not self.is_stdio:
            hello = await self.forget_session()
        self.hello = hello
        if self.program is None:
            self.endpoint.admits = self._is_its_hello
        await self.welcome()
        return hello

    def _is_its_hello(self, frame: bytes, encoding: Encoding) -> bool:
        """Whether a frame is a `hello` with the bot's name or one of its sessions."""
        try:
            first, *_ = decode_from_bot(frame, encoding)
        except (ProtocolError, ValueError):
            return False
        if not isinstance(first, Hello):
            return False
        return first.name == self.name or first.resume in self.sessions

    async def forget_session(self) -> Hello:
        """Refuse the bot's `resume`, and wait for a `hello` without one; raises as `greet` does."""
        await self.refuse("session", "there is no such session any more")
        hint = Hint.SESSION_REFUSED
        await self.connect("it connects once more", hint, self.back_ms)
        hello = await self.greet()
        if hello.resume is not None:
            raise self.failure("`hello` without `resume`", self.came, hint)
        self._session = Session()
        self._session.note(hello)
        return hello

    async def come_back(self, *, welcome: bool = True) -> Hello:
        """Wait until the bot resumes its session, and welcome it; raises `StepFailed` if not."""
        await self.connect("it connects again", Hint.NOT_BACK, self.back_ms)
        hello = await self.greet()
        # A bot that has sent nothing since the last `welcome` may not have read it.
        if hello.resume not in self.sessions[-1 if self.has_spoken else -2 :]:
            hint = Hint.OLD_SESSION if hello.resume in self.sessions else Hint.NO_RESUME
            expected = "`hello` with `resume`, the session of the last `welcome`"
            raise self.failure(expected, self.came, hint)
        if welcome:
            await self.welcome()
        return hello

    async def welcome(self) -> None:
        self.sessions.append(secrets.token_hex(16))
        self.has_spoken = False
        self.is_practice = self.practice
        session = self.sessions[-1]
        await self.say(Welcome(VERSION, self.name, session, self.limits, self.practice))

    async def refuse(self, code: str, text: str) -> None:
        """Refuse the bot's `hello`, and close the connection."""
        await self.say(Refused(code, text))
        sent = self.sent
        self.end(CLOSE_REFUSED, code)
        self.sent = sent  # a failed step shows the refusal, not the close code

    # --- messages ---

    @contextlib.contextmanager
    def perturbed(self, perturbation: Perturbation) -> Iterator[None]:
        """Send messages with a perturbation during a `with` block."""
        before, self._perturbation = self._perturbation, perturbation
        try:
            yield
        finally:
            self._perturbation = before

    async def say(self, *messages: ArenaMessage, joined: bool = False) -> None:
        """Send messages, each in its own frame or all in one."""
        encoding = self.encoding
        frames = []
        for message in messages:
            self._session.note(message)
            frames.append(self._perturbation.encoded(message, encoding))
            self._is_idle = isinstance(message, Over)
            self._is_mute |= self._is_idle
        for frame in [join(frames, encoding)] if joined else frames:
            text = readable(frame, encoding)
            self.sent = in_a_line(text)
            self._on_frame("arena", text.decode(errors="replace"))
            self._sent_bytes = len(frame)
            if self._wire is not None:
                await self._wire.deliver(frame, encoding, self._perturbation.delivery)

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
        """Return the next message with an effect, and its arrival on the loop's clock in seconds.

        Raises `StepFailed` if something else comes, or if nothing comes, the latter with `hint`.

        Args:
            within_ms: how long an arena would wait at most; a silent bot may be given up earlier.
            late: the hint for a message that comes later; without it nothing later is awaited. The
                further wait is as long again, at most `hard_ms`.
            even_repeated: whether to return a repeated message, which has no effect.
            look: called now and then if `late` is given; returns a text if the bot has used up its
                time, else None.
        """
        began, hard_ms = self._loop.time(), self.limits.hard_ms
        longest_ms = within_ms if late is None else within_ms + min(within_ms, hard_ms)
        until_ms = longest_ms
        if hint in (Hint.SILENT, Hint.NOT_READY):
            patience_ms = max(_PATIENCE_MS, hard_ms + 1_000)
            until_ms = min(longest_ms, _LESS_PATIENCE_MS if self._was_silent else patience_ms)
        first: tuple[float, float] | None = None  # time and busy time at the first check
        while True:
            look_at = min(began + until_ms / 1000, self._loop.time() + _LOOK_S)
            heard = await self._heard(expected, look_at, even_repeated=even_repeated)
            if heard is not None:
                took_ms = (heard[1] - began) * 1000
                if late is not None and took_ms > within_ms:
                    raise self.failure(expected, f"{self.came} after {took_ms:,.0f} ms", late)
                return heard
            if late is not None and (found := look()) is not None:
                raise self.failure(expected, found, late)
            # Time spent waiting for a core on a busy machine counts as computing.
            now, busy_ms = self._loop.time(), self.used_ms() + (self.waited_ms() or 0.0)
            since, before_ms = first = first or (now, busy_ms)
            if busy_ms - before_ms > (now - since) * 1000 / 2:  # the bot computes
                until_ms = longest_ms
            if now >= began + until_ms / 1000:
                self._was_silent = True
                came = f"nothing within {min(within_ms, until_ms):,.0f} ms"
                raise self.failure(expected, came, hint)

    async def quiet(self, within_s: float) -> None:
        """Wait; raises `StepFailed` if the bot leaves or sends something meanwhile."""
        expected = "nothing, until it is asked"
        heard = await self._heard(expected, self._loop.time() + within_s)
        if heard is not None:
            raise self.failure(expected, self.came, blame_of_turn(heard[0]))

    async def _heard(
        self, expected: str, until: float, *, even_repeated: bool = False
    ) -> tuple[BotMessage, float] | None:
        """Do as `hear`, but return None if nothing comes before `until`, on the loop's clock."""
        while True:
            while self._pending:
                message, arrived, part = self._pending.popleft()
                self.came = in_a_line(part)
                if self._counts(message, expected) or even_repeated:
                    return message, arrived
            if (event := await self.endpoint.next_event(until)) is None:
                return None
            await self._take(event, expected)

    def _counts(self, message: BotMessage, expected: str) -> bool:
        """Whether a message has an effect according to `Session.note`; raises at a fault."""
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
        """Handle an event of the current connection."""
        match event:
            case FrameReceived(wire, frame, encoding, arrived) if wire is self._wire:
                text = readable(frame, encoding)
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
                raise await self._departed(expected, Hint.LEFT)
            case ProcessEnded(finding):
                raise await self._departed(expected, Hint.LEFT, finding)
            case Opened(wire) if self.program is None:
                wire.cut()  # not from the bot
            case Opened():
                came = "another connection, while the first one is open"
                raise self.failure(expected, came, Hint.ONE_CONNECTION)

    # --- connections ---

    async def connect(self, expected: str, hint: Hint, within_ms: float) -> None:
        """Wait for a new connection, ignoring the old one; raises `StepFailed` if none comes."""
        self._wire = None
        self._session.disconnected()
        self._pending.clear()
        until = self._loop.time() + within_ms / 1000
        while self._wire is None:
            match await self.endpoint.next_event(until):
                case None:
                    came = "connections, and none of them said its `hello`"
                    came = came if self.endpoint.strangers else "no connection"
                    raise self.failure(expected, f"{came} within {within_ms:,.0f} ms", hint)
                case Opened(wire):
                    self._wire = wire
                case Broke(_, error):
                    raise self.failure(expected, str(error), hint)
                case ProcessEnded(finding):
                    usual = Hint.DIED if hint is Hint.NOT_CONNECTED else hint
                    raise self.failure(expected, *blame_of_process(finding, usual))
        self._on_frame("--", "the bot connects")
        for stranger in tuple(self.endpoint.strangers):
            stranger.cut()

    def cut(self) -> None:
        """Drop the bot's connection without a close frame."""
        self._on_frame("--", "the connection is cut")
        if self._wire is not None:
            self._wire.cut()

    def end(self, code: int, reason: str = "") -> None:
        """Close the bot's connection with a code, or its standard input."""
        self.sent = "its input ends" if self.is_stdio else f"closed with {code}"
        self._on_frame("--", self.sent)
        if self._wire is not None:
            self._wire.close(code, reason)

    async def exited(self, within_s: float) -> Finding | str | None:
        """Wait until the bot's process ends, and return how; None if it runs on.

        A text is returned if the bot reconnected, or has no process here and closed its connection.
        """
        until, closed = self._loop.time() + within_s, None
        while (event := await self.endpoint.next_event(until)) is not None:
            match event:
                case ProcessEnded(finding):
                    return finding
                case Opened():
                    return CONNECTED_AGAIN
                case Disconnected(wire) if self.program is None and wire is self._wire:
                    until, closed = self._loop.time() + within_s, "it closed the connection"
        return closed

    async def _departed(
        self, expected: str, hint: Hint, finding: Finding | None = None
    ) -> StepFailed:
        """Make the error for a lost connection, after a short wait for the process to end."""
        code = None if self._wire is None else self._wire.close_code
        reason = "" if self._wire is None else one_line(self._wire.close_reason.strip())
        parting = f"it closed the connection with {code}{f' ({reason})' if reason else ''}"
        if self.is_stdio:
            parting = "it closed its standard output"
        elif code is None:
            parting = "the connection was lost"
        told = [parting] if finding is None or code is not None else []
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
            hint, said = Hint.CRASHED, self._last_lines
        came = ", ".join(told)
        if hint not in (Hint.MEMORY, Hint.PROCESSES):
            if code == CLOSE_OVERSIZE or (code is None and self._sent_bytes >= _LARGE_BYTES):
                hint = Hint.MESSAGE_LIMIT
            # protocol/messages.md: a bot that has crashed closes with 1011 and a reason.
            elif code == CLOSE_CRASHED and reason and self._perturbation.blame not in _KNOWN:
                # The bot's own reason is better than the step's guess.
                self._failed.add((Hint.CRASHED, said))
                return StepFailed(self.sent, expected, came, Hint.CRASHED, said)
        if hint is Hint.LEFT and self._left_at_over(code, finding):
            hint = Hint.LEAVES_AT_OVER
        return self.failure(expected, came, hint, said)

    def _left_at_over(self, code: int | None, finding: Finding | None) -> bool:
        """Whether the bot left in order and silently after `over`, as if that ended the session."""
        blame = self._perturbation.blame
        is_orderly = code in (None, CLOSE_DONE, _CLOSE_GOING)
        if code is None and finding is None:
            # The exit status of a bot that connects by itself is unknown.
            is_orderly = self.program is None and blame is None
        return is_orderly and self._is_mute and (blame is None or self._is_idle)


def _is_utf8() -> bool:
    """Whether programs that follow the locale, such as Java, read the environment as UTF-8."""
    named = (os.environ.get(key) for key in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale = next(filter(None, named), "")
    return sys.platform == "linux" and "utf" in locale.lower()
