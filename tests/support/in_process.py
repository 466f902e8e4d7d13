"""The command line in this process: words in, exit status and texts out, as of a process.

Beside games of other packages that only a process of its own can find, there is one process for all
commands of a test file: `CommandProcess`.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from click.exceptions import Exit

from arena.cli import main
from bots.__main__ import main as connect

__all__ = ["CommandProcess", "Ran", "Run", "Terminal", "run_here"]

ROOT = Path(__file__).resolve().parents[2]


class Ran(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """What is on stdout, after a command that went well."""
        assert (self.status, self.err) == (0, ""), self
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
"""Runs a command line, given as words."""


def run_here(*words: str) -> Ran:
    """Run a command line in the current folder and environment, with nothing on a terminal."""
    return _captured(lambda: main(words))


class Terminal(io.StringIO):
    """A terminal with what somebody types."""

    def isatty(self) -> bool:
        return True


def _captured(run: Callable[[], int]) -> Ran:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err), patch("os.execv", _execute_bots):
        status = run()
    return Ran(status, *(stream.detach().getvalue().decode() for stream in (out, err)))


def _execute_bots(path: str, argv: list[str]) -> None:
    """What `arena connect` becomes, `python -m bots`, in this process as well."""
    assert argv[1:4] == ["-P", "-m", "bots"]
    with patch("sys.argv", argv[3:]):
        try:
            connect()
        except SystemExit as end:
            raise Exit(int(end.code or 0)) from None
    raise Exit(0)


class CommandProcess:
    """A process in which `arena` and pieces of Python run one after the other, beside packages."""

    def __init__(self, packages: Path) -> None:
        paths = (str(packages), str(ROOT), os.environ.get("PYTHONPATH", ""))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.in_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        )

    @classmethod
    @contextmanager
    def beside(cls, packages: Path) -> Iterator[CommandProcess]:
        made = cls(packages)
        try:
            yield made
        finally:
            made._process.kill()
            made._process.communicate()

    def arena(self, folder: Path, *words: str) -> Ran:
        return self._ask(folder, "", words)

    def python(self, folder: Path, code: str, *words: str) -> Ran:
        return self._ask(folder, code, words)

    def _ask(self, folder: Path, code: str, words: tuple[str, ...]) -> Ran:
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answers is not None
        print(json.dumps([str(folder), code, words]), file=asked, flush=True)
        return Ran(*json.loads(answers.readline()))


def _execute(code: str, words: list[str]) -> int:
    sys.argv = ["-c", *words]
    try:
        exec(compile(code, "-c", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _serve() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a child prints is no answer
    for line in sys.stdin:
        folder, code, words = json.loads(line)
        os.chdir(folder)
        ran = _captured(lambda: _execute(code, words) if code else main(words))  # noqa: B023
        print(json.dumps(ran), file=answers, flush=True)


if __name__ == "__main__":
    _serve()
