"""The steps of `arena check`, in order: what the arena sends and does, and what it expects.

`STEPS` maps names to steps; most are a match or two with one perturbation of the wire. A step may
return a line for people about what was done. It raises `StepFailed`, or `StepEnded` with another
status. The docstring of a step says what the bot must do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from itertools import cycle, islice
from math import ceil
from statistics import median
from typing import Any, NamedTuple

import msgspec

from arena.authoring.conformance import Hint, Step, StepEnded, StepStatus
from arena.authoring.conformance.bot import CONNECTED_AGAIN, BotUnderTest
from arena.authoring.conformance.diagnose import blame_of_process
from arena.authoring.conformance.matches import CheckMatch, CheckSession, against_house
from arena.authoring.conformance.wire import Delivery, Perturbation
from arena.games.catalogue import game_named
from arena.games.rules import Variation
from arena.games.verdict import Finding
from protocol.codec import Encoding, encode
from protocol.errors import IllegalAnswer
from protocol.messages import (
    CLOSE_DONE,
    CLOSE_RESTART,
    ArenaMessage,
    Ask,
    Ending,
    Over,
    Refused,
    Termination,
)
from protocol.vocabulary import Legal, Question, Range, shorten

__all__ = ["STEPS", "PerturbedStep", "many", "reordered", "reversed_keys", "with_more_fields"]

_PLAY_S = 60.0  # within its limits a bot could take an hour
_LEGAL_S = 30.0
_MOST_MATCHES = 60  # to see a rare shape of `legal`
_ROUNDS = 10  # per match of a game without variations
_AT_ONCE = 64  # matches
_TABLES_S = 60.0  # a slow bot gets as many matches as it can play in this time
_QUESTIONS = 12  # in most short matches
_REFUSALS = 20  # a random choice of two repeats 20 times once in a million
_LINGER_S = 0.2  # time to notice a bot that leaves at `over`
_FOREIGN = "Čapek — 李 ♠"
_FOREIGN_NAME = "Čapek-李"
_ARRAY_BYTES = 128 * 1024  # the largest array that an arena sends
_UNUSED = 1_000_000  # matches with numbers from here on are never played
_END_S = 2.0  # protocol/session.md: the bot ends within 2 seconds
_PONG_S = 1.0
_LATE_S = 3.0  # enough for a JVM to start and to try
_SLOW_QUESTIONS = 2
_CUTS = 4  # a race in a library may show only at some cuts
_NO_CONNECTION = "a bot on stdio has no connection that could be lost"

_SPARE = {"later": {"version": 2, "list": [1, None, "x"]}, "spare": None}


async def starts(check: CheckSession) -> str:
    """The bot is started and connects, or writes its first line."""
    await check.bot.launch()
    await check.bot.arrive()
    return "" if check.bot.is_stdio else f"at {check.bot.endpoint.url}"


async def hello(check: CheckSession) -> str:
    """The bot's first message is a `hello`, with a game that is to be checked."""
    said = await check.bot.meet()
    if not check.games:
        wanted = " or ".join(check.wanted)
        expected = f"`games` with {wanted}, which --game asks for"
        raise check.bot.failure(expected, f"it offers {', '.join(said.games)}", Hint.GAMES)
    await check.settle()
    tables = f", tables {said.tables}" if said.tables > 1 else ""
    return f"{said.name}: {' '.join(said.games)}{tables}{', batch' if said.batch else ''}"


async def encoding(check: CheckSession) -> str:
    """The bot answers with whole numbers, and reads everything a JSON library can read."""
    bot = check.bot
    for game in check.games:
        await check.play([check.short_match(game)], lenient=True)
    await check.settle()
    with bot.perturbed(Perturbation(Hint.JSON_LIBRARY, dress=reversed_keys, is_spaced=True)):
        await check.play([check.short_match()], lenient=True)
        match = await check.begin_match()
        if await check.ask(match):
            check.judge(match, await check.value(match), lenient=True)
            await check.void(match, _FOREIGN)
        await check.settle()
    if bot.program is not None:
        with bot.perturbed(Perturbation(Hint.NAME)):
            await check.fresh(_FOREIGN_NAME)
            await check.play([check.short_match()], lenient=True)
            await check.settle()
    return bot.encoding.value


async def unknown_fields(check: CheckSession) -> None:
    """The bot ignores unknown fields, from `welcome` to `over`."""
    if check.bot.program is not None:
        await check.fresh()
    for game in check.games:
        await check.play([check.short_match(game)], lenient=True)
    await check.settle()


async def play(check: CheckSession, game: str) -> str:
    """The bot plays rounds by the real rules, against house bots."""
    rules = game_named(game)
    seats = rules.seats
    until = min(check.now + _PLAY_S, check.until)
    rounds = decisions = matches = 0
    while rounds < check.rounds and check.now < until:
        check.progress = f"{rounds:,} of {check.rounds:,} rounds"
        most = min(check.rounds - rounds, ceil(check.rounds / seats))
        match = check.match(game, against_house(rules.rounds(most)), matches % seats)
        await check.play([match], measured=True, until=until)
        matches += 1
        rounds += match.rounds
        decisions += match.asked
    await check.settle()
    check.played.add(game)
    decided = f"{decisions:,} decision{'' if decisions == 1 else 's'}"
    if rounds < check.rounds:
        text = f"{rounds:,} of {check.rounds:,} rounds, {decided}: no time for more"
        raise StepEnded(StepStatus.INCOMPLETE, text, rounds=rounds)
    return f"{rounds:,} round{'' if rounds == 1 else 's'}, {decided}"


async def legal(check: CheckSession, game: str) -> str:
    """The bot answers every shape that `legal` can have.

    Only questions that arise by the real rules are asked, as a strategy may know the rules and not
    read `legal`. The game's variations (settings, opponents and first deals) bring up rare shapes.
    """
    rules = game_named(game)
    shapes = rules.vocabulary.legal_shapes
    missing = list(shapes)
    until = min(check.now + _LEGAL_S, check.until)

    def watch(question: Question[Any]) -> None:
        missing[:] = [shape for shape in missing if not shape.is_of(question)]

    matches = 0
    variations = rules.variations or (Variation(lambda seat: rules.rounds(_ROUNDS)),)
    while missing and matches < _MOST_MATCHES and check.now < until:
        check.progress = f"{len(shapes) - len(missing)} of {len(shapes)} shapes"
        match = check.match(game, variations[matches % len(variations)], matches % rules.seats)
        await check.play([match], watch=watch, until=until)
        matches += 1
    await check.settle()
    if not missing:
        return f"{len(shapes)} shape{'' if len(shapes) == 1 else 's'}"
    names = tuple(shape.name for shape in missing)
    text = f"did not come up in {matches} match{'' if matches == 1 else 'es'}: {', '.join(names)}"
    if check.now < until:  # the bot's own play may never reach the missing shapes
        return text
    text = f"{text}: no time for more"
    raise StepEnded(StepStatus.INCOMPLETE, text, missing=names)


async def batch(check: CheckSession) -> str:
    """The bot reads frames that hold arrays."""
    if not check.hello.batch:
        raise StepEnded(StepStatus.SKIPPED, "its `hello` does not say `batch`")
    await check.play([check.short_match()], joined=True)
    first, second = check.short_match(), check.short_match()
    await check.invite([first], joined=True)
    await check.move(first)
    # The arena may send these two in one array even to a bot with one table.
    gone = first.end(Ending.VOID, None, "it ends here")
    await check.invite([second], [gone], joined=True)
    await check.finish(second)
    await check.settle()
    with check.bot.perturbed(Perturbation(Hint.MESSAGE_LIMIT)):
        match = check.short_match()
        await check.invite([match], many(match), joined=True)
        await check.finish(match)
        await check.settle()
    check.reads_arrays = True
    return f"up to {_ARRAY_BYTES >> 10} KiB"


def many(match: CheckMatch) -> list[ArenaMessage]:
    """Make invitations, each with its `over`, to fill one array with the match's invitation.

    Matches that end before they begin are the only way to send a bot with one table so much at
    once: by the rules, no single message comes near that size.
    """
    invitation = match.invitation
    nothing = (0,) * len(invitation.seats)
    gone = Termination(Ending.VOID, None, "another seat did not come")
    messages: list[ArenaMessage] = []
    left = _ARRAY_BYTES - len(encode(invitation, Encoding.JSON)) - len("[]")
    while True:
        other = f"{match.run}-{_UNUSED + len(messages) // 2}.{invitation.seat}"
        another = msgspec.structs.replace(invitation, match=other)
        pair = another, Over(other, (), nothing, gone, None)
        left -= sum(len(encode(message, Encoding.JSON)) + 1 for message in pair)
        if left < 0:
            return messages
        messages += pair


async def tables(check: CheckSession) -> str:
    """The bot plays several matches at once, of all its games in turn."""
    said = check.hello
    if said.tables < 2:
        raise StepEnded(StepStatus.SKIPPED, "its `hello` does not say `tables`")
    count = min(said.tables, check.bot.limits.tables, _AT_ONCE)
    if check.times_ms:
        match_s = _QUESTIONS * median(check.times_ms) / 1000
        count = max(2, min(count, int(_TABLES_S / max(match_s, 0.001))))
    matches = [check.short_match(game) for game in islice(cycle(check.games), count)]
    await check.play(matches, joined=check.reads_arrays)
    await check.settle()
    return f"{count} matches at once, of {said.tables} that it says"


async def repeated_question(check: CheckSession) -> None:
    """The bot answers a repeated `match` and a repeated `ask`."""
    match = await check.begin_match()
    await check.invite_again(match)
    while ask := await check.ask(match):
        await check.value(match)
        await check.bot.say(ask)
        await check.answer(match)
    await check.settle()


async def lost_connection(check: CheckSession) -> None:
    """The bot reconnects after cuts in the middle of a question, and after one after its answer."""
    bot, forgets = check.bot, Perturbation(Hint.FORGETS)
    match = await check.begin_match()
    more = await check.move(match)
    for _ in range(_CUTS):
        # The question and the end of the connection arrive together: some bots then read the
        # question but never notice the end.
        with bot.perturbed(Perturbation(delivery=Delivery.AND_CUT)):
            if match.ask is not None:
                await bot.say(match.ask)
            else:
                more = await check.ask(match) is not None
        bot.cut()
        said = await bot.come_back()
        if not more:
            break
        with bot.perturbed(forgets):
            if said.from_ is not None:
                await bot.say(match.invitation, *match.past(said.from_))
            await check.invite_again(match)
    with bot.perturbed(forgets):
        if match.ask is not None:
            await bot.say(match.ask)
            await check.answer(match)
    bot.cut()
    await bot.come_back()
    with bot.perturbed(forgets):
        if more:
            await check.invite_again(match)
            await check.finish(match)
        await check.settle()


async def lost_session(check: CheckSession) -> None:
    """The bot begins a new session after the arena has restarted and lost the old one."""
    bot = check.bot
    match = await check.begin_match()
    await check.ask(match)
    bot.end(CLOSE_RESTART)
    await bot.come_back(welcome=False)
    await bot.forget_session()
    bot.practice = True  # the step `refusal` needs it
    await bot.welcome()
    with bot.perturbed(Perturbation(Hint.SESSION_REFUSED)):
        await check.play([check.short_match()])
        await check.settle()


async def fragmented_frame(check: CheckSession) -> None:
    """The bot reads messages in three fragments, and answers the pings between them."""
    bot = check.bot
    before = bot.endpoint.pongs
    match = await check.begin_match()
    if await check.move(match):
        await check.void(match, _FOREIGN)
    await check.play([check.short_match()])
    await check.settle()
    if bot.endpoint.pongs == before:
        await check.settle(_PONG_S)
    if bot.endpoint.pongs == before:
        raise bot.failure("pongs to our pings", "none", Hint.PONG)


async def slow_link(check: CheckSession) -> None:
    """The bot reads frames that come late and in small pieces."""
    match = await check.begin_match()
    for _ in range(_SLOW_QUESTIONS):
        if not await check.move(match):
            break
    else:
        await check.void(match, _FOREIGN)
    await check.settle()


async def refusal(check: CheckSession) -> None:
    """In practice mode, the bot answers again when its answer was refused."""
    bot = check.bot
    if not bot.is_practice:
        if bot.program is None:
            raise StepEnded(StepStatus.SKIPPED, "it would have to be started again, for practice")
        bot.practice = True
        await check.fresh()
    match = await check.begin_match()
    while ask := await check.ask(match):
        await _refuse(check, match, ask)
    await check.settle()


async def _refuse(check: CheckSession, match: CheckMatch, ask: Ask) -> None:
    """Refuse a legal answer until a different one comes, if there is one.

    A bot that picks at random may repeat its answer, and one that takes the first or the last of
    `legal` would always repeat it. So the order of `legal` changes each time.
    """
    question = ask.question
    refused = await check.value(match)
    for number in range(_REFUSALS):
        text = f"answered {shorten(refused)} to {question.kind}, which is refused for the check"
        legal = reordered(question, refused, first=number % 2 > 0)
        await check.bot.say(Refused("illegal", text, match.id, ask.ask, legal))
        again = await check.value(match)
        if again != refused or isinstance(legal, Range) or len(legal) == 1:
            check.judge(match, again)
            return
    expected = "another answer than the one that was refused"
    raise check.bot.failure(expected, shorten(refused), Hint.REFUSAL)


def reordered(question: Question[Any], value: object, *, first: bool) -> Legal:
    """Return the legal answers with `value` in the first or the last place."""
    legal = question.choices
    if isinstance(legal, Range):
        return legal
    try:
        given = question.check(value)
    except IllegalAnswer:
        return legal
    others = tuple(choice for choice in legal if choice != given)
    if len(others) == len(legal):  # `value` is legal, but not listed
        return legal
    return (given, *others) if first else (*others, given)


async def over(check: CheckSession) -> None:
    """The bot stays connected after every kind of end of a match."""
    bot, game = check.bot, check.handy
    scores = (0,) * game_named(game).seats
    gone = Termination(Ending.VOID, None, "it was over while you were away")
    await bot.say(Over(f"{check.run}-0.0", (), scores, gone, None))
    for kind in (Ending.COMPLETED, Ending.VOID, Ending.CRASH):
        match = await check.begin_match(game)
        if kind is Ending.COMPLETED:
            await check.finish(match)
        elif await check.ask(match):
            others = len(scores) > 1 and kind is Ending.CRASH
            seat = (match.seat + 1) % len(scores) if others else None
            ending = match.end(kind if others else Ending.VOID, seat, "stopped")
            await bot.say(ending)
            await bot.say(ending)  # repeated, as after a reconnect
        await check.settle(_LINGER_S)
    await check.play([check.short_match(game)])
    await check.settle()


async def close(check: CheckSession) -> str:
    """The bot ends in good order when the arena closes."""
    check.bot.end(CLOSE_DONE)
    expected = f"it ends with exit status 0 within {_END_S:.0f} s"
    return await _ending(check.bot, expected, Hint.STAYS, lambda status: status == 0)


async def refused_hello(check: CheckSession) -> str:
    """The bot ends with an exit status other than 0 when its `hello` is refused."""
    bot = check.bot
    await bot.stop()
    await bot.launch()
    await bot.arrive()
    await bot.greet()
    await bot.refuse("name", f"expected another name, {bot.name!r} is here already")
    expected = f"it ends within {_END_S:.0f} s, with an exit status other than 0"
    return await _ending(bot, expected, Hint.COMES_BACK, lambda status: status != 0)


async def _ending(
    bot: BotUnderTest, expected: str, stays: Hint, is_right: Callable[[int | None], bool]
) -> str:
    """Return how the bot ended; raises `StepFailed` if it ended wrong or not at all."""
    how = await bot.exited(_END_S)
    if how is None or how == CONNECTED_AGAIN:
        raise bot.failure(expected, how or "it goes on", stays)
    if isinstance(how, str):
        return how
    if not is_right(how.exit_status):
        raise bot.failure(expected, *blame_of_process(how, Hint.EXIT_STATUS))
    return f"exit status {how.exit_status}"


async def late_arena(check: CheckSession) -> str:
    """The bot waits for an arena that is not up yet."""
    bot = check.bot
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


def reversed_keys(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message with all keys in reverse order."""

    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(item) for item in value] if isinstance(value, list) else value

    return {key: turned(message[key]) for key in reversed(message)}


def with_more_fields(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message with unknown fields in every map, except in `legal`, which has answers."""

    def widened(value: Any) -> Any:
        if isinstance(value, dict):
            inner = {
                key: field if key in ("legal", "answer") else widened(field)
                for key, field in value.items()
            }
            return {**inner, **_SPARE}
        return [widened(item) for item in value] if isinstance(value, list) else value

    dressed: dict[str, Any] = widened(message)
    return dressed


class PerturbedStep(NamedTuple):
    """A step: its coroutine, which takes a game if it runs for each, and its perturbation.

    `on_stdio` is why bots that speak in lines skip it. `is_started` says whether only bots that are
    started here can run it.
    """

    run: Callable[..., Awaitable[str | None]]
    perturbation: Perturbation = Perturbation()
    on_stdio: str = ""
    is_started: bool = False


STEPS: Mapping[Step, PerturbedStep] = {
    Step.STARTS: PerturbedStep(starts),
    Step.HELLO: PerturbedStep(hello),
    Step.ENCODING: PerturbedStep(encoding),
    Step.UNKNOWN_FIELDS: PerturbedStep(
        unknown_fields, Perturbation(Hint.STRICT, dress=with_more_fields)
    ),
    Step.PLAY: PerturbedStep(play),
    Step.LEGAL: PerturbedStep(legal),
    Step.BATCH: PerturbedStep(batch, Perturbation(Hint.BATCH)),
    Step.TABLES: PerturbedStep(tables, Perturbation(Hint.TABLES)),
    Step.REPEATED_QUESTION: PerturbedStep(repeated_question, Perturbation(Hint.REPEATED)),
    Step.LOST_CONNECTION: PerturbedStep(lost_connection, on_stdio=_NO_CONNECTION),
    Step.LOST_SESSION: PerturbedStep(lost_session, on_stdio=_NO_CONNECTION),
    Step.FRAGMENTED_FRAME: PerturbedStep(
        fragmented_frame,
        Perturbation(Hint.FRAGMENTS, Delivery.FRAGMENTS),
        on_stdio="a bot on stdio receives lines, not frames in fragments",
    ),
    Step.SLOW_LINK: PerturbedStep(slow_link, Perturbation(Hint.PIECES, Delivery.SLOWLY)),
    Step.REFUSAL: PerturbedStep(refusal, Perturbation(Hint.REFUSAL)),
    Step.OVER: PerturbedStep(over, Perturbation(Hint.LEAVES_AT_OVER)),
    Step.CLOSE: PerturbedStep(close),
    Step.REFUSED_HELLO: PerturbedStep(refused_hello, is_started=True),
    Step.LATE_ARENA: PerturbedStep(
        late_arena, on_stdio="a bot on stdio does not wait for an arena", is_started=True
    ),
}
