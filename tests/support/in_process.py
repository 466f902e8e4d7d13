"""The command line in this process: words in, exit status and texts out, as of a process."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, NamedTuple

from arena.cli import main

__all__ = ["Ran", "run_here"]


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


def run_here(*words: str) -> Ran:
    """Run a command line in the current folder and environment, with nothing on a terminal."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        status = main(words)
    return Ran(status, *(stream.detach().getvalue().decode() for stream in (out, err)))
