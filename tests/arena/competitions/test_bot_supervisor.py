"""How long a launched bot may take until its `hello` (J7)."""

from __future__ import annotations

from typing import cast

import pytest

from arena.competitions.bot_supervisor import SupervisedBot
from arena.sandbox.launcher import LaunchedBot, Launcher
from protocol.messages import Limits
from tests.support.fake_bots import FakeBotProcess

LIMITS = Limits(start_ms=10_000, wall_ms=30_000)


@pytest.mark.parametrize(
    ("used_ms", "looks"),  # without a core so long, when, the most seconds until the next, or why
    [
        (10_000, [(0, 29, 1, "")]),
        (10_001, [(0, 29.1, 0, "within 10,000 ms of CPU")]),
        # It is looked at before it can be too late.
        (0, [(0, 25, 5, ""), (0, 29.9, 0.1, "")]),
        (9_900, [(0, 26, 0.1, "")]),
        # A start that sleeps ends by the cap on the wall.
        (0, [(0, 30.1, 0, "within 30,000 ms")]),
        # It has the time for which it had no core; but in another second, as many threads wait.
        (0, [(2e4, 49.9, 0.1, ""), (1e6, 51, 10, ""), (1e6, 52, 0, "within 51,100 ms")]),
        # Where CPU time is not measured the cap holds alone.
        (None, [(0, 29, 1, ""), (0, 30.1, 0, "within 30,000 ms")]),
    ],
)
async def test_J7_a_start_may_use_start_ms_of_cpu_time(
    used_ms: float | None, looks: list[tuple[float, float, float, str]]
) -> None:
    bot = SupervisedBot("ann", cast(Launcher, None), LIMITS)
    process = FakeBotProcess()
    bot.launched = cast(LaunchedBot, process)
    process.is_metered = used_ms is not None
    process.used_ms = 20_000 if used_ms is None else used_ms

    assert 0 < bot.first_look_s <= 10
    for waited_ms, at, most_s, why in looks:
        process.overbooked_ms = waited_ms
        left_s, late = bot.start_left_s(at)
        assert late == why
        assert left_s <= most_s + 1e-9
        assert (left_s > 0) == (not late)
