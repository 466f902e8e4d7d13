"""The bot of `arena check`: started or awaited, greeted, let in or refused, and ended.

What is said to it and what is heard of it once it is connected is in `arena/authoring/conformance/conversation.py`, of which it is one end. A bot that connects by
itself is no process of ours: it is awaited, and told to come back where another one would be started anew.
"""

from __future__ import annotations

import math
import os
import secrets
import sys
from collections.abc import Callable
from typing import Final

from arena.authoring.conformance import Hint
from arena.authoring.conformance.conversation import BotConversation
from arena.authoring.conformance.diagnose import blame_of_hello, blame_of_process, is_garbled
from arena.authoring.conformance.fake_transport import (
    Broke,
    Disconnected,
    FrameReceived,
    ProcessEnded,
)
from arena.sandbox.launcher import LaunchedBot, Launcher, Program
from arena.sandbox.process_usage import Peak
from protocol.codec import Encoding, decode_from_bot
from protocol.errors import ArenaError, ProtocolError, UsageError
from protocol.messages import (
    CLOSE_DONE,
    CLOSE_REFUSED,
    CLOSE_RESTART,
    VERSION,
    Hello,
    Limits,
    Refused,
    Welcome,
)
from protocol.session import Session

__all__ = ["BotUnderTest"]

_AWAITED_MS = 600_000  # for a bot that somebody starts by hand
_RETURN_MS = 30_000  # the same, when it has been here before
_CPU_TICK_S = 0.01  # Linux counts CPU time in hundredths


class BotUnderTest(BotConversation):
    """The program that is checked.

    Args:
        program: how it is started; None for a bot that connects by itself.
        name: what it is called if it is started here.
        limits: what it is held to.
        on_frame: told of every frame: who sent it, `arena`, `bot` or `--`, and the text.
        on_wait: told what somebody must do for the check to go on.

    Attributes:
        hello: what it said when it came; None before.
        practice: what the next `welcome` says.
        is_practice: what the last one said.
        secret: the `session` of the last `welcome`.
        former: that of the one before it, which is good as long as the bot may not have read the last one.
        secrets: those of all.
        launched: its process.
        peak: the most that any of its processes so far was seen to have.
        cpu_ms: the CPU time of those that were stopped.
    """

    def __init__(
        self,
        program: Program | None,
        name: str,
        limits: Limits,
        on_frame: Callable[[str, str], None] = lambda who, text: None,
        on_wait: Callable[[str], None] = lambda text: None,
    ) -> None:
        is_stdio = program is not None and program.stdio
        is_ours = program is not None
        super().__init__(limits, on_frame, is_ours=is_ours, is_stdio=is_stdio)
        self.program: Final = program
        self.hello: Hello | None = None
        self.practice = self.is_practice = False
        self.secret = self.former = ""
        self.secrets: set[str] = set()
        self.launched: LaunchedBot | None = None
        self.peak = Peak()
        self.cpu_ms = 0.0
        self._name = self._usual_name = name
        self._cpu_read_at = -math.inf
        self._cpu_read_ms = 0.0
        self._on_wait = on_wait
        self._launcher = Launcher(limits, (), self.endpoint.ended)
        self._token: str | None = None
        self._was_here = False

    @property
    def name(self) -> str:
        """What it is called here."""
        is_ours = self.program is not None or self.hello is None
        return self._name if is_ours or self.hello is None else self.hello.name

    @property
    def is_metered(self) -> bool:
        """Whether it is held to its CPU time, as in an arena that has started it, and not to the clock on the wall."""
        return self.launched is not None and self.launched.is_metered

    def used_ms(self) -> float:
        """The CPU time of its process so far, read no oftener than the kernel counts; 0 where it is not measured."""
        now = self._loop.time()
        if self.launched is None or not self.launched.is_metered:
            return 0.0
        if now - self._cpu_read_at >= _CPU_TICK_S:
            self._cpu_read_at, self._cpu_read_ms = now, self.launched.cpu_ms()
        return self._cpu_read_ms

    def written(self) -> str:
        """The end of what its process has written to standard error, as long as it runs."""
        return self._launcher.tail(self._name)

    # ---- Coming and going

    async def launch(self, name: str | None = None) -> None:
        """Start its process, if it is ours to start.

        Args:
            name: what it is called this time, if not as usual.

        Raises:
            Failed: it cannot be executed.
            UsageError: the command can never work here.
        """
        self.begin()
        self.hello, self.secret, self.former = None, "", ""
        self._name, self._cpu_read_at = name or self._usual_name, -math.inf
        if self.program is None:
            return
        while not self.endpoint.events.empty():  # of the process before
            self.endpoint.events.get_nowait()
        self._token = None if self.is_stdio else secrets.token_urlsafe(16)
        self.note("--", "the program is started")
        try:
            self.launched = await self._launcher.start(
                self._name, self.program, url=self.endpoint.url, token=self._token or ""
            )
        except UsageError:
            raise
        except ArenaError as error:
            raise self.failure("it starts", str(error), Hint.NOT_STARTED) from None
        stdin, stdout = self.launched.stdin_fd, self.launched.stdout_fd
        if stdin is not None and stdout is not None:
            self._wire = await self.endpoint.attach(self._name, stdin, stdout)

    async def arrive(self) -> None:
        """Wait until it connects, or writes its first line; a program that writes none in time fails at its `hello`.

        Raises:
            Failed: it does not come.
        """
        if self.is_stdio:
            await self._first_line()
            return
        within_ms: float = self.limits.start_ms + self.limits.hello_ms
        if self.program is None:
            self._on_wait(f"waiting for the bot at {self.endpoint.url}")
            within_ms = _RETURN_MS if self._was_here else _AWAITED_MS
        hint = Hint.NOT_BACK if self._was_here else Hint.NOT_CONNECTED
        await self.connect("it connects", hint, within_ms)
        self._was_here = self.program is None

    async def _first_line(self) -> None:
        expected = "a first line"
        until = self._loop.time() + self.limits.hello_ms / 2000  # `greet` waits on
        while (event := await self.event(until)) is not None:
            match event:
                case ProcessEnded(_, finding):
                    raise self.failure(expected, *blame_of_process(finding, Hint.DIED))
                case Disconnected():
                    raise await self.departed(expected, Hint.DIED)
                case FrameReceived() | Broke():
                    self.endpoint.events.put_nowait(event)  # for `greet`, which judges it
                    return

    async def stop(self) -> None:
        """End it; one that connects by itself is told to come again."""
        if self._wire is not None and self._wire.is_open:
            self._wire.close(CLOSE_RESTART if self.program is None else CLOSE_DONE)
        self._measure()
        await self._launcher.stop(self._name)
        self.launched = self._wire = None

    def _measure(self) -> None:
        """Take down what its process took, which is about to be ended or has ended."""
        if self.launched is not None:
            self.peak = Peak(*map(max, self.peak, self.launched.peak()))
            self.cpu_ms += self.launched.cpu_ms()

    async def close(self) -> None:
        """End it and all that was opened for it."""
        if self._wire is not None and self._wire.is_open:
            self._wire.close(CLOSE_DONE)
        self._measure()
        await self._launcher.close()
        self.endpoint.close()

    # ---- Greeting

    @property
    def _is_anybodys(self) -> bool:
        return self.program is None and self.hello is not None

    def is_its_hello(self, frame: bytes, encoding: Encoding) -> bool:
        """Whether a frame is a `hello` by the bot's name, or with a session of its own."""
        try:
            first, *_ = decode_from_bot(frame, encoding)
        except (ProtocolError, ValueError):
            return False
        return isinstance(first, Hello) and (
            first.name == self.name or first.resume in self.secrets
        )

    async def greet(self) -> Hello:
        """Its `hello`, which must be one that an arena would accept but for `resume`.

        Raises:
            Failed: it is none, or does not come in time.
        """
        hint = Hint.NOT_FLUSHED if self.is_stdio else Hint.NO_HELLO
        message, _ = await self.hear("`hello`", hint, self.limits.hello_ms)
        if not isinstance(message, Hello):  # an instructor's word
            raise self.failure("`hello`", self.came, Hint.NOT_HELLO)
        wrong = blame_of_hello(message, token=self._token, before=self.hello)
        if wrong is not None:
            expected, why = wrong
            raise self.failure(expected, self.came, why)
        is_ours = self.program is not None
        if is_ours and is_garbled(message.name, self._name, is_utf8=_is_utf8()):
            expected = f'"name":"{self._name}", as in ARENA_NAME'
            raise self.failure(expected, self.came, Hint.NAME)
        if self._wire is not None:
            self._wire.hello_received()
        return message

    async def meet(self) -> Hello:
        """Its first `hello` here, answered with `welcome`; a session of another arena's is refused first.

        Raises:
            Failed: as `greet`.
        """
        hello = await self.greet()
        if hello.resume is not None and not self.is_stdio:
            hello = await self.forget_session()
        self.hello = hello
        await self.welcome()
        return hello

    async def forget_session(self) -> Hello:
        """Refuse its `resume`, and wait for a `hello` without."""
        await self.refuse("session", "there is no such session any more")
        hint = Hint.SESSION_REFUSED
        await self.connect("it connects once more", hint, self.limits.grace_ms)
        hello = await self.greet()
        if hello.resume is not None:
            raise self.failure("`hello` without `resume`", self.came, hint)
        self._session = Session()
        self._session.note(hello)
        return hello

    async def welcome(self) -> None:
        """Let it in."""
        self.former, self.secret = self.secret, secrets.token_hex(16)
        self.has_spoken = False
        self.secrets.add(self.secret)
        self.is_practice = self.practice
        await self.say(Welcome(VERSION, self.name, self.secret, self.limits, self.practice))

    async def refuse(self, code: str, text: str) -> None:
        """Refuse its `hello`, and close."""
        await self.say(Refused(code, text))
        sent = self.sent
        self.end(CLOSE_REFUSED, code)
        self.sent = sent


def _is_utf8() -> bool:
    """Whether what we start knows that its environment is in UTF-8; Java and others go by the locale."""
    named = (os.environ.get(key) for key in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale = next(filter(None, named), "")
    return sys.platform == "linux" and "utf" in locale.lower()
