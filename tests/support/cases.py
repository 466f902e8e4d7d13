"""Cases as data: a paragraph of a file NAME.cases beside the test that plays it.

    == what it shows                     a case; `#` begins a remark
    ann comes · pass 21 · ben goes       steps, parted by ` · `, in words of the test
    3 times: pass 1 · ann pongs          a line that is repeated
    > all that comes of it               in a file whose outcomes are written into it

With UPDATE_CASES in the environment a test writes its present outcomes into the file; read the diff.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from textwrap import TextWrapper
from typing import Any

import pytest

from protocol.errors import ArenaError

__all__ = ["CaseFile", "StepByStep", "paragraphs", "step_cases", "steps_of", "wrapped"]

wrapped = TextWrapper(
    100, initial_indent="> ", subsequent_indent="> ", break_long_words=False, break_on_hyphens=False
).wrap
"""The lines of an outcome as they stand in a file."""


def paragraphs(file: Path) -> dict[str, list[str]]:
    """The lines of each case by what it shows; those before the first one by ``""``."""
    found: dict[str, list[str]] = {(title := ""): []}
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            title = line.removeprefix("== ")
            assert title not in found, f"{file.name} has {title!r} twice"
            found[title] = []
        else:
            found[title].append(line)
    return found


def steps_of(lines: Iterable[str]) -> Iterator[str]:
    """The steps of lines, as often as they are taken."""
    for line in lines:
        counted = re.fullmatch(r"(\d+) times: (.*)", line)
        times, steps = counted.groups() if counted else (1, line)
        if not line.startswith("#"):
            yield from list(filter(None, steps.split(" · "))) * int(times)


def step_cases(file: Path) -> list[Any]:
    """The steps of each case, as arguments of a test."""
    return [
        pytest.param([*steps_of(lines)], id=title.replace(" ", "_"))
        for title, lines in paragraphs(file).items()
        if title
    ]


class CaseFile:
    """A file of cases whose outcomes are written into it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lines = paragraphs(file)
        self.titles = tuple(self._lines)[1:]

    def check(self, title: str, step: Callable[[str], Iterable[str]]) -> None:
        """Take the lines of a case; each brings what stands below it."""
        found = list[str]()
        for line in self._lines[title]:
            if not line.startswith(">"):
                found.append(line)
                if line and line[0] != "#":
                    found += wrapped(" · ".join(step(line)))
        self._is(title, found)

    def check_whole(self, title: str, play: Callable[[Sequence[str]], list[str]]) -> None:
        """Play the lines of a case, which returns them with what comes of each."""
        lines = [line for line in self._lines[title] if line[:1] != ">"]
        last = max((at for at, line in enumerate(lines) if line[:1] != "#"), default=-1)
        remarks = lines[last + 1 :]  # on the cases that follow
        self._is(title, play(lines[: last + 1]) + remarks)

    def _is(self, title: str, found: list[str]) -> None:
        if "UPDATE_CASES" in os.environ:
            self._lines[title] = found
            text = [line for name, lines in self._lines.items() for line in (f"== {name}", *lines)]
            self._file.write_text("\n".join([*text[1:], ""]), encoding="utf-8")
        assert found == self._lines[title]


class StepByStep:
    """Does what the lines of a case say, parted by ` · `, and tells what is another then."""

    def __init__(self) -> None:
        self._shown: list[str] = []

    def step(self, line: str) -> Iterator[str]:
        yield from _or_error(told for act in line.split(" · ") for told in self._tells(act))
        yield from _or_error(self._news())

    def _tells(self, act: str) -> Iterable[str]:
        return self.does(*act.split()) or ()

    def _news(self) -> Iterator[str]:
        before, self._shown = self._shown, [*self.shows()]
        yield from (text for text in self._shown if text not in before)

    def does(self, *words: str) -> Iterable[str] | None:
        """Do it; what it tells at once."""
        raise NotImplementedError

    def shows(self) -> Iterable[str]:
        """What there is to see now."""
        return ()


def _or_error(told: Iterable[str]) -> Iterator[str]:
    try:
        yield from told
    except ArenaError as error:
        yield f"error: {error}"
