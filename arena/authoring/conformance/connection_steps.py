"""The steps of `arena check` that disturb the connection: lose it, slow it down, close it."""

from __future__ import annotations

from arena.authoring.conformance import Hint, StepSkipped
from arena.authoring.conformance.diagnose import blame_of_process
from arena.authoring.conformance.fake_transport import Delivery
from arena.authoring.conformance.session import CheckSession
from arena.authoring.conformance.steps import FOREIGN
from arena.engine.verdict import Finding
from protocol.messages import CLOSE_DONE, CLOSE_RESTART, Ending, Hello

__all__ = [
    "close",
    "fragmented_frame",
    "late_arena",
    "lost_connection",
    "lost_session",
    "refused_hello",
    "slow_link",
]

_END_S = 2.0  # protocol/session.md: the bot ends within 2 seconds
_PONG_S = 1.0
_LATE_S = 3.0  # enough for a JVM to start and to try
_SLOW_QUESTIONS = 2
_CUTS = 4  # a race in a library may show at one cut in some
_NO_CONNECTION = "a bot on stdio has no connection that could be lost"
_NO_RESTART = "it would have to be started again"


async def lost_connection(check: CheckSession) -> None:
    """It comes back after cuts in the middle of a question, and after one behind its answer."""
    bot = check.bot
    if bot.is_stdio:
        raise StepSkipped(_NO_CONNECTION)
    table = await check.begin_match()
    if await check.ask(table):
        await check.answer(table)
    more = True
    for _ in range(_CUTS):
        # The question and the end of the connection arrive together: some bots then read the
        # question and never notice the end.
        with bot.speaking(delivery=Delivery.AND_CUT):
            if table.ask is not None:
                await bot.say(table.ask)
            else:
                more = await check.ask(table)
        bot.cut()
        said = await come_back(check)
        if not more:
            break
        with bot.speaking(blame=Hint.FORGETS):
            if said.from_ is not None:
                await check.remind(table, said.from_)
            await check.invite_again(table)
    with bot.speaking(blame=Hint.FORGETS):
        if table.ask is not None:
            await bot.say(table.ask)
            await check.answer(table)
    bot.cut()
    await come_back(check)
    with bot.speaking(blame=Hint.FORGETS):
        if more:
            await check.invite_again(table)
            await check.finish(table)
        await check.settle()


async def come_back(check: CheckSession, *, welcome: bool = True) -> Hello:
    """Wait until the bot is back with its session, and welcome it; or raise `StepFailed`."""
    bot = check.bot
    latest, before = bot.secret, frozenset(bot.secrets)
    await bot.connect("it connects again", Hint.NOT_BACK, bot.limits.grace_ms)
    hello = await bot.greet()
    # A bot that has said nothing since the last `welcome` may not have read it.
    is_good = hello.resume == latest or (
        hello.resume == bot.former and bot.former != "" and not bot.has_spoken
    )
    if not is_good:
        hint = Hint.OLD_SESSION if hello.resume in before else Hint.NO_RESUME
        expected = "`hello` with `resume`, the session of the last `welcome`"
        raise bot.failure(expected, bot.came, hint)
    if welcome:
        await bot.welcome()
    return hello


async def lost_session(check: CheckSession) -> None:
    """It begins a new session after the arena has restarted without the old one."""
    bot = check.bot
    if bot.is_stdio:
        raise StepSkipped(_NO_CONNECTION)
    table = await check.begin_match()
    await check.ask(table)
    bot.end(CLOSE_RESTART)
    await come_back(check, welcome=False)
    await bot.forget_session()
    bot.practice = True  # the step `refusal` needs it
    await bot.welcome()
    with bot.speaking(blame=Hint.SESSION_REFUSED):
        await check.play([check.short_match()])
        await check.settle()


async def fragmented_frame(check: CheckSession) -> None:
    """It reads messages in three fragments, and answers the pings between them."""
    bot = check.bot
    if bot.is_stdio:
        raise StepSkipped("a bot on stdio receives lines, not frames in fragments")
    before = bot.pongs
    with bot.speaking(delivery=Delivery.FRAGMENTS, blame=Hint.FRAGMENTS):
        table = await check.begin_match()
        if await check.ask(table):
            await check.answer(table)
            await bot.say(table.end(Ending.VOID, None, FOREIGN))
        await check.play([check.short_match()])
        await check.settle()
    if bot.pongs == before:
        await check.settle(_PONG_S)
    if bot.pongs == before:
        raise bot.failure("pongs to our pings", "none", Hint.PONG)


async def slow_link(check: CheckSession) -> None:
    """It reads frames that come late and in small pieces."""
    bot = check.bot
    with bot.speaking(delivery=Delivery.SLOWLY, blame=Hint.PIECES):
        table = await check.begin_match()
        for _ in range(_SLOW_QUESTIONS):
            if not await check.ask(table):
                break
            await check.answer(table)
        else:
            await bot.say(table.end(Ending.VOID, None, FOREIGN))
        await check.settle()


async def close(check: CheckSession) -> str:
    """It ends in good order when the arena closes."""
    bot = check.bot
    expected = f"it ends with exit status 0 within {_END_S:.0f} s"
    bot.end(CLOSE_DONE)
    how = await bot.exited(_END_S)
    if how is None:
        raise bot.failure(expected, "it goes on", Hint.STAYS)
    if isinstance(how, Finding):
        if how.exit_status != 0:
            raise bot.failure(expected, *blame_of_process(how, Hint.EXIT_STATUS))
        return f"exit status {how.exit_status}"
    if bot.program is not None or await bot.exited(_END_S) is not None:
        raise bot.failure(expected, "it connected again", Hint.STAYS)
    return how


async def refused_hello(check: CheckSession) -> str:
    """It ends with another exit status than 0 when its `hello` is refused."""
    bot = check.bot
    if bot.program is None:
        raise StepSkipped(_NO_RESTART)
    await bot.stop()
    await bot.launch()
    await bot.arrive()
    await bot.greet()
    await bot.refuse("name", f"expected another name, {bot.name!r} is here already")
    expected = f"it ends within {_END_S:.0f} s, with an exit status other than 0"
    how = await bot.exited(_END_S)
    if how is None:
        raise bot.failure(expected, "it goes on", Hint.COMES_BACK)
    if isinstance(how, Finding):
        if how.exit_status == 0:
            raise bot.failure(expected, *blame_of_process(how, Hint.EXIT_STATUS))
        return f"exit status {how.exit_status}"
    raise bot.failure(expected, how, Hint.COMES_BACK)


async def late_arena(check: CheckSession) -> str:
    """It waits for an arena that is not up yet."""
    bot = check.bot
    if bot.is_stdio:
        raise StepSkipped("a bot on stdio does not wait for an arena")
    if bot.program is None:
        raise StepSkipped(_NO_RESTART)
    await bot.stop()
    bot.endpoint.pause()
    try:
        await bot.launch()
        how = await bot.exited(_LATE_S)
    finally:
        await bot.endpoint.listen_again()
    if isinstance(how, Finding):
        raise bot.failure("it tries again for 60 s", *blame_of_process(how, Hint.IMPATIENT))
    await bot.connect("it connects when the arena is there", Hint.IMPATIENT, bot.limits.start_ms)
    await bot.greet()
    await bot.welcome()
    bot.end(CLOSE_DONE)
    return f"after {_LATE_S:.0f} s"
