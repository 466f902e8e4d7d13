"""The steps of `arena check` in which something happens to the connection: lost, slow, in fragments, closed, refused."""

from __future__ import annotations

from arena.authoring.conformance import Hint, StepSkipped
from arena.authoring.conformance.diagnose import blame_of_process
from arena.authoring.conformance.fake_transport import Delivery
from arena.authoring.conformance.legal_shapes import SHORT
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

_END_S = 2.0  # what the document allows
_PONG_S = 1.0
_LATE_S = 3.0  # a virtual machine has started by then, and tried
_SLOW_QUESTIONS = 2
_CUTS = 4  # a program may hang at one in some, where its library has a fault
_NO_CONNECTION = "lines have no connection that could be lost"


async def lost_connection(sitting: CheckSession) -> str:
    """It is cut off in the middle of a question, some times right behind it, and once more when it has answered."""
    if sitting.bot.is_stdio:
        raise StepSkipped(_NO_CONNECTION)
    bot = sitting.bot
    table = sitting.table(sitting.handy, SHORT[sitting.handy])
    await sitting.invite([table])
    if await sitting.ask(table):
        await sitting.answer(table)
    more = True
    for _ in range(_CUTS):
        # The end of the connection comes with the question: some read the one and wait for ever for the other.
        with bot.speaking(delivery=Delivery.AND_CUT):
            if table.ask is not None:
                await bot.say(table.ask)
            else:
                more = await sitting.ask(table)
        bot.cut()
        said = await come_back(sitting)
        if not more:
            break
        with bot.speaking(blame=Hint.FORGETS):
            if said.from_ is not None:
                await sitting.remind(table, said.from_)
            await sitting.invite_again(table)
    with bot.speaking(blame=Hint.FORGETS):
        if table.ask is not None:
            await bot.say(table.ask)
            await sitting.answer(table)
    bot.cut()
    await come_back(sitting)
    with bot.speaking(blame=Hint.FORGETS):
        if more:
            await sitting.invite_again(table)
            await sitting.finish(table)
        await sitting.settle()
    return ""


async def come_back(sitting: CheckSession, *, welcome: bool = True) -> Hello:
    """Wait until it is back with its session, and let it in; its `hello`."""
    bot = sitting.bot
    latest, before = bot.secret, frozenset(bot.secrets)
    await bot.connect("it connects again", Hint.NOT_BACK, bot.limits.grace_ms)
    hello = await bot.greet()
    # Who has said nothing since then may not have read the latest.
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


async def lost_session(sitting: CheckSession) -> str:
    """The arena has been started again, and knows its session no more."""
    if sitting.bot.is_stdio:
        raise StepSkipped(_NO_CONNECTION)
    bot = sitting.bot
    table = sitting.table(sitting.handy, SHORT[sitting.handy])
    await sitting.invite([table])
    await sitting.ask(table)
    bot.end(CLOSE_RESTART)  # as an arena says that stops, and will be back
    await come_back(sitting, welcome=False)
    await bot.forget_session()
    bot.practice = True  # for the step in which something is refused
    await bot.welcome()
    with bot.speaking(blame=Hint.SESSION_REFUSED):
        await sitting.play([sitting.table(sitting.handy, SHORT[sitting.handy])])
        await sitting.settle()
    return ""


async def fragmented_frame(sitting: CheckSession) -> str:
    """Every frame comes in three, with pings between them."""
    bot = sitting.bot
    if bot.is_stdio:
        raise StepSkipped("lines have no fragments")
    before = bot.pongs
    with bot.speaking(delivery=Delivery.FRAGMENTS, blame=Hint.FRAGMENTS):
        table = sitting.table(sitting.handy, SHORT[sitting.handy])
        await sitting.invite([table])
        if await sitting.ask(table):
            await sitting.answer(table)
            await bot.say(table.end(Ending.VOID, None, FOREIGN))
        await sitting.play([sitting.table(sitting.handy, SHORT[sitting.handy])])
        await sitting.settle()
    if bot.pongs == before:
        await sitting.settle(_PONG_S)
    if bot.pongs == before:
        raise bot.failure("pongs to our pings", "none", Hint.PONG)
    return ""


async def slow_link(sitting: CheckSession) -> str:
    """Every frame comes late, and in small pieces."""
    bot = sitting.bot
    with bot.speaking(delivery=Delivery.SLOWLY, blame=Hint.PIECES):
        table = sitting.table(sitting.handy, SHORT[sitting.handy])
        await sitting.invite([table])
        for _ in range(_SLOW_QUESTIONS):
            if not await sitting.ask(table):
                break
            await sitting.answer(table)
        else:
            await bot.say(table.end(Ending.VOID, None, FOREIGN))
        await sitting.settle()
    return ""


async def close(sitting: CheckSession) -> str:
    """The arena closes in order."""
    bot = sitting.bot
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


async def refused_hello(sitting: CheckSession) -> str:
    """Its `hello` is not accepted."""
    bot = sitting.bot
    if bot.program is None:
        raise StepSkipped("it would have to be started again")
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


async def late_arena(sitting: CheckSession) -> str:
    """Nothing listens at its address yet when it is started."""
    bot = sitting.bot
    if bot.is_stdio:
        raise StepSkipped("lines are there from the start")
    if bot.program is None:
        raise StepSkipped("it would have to be started again")
    await bot.stop()
    bot.endpoint.pause()
    try:
        await bot.launch()
        how = await bot.exited(_LATE_S)
    finally:
        await bot.endpoint.listen_again()
    if isinstance(how, Finding):
        expected = "it tries again for 60 s"
        raise bot.failure(expected, *blame_of_process(how, Hint.IMPATIENT))
    expected = "it connects when the arena is there"
    await bot.connect(expected, Hint.IMPATIENT, bot.limits.start_ms)
    await bot.greet()
    await bot.welcome()
    bot.end(CLOSE_DONE)
    return f"after {_LATE_S:.0f} s"
