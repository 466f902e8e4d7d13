"""Which hint fits when the bot of `arena check` leaves, and which connections are its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from arena.authoring.conformance import Hint, StepFailed
from arena.authoring.conformance.bot import BotUnderTest
from arena.authoring.conformance.conversation import _text
from arena.authoring.conformance.fake_transport import Line, Opened
from arena.engine.verdict import Finding
from arena.sandbox.command import Program
from protocol.codec import Encoding
from protocol.errors import ArenaError
from protocol.messages import Ending, Limits, Mechanism, Over, Termination

OVER = Over("m", (), (0,), Termination(Ending.VOID, None, ""), None)


class ClosedConnection:
    """A connection that the bot has closed."""

    is_open = False
    encoding = Encoding.JSON
    close_reason = ""

    def __init__(self, code: int | None) -> None:
        self.close_code = code

    async def deliver(self, *args: object) -> None:
        """Nobody reads it."""


async def in_a_loop(do: Callable[[BotUnderTest], Awaitable[Any]], program: Program | None) -> Any:
    return await do(BotUnderTest(program, "ann", Limits(grace_ms=50)))


def ended(status: int, stderr: str = "") -> Finding:
    return Finding(
        kind=Ending.CRASH,
        text=f"exit status {status}",
        mechanism=Mechanism.WIRE,
        exit_status=status,
        stderr=stderr,
    )


STARTED = Program(("bot",))


async def hint_of(
    code: int | None, status: int | None, blame: Hint | None, *, is_mute: bool = True
) -> Hint:
    """Why a bot has left that was told `over` last."""

    async def do(bot: BotUnderTest) -> StepFailed:
        bot._wire = cast(Line, ClosedConnection(code))
        bot._is_mute = bot._is_idle = is_mute
        finding = None if status is None else ended(status)
        with bot.speaking(blame=blame):
            return await bot.departed("more", Hint.LEFT, finding)

    failed: StepFailed = await in_a_loop(do, None if status is None else STARTED)
    return failed.hint


@pytest.mark.parametrize(
    ("code", "status", "blame", "hint"),
    [
        (1000, None, None, Hint.LEAVES_AT_OVER),
        (1001, None, None, Hint.LEAVES_AT_OVER),
        (None, 0, None, Hint.LEAVES_AT_OVER),
        (1000, 0, Hint.FRAGMENTS, Hint.LEAVES_AT_OVER),
        (1007, None, None, Hint.LEFT),
        (1007, None, Hint.FRAGMENTS, Hint.FRAGMENTS),
        (1002, 0, Hint.PIECES, Hint.PIECES),
        (None, 1, None, Hint.CRASHED),
        (None, 1, Hint.FRAGMENTS, Hint.FRAGMENTS),
    ],
)
async def test_only_who_leaves_in_order_has_taken_over_for_the_end(
    code: int | None, status: int | None, blame: Hint | None, hint: Hint
) -> None:
    assert await hint_of(code, status, blame) is hint


async def test_who_has_spoken_since_over_has_not() -> None:
    assert await hint_of(1000, None, None, is_mute=False) is Hint.LEFT


async def test_a_crash_that_is_known_is_no_fault_of_the_step() -> None:
    async def do(bot: BotUnderTest) -> list[Hint]:
        def crash(blame: Hint | None, stderr: str) -> Hint:
            with bot.speaking(blame=blame):
                return bot.failure("it", "exit status 1", Hint.CRASHED, stderr).hint

        return [
            crash(Hint.STRICT, "KeyError: 'a'"),
            crash(Hint.FRAGMENTS, "KeyError: 'a'"),
            crash(Hint.FRAGMENTS, "KeyError: 'b'"),
        ]

    assert await in_a_loop(do, STARTED) == [Hint.STRICT, Hint.CRASHED, Hint.FRAGMENTS]


async def test_what_a_step_has_provoked_first_is_its_own() -> None:
    async def do(bot: BotUnderTest) -> list[Hint]:
        hints = []
        for blame in (Hint.REPEATED, Hint.FORGETS, None, Hint.REFUSAL):
            with bot.speaking(blame=blame):
                hints.append(bot.failure("it", "nothing", Hint.SILENT).hint)
        return hints

    assert await in_a_loop(do, STARTED) == [Hint.REPEATED, Hint.FORGETS, Hint.SILENT, Hint.SILENT]


async def test_a_bot_that_was_started_keeps_to_one_connection() -> None:
    async def do(bot: BotUnderTest) -> Hint:
        with pytest.raises(StepFailed) as raised:
            await bot._take(Opened(cast(Line, ClosedConnection(None))), "an answer")
        return raised.value.hint

    assert await in_a_loop(do, STARTED) is Hint.ONE_CONNECTION


async def test_a_command_that_cannot_be_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def start(*args: object, **named: object) -> None:
        raise ArenaError("no such interpreter")

    monkeypatch.setattr("arena.sandbox.launcher.Launcher.start", start)

    async def do(bot: BotUnderTest) -> StepFailed:
        with pytest.raises(StepFailed) as raised:
            await bot.launch()
        return raised.value

    failed: StepFailed = await in_a_loop(do, STARTED)
    assert (failed.hint, failed.came) == (Hint.NOT_STARTED, "no such interpreter")


@pytest.mark.parametrize("deep", [2_000, 100_000])
def test_a_frame_that_is_nested_too_deeply_is_shown_as_it_is(deep: int) -> None:
    frame = b"\x91" * deep + b"\xc0"

    assert _text(frame, Encoding.MSGPACK) == frame
