"""Tokens as a bot and an instructor meet them: who is let in, and who leaves with a new roster.

Which token is good for what is in `test_admission.py`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from arena.referee.bot_session import LiveMatch
from arena.storage.tokens import Access, hashed
from protocol.errors import TOKEN_NEEDED, UsageError
from protocol.messages import Done, Instruct, Progress
from tests.support.gateway_bots import LIMITS, GatewayArena, Message, RawBot, in_arena_with
from tests.support.memory_network import line_of
from tests.support.token_guesses import guess
from tests.support.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time

ANN, BEN, PROF = "ann's token", "ben's token", "the instructor's token"
ROSTER = Access(
    names=frozenset({"ann", "ben", "revoked"}),
    players={hashed(ANN): "ann", hashed(BEN): "ben"},
    instructors={hashed(PROF): "prof"},
)
WITHOUT_ANN = msgspec.structs.replace(ROSTER, players={hashed(BEN): "ben"})
REFUSED = {
    "type": "refused",
    "code": "token",
    "text": TOKEN_NEEDED,
    "match": None,
    "ask": None,
    "legal": None,
}


def opened(
    access: Access | None = ROSTER, **options: Any
) -> AbstractAsyncContextManager[GatewayArena]:
    return in_arena_with(LIMITS, access=access, **options)


@asynccontextmanager
async def with_a_long_match(
    **options: Any,
) -> AsyncIterator[tuple[GatewayArena, RawBot, RawBot, LiveMatch]]:
    """An arena of the roster's, where two have begun to play."""
    async with (
        opened(**options) as arena,
        arena.stranger("ann") as ann,
        arena.stranger("ben") as ben,
    ):
        await ann.hello(token=ANN)
        await ben.hello(token=BEN)
        table = arena.open("ace_king_queen", "ann", "ben", hands=1_000_000)
        await asyncio.gather(ann.ready(), ben.ready())
        yield arena, ann, ben, table


async def refuses(arena: GatewayArena, **fields: Any) -> tuple[Message, int | None]:
    """The message with which a hello is refused, and the close code."""
    async with arena.stranger() as bot:
        await bot.say(**bot.a_hello(**fields))
        return await bot.hear(), await bot.closed()


# --- coming in ---


@pytest.mark.parametrize(("said", "called"), [("x", "ann"), ("ann/gin", "ann/gin")])
async def test_the_welcome_says_what_the_bot_is_called(said: str, called: str) -> None:
    async with opened(requires_token=True) as arena:
        async with arena.stranger(said) as bot:
            welcome = await bot.hello(token=ANN)

            assert welcome["bot"] == called
            assert list(arena.gateway.players) == [called]
            await bot.vanish()
        async with arena.stranger(said) as back:
            assert (await back.hello(token=ANN, resume=bot.session))["bot"] == called


# --- the roster changes ---


async def test_a_token_that_is_revoked_ends_what_is_played_with_it() -> None:
    async with with_a_long_match(requires_token=True) as (arena, ann, ben, table):
        arena.gateway.roster_changed(WITHOUT_ANN)
        result, verdict = await arena.result(table)
        heard = [await ann.hear()]
        while heard[-1]["type"] != "over":
            heard.append(await ann.hear())

        text = "its token was revoked"
        ended = result.termination
        assert (ended.kind, ended.seat, ended.text) == ("removed", 0, text)
        assert verdict is not None
        assert (verdict.kind, verdict.mechanism) == ("removed", "instructor")
        assert {**REFUSED, "text": text} in heard
        assert heard[-1]["verdict"]["text"] == text
        assert await ann.closed() == 4001
        while (over := await ben.hear())["type"] != "over":
            pass
        assert (over["termination"]["kind"], over["verdict"]) == ("removed", None)
        for more in ({}, {"resume": ann.session}):
            assert await refuses(arena, name="ann", token=ANN, **more) == (REFUSED, 4001)
        async with arena.stranger("ben/2") as again:
            await again.hello(token=BEN)


async def test_who_gets_another_token_has_done_nothing() -> None:
    players = {hashed(BEN): "ben", hashed("a new one"): "ann"}
    async with with_a_long_match(requires_token=True) as (arena, ann, _, table):
        arena.gateway.roster_changed(msgspec.structs.replace(ROSTER, players=players))
        result, verdict = await arena.result(table)

        assert (result.termination.kind, verdict) == ("void", None)
        assert await ann.closed() == 4001
        async with arena.stranger("ann") as again:
            await again.hello(token="a new one")


async def test_who_is_away_when_its_token_is_revoked_does_not_come_back() -> None:
    async with with_a_long_match() as (arena, ann, _, table):
        await ann.vanish()
        await arena.until(lambda: not arena.plays("ann"))
        arena.gateway.roster_changed(WITHOUT_ANN)
        result, _ = await arena.result(table)

        assert result.termination.kind == "removed"
        said = {"name": "ann", "token": ANN, "resume": ann.session}
        assert await refuses(arena, **said) == (REFUSED, 4001)


# --- instructors ---


class InstructorClient:
    """Carries out requests, and remembers them."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    def __call__(self, message: Instruct, who: str) -> Done:
        self.heard.append((who, message.action))
        if message.action == "void":
            raise UsageError("expected a match, got none")
        if message.action == "stop":
            raise RuntimeError("a fault of ours")
        progress = Progress("akq-1", "monday", "ace_king_queen", "x", "on", 1, 2, None)
        return Done(f"{message.action} is done", (progress,))


def word(action: str = "status", **fields: Any) -> Message:
    """An instructor's request."""
    return {"type": "instruct", "protocol": 1, "token": PROF, "action": action, **fields}


@pytest.mark.parametrize(("encoding", "requires_token"), [("json", False), ("msgpack", True)])
async def test_an_instructor_is_heard_as_often_as_needed(
    encoding: str, requires_token: bool
) -> None:
    office = InstructorClient()

    async with opened(on_instruct=office, requires_token=requires_token) as arena:
        async with arena.stranger(encoding=encoding) as prof:
            await prof.say(**word("pause", competition="monday"))
            done = await prof.hears("done")

            assert done["text"] == "pause is done"
            assert done["competitions"][0]["run"] == "monday"

            await prof.say(**word("void"))

            refused = await prof.hears("refused")
            assert refused["code"] == "instruct"
            assert refused["text"] == "expected a match, got none"

            await prof.say(**word())

            assert (await prof.hears("done"))["text"] == "status is done"
        assert office.heard == [("prof", "pause"), ("prof", "void"), ("prof", "status")]
        assert arena.gateway.players == {}


async def test_nobody_else_is_heard() -> None:
    office = InstructorClient()

    async with opened(on_instruct=office) as arena:
        for fields in ({"token": ""}, {"token": ANN, "action": "stop"}, {"token": "x"}):
            async with arena.stranger() as stranger:
                await stranger.say(**word(**fields))

                refused = await stranger.hear()
                if fields["token"] == ANN:
                    assert "an instructor's token, got that of ann" in refused.pop("text")
                    assert refused.items() < REFUSED.items()
                else:
                    assert refused == REFUSED
                assert await stranger.closed() == 4001
        async with arena.stranger() as prof:
            await prof.say(**word())
            await prof.hears("done")
            await prof.say(**word(token=ANN))

            assert (await prof.refused())[::2] == ("token", 4001)
        async with arena.stranger("ann") as ann:
            await ann.hello(token=ANN)
            await ann.say(**word())
            text = "instruct may not be sent after welcome"

            assert await ann.refused() == ("malformed", text, 1002)
        assert office.heard == [("prof", "status")]


@pytest.mark.parametrize(
    ("access", "office", "fields", "refused"),
    [
        (ROSTER, InstructorClient(), {"protocol": 7}, ("version", "expected protocol 1, got 7")),
        (ROSTER, None, {}, ("instruct", "expected an arena with competitions to instruct")),
        (None, InstructorClient(), {}, ("token", TOKEN_NEEDED)),
    ],
    ids=["another version", "no competitions", "no roster"],
)
async def test_an_instructor_is_told_what_is_wrong(
    access: Access | None,
    office: InstructorClient | None,
    fields: dict[str, Any],
    refused: tuple[str, str],
) -> None:
    async with opened(access, on_instruct=office) as arena, arena.stranger() as prof:
        await prof.say(**word(**fields))
        said = await prof.hears("refused")

        assert said["code"] == refused[0]
        assert said["text"].startswith(refused[1])


async def test_an_instructor_whose_token_is_replaced_is_heard_no_more() -> None:
    async with (
        opened(on_instruct=InstructorClient()) as arena,
        arena.stranger() as prof,
        arena.stranger("ann") as ann,
    ):
        await ann.hello(token=ANN)
        await prof.say(**word())
        await prof.hears("done")
        new = {hashed("another"): "prof"}
        arena.gateway.roster_changed(msgspec.structs.replace(ROSTER, instructors=new))

        assert await prof.closed() == 4001
        async with arena.stranger() as again:
            await again.say(**word(token="another"))
            await again.hears("done")
        assert list(arena.gateway.players) == ["ann"]


async def test_a_fault_of_ours_is_not_the_instructors(caplog: pytest.LogCaptureFixture) -> None:
    async with opened(on_instruct=InstructorClient()) as arena:
        async with arena.stranger() as prof:
            await prof.say(**word("stop"))

            assert await prof.closed() == 1011
        await arena.still_plays()
    assert "the arena failed at a frame" in caplog.text


# --- guessing ---


async def test_wrong_tokens_do_not_keep_a_good_one_from_the_same_address_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = itertools.count()
    costs = SimpleNamespace(perf_counter=lambda: next(looks) * 0.000_5)  # to read from a stranger
    monkeypatch.setattr("arena.server.websocket.time", costs)

    async with with_a_long_match(requires_token=True) as (arena, ann, ben, table):
        for player in (ann, ben):
            line_of(player.websocket.transport).latency_s = 0.05
        playing = asyncio.gather(ann.plays_on(), ben.plays_on())
        guesses = await guess(arena.port, 100, at_once=50)
        attacking = asyncio.create_task(guess(arena.port, 2_000, at_once=50))
        await asyncio.sleep(0)
        async with arena.stranger("ann/2") as good:
            began_s = virtual_loop().time()
            await good.hello(token=ANN)

            assert virtual_loop().time() - began_s < 5
            assert not attacking.done()
            assert table.id not in arena.over
        attacking.cancel()
        playing.cancel()
        await asyncio.gather(attacking, playing, return_exceptions=True)

        assert [json.loads(said) for said in guesses] == [REFUSED]
        assert guesses.total() == 100


async def test_who_waits_in_the_line_is_cut_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.server.throttle._TURNS", 0)  # nobody's turn ever comes

    async with with_a_long_match(requires_token=True) as (arena, _, _, table):
        for _ in range(20):
            await guess(arena.port, 1)
            if table.id in arena.over:
                break
        assert await arena.answer_to(b"") == b""


# --- more than one address ---


async def test_the_same_arena_may_listen_on_several_addresses() -> None:
    async with opened() as arena:
        second = GatewayArena(arena.gateway, await arena.gateway.open("127.0.0.1", 0))
        assert second.port != arena.port
        async with arena.bot("zed") as one, second.bot("yve") as two:
            table = arena.open("ace_king_queen", "zed", "yve", hands=3)
            await asyncio.gather(one.play(), two.play())
            await arena.result(table)
            await arena.gateway.close()

            assert await one.closed() == await two.closed() == 1000
        for port in (arena.port, second.port):
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", port)


async def test_nothing_is_logged_when_strangers_come_and_go(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        async with opened() as arena:
            async with arena.bot("zed") as zed:
                arena.open("blackjack", "zed", hands=1)
                for _ in range(30):
                    _, writer = await asyncio.open_connection("127.0.0.1", arena.port)
                    writer.write(b"GET / HTTP/1.1\r\n")
                    writer.transport.abort()
                await zed.play()
            await arena.still_plays()
    assert caplog.records == []
