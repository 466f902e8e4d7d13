"""What the doctor says when a layer works, and when it does not."""

from __future__ import annotations

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


def layer(name: str) -> Layer:
    [found] = [layer for layer in examine().layers if layer.name == name]
    return found


@pytest.fixture(autouse=True)
def _all_work(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (cgroup, process_table, bubblewrap):
        monkeypatch.setattr(module, "probe", lambda **_: None)
    monkeypatch.setattr(bubblewrap, "knows", lambda _: True)


def test_every_layer_has_a_line() -> None:
    layers = examine().layers

    assert tuple(layer.name for layer in layers) == NAMES
    assert all(layer.detail and "\n" not in layer.detail for layer in layers)


@pytest.mark.parametrize(
    ("module", "name"), [(process_table, "sampler"), (cgroup, "memory by cgroup v2")]
)
def test_a_layer_that_does_not_work_says_why(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str
) -> None:
    assert layer(name).active
    monkeypatch.setattr(module, "probe", lambda: "the moon is full")

    assert layer(name) == Layer(name, False, "the moon is full")


def test_what_is_not_isolated_says_so_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    assert layer("isolation by bubblewrap").active
    monkeypatch.setattr(bubblewrap, "probe", lambda **_: "bubblewrap is not installed")
    found = layer("isolation by bubblewrap")

    assert not found.active
    assert found.detail.startswith("not isolated: bubblewrap is not installed. ")
    assert "start only bots that you trust" in found.detail


def test_without_a_sampler_cpu_time_is_not_metered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert layer("CPU metering").active
    monkeypatch.setattr(process_table, "probe", lambda: "no psutil")

    assert layer("CPU metering") == Layer(
        "CPU metering", False, "no psutil; launched bots are charged the time on the wall"
    )


def test_the_steps_of_psutil_are_not_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_table, "cpu_resolution_ms", lambda: None)

    assert "psutil" in layer("CPU metering").detail


@pytest.mark.skipif(sys.platform != "linux", reason="this is not Linux")
def test_linux_has_a_subreaper() -> None:
    assert layer("subreaper").active


def test_elsewhere_there_is_no_subreaper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    assert not layer("subreaper").active


def test_a_coarse_clock_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "monotonic clock: steps of" in layer("clock").detail
    monkeypatch.setattr(doctor, "_loop_resolution_s", lambda: 0.015625)
    found = layer("clock")

    assert not found.active
    assert found.detail.endswith("event loop: steps of 15.6 ms")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
@pytest.mark.parametrize(
    ("limits", "active", "detail"),
    [
        (
            (1024, 4096),
            True,
            "at most 1,024: good for about 960 bots that connect or 120 launched ones; "
            "ulimit -n can raise it (up to: 4,096)",
        ),
        (
            (1024, -1),
            True,
            "at most 1,024: good for about 960 bots that connect or 120 launched ones; "
            "ulimit -n can raise it (up to: no limit)",
        ),
        ((-1, -1), True, "no limit"),
        ((64, 64), False, "at most 64: good for about 0 bots that connect or 0 launched ones"),
    ],
)
def test_open_files_are_told_in_bots(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], active: bool, detail: str
) -> None:
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda which: limits)

    assert layer("open files") == Layer("open files", active, detail)


def test_python_is_told_with_its_version() -> None:
    version = ".".join(str(number) for number in sys.version_info[:3])

    assert version in layer("Python and platform").detail


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.5, "1.5 s"), (0.015625, "15.6 ms"), (4.83e-7, "483 ns"), (1e-9, "1 ns")],
)
def test_steps_are_told_in_a_unit_that_suits_them(seconds: float, text: str) -> None:
    assert doctor._short(seconds) == text


@pytest.mark.parametrize("why", [None, "not delegated"])
def test_where_only_the_sampler_holds_memory_it_says_so(
    monkeypatch: pytest.MonkeyPatch, why: str | None
) -> None:
    monkeypatch.setattr(doctor, "unsafe_because", lambda limits: ())
    monkeypatch.setattr("arena.sandbox.cgroup.probe", lambda: why)

    assert ("does not see all memory" in layer("submissions").detail) is (why is not None)


def test_where_submissions_are_not_safe_it_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "unsafe_because", lambda limits: ())
    assert layer("submissions").detail.startswith("safe here; memory for ")
    monkeypatch.setattr(doctor, "unsafe_because", lambda limits: ("no bwrap", "no /proc"))

    assert layer("submissions") == Layer("submissions", False, "not safe here: no bwrap; no /proc")
