"""Runs the steps of `arena check` one after another, whatever comes of them, and adds up what the bot took."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from arena.authoring.conformance import (
    HINTS,
    CheckReport,
    Hint,
    ResourceUse,
    Step,
    StepFailed,
    StepIncomplete,
    StepOutcome,
    StepSkipped,
    StepStatus,
    connection_steps,
    steps,
)
from arena.authoring.conformance.bot import BotUnderTest
from arena.authoring.conformance.session import CheckSession

__all__ = ["quantile", "report_of", "run"]

_STEP_S = 180.0  # far above what any step of a fast bot takes: nothing may hang
_TOTAL_S = 900.0  # after that no step begins but those at the end
_TICK_S = 1.0
_MIB = 1 << 20

Doing = Callable[[CheckSession], Awaitable[str]]

_FIRST: dict[Step, Doing] = {
    Step.STARTS: steps.starts,
    Step.HELLO: steps.hello,
    Step.ENCODING: steps.encoding,
    Step.UNKNOWN_FIELDS: steps.unknown_fields,
}
_PER_GAME = {Step.PLAY: steps.play, Step.LEGAL: steps.legal}
_THEN: dict[Step, Doing] = {
    Step.BATCH: steps.batch,
    Step.TABLES: steps.tables,
    Step.REPEATED_QUESTION: steps.repeated_question,
    Step.LOST_CONNECTION: connection_steps.lost_connection,
    Step.LOST_SESSION: connection_steps.lost_session,
    Step.FRAGMENTED_FRAME: connection_steps.fragmented_frame,
    Step.SLOW_LINK: connection_steps.slow_link,
    Step.REFUSAL: steps.refusal,
    Step.OVER: steps.over,
    Step.CLOSE: connection_steps.close,
    Step.REFUSED_HELLO: connection_steps.refused_hello,
    Step.LATE_ARENA: connection_steps.late_arena,
}
_FROM_THE_START = (Step.STARTS, Step.HELLO)
_OF_ITSELF = (*_FROM_THE_START, Step.REFUSED_HELLO, Step.LATE_ARENA)
"""Steps that start the bot themselves, or do not need it."""
_AT_THE_END = (*_OF_ITSELF, Step.CLOSE)
_NEEDS_NO_PLAY = (*_FIRST, *_AT_THE_END, Step.PLAY, Step.LEGAL)
_NOT_PASSED = (StepStatus.FAILED, StepStatus.INCOMPLETE)


class _Planned(NamedTuple):
    step: Step
    game: str | None
    do: Doing


def _plan(sitting: CheckSession) -> Iterator[_Planned]:
    """The steps, in order; which games there are is known after `hello`."""
    for step, do in _FIRST.items():
        yield _Planned(step, None, do)
    for step, play in _PER_GAME.items():
        for game in sitting.games:
            yield _Planned(step, game, partial(play, game=game))
    for step, do in _THEN.items():
        yield _Planned(step, None, do)


async def run(
    bot: BotUnderTest,
    *,
    games: Sequence[str] = (),
    rounds: int,
    rng: random.Random,
    address: tuple[str, int] = ("127.0.0.1", 0),
    on_step: Callable[[StepOutcome], None] = lambda outcome: None,
    on_progress: Callable[[str], None] | None = None,
) -> CheckReport:
    """Check a bot; it is stopped in the end, which comes within a known time once the bot has been heard of.

    Args:
        bot: what is checked.
        games: those of its games that are; empty for all.
        rounds: how many are played of each.
        rng: where all chance comes from.
        address: where it can connect to.
        on_step: told of every step as it is done.
        on_progress: told once a second what is being done, if that is wanted.

    Raises:
        UsageError: the bot's command can never work here.
        Unreachable: the address cannot be listened on.
    """
    sitting = CheckSession(bot, games, rounds, rng)
    done: list[StepOutcome] = []
    name = None
    try:
        if not bot.is_stdio:
            await bot.endpoint.open(*address)
        for planned in _plan(sitting):
            async with _progress(sitting, planned, len(done) + 1, on_progress):
                outcome = await _step(sitting, planned, done)
            if planned.step is Step.STARTS:  # somebody may have had to start it
                sitting.until = sitting.now + _TOTAL_S
            done.append(outcome)
            on_step(outcome)
            name = bot.hello.name if bot.hello else name
    finally:
        await bot.close()
    is_short = any(outcome.status in _NOT_PASSED for outcome in done)
    return CheckReport(
        passed=not is_short and bool(sitting.played),
        name=name,
        games=sitting.games,
        steps=tuple(done),
        report=report_of(sitting, bot),
        limits=bot.limits,
    )


@contextlib.asynccontextmanager
async def _progress(
    sitting: CheckSession, planned: _Planned, number: int, told: Callable[[str], None] | None
) -> AsyncIterator[None]:
    """While in here, tell once a second what is being done, and for how long."""
    sitting.progress = ""
    if told is None:
        yield
        return
    name = planned.step if planned.game is None else f"{planned.step} {planned.game}"

    async def tick() -> None:
        seconds = 0
        while True:
            parts = [f"{number:>2} {name:<22}", f"{seconds:,} s"]
            told(", ".join(filter(None, (" ".join(parts), sitting.progress))))
            await asyncio.sleep(_TICK_S)
            seconds += 1

    ticking = asyncio.create_task(tick())
    try:
        yield
    finally:
        ticking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await ticking


async def _step(
    sitting: CheckSession, planned: _Planned, done: Sequence[StepOutcome]
) -> StepOutcome:
    """One step, or why it is none."""
    began = time.monotonic()
    outcome = StepOutcome(
        number=len(done) + 1, step=planned.step, game=planned.game, status=StepStatus.SKIPPED
    )
    try:
        _check_sense(planned.step, sitting, done)
        is_awaited = planned.step is Step.STARTS and sitting.bot.program is None
        async with asyncio.timeout(None if is_awaited else _STEP_S):
            await _make_ready(sitting, planned.step)
            about = await planned.do(sitting)
        outcome = _with(outcome, status=StepStatus.OK, about=about)
    except StepSkipped as skipped:
        outcome = _with(outcome, about=str(skipped))
    except StepIncomplete as so_far:
        outcome = _with(
            outcome,
            status=StepStatus.INCOMPLETE,
            about=str(so_far),
            rounds=so_far.rounds,
            missing=so_far.missing,
        )
    except StepFailed as failed:
        outcome = _failed(outcome, failed)
        await sitting.bot.stop()
    except TimeoutError:  # each decision had its own limit, and kept it
        about = f"not done within {_STEP_S:,.0f} s"
        outcome = _with(outcome, status=StepStatus.INCOMPLETE, about=about)
        await sitting.bot.stop()
    return _with(outcome, took_ms=round((time.monotonic() - began) * 1000, 1))


def _check_sense(step: Step, sitting: CheckSession, done: Sequence[StepOutcome]) -> None:
    """Whether a step can say anything after what came of those before.

    Raises:
        Skipped: it cannot.
        Incomplete: there is no time for it.
    """
    failed = [outcome for outcome in done if outcome.status is StepStatus.FAILED]
    for first in failed:
        if first.step in _FROM_THE_START:
            raise StepSkipped(f"mend step {first.number} first")
        if sitting.bot.program is None and first.hint is Hint.NOT_BACK:
            raise StepSkipped("the bot has not come back; start it, and the check, again")
    if step not in _AT_THE_END and sitting.now > sitting.until:
        raise StepIncomplete(f"the check has taken {_TOTAL_S / 60:,.0f} minutes")
    if step in _NEEDS_NO_PLAY or sitting.played:
        return
    number = next(outcome.number for outcome in done if outcome.step is Step.PLAY)
    raise StepSkipped(f"it must play first: mend step {number}")


async def _make_ready(sitting: CheckSession, step: Step) -> None:
    """See that the bot is here and quiet.

    Raises:
        Failed: it has gone since the last step, or does not come.
    """
    if step in _OF_ITSELF:
        return
    if sitting.bot.is_here:
        await sitting.settle(0)
    else:
        await sitting.fresh()


def _with(outcome: StepOutcome, **changes: object) -> StepOutcome:
    return msgspec.structs.replace(outcome, **changes)


def _failed(outcome: StepOutcome, failed: StepFailed) -> StepOutcome:
    return _with(
        outcome,
        status=StepStatus.FAILED,
        sent=failed.sent,
        expected=failed.expected,
        came=failed.came,
        hint=failed.hint,
        advice=HINTS[failed.hint],
        stderr=failed.stderr or None,
    )


def report_of(sitting: CheckSession, bot: BotUnderTest) -> ResourceUse:
    """What the bot took, so far."""
    times = sorted(sitting.times_ms)
    peak = bot.peak
    return ResourceUse(
        decisions=len(times),
        p50_ms=quantile(times, 0.5),
        p99_ms=quantile(times, 0.99),
        max_ms=quantile(times, 1.0),
        bank_ms=round(sitting.bank_ms, 1),
        memory_mib=round(peak.memory_bytes / _MIB, 1) if peak.processes else None,
        processes=peak.processes or None,
        cpu_ms=None if bot.program is None else round(bot.cpu_ms, 1),
    )


def quantile(times: Sequence[float], share: float) -> float | None:
    """The time that this share of them does not exceed."""
    if not times:
        return None
    return round(times[min(len(times) - 1, int(share * len(times)))], 3)
