"""The steps of `arena check` that exchange messages: the hello, whole matches, unusual messages.

A step may return a line for people about what was done. It raises `StepFailed`, `StepSkipped` or
`StepIncomplete`. The steps that disturb the connection are in `connection_steps.py`.
"""

from __future__ import annotations

from itertools import cycle, islice
from math import ceil
from statistics import median
from typing import Any

import msgspec

from arena.authoring.conformance import Hint, StepIncomplete, StepSkipped
from arena.authoring.conformance.session import CheckSession
from arena.authoring.conformance.table import CheckMatch
from arena.engine.rules import Variation
from arena.games import game_named
from protocol.codec import Encoding, encode
from protocol.errors import IllegalAnswer
from protocol.messages import ArenaMessage, Ask, Ending, Over, Refused, Termination
from protocol.vocabulary import Legal, Question, Range, shorten

__all__ = [
    "FOREIGN",
    "batch",
    "encoding",
    "hello",
    "legal",
    "many",
    "over",
    "play",
    "refusal",
    "reordered",
    "repeated_question",
    "reversed_keys",
    "starts",
    "tables",
    "unknown_fields",
    "with_more_fields",
]

_PLAY_S = 60.0  # a bot that decides within its limits could take an hour
_LEGAL_S = 30.0
_MOST_MATCHES = 60  # played to see a rare shape of `legal`
_ROUNDS = 10  # of a match of a game without variations
_AT_ONCE = 64  # matches
_TABLES_S = 60.0  # a slow bot gets as many matches as it can play in that time
_QUESTIONS = 12  # in most short matches
_REFUSALS = 20  # a random choice of two is the same 20 times once in a million
_LINGER_S = 0.2  # for a bot that leaves at `over`
FOREIGN = "Čapek — 李 ♠"
_FOREIGN_NAME = "Čapek-李"
_ARRAY_BYTES = 128 * 1024  # the largest array that an arena sends
_UNUSED = 1_000_000  # match numbers from here on are never played

_SPARE = {"later": {"version": 2, "list": [1, None, "x"]}, "spare": None}


async def starts(check: CheckSession) -> str:
    """The bot is started and connects, or writes its first line."""
    await check.bot.launch()
    await check.bot.arrive()
    return "" if check.bot.is_stdio else f"at {check.bot.endpoint.url}"


async def hello(check: CheckSession) -> str:
    """Its first message is a `hello`, with a game that is to be checked."""
    said = await check.bot.meet()
    if not check.games:
        wanted = " or ".join(check.wanted)
        expected = f"`games` with {wanted}, which --game asks for"
        raise check.bot.failure(expected, f"it offers {', '.join(said.games)}", Hint.GAMES)
    await check.settle()
    tables = f", tables {said.tables}" if said.tables > 1 else ""
    return f"{said.name}: {' '.join(said.games)}{tables}{', batch' if said.batch else ''}"


async def encoding(check: CheckSession) -> str:
    """Numbers in its answers are whole, and it reads what any JSON library reads."""
    bot = check.bot
    for game in check.games:
        await check.play([check.short_match(game)], lenient=True)
    await check.settle()
    with bot.speaking(dress=reversed_keys, is_spaced=True, blame=Hint.JSON_LIBRARY):
        await check.play([check.short_match()], lenient=True)
        table = await check.begin_match()
        if await check.ask(table):
            check.judge(table, await check.value(table), lenient=True)
            await bot.say(table.end(Ending.VOID, None, FOREIGN))
        await check.settle()
    if bot.program is not None:
        with bot.speaking(blame=Hint.NAME):
            await check.fresh(_FOREIGN_NAME)
            await check.play([check.short_match()], lenient=True)
            await check.settle()
    return bot.encoding.value


async def unknown_fields(check: CheckSession) -> None:
    """It ignores fields that it does not know, from `welcome` to `over`."""
    bot = check.bot
    with bot.speaking(dress=with_more_fields, blame=Hint.STRICT):
        if bot.program is not None:
            await check.fresh()
        for game in check.games:
            await check.play([check.short_match(game)], lenient=True)
        await check.settle()


async def play(check: CheckSession, game: str) -> str:
    """It plays rounds by the real rules, against house bots."""
    rules = game_named(game)
    seats = rules.seats
    until = min(check.now + _PLAY_S, check.until)
    rounds = decisions = matches = 0
    while rounds < check.rounds and check.now < until:
        check.progress = f"{rounds:,} of {check.rounds:,} rounds"
        most = min(check.rounds - rounds, ceil(check.rounds / seats))
        table = check.table(game, rules.rounds(most), matches % seats)
        await check.play([table], measured=True, until=until)
        matches += 1
        rounds += table.rounds
        decisions += table.asked
    await check.settle()
    check.played.add(game)
    decided = f"{decisions:,} decision{'' if decisions == 1 else 's'}"
    if rounds < check.rounds:
        text = f"{rounds:,} of {check.rounds:,} rounds, {decided}: no time for more"
        raise StepIncomplete(text, rounds=rounds)
    return f"{rounds:,} round{'' if rounds == 1 else 's'}, {decided}"


async def legal(check: CheckSession, game: str) -> str:
    """It answers every shape that `legal` can have.

    Only questions that the real rules bring about are asked: a strategy may know the rules and need
    not read `legal`. Rare shapes come up by the game's variations: its settings, opponents and
    first deals.
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
        variation = variations[matches % len(variations)]
        seat = matches % rules.seats
        settings = variation.settings(seat)
        table = check.table(game, settings, seat, variation.chooses, variation.wanted)
        await check.play([table], watch=watch, until=until)
        matches += 1
    await check.settle()
    if not missing:
        return f"{len(shapes)} shape{'' if len(shapes) == 1 else 's'}"
    names = tuple(shape.name for shape in missing)
    text = f"did not come up in {matches} match{'' if matches == 1 else 'es'}: {', '.join(names)}"
    if check.now < until:  # the bot's own play may never lead there
        return text
    raise StepIncomplete(f"{text}: no time for more", missing=names)


async def batch(check: CheckSession) -> str:
    """It reads frames that hold arrays."""
    said = check.bot.hello
    assert said is not None, "it is here"
    if not said.batch:
        raise StepSkipped("its `hello` does not say `batch`")
    with check.bot.speaking(blame=Hint.BATCH):
        await check.play([check.short_match()], joined=True)
        first, second = check.short_match(), check.short_match()
        await check.invite([first], joined=True)
        if await check.ask(first):
            await check.answer(first)
        # The arena can join these two even for a bot with one table.
        await check.change_over(first, second)
        await check.settle()
    with check.bot.speaking(blame=Hint.MESSAGE_LIMIT):
        table = check.short_match()
        await check.invite([table], many(table), joined=True)
        await check.finish(table)
        await check.settle()
    check.reads_arrays = True
    return f"up to {_ARRAY_BYTES >> 10} KiB"


def many(table: CheckMatch) -> list[ArenaMessage]:
    """Invitations, each with its `over`, that fill one array together with the table's invitation.

    Matches that end before they begin are how a bot with one table can be sent so much at once: by
    the rules no single message comes near that size.
    """
    invitation = table.invitation
    nothing = (0,) * len(invitation.seats)
    gone = Termination(Ending.VOID, None, "another seat did not come")
    messages: list[ArenaMessage] = []
    left = _ARRAY_BYTES - len(encode(invitation, Encoding.JSON)) - len("[]")
    while True:
        match = f"{table.run}-{_UNUSED + len(messages) // 2}.{invitation.seat}"
        another = msgspec.structs.replace(invitation, match=match)
        pair = another, Over(match, (), nothing, gone, None)
        left -= sum(len(encode(message, Encoding.JSON)) + 1 for message in pair)
        if left < 0:
            return messages
        messages += pair


async def tables(check: CheckSession) -> str:
    """It plays several matches at once, of all its games in turn."""
    said = check.bot.hello
    assert said is not None, "it is here"
    if said.tables < 2:
        raise StepSkipped("its `hello` does not say `tables`")
    count = min(said.tables, check.bot.limits.tables, _AT_ONCE)
    if check.times_ms:
        match_s = _QUESTIONS * median(check.times_ms) / 1000
        count = max(2, min(count, int(_TABLES_S / max(match_s, 0.001))))
    with check.bot.speaking(blame=Hint.TABLES):
        matches = [check.short_match(game) for game in islice(cycle(check.games), count)]
        await check.play(matches, joined=check.reads_arrays)
        await check.settle()
    return f"{count} matches at once, of {said.tables} that it says"


async def repeated_question(check: CheckSession) -> None:
    """It answers a `match` and an `ask` that come again."""
    bot = check.bot
    with bot.speaking(blame=Hint.REPEATED):
        table = await check.begin_match()
        await check.invite_again(table)
        while await check.ask(table):
            assert table.ask is not None, "it has just been sent"
            await check.value(table)
            await bot.say(table.ask)
            await check.answer(table)
        await check.settle()


async def refusal(check: CheckSession) -> None:
    """In practice mode it answers again when an answer was refused."""
    bot = check.bot
    if not bot.is_practice:
        if bot.program is None:
            raise StepSkipped("it would have to be started again, for practice")
        bot.practice = True
        await check.fresh()
    with bot.speaking(blame=Hint.REFUSAL):
        table = await check.begin_match()
        while await check.ask(table):
            assert table.ask is not None, "it has just been sent"
            await _refuse(check, table, table.ask)
        await check.settle()


async def _refuse(check: CheckSession, table: CheckMatch, ask: Ask) -> None:
    """Refuse a legal answer until another one comes, if there is another.

    A bot that picks at random may pick the same answer again, and one that takes the first or the
    last of `legal` would always do so. Therefore its order changes each time.
    """
    question = ask.question
    refused = await check.value(table)
    for number in range(_REFUSALS):
        text = f"answered {shorten(refused)} to {question.kind}, which is refused for the check"
        legal = reordered(question, refused, first=number % 2 > 0)
        await check.bot.say(Refused("illegal", text, table.id, ask.ask, legal))
        again = await check.value(table)
        if again != refused or isinstance(legal, Range) or len(legal) == 1:
            check.judge(table, again)
            return
    expected = "another answer than the one that was refused"
    raise check.bot.failure(expected, shorten(refused), Hint.REFUSAL)


def reordered(question: Question[Any], value: object, *, first: bool) -> Legal:
    """The legal answers, with `value` in the first or the last place."""
    legal = question.choices
    if isinstance(legal, Range):
        return legal
    try:
        given = question.check(value)
    except IllegalAnswer:
        return legal
    others = tuple(choice for choice in legal if choice != given)
    if len(others) == len(legal):  # it is legal, but not listed
        return legal
    return (given, *others) if first else (*others, given)


async def over(check: CheckSession) -> None:
    """It stays connected after every kind of end."""
    bot = check.bot
    game = check.handy
    with bot.speaking(blame=Hint.LEAVES_AT_OVER):
        scores = (0,) * game_named(game).seats
        gone = Termination(Ending.VOID, None, "it was over while you were away")
        await bot.say(Over(f"{check.run}-0.0", (), scores, gone, None))
        for kind in (Ending.COMPLETED, Ending.VOID, Ending.CRASH):
            table = await check.begin_match(game)
            if kind is Ending.COMPLETED:
                await check.finish(table)
            elif await check.ask(table):
                others = len(scores) > 1 and kind is Ending.CRASH
                seat = (table.seat + 1) % len(scores) if others else None
                ending = table.end(kind if others else Ending.VOID, seat, "stopped")
                await bot.say(ending)
                await bot.say(ending)  # as after a reconnect
            await check.settle(_LINGER_S)
        await check.play([check.short_match(game)])
        await check.settle()


# ---- Other forms of a message, for `speaking`


def reversed_keys(message: dict[str, Any]) -> dict[str, Any]:
    """The message with all keys in the opposite order."""

    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(item) for item in value] if isinstance(value, list) else value

    return {key: turned(message[key]) for key in reversed(message)}


def with_more_fields(message: dict[str, Any]) -> dict[str, Any]:
    """The message with unknown fields in every map, except in `legal`, whose maps are answers."""

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
