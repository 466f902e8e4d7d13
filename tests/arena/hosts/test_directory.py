"""What an instructor sees of hosts, and that one obeys; who was lost with one."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from arena.games.names import process_name
from arena.hosts.directory import HostDirectory
from arena.hosts.messages import encode
from protocol.errors import UsageError
from protocol.instructions import LostBot
from protocol.messages import Limits
from tests.support.hosted_arena import KIND, MemoryHostBus, hosted_arena, report_of

pytestmark = pytest.mark.virtual_time

LIMITS = Limits(decision_ms=100, bank_ms=0, hard_ms=100, wall_ms=400)


def report(host: str, **about: Any) -> bytes:
    return encode(report_of(host, **about))


async def directory_on(bus: MemoryHostBus) -> HostDirectory:
    directory = HostDirectory(bus, "a", Limits(), "ws://a", lambda host: "ticket", lambda host: 1)
    await directory.open()
    return directory


@pytest.mark.parametrize(
    ("about", "state", "why"),
    [
        ({}, "idle", ""),
        ({"bots": 2}, "working", ""),
        ({"bots": 2, "is_draining": True}, "draining", ""),
        ({"last_error": "10 MiB of disk left"}, "idle", "10 MiB of disk left"),
    ],
)
async def test_what_a_host_does_is_shown(about: dict[str, Any], state: str, why: str) -> None:
    bus = MemoryHostBus()
    directory = await directory_on(bus)
    await bus.report("h1", report("h1", **about))
    [view] = directory.views()

    assert (view.host, view.state, view.why, view.own_bots) == ("h1", state, why, 1)
    await asyncio.sleep(7)
    [view] = directory.views()
    assert (view.state, view.why) == ("silent", "it has not reported for 7 s")
    bus.is_down = True
    [view] = directory.views()
    assert view.why == "it has not reported for 7 s, as the bus is gone"


async def test_a_host_that_cannot_run_bots_of_this_arena_says_why() -> None:
    bus = MemoryHostBus()
    directory = await directory_on(bus)
    await bus.report("h1", report("h1", kind=msgspec.structs.replace(KIND, isolation="")))

    assert [(view.state, view.why) for view in directory.views()] == [
        ("unfit", "it does not isolate bots")
    ]


async def test_who_was_lost_more_often_than_the_others_comes_first() -> None:
    directory = await directory_on(MemoryHostBus())
    for bot, starts, losses in (("ann", 10, 2), ("ben", 10, 6), ("cyd", 20, 2), ("dan", 9, 0)):
        for number in range(starts):
            directory.started(process_name(bot, number))
        for number in range(losses):
            directory.was_lost(process_name(bot, number))

    assert directory.lost == 10
    assert directory.lost_bots() == (
        LostBot("ben", 6, 10, 1.03),
        LostBot("ann", 2, 10, 2.05),
        LostBot("cyd", 2, 20, 5.52),
    )


async def test_who_alone_was_on_hosts_is_compared_with_nobody() -> None:
    directory = await directory_on(MemoryHostBus())
    directory.started("ann")
    directory.was_lost("ann")

    assert directory.lost_bots() == (LostBot("ann", 1, 1, 0.0),)


@pytest.mark.parametrize(
    ("host", "spoil", "why"),
    [
        ("h9", "", "expected a host that reports (h1), got 'h9'"),
        ("h1", "silent", "expected a host that reports (none), got 'h1'"),
        ("h1", "bus", "expected a bus that carries the order: the bus is gone"),
        ("h1", "host", "expected a host that obeys, h1 was told 3 times"),
    ],
)
async def test_a_host_that_cannot_be_told_is_named(host: str, spoil: str, why: str) -> None:
    bus = MemoryHostBus()
    directory = await directory_on(bus)
    await bus.report("h1", report("h1"))
    bus.is_down = spoil == "bus"
    await asyncio.sleep(6 if spoil == "silent" else 0)
    with pytest.raises(UsageError) as caught:
        await directory.drain(host, is_draining=True)

    assert str(caught.value) == why


async def test_a_host_drains_and_those_that_are_lost_are_counted() -> None:
    async with hosted_arena(LIMITS, ann=1, ben=2) as here:
        first, second = (here.machine(name, lambda name: 0.05) for name in ("h1", "h2"))
        first.start()
        playing = here.arena.begin(here.plan("ann", "ben", matches=40))
        await asyncio.sleep(2)
        [busy] = here.directory.views()
        second.start()
        await asyncio.sleep(1)
        await here.directory.drain("h2", is_draining=True)
        states = [view.state for view in here.directory.views()]
        await here.directory.drain("h2", is_draining=False)
        await first.die()
        await playing
        rows, total = here.directory.lost_bots(), here.directory.lost

    assert (busy.host, busy.state, busy.own_bots) == ("h1", "working", busy.bots)
    assert states == ["working", "draining"]
    assert {row.bot for row in rows} == {"ann", "ben"}
    assert all(0 < row.lost < row.of for row in rows)
    assert sum(row.lost for row in rows) == total == 4
