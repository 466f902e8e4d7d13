"""The checkers find nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.needs import skip_without

ROOT = Path(__file__).parent.parent
CHECKS = (
    ("ruff", "check", "--no-cache", "."),
    ("ruff", "format", "--check", "--no-cache", "."),
    ("mypy",),
)


@pytest.mark.timeout(1800)  # a minute on a machine that does nothing else
@pytest.mark.parametrize("words", CHECKS, ids=" ".join)
def test_a_checker_finds_nothing(words: tuple[str, ...]) -> None:
    skip_without(words[0])
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
