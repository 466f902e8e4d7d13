"""The server as a bot's author meets it, every frame made by hand; all in virtual time.

What only a kernel does is in `tests/e2e/test_sockets.py`, which tokens and names are accepted in
`test_admission.py`, and which frames can be read in `tests/protocol/test_codec.py`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request

from arena.games.catalogue import GAMES
from arena.games.replay import replay
from arena.games.verdict import Finding
from arena.referee.bot_session import BotSession, MatchSeat
from protocol.messages import Ending, Mechanism
from tests.support.gateway_bots import (
    HANDSHAKE,
    SHORT,
    AskedBot,
    GatewayArena,
    Message,
    RawBot,
    all_of,
    frame,
    hello_frame,
    in_arena,
    text_frame,
)
from tests.support.memory_network import line_of
from tests.support.not_none import not_none
from tests.support.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time


async def all_play(*bots: RawBot) -> None:
    await asyncio.gather(*(bot.play() for bot in bots))


def kind_of(over: Message) -> tuple[str, int | None]:
    return over["termination"]["kind"], over["termination"]["seat"]


# --- matches ---


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("game", GAMES)
async def test_who_picks_from_legal_plays_every_game_in_any_encoding(
    arena: GatewayArena, game: str, first: int
) -> None:
    """Every other bot speaks MessagePack, in arrays: both encodings meet at one table."""
    names = [f"bot {seat}" for seat in range(GAMES[game].seats)]
    async with AsyncExitStack() as stack:
        bots = []
        for seat, name in enumerate(names):
            is_packed = (seat + first) % 2 == 1
            encoding = "msgpack" if is_packed else "json"
            coming = arena.bot(name, encoding=encoding, batch=is_packed)
            bots.append(await stack.enter_async_context(coming))
        table = arena.open(game, *names, **SHORT[game])
        await all_play(*bots)
        result, verdict = await arena.result(table)

        assert verdict is None
        assert result.termination.kind is Ending.COMPLETED
        assert replay(result.record) == result
        for bot in bots:
            [over] = bot.overs
            assert tuple(over["scores"]) == result.scores
            assert over["reveal"]["seed"] == result.record.seed
            assert over["reveal"]["nonces"] == [f"by {name}" for name in names]


async def test_the_headers_of_a_bot_that_is_here_are_forgotten(arena: GatewayArena) -> None:
    async with arena.bot() as bot:
        assert bot.websocket.request is not None
        bot.websocket.request.headers.clear()  # the client's own
        gc.collect()  # those of other tests
        requests = [thing for thing in gc.get_objects() if type(thing) is Request]

        # At 5,000 bots they were half of a join's cost.
        assert [[*request.headers.raw_items()] for request in requests if request.headers] == []


async def test_a_message_may_come_in_fragments(arena: GatewayArena) -> None:
    async with arena.stranger("ann") as ann:
        hello = json.dumps(ann.a_hello())
        await ann.websocket.send(["", *hello, ""])

        welcome = await ann.hears("welcome")
        assert (welcome["bot"], welcome["practice"]) == ("ann", False)

        await ann.websocket.send(['{"type":', ' "goodbye"}'])

        assert await ann.closed() == 1000


async def test_the_bots_own_note_is_in_the_record(arena: GatewayArena) -> None:
    async with arena.bot("ann") as ann:
        table = arena.open("blackjack", "ann", hands=1)
        await ann.ready()
        answer = ann.an_answer(await ann.hears("ask"), 5)
        await ann.say(**answer, note="five, as ever")
        await ann.play()
        result, _ = await arena.result(table)

        assert result.record.notes == ((0, "five, as ever"),)


# --- hello ---


@pytest.mark.parametrize(
    ("fields", "code", "closed"),
    [
        ({"protocol": 2}, "version", 4001),
        ({"games": ["ace_king_queen", "chess"]}, "games", 4001),
        ({"resume": "ü" * 32}, "session", 4001),
        ({"name": "red\x1b[31m"}, "malformed", 1002),
        ({"tables": "1"}, "malformed", 1002),
        ({"type": "answer"}, "malformed", 1002),
    ],
)
async def test_a_hello_that_cannot_be_accepted_is_refused_with_the_reason(
    arena: GatewayArena, fields: dict[str, Any], code: str, closed: int
) -> None:
    said, text, close_code = await arena.refuses("ann", **fields)

    assert (said, close_code) == (code, closed)
    assert text.isprintable()
    assert arena.gateway.players == {}
    await arena.still_plays()


def hellos(bot: RawBot, *changed: dict[str, Any]) -> list[Message]:
    return [bot.a_hello(**fields) for fields in changed]


@pytest.mark.parametrize(
    ("says", "code"),
    [
        (lambda bot: [{"type": "goodbye"}], "malformed"),
        (lambda bot: hellos(bot, {"protocol": 2}, {}), "version"),
        (lambda bot: hellos(bot, *[{}] * 100), "malformed"),
    ],
    ids=["no hello", "a good one after a bad one", "a second one"],
)
async def test_what_begins_with_anything_but_one_good_hello_is_refused(
    arena: GatewayArena, says: Callable[[RawBot], list[Message]], code: str
) -> None:
    async with arena.stranger("ann") as ann:
        await ann.say(*says(ann))

        assert (await ann.refused())[0] == code
        assert arena.gateway.players == {}


async def test_nothing_counts_that_comes_in_a_later_frame_either(arena: GatewayArena) -> None:
    said = await arena.answer_to(HANDSHAKE + hello_frame("ann", protocol=2) + hello_frame("ann"))

    assert said.startswith(b"HTTP/1.1 101 ")
    assert b'"code":"version"' in said
    assert b"welcome" not in said


async def test_a_name_is_anothers_until_its_bot_says_goodbye(arena: GatewayArena) -> None:
    async with arena.bot("ann") as ann:
        text = "a bot named 'ann' is here already; choose another name"

        assert await arena.refuses("ann") == ("name", text, 4001)
        assert arena.plays("ann")

        await ann.say(type="goodbye")

        assert await ann.closed() == 1000
    async with arena.bot("ann") as ann:
        arena.open("blackjack", "ann", hands=1)
        await ann.play()


async def test_who_leaves_late_does_not_take_its_successor_along(arena: GatewayArena) -> None:
    async with arena.bot("ann") as ann:
        arena.gateway.dismiss(
            "ann", Finding(kind=Ending.CRASH, text="ended", mechanism=Mechanism.EXIT)
        )
        async with arena.bot("ann") as successor:
            await ann.closed()
            await asyncio.sleep(5)  # the arena has noticed
            arena.open("blackjack", "ann", hands=1)
            await successor.play()


# --- offences ---


@dataclass(frozen=True)
class WireOffence:
    """What a rogue does while it is asked, and what it is out for."""

    does: Callable[[AskedBot], Awaitable[None]]
    kind: str
    why: str = ""
    limits: dict[str, int] = field(default_factory=dict)
    practice: bool = False
    closed: int | None = None
    stays: bool = False


def sends(payload: str | bytes | list[str], text: bool | None = None) -> Any:
    return lambda asked: asked.bot.websocket.send(payload, text=text)


def answers(value: object, *first: Message) -> Any:
    """It answers its question, perhaps after other messages in the same frame."""
    return lambda asked: asked.bot.say(*first, asked.bot.an_answer(asked.ask, value))


def writes(data: bytes) -> Any:
    async def does(asked: AskedBot) -> None:
        asked.bot.websocket.transport.write(data)

    return does


def closes(code: int, reason: str = "") -> Any:
    return lambda asked: asked.bot.websocket.close(code, reason)


async def floods_with_nonsense(asked: AskedBot) -> None:
    for _ in range(101):
        await asked.bot.websocket.send("nonsense")


async def floods_with_large_messages(asked: AskedBot) -> None:
    """Far fewer than may come to nothing."""
    ready = json.dumps({"type": "ready", "match": asked.ask["match"], "nonce": "n"})
    for _ in range(30):
        await asked.bot.websocket.send(ready + " " * 12_000)


async def pads_its_answer(asked: AskedBot) -> None:
    """A legal one, which takes the arena as long as a thousand."""
    await asked.bot.websocket.send(json.dumps(asked.bot.an_answer(asked.ask)) + " " * (1 << 19))


async def does_nothing(asked: AskedBot) -> None:
    """Never answer."""


MALFORMED: dict[str, tuple[str | bytes, bool | None]] = {
    "no JSON": ("knock knock", None),
    "no UTF-8": (b'{"type": "\xff"}', True),
    "binary junk": (os.urandom(500), None),
}
VIOLATIONS = {
    "no mask": frame(0x81, b"{}", masked=False),
    "compressed, which was not agreed": frame(0xC1, b"\xaa\x56\x0a"),
    "an opcode that does not exist": frame(0x83, b"{}"),
    "a continuation of nothing": frame(0x80, b"{}"),
    "a new message within a message": frame(0x01, b"{") + frame(0x81, b"{}"),
    "a ping in fragments": frame(0x09, b"x"),
    "a close code that does not exist": frame(0x88, struct.pack("!H", 5)),
    "a close reason that is no UTF-8": frame(0x88, struct.pack("!H", 1000) + b"\xff"),
}
FEW, SOON = {"unanswered": 100}, {"grace_ms": 200}
OFFENCES: dict[str, WireOffence] = {
    **{
        f"J2 {what}": WireOffence(sends(payload, text), "malformed", closed=1002)
        for what, (payload, text) in MALFORMED.items()
    },
    **{
        f"J2 on the wire: {what}": WireOffence(writes(data), "malformed", "not a WebSocket frame")
        for what, data in VIOLATIONS.items()
    },
    "J2 a frame beyond the limit": WireOffence(
        sends("x" * 20_000), "oversize", "at most 16384 bytes", closed=1009
    ),
    "J2 fragments beyond the limit": WireOffence(sends(["x" * 10_000] * 2), "oversize"),
    "in practice a frame beyond the limit": WireOffence(
        sends("x" * 20_000), "oversize", practice=True, closed=1009
    ),
    "no answer": WireOffence(
        does_nothing, "timeout", limits={"decision_ms": 300, "bank_ms": 200, "hard_ms": 400}
    ),
    "a goodbye, after which nothing counts": WireOffence(
        answers("all in", *[{"type": "goodbye"}] * 2), "disconnect", closed=1000
    ),
    **{
        f"J1 an illegal answer: {value}": WireOffence(
            answers(value), "illegal", "legal: bet, check", stays=True
        )
        for value in ("raise", {"bet": 1})
    },
    "J2 a crash": WireOffence(
        closes(1011, "KeyError: \x1b[31m'deck'"),
        "crash",
        "KeyError: \N{REPLACEMENT CHARACTER}[31m'deck'",
    ),
    "J2 a crash without a reason": WireOffence(closes(1011), "crash", "it gave no reason"),
    "a clean close": WireOffence(closes(1000), "disconnect", "within 200 ms", SOON),
    "J2 a connection that stays lost": WireOffence(
        lambda asked: asked.bot.vanish(), "disconnect", "did not come back within 200 ms", SOON
    ),
    **{
        f"a flood of {what}": WireOffence(
            writes(begun + trifle * 1_001), "malformed", "100 mess", FEW
        )
        for what, begun, trifle in (
            ("empty fragments", frame(0x01), frame(0x00)),
            ("pings", b"", frame(0x89)),
            ("pongs", b"", frame(0x8A, b"x" * 16)),
            ("empty arrays", b"", text_frame(b"[]")),
        )
    },
    "a flood of large messages, which is one sooner": WireOffence(
        floods_with_large_messages, "malformed", "100 messages a second", FEW
    ),
    "a flood of spaces around legal answers": WireOffence(
        pads_its_answer, "malformed", "100 messages a second", {**FEW, "frame_bytes": 1 << 20}
    ),
    "in practice a flood of nonsense": WireOffence(
        floods_with_nonsense, "malformed", limits={"unanswered": 10}, practice=True, closed=1002
    ),
}


@pytest.mark.parametrize("what", OFFENCES)
async def test_who_offends_loses_its_match_and_harms_nobody_else(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    offence = OFFENCES[what]
    monkeypatch.setattr("arena.referee.budget.ON_END", 1)
    async with in_arena(**offence.limits) as arena:
        arena.gateway.referee.practice = offence.practice
        async with arena.bots("cem", "dora") as others, arena.asked("rogue", hands=1000) as asked:
            other = arena.open("ace_king_queen", "cem", "dora", hands=100)
            beside = asyncio.create_task(all_play(*others))
            with suppress(ConnectionClosed):
                await offence.does(asked)
            code, text, _ = await asked.bot.refused(until_over=True)
            [over] = await asked.bens
            await beside
            result, verdict = await arena.result(asked.table)

            assert (await arena.result(other))[0].termination.kind is Ending.COMPLETED
            assert kind_of(over) == (offence.kind, 0)
            assert over["termination"]["text"] == "", "the others learn one word"
            assert result.winner == 1
            assert verdict is not None
            assert (verdict.bot, verdict.seat, verdict.kind) == ("rogue", 0, offence.kind)
            assert offence.why in verdict.text
            assert verdict.advice
            assert text.isprintable()
            if offence.kind in ("malformed", "oversize"):
                assert code == offence.kind
            if offence.closed is not None:
                assert await asked.bot.closed() == offence.closed
            if offence.stays:
                arena.open("ace_king_queen", "rogue", "ben", hands=2)
                await all_play(asked.bot, asked.ben)
        await arena.still_plays()


async def test_a_stranger_gets_less_memory_than_a_bot() -> None:
    async with in_arena(frame_bytes=64 * 1024) as arena:
        async with arena.stranger("ann") as ann:
            await ann.websocket.send(" " * 20_000 + json.dumps(ann.a_hello()))

            assert (await ann.refused())[0] == "oversize"
        async with arena.bot("ann") as ann:
            arena.open("blackjack", "ann", hands=1)
            match = (await ann.hears("match"))["match"]
            ready = json.dumps({"type": "ready", "match": match, "nonce": "n"})
            await ann.websocket.send(" " * 20_000 + ready)
            await ann.play()


async def test_a_frame_that_claims_to_be_huge_takes_no_memory(arena: GatewayArena) -> None:
    said = await arena.answer_to(HANDSHAKE + struct.pack("!BBQ", 0x82, 0xFF, 1 << 62))

    assert b'"code":"oversize"' in said


# --- other people's seats, and messages that come twice ---


@asynccontextmanager
async def two_tables(arena: GatewayArena) -> AsyncIterator[list[RawBot]]:
    """Ann plays against Ben, and Cem against Dora."""
    async with arena.bots("ann", "ben", "cem", "dora") as bots:
        arena.open("ace_king_queen", "ann", "ben", hands=4)
        arena.open("ace_king_queen", "cem", "dora", hands=4)
        yield bots


@pytest.mark.parametrize("kind", ["ready", "answer"])
async def test_nobody_speaks_for_anothers_chair(arena: GatewayArena, kind: str) -> None:
    async with two_tables(arena) as (ann, ben, cem, dora):
        bens = asyncio.create_task(ben.play())
        match = (await cem.hears("match"))["match"]
        ready = {"type": "ready", "match": match, "nonce": "mine"}
        answer = {"type": "answer", "match": match, "ask": f"{match}:1", "value": "check"}
        if kind == "answer":
            await cem.say(ready)
            await dora.ready()
            await cem.hears("ask")
        await ann.ready()
        await ann.say(answer if kind == "answer" else {**ready, "nonce": "not mine"})
        code, text, _ = await ann.refused()
        await bens

        assert code == "malformed"
        assert f"match {match!r}: there is no such match here" in text

        await cem.say(answer if kind == "answer" else ready)
        await all_play(cem, dora)
        assert kind_of(cem.overs[0]) == ("completed", None)


@pytest.mark.parametrize("ask", ["{match}:1", "{match}:0", "{match}:９", "x", ":1"])
async def test_an_answer_to_what_was_never_asked_is_out_of_turn(
    arena: GatewayArena, ask: str
) -> None:
    async with arena.bots("ann", "rogue") as (ann, rogue):
        arena.open("ace_king_queen", "ann", "rogue")
        anns = None if ask == "{match}:1" else asyncio.create_task(ann.play())
        match = (await rogue.ready())["match"]
        await rogue.say(type="answer", match=match, ask=ask.format(match=match), value="fold")

        assert (await rogue.refused())[0] == "malformed"
        if anns is not None:  # else Ann is not ready, so that the first question is never asked
            assert kind_of((await anns)[0]) == ("malformed", 1)


async def test_an_answer_or_a_ready_that_comes_again_counts_once(arena: GatewayArena) -> None:
    async with arena.bot("ann") as ann:
        table = arena.open("blackjack", "ann", hands=20)
        match = (await ann.hears("match"))["match"]
        ready = {"type": "ready", "match": match, "nonce": "one"}
        await ann.say(ready, {**ready, "nonce": "two"}, {**ready, "nonce": "three"})
        said: list[Message] = []
        while (message := await ann.hear())["type"] == "ask":
            said.append(ann.an_answer(message))
            await ann.say(*said[::-1], *said, {**ready, "nonce": "late"})
        await ann.say(*said, ready)  # now that it is over
        result, verdict = await arena.result(table)

        assert verdict is None
        assert result.record.answers == tuple(answer["value"] for answer in said)
        assert result.record.nonces == ("one",)
    await arena.still_plays()


# --- lost connections ---


async def test_a_session_survives_as_many_losses_as_there_are_frames(arena: GatewayArena) -> None:
    async with arena.bot("ben") as ben, AsyncExitStack() as stack:
        ann = await stack.enter_async_context(arena.bot("ann"))
        table = arena.open("ace_king_queen", "ann", "ben", hands=6)
        bens = asyncio.create_task(ben.play())
        answers: dict[str, Any] = {}
        over = None
        while over is None:
            message = await ann.hear()
            match message["type"]:
                case "match":
                    await ann.say(type="ready", match=message["match"], nonce="n")
                    continue
                case "ask":
                    value = answers.setdefault(message["ask"], ann.choose(message["legal"]))
                    await ann.answer(message, value)
                case "over":
                    over = message
            await ann.vanish()  # the answer may or may not have got through
            ann = await stack.enter_async_context(arena.back(ann))
        await bens
        result, verdict = await arena.result(table)

        assert verdict is None
        assert result.termination.kind is Ending.COMPLETED
        assert replay(result.record) == result


async def test_J3_many_tables_on_one_lost_connection_are_one_offence() -> None:
    async with in_arena(grace_ms=200) as arena:
        offences = []
        arena.gateway.on_offence = lambda name, finding: offences.append((name, finding.kind))
        async with arena.bot("ann", tables=8) as ann:
            tables = [arena.open("blackjack", "ann", hands=4) for _ in range(8)]
            for _ in tables:
                await ann.ready()
            await ann.vanish()
            for table in tables:
                _, verdict = await arena.result(table)
                assert verdict is not None
                assert verdict.kind is Ending.DISCONNECT
                assert "within 200 ms in all" in verdict.text

        assert offences == [("ann", Ending.DISCONNECT)]


# --- lost memories ---


async def plays_carefully(bot: RawBot, answers: int) -> list[tuple[Any, Any]]:
    """So many questions with careful answers, so that the match goes on; and the next question,
    without one.
    """
    told: list[tuple[Any, Any]] = []
    for _ in range(answers):
        ask = await bot.hears("ask")
        legal = ask["legal"]
        value = legal["min"] if isinstance(legal, dict) else legal[0]
        told.append((ask, value))
        await bot.answer(ask, value)
    return [*told, (await bot.hears("ask"), None)]


def as_past(ask: Message, value: Any) -> Message:
    """What is told of a question later on."""
    rest = {key: ask[key] for key in ask if key not in ("bank_ms", "decision_ms")}
    return {**rest, "type": "past", "answer": value}


@pytest.mark.parametrize(("encoding", "first"), [("json", 0), ("msgpack", 3), ("json", 9)])
async def test_a_program_that_starts_again_is_told_what_it_has_forgotten(
    arena: GatewayArena, encoding: str, first: int
) -> None:
    async with arena.bot("ann") as ann:
        table = arena.open("three_card_poker", "ann", rounds=10)
        invitation = await ann.ready()
        *told, (asked, _) = await plays_carefully(ann, 9)
        await ann.vanish()
    async with arena.stranger("ann", encoding=encoding, batch=encoding == "msgpack") as back:
        await back.hello(**{"resume": ann.session, "from": first})

        assert await back.ready() == invitation
        for ask, value in told[first:]:
            assert await back.hear() == as_past(ask, value)
        assert await back.hears("match") == invitation
        assert await back.hears("ask") == asked

        await back.answer(asked)
        await back.play()
        result, verdict = await arena.result(table)

        assert verdict is None
        assert result.record.answers[:9] == tuple(value for _, value in told)
        assert replay(result.record) == result


# --- slow readers and links ---


async def test_a_long_past_does_not_overflow_the_buffer_of_a_slow_reader() -> None:
    answers = 900  # some 200 kB
    virtual_loop().network.window_bytes = 16_384

    async with in_arena(buffer_bytes=120_000) as arena:
        async with arena.bot("ann") as ann:
            table = arena.open("three_card_poker", "ann", rounds=1000)
            await ann.ready()
            *told, (asked, _) = await plays_carefully(ann, answers)
            await ann.vanish()
        async with connect(
            arena.url, compression=None, max_queue=1, ping_interval=None
        ) as websocket:
            back = type(ann)(websocket, "ann")
            await back.say(**back.a_hello(**{"resume": ann.session, "from": 0}))
            await arena.until(lambda: arena.plays("ann"))
            wire = not_none(arena.gateway.players["ann"].connection)
            await arena.still_plays()

            assert wire.is_behind
            assert table.id not in arena.over

            await back.hears("welcome")
            await back.ready()
            for ask, value in told:
                assert await back.hear() == as_past(ask, value)
            await back.hears("match")
            assert await back.hears("ask") == asked

            await back.answer(asked)
            await back.hears("ask")


async def test_J2_a_reader_that_never_reads_is_cut() -> None:
    """It floods the arena with pings and never reads the pongs."""
    virtual_loop().network.window_bytes = 16_384
    async with in_arena(buffer_bytes=20_000, unanswered=10**9) as arena, arena.bot("deaf") as deaf:
        table = arena.open("blackjack", "deaf")
        transport = deaf.websocket.transport
        transport.pause_reading()
        while table.id not in arena.over:
            transport.write(frame(0x89, b"x" * 125) * 50)
            await asyncio.sleep(0.01)
        result, verdict = await arena.result(table)

        assert result.termination.kind is Ending.OVERFLOW
        assert verdict is not None
        assert "at most 20,000 may" in verdict.text
        await arena.still_plays()


async def test_J7_the_link_of_an_idle_bot_is_measured(arena: GatewayArena) -> None:
    async with arena.bot("ann") as ann:
        line_of(ann.websocket.transport).latency_s = 0.04
        await asyncio.sleep(2)
        player = arena.gateway.players["ann"]

        assert player.link.is_known
        assert player.link.floor_ms == pytest.approx(80)

        table = arena.open("blackjack", "ann")
        await ann.ready()
        await ann.answer(await ann.hears("ask"), "all in")
        over = await ann.hears("over")
        _, verdict = await arena.result(table)

        assert verdict is not None
        assert verdict.min_rtt_ms == 80  # J4: the kernel's own measure is evidence
        assert over["verdict"]["min_rtt_ms"] == 80


async def test_answering_our_pings_is_no_flood() -> None:
    async with in_arena(unanswered=1) as arena, arena.bot("ann") as ann:
        await asyncio.sleep(15)  # before the client's own first ping
        wire = not_none(arena.gateway.players["ann"].connection)

        assert wire.useless == 0

        arena.open("blackjack", "ann", hands=1)
        await ann.play()


@pytest.mark.virtual_time(limit_s=120)
async def test_who_vanishes_without_a_word_while_idle_has_lost_its_connection(
    arena: GatewayArena,
) -> None:
    async with arena.bot("ann") as ann:
        await asyncio.sleep(10)
        line = line_of(ann.websocket.transport)
        line.is_held = True
        began_s = virtual_loop().time()
        await arena.until(lambda: not arena.plays("ann"))

        assert virtual_loop().time() - began_s < 60
        ann.websocket.transport.abort()


# --- floods ---


async def test_a_large_frame_that_comes_to_nothing_is_paid_by_the_next_connection() -> None:
    """A token has one budget: to be out for a large frame, and to come again, brings no new one."""
    large: list[list[int]] = [[]] * 60_000

    async with in_arena(frame_bytes=1 << 20, unanswered=10) as arena:
        async with arena.stranger("rogue") as rogue:
            await rogue.hello(token="a secret")
            await rogue.say(type="answer", match="none", ask="none:1", value=large)

            assert (await rogue.refused())[0] == "malformed"
        async with arena.stranger("rogue") as again:
            await again.hello(token="a secret")
            budget = not_none(arena.gateway.players["rogue"].budget)

            assert budget.rests_until(virtual_loop().time()) is not None


async def test_who_repeats_its_answers_after_a_resume_spends_nothing_once() -> None:
    async with in_arena(unanswered=5) as arena, arena.bot("ann", tables=4) as ann:
        for _ in range(4):
            arena.open("three_card_poker", "ann", rounds=5)
        matches = [(await ann.ready())["match"] for _ in range(4)]
        said: list[Message] = [
            {"type": "ready", "match": match, "nonce": "again"} for match in matches
        ]
        said += [ann.an_answer(await ann.hears("ask")) for _ in range(4)]
        await ann.say(*said[4:])
        for _ in range(4):
            await ann.hears("ask")
        player = arena.gateway.players["ann"]
        assert player.connection is not None
        budget = player.connection.budget
        await ann.vanish()
        async with arena.back(ann) as back:
            wire = not_none(player.connection)
            assert wire.budget is budget, "coming back is no way to another one"
            await back.say(*said)
            waits = [await back.hear() for _ in range(8)]
            await asyncio.sleep(0.1)

            assert wire.useless == 0

            await back.say(*said)
            await asyncio.sleep(0.1)

            assert wire.useless == len(said)

            for message in waits:
                if message["type"] == "ask":
                    await back.answer(message)
            await back.play(4)


async def test_what_comes_to_nothing_is_counted_for_each_bot() -> None:
    async with in_arena(unanswered=40) as arena, arena.bots("ann", "ben", "cem") as bots:
        for bot in bots:
            for _ in range(40):
                await bot.websocket.send("[]")
        for bot in bots:
            arena.open("blackjack", bot.name, hands=1)
            await bot.play()


# --- practice ---


async def test_in_practice_what_is_malformed_is_refused_and_the_match_goes_on(
    arena: GatewayArena,
) -> None:
    arena.gateway.referee.practice = True
    async with arena.stranger("ann") as ann:
        assert (await ann.hello())["practice"]
        table = arena.open("blackjack", "ann", hands=2)
        match = (await ann.ready())["match"]
        ask = await ann.hears("ask")

        async def refused() -> str:
            message = await ann.hears("refused")
            assert message["code"] == "malformed"
            text: str = message["text"]
            assert text.isprintable()
            return text

        for payload, text in MALFORMED.values():
            await ann.websocket.send(payload, text=text)
            await refused()
        await ann.say(type="answer", match=match, ask=f"{match}:9", value=1)
        assert "was never asked" in await refused()
        await ann.say(type="answer", match="m", ask="m:1", value=1)
        assert "there is no such match here" in await refused()
        await ann.say(**ann.a_hello())
        assert "hello may not be sent" in await refused()

        await ann.answer(ask)
        await ann.play()

        assert (await arena.result(table))[1] is None


# --- strangers ---

SILENT = {
    "nothing": b"",
    "half a request": b"GET / HTTP/1.1\r\nHost: a",
    "a handshake": HANDSHAKE,
    "a handshake and an empty array": HANDSHAKE + text_frame(b"[]"),
}


@pytest.mark.parametrize("said", SILENT)
async def test_who_does_not_say_hello_is_cut(arena: GatewayArena, said: str) -> None:
    began_s = virtual_loop().time()
    await arena.answer_to(SILENT[said])

    assert virtual_loop().time() - began_s == pytest.approx(4, abs=0.1)
    await arena.still_plays()


@pytest.mark.parametrize(
    ("first", "drip", "cut_after_s"),
    [(b"", b"X", 4), (HANDSHAKE + text_frame(b"nonsense"), text_frame(b"nonsense"), 2)],
    ids=["stranger", "refused"],
)
async def test_a_drip_of_bytes_keeps_no_connection_open(
    arena: GatewayArena, first: bytes, drip: bytes, cut_after_s: float
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", arena.port)
    began_s = virtual_loop().time()
    writer.write(first)
    gone = asyncio.create_task(all_of(reader))
    line = line_of(writer.transport)
    while not line.server.is_closing():
        writer.write(drip)
        await asyncio.sleep(0.01)
    await gone
    writer.close()

    assert virtual_loop().time() - began_s == pytest.approx(cut_after_s, abs=0.1)
    await arena.still_plays()


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.0\r\nHost: a\r\n\r\n", b"200 OK"),
        (b"GET /anything?x=1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", b"200 OK"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n", b"426 Upgrade Required"),
    ],
)
async def test_a_browser_is_told_what_this_is(
    arena: GatewayArena, request_: bytes, status: bytes
) -> None:
    said = await arena.answer_to(request_)

    assert said.startswith(b"HTTP/1.1 " + status)
    assert (b"Card Arena is running here" in said) == (status == b"200 OK")


GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
NO_REQUESTS = {
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),
    "ssh": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "empty": b"\r\n\r\n\r\n",
    "headers": b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
    "path": b"GET /" + b"x" * 100_000,
    "post": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\n" + b"\xff" * 500,
    "noise": os.urandom(100_000),
    **{
        f"{what} and more at once": request + then
        for what, request in (("a handshake", HANDSHAKE), ("a request", GET))
        for then in (b"\xff" * 50, b"\x88\x80\0\0\0\0", b"\x89\x80\0\0\0\0")
    },
}


@pytest.mark.parametrize("what", NO_REQUESTS)
async def test_what_is_no_request_is_cut(
    arena: GatewayArena, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    await arena.answer_to(NO_REQUESTS[what])
    await arena.still_plays()

    assert caplog.text == ""


async def test_compression_is_declined(arena: GatewayArena) -> None:
    async with connect(arena.url, compression="deflate") as websocket:
        assert websocket.response is not None
        assert "Sec-WebSocket-Extensions" not in websocket.response.headers


async def test_pings_are_answered_and_disturb_nobody(arena: GatewayArena) -> None:
    async with arena.bot("ann") as ann:
        ann.websocket.transport.write(frame(0x89, b"x" * 120) * 512)
        await (await ann.websocket.ping("the last"))
        arena.open("blackjack", "ann", hands=2)
        await ann.play()


# --- faults of the arena ---


async def test_J5_an_error_of_ours_voids_the_match_and_harms_nobody_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with in_arena() as arena:
        referee = arena.gateway.referee
        sound = referee.answer

        def answer(chair: MatchSeat, *rest: Any) -> None:
            if chair.player.name == "ann":
                raise ZeroDivisionError("an error of ours")
            sound(chair, *rest)

        monkeypatch.setattr(referee, "answer", answer)
        async with two_tables(arena) as (ann, ben, cem, dora):
            beside = asyncio.create_task(all_play(cem, dora))
            bens = asyncio.create_task(ben.play())
            await ann.ready()
            await ann.answer(await ann.hears("ask"))

            assert kind_of(await ann.hears("over")) == ("void", None)
            assert await ann.closed() == 1011
            assert kind_of((await bens)[0]) == ("void", None)
            await beside
            assert [verdict for _, verdict in arena.over.values()] == [None, None]
            async with arena.back(ann):
                await arena.still_plays()

    assert "an error of ours" in caplog.text


async def test_an_error_at_a_deadline_does_not_stop_the_clock(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with in_arena(decision_ms=100, bank_ms=0) as arena:
        referee = arena.gateway.referee
        sound, left = referee.tick, [2]

        def tick() -> None:
            if left[0]:
                left[0] -= 1
                raise ZeroDivisionError("an error of ours")
            sound()

        monkeypatch.setattr(referee, "tick", tick)
        async with arena.bot("ann") as ann:
            table = arena.open("blackjack", "ann")
            await ann.ready()
            result, _ = await arena.result(table)

            assert result.termination.kind is Ending.TIMEOUT

    assert "an error of ours" in caplog.text


async def test_an_error_in_writing_to_one_bot_does_not_keep_others_from_hearing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with in_arena() as arena:
        async with arena.bot("ann") as ann, arena.bot("ben") as ben:

            def flush(player: BotSession, now: float, lag_s: float) -> None:
                if player.name == "ann":
                    monkeypatch.undo()
                    raise ZeroDivisionError("an error of ours")
                sound(player, now, lag_s)

            sound = BotSession.flush
            monkeypatch.setattr(BotSession, "flush", flush)
            arena.open("ace_king_queen", "ann", "ben")

            assert kind_of((await ben.play())[0]) == ("void", None)
            assert await ann.closed() == 1011
        await arena.still_plays()

    assert "an error of ours" in caplog.text


# --- the end ---


async def test_the_arena_says_that_it_closes(arena: GatewayArena) -> None:
    async with arena.bot("ann") as ann, arena.stranger() as stranger:
        silent = asyncio.create_task(arena.answer_to(b""))
        deaf = asyncio.create_task(arena.answer_to(HANDSHAKE))  # answers no close
        await asyncio.sleep(0.1)
        began_s = virtual_loop().time()
        await arena.gateway.close()

        assert virtual_loop().time() - began_s == pytest.approx(1, abs=0.1)
        assert await silent == b""
        assert b"the arena has closed" in await deaf
        assert await ann.closed() == 1000
        assert await stranger.closed() == 1000
        with pytest.raises(OSError, match="Connect call failed"):
            await asyncio.open_connection("127.0.0.1", arena.port)
