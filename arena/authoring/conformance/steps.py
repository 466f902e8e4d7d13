"""The steps of `arena check` in which messages are exchanged: what it says, how it plays, what is odd about some messages.

A step takes the sitting, returns a line about what was done, and raises `Failed` or `StepSkipped`. What happens to the connection is in
`arena/authoring/conformance/connection_steps.py`.
"""

from __future__ import annotations

from math import ceil
from statistics import median
from typing import Any

import msgspec

from arena.authoring.conformance import Hint, StepIncomplete, StepSkipped
from arena.authoring.conformance.legal_shapes import SHAPES, SHORT, VARIATIONS
from arena.authoring.conformance.session import CheckSession
from arena.authoring.conformance.table import CheckMatch
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
    "settings_of",
    "starts",
    "tables",
    "unknown_fields",
    "with_more_fields",
]

_PLAY_S = 60.0  # a bot that decides within its limits could take an hour
_LEGAL_S = 30.0
_MOST_MATCHES = 60  # until a shape of `legal` has not come up
_AT_ONCE = 64
_TABLES_S = 60.0  # a slow bot gets as many as it can play in that time
_QUESTIONS = 12  # in most short matches
_REFUSALS = 20  # chance takes the same one of two again and again once in a million times
_LINGER_S = 0.2  # for a bot that leaves at `over`
FOREIGN = "Čapek — 李 ♠"
_FOREIGN_NAME = "Čapek-李"
_ARRAY_BYTES = 128 * 1024  # of the largest array that an arena sends

_SPARE = {"later": {"version": 2, "list": [1, None, "x"]}, "spare": None}


async def starts(sitting: CheckSession) -> str:
    """It is started, and is heard of."""
    await sitting.bot.launch()
    await sitting.bot.arrive()
    return "" if sitting.bot.is_stdio else f"at {sitting.bot.endpoint.url}"


async def hello(sitting: CheckSession) -> str:
    """Its first message."""
    said = await sitting.bot.meet()
    if not sitting.games:
        wanted = " or ".join(sitting.wanted)
        expected = f"`games` with {wanted}, which --game asks for"
        came = f"it offers {', '.join(said.games)}"
        raise sitting.bot.failure(expected, came, Hint.GAMES)
    await sitting.settle()
    tables = f", tables {said.tables}" if said.tables > 1 else ""
    return f"{said.name}: {' '.join(said.games)}{tables}{', batch' if said.batch else ''}"


async def encoding(sitting: CheckSession) -> str:
    """Numbers are whole in its answers; it reads what any JSON library reads."""
    bot = sitting.bot
    for game in sitting.games:
        await sitting.play([sitting.table(game, SHORT[game])], lenient=True)
    await sitting.settle()
    with bot.speaking(dress=reversed_keys, is_spaced=True, blame=Hint.JSON_LIBRARY):
        table = sitting.table(sitting.handy, SHORT[sitting.handy])
        await sitting.play([table], lenient=True)
        table = sitting.table(sitting.handy, SHORT[sitting.handy])
        await sitting.invite([table])
        if await sitting.ask(table):
            sitting.judge(table, await sitting.value(table), lenient=True)
            await bot.say(table.end(Ending.VOID, None, FOREIGN))
        await sitting.settle()
    if bot.program is not None:
        with bot.speaking(blame=Hint.NAME):
            await sitting.fresh(_FOREIGN_NAME)
            table = sitting.table(sitting.handy, SHORT[sitting.handy])
            await sitting.play([table], lenient=True)
            await sitting.settle()
    return bot.encoding.value


async def unknown_fields(sitting: CheckSession) -> str:
    """It ignores what it does not know, from `welcome` to `over`."""
    bot = sitting.bot
    with bot.speaking(dress=with_more_fields, blame=Hint.STRICT):
        if bot.program is not None:
            await sitting.fresh()
        for game in sitting.games:
            await sitting.play([sitting.table(game, SHORT[game])], lenient=True)
        await sitting.settle()
    return ""


async def play(sitting: CheckSession, game: str) -> str:
    """Rounds by the real rules, against house bots."""
    seats = game_named(game).seats
    until = min(sitting.now + _PLAY_S, sitting.until)
    rounds = decisions = matches = 0
    while rounds < sitting.rounds and sitting.now < until:
        sitting.progress = f"{rounds:,} of {sitting.rounds:,} rounds"
        most = min(sitting.rounds - rounds, ceil(sitting.rounds / seats))
        table = sitting.table(game, settings_of(game, most), matches % seats)
        await sitting.play([table], measured=True, until=until)
        matches += 1
        rounds += table.rounds
        decisions += table.asked
    await sitting.settle()
    sitting.played.add(game)
    decided = f"{decisions:,} decision{'' if decisions == 1 else 's'}"
    if rounds < sitting.rounds:
        text = f"{rounds:,} of {sitting.rounds:,} rounds, {decided}: no time for more"
        raise StepIncomplete(text, rounds=rounds)
    return f"{rounds:,} round{'' if rounds == 1 else 's'}, {decided}"


def settings_of(game: str, rounds: int) -> dict[str, object]:
    """Those of a match of at most that many rounds, or nearly."""
    match game:
        case "ace_king_queen":
            return {"hands": rounds}
        case "three_card_poker":
            return {"rounds": rounds}
        case "blackjack":
            return {"hands": rounds, "shuffle": "uniform"}
        case "high_low":  # a shuffle has ten rounds
            return {"max_shuffles": ceil(rounds / 10), "gap": 1_000_000_000}
        case _:
            return {"max_rounds": min(rounds, 100)}


async def legal(sitting: CheckSession, game: str) -> str:
    """Every shape of `legal`."""
    missing = list(SHAPES[game])
    until = min(sitting.now + _LEGAL_S, sitting.until)

    def watch(question: Question[Any]) -> None:
        missing[:] = [shape for shape in missing if not shape.is_of(question)]

    matches = 0
    variations = VARIATIONS[game]
    while missing and matches < _MOST_MATCHES and sitting.now < until:
        sitting.progress = f"{len(SHAPES[game]) - len(missing)} of {len(SHAPES[game])} shapes"
        one = variations[matches % len(variations)]
        seat = matches % game_named(game).seats
        settings = one.settings_for(seat)
        table = sitting.table(game, settings, seat, one.others, one.wanted)
        await sitting.play([table], watch=watch, until=until)
        matches += 1
    await sitting.settle()
    if not missing:
        return f"{len(SHAPES[game])} shapes"
    names = tuple(shape.name for shape in missing)
    text = f"did not come up in {matches} match{'' if matches == 1 else 'es'}: {', '.join(names)}"
    if sitting.now < until:  # its own play may never lead there
        return text
    raise StepIncomplete(f"{text}: no time for more", missing=names)


async def batch(sitting: CheckSession) -> str:
    """Frames that hold arrays."""
    said = sitting.bot.hello
    assert said is not None, "it is here"
    if not said.batch:
        raise StepSkipped("its `hello` does not say `batch`")
    with sitting.bot.speaking(blame=Hint.BATCH):
        game = sitting.handy
        await sitting.play([sitting.table(game, SHORT[game])], joined=True)
        first, second = (sitting.table(game, SHORT[game]) for _ in range(2))
        await sitting.invite([first], joined=True)
        if await sitting.ask(first):
            await sitting.answer(first)
        # The end of one match and the next invitation: that is possible with one table, too.
        await sitting.change_over(first, second)
        await sitting.settle()
    with sitting.bot.speaking(blame=Hint.MESSAGE_LIMIT):
        table = sitting.table(game, SHORT[game])
        await sitting.invite([table], many(table), joined=True)
        await sitting.finish(table)
        await sitting.settle()
    sitting.reads_arrays = True
    return f"up to {_ARRAY_BYTES >> 10} KiB"


_FAR = 1_000_000  # numbers that no match of a check has


def many(table: CheckMatch) -> list[ArenaMessage]:
    """Matches that end before they begin: with the invitation that follows as many as fit into one array.

    That is how many a bot with one table can be sent at once. No single message comes near that size by the rules: what a seat has not been
    told yet is some rounds.
    """
    invitation = table.invitation
    nothing = (0,) * len(invitation.seats)
    gone = Termination(Ending.VOID, None, "another seat did not come")
    messages: list[ArenaMessage] = []
    left = _ARRAY_BYTES - len(encode(invitation, Encoding.JSON)) - len("[]")
    while True:
        match = f"{table.run}-{_FAR + len(messages) // 2}.{invitation.seat}"
        pair = (
            msgspec.structs.replace(invitation, match=match),
            Over(match, (), nothing, gone, None),
        )
        left -= sum(len(encode(message, Encoding.JSON)) + 1 for message in pair)
        if left < 0:
            return messages
        messages += pair


async def tables(sitting: CheckSession) -> str:
    """Several matches at once, of all its games."""
    said = sitting.bot.hello
    assert said is not None, "it is here"
    if said.tables < 2:
        raise StepSkipped("its `hello` does not say `tables`")
    count = min(said.tables, sitting.bot.limits.tables, _AT_ONCE)
    if sitting.times_ms:
        match_s = _QUESTIONS * median(sitting.times_ms) / 1000
        count = max(2, min(count, int(_TABLES_S / max(match_s, 0.001))))
    with sitting.bot.speaking(blame=Hint.TABLES):
        await sitting.play(_mixed(sitting, count), joined=sitting.reads_arrays)
        await sitting.settle()
    return f"{count} matches at once, of {said.tables} that it says"


def _mixed(sitting: CheckSession, count: int) -> list[Any]:
    """Short matches of all games in turn."""
    games = sitting.games
    return [
        sitting.table(game, SHORT[game])
        for game in (games[number % len(games)] for number in range(count))
    ]


async def repeated_question(sitting: CheckSession) -> str:
    """A `match` and an `ask` that come again."""
    bot = sitting.bot
    with bot.speaking(blame=Hint.REPEATED):
        table = sitting.table(sitting.handy, SHORT[sitting.handy])
        await sitting.invite([table])
        await sitting.invite_again(table)
        while await sitting.ask(table):
            assert table.ask is not None, "it has just been sent"
            await sitting.value(table)
            await bot.say(table.ask)
            await sitting.answer(table)
        await sitting.settle()
    return ""


async def refusal(sitting: CheckSession) -> str:
    """In practice an answer is refused, and given again."""
    bot = sitting.bot
    if not bot.is_practice:
        if bot.program is None:
            raise StepSkipped("it would have to be started again, for practice")
        bot.practice = True
        await sitting.fresh()
    with bot.speaking(blame=Hint.REFUSAL):
        table = sitting.table(sitting.handy, SHORT[sitting.handy])
        await sitting.invite([table])
        while await sitting.ask(table):
            assert table.ask is not None, "it has just been sent"
            await _refuse(sitting, table, table.ask)
        await sitting.settle()
    return ""


async def _refuse(sitting: CheckSession, table: CheckMatch, ask: Ask) -> None:
    """Refuse the answer to a question until another one comes, where there is one.

    Nobody knows what a bot would answer that is not legal, so a legal answer is refused. Who takes any legal one may take the same by
    chance, or the first or the last one of the list: its order is another one each time.
    """
    question = ask.question
    refused = await sitting.value(table)
    for number in range(_REFUSALS):
        text = f"answered {shorten(refused)} to {question.kind}, which is refused for the check"
        legal = reordered(question, refused, first=number % 2 > 0)
        await sitting.bot.say(Refused("illegal", text, table.id, ask.ask, legal))
        again = await sitting.value(table)
        if again != refused or isinstance(legal, Range) or len(legal) == 1:
            sitting.judge(table, again)
            return
    expected = "another answer than the one that was refused"
    raise sitting.bot.failure(expected, shorten(refused), Hint.REFUSAL)


def reordered(question: Question[Any], value: object, *, first: bool) -> Legal:
    """What is legal, with an answer in the first or the last place."""
    legal = question.choices
    if isinstance(legal, Range):
        return legal
    try:
        given = question.check(value)
    except IllegalAnswer:
        return legal
    others = tuple(choice for choice in legal if choice != given)
    if len(others) == len(legal):  # melds of its own
        return legal
    return (given, *others) if first else (*others, given)


async def over(sitting: CheckSession) -> str:
    """It stays after every kind of end."""
    bot = sitting.bot
    game = sitting.handy
    with bot.speaking(blame=Hint.LEAVES_AT_OVER):
        scores = (0,) * game_named(game).seats
        gone = Termination(Ending.VOID, None, "it was over while you were away")
        await bot.say(Over(f"{sitting.run}-0.0", (), scores, gone, None))
        for kind in (Ending.COMPLETED, Ending.VOID, Ending.CRASH):
            table = sitting.table(game, SHORT[game])
            await sitting.invite([table])
            if kind is Ending.COMPLETED:
                await sitting.finish(table)
            elif await sitting.ask(table):
                others = len(scores) > 1 and kind is Ending.CRASH
                seat = (table.seat + 1) % len(scores) if others else None
                ending = table.end(kind if others else Ending.VOID, seat, "stopped")
                await bot.say(ending)
                await bot.say(ending)  # as after a reconnect
            await sitting.settle(_LINGER_S)
        await sitting.play([sitting.table(game, SHORT[game])])
        await sitting.settle()
    return ""


# ---- How messages look


def reversed_keys(message: dict[str, Any]) -> dict[str, Any]:
    """The same with all keys in the opposite order."""

    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(item) for item in value] if isinstance(value, list) else value

    return {key: turned(message[key]) for key in reversed(message)}


def with_more_fields(message: dict[str, Any]) -> dict[str, Any]:
    """The same with fields that nobody knows, in every map but those of `legal`, which are answers."""

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
