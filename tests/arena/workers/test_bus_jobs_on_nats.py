"""Jobs over a real nats-server: played by workers, also if the server loses all that it has."""

from __future__ import annotations

import asyncio

import pytest

from arena.workers.bus import ARENA_USER
from arena.workers.bus_jobs import BusJobs
from arena.workers.dispatch import worker_class
from arena.workers.nats_bus import connect
from arena.workers.worker import Worker
from tests.support.bus_stage import (
    FakeDatabase,
    FakePrograms,
    RecordChecker,
    RulesPlayer,
    StageJobWatcher,
    a_job,
    a_report,
)
from tests.support.nats_server import NatsServer, nats_server

__all__ = ["nats_server"]

pytestmark = pytest.mark.e2e
PAIRINGS = 40


@pytest.mark.parametrize("is_lost", [False, True], ids=["kept", "lost"])
async def test_every_match_is_played_once(nats_server: NatsServer, is_lost: bool) -> None:
    buses = {
        user: await connect(nats_server.address(user), user, user)
        for user in (ARENA_USER, "w1", "w2")
    }
    jobs = BusJobs(
        buses[ARENA_USER], "a1", FakeDatabase(), RecordChecker(), programs=FakePrograms()
    )
    await jobs.start()
    working = []
    for name in ("w1", "w2"):
        player, profile = RulesPlayer(0.1), a_report(name)
        of_class = worker_class(profile.kind, profile.speed)
        worker = Worker(buses[name], player, player, profile, of_class)
        working.append(asyncio.ensure_future(worker.run()))
    ended = asyncio.Semaphore(0)
    watchers = [StageJobWatcher(lambda *_: ended.release()) for _ in range(PAIRINGS)]
    for number, watcher in enumerate(watchers):
        jobs.put(a_job(number), watcher)
    for count in range(PAIRINGS):
        await asyncio.wait_for(ended.acquire(), 60)
        if is_lost and count == PAIRINGS // 4:
            await asyncio.to_thread(nats_server.kill, wipe=True)
            await asyncio.to_thread(nats_server.start)

    assert [[kind for _, kind in watcher.ended] for watcher in watchers] == [["completed"]] * 40
    assert jobs.lost == 0
    await jobs.close(forever=True)
    for task in working:
        task.cancel()
    await asyncio.gather(*working, return_exceptions=True)
    for bus in buses.values():
        await bus.close()
