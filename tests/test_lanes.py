"""Which tests are kept together where several run at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.lanes import ELSEWHERE, IN_NO_HURRY, LONG, TIMED, lane

ROOT = Path(__file__).parent.parent

FEW = """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_it(number): pass
"""


def test_a_test_stays_with_its_file() -> None:
    assert (
        lane("tests/arena/referee/test_seat.py::test_a[b::c]") == "tests/arena/referee/test_seat.py"
    )


@pytest.mark.parametrize("file", ["tests/e2e/test_time.py", "tests/e2e/a_new_one.py", *ELSEWHERE])
def test_those_against_limits_of_time_are_one_lane(file: str) -> None:
    assert lane(f"{file}::test_a") == TIMED


@pytest.mark.parametrize("file", IN_NO_HURRY)
def test_those_in_no_hurry_are_in_it_no_longer(file: str) -> None:
    assert lane(f"{file}::test_a") == file


@pytest.mark.parametrize("file", sorted({*ELSEWHERE, *IN_NO_HURRY, *LONG}))
def test_every_file_that_is_named_is_there(file: str) -> None:
    assert (ROOT / file).is_file()


@pytest.mark.e2e
def test_two_processes_share_the_tests_lane_by_lane(tmp_path: Path) -> None:
    if find_spec("xdist") is None:
        assert not os.environ.get("CI"), "pytest-xdist is not installed"
        pytest.skip("pytest-xdist is not installed")
    (tmp_path / "conftest.py").write_text("from tests.support.lanes import *\n")
    for folder in ("tests", "tests/e2e"):
        (tmp_path / folder).mkdir()
        for name in ("a", "b"):
            (tmp_path / folder / f"test_{name}.py").write_text(FEW)
    words = (sys.executable, "-m", "pytest", "--import-mode=importlib")
    done = subprocess.run(
        [*words, "-v", "-n", "2", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={
            **{name: text for name, text in os.environ.items() if "XDIST" not in name},
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    passed = [line.split() for line in done.stdout.splitlines() if "PASSED" in line]
    workers: dict[str, set[str]] = {}
    for worker, *_, test in passed:
        workers.setdefault(lane(test), set()).add(worker)

    assert done.returncode == 0, done.stdout + done.stderr
    assert len(passed) == 12
    assert {*workers} == {TIMED, "tests/test_a.py", "tests/test_b.py"}
    assert all(len(those) == 1 for those in workers.values())
