"""The command line, called in this process or in one of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from arena.cli import main


class Ran(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """What is on stdout, after a command that went well."""
        assert (self.status, self.err) == (0, "")
        return self.out

    @property
    def document(self) -> Any:
        """The one JSON document on stdout, after a command that went well."""
        return json.loads(self.text)

    def failure(self, status: int = 1) -> str:
        """The one line on stderr, after a command that went wrong."""
        assert self.status == status, self
        [line] = self.err.splitlines()
        assert line.startswith("arena: ")
        return line.removeprefix("arena: ")

    def refusal(self, status: int = 2) -> str:
        """The one line on stderr, after a command that printed nothing else."""
        assert self.out == ""
        return self.failure(status)


Run = Callable[..., Ran]


@pytest.fixture(autouse=True)
def capable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make terminals capable ones, wherever the tests run."""
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in this process."""

    def call(*argv: str) -> Ran:
        capsys.readouterr()
        status = main(argv)
        return Ran(status, *capsys.readouterr())

    return call


@pytest.fixture
def run_process() -> Run:
    """Run a command line as people do."""

    def call(*argv: str, **options: Any) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "arena", *argv],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            **options,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def bot_file(tmp_path: Path) -> Callable[..., str]:
    """Write a student's bot and give its path; `answer` is the expression that it returns."""

    def write(
        name: str = "mine.py",
        answer: str = "question.legal[0]",
        init: str = "pass",
        game: str = "ace_king_queen",
    ) -> str:
        path = tmp_path / name
        path.write_text(
            "class Mine:\n"
            f"    game = {game!r}\n"
            f"    def __init__(self): {init}\n"
            f"    def decide(self, question): return {answer}\n"
            "    def hear(self, news): pass\n"
            "    def reset(self): pass\n"
        )
        return str(path)

    return write
