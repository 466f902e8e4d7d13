"""`arena check` on whole programs: each broken bot fails at the right step with the right hint.

The bots are those of `tests/support/rogues/broken.py`. All of them are checked at the same time, by
the first test that asks, and each only up to its first failure: by starting, hello and a little
play, or by all steps where `CARD_ARENA_LONG` is set. Bots that behave do all, as a command.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from asyncio import create_subprocess_exec as start
from asyncio.subprocess import PIPE
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import msgspec
import pytest

from arena.authoring.conformance import Hint, Step, StepOutcome, StepStatus
from arena.authoring.conformance.bot import BotUnderTest
from arena.authoring.conformance.matches import CheckSession
from arena.authoring.conformance.run import run
from arena.sandbox.launcher import read_program
from protocol.messages import Limits
from tests.support.long import LONG
from tests.support.rogues import broken
from tests.support.rogues.broken import LINES, WAYS

BROKEN = str(Path(broken.__file__).resolve())
TIMEOUT_S = 1_200.0  # of all checks, which take half a minute where nothing else runs
AT_ONCE = 12  # most of a check is waiting
ROUNDS = 40

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(TIMEOUT_S + 60),
    pytest.mark.skipif(sys.platform == "win32", reason="no bots in lines on Windows"),
]

LIMITS = Limits(
    decision_ms=300,
    bank_ms=500,
    hard_ms=1_000,
    # Of those that do nothing wrong, nobody comes near these, however slow the machine is.
    wall_ms=12_000,
    start_ms=20_000,
    hello_ms=20_000,
    grace_ms=8_000,
    memory_mib=128,
)

NEVER = {
    "never-connects": {"start_ms": 1_000, "hello_ms": 1_000},
    "says-no-hello": {"hello_ms": 1_000},
    "holds-back": {"hello_ms": 1_000},
    "says-no-ready": {"start_ms": 3_000},
    "ready-once": {"start_ms": 3_000},
    "reads-no-arrays": {"wall_ms": 4_000},
    "reads-one-of-a-batch": {"wall_ms": 4_000},
    "silent-on-repeat": {"wall_ms": 4_000},
}
"""Less for those that never do what is waited for."""

PATIENCE_S = {
    "bot._AFTERMATH_S": 8.0,
    "steps._END_S": 12.0,
    "steps._PONG_S": 4.0,
    "steps._LINGER_S": 1.5,
}
"""How long a check waits for what comes at once from a machine that does nothing else."""

Failures = dict[str, tuple[StepOutcome, ...] | BaseException]
Steps = Callable[[str], tuple[StepOutcome, ...]]


class CheckCase(NamedTuple):
    """The step at which a broken bot fails, the hint that it gets, and a game in which it does."""

    step: Step
    hint: Hint
    game: str = "ace_king_queen"


NUMBERS = "three_card_poker"  # where a range is asked for

CASES: dict[str, CheckCase] = {
    "dies-at-once": CheckCase(Step.STARTS, Hint.DIED),
    "never-connects": CheckCase(Step.STARTS, Hint.NOT_CONNECTED),
    "says-no-hello": CheckCase(Step.HELLO, Hint.NO_HELLO),
    "speaks-of-other-things": CheckCase(Step.HELLO, Hint.NOT_HELLO),
    "version-two": CheckCase(Step.HELLO, Hint.VERSION),
    "makes-up-fields": CheckCase(Step.HELLO, Hint.UNKNOWN_TO_US),
    "makes-up-games": CheckCase(Step.HELLO, Hint.GAMES),
    "forgets-its-token": CheckCase(Step.HELLO, Hint.TOKEN),
    "binary-frames": CheckCase(Step.HELLO, Hint.NO_MESSAGE),
    "holds-back": CheckCase(Step.HELLO, Hint.NOT_FLUSHED),
    "says-no-ready": CheckCase(Step.ENCODING, Hint.NOT_READY),
    "empty-nonce": CheckCase(Step.ENCODING, Hint.NO_MESSAGE),
    "floats": CheckCase(Step.ENCODING, Hint.NUMBERS, NUMBERS),
    "strings": CheckCase(Step.ENCODING, Hint.STRINGS, NUMBERS),
    "counts-asks": CheckCase(Step.ENCODING, Hint.WRONG_ASK),
    "explains": CheckCase(Step.ENCODING, Hint.UNKNOWN_TO_US),
    "verbose": CheckCase(Step.ENCODING, Hint.NO_MESSAGE),
    "slow": CheckCase(Step.ENCODING, Hint.SLOW),
    "first-of-a-list": CheckCase(Step.ENCODING, Hint.CRASHED, NUMBERS),
    "leaves-at-over": CheckCase(Step.ENCODING, Hint.LEAVES_AT_OVER),
    "chatters": CheckCase(Step.ENCODING, Hint.PRINTS),
    "name-twice": CheckCase(Step.ENCODING, Hint.NAME),
    "one-for-true": CheckCase(Step.ENCODING, Hint.STRINGS, "gin_rummy"),
    "says-why": CheckCase(Step.UNKNOWN_FIELDS, Hint.CRASHED),
    "trips-over-fields": CheckCase(Step.UNKNOWN_FIELDS, Hint.STRICT),
    "made-up-answer": CheckCase(Step.PLAY, Hint.ILLEGAL),
    "made-up-melds": CheckCase(Step.PLAY, Hint.FAULT, "gin_rummy"),
    "one-too-many": CheckCase(Step.PLAY, Hint.ILLEGAL, NUMBERS),
    "raises": CheckCase(Step.PLAY, Hint.CRASHED),
    "walks-out": CheckCase(Step.PLAY, Hint.LEFT),
    "hog": CheckCase(Step.PLAY, Hint.MEMORY),
    "reads-one-of-a-batch": CheckCase(Step.BATCH, Hint.BATCH),
    "reads-no-arrays": CheckCase(Step.BATCH, Hint.BATCH),
    "trips-over-arrays": CheckCase(Step.BATCH, Hint.BATCH),
    "short-messages": CheckCase(Step.BATCH, Hint.MESSAGE_LIMIT),
    "one-table": CheckCase(Step.TABLES, Hint.TABLES),
    "silent-on-repeat": CheckCase(Step.REPEATED_QUESTION, Hint.REPEATED),
    "ready-once": CheckCase(Step.REPEATED_QUESTION, Hint.REPEATED),
    "stays-away": CheckCase(Step.LOST_CONNECTION, Hint.NOT_BACK),
    "hangs-at-a-loss": CheckCase(Step.LOST_CONNECTION, Hint.NOT_BACK),
    "a-stranger": CheckCase(Step.LOST_CONNECTION, Hint.NO_RESUME),
    "another-name": CheckCase(Step.LOST_CONNECTION, Hint.SAME_NAME),
    "first-session": CheckCase(Step.LOST_CONNECTION, Hint.OLD_SESSION),
    "gives-up": CheckCase(Step.LOST_SESSION, Hint.SESSION_REFUSED),
    "insists": CheckCase(Step.LOST_SESSION, Hint.SESSION_REFUSED),
    "whole-frames": CheckCase(Step.FRAGMENTED_FRAME, Hint.FRAGMENTS),
    "whole-letters": CheckCase(Step.FRAGMENTED_FRAME, Hint.FRAGMENTS),
    "deaf": CheckCase(Step.FRAGMENTED_FRAME, Hint.PONG),
    "whole-reads": CheckCase(Step.SLOW_LINK, Hint.PIECES),
    "ignores-refusals": CheckCase(Step.REFUSAL, Hint.REFUSAL),
    "stubborn": CheckCase(Step.REFUSAL, Hint.REFUSAL),
    "stays-after-close": CheckCase(Step.CLOSE, Hint.STAYS),
    "fails-at-close": CheckCase(Step.CLOSE, Hint.EXIT_STATUS),
    "stays-at-end": CheckCase(Step.CLOSE, Hint.STAYS),
    "hammers": CheckCase(Step.REFUSED_HELLO, Hint.COMES_BACK),
    "shrugs-at-refusal": CheckCase(Step.REFUSED_HELLO, Hint.EXIT_STATUS),
    "never-waits": CheckCase(Step.LATE_ARENA, Hint.IMPATIENT),
}


def line_of(way: str, game: str = "ace_king_queen") -> str:
    """The command line of a broken bot, as `--bot` takes it."""
    link = "stdio: " if way in LINES else ""
    return f"{link}{sys.executable} {BROKEN} --way {way} --game {game}"


# ---- Those that are broken


class Enough(Exception):
    """A step has failed."""


async def first_failure(way: str) -> tuple[StepOutcome, ...]:
    """The steps up to the first one that failed; all of them if none did."""
    last = CASES[way].step if way in CASES else Step.PLAY
    # After their matches other house bots sit opposite in `play`: some of them knock.
    early = [Step.ENCODING, Step.UNKNOWN_FIELDS] if last is Step.PLAY else []
    chosen = [*Step] if LONG else [Step.STARTS, Step.HELLO, *early, Step.PLAY, last]
    rounds = ROUNDS if LONG or last is Step.PLAY else 2
    game = CASES[way].game if way in CASES else "ace_king_queen"
    limits = msgspec.structs.replace(LIMITS, **NEVER.get(way, {}))
    bot = BotUnderTest(read_program(line_of(way, game)), way, limits)
    done: list[StepOutcome] = []

    def note(outcome: StepOutcome) -> None:
        done.append(outcome)
        if outcome.status is StepStatus.FAILED:
            raise Enough

    with suppress(Enough):
        await run(bot, rounds=rounds, seed=1, chosen=chosen, on_step=note)
    return tuple(done)


async def all_failures() -> Failures:
    """The result of every check; those that take longest begin."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def check(way: str) -> tuple[StepOutcome, ...]:
        async with turns:
            return await first_failure(way)

    async with asyncio.timeout(TIMEOUT_S):
        ways = [*reversed(CASES), "dozes"]
        found = await asyncio.gather(*map(check, ways), return_exceptions=True)
    return dict(zip(ways, found, strict=True))


@pytest.fixture(scope="module")
def steps() -> Steps:
    """The steps of a broken bot, up to the first one that failed."""
    with ExitStack() as stack:
        for name, seconds in PATIENCE_S.items():
            stack.enter_context(patch(f"arena.authoring.conformance.{name}", seconds))
        # Its usual time is the default of an argument.
        stack.enter_context(patch.object(CheckSession.settle, "__defaults__", (0.6,)))
        failures = asyncio.run(all_failures())

    def steps_of(way: str) -> tuple[StepOutcome, ...]:
        found = failures[way]
        if isinstance(found, BaseException):
            raise found
        return found

    return steps_of


def test_there_is_a_case_for_every_broken_bot() -> None:
    assert {*CASES} == {*WAYS} - {"behaves", "behaves-in-lines", "dozes"}


@pytest.mark.parametrize("way", CASES)
def test_a_broken_bot_fails_at_the_right_step_with_the_right_hint(way: str, steps: Steps) -> None:
    *before, last = steps(way)
    expected = CASES[way]

    assert {outcome.status for outcome in before} <= {StepStatus.OK, StepStatus.SKIPPED}
    assert last.status is StepStatus.FAILED, "it passed"
    assert (last.step, last.hint) == (expected.step, expected.hint), last
    if expected.hint is Hint.FAULT:  # the question knows better
        assert (last.advice or "").startswith("Declare sets of 3 or 4 of one rank")
    else:
        assert last.advice == expected.hint.advice
    assert last.expected
    assert last.came


def test_the_end_of_what_a_bot_wrote_is_shown(steps: Steps) -> None:
    for way in ("dies-at-once", "raises", "trips-over-fields"):
        lines = (steps(way)[-1].stderr or "").splitlines()
        assert len(lines) == 5, way
        assert "Error: " in lines[-1]


def test_why_a_bot_has_closed_is_shown(steps: Steps) -> None:
    assert "with 1011 (unexpected keyword argument" in str(steps("says-why")[-1].came)


@pytest.mark.skipif(sys.platform != "linux", reason="CPU time is not measured there")
def test_a_bot_that_was_started_may_sleep_for_longer_than_it_may_compute(steps: Steps) -> None:
    dozes = steps("dozes")

    assert {outcome.status for outcome in dozes} == {StepStatus.OK}, dozes[-1]
    assert max(outcome.took_ms for outcome in dozes) > 1_500


# ---- The command


# A bot whose first line clears the terminal, and prints what a step that passed would.
SHOUT = r"print('\x1b[2J\x07 1 starts ok', flush=True); input()"


class EndedProgram(NamedTuple):
    """A program that has ended."""

    status: int
    out: str
    err: str


async def check(*words: str) -> asyncio.subprocess.Process:
    """Start `arena check`."""
    command = (sys.executable, "-m", "arena", "check", "--rounds", str(ROUNDS), *words)
    return await start(*command, stdout=PIPE, stderr=PIPE)


async def ended(process: asyncio.subprocess.Process, said: bytes = b"") -> EndedProgram:
    """Wait until a program has ended; `said` is what has been read of its stderr."""
    out, err = await process.communicate()
    assert process.returncode is not None, "it has ended"
    return EndedProgram(process.returncode, out.decode(), (said + err).decode())


async def check_a_stranger() -> tuple[EndedProgram, EndedProgram]:
    """Run `arena check --listen`, and a bot that connects by itself; how both ended."""
    listening = await check("--listen", "--port", "0")
    assert listening.stderr is not None
    said = b""
    while (found := re.search(rb"ws://[\w.:]+", said)) is None:
        line = await listening.stderr.readline()
        assert line, said
        said += line
    environment = {**os.environ, "ARENA_URL": found[0].decode()}
    words = (sys.executable, BROKEN, "--way", "behaves")
    bot = await start(*words, env=environment, stdout=PIPE, stderr=PIPE)
    try:
        return await ended(listening, said), await ended(bot)
    finally:
        if bot.returncode is None:
            bot.kill()


class Commands(NamedTuple):
    """How each of the commands ended."""

    behaves: EndedProgram
    in_lines: EndedProgram
    broken: EndedProgram
    shouts: EndedProgram
    stranger: tuple[EndedProgram, EndedProgram]


@pytest.fixture(scope="module")
def commands() -> Commands:
    """Run all of them at once: much of a check is waiting."""

    async def launched(*words: str) -> EndedProgram:
        return await ended(await check(*words))

    async def main() -> Commands:
        async with asyncio.timeout(TIMEOUT_S):
            return Commands(
                *await asyncio.gather(
                    launched("--json", "--", line_of("behaves", "blackjack")),
                    launched("--json", "--", line_of("behaves-in-lines", "blackjack")),
                    launched("--", *line_of("version-two").split()),
                    launched("--verbose", "--", "stdio:", sys.executable, "-c", SHOUT),
                    check_a_stranger(),
                )
            )

    return asyncio.run(main())


def test_a_bot_that_behaves_passes_every_step(commands: Commands) -> None:
    document = passed(commands.behaves)

    assert [step["step"] for step in document["steps"]] == [*Step]
    assert {step["status"] for step in document["steps"]} == {"ok"}
    assert document["report"]["decisions"] >= ROUNDS
    assert document["report"]["processes"] >= 1
    assert document["report"]["memory_mib"] > 0


def test_what_has_no_meaning_for_lines_is_skipped(commands: Commands) -> None:
    document = passed(commands.in_lines)

    assert [step["step"] for step in document["steps"]] == [*Step]
    assert {step["step"] for step in document["steps"] if step["status"] == "skipped"} == {
        Step.LOST_CONNECTION,
        Step.LOST_SESSION,
        Step.FRAGMENTED_FRAME,
        Step.LATE_ARENA,
    }


def passed(check: EndedProgram) -> Any:
    """The document of a check that passed."""
    assert check.status == 0, check.out + check.err
    document = json.loads(check.out)
    assert document["passed"] is True
    return document


def test_people_are_told_what_was_sent_expected_and_came_and_a_hint(commands: Commands) -> None:
    status, out, err = commands.broken

    assert status == 1
    assert re.search(r"^ *1 starts +ok", out, re.MULTILINE)
    assert re.search(r"^ *2 hello +FAILED", out, re.MULTILINE)
    for word in ("sent:", "expected:", "came:", "hint:"):
        assert re.search(rf"^ +{word} .+", out, re.MULTILINE), word
    assert Hint.VERSION.advice in out
    assert len(err.splitlines()) == 1


def test_a_bot_that_connects_by_itself_passes(commands: Commands) -> None:
    listening, bot = commands.stranger

    assert listening.status == 0, listening.out + listening.err
    assert "FAILED" not in listening.out
    assert bot.status == 0


def test_what_a_bot_says_does_nothing_to_the_terminal(commands: Commands) -> None:
    status, _, err = commands.shouts
    said = [line for line in err.splitlines() if line.startswith("bot>")]

    assert status == 1
    assert len(said) == 1
    assert "\N{REPLACEMENT CHARACTER}[2J" in said[0]
    assert "\x1b" not in err
