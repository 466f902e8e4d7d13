"""Runs the steps of `arena check` one after another, and reports what the bot used."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import random
from collections.abc import AsyncIterator, Callable, Container, Iterator, Sequence
from itertools import count
from typing import Any

import msgspec

from arena.authoring.conformance import (
    CheckReport,
    Hint,
    ResourceUse,
    Step,
    StepEnded,
    StepFailed,
    StepOutcome,
    StepStatus,
)
from arena.authoring.conformance.bot import BotUnderTest
from arena.authoring.conformance.matches import CheckSession
from arena.authoring.conformance.steps import STEPS
from arena.sandbox.process_usage import MIB

__all__ = ["quantile", "run"]

_STEP_S = 180.0  # so that no step hangs; a fast bot needs far less
_TOTAL_S = 900.0  # afterwards only the final steps are started
_TICK_S = 1.0

_PER_GAME = (Step.PLAY, Step.LEGAL)
_FROM_THE_START = (Step.STARTS, Step.HELLO)
_SELF_STARTING = (*_FROM_THE_START, Step.REFUSED_HELLO, Step.LATE_ARENA)
_AT_THE_END = (*_SELF_STARTING, Step.CLOSE)
_NEEDS_NO_PLAY = (*_AT_THE_END, Step.ENCODING, Step.UNKNOWN_FIELDS, *_PER_GAME)
_NOT_PASSED = (StepStatus.FAILED, StepStatus.INCOMPLETE)


async def run(
    bot: BotUnderTest,
    *,
    games: Sequence[str] = (),
    rounds: int,
    seed: int,
    address: tuple[str, int] = ("127.0.0.1", 0),
    chosen: Container[Step] = frozenset(Step),
    on_begin: Callable[[str], None] = lambda step: None,
    on_step: Callable[[StepOutcome], None] = lambda outcome: None,
    on_progress: Callable[[str], None] = lambda line: None,
) -> CheckReport:
    """Check a bot, and stop it at the end.

    Args:
        games: which of its games to check; empty for all.
        rounds: how many to play of each game.
        seed: the seed of the matches' seeds and opponents.
        address: where the bot can connect; port 0 picks a free port.
        chosen: the steps to run; must include `play` if one of them needs a played match.
        on_progress: called once a second with a line about the running step.

    Raises:
        UsageError: the bot's command can never work here.
        Unreachable: the address cannot be listened on.
    """
    rng = random.Random(hashlib.sha256(str(seed).encode()).digest())
    check = CheckSession(bot, games, rounds, rng)
    done: list[StepOutcome] = []
    name = None
    try:
        if not bot.is_stdio:
            await bot.endpoint.open(*address)
        for planned in _plan(check, chosen):
            on_begin(planned.name)
            planned = msgspec.structs.replace(planned, number=len(done) + 1)
            async with _progress(check, planned, on_progress):
                done.append(await _done(check, planned, done))
            if planned.step is Step.STARTS:  # a person may have had to start the bot
                check.until = check.now + _TOTAL_S
            on_step(done[-1])
            name = bot.hello.name if bot.hello else name
    finally:
        await bot.close()
    return CheckReport(
        passed=bool(check.played) and not any(outcome.status in _NOT_PASSED for outcome in done),
        name=name,
        games=check.games,
        steps=tuple(done),
        report=_resources(check, bot),
        limits=bot.limits,
        seed=seed,
    )


def _plan(check: CheckSession, chosen: Container[Step]) -> Iterator[StepOutcome]:
    """Yield the chosen steps in order; lazily, as the games are known only after `hello`."""
    for step in filter(chosen.__contains__, STEPS):
        for game in check.games if step in _PER_GAME else (None,):
            yield StepOutcome(number=0, step=step, game=game, status=StepStatus.OK)


@contextlib.asynccontextmanager
async def _progress(
    check: CheckSession, planned: StepOutcome, told: Callable[[str], None]
) -> AsyncIterator[None]:
    """Report once a second which step is running, and for how long."""
    check.progress = ""

    async def tick() -> None:
        for seconds in count():
            line = f"{planned.number:>2} {planned.name:<22} {seconds:,} s"
            told(f"{line}, {check.progress}" if check.progress else line)
            await asyncio.sleep(_TICK_S)

    ticking = asyncio.create_task(tick())
    try:
        yield
    finally:
        ticking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await ticking


async def _done(
    check: CheckSession, planned: StepOutcome, done: Sequence[StepOutcome]
) -> StepOutcome:
    """Run a step, and return its outcome."""
    began = check.now
    bot, step = check.bot, planned.step
    came: dict[str, Any] = {}
    try:
        _raise_if_pointless(step, check, done)
        is_awaited = step is Step.STARTS and bot.program is None
        async with asyncio.timeout(None if is_awaited else _STEP_S):
            if step not in _SELF_STARTING:
                await (check.settle(0) if bot.is_here else check.fresh())
            if bot.is_stdio and (why := STEPS[step].on_stdio):
                raise StepEnded(StepStatus.SKIPPED, why)
            if bot.program is None and STEPS[step].is_started:
                raise StepEnded(StepStatus.SKIPPED, "it would have to be started again")
            with bot.perturbed(STEPS[step].perturbation):
                of_game = () if planned.game is None else (planned.game,)
                came["about"] = await STEPS[step].run(check, *of_game) or ""
    except StepEnded as ended:
        came = vars(ended)
        if isinstance(ended, StepFailed):
            await bot.stop()
    except TimeoutError:  # although each decision was within its own limit
        came = {"status": StepStatus.INCOMPLETE, "about": f"not done within {_STEP_S:,.0f} s"}
        await bot.stop()
    return msgspec.structs.replace(planned, took_ms=round((check.now - began) * 1000, 1), **came)


def _raise_if_pointless(step: Step, check: CheckSession, done: Sequence[StepOutcome]) -> None:
    """Raise `StepEnded` if a step would find out nothing, or time is up."""
    bot = check.bot
    for first in done:
        if first.status is StepStatus.FAILED and first.step in _FROM_THE_START:
            raise StepEnded(StepStatus.SKIPPED, f"mend step {first.number} first")
        if bot.program is None and first.hint is Hint.NOT_BACK:
            raise StepEnded(
                StepStatus.SKIPPED, "the bot has not come back; start it, and the check, again"
            )
    if step not in _AT_THE_END and check.now > check.until:
        text = f"the check has taken {_TOTAL_S / 60:,.0f} minutes"
        raise StepEnded(StepStatus.INCOMPLETE, text)
    if step not in _NEEDS_NO_PLAY and not check.played:
        number = next(outcome.number for outcome in done if outcome.step is Step.PLAY)
        raise StepEnded(StepStatus.SKIPPED, f"it must play first: mend step {number}")


def _resources(check: CheckSession, bot: BotUnderTest) -> ResourceUse:
    times = sorted(check.times_ms)
    peak = bot.peak
    return ResourceUse(
        decisions=len(times),
        p50_ms=quantile(times, 0.5),
        p99_ms=quantile(times, 0.99),
        max_ms=quantile(times, 1.0),
        bank_ms=round(check.bank_ms, 1),
        wall_bank_ms=round(check.wall_bank_ms, 1),
        memory_mib=round(peak.memory_bytes / MIB, 1) if peak.processes else None,
        processes=peak.processes or None,
        cpu_ms=None if bot.program is None else round(bot.cpu_ms, 1),
    )


def quantile(times: Sequence[float], share: float) -> float | None:
    """Return a quantile of sorted times, in ms; None if there are no times."""
    if not times:
        return None
    return round(times[min(len(times) - 1, int(share * len(times)))], 3)
