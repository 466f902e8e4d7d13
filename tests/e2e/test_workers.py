"""A whole class on a bus: workers, bus and arena are killed, and every pairing counts once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.worker_chaos import WorkerChaos

pytestmark = [pytest.mark.e2e, pytest.mark.needs("nats-server", "nats")]


def test_every_pairing_counts_once_though_worker_bus_and_arena_are_killed(tmp_path: Path) -> None:
    chaos = WorkerChaos(tmp_path, submitted=2, launched=2, matches=9, rounds=200)

    outcome = chaos.run(1, every_s=(0.5, 1.5), away_s=(0.0, 2.0))

    assert outcome.faults == []
    assert {"w1", "w2"} <= outcome.by_worker.keys()
