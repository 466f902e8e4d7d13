"""Nobody loses on time by the network or the arena (J7), and nobody gains by pretending to."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec
import pytest
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.uri import parse_uri

from arena.referee.bot_session import BotSession
from arena.referee.clock import Lag, RoundTripFloor
from protocol.messages import Ending, Limits, Verdict
from tests.support.gateway_bots import RawBot, in_arena
from tests.support.proxy import SlowProxy

if TYPE_CHECKING:
    from tests.support.gateway_bots import GatewayArena, StartedProgram

pytestmark = pytest.mark.e2e
Start = Callable[..., "StartedProgram"]

MOST_CREDIT_MS = 150.0  # design §5
RESOLUTION_MS = 15.0  # a tick, its slack, and rounding


async def until(holds: Callable[[], bool]) -> None:
    """Wait for what no event tells; the test's own time limit applies."""
    while not holds():
        await asyncio.sleep(0.005)


async def is_measured(arena: GatewayArena, name: str) -> BotSession:
    """The bot's session, once its link is measured."""
    player = arena.gateway.players[name]
    await until(lambda: player.link.is_known)
    return player


async def thinks(bot: RawBot, think_ms: float) -> None:
    """Play one match, and take so long for every decision."""
    await bot.ready()
    while (message := await bot.hear())["type"] == "ask":
        await asyncio.sleep(think_ms / 1000)
        await bot.answer(message)
    assert message["type"] == "over"


def short(cap_ms: int) -> dict[str, int]:
    """Limits without a bank: the time for a decision, and not a millisecond more."""
    return {"decision_ms": cap_ms, "hard_ms": cap_ms, "bank_ms": 0}


def the(verdict: Verdict | None) -> Verdict:
    assert verdict is not None
    return verdict


# ---- A slow network

CAP_MS = 600


async def far_away(arena: GatewayArena) -> tuple[Ending, Verdict | None, float]:
    """The ending and the link's floor of a bot on a slow network, with a tenth of its time left."""
    async with SlowProxy(arena.port, delay_ms=60, jitter_ms=15) as proxy:
        arena.url = proxy.url
        async with arena.bot() as ann:
            player = await is_measured(arena, "ann")
            table = arena.open("three_card_poker", "ann", rounds=1)
            await thinks(ann, 0.9 * CAP_MS)
            result, verdict = await arena.result(table)
            return result.termination.kind, verdict, player.link.floor_ms


async def test_J7_who_is_far_away_does_not_lose_to_the_network() -> None:
    async with in_arena(**short(CAP_MS)) as arena:
        ended, verdict, floor_ms = await far_away(arena)

        assert (ended, verdict) == ("completed", None)
        assert 120 <= floor_ms <= MOST_CREDIT_MS


async def test_without_the_credit_for_its_link_it_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RoundTripFloor, "floor_ms", 0.0)

    async with in_arena(**short(CAP_MS)) as arena:
        ended, verdict, _ = await far_away(arena)

        assert ended == "timeout"
        assert (the(verdict).taken_ms or 0) > CAP_MS


async def test_J7_who_comes_back_from_far_away_keeps_the_credit_for_its_link() -> None:
    async with (
        in_arena(decision_ms=CAP_MS, hard_ms=3_000, bank_ms=2_000) as arena,
        SlowProxy(arena.port, delay_ms=60, jitter_ms=15) as proxy,
    ):
        arena.url = proxy.url
        async with arena.bot() as ann:
            await is_measured(arena, "ann")
            arena.open("three_card_poker", "ann", rounds=2)
            await ann.ready()
            await ann.hears("ask")
            await ann.vanish()
        async with arena.back(ann) as back:
            await back.ready()
            await back.answer(await back.hears("ask"))
            banks = []
            while (message := await back.hear())["type"] == "ask":
                banks.append(message["bank_ms"])
                await asyncio.sleep(0.9 * CAP_MS / 1000)
                await back.answer(message)

        assert message["termination"]["kind"] == "completed"
        assert len(banks) >= 2
        assert len(set(banks)) == 1  # it was asked at once, and has never been idle


# ---- Pongs by hand


class ByHand:
    """A WebSocket that calls `pong` with the payload of every ping, and sends none by itself."""

    def __init__(
        self, url: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.pong: Callable[[bytes], None] = self.send_pong
        self._wire = ClientProtocol(parse_uri(url), max_size=None)
        self._reader, self._writer = reader, writer
        self._heard: asyncio.Queue[str] = asyncio.Queue()

    @classmethod
    @asynccontextmanager
    async def connect(cls, arena: GatewayArena) -> AsyncIterator[ByHand]:
        """Open one; a task reads from then on."""
        reader, writer = await asyncio.open_connection("127.0.0.1", arena.port)
        hand = cls(arena.url, reader, writer)
        hand._wire.send_request(hand._wire.connect())
        hand._flush()
        listening = asyncio.create_task(hand._listen())
        try:
            yield hand
        finally:
            listening.cancel()
            writer.close()

    async def send(self, text: str) -> None:
        self._writer.write(Frame(Opcode.TEXT, text.encode()).serialize(mask=True))

    async def recv(self) -> str:
        return await self._heard.get()

    def send_pong(self, payload: bytes) -> None:
        self._writer.write(Frame(Opcode.PONG, payload).serialize(mask=True))

    async def _listen(self) -> None:
        while data := await self._reader.read(65536):
            self._wire.receive_data(data)
            for event in self._wire.events_received():
                # Anything else is the response to the handshake.
                if isinstance(event, Frame) and event.opcode is Opcode.TEXT:
                    self._heard.put_nowait(bytes(event.data).decode())
                elif isinstance(event, Frame) and event.opcode is Opcode.PING:
                    self.pong(bytes(event.data))
            self._wire.data_to_send()  # drops the library's own pongs

    def _flush(self) -> None:
        for data in self._wire.data_to_send():
            self._writer.write(data)


@asynccontextmanager
async def by_hand(
    arena: GatewayArena, pong: Callable[[ByHand, bytes], None]
) -> AsyncIterator[RawBot]:
    """A bot that is welcome, and calls `pong` at every ping."""
    async with ByHand.connect(arena) as hand:
        hand.pong = lambda payload: pong(hand, payload)
        bot = RawBot(hand, "ann")  # type: ignore[arg-type]
        await bot.hello()
        yield bot


def late(hand: ByHand, payload: bytes) -> None:
    """Hold a pong back for 400 ms."""
    asyncio.get_running_loop().call_later(0.4, hand.send_pong, payload)


async def test_J7_who_holds_back_its_pongs_gains_150_ms_a_move() -> None:
    async with in_arena(**short(300)) as arena, by_hand(arena, late) as ann:
        player = await is_measured(arena, "ann")
        table = arena.open("three_card_poker", "ann", rounds=1)
        await thinks(ann, 300 + 100)
        result, _ = await arena.result(table)

        assert player.link.floor_ms == MOST_CREDIT_MS
        assert result.termination.kind == "completed"


async def test_J7_and_not_a_millisecond_more() -> None:
    async with in_arena(**short(300)) as arena, by_hand(arena, late) as ann:
        await is_measured(arena, "ann")
        lag = arena.gateway.referee.lag
        before_s = lag.total_s(time.monotonic())
        table = arena.open("three_card_poker", "ann", rounds=1)
        await ann.ready()
        await ann.hears("ask")
        _, found = await arena.result(table)
        verdict = the(found)
        lag_ms = (lag.total_s(time.monotonic()) - before_s) * 1000
        credit_ms, waited_ms = verdict.credit_ms or 0, verdict.waited_ms or 0

        assert (verdict.kind, verdict.bank_ms) == ("timeout", 0)
        assert MOST_CREDIT_MS <= credit_ms <= MOST_CREDIT_MS + lag_ms + 0.1
        assert 300 < waited_ms - credit_ms <= 300 + RESOLUTION_MS


async def test_a_forged_pong_counts_for_nothing(arena: GatewayArena) -> None:
    def forge(hand: ByHand, payload: bytes) -> None:
        for _ in range(10):
            hand.send_pong(os.urandom(len(payload)))

    async with by_hand(arena, forge):
        player = arena.gateway.players["ann"]
        wire = player.connection
        assert wire is not None
        await until(lambda: wire.useless >= 10)  # all of them have been processed

        assert not player.link.is_known
        assert player.link.floor_ms == 0


async def test_a_pong_counts_once_and_for_its_own_ping(arena: GatewayArena) -> None:
    pings: list[bytes] = []

    def answer_old_ones_first(hand: ByHand, payload: bytes) -> None:
        for old in pings:  # they would be the quickest ever
            hand.send_pong(old)
        pings.append(payload)
        asyncio.get_running_loop().call_later(0.1, hand.send_pong, payload)

    async with by_hand(arena, answer_old_ones_first):
        player = await is_measured(arena, "ann")

        assert len(pings) >= 3
        assert len(set(pings)) == len(pings)
        assert 99 <= player.link.floor_ms <= MOST_CREDIT_MS


# ---- The arena is held up

BLOCK_S = 0.3
HELD_UP_CAP_MS = 250


async def held_up(arena: GatewayArena, start: Start, times: int = 8) -> Verdict | None:
    """The verdict on a quick bot in an arena whose loop stands still again and again."""
    await a_process(arena, start, "ann", ("three_card_poker", "q64"))
    referee = arena.gateway.referee
    table = arena.open("three_card_poker", "ann", rounds=10_000, stake=10**6)
    await until(lambda: referee.decisions > 0)
    for _ in range(times):
        asyncio.get_running_loop().call_soon(time.sleep, BLOCK_S)
        await asyncio.sleep(0.03)  # some decisions are made, and the next is on its way
        if table.is_over:
            break
    if not table.is_over:
        referee.void(table, "enough")
    _, verdict = await arena.result(table)
    return verdict


async def test_J7_nobody_loses_on_time_when_the_arena_is_held_up(start: Start) -> None:
    async with in_arena(**short(HELD_UP_CAP_MS)) as arena:
        assert await held_up(arena, start) is None
        assert arena.gateway.referee.decisions > 8


async def test_without_the_credit_for_that_they_would(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lag, "total_s", lambda lag, now: 0.0)

    async with in_arena(**short(HELD_UP_CAP_MS)) as arena:
        verdict = the(await held_up(arena, start))

        assert verdict.kind == "timeout"
        assert (verdict.taken_ms or 0) >= BLOCK_S * 1000


# ---- Processes that stand still

needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP on Windows")


async def a_process(
    arena: GatewayArena,
    start: Start,
    name: str,
    strategy: tuple[str, str] = ("ace_king_queen", "nash"),
) -> StartedProgram:
    """A bot of ours in a process of its own."""
    options = ("--url", arena.url, "--name", name, "--quiet", "--no-session")
    program = start("bots", *strategy, *options)
    await arena.until(lambda: name in arena.gateway.players)
    return program


@needs_signals
async def test_who_stands_still_runs_out_of_time_and_nobody_else_notices(start: Start) -> None:
    async with in_arena(decision_ms=300, bank_ms=200, hard_ms=1_000) as arena:
        referee = arena.gateway.referee
        ann = await a_process(arena, start, "ann")
        async with arena.bots("ben", "cid") as (ben, cid):
            endless = arena.open("ace_king_queen", "ann", "ben", hands=1_000_000)
            against_ann = asyncio.create_task(ben.play())
            await until(lambda: referee.decisions >= 100)
            ann.process.send_signal(signal.SIGSTOP)
            other = arena.open("blackjack", "cid", hands=50)
            await cid.play()
            result, _ = await arena.result(other)
            assert result.termination.kind == "completed"

            result, found = await arena.result(endless)
            verdict = the(found)
            assert result.termination.seat == 0
            assert (verdict.kind, verdict.bot) == ("timeout", "ann")
            assert (verdict.bank_ms, verdict.mechanism) == (0, "wall clock")
            # It had the rest of its bank, its decision_ms, and no more.
            took_ms = (verdict.taken_ms or 0) - (verdict.credit_ms or 0)
            assert 300 < took_ms <= 300 + 200 + RESOLUTION_MS
            [over] = await against_ann
            assert over["termination"] == {"kind": "timeout", "seat": 0, "text": ""}

            ann.process.send_signal(signal.SIGCONT)  # it sends an answer that nobody waits for
            again = arena.open("ace_king_queen", "ben", "ann", hands=50)
            await ben.play()
            result, verdict_now = await arena.result(again)
            assert (result.termination.kind, verdict_now) == ("completed", None)


@needs_signals
async def test_who_vanishes_while_another_thinks_is_missed(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.referee.pings._PING_S", 0.1)
    monkeypatch.setattr("arena.referee.pings._SILENCE_S", 0.5)

    async with in_arena(grace_ms=300) as arena:
        program = await a_process(arena, start, "ann")
        async with arena.bot("ben") as ben:
            table = arena.open("ace_king_queen", "ben", "ann", hands=50)
            await ben.ready()
            ask = await ben.hears("ask")
            ann = arena.gateway.players["ann"]
            assert ann.pending == 0
            program.process.send_signal(signal.SIGSTOP)
            await arena.until(lambda: ann.connection is None)
            assert not table.is_over  # it could come back

            result, found = await arena.result(table)
            assert result.winner == 0
            verdict = the(found)
            assert (verdict.kind, verdict.bot) == ("disconnect", "ann")
            assert "did not come back within 300 ms" in verdict.text
            assert verdict.asked is None
            await ben.answer(ask)  # too late to matter, and no offence
            over = await ben.hears("over")
            assert over["termination"]["kind"] == "disconnect"
            await arena.still_plays()


async def test_a_ping_that_waits_behind_a_long_thought_is_no_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("arena.referee.pings._PING_S", 0.0)
    monkeypatch.setattr("arena.referee.pings._SILENCE_S", 0.4)
    held: list[bytes] = []

    async with (
        in_arena() as arena,
        by_hand(arena, ByHand.send_pong) as ann,
        arena.bot("ben") as ben,
    ):
        player = await is_measured(arena, "ann")
        hand: ByHand = ann.websocket  # type: ignore[assignment]
        hand.pong = held.append  # one thread reads, thinks and answers
        await until(lambda: bool(held))
        arena.open("ace_king_queen", "ann", "ben", hands=1)
        await asyncio.gather(ann.ready(), ben.ready())
        ask = await ann.hears("ask")
        await asyncio.sleep(0.8)
        await ann.answer(ask, "bet")
        await asyncio.sleep(0.2)  # the pings are looked at while ben is asked
        assert player.connection is not None
        for payload in held:
            hand.send_pong(payload)
        hand.pong = hand.send_pong
        await ben.answer(await ben.hears("ask"))
        assert player.connection is not None
        await ann.hears("over")


# ---- A crowd

HANDS = 200
DEFAULTS = msgspec.to_builtins(Limits())

CROWD = 500
EACH = CROWD // 2  # in a process


@pytest.fixture
def many_files() -> Iterator[None]:
    """Raise this process's limit of open files."""
    resource = pytest.importorskip("resource", reason="Windows has no such limit")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
async def test_five_hundred_bots_play_and_none_is_out(start: Start) -> None:
    async with in_arena(**DEFAULTS) as arena:
        for name in ("left", "right"):
            start(
                *("tests.support.crowd", "--url", arena.url, "--count", str(EACH)),
                *("--name", name, "--game", "ace_king_queen"),
            )
        await arena.until(lambda: len(arena.gateway.players) == CROWD)
        tables = [
            arena.open("ace_king_queen", f"left {n}", f"right {n}", hands=HANDS)
            for n in range(EACH)
        ]
        await arena.until(lambda: len(arena.over) == EACH)

        for table in tables:
            result, verdict = arena.over[table.id]
            assert (result.termination.kind, verdict) == ("completed", None)
            assert len(result.record.answers) >= HANDS
