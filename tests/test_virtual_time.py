"""The loop whose clock jumps, its network in memory, and an arena on both (tests/support)."""

from __future__ import annotations

import asyncio
import time

import pytest

from arena.storage.live_results import LiveResults
from arena.storage.store import CompetitionState
from protocol.messages import Ending
from tests.support.arena_in_memory import in_host, plan_for
from tests.support.memory_network import line_of
from tests.support.virtual_time import run_in_virtual_time, virtual_loop

pytestmark = pytest.mark.virtual_time


class EchoPeer(asyncio.Protocol):
    """Notes what happens to it, and when."""

    def __init__(self) -> None:
        self.events: list[tuple[float, object]] = []
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.began_s = virtual_loop().time()

    def note(self, what: object) -> None:
        self.events.append((round(virtual_loop().time() - self.began_s, 3), what))

    def data_received(self, data: bytes) -> None:
        self.note(data if len(data) < 100 else len(data))

    def eof_received(self) -> None:
        self.note("end")

    def connection_lost(self, error: Exception | None) -> None:
        self.note(type(error).__name__)

    def pause_writing(self) -> None:
        self.note("pause")

    def resume_writing(self) -> None:
        self.note("resume")


async def two_peers() -> tuple[EchoPeer, EchoPeer]:
    """A client, and the server that it has reached."""
    loop, server = virtual_loop(), EchoPeer()
    listening = await loop.create_server(lambda: server, "127.0.0.1", 0)
    _, client = await loop.create_connection(EchoPeer, *listening.sockets[0].getsockname())
    await asyncio.sleep(0)
    return client, server


# --- time ---


def test_hours_pass_in_a_moment() -> None:
    began_s = time.monotonic()

    run_in_virtual_time(asyncio.sleep(36_000))

    assert time.monotonic() - began_s < 60


async def test_no_time_passes_while_a_thread_works() -> None:
    loop = virtual_loop()
    began_s = loop.time()
    await asyncio.to_thread(time.sleep, 0.05)

    assert loop.time() == began_s


async def test_all_that_is_due_after_a_stall_is_late() -> None:
    loop, late = virtual_loop(), list[float]()
    began_s = loop.time()
    loop.call_later(1, lambda: late.append(loop.time() - began_s))
    loop.stands_still(40)
    await asyncio.sleep(1)

    assert late == [40]


@pytest.mark.parametrize(
    ("waits", "why"),
    [
        (lambda: asyncio.sleep(11), "more than 10 s of virtual time"),
        (lambda: asyncio.Event().wait(), "nothing is due: all wait for each other"),
    ],
    ids=["too long", "for nothing"],
)
def test_who_waits_for_what_does_not_come_is_told(waits: object, why: str) -> None:
    with pytest.raises(AssertionError, match=why):
        run_in_virtual_time(waits(), 10)  # type: ignore[operator]


# --- the network ---


async def test_bytes_and_the_end_arrive_in_order() -> None:
    client, server = await two_peers()
    line_of(client.transport).latency_s = 0.2
    client.transport.write(b"one")
    client.transport.write(b"two")
    client.transport.close()
    await asyncio.sleep(1)

    assert server.events == [(0.2, b"onetwo"), (0.2, "end"), (0.2, "NoneType")]
    assert client.events == [(0, "NoneType")]


async def test_who_does_not_read_holds_the_writer_up() -> None:
    client, server = await two_peers()
    server.transport.pause_reading()
    client.transport.write(bytes(400_000))
    await asyncio.sleep(1)
    waiting = client.transport.get_write_buffer_size()
    server.transport.resume_reading()
    await asyncio.sleep(1)

    assert waiting == 400_000 - line_of(client.transport).network.window_bytes
    assert client.events == [(0, "pause"), (1, "resume")]
    assert [event for _, event in server.events] == [262_144, 137_856]


async def test_a_dead_line_tells_nobody_and_goes_on() -> None:
    client, server = await two_peers()
    line = line_of(client.transport)
    line.is_held = True
    client.transport.write(b"late")
    await asyncio.sleep(10)
    before = list(server.events)
    line.is_held = False
    await asyncio.sleep(1)

    assert (before, server.events) == ([], [(10, b"late")])


async def test_a_line_that_breaks_is_lost_at_both_ends() -> None:
    client, server = await two_peers()
    line_of(client.transport).breaks()
    await asyncio.sleep(1)

    assert client.events == server.events == [(0, "ConnectionResetError")]


async def test_who_writes_to_one_that_has_closed_is_reset() -> None:
    client, server = await two_peers()
    client.transport.abort()
    server.transport.write(b"too late")
    await asyncio.sleep(1)

    assert [event for _, event in server.events][-1] in ("NoneType", "ConnectionResetError")


async def test_nobody_listens() -> None:
    with pytest.raises(ConnectionRefusedError, match="Connect call failed"):
        await asyncio.open_connection("127.0.0.1", 9)


# --- an arena ---


async def test_a_host_plays_a_league_and_writes_it() -> None:
    async with in_host() as arena:
        began_s = virtual_loop().time()
        plan = plan_for("three_card_poker", ("ann", "ben"), matches=2, settings={"rounds": 4})
        playing = arena.begin(plan)
        await asyncio.sleep(2.5)
        await arena.come("ann", "ben")
        report = await playing
        await arena.store.flushed()
        results = LiveResults(arena.store, report.competition)

        assert report.state is CompetitionState.FINISHED
        assert [row.played for row in report.standings] == [2, 2]
        assert results.standings == report.standings
        assert {
            match.result.termination.kind for match in arena.store.results(report.competition)
        } == {Ending.COMPLETED}
        assert virtual_loop().time() - began_s < 4


async def test_bots_with_one_table_play_three_competitions_at_once() -> None:
    async with in_host() as arena:
        await arena.come("ann", "ben")
        games = ("ace_king_queen", "three_card_poker", "blackjack")
        playing = [arena.begin(plan_for(game, ("ann", "ben"))) for game in games]
        reports = [await report for report in playing]

        assert [(report.played > 0, report.verdicts) for report in reports] == [(True, ())] * 3
