"""What idle bots cost an arena, measured as by `arena bench`: all in processes of their own."""

from __future__ import annotations

import pytest

from tests.support.needs import skip_without
from tests.tools.bench.idle import IdleCost, idle

pytestmark = pytest.mark.e2e


async def test_what_idle_bots_cost_is_measured() -> None:
    skip_without("psutil")
    cost = await idle(connections=120, seconds=0.5)

    assert isinstance(cost, IdleCost)
    assert cost.connections == 120
    assert 1 < cost.kib_each < 100  # a session and a socket are not for nothing
    assert 0 <= cost.cpu_percent < 50


async def test_where_processes_cannot_be_looked_at_nothing_is_made_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.tools.bench.idle.probe", lambda: "there is no /proc")

    assert await idle(500) is None
