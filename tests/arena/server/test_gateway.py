"""The server as a bot's author meets it: real sockets, and every frame made by hand."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import socket
import struct
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from typing import TYPE_CHECKING, Any

import msgpack  # type: ignore[import-untyped]
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request

from arena.engine.verdict import Finding
from arena.games import GAMES
from arena.games.replay import replay
from arena.referee.bot_session import BotSession
from arena.referee.clock import Lag
from arena.referee.seat import MatchSeat
from protocol.messages import Ending, Mechanism, Verdict
from tests.support.gateway_bots import all_of, in_arena

if TYPE_CHECKING:
    from tests.support.gateway_bots import GatewayArena, RawBot

pytestmark = pytest.mark.e2e

SHORT: dict[str, dict[str, object]] = {
    "ace_king_queen": {"hands": 20},
    "gin_rummy": {"max_rounds": 2, "max_turns": 30},
    "high_low": {"max_shuffles": 1},
    "three_card_poker": {"rounds": 10},
    "blackjack": {"hands": 10},
}


async def all_play(*bots: RawBot) -> None:
    await asyncio.gather(*(bot.play() for bot in bots))


def kind_of(over: dict[str, Any]) -> tuple[str, int | None]:
    return over["termination"]["kind"], over["termination"]["seat"]


# --- all games ---


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("encoding", ["json", "msgpack"])
@pytest.mark.parametrize("game", GAMES)
async def test_a_bot_that_picks_from_legal_plays_every_game(
    arena: GatewayArena, game: str, encoding: str, batch: bool
) -> None:
    names = [f"bot {seat}" for seat in range(GAMES[game].seats)]
    async with arena.bots(*names, encoding=encoding, batch=batch) as bots:
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


async def test_encodings_meet_at_one_table(arena: GatewayArena) -> None:
    async with arena.bot("ann") as ann, arena.bot("ben", encoding="msgpack", batch=True) as ben:
        table = arena.open("gin_rummy", "ann", "ben", **SHORT["gin_rummy"])
        await all_play(ann, ben)

        assert (await arena.result(table))[1] is None
        assert ann.overs[0]["scores"] == ben.overs[0]["scores"]


async def test_the_headers_of_a_bot_that_is_here_are_forgotten(arena: GatewayArena) -> None:
    async with arena.bot() as bot:
        assert bot.websocket.request is not None
        bot.websocket.request.headers.clear()  # the client's own
        requests = [thing for thing in gc.get_objects() if type(thing) is Request]

        # At 5,000 bots they were half of a join's cost.
        assert [[*request.headers.raw_items()] for request in requests if request.headers] == []


async def test_many_tables_over_one_connection(arena: GatewayArena) -> None:
    async with arena.bots("ann", "ben", tables=16, batch=True) as (ann, ben):
        for _ in range(16):
            arena.open("ace_king_queen", "ann", "ben", hands=10)
        await asyncio.gather(ann.play(16), ben.play(16))

        assert len(arena.over) == 16
        assert {kind_of(over) for over in ann.overs} == {("completed", None)}


async def test_a_bot_may_ask_for_more_tables_than_there_are(arena: GatewayArena) -> None:
    async with arena.bot("ann", tables=4096):
        assert arena.gateway.players["ann"].tables == arena.gateway.limits.tables


async def test_a_message_may_come_in_fragments(arena: GatewayArena) -> None:
    async with arena.stranger("ann") as ann:
        hello = json.dumps(ann.a_hello())
        await ann.websocket.send(["", *hello, ""])

        assert (await ann.hears("welcome"))["bot"] == "ann"

        await ann.websocket.send(['{"type":', ' "goodbye"}'])

        assert await ann.closed() == 1000


async def test_a_message_may_come_byte_by_byte(arena: GatewayArena) -> None:
    async with arena.stranger("ann") as ann:
        frames = handshake() + text_frame(json.dumps(ann.a_hello()).encode())
        reader, writer = await asyncio.open_connection("127.0.0.1", arena.port)
        for byte in frames:
            writer.write(bytes([byte]))
            await writer.drain()
        await reader.readuntil(b'"type":"welcome"')
        writer.close()


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
        ({"resume": "0" * 32}, "session", 4001),
        ({"resume": "ü" * 32}, "session", 4001),
        ({"games": []}, "malformed", 1002),
        ({"name": ""}, "malformed", 1002),
        ({"name": "x" * 65}, "malformed", 1002),
        ({"name": "red\x1b[31m"}, "malformed", 1002),
        ({"name": "two\nlines"}, "malformed", 1002),
        ({"name": "right\u202eleft"}, "malformed", 1002),
        ({"name": " ann"}, "malformed", 1002),
        ({"name": 7}, "malformed", 1002),
        ({"tables": 0}, "malformed", 1002),
        ({"tables": "1"}, "malformed", 1002),
        ({"tables": True}, "malformed", 1002),
        ({"tables": 1.0}, "malformed", 1002),
        ({"colour": "red"}, "malformed", 1002),
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


async def test_the_first_message_must_be_hello(arena: GatewayArena) -> None:
    async with arena.stranger() as ann:
        await ann.say(type="goodbye")

        assert await ann.refused() == ("malformed", "expected hello as the first message", 1002)


async def test_nothing_counts_after_a_hello_that_was_refused(arena: GatewayArena) -> None:
    async with arena.stranger("ann") as ann:
        refused, fine = ann.a_hello(protocol=2), ann.a_hello()
        await ann.say(refused, fine)
        ann.websocket.transport.write(text_frame(json.dumps(fine).encode()))

        assert (await ann.refused())[0] == "version"
        assert arena.gateway.players == {}


async def test_a_second_hello_is_out_of_turn(arena: GatewayArena) -> None:
    async with arena.stranger("ann") as ann:
        await ann.say(*[ann.a_hello()] * 100)

        assert (await ann.refused())[0] == "malformed"
        assert arena.gateway.players == {}


async def test_nothing_counts_that_comes_in_a_later_frame_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("arena.server.websocket.CLOSE_S", 0.2)

    async with in_arena() as arena:
        said = await arena.answer_to(handshake() + hello("ann", protocol=2) + hello("ann"))

        assert said.startswith(b"HTTP/1.1 101 ")
        assert b'"code":"version"' in said
        assert b"welcome" not in said


async def test_two_bots_cannot_have_one_name(arena: GatewayArena) -> None:
    async with arena.bot("ann") as ann:
        text = "a bot named 'ann' is here already; choose another name"

        assert await arena.refuses("ann") == ("name", text, 4001)
        assert arena.gateway.players["ann"].connection is not None

        arena.open("blackjack", "ann", hands=1)
        await ann.play()


async def test_a_name_is_free_again_after_goodbye(arena: GatewayArena) -> None:
    async with arena.bot("ann") as ann:
        await ann.say(type="goodbye")

        assert await ann.closed() == 1000
    async with arena.bot("ann") as ann:
        arena.open("blackjack", "ann", hands=1)
        await ann.play()


async def test_who_leaves_late_does_not_take_its_successor_along(arena: GatewayArena) -> None:
    async with arena.bot("ann") as ann:
        arena.gateway.dismissals.dismiss(
            "ann", Finding(kind=Ending.CRASH, text="ended", mechanism=Mechanism.EXIT)
        )
        async with arena.bot("ann") as successor:
            await ann.websocket.close()
            await arena.until(lambda: len(arena.gateway._connections) == 1)
            arena.open("blackjack", "ann", hands=1)
            await successor.play()


# --- offences ---


async def rogue_at_a_table(
    arena: GatewayArena, offend: Callable[[RawBot], Any]
) -> tuple[RawBot, dict[str, Any]]:
    """A rogue offends while it is asked, and two others play on: its opponent's `over`, with the
    verdict's text as `why`.
    """
    async with arena.bots("cem", "dora") as others, arena.asked("rogue", hands=1000) as asked:
        rogue = asked.bot
        other = arena.open("ace_king_queen", "cem", "dora", hands=100)
        beside = asyncio.create_task(all_play(*others))
        await offend(rogue)
        [over] = await asked.bens
        await beside
        result, verdict = await arena.result(asked.table)

        assert (await arena.result(other))[0].termination.kind is Ending.COMPLETED
        assert verdict is not None
        assert (verdict.bot, verdict.seat) == ("rogue", 0)
        assert kind_of(over) == (verdict.kind.value, 0)
        assert over["termination"]["text"] == "", "the others learn one word"
        assert verdict.advice
        assert result.winner == 1
    await arena.still_plays()
    return rogue, {**over, "why": verdict.text}


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def answer_with(value: str) -> str:
    return f'{{"type":"answer","match":"m","ask":"m:1","value":{value}}}'


MALFORMED: dict[str, str | bytes] = {
    "no JSON": "knock knock",
    "half a message": '{"type": "answer", "match":',
    "nothing": "",
    "NUL": "\0",
    "no UTF-8": b'{"type": "\xff"}',
    "no message": "7",
    "an unknown type": '{"type": "cheat"}',
    "no type": "{}",
    "a type that is no word": '{"type": [1]}',
    "a field too many": '{"type": "goodbye", "really": true}',
    "a field too few": '{"type": "answer", "match": "m"}',
    "fields of the wrong type": answer_with("1").replace('"m"', "7"),
    "one good and one bad in an array": '[{"type": "goodbye"}, 7]',
    "an array in an array": '[[{"type": "goodbye"}]]',
    "NaN": answer_with("NaN"),
    "a number of 5,000 digits": answer_with("9" * 5000),
    "nesting": nested(2000),
    "an answer nested 500 deep": answer_with(nested(500)),
    "a long note": answer_with('1,"note":"' + "x" * 1025 + '"'),
    "what the arena says": '{"type": "over", "match": "m"}',
    "binary junk": os.urandom(500),
    "msgpack that ends early": b"\x93\x01",
    "msgpack with an extension": msgpack.packb(msgpack.ExtType(5, b"x")),
    "msgpack with deep nesting": b"\x91" * 5000,
    "msgpack with keys that are no keys": b"\x81\x81\x01\x02\x03",
    "msgpack that claims four billion items": b"\xdd\xff\xff\xff\xff",
}


@pytest.mark.parametrize("what", MALFORMED)
async def test_J2_what_cannot_be_read_is_malformed(arena: GatewayArena, what: str) -> None:
    payload = MALFORMED[what]

    async def offend(rogue: RawBot) -> None:
        await rogue.websocket.send(payload, text=what == "no UTF-8" or None)
        code, text, closed = await rogue.refused()

        assert (code, closed) == ("malformed", 1002)
        assert text.isprintable()

    _, over = await rogue_at_a_table(arena, offend)

    assert kind_of(over) == ("malformed", 0)


@pytest.mark.parametrize("what", MALFORMED)
async def test_a_stranger_that_cannot_be_read_is_refused(arena: GatewayArena, what: str) -> None:
    payload = MALFORMED[what]
    async with arena.stranger(encoding="json" if isinstance(payload, str) else "msgpack") as rogue:
        await rogue.websocket.send(payload)
        code, _, closed = await rogue.refused()

        assert (code, closed) == ("malformed", 1002)
    await arena.still_plays()


async def test_J2_a_frame_beyond_the_limit_is_oversize(arena: GatewayArena) -> None:
    async def offend(rogue: RawBot) -> None:
        await rogue.websocket.send("x" * 20_000)
        code, text, closed = await rogue.refused()

        assert (code, closed) == ("oversize", 1009)
        assert "at most 16384 bytes" in text

    _, over = await rogue_at_a_table(arena, offend)

    assert kind_of(over) == ("oversize", 0)


async def test_J2_fragments_that_add_up_beyond_the_limit_are_oversize(arena: GatewayArena) -> None:
    async def offend(rogue: RawBot) -> None:
        await rogue.websocket.send(["x" * 10_000] * 2)
        assert (await rogue.refused())[0] == "oversize"

    _, over = await rogue_at_a_table(arena, offend)

    assert kind_of(over) == ("oversize", 0)


async def test_a_frame_that_claims_to_be_huge_takes_no_memory(arena: GatewayArena) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", arena.port)
    writer.write(handshake())
    await reader.readuntil(b"\r\n\r\n")
    writer.write(struct.pack("!BBQ", 0x82, 0xFF, 1 << 62))
    said = await all_of(reader)
    writer.close()

    assert b'"code":"oversize"' in said


@pytest.mark.parametrize(
    "value", ['"raise"', "true", "null", "1", '["bet"]', '{"bet": 1}', '"Bet"', '"bet "']
)
async def test_J1_an_illegal_answer_loses_and_the_bot_stays_connected(
    arena: GatewayArena, value: str
) -> None:
    async with arena.asked("rogue") as asked:
        rogue = asked.bot
        await rogue.answer(asked.ask, json.loads(value) or {"none": None})
        over = await rogue.hears("over")
        await asked.bens
        result, verdict = await arena.result(asked.table)

        assert kind_of(over) == ("illegal", 0)
        assert "legal: bet, check" in over["termination"]["text"]
        assert result.winner == 1
        assert verdict is not None
        assert verdict.legal == "bet, check"

        arena.open("ace_king_queen", "rogue", "ben", hands=2)
        await all_play(rogue, asked.ben)


async def test_a_bot_that_never_answers_loses_and_nothing_hangs() -> None:
    async with in_arena(decision_ms=300, bank_ms=200, hard_ms=400) as arena:

        async def offend(rogue: RawBot) -> None:
            over = await rogue.hears("over")

            assert kind_of(over) == ("timeout", 0)

        await rogue_at_a_table(arena, offend)


async def test_a_bot_that_holds_back_ready_is_absent() -> None:
    async with in_arena(start_ms=300) as arena, arena.bots("rogue", "ben") as (rogue, ben):
        table = arena.open("ace_king_queen", "rogue", "ben")
        await rogue.hears("match")
        [over] = await ben.play()
        result, verdict = await arena.result(table)

        assert kind_of(over) == ("absent", 0)
        assert result.winner == 1
        assert verdict is not None
        assert (verdict.bot, verdict.kind) == ("rogue", Ending.ABSENT)


async def test_a_goodbye_in_a_match_loses_it(arena: GatewayArena) -> None:
    async def offend(rogue: RawBot) -> None:
        await rogue.say({"type": "goodbye"}, {"type": "goodbye"})
        over = await rogue.hears("over")

        assert kind_of(over) == ("disconnect", 0)
        assert await rogue.closed() == 1000

    await rogue_at_a_table(arena, offend)


async def test_what_comes_after_goodbye_does_not_count(arena: GatewayArena) -> None:
    async with arena.asked("rogue") as asked:
        answer = asked.bot.an_answer(asked.ask, "all in")
        await asked.bot.say({"type": "goodbye"}, answer)
        await asked.bens
        result, verdict = await arena.result(asked.table)

        assert result.termination.kind is Ending.DISCONNECT
        assert verdict is not None
        assert await asked.bot.closed() == 1000


async def test_J2_only_the_first_of_two_offences_in_a_frame_counts(arena: GatewayArena) -> None:
    async with arena.asked("rogue") as asked:
        rogue = asked.bot
        await rogue.say(rogue.an_answer(asked.ask, "all in"), rogue.a_hello())
        [over] = await asked.bens
        result, _ = await arena.result(asked.table)

        assert kind_of(over) == ("illegal", 0)
        assert result.termination.kind is Ending.ILLEGAL
        assert (await rogue.refused())[0] == "malformed"
    await arena.still_plays()


async def test_J2_a_bot_that_says_it_has_crashed_has(arena: GatewayArena) -> None:
    async def offend(rogue: RawBot) -> None:
        await rogue.websocket.close(1011, "KeyError: \x1b[31m'deck'")

    _, over = await rogue_at_a_table(arena, offend)

    assert kind_of(over) == ("crash", 0)
    assert "KeyError: \N{REPLACEMENT CHARACTER}[31m'deck'" in over["why"]


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
        if kind == "answer":
            await cem.say(type="ready", match=match, nonce="mine")
            await dora.ready()
            await cem.hears("ask")
            message = {"ask": f"{match}:1", "value": "check"}
        else:
            message = {"nonce": "not mine"}
        await ann.ready()
        await ann.say(type=kind, match=match, **message)
        code, text, _ = await ann.refused()
        await bens

        assert code == "malformed"
        assert f"match {match!r}: there is no such match here" in text

        if kind == "answer":
            await cem.answer({"match": match, "ask": f"{match}:1", "legal": ["bet"]})
        else:
            await cem.say(type="ready", match=match, nonce="mine")
        await all_play(cem, dora)
        assert kind_of(cem.overs[0]) == ("completed", None)


@pytest.mark.parametrize(
    "ask", ["{match}:1", "{match}:2", "{match}:0", "{match}:-1", "{match}:９", "x", ":1"]
)
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
        said: list[dict[str, Any]] = []
        while (message := await ann.hear())["type"] == "ask":
            said.append(ann.an_answer(message))
            await ann.say(*said[::-1], *said, {**ready, "nonce": "late"})
        await ann.say(*said, ready)  # now that it is over
        result, verdict = await arena.result(table)

        assert verdict is None
        assert result.record.answers == tuple(answer["value"] for answer in said)
        assert result.record.nonces == ("one",)
    await arena.still_plays()


async def test_large_messages_that_come_to_nothing_are_a_flood_sooner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("arena.referee.budget.ON_END", 3)
    async with in_arena(unanswered=100) as arena, arena.bot("ann") as ann:
        arena.open("blackjack", "ann")
        match = (await ann.ready())["match"]
        ready = json.dumps({"type": "ready", "match": match, "nonce": "n"})
        with suppress(ConnectionClosed):
            for _ in range(30):  # far fewer than `unanswered`
                await ann.websocket.send(ready + " " * 12_000)

        code, text, _ = await ann.refused()
        assert code == "malformed"
        assert "100 messages a second" in text


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


# --- lost connections ---


async def test_who_comes_back_within_the_grace_is_asked_again(arena: GatewayArena) -> None:
    async with arena.asked(hands=10) as asked:
        await asked.bot.vanish()
        async with arena.back(asked.bot, encoding="msgpack") as back:
            assert back.session != asked.bot.session
            assert await back.hears("match") == asked.invitation
            assert await back.hears("ask") == asked.ask

            await back.answer(asked.ask)
            await back.play()
        await asked.bens
        result, verdict = await arena.result(asked.table)

        assert (result.termination.kind, verdict) == (Ending.COMPLETED, None)


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


async def test_J2_who_does_not_come_back_in_time_has_left() -> None:
    async def offend(rogue: RawBot) -> None:
        await rogue.vanish()

    async with in_arena(grace_ms=200) as arena:
        rogue, over = await rogue_at_a_table(arena, offend)

        assert kind_of(over) == ("disconnect", 0)
        assert "did not come back within 200 ms" in over["why"]

        assert (await arena.refuses("rogue", resume=rogue.session))[0] == "session"
        async with arena.bot("rogue"):
            pass


async def test_a_clean_close_in_a_match_is_a_lost_connection_too() -> None:
    async def offend(rogue: RawBot) -> None:
        await rogue.websocket.close(1000)

    async with in_arena(grace_ms=200) as arena:
        _, over = await rogue_at_a_table(arena, offend)

        assert kind_of(over) == ("disconnect", 0)


async def crash_codes(arena: GatewayArena, reason: str) -> Verdict | None:
    """A bot closes with 1011 while it is asked, and comes back if it may; the verdict on it."""
    async with arena.asked() as asked:
        await asked.bot.websocket.close(1011, reason)
        await arena.until(lambda: not arena.plays("ann"))
        if not asked.table.is_over:
            async with arena.back(asked.bot) as back:
                await back.play()
        await asked.bens
        return (await arena.result(asked.table))[1]


@pytest.mark.parametrize("reason", ["", "ZeroDivisionError: division by zero"])
async def test_J2_a_bot_that_closes_with_1011_has_crashed(arena: GatewayArena, reason: str) -> None:
    verdict = await crash_codes(arena, reason)

    assert verdict is not None
    assert verdict.kind is Ending.CRASH


@pytest.mark.parametrize("reason", ["keepalive ping timeout", "Ping timeout: no pong"])
async def test_J7_a_keepalive_that_failed_is_a_lost_connection(
    arena: GatewayArena, reason: str
) -> None:
    assert await crash_codes(arena, reason) is None


async def test_J7_a_close_that_follows_a_stall_of_the_arena_is_a_lost_connection(
    arena: GatewayArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lag, "follows_stall", lambda lag, now: True)
    async with arena.asked() as asked:
        [seat] = arena.gateway.players["ann"].chairs.values()
        grace_s = seat.grace_s
        await asked.bot.websocket.close(1011)
        await arena.until(lambda: not arena.plays("ann"))
        async with arena.back(asked.bot) as back:
            await back.hears("match")

            assert seat.grace_s == grace_s

            await back.play()
        await asked.bens

        assert (await arena.result(asked.table))[1] is None


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


async def test_J7_a_match_whose_grace_is_used_up_ends_and_the_session_stays(
    arena: GatewayArena,
) -> None:
    async with arena.bot("ann", tables=2) as ann:
        short, long = (arena.open("blackjack", "ann", hands=1) for _ in range(2))
        short.chairs[0].grace_s = 0.1  # the rest was used before
        await ann.ready()
        await ann.ready()
        await ann.vanish()
        _, verdict = await arena.result(short)

        assert verdict is not None
        assert verdict.kind is Ending.DISCONNECT

        async with arena.back(ann) as back:
            heard = await back.hears("over")
            await back.play()

        assert heard["termination"]["kind"] == "disconnect"
        assert (await arena.result(long))[1] is None


async def test_nobody_takes_the_name_of_a_bot_that_may_come_back(arena: GatewayArena) -> None:
    async with arena.bot("ann") as ann, arena.bot("ben") as ben:
        table = arena.open("ace_king_queen", "ann", "ben", hands=4)
        bens = asyncio.create_task(ben.play())
        await ann.ready()
        await ann.vanish()
        code, text, _ = await arena.refuses("ann")

        assert code == "name"
        assert "has lost its connection: the name is free again in" in text
        assert re.search(r" in [1-4] s, or go on with `resume`", text)
        assert (await arena.refuses("ann", resume=ben.session))[0] == "session"

        async with arena.back(ann) as back:
            await back.play()
        await bens

        assert (await arena.result(table))[1] is None


async def test_a_bot_without_matches_may_come_back_with_or_without_its_session(
    arena: GatewayArena,
) -> None:
    async with arena.bot("ann") as ann:
        await ann.vanish()
    async with arena.back(ann) as back:
        await back.vanish()
        await arena.until(lambda: arena.gateway.players["ann"].connection is None)
    gone = arena.gateway.players["ann"]
    assert gone.loss is not None
    async with arena.bot("ann") as fresh:
        arena.gateway._losses._over(gone, gone.loss)  # it has nothing to do with it
        arena.open("blackjack", "ann", hands=1)
        await fresh.play()


async def test_a_second_connection_with_the_session_replaces_the_first(arena: GatewayArena) -> None:
    async with arena.asked(hands=10) as asked:
        async with arena.back(asked.bot) as second:
            assert await asked.bot.closed() == 4000

            await second.hears("match")
            assert await second.hears("ask") == asked.ask

            await second.answer(asked.ask)
            await second.play()
        await asked.bens

        assert (await arena.result(asked.table))[1] is None


async def test_nobody_resumes_anothers_session(arena: GatewayArena) -> None:
    async with arena.bot("ann") as ann, arena.bot("rogue") as rogue:
        for name, session in (
            ("ann", rogue.session),
            ("ann", ""),
            ("ann", "0" * 32),
            ("nobody", ann.session),
        ):
            assert (await arena.refuses(name, resume=session))[0] == "session"
        arena.open("blackjack", "ann", hands=1)
        await ann.play()


async def test_an_over_that_was_lost_with_the_connection_comes_again(arena: GatewayArena) -> None:
    async with arena.bot("ann") as ann, arena.bot("ben") as ben:
        table = arena.open("ace_king_queen", "ann", "ben")
        await ann.ready()
        await ben.ready()
        ask = await ann.hears("ask")
        await ann.answer(ask, "all in")
        await ben.vanish()  # at the very moment of `over`
        await arena.result(table)
        async with arena.back(ben) as back:
            assert kind_of(await back.hears("over")) == ("illegal", 0)

            arena.open("ace_king_queen", "ann", "ben", hands=2)
            await ann.hears("over")
            await all_play(ann, back)


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


def as_past(ask: dict[str, Any], value: Any) -> dict[str, Any]:
    """What is told of a question later on."""
    rest = {key: ask[key] for key in ask if key not in ("bank_ms", "decision_ms")}
    return {**rest, "type": "past", "answer": value}


@pytest.mark.parametrize("encoding", ["json", "msgpack"])
@pytest.mark.parametrize("first", [0, 3, 9])
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


def small_buffers(arena: GatewayArena) -> None:
    """Have what is written to new connections wait in the arena, and not in the kernel."""
    [server] = arena.gateway._listeners
    for listening in server.sockets:  # accepted sockets inherit it
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)


def slow_socket(port: int) -> socket.socket:
    """A socket with a small receive buffer."""
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.connect(("127.0.0.1", port))
    slow.setblocking(False)
    return slow


async def test_a_long_past_does_not_overflow_the_buffer_of_a_slow_reader() -> None:
    answers = 1_400  # some 300 kB

    async with in_arena(buffer_bytes=120_000) as arena:
        small_buffers(arena)
        async with arena.bot("ann") as ann:
            table = arena.open("three_card_poker", "ann", rounds=1000)
            await ann.ready()
            *told, (asked, _) = await plays_carefully(ann, answers)
            await ann.vanish()
        async with connect(
            arena.url,
            sock=slow_socket(arena.port),
            compression=None,
            max_queue=1,
            ping_interval=None,
        ) as websocket:
            back = type(ann)(websocket, "ann")
            await back.say(**back.a_hello(**{"resume": ann.session, "from": 0}))
            player = arena.gateway.players["ann"]
            while player.connection is None or not player.connection.is_behind:
                await asyncio.sleep(0.01)
            await arena.still_plays()

            assert player.connection.is_behind
            assert table.id not in arena.over

            await back.hears("welcome")
            await back.ready()
            for ask, value in told:
                assert await back.hear() == as_past(ask, value)
            await back.hears("match")
            assert await back.hears("ask") == asked

            await back.answer(asked)
            await back.hears("ask")


# --- links ---


async def polled(holds: Callable[[], bool]) -> None:
    """Wait for what no event tells; the test's own time limit applies."""
    while not holds():
        await asyncio.sleep(0.01)


async def test_J7_the_link_of_an_idle_bot_is_measured(arena: GatewayArena) -> None:
    async with arena.bot("ann"):
        player = arena.gateway.players["ann"]
        await polled(lambda: player.link.is_known)

        assert 0 < player.link.floor_ms <= 150


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells it on Linux only")
async def test_J4_the_kernels_own_measure_of_the_link_is_evidence(arena: GatewayArena) -> None:
    async with arena.bot("ann") as ann:
        player = arena.gateway.players["ann"]
        assert player.connection is not None
        least_ms = player.connection.min_rtt_ms
        table = arena.open("blackjack", "ann")
        await ann.ready()
        await ann.answer(await ann.hears("ask"), "all in")
        over = await ann.hears("over")
        _, verdict = await arena.result(table)

        assert isinstance(least_ms, float)
        assert verdict is not None
        assert verdict.min_rtt_ms is not None
        assert 0 < verdict.min_rtt_ms < 1000
        assert over["verdict"]["min_rtt_ms"] == verdict.min_rtt_ms


async def test_answering_our_pings_is_no_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle bot answers thousands of them in a night."""
    monkeypatch.setattr("arena.referee.pings._PING_S", 0.0)
    monkeypatch.setattr("arena.server.gateway._PROBE_S", 0.0)

    async with in_arena(unanswered=10) as arena, arena.bot("ann") as ann:
        player = arena.gateway.players["ann"]
        await polled(lambda: player.link._pings > 30)
        assert player.connection is not None

        assert player.connection.useless == 0

        arena.open("blackjack", "ann", hands=1)
        await ann.play()


async def test_a_flood_of_pongs_that_nobody_asked_for_is_malformed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def offend(rogue: RawBot) -> None:
        rogue.websocket.transport.write(frame(0x8A, b"x" * 16) * 101)

    monkeypatch.setattr("arena.referee.budget.ON_END", 1)
    async with in_arena(unanswered=10) as arena:
        _, over = await rogue_at_a_table(arena, offend)

        assert kind_of(over) == ("malformed", 0)
        assert "10 messages a second" in over["why"]


async def test_who_vanishes_without_a_word_while_idle_has_lost_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("arena.referee.pings._SILENCE_S", 0.2)

    async with in_arena() as arena:
        said = await arena.answer_to(handshake() + hello("ann"))  # it answers no ping

        assert b'"type":"welcome"' in said
        await polled(lambda: arena.gateway.players["ann"].connection is None)


# --- floods ---


async def test_a_large_frame_that_comes_to_nothing_is_paid_by_the_next_connection() -> None:
    """A token has one budget: to be out for a large frame, and to come again, brings no new one."""
    large: list[list[int]] = [[]] * 60_000

    async with in_arena(frame_bytes=1 << 20, unanswered=100) as arena:
        async with arena.stranger("rogue") as rogue:
            await rogue.hello(token="a secret")
            await rogue.say(type="answer", match="none", ask="none:1", value=large)

            assert (await rogue.refused())[0] == "malformed"
        await arena.until(lambda: "rogue" not in arena.gateway.players)
        async with arena.stranger("rogue") as again:
            await again.hello(token="a secret")
            budget = arena.gateway.players["rogue"].budget
            assert budget is not None

            assert budget.rests_until(asyncio.get_running_loop().time()) is not None


async def test_stale_answers_between_good_ones_are_read_as_far_as_the_budget_goes() -> None:
    """Others play meanwhile, and in the end all answers are read, the good ones, too."""
    most, each, rounds, a_read = 200, 100, 4, 16 * 1024 // 60

    async with (
        in_arena(unanswered=most, hard_ms=15_000, bank_ms=30_000) as arena,
        arena.bots("rogue", "ann", "ben") as (rogue, ann, ben),
    ):
        loop = asyncio.get_running_loop()
        session = arena.gateway.players["rogue"].session
        note, began, taken = session.note, loop.time(), 0

        def counted(message: Any) -> bool:
            nonlocal taken
            counts = note(message)
            taken += not counts
            return counts

        session.note = counted  # type: ignore[method-assign]
        table = arena.open("three_card_poker", "rogue", rounds=rounds)
        arena.open("ace_king_queen", "ann", "ben", hands=300)
        others = asyncio.gather(ann.play(), ben.play())
        match = (await rogue.ready())["match"]
        stale = {"type": "answer", "match": match, "ask": f"{match}:1", "value": 0}
        chunk = text_frame(json.dumps(stale).encode()) * each
        poured = 0
        while (message := await rogue.hear())["type"] == "ask":
            if message["ask"] != stale["ask"]:
                rogue.websocket.transport.write(chunk)
                poured += each
            await rogue.answer(message)
        passed_s = loop.time() - began
        [[over], _] = await others
        result, verdict = await arena.result(table)

        assert (result.termination.kind, verdict) == (Ending.COMPLETED, None)
        assert taken == poured > 3 * most
        assert taken <= most * (passed_s + 1) + a_read
        assert kind_of(over) == ("completed", None)


async def test_who_repeats_its_answers_after_a_resume_spends_nothing_once() -> None:
    async with in_arena(unanswered=5) as arena, arena.bot("ann", tables=4) as ann:
        for _ in range(4):
            arena.open("three_card_poker", "ann", rounds=5)
        matches = [(await ann.ready())["match"] for _ in range(4)]
        said: list[dict[str, Any]] = [
            {"type": "ready", "match": match, "nonce": "again"} for match in matches
        ]
        said += [ann.an_answer(await ann.hears("ask")) for _ in range(4)]
        await ann.say(*said[4:])
        for _ in range(4):
            await ann.hears("ask")
        await ann.vanish()
        async with arena.back(ann) as back:
            wire = arena.gateway.players["ann"].connection
            assert wire is not None
            await back.say(*said)
            waits = [await back.hear() for _ in range(8)]
            await back.websocket.ping()
            await polled(lambda: wire.useless > 0)  # the ping is one

            assert wire.useless == 1

            await back.say(*said)
            await polled(lambda: wire.useless > 1)

            assert wire.useless == 1 + len(said)

            for message in waits:
                if message["type"] == "ask":
                    await back.answer(message)
            await back.play(4)


async def test_coming_back_is_no_way_to_another_budget(arena: GatewayArena) -> None:
    async with arena.bot("ann") as ann:
        player = arena.gateway.players["ann"]
        assert player.connection is not None
        budget = player.connection.budget
        await ann.vanish()
        async with arena.back(ann):
            assert player.connection.budget is budget


async def test_what_comes_to_nothing_is_counted_for_each_bot() -> None:
    async with in_arena(unanswered=40) as arena, arena.bots("ann", "ben", "cem") as bots:
        for bot in bots:
            for _ in range(40):
                await bot.websocket.send("[]")
        for bot in bots:
            arena.open("blackjack", bot.name, hands=1)
            await bot.play()


# --- practice ---


async def test_in_practice_the_welcome_says_so(arena: GatewayArena) -> None:
    async with arena.stranger("ann") as ann:
        assert (await ann.hello())["practice"] is False
    arena.gateway.referee.practice = True
    async with arena.stranger("ben") as ben:
        assert (await ben.hello())["practice"] is True


@pytest.mark.parametrize("encoding", ["json", "msgpack"])
async def test_in_practice_an_illegal_answer_can_be_given_again(
    arena: GatewayArena, encoding: str
) -> None:
    arena.gateway.referee.practice = True
    async with arena.asked(encoding=encoding) as asked:
        ann, ask = asked.bot, asked.ask
        for value in ("raise", True, None):
            await ann.say({**ann.an_answer(ask), "value": value})

            refused = await ann.hears("refused")
            assert (refused["code"], refused["legal"]) == ("illegal", ask["legal"])
            assert (refused["match"], refused["ask"]) == (ask["match"], ask["ask"])
            assert "legal: bet, check" in refused["text"]

        await ann.answer(ask)
        await ann.play()
        await asked.bens
        result, verdict = await arena.result(asked.table)

        assert verdict is None
        assert replay(result.record) == result


@pytest.mark.parametrize("what", MALFORMED)
async def test_in_practice_what_cannot_be_read_is_refused_and_the_match_goes_on(
    arena: GatewayArena, what: str
) -> None:
    arena.gateway.referee.practice = True
    async with arena.bot("ann") as ann:
        table = arena.open("blackjack", "ann", hands=2)
        await ann.ready()
        ask = await ann.hears("ask")
        await ann.websocket.send(MALFORMED[what], text=what == "no UTF-8" or None)
        refused = await ann.hears("refused")

        assert refused["code"] == "malformed"
        assert refused["text"].isprintable()

        if what != "one good and one bad in an array":
            await ann.answer(ask)
            await ann.play()

            assert (await arena.result(table))[1] is None


async def test_in_practice_an_answer_out_of_turn_is_refused_and_the_match_goes_on(
    arena: GatewayArena,
) -> None:
    arena.gateway.referee.practice = True
    async with arena.bot("ann") as ann:
        table = arena.open("blackjack", "ann", hands=2)
        match = (await ann.ready())["match"]
        ask = await ann.hears("ask")
        await ann.say(type="answer", match=match, ask=f"{match}:9", value=1)
        never_asked = await ann.hears("refused")
        await ann.say(type="answer", match="m", ask="m:1", value=1)
        not_its_own = await ann.hears("refused")
        await ann.say(**ann.a_hello())
        second_hello = await ann.hears("refused")

        assert "was never asked" in never_asked["text"]
        assert "there is no such match here" in not_its_own["text"]
        assert "hello may not be sent" in second_hello["text"]

        await ann.answer(ask)
        await ann.play()

        assert (await arena.result(table))[1] is None


async def test_in_practice_a_flood_of_nonsense_is_malformed_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def offend(rogue: RawBot) -> None:
        for _ in range(101):
            await rogue.websocket.send("nonsense")
        code, _, closed = await rogue.refused()

        assert (code, closed) == ("malformed", 1002)

    monkeypatch.setattr("arena.referee.budget.ON_END", 1)
    async with in_arena(unanswered=10) as arena:
        arena.gateway.referee.practice = True
        _, over = await rogue_at_a_table(arena, offend)

        assert kind_of(over) == ("malformed", 0)


async def test_in_practice_what_breaks_the_wire_itself_closes_it(arena: GatewayArena) -> None:
    async def offend(rogue: RawBot) -> None:
        await rogue.websocket.send("x" * 20_000)

        assert (await rogue.refused())[0::2] == ("oversize", 1009)

    arena.gateway.referee.practice = True
    _, over = await rogue_at_a_table(arena, offend)

    assert kind_of(over) == ("oversize", 0)


async def test_in_practice_a_stranger_that_cannot_be_read_is_refused(arena: GatewayArena) -> None:
    arena.gateway.referee.practice = True
    async with arena.stranger() as rogue:
        await rogue.websocket.send("nonsense")

        assert (await rogue.refused())[0::2] == ("malformed", 1002)


# --- tokens ---


async def test_so_many_connections_may_be_open_with_one_token() -> None:
    async with (
        in_arena(per_token=2) as arena,
        arena.stranger("ann") as ann,
        arena.stranger("ben") as ben,
        arena.stranger("dora") as dora,
    ):
        await ann.hello(token="class")
        await ben.hello(token="class")
        await dora.hello(token="another")

        assert (await arena.refuses("cem", token="class"))[0::2] == ("token", 4001)

        await ben.say(type="goodbye")
        await ben.closed()
        async with arena.stranger("cem") as again:
            await again.hello(token="class")


async def test_who_comes_back_is_not_counted_twice() -> None:
    async with in_arena(per_token=1) as arena, arena.stranger("ann") as ann:
        await ann.hello(token="class")
        async with arena.stranger("ann") as back:
            await back.hello(token="class", resume=ann.session)

            assert await ann.closed() == 4000


async def test_a_token_that_is_expected_names_the_bot_and_is_good_once(arena: GatewayArena) -> None:
    arena.gateway.admission.expect("ours", "secret")

    assert (await arena.refuses("ours"))[0::2] == ("name", 4001)

    async with arena.stranger("whoever") as ours:
        assert (await ours.hello(token="secret"))["bot"] == "ours"

        arena.open("blackjack", "ours", hands=1)
        await ours.play()
        text = "this token was for once; go on with `resume`"

        assert await arena.refuses("whoever", token="secret") == ("token", text, 4001)

        async with arena.stranger("whoever") as back:
            await back.hello(token="secret", resume=ours.session)


async def test_a_session_is_resumed_with_its_token_only(arena: GatewayArena) -> None:
    async with arena.stranger("ann") as ann:
        await ann.hello(token="mine")
        for token in (None, "guessed"):
            refused = await arena.refuses("ann", resume=ann.session, token=token)

            assert refused[0] == "session"
        await ann.vanish()
    async with arena.stranger("ann") as back:
        await back.hello(resume=ann.session, token="mine")


# --- strangers ---


@pytest.mark.parametrize(
    "said", ["nothing", "half a request", "a handshake", "a handshake and an empty array"]
)
async def test_who_does_not_say_hello_is_cut(said: str) -> None:
    words = {
        "nothing": b"",
        "half a request": b"GET / HTTP/1.1\r\nHost: a",
        "a handshake": handshake(),
        "a handshake and an empty array": handshake() + text_frame(b"[]"),
    }

    async with in_arena(hello_ms=200) as arena:
        await arena.answer_to(words[said])
        await arena.still_plays()


async def drips_until_gone(arena: GatewayArena, first: bytes, drip: bytes) -> int:
    """How often something can be sent, every 10 ms, until the arena cuts the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", arena.port)
    writer.write(first)
    gone = asyncio.create_task(all_of(reader))
    drips = 0
    while not gone.done() or arena.gateway._connections:
        writer.write(drip)
        drips += 1
        await asyncio.sleep(0.01)
    writer.close()
    return drips


async def test_a_drip_of_bytes_does_not_keep_a_stranger_in() -> None:
    async with in_arena(hello_ms=200) as arena:
        assert await drips_until_gone(arena, b"", b"X") < 200
        await arena.still_plays()


async def test_a_drip_of_bytes_does_not_keep_a_refused_connection_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("arena.server.websocket.CLOSE_S", 0.2)

    async with in_arena() as arena:
        nonsense = text_frame(b"nonsense")

        assert await drips_until_gone(arena, handshake() + nonsense, nonsense) < 200


async def test_a_flood_of_strangers_does_not_keep_a_bot_out() -> None:
    async with in_arena(strangers=100) as arena, arena.bot("ann") as ann:
        flood = [await asyncio.open_connection("127.0.0.1", arena.port) for _ in range(300)]
        await arena.still_plays()
        arena.open("blackjack", "ann", hands=1)
        await ann.play()

        assert len(arena.gateway._connections) <= 101
        for _, writer in flood:
            writer.transport.abort()


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


@pytest.mark.parametrize(
    "bytes_",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"\r\n\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
        b"GET /" + b"x" * 100_000,
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\n" + b"\xff" * 500,
        os.urandom(100_000),
    ],
    ids=["tls", "ssh", "empty", "headers", "path", "post", "noise"],
)
async def test_what_is_no_request_is_cut(bytes_: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with in_arena(hello_ms=500) as arena:
        await arena.answer_to(bytes_)
        await arena.still_plays()

    assert caplog.text == ""


@pytest.mark.parametrize("then", [b"\xff" * 50, b"\x88\x80\0\0\0\0", b"\x89\x80\0\0\0\0"])
async def test_who_does_not_wait_for_the_handshake_cannot_upset_the_server(
    then: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with in_arena(hello_ms=300) as arena:
        for request in (handshake(), b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"):
            await arena.answer_to(request + then)
        await arena.still_plays()

    assert caplog.text == ""


# --- WebSocket itself ---


def handshake() -> bytes:
    return (
        b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )


def frame(head: int, payload: bytes = b"", masked: bool = True) -> bytes:
    """A frame by hand; the mask is zero."""
    mask, size = 0x80 * masked, len(payload)
    if size < 126:
        header = struct.pack("!BB", head, mask | size)
    else:
        header = struct.pack("!BBH", head, mask | 126, size)
    return header + bytes(4) * masked + payload


def text_frame(payload: bytes) -> bytes:
    return frame(0x81, payload)


def hello(name: str, **fields: Any) -> bytes:
    """A frame with a hello."""
    message = {"type": "hello", "protocol": 1, "name": name, "games": ["blackjack"]}
    return text_frame(json.dumps({**message, **fields}).encode())


VIOLATIONS = {
    "no mask": frame(0x81, b"{}", masked=False),
    "compressed, which was not agreed": frame(0xC1, b"\xaa\x56\x0a"),
    "a reserved bit": frame(0x91, b"{}"),
    "an opcode that does not exist": frame(0x83, b"{}"),
    "a continuation of nothing": frame(0x80, b"{}"),
    "a new message within a message": frame(0x01, b"{") + frame(0x81, b"{}"),
    "a ping in fragments": frame(0x09, b"x"),
    "a long ping": frame(0x89, b"x" * 126),
    "a close code that does not exist": frame(0x88, struct.pack("!H", 5)),
    "half a close code": frame(0x88, b"x"),
    "a close reason that is no UTF-8": frame(0x88, struct.pack("!H", 1000) + b"\xff"),
}


@pytest.mark.parametrize("what", VIOLATIONS)
async def test_J2_who_breaks_the_websocket_protocol_is_malformed(
    arena: GatewayArena, what: str
) -> None:
    async def offend(rogue: RawBot) -> None:
        rogue.websocket.transport.write(VIOLATIONS[what])

        assert (await rogue.refused())[0] == "malformed"

    _, over = await rogue_at_a_table(arena, offend)

    assert kind_of(over) == ("malformed", 0)
    assert "not a WebSocket frame" in over["why"]


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


@pytest.mark.parametrize(
    "trifle",
    [frame(0x00), frame(0x89), text_frame(b"[]")],
    ids=["empty fragments", "pings", "empty arrays"],
)
async def test_a_flood_of_what_means_nothing_is_malformed(
    trifle: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = frame(0x01) if trifle == frame(0x00) else b""

    async def offend(rogue: RawBot) -> None:
        rogue.websocket.transport.write(begun + trifle * 1_001)

    monkeypatch.setattr("arena.referee.budget.ON_END", 1)
    async with in_arena(unanswered=100) as arena:
        _, over = await rogue_at_a_table(arena, offend)

        assert kind_of(over) == ("malformed", 0)
        assert "100 messages a second" in over["why"]


async def test_J2_a_reader_that_never_reads_is_cut() -> None:
    async def deaf_at_a_table(arena: GatewayArena) -> Any:
        """A bot that floods the arena with pings and never reads the pongs."""
        deaf = slow_socket(arena.port)
        deaf.setblocking(True)
        deaf.sendall(handshake() + hello("deaf"))
        await arena.until(lambda: "deaf" in arena.gateway.players)
        table = arena.open("blackjack", "deaf")
        deaf.setblocking(False)
        loop = asyncio.get_running_loop()
        pings = frame(0x89, b"x" * 125) * 500
        with closing(deaf), suppress(ConnectionError):
            while table.id not in arena.over:
                await loop.sock_sendall(deaf, pings)
        return table

    async with in_arena(buffer_bytes=20_000, unanswered=10**9) as arena:
        small_buffers(arena)
        table = await deaf_at_a_table(arena)
        result, verdict = await arena.result(table)

        assert result.termination.kind is Ending.OVERFLOW
        assert verdict is not None
        assert "at most 20,000 may" in verdict.text
        await arena.still_plays()


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
            assert all(verdict is None for _, verdict in arena.over.values())
            async with arena.back(ann):
                pass
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
        reader, writer = await asyncio.open_connection("127.0.0.1", arena.port)
        await asyncio.gather(arena.gateway.close(), all_of(reader))
        writer.close()

        assert await ann.closed() == 1000
        assert await stranger.closed() == 1000
        with pytest.raises(OSError, match=r"[Rr]efused|Connect call failed"):
            await asyncio.open_connection("127.0.0.1", arena.port)


async def test_who_does_not_answer_the_close_does_not_hold_it_up(arena: GatewayArena) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", arena.port)
    writer.write(handshake())
    await reader.readuntil(b"\r\n\r\n")
    await arena.gateway.close()
    await all_of(reader)
    writer.close()
