"""The bot of `arena check`: started or awaited, greeted, welcomed or refused, and ended.

A bot that connects by itself, with `--listen`, is awaited. Where another one would be started
again, this one is told to come back.
"""

from __future__ import annotations

import math
import os
import secrets
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

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
from protocol.errors import ArenaError, UsageError
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
    """The bot that is checked.

    Args:
        program: how to start it; None for a bot that connects by itself.
        name: its name if it is started here.
        on_frame: called with every frame: its sender, `arena`, `bot` or `--`, and its text.
        on_wait: called with what somebody must do for the check to go on.
        hidden: files and folders that it must not see.

    Attributes:
        practice, is_practice: the `practice` of the next `welcome`, and of the last one.
        secret: the `session` of the last `welcome`.
        former: the one before it, which is good while the bot may not have read the last one.
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
        super().__init__(limits, program, on_frame)
        self.practice = self.is_practice = False
        self.secret = self.former = ""
        self.launched: LaunchedBot | None = None
        self.peak = Peak()
        self.cpu_ms = 0.0
        self._name = self._usual_name = name
        self._cpu_read_at = -math.inf
        self._cpu_read_ms = 0.0
        self._on_wait = on_wait
        self._launcher = Launcher(limits, hidden, self.endpoint.ended)
        self._token: str | None = None
        self._was_here = False

    @property
    def name(self) -> str:
        return self._name if self.program is not None or self.hello is None else self.hello.name

    @property
    def is_metered(self) -> bool:
        """Whether its limits are CPU time, as in an arena that has started it, not wall time."""
        return self.launched is not None and self.launched.is_metered

    def used_ms(self) -> float:
        """The CPU time of its process so far; 0 where it is not measured."""
        now = self._loop.time()
        if self.launched is None or not self.launched.is_metered:
            return 0.0
        if now - self._cpu_read_at >= _CPU_TICK_S:
            self._cpu_read_at, self._cpu_read_ms = now, self.launched.cpu_ms()
        return self._cpu_read_ms

    def waited_ms(self) -> float | None:
        """For how long its process had no core so far; None where that is not measured."""
        return None if self.launched is None else self.launched.waited_ms()

    def written(self) -> str:
        return self._launcher.tail(self._name)

    async def launch(self, name: str | None = None) -> None:
        """Start its process, unless it connects by itself; under another name if one is given.

        Raises `StepFailed` if it cannot be executed, and `UsageError` if it can never work here.
        """
        self.begin()
        self.hello, self.secret, self.former = None, "", ""
        self._name, self._cpu_read_at = name or self._usual_name, -math.inf
        if self.program is None:
            return
        while not self.endpoint.events.empty():  # of the previous process
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
        stdin, stdout = self.launched.stdin_fd, self.launched.stdout_fd
        if stdin is not None and stdout is not None:
            self._wire = await self.endpoint.attach(self._name, stdin, stdout)

    async def arrive(self) -> None:
        """Wait until it connects or writes its first line; raises `StepFailed` if it ends first.

        A bot that does not connect in time fails here, one that writes no line in time in `greet`.
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
                    self.endpoint.events.put_nowait(event)  # `greet` judges it
                    return

    async def stop(self) -> None:
        """End it. A bot that connects by itself is told to come back."""
        if self._wire is not None and self._wire.is_open:
            self._wire.close(CLOSE_RESTART if self.program is None else CLOSE_DONE)
        self._measure()
        await self._launcher.stop(self._name)
        self.launched = self._wire = None

    def _measure(self) -> None:
        """Add up what its process used, which has ended or is about to."""
        if self.launched is not None:
            self.peak = Peak(*map(max, self.peak, self.launched.peak()))
            self.cpu_ms += self.launched.cpu_ms()

    async def close(self) -> None:
        if self._wire is not None and self._wire.is_open:
            self._wire.close(CLOSE_DONE)
        self._measure()
        await self._launcher.close()
        self.endpoint.close()

    async def greet(self) -> Hello:
        """Wait for its `hello`; raises `StepFailed` if late, or wrong in anything but `resume`."""
        hint = Hint.NOT_FLUSHED if self.is_stdio else Hint.NO_HELLO
        message, _ = await self.hear("`hello`", hint, self.limits.hello_ms)
        if not isinstance(message, Hello):  # a message of an instructor
            raise self.failure("`hello`", self.came, Hint.NOT_HELLO)
        wrong = blame_of_hello(message, token=self._token, before=self.hello)
        if wrong is not None:
            expected, why = wrong
            raise self.failure(expected, self.came, why)
        if self.program is not None and is_garbled(message.name, self._name, is_utf8=_is_utf8()):
            expected = f'"name":"{self._name}", as in ARENA_NAME'
            raise self.failure(expected, self.came, Hint.NAME)
        if self._wire is not None:
            self._wire.hello_received()
        return message

    async def meet(self) -> Hello:
        """Greet it, refuse another arena's session if it has one, and welcome it."""
        hello = await self.greet()
        if hello.resume is not None and not self.is_stdio:
            hello = await self.forget_session()
        self.hello = hello
        await self.welcome()
        return hello

    async def forget_session(self) -> Hello:
        """Refuse its `resume`, and await a `hello` without one; raises `StepFailed` as `greet`."""
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
        self.former, self.secret = self.secret, secrets.token_hex(16)
        self.has_spoken = False
        self.secrets.add(self.secret)
        self.is_practice = self.practice
        await self.say(Welcome(VERSION, self.name, self.secret, self.limits, self.practice))

    async def refuse(self, code: str, text: str) -> None:
        """Refuse its `hello`, and close the connection."""
        await self.say(Refused(code, text))
        sent = self.sent
        self.end(CLOSE_REFUSED, code)
        self.sent = sent  # a failure shows the refusal, not the close code


def _is_utf8() -> bool:
    """Whether programs that go by the locale, as Java does, read their environment as UTF-8."""
    named = (os.environ.get(key) for key in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale = next(filter(None, named), "")
    return sys.platform == "linux" and "utf" in locale.lower()
