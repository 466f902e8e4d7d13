"""How long a launched bot may take until its `hello` (J7)."""

from __future__ import annotations

from typing import cast

import pytest

from arena.competitions.bot_supervisor import SupervisedBot
from arena.sandbox.launcher import LaunchedBot, Launcher
from protocol.messages import Limits
from tests.support.fake_bots import FakeBotProcess

LIMITS = Limits(start_ms=10_000, wall_ms=30_000)


@pytest.fixture
async def bot() -> SupervisedBot:
    bot = SupervisedBot("ann", cast(Launcher, None), LIMITS)
    bot.launched = cast(LaunchedBot, FakeBotProcess())
    return bot


@pytest.fixture
def process(bot: SupervisedBot) -> FakeBotProcess:
    return cast(FakeBotProcess, bot.launched)


async def test_J7_a_start_may_use_start_ms_of_cpu_time(
    bot: SupervisedBot, process: FakeBotProcess
) -> None:
    process.used_ms = 10_000
    assert bot.start_left_s(29)[1] == ""
    process.used_ms = 10_001

    assert bot.start_left_s(29.1)[1] == "within 10,000 ms of CPU"


async def test_J7_a_start_is_looked_at_before_it_can_be_too_late(
    bot: SupervisedBot, process: FakeBotProcess
) -> None:
    assert 0 < bot.first_look_s <= 10
    assert bot.start_left_s(25)[0] <= 5
    process.used_ms = 9_900

    assert bot.start_left_s(26)[0] <= 0.1


async def test_J7_a_start_that_sleeps_ends_by_the_cap_on_the_wall(bot: SupervisedBot) -> None:
    assert bot.start_left_s(29.9)[1] == ""
    left_s, late = bot.start_left_s(30.1)

    assert left_s <= 0
    assert late == "within 30,000 ms"


async def test_J7_a_start_has_the_time_for_which_it_had_no_core(
    bot: SupervisedBot, process: FakeBotProcess
) -> None:
    process.overbooked_ms = 20_000
    assert bot.start_left_s(49.9)[0] == pytest.approx(0.1)
    process.overbooked_ms = 1_000_000

    assert bot.start_left_s(51)[1] == "", "another second, as many threads wait"
    assert bot.start_left_s(52)[1] == "within 51,100 ms"


async def test_J7_where_cpu_time_is_not_measured_the_cap_holds_alone(
    bot: SupervisedBot, process: FakeBotProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "is_metered", False)
    process.used_ms = 20_000

    assert bot.start_left_s(29)[0] == pytest.approx(1)
    assert bot.start_left_s(30.1)[1] == "within 30,000 ms"
