"""How fast a machine says that it is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from arena.workers import calibration


def test_speed_is_the_median_of_five(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: Iterator[float] = iter([100.0, 20.0, 98.0, 102.0, 3.0])
    monkeypatch.setattr(calibration, "calibrations_per_s", lambda: next(measured))

    assert calibration.speed() == 98.0


def test_time_in_which_others_had_the_core_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([5.0, 5.5])
    monkeypatch.setattr("time.thread_time", lambda: next(times))

    assert calibration.calibrations_per_s() == 2.0
