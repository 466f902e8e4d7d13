"""A bot for the tests of `arena check`, without a process or a socket."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Mapping
from typing import Any, cast

from arena.authoring.conformance import CheckReport, Step, StepOutcome
from arena.authoring.conformance.bot import BotUnderTest
from arena.authoring.conformance.run import run
from arena.authoring.conformance.wire import CheckEndpoint, CheckSocket, Delivery, Line
from arena.referee.budget import Budget
from protocol.codec import Encoding
from protocol.messages import Limits

__all__ = ["LIMITS", "InMemoryBot", "InMemoryConnection", "check", "opened_socket"]

LIMITS = Limits(hard_ms=100, start_ms=100, grace_ms=200, hello_ms=100)

Message = dict[str, Any]


class InMemoryConnection:
    """The arena's end of a connection; what is sent goes straight to the bot."""

    close_code = None
    close_reason = ""

    def __init__(self, bot: InMemoryBot) -> None:
        self.bot = bot
        self.is_open = True
        self.encoding = Encoding.JSON
        self.budget = Budget(bot.endpoint._limits.unanswered)

    async def deliver(self, frame: bytes, encoding: Encoding, how: Delivery) -> None:
        if self.is_open:
            if how is Delivery.FRAGMENTS:
                self.bot.endpoint.ponged(cast(Line, self), b"", 0.0)
            self.bot.frame(json.loads(frame))
        if how is Delivery.AND_CUT:
            self.cut()

    def hello_received(self) -> None:
        self.bot.is_known = True

    def cut(self) -> None:
        self.close(None)

    def close(self, code: int | None, reason: str = "") -> None:
        if self.is_open:
            self.is_open = False
            self.bot.endpoint.lost(cast(Line, self))
            self.bot.closed(code)


class InMemoryBot:
    """A correct bot; tests break it by overriding a method or two.

    Attributes:
        said: fields of its `hello` beside the usual ones.
        session: of its last `welcome`.
        refusal: the code of the last `refused`.
    """

    def __init__(self, **said: Any) -> None:
        self.said = said
        self.endpoint: CheckEndpoint
        self.wire: InMemoryConnection | None = None
        self.session: str | None = None
        self.refusal = ""
        self.is_known = False
        self.random = random.Random(1)

    # --- the connection ---

    def connect(self) -> None:
        """Open a connection, and say hello."""
        self.wire = InMemoryConnection(self)
        self.endpoint.opened(cast(Line, self.wire))
        self.say(self.hello())

    def closed(self, code: int | None) -> None:
        """Come back after a loss, a restart, or without a session that was forgotten."""
        is_forgotten = code == 4001 and self.refusal == "session"
        if is_forgotten:
            self.session = None
        if code in (None, 1012) or is_forgotten:
            asyncio.get_running_loop().call_soon(self.connect)

    def say(self, *messages: Message | None) -> None:
        """Send messages, each in a frame."""
        wire, now = cast(Line, self.wire), asyncio.get_running_loop().time()
        for message in filter(None, messages):
            frame = json.dumps(message).encode()
            self.endpoint.received(wire, frame, Encoding.JSON, now)

    # --- what it says ---

    def hello(self) -> Message:
        resume = {"resume": self.session} if self.session else {}
        plain = {"type": "hello", "protocol": 1, "name": "memory"}
        return {**plain, "games": ["ace_king_queen"], **self.said, **resume}

    def frame(self, frame: Message | list[Message]) -> None:
        for message in frame if isinstance(frame, list) else [frame]:
            self.say(self.take(message))

    def take(self, message: Message) -> Message | None:
        """The answer to a message, if there is one."""
        match message["type"]:
            case "welcome":
                self.session = message["session"]
            case "match":
                return self.ready(message)
            case "ask":
                return self.answer(message, self.choose(message["legal"]))
            case "refused":
                self.refusal = message["code"]
                return self.refused(message)
        return None

    def ready(self, match: Message) -> Message | None:
        return {"type": "ready", "match": match["match"], "nonce": "n"}

    def answer(self, ask: Message, value: Any) -> Message | None:
        return {"type": "answer", "match": ask["match"], "ask": ask["ask"], "value": value}

    def refused(self, refused: Message) -> Message | None:
        """Decide once more, if the refusal is of an answer."""
        if refused["ask"] is None:
            return None
        return self.answer(refused, self.choose(refused["legal"]))

    def choose(self, legal: Any) -> Any:
        if isinstance(legal, list):
            return self.random.choice(legal)
        return self.random.randint(legal["min"], legal["max"])


async def check(
    memory: InMemoryBot,
    *,
    rounds: int = 20,
    games: tuple[str, ...] = (),
    limits: Limits = LIMITS,
    after: Mapping[Step, Callable[[], None]] | None = None,
    on_progress: Callable[[str], None] = lambda line: None,
) -> tuple[CheckReport, list[StepOutcome]]:
    """Check a bot that connects by itself; returns the report and the outcomes of the steps.

    `after` has what is called after a step.
    """
    told: list[StepOutcome] = []

    def note(outcome: StepOutcome) -> None:
        told.append(outcome)
        (after or {}).get(outcome.step, lambda: None)()

    async def nothing(host: str, port: int) -> None:
        """No socket is opened."""

    def come(text: str) -> None:
        if memory.wire is None:
            memory.connect()

    bot = BotUnderTest(None, "bot", limits, on_wait=come)
    bot.endpoint.open = nothing  # type: ignore[method-assign]
    memory.endpoint = bot.endpoint
    checked = await run(
        bot, games=games, rounds=rounds, seed=1, on_step=note, on_progress=on_progress
    )
    return checked, told


class RecordingTransport(asyncio.Transport):
    """Takes down what is written; `has_two` is set at the second piece."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.has_two = asyncio.Event()

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))
        if len(self.written) == 2:
            self.has_two.set()

    def get_write_buffer_size(self) -> int:
        return 0


def opened_socket() -> tuple[CheckSocket, RecordingTransport]:
    """A WebSocket of an arena that checks a bot, and what it writes to."""
    socket, transport = CheckSocket(CheckEndpoint(Limits()).context), RecordingTransport()
    socket._transport, socket.is_open = transport, True
    return socket, transport
