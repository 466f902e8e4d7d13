"""`arena workers`: what it shows of the machines that play, and that it drains one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from arena.workers import bus_operator, nats_bus
from arena.workers.bus import BusDown
from tests.support.fake_bots import ANY_GAME
from tests.support.in_process import Run
from tests.support.memory_bus import MemoryBroker, MemoryBus
from tests.support.nats_server import NatsServer, nats_server
from tests.support.worker_reports import ReportingWorker

__all__ = ["nats_server"]


class FakeNats:
    """Connects commands to a bus in memory, on which workers of these names report."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ("w1", "w2")
        self.is_down = False

    async def connect(self, address: object, name: str, inbox: str) -> MemoryBus:
        if self.is_down:
            raise BusDown("the bus cannot be reached")
        broker = MemoryBroker()
        self.workers = [ReportingWorker(broker.client(), each) for each in self.names]
        return broker.client()


@pytest.fixture
def nats(monkeypatch: pytest.MonkeyPatch) -> FakeNats:
    fake = FakeNats()
    monkeypatch.setattr(nats_bus, "connect", fake.connect)
    monkeypatch.setattr(bus_operator, "_LOOK_S", 0.2)
    monkeypatch.setenv("ARENA_BUS", "tls://localhost:4222")
    return fake


def test_workers_are_listed_with_what_they_do(nats: FakeNats, run: Run) -> None:
    shown = run("workers").text

    assert "w1" in shown
    assert "linux x86_64" in shown
    assert "0 of 4" in shown


def test_json_has_all_that_is_known_of_each(nats: FakeNats, run: Run) -> None:
    [first, second] = run("workers", "--json").document["workers"]

    assert (first["name"], second["name"]) == ("w1", "w2")
    assert (first["state"], first["speed"], first["games"]) == ("idle", 3.5, [ANY_GAME])


def test_a_bus_without_workers_says_so(nats: FakeNats, run: Run) -> None:
    nats.names = ()

    assert run("workers").text == "no worker reports on the bus\n"


def test_one_is_drained_and_takes_matches_again(nats: FakeNats, run: Run) -> None:
    assert run("workers", "drain", "w1").text == "w1 begins no more matches; 0 matches left\n"
    assert run("workers", "resume", "w1").text == "w1 begins matches again\n"
    assert run("workers", "drain", "w2", "--json").document["worker"]["state"] == "draining"


def test_without_a_bus_it_says_how_to_name_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARENA_BUS", raising=False)

    assert run("workers").refusal() == "expected --bus tls://HOST:PORT, or ARENA_BUS with that"


def test_a_bus_that_does_not_answer_is_said_in_one_line(nats: FakeNats, run: Run) -> None:
    nats.is_down = True

    assert run("workers").refusal(1) == "the bus cannot be reached"


@pytest.fixture
def real_worker(nats_server: NatsServer) -> Iterator[None]:
    """A worker that reports on a real bus, from a loop of its own."""

    async def work() -> None:
        bus = await nats_bus.connect(nats_server.address("w1"), "w1", "w1")
        worker = ReportingWorker(bus, "w1")
        loop.call_soon_threadsafe(started.set)
        try:
            await stopped.wait()
        finally:
            await worker.close()
            await bus.close()

    loop = asyncio.new_event_loop()
    started, stopped = threading.Event(), asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(work(),))
    thread.start()
    assert started.wait(30)
    yield
    loop.call_soon_threadsafe(stopped.set)
    thread.join(30)
    loop.close()


def test_on_a_real_bus_a_worker_is_seen_and_drained(
    nats_server: NatsServer, real_worker: None, run: Run
) -> None:
    where = nats_server.options("arena")
    [view] = run("workers", *where, "--json").document["workers"]
    drained = run("workers", "drain", "w1", *where).text

    assert (view["name"], view["state"]) == ("w1", "idle")
    assert drained.startswith("w1 begins no more matches")
