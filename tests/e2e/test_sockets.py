"""The server on real sockets: what only a kernel does, or what shows that all fits together.

Everything else of the server is tested in virtual time, beside it. No limit here is shorter than a
slow machine keeps; who is expected to miss one waits for it.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from protocol.messages import Ending, Limits
from tests.support.descriptors import no_descriptors
from tests.support.gateway_bots import HANDSHAKE, hello_frame, in_arena, in_arena_with

if TYPE_CHECKING:
    from tests.support.gateway_bots import GatewayArena, StartedProgram

pytestmark = pytest.mark.e2e
Start = Callable[..., "StartedProgram"]

PATIENT = {"decision_ms": 60_000, "bank_ms": 0, "hard_ms": 60_000, "grace_ms": 60_000}
EACH = 30  # bots in a process


@pytest.mark.parametrize("encoding", ["json", "msgpack"])
async def test_two_bots_play_over_sockets(arena: GatewayArena, encoding: str) -> None:
    async with arena.bots("ann", "ben", encoding=encoding, batch=True) as bots:
        table = arena.open("gin_rummy", "ann", "ben", max_rounds=2, max_turns=30)
        await asyncio.gather(*(bot.play() for bot in bots))
        result, verdict = await arena.result(table)

        assert (result.termination.kind, verdict) == (Ending.COMPLETED, None)


async def test_a_message_may_come_byte_by_byte(arena: GatewayArena) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", arena.port)
    for byte in HANDSHAKE + hello_frame("ann"):
        writer.write(bytes([byte]))
        await writer.drain()
    await reader.readuntil(b'"type":"welcome"')
    writer.close()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells it on Linux only")
async def test_J4_the_kernels_own_measure_of_the_link_is_evidence(arena: GatewayArena) -> None:
    async with arena.bot("ann") as ann:
        connection = arena.gateway.players["ann"].connection
        assert connection is not None
        least_ms = connection.min_rtt_ms
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


async def test_a_flood_of_strangers_does_not_keep_a_bot_out() -> None:
    async with in_arena(strangers=100) as arena, arena.bot("ann") as ann:
        flood = [await asyncio.open_connection("127.0.0.1", arena.port) for _ in range(300)]
        try:
            await arena.still_plays()
            arena.open("blackjack", "ann", hands=1)
            await ann.play()
            await asyncio.wait_for(
                asyncio.gather(*(reader.read() for reader, _ in flood[:200])), 60
            )
        finally:
            for _, writer in flood:
                writer.transport.abort()


# --- processes ---

needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP on Windows")


async def a_process(arena: GatewayArena, start: Start, name: str) -> StartedProgram:
    """A bot of ours in a process of its own."""
    options = ("--url", arena.url, "--name", name, "--quiet", "--no-session")
    program = start("bots", "ace_king_queen", "nash", *options)
    await arena.until(lambda: name in arena.gateway.players)
    return program


@needs_signals
async def test_who_stands_still_runs_out_of_time_and_nobody_else_notices(start: Start) -> None:
    limits = Limits(decision_ms=2_000, bank_ms=0, hard_ms=2_000, hello_ms=60_000, start_ms=60_000)
    async with in_arena_with(limits) as arena:
        referee = arena.gateway.referee
        ann = await a_process(arena, start, "ann")
        async with arena.bots("ben", "cid") as (ben, cid):
            endless = arena.open("ace_king_queen", "ann", "ben", hands=1_000_000)
            against_ann = asyncio.create_task(ben.play())
            while referee.decisions < 100:
                await asyncio.sleep(0.01)
            ann.process.send_signal(signal.SIGSTOP)
            other = arena.open("blackjack", "cid", hands=50)
            await cid.play()
            assert (await arena.result(other))[1] is None

            result, verdict = await arena.result(endless)
            assert result.termination.seat == 0
            assert verdict is not None
            assert (verdict.kind, verdict.bot) == ("timeout", "ann")
            assert (verdict.bank_ms, verdict.mechanism) == (0, "wall clock")
            [over] = await against_ann
            assert over["termination"] == {"kind": "timeout", "seat": 0, "text": ""}

            ann.process.send_signal(signal.SIGCONT)  # it sends an answer that nobody waits for
            again = arena.open("ace_king_queen", "ben", "ann", hands=50)
            await ben.play()
            assert (await arena.result(again))[1] is None


@needs_signals
async def test_who_vanishes_while_another_thinks_is_missed(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.referee.bot_session._PING_S", 0.1)
    monkeypatch.setattr("arena.referee.bot_session._SILENCE_S", 3.0)

    async with in_arena(**PATIENT | {"silence_ms": 300}) as arena:
        program = await a_process(arena, start, "ann")
        async with arena.bot("ben") as ben:
            table = arena.open("ace_king_queen", "ben", "ann", hands=50)
            await ben.ready()
            ask = await ben.hears("ask")
            ann = arena.gateway.players["ann"]
            assert ann.pending == 0
            program.process.send_signal(signal.SIGSTOP)
            await arena.until(lambda: ann.connection is None)
            result, verdict = await arena.result(table)

            assert result.winner == 0
            assert verdict is not None
            assert (verdict.kind, verdict.bot) == ("disconnect", "ann")
            assert verdict.text == "was silent for 300 ms in all"
            assert verdict.asked is None
            await ben.answer(ask)  # too late to matter, and no offence
            assert (await ben.hears("over"))["termination"]["kind"] == "disconnect"
            await arena.still_plays()


async def test_J5_without_descriptors_matches_go_on(
    arena: GatewayArena, caplog: pytest.LogCaptureFixture
) -> None:
    async with arena.bots("ann", "ben") as bots:
        loop, late = asyncio.get_running_loop(), [socket.socket() for _ in range(3)]
        with no_descriptors():
            for each in late:
                each.setblocking(False)
                await loop.sock_connect(each, ("127.0.0.1", arena.port))
            while not caplog.text:
                await asyncio.sleep(0)
            table = arena.open("ace_king_queen", "ann", "ben", hands=20)
            await asyncio.gather(*(bot.play() for bot in bots))
            result, verdict = await arena.result(table)
        for each in late:  # they have waited in the kernel's queue
            await loop.sock_sendall(each, HANDSHAKE)
            assert (await loop.sock_recv(each, 12)) == b"HTTP/1.1 101"
            each.close()

    assert (result.termination.kind, verdict) == (Ending.COMPLETED, None)
    [line] = [record.getMessage() for record in caplog.records]
    assert line.startswith("no connection can be accepted (too many open files, `ulimit -n` allows")


@pytest.fixture
def many_files() -> Iterator[None]:
    """Raise this process's limit of open files."""
    resource = pytest.importorskip("resource", reason="Windows has no such limit")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
async def test_a_crowd_plays_and_none_is_out(start: Start) -> None:
    async with in_arena(**PATIENT | {"hello_ms": 60_000, "start_ms": 60_000}) as arena:
        for name in ("left", "right"):
            start(
                *("tests.support.plain_bot", "--url", arena.url, "--count", str(EACH)),
                *("--game", "ace_king_queen", name),
            )
        await arena.until(lambda: len(arena.gateway.players) == 2 * EACH)
        tables = [
            arena.open("ace_king_queen", f"left {n}", f"right {n}", hands=50) for n in range(EACH)
        ]
        results = [await arena.result(table) for table in tables]

        assert {(result.termination.kind, verdict) for result, verdict in results} == {
            (Ending.COMPLETED, None)
        }
