"""How `arena bench` shows what was measured; the measuring itself takes minutes.

Its idle part is in tests/e2e/test_idle_connections.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from arena.lab.bench import Bench, InProcessRate, NetworkRate
from arena.lab.idle_connections import IdleCost

Run = Callable[..., Any]

MEASURED = Bench(
    in_process=(InProcessRate("blackjack", "simple", 12345.6, 7890.1),),
    network=(
        NetworkRate(
            tables=64,
            encoding="json",
            decisions_per_s=30_000.4,
            echo_per_s=10_000.2,
            ratio=3.004,
            server_us=12.34,
        ),
    ),
    idle=IdleCost(connections=1500, kib_each=9.62, cpu_percent=2.06, join_ms=0.456),
)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Callable[[Bench], None]:
    """What there is to show."""

    def set_to(bench: Bench) -> None:
        monkeypatch.setattr("arena.cli.bench.bench", lambda store, on_step: bench)

    return set_to


def test_json_has_all_figures(run: Run, measured: Callable[[Bench], None]) -> None:
    measured(MEASURED)

    assert msgspec.convert(run("bench", "--json").document, Bench) == MEASURED


def test_the_tables_have_them_too(run: Run, measured: Callable[[Bench], None]) -> None:
    measured(MEASURED)

    status, out, _ = run("bench")

    assert status == 0
    for figure in ("12,346", "7,890", "30,000", "3.00", "12.3", "1,500", "9.6", "2.1 %", "0.46 ms"):
        assert figure in out


def test_what_could_not_be_measured_is_not_shown(
    run: Run, measured: Callable[[Bench], None]
) -> None:
    measured(msgspec.structs.replace(MEASURED, idle=None))

    assert run("bench", "--json").document["idle"] is None
    assert "Idle" not in run("bench").out
