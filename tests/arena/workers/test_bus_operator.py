"""An operator on the bus: who works there, and one that is drained by command."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from arena.workers import bus_operator
from arena.workers.bus_operator import BusOperator
from arena.workers.messages import encode
from protocol.errors import ArenaError, UsageError
from tests.support.memory_bus import MemoryBroker
from tests.support.worker_reports import ReportingWorker, report_of


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_operator, "_LOOK_S", 0.2)
    monkeypatch.setattr(bus_operator, "_AGAIN_S", 0.1)


@pytest.fixture
async def broker() -> MemoryBroker:
    return MemoryBroker()


@pytest.fixture
async def workers(broker: MemoryBroker) -> AsyncIterator[list[ReportingWorker]]:
    workers = [
        ReportingWorker(broker.client(), "w2", deaf=2),
        ReportingWorker(broker.client(), "w1"),
        ReportingWorker(broker.client(), "w3", deaf=1_000),
    ]
    yield workers
    for worker in workers:
        await worker.close()


@pytest.fixture
async def operator(broker: MemoryBroker, workers: list[ReportingWorker]) -> BusOperator:
    operator = BusOperator(broker.client())
    await operator.open()
    return operator


async def test_all_are_listed_by_name_on_bus(operator: BusOperator, broker: MemoryBroker) -> None:
    fault = encode(report_of("w1", last_error="\x1b[2J\nw9 is fine"))
    await broker.client().report("w4", b"of another version")
    await broker.client().report("w5", fault)
    views = await operator.workers()

    assert [view.name for view in views] == ["w1", "w2", "w3", "w5"]
    assert "w9" in views[-1].last_error
    assert views[-1].last_error.isprintable()


@pytest.mark.parametrize("which", [0, 1], ids=["orders are lost", "at once"])
async def test_a_worker_drains_and_takes_matches_again(
    operator: BusOperator, workers: list[ReportingWorker], which: int
) -> None:
    worker = workers[which]
    drained = await operator.drain(worker.name, True)
    was_draining = worker.is_draining
    resumed = await operator.drain(worker.name, False)

    assert (drained.state, was_draining) == ("draining", True)
    assert (resumed.state, worker.is_draining) == ("idle", False)


@pytest.mark.parametrize(
    ("name", "error", "why"),
    [
        ("w9", UsageError, r"reports \(w1, w2, w3\), got 'w9'"),
        ("w3", ArenaError, "worker w3 has not obeyed; it was told 5 times"),
    ],
)
async def test_a_worker_that_is_not_there_or_does_not_obey_is_named(
    operator: BusOperator, name: str, error: type[ArenaError], why: str
) -> None:
    with pytest.raises(error, match=why):
        await operator.drain(name, True)
