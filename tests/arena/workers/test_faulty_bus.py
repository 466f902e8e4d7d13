"""Whatever the bus, workers and the arena suffer: every pairing counts once, and nothing hangs.

Real workers play against a real `BusJobs` over a bus that loses, doubles, delays and reorders.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.bus_stage import BusStage
from tests.support.faulty_bus import Faults
from tests.support.virtual_time import run_in_virtual_time

PAIRINGS = 6
WORKERS = ("w1", "w2")
WHICH = st.integers(0, PAIRINGS - 1)
BREAKS = st.sampled_from(
    (
        *("kill worker", "cut worker", "drain worker", "resume worker", "kill arena", "stop arena"),
        *("cut arena", "stop bus", "lose everything", "redeliver", "cancel"),
    )
)
PLANS = st.lists(st.tuples(st.floats(0, 8), BREAKS, WHICH), max_size=8)
EXAMPLES = int(os.environ.get("EXAMPLES", "60"))  # 0.1 s each; 3,000 found nothing more
DOWN_S = 7.0  # longer than a worker may be silent


async def suffer(stage: BusStage, what: str, which: int) -> None:
    worker = WORKERS[which % len(WORKERS)]
    match what:
        case "kill worker":
            await stage.kill_worker(worker)
            await asyncio.sleep(which)
            stage.start_worker(worker)
        case "drain worker" | "resume worker":
            await stage.jobs.drain(worker, what == "drain worker")
        case "kill arena" | "stop arena":
            await (stage.kill_arena() if what == "kill arena" else stage.stop_arena())
            await asyncio.sleep(which)
            await stage.start_arena()
        case "cut arena" | "cut worker":
            bus = stage.bus if what == "cut arena" else stage.buses[worker]
            bus.is_cut = True
            await asyncio.sleep(DOWN_S)
            bus.is_cut = False
        case "stop bus":
            stage.broker.stop()
            await asyncio.sleep(which * 7)
            stage.broker.start()
        case "lose everything":
            stage.broker.lose_everything()
        case "redeliver":
            stage.broker.redeliver()
        case _:
            stage.cancel(which)


async def play_through(rate: float, seed: int, plan: list[tuple[float, str, int]]) -> BusStage:
    faults = Faults(rate, seed)
    stage = BusStage(PAIRINGS, faults)
    for name in WORKERS:
        stage.start_worker(name, lasts_s=3.0, slots=1)
    await stage.start_arena()
    for delay_s, what, which in plan:
        await asyncio.sleep(delay_s)
        await suffer(stage, what, which)
    faults.rate = 0.0
    for name in WORKERS:
        await stage.jobs.drain(name, False)
    await stage.until_done(300)
    await asyncio.sleep(120)  # for what is still to be forgotten
    return stage


@pytest.fixture(scope="module")
def errors() -> Iterator[list[str]]:
    """What is logged as an error meanwhile: nothing of this is one."""
    kept: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: kept.append(handler.format(record))  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    yield kept
    logging.getLogger().removeHandler(handler)


@settings(max_examples=EXAMPLES, deadline=None)
@given(rate=st.sampled_from((0.0, 0.05, 0.3)), seed=st.integers(0, 1 << 32), plan=PLANS)
def test_every_pairing_counts_once_and_nothing_is_left(
    errors: list[str], rate: float, seed: int, plan: list[tuple[float, str, int]]
) -> None:
    errors.clear()

    async def main() -> None:
        stage = await play_through(rate, seed, plan)

        assert stage.database.twice == stage.again == []
        assert stage.on_bus == 0
        assert [worker.unfinished for worker in stage.workers.values()] == [0, 0]
        assert not stage.jobs.remote
        assert not [line for line in stage.told if "refused" in line]
        await stage.close()

        assert errors == []

    run_in_virtual_time(main())
