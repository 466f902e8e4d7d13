"""What the doctor says when a layer works, and when it does not."""

from __future__ import annotations

import platform
import re
import sys

import pytest

from arena.sandbox import bubblewrap, cgroup, doctor, process_table
from arena.sandbox.doctor import Layer, examine

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
    monkeypatch.setattr(doctor, "unsafe_because", lambda limits: ())
    monkeypatch.setattr("os.geteuid", lambda: 1000, raising=False)


def test_every_layer_has_a_line() -> None:
    layers = examine().layers

    assert tuple(layer.name for layer in layers) == NAMES
    assert all(layer.detail and "\n" not in layer.detail for layer in layers)
    found = {layer.name: layer for layer in layers}
    assert all(found[name].active for name in NAMES[:3])
    assert found["CPU metering"].active
    assert found["subreaper"].active is (sys.platform == "linux")
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
            *("submissions", "safety.os.geteuid", 0, True),
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
