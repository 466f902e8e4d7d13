"""A run of tests goes to its end, names what failed, and ends what it has started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.arena_process import RunningProcess, alive, below

ROOT = Path(__file__).parent.parent
TIMEOUT_S = 100.0
PYTEST = ("-m", "pytest", "-v", "-p", "no:cacheprovider")

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform != "linux", reason="it looks at /proc"),
]

SUITE = """
import signal, subprocess, sys, time
import pytest

SLEEP = (sys.executable, "-c", "import time; print(flush=True); time.sleep(1000)")

def start(**options):
    process = subprocess.Popen(SLEEP, stdout=subprocess.PIPE, start_new_session=True, **options)
    process.stdout.readline()

def orphan(**options):
    words = f"import subprocess; subprocess.Popen({SLEEP}, start_new_session=True).stdout"
    subprocess.run([sys.executable, "-c", words], stdout=subprocess.DEVNULL, check=True, **options)

@pytest.fixture(scope="module")
def of_the_file():
    start()

def test_clean(of_the_file):
    subprocess.run(["true"], check=True)

def test_interrupts():
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ignores = "import signal, sys; sys.exit(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
    subprocess.run([sys.executable, "-c", ignores], check=True)
"""
LEAVES = """
def test_child(): start()
def test_orphan(): orphan()
def test_last(of_the_file): pass
"""
LINELESS = """
def test_lineless():
    def fails():
        raise ValueError("of no line")
    fails.__code__ = fails.__code__.replace(co_linetable=b"")
    fails()
"""
FAILS = (
    """
import ast, gc

def test_fails():
    def parse(*_, depth=20):
        ast.parse("x") if depth == 0 else parse(depth=depth - 1)
    gc.callbacks.append(parse)
    gc.set_threshold(50)
    assert False

"""
    + "VALUES = ["
    + "f(1, a=[2, 3])," * 2_000
    + "] if 0 else []\n"
)
LASTS = """
def test_it():
    start()
    orphan(env={})
    open("ready", "w").close()
    time.sleep(1000)
"""

Run = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Start pytest on a file of tests in a folder that has our hooks, and nothing else of ours."""

    def start(tests: str, *options: str, within: Sequence[str] = ()) -> subprocess.Popen[str]:
        (tmp_path / "conftest.py").write_text("from tests.support.run_of_tests import *\n")
        (tmp_path / "test_it.py").write_text(SUITE + tests)
        return programs.enter_context(
            subprocess.Popen(
                [*within, sys.executable, *PYTEST, *options],
                cwd=tmp_path,
                env={
                    "PYTHONPATH": str(ROOT),
                    "ARENA_TESTS_PATIENCE_S": "1",
                    **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
                },
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )

    with ExitStack() as programs:
        yield start


def test_what_a_test_leaves_running_is_ended_and_fails_it(run: Run) -> None:
    shown, _ = run(LEAVES).communicate(timeout=TIMEOUT_S)
    wrong = [line.split()[1] for line in shown.splitlines() if line.startswith("ERROR ")]

    assert "time.sleep(1000)" in shown
    assert wrong == [f"test_it.py::test_{name}" for name in ("child", "orphan", "last")]
    assert "5 passed, 3 errors" in shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda one: one.name)
@pytest.mark.parametrize("processes", [(), ("-n2",)], ids=["alone", "shared"])
def test_nothing_is_left_of_a_run_that_is_ended(
    run: Run, tmp_path: Path, number: signal.Signals, processes: tuple[str, ...]
) -> None:
    process = run(LASTS, *processes)
    started = until_it_lasts(process, tmp_path)
    process.send_signal(number)
    process.communicate(timeout=TIMEOUT_S)

    assert process.returncode in (-signal.SIGTERM, pytest.ExitCode.INTERRUPTED)
    assert alive(started) == {}


def until_it_lasts(process: subprocess.Popen[str], folder: Path) -> set[RunningProcess]:
    """All processes of a run whose last test has begun to wait."""
    give_up_at = time.monotonic() + TIMEOUT_S
    while not (folder / "ready").exists():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < give_up_at
        time.sleep(0.02)
    return below(process.pid)


def test_interrupts_are_set_right_where_a_shell_ignores_them(run: Run) -> None:
    ignoring = ("sh", "-c", "trap '' INT HUP; exec \"$@\"", "sh")
    shown, _ = run("", within=ignoring).communicate(timeout=TIMEOUT_S)

    assert "2 passed" in shown


def test_a_failure_in_a_frame_of_no_line_is_written_down(run: Run) -> None:
    shown, _ = run(LINELESS).communicate(timeout=TIMEOUT_S)

    assert "FAILED test_it.py::test_lineless" in shown
    assert "ValueError: of no line" in shown
    assert "1 failed, 2 passed" in shown


def test_a_failure_is_written_down_though_garbage_parses_source_meanwhile(run: Run) -> None:
    shown, _ = run(FAILS).communicate(timeout=TIMEOUT_S)

    assert "FAILED test_it.py::test_fails" in shown
    assert "1 failed, 2 passed" in shown
