"""What works on this machine with parts taken away: its layers, submissions, and room for bots."""

from __future__ import annotations

import platform
import re
import sys
from typing import Any

import pytest

from arena.sandbox import bubblewrap, cgroup, doctor, process_table
from arena.sandbox.doctor import Layer, examine, fitting_bots, unsafe_because
from protocol.messages import Limits

LIMITS = Limits(memory_mib=512)

NAMES = (
    "sampler",
    "memory by cgroup v2",
    "isolation by bubblewrap",
    "submissions",
    "subreaper",
    "CPU metering",
    "clock",
    "open files",
    "Python and platform",
)


STEPS = (1.5, "1.5 s"), (0.015625, "15.6 ms"), (5e-5, "50 µs"), (4.83e-7, "483 ns"), (1e-9, "1 ns")
GOOD_FOR = "at most 1,024: good for about 960 bots that connect or 120 launched ones"


def layer(name: str) -> Layer:
    [found] = [layer for layer in examine().layers if layer.name == name]
    return found


@pytest.fixture(autouse=True)
def _all_work(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (cgroup, process_table, bubblewrap):
        monkeypatch.setattr(module, "probe", lambda **_: None)
    monkeypatch.setattr(bubblewrap, "knows", lambda _: True)
    monkeypatch.setattr(doctor, "machine_mib", lambda: 8_192)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("os.geteuid", lambda: 1000, raising=False)


def test_every_layer_has_a_line() -> None:
    layers = examine().layers

    assert tuple(layer.name for layer in layers) == NAMES
    assert all(layer.detail and "\n" not in layer.detail for layer in layers)
    found = {layer.name: layer for layer in layers}
    assert all(found[name].active for name in NAMES[:3])
    assert found["CPU metering"].active
    assert "monotonic clock: steps of" in found["clock"].detail
    assert platform.python_version() in found["Python and platform"].detail


@pytest.mark.parametrize(
    ("name", "part", "found", "is_active", "detail"),
    [
        ("sampler", "process_table.probe", "the moon is full", False, "the moon is full"),
        ("memory by cgroup v2", "cgroup.probe", "not delegated", False, "not delegated"),
        (
            *("isolation by bubblewrap", "bubblewrap.probe", "not installed", False),
            r"not isolated: not installed\. .*start only bots that you trust.*",
        ),
        (
            *("CPU metering", "process_table.probe", "no psutil", False),
            "no psutil; launched bots are charged the time on the wall",
        ),
        ("CPU metering", "process_table.cpu_resolution_ms", None, True, ".*psutil.*"),
        *(
            (
                "clock",
                "doctor._loop_resolution_s",
                step_s,
                step_s < 0.001,
                f".* loop: steps of {text}",
            )
            for step_s, text in STEPS
        ),
        ("submissions", "doctor.unsafe_because", (), True, r"safe here; memory for [\d,]+ bots .*"),
        (
            *("submissions", "cgroup.probe", "not delegated", True),
            "safe here, but for memory that no process holds, .*: not delegated; memory for .*",
        ),
        (
            *("submissions", "doctor.os.geteuid", 0, True),
            "safe here, but the arena runs as root: .*; memory for .*",
        ),
        (
            *("submissions", "doctor.unsafe_because", ("no bwrap", "no /proc"), False),
            "not safe here: no bwrap; no /proc",
        ),
    ],
)
def test_a_layer_says_what_is_wrong_with_it(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    part: str,
    found: object,
    is_active: bool,
    detail: str,
) -> None:
    monkeypatch.setattr(f"arena.sandbox.{part}", lambda *_, **__: found)

    assert layer(name).active is is_active
    assert re.fullmatch(detail, layer(name).detail)


def test_elsewhere_there_is_no_subreaper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    assert not layer("subreaper").active


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
@pytest.mark.parametrize(
    ("limits", "active", "detail"),
    [
        ((1024, 4096), True, f"{GOOD_FOR}; ulimit -n can raise it (up to: 4,096)"),
        ((1024, -1), True, f"{GOOD_FOR}; ulimit -n can raise it (up to: no limit)"),
        ((-1, -1), True, "no limit"),
        ((64, 64), False, "at most 64: good for about 0 bots that connect or 0 launched ones"),
    ],
)
def test_open_files_are_told_in_bots(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], active: bool, detail: str
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda which: limits)

    assert layer("open files") == Layer("open files", active, detail)


# ---- Submissions


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
            *("doctor.machine_mib", lambda: 1_500),
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
    monkeypatch.setattr(sys, "platform", "darwin")
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
