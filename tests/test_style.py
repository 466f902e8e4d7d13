"""The checkers find nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.needs import skip_without

ROOT = Path(__file__).parent.parent


def run(tool: str, *arguments: str) -> None:
    """Run a checker over everything; it is missing only on a machine that is not ours."""
    skip_without(tool)
    done = subprocess.run(
        [sys.executable, "-m", tool, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_ruff_finds_nothing() -> None:
    run("ruff", "check", "--no-cache", ".")


def test_the_code_is_formatted() -> None:
    run("ruff", "format", "--check", "--no-cache", ".")


def test_mypy_finds_nothing() -> None:
    run("mypy")
