"""The soak (tests/tools/soak.py) runs, and finds what it is there to find; for how long nothing
leaks is for the command to say.
"""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

from tests.tools import soak
from tests.tools.soak_outcome import LEFT, ProcessSample, SoakOutcome, trend_mib

NOTHING = ProcessSample(0.0, 40.0, 10, 0, 0, 2, 2, 0, 0, 0.1, 0)


def outcome(
    after: ProcessSample = NOTHING,
    rss_mib: tuple[float, ...] = (40, 50, 50, 50, 50),
    wronged: tuple[str, ...] = (),
) -> SoakOutcome:
    samples = tuple(
        NOTHING._replace(minute=minute, rss_mib=rss) for minute, rss in enumerate(rss_mib, start=1)
    )
    return SoakOutcome(NOTHING, samples, after, 1, {}, {}, wronged)


def test_a_clean_soak_has_no_faults() -> None:
    assert outcome().faults(0.5) == []


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_is_a_fault(name: str) -> None:
    more = NOTHING._replace(**{name: getattr(NOTHING, name) + 1})

    [fault] = outcome(after=more).faults(0.5)

    assert f" {name} when all had left" in fault


def test_an_honest_bot_that_was_eliminated_is_a_fault() -> None:
    [fault] = outcome(wronged=("honest 1 in blackjack (timeout): slow",)).faults(0.5)

    assert "honest 1" in fault


def test_memory_that_grows_after_the_warm_up_is_a_fault() -> None:
    grows = outcome(rss_mib=(40, 50, 51, 52, 53))

    assert grows.growth_mib == 1
    assert grows.faults(1.0) == []
    [fault] = grows.faults(0.5)
    assert "1.00 MiB a minute" in fault


def test_a_short_soak_says_nothing_about_memory() -> None:
    assert outcome(rss_mib=(40, 99)).faults(0.5) == []


def test_one_peak_is_no_trend() -> None:
    assert trend_mib(outcome(rss_mib=(50, 50, 99, 50, 50)).samples) == 0


def test_one_sample_is_no_trend() -> None:
    assert trend_mib(outcome(rss_mib=(50,)).samples) == 0


@pytest.mark.e2e
@pytest.mark.skipif(sys.platform != "linux", reason="it looks at /proc")
async def test_some_seconds_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "_CONNECTED", ["illegal", "goodbye", "vanish"])
    monkeypatch.setattr(soak, "_LAUNCHED", ["exit"])
    monkeypatch.setattr(soak, "_LAUNCH_EVERY_S", 1.0)
    monkeypatch.setattr(soak, "_RESTLESS_S", 1.0)
    monkeypatch.setattr(soak, "_STAY_S", (0.5, 1.5))
    monkeypatch.setattr(soak, "_VISITORS", 1)
    monkeypatch.setattr(soak, "_LIFE_S", 3.0)

    with subprocess.Popen(["sleep", "600"]) as somebody_else:
        done = await soak.soak(minutes=0.08, every_s=0.5, as_json=True)
        somebody_else.kill()

    assert done.before.launched == 0
    assert done.faults(math.inf) == []
    assert done.competitions > 0
    assert done.eliminated
    assert len(done.samples) > 1
