"""What `arena/workers/bus.py` promises, of the double in memory and of the real bus alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias

import pytest

from arena.workers import nats_bus
from arena.workers.bus import Bus, BusDown, JobDelivery
from tests.support.bus_listener import SOON_S, BusListener
from tests.support.memory_bus import MemoryBroker
from tests.support.nats_server import NatsServer, nats_server
from tests.support.not_none import not_none

__all__ = ["nats_server"]

ACK_WAIT_S = 1.0
JOB, RESULT = b"a job", b"a result"


Connect: TypeAlias = Callable[[str], Awaitable[Bus]]
"""A client by the name of its user: `arena`, `w1` or `w2`."""


@pytest.fixture(params=["memory", "nats"])
async def connect(request: pytest.FixtureRequest) -> AsyncIterator[Connect]:
    clients: list[Bus] = []
    broker = MemoryBroker(ack_wait_s=ACK_WAIT_S)

    async def in_memory(name: str) -> Bus:
        clients.append(broker.client())
        return clients[-1]

    async def by_nats(name: str) -> Bus:
        server: NatsServer = request.getfixturevalue("nats_server")
        address = server.address(name)
        clients.append(await nats_bus.connect(address, name, name, ack_wait_s=ACK_WAIT_S))
        return clients[-1]

    if request.param == "nats":
        request.getfixturevalue("nats_server")
    yield in_memory if request.param == "memory" else by_nats
    for bus in clients:
        await bus.close()


Opened: TypeAlias = tuple[Bus, Bus]
"""An arena with a queue of jobs, and a worker."""


@pytest.fixture
async def opened(connect: Connect) -> Opened:
    arena, worker = await connect("arena"), await connect("w1")
    await BusListener().open(arena, "a1")
    await arena.open_class("c1")
    return arena, worker


async def fetched(worker: Bus) -> JobDelivery:
    return not_none(await worker.fetch("c1", SOON_S))


async def two_of(queue: asyncio.Queue[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    return sorted([await asyncio.wait_for(queue.get(), SOON_S) for _ in range(2)])


async def test_a_job_is_there_once_and_is_gone_when_it_is_acknowledged(opened: Opened) -> None:
    arena, worker = opened

    assert await arena.put("c1", "j1", JOB)
    assert not await arena.put("c1", "j1", JOB)
    delivery = await fetched(worker)
    assert delivery.data == JOB
    assert not await arena.put("c1", "j1", JOB)
    assert await worker.fetch("c1", 0.05) is None
    await delivery.ack()
    assert await arena.put("c1", "j1", JOB)


async def test_a_job_nobody_keeps_up_is_delivered_again(connect: Connect, opened: Opened) -> None:
    arena, worker = opened
    await arena.put("c1", "j1", JOB)

    await fetched(worker)
    again = await fetched(await connect("w2"))
    assert again.data == JOB
    await again.give_back(0.0)
    assert await fetched(worker)


async def test_a_job_that_is_withdrawn_is_gone_and_can_be_put_again(opened: Opened) -> None:
    arena, worker = opened
    await arena.put("c1", "j1", JOB)
    await arena.put("c1", "j2", b"another")
    await arena.withdraw("c1", "j1")
    assert (await fetched(worker)).data == b"another"

    await arena.withdraw("c1", "j2")  # a worker has it

    assert await arena.put("c1", "j2", b"once more")
    again = await fetched(worker)
    assert again.data == b"once more"
    await again.ack()
    await arena.withdraw("c1", "j2")
    assert await worker.fetch("c1", 0.05) is None


async def test_requests_reach_whom_they_name_or_fail(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = await connect("w1")
    await BusListener().open(await connect("arena"), "a1")

    assert await worker.announce("a1", "w1", b"x") == b"granted w1 x"
    assert await worker.program_part("a1", "w1", b"y") == b"part for w1 y"
    monkeypatch.setattr("arena.hosts.nats_connection.REPLY_S", 0.5)
    with pytest.raises(BusDown, match="a2"):
        await worker.announce("a2", "w1", b"x")
    with pytest.raises(BusDown, match="c9"):  # a class that nobody has opened
        await worker.fetch("c9", 0.05)


async def test_messages_reach_those_whom_they_are_for(connect: Connect) -> None:
    """Reports all arenas and operators, frames one arena, and a command its worker."""
    w1, w2, operator = await connect("w1"), await connect("w2"), await connect("arena")
    arena = await connect("arena")
    one = await BusListener().open(arena, "a1")
    other = await BusListener().open(await connect("arena"), "a2")
    reports: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
    commands: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
    await operator.on_reports(lambda worker, data: reports.put_nowait((worker, data)))
    await w1.on_command("w1", lambda data: commands.put_nowait(("w1", data)))
    await w2.on_command("w2", lambda data: commands.put_nowait(("w2", data)))

    await w1.report("w1", b"here")
    await w2.report("w2", b"here too")
    await w1.frames("a1", "w1", "m1", b"seen")
    await arena.command("w2", b"for two")
    await arena.command("w1", b"for one")

    here = [("w1", b"here"), ("w2", b"here too")]
    assert [await two_of(queue) for queue in (one.reports, other.reports, reports)] == [here] * 3
    assert await two_of(commands) == [("w1", b"for one"), ("w2", b"for two")]
    assert await asyncio.wait_for(one.frames.get(), SOON_S) == ("w1", "m1", b"seen")
    assert other.frames.empty()


@pytest.mark.parametrize("size", [10, 3 << 20], ids=["small", "larger than a message"])
async def test_a_result_is_delivered_until_it_is_acknowledged(connect: Connect, size: int) -> None:
    arena, worker = await connect("arena"), await connect("w1")
    listener = await BusListener().open(arena, "a1")
    await arena.open_worker("w1")
    data = bytes(range(256)) * (size // 256 + 1)

    await worker.hand_in("a1", "w1", "m1", data)
    await worker.hand_in("a1", "w1", "m1", data)
    first = await listener.result()
    assert (first.worker, first.attempt) == ("w1", "m1")
    assert await first.read() == data
    await first.give_back(0.05)
    again = await listener.result()
    assert await again.read() == data
    await again.ack()
    await worker.hand_in("a1", "w1", "m2", RESULT)
    assert (await listener.result()).attempt == "m2"


async def test_a_result_waits_for_an_arena_that_is_closed(connect: Connect) -> None:
    arena, worker = await connect("arena"), await connect("w1")
    await BusListener().open(arena, "a1")
    await arena.open_worker("w1")
    await arena.close_arena(forever=False)
    await worker.hand_in("a1", "w1", "m1", RESULT)

    result = await (await BusListener().open(await connect("arena"), "a1")).result()

    assert await result.read() == RESULT


async def test_closed_forever_an_arena_leaves_what_is_of_others(connect: Connect) -> None:
    arena, other, worker = await connect("arena"), await connect("arena"), await connect("w1")
    await BusListener().open(arena, "a1")
    await BusListener().open(other, "a2")
    await arena.open_class("c1")
    await other.open_class("c1")
    await other.put("c1", "j1", b"of the other")
    await arena.put("c1", "j1", JOB)
    await other.put("c1", "j2", b"of the other, too")

    await arena.close_arena(forever=True)

    left = [await worker.fetch("c1", wait_s) for wait_s in (SOON_S, SOON_S, 0.05)]
    assert [job and job.data for job in left] == [b"of the other", b"of the other, too", None]


async def test_a_job_for_which_nobody_waits_any_more_goes_to_another(connect: Connect) -> None:
    arena, w1, w2 = await connect("arena"), await connect("w1"), await connect("w2")
    await BusListener().open(arena, "a1")
    await arena.open_class("c1")
    waiting = asyncio.create_task(w1.fetch("c1", SOON_S))
    assert await w1.fetch("c1", 0.05) is None  # the other request is there by now

    waiting.cancel()
    await arena.put("c1", "j1", JOB)

    async with asyncio.timeout(ACK_WAIT_S * 0.9):
        assert await w2.fetch("c1", SOON_S) is not None
