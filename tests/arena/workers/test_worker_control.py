"""The workers of an arena for its instructor: seen, drained, and what they have lost."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from arena.storage.attempts import AttemptRow, AttemptState
from arena.workers.bus import BusDown
from arena.workers.known_worker import KnownWorker
from arena.workers.worker_control import BusWorkers
from protocol.errors import UsageError
from protocol.instructions import LostAttempt
from tests.support.worker_reports import report_of

LOST = AttemptRow(
    id="t1-long-enough",
    job="j1",
    competition="7",
    pairing=3,
    players=("ann", "ben"),
    worker="w1",
    commitment="c",
    announced_at=1234.5,
    message=b"",
    state=AttemptState.LOST,
    why="w1 is silent",
)


class FakeBusJobs:
    def __init__(self) -> None:
        self.workers = {"w1": KnownWorker(report=report_of("w1"), seen_at=100.0)}
        self.lost = 3
        self.is_down = False
        self.orders: list[tuple[str, bool]] = []

    async def drain(self, worker: str, is_draining: bool) -> None:
        if self.is_down:
            raise BusDown("no route to host")
        self.orders.append((worker, is_draining))


class FakeAttempts:
    def without_result(
        self, competition: str | None = None, most: int = 100
    ) -> Sequence[AttemptRow]:
        return (LOST,)


@pytest.fixture
def jobs() -> FakeBusJobs:
    return FakeBusJobs()


@pytest.fixture
def control(jobs: FakeBusJobs) -> BusWorkers:
    return BusWorkers(jobs, FakeAttempts(), lambda: 101.0)


async def test_the_workers_are_seen_and_what_they_have_lost(control: BusWorkers) -> None:
    [view] = control.workers()

    assert (view.name, view.state, view.seen_s) == ("w1", "idle", 1.0)
    assert control.lost == 3
    assert await control.without_result() == [
        LostAttempt("t1-long-enough", "7", ("ann", "ben"), "w1", "lost", "w1 is silent", 1234.5)
    ]


async def test_a_worker_is_drained_or_it_is_said(control: BusWorkers, jobs: FakeBusJobs) -> None:
    await control.drain("w1", True)
    await control.drain("w1", False)
    with pytest.raises(UsageError, match=r"expected a worker \(w1\), got 'w9'"):
        await control.drain("w9", True)
    jobs.is_down = True
    with pytest.raises(UsageError, match="carries the order: no route to host"):
        await control.drain("w1", True)

    assert jobs.orders == [("w1", True), ("w1", False)]
