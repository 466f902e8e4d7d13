"""Where submissions are safe, and how many bots fit; on this machine, with parts taken away."""

from __future__ import annotations

from typing import Any

import pytest

from arena.sandbox import bubblewrap, cgroup, process_table, safety
from arena.sandbox.safety import fitting_bots, unsafe_because
from protocol.messages import Limits

LIMITS = Limits(memory_mib=512)


@pytest.fixture(autouse=True)
def _all_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "probe", lambda **_: None)
    monkeypatch.setattr(bubblewrap, "knows", lambda option: True)
    monkeypatch.setattr(process_table, "probe", lambda: None)
    monkeypatch.setattr(cgroup, "probe", lambda: None)
    monkeypatch.setattr(safety, "machine_mib", lambda: 8_192)
    monkeypatch.setattr("sys.platform", "linux")


def test_where_all_works_it_is_safe() -> None:
    assert unsafe_because(LIMITS) == ()


@pytest.mark.parametrize(
    ("part", "stand_in", "why"),
    [
        (
            "bubblewrap.probe",
            lambda *, network=True: None if network else "blocked",
            "no isolation without a network: blocked; install ",
        ),
        (
            *("bubblewrap.knows", lambda option: option != "--size"),
            "files in memory are not bounded: install ",
        ),
        (
            *("bubblewrap.knows", lambda option: option != "--disable-userns"),
            "user namespaces within are not forbidden: install ",
        ),
        (
            *("safety.machine_mib", lambda: 1_500),
            "expected memory for 2 bots of 512 MiB, got 1,500 MiB in all, ",
        ),
    ],
)
def test_what_is_missing_makes_it_unsafe(
    monkeypatch: pytest.MonkeyPatch, part: str, stand_in: Any, why: str
) -> None:
    monkeypatch.setattr(f"arena.sandbox.{part}", stand_in)

    [reason] = unsafe_because(LIMITS)
    assert reason.startswith(why)


def test_memory_is_held_by_a_cgroup_or_by_the_sampler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_table, "probe", lambda: "no /proc")
    assert unsafe_because(LIMITS) == ()
    monkeypatch.setattr(cgroup, "probe", lambda: "not delegated")

    assert unsafe_because(LIMITS) == ("neither memory nor processes are limited: no /proc",)


def test_elsewhere_than_on_linux_it_is_not_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr(bubblewrap, "probe", lambda **_: "Linux only")

    [reason] = unsafe_because(LIMITS)
    assert reason.endswith("; run the arena on Linux, or in a virtual machine")


def test_as_many_bots_fit_as_memory_is_there_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fitting_bots(LIMITS) == (8_192 - 512) // 512
    assert fitting_bots(LIMITS, reserved_mib=2_048) == (8_192 - 512 - 2_048) // 512
    assert fitting_bots(LIMITS, reserved_mib=100_000) == 0
    assert fitting_bots(LIMITS, of_mib=2_048) == (2_048 - 512) // 512
    # Without a control group nobody counts three directories in memory.
    monkeypatch.setattr(cgroup, "probe", lambda: "not delegated")
    assert fitting_bots(LIMITS) == (8_192 - 512) // (512 + 3 * 64)
