"""Cases as data: files NAME.cases beside the test that plays them.

A case is `== what it shows` and lines of steps, in words of the test; `> ` is all that the step
above brings, parted by ` · `. `#` is a remark. With UPDATE_CASES in the environment a test writes what its
steps bring now; read what git shows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from textwrap import TextWrapper

from protocol.errors import ArenaError

__all__ = ["CaseFile", "StepByStep"]

_wrapped = TextWrapper(
    100, initial_indent="> ", subsequent_indent="> ", break_long_words=False, break_on_hyphens=False
).wrap


class CaseFile:
    """The cases of a file, by what they show."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lines: dict[str, list[str]] = {(title := ""): []}
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("== "):
                self._lines[title := line.removeprefix("== ")] = []
            else:
                self._lines[title].append(line)
        self.titles = tuple(self._lines)[1:]

    def check(self, title: str, step: Callable[[str], Iterable[str]]) -> None:
        """Take the steps of a case; each brings what stands below it."""
        found = list[str]()
        for line in self._lines[title]:
            if not line.startswith(">"):
                found.append(line)
                if line and line[0] != "#":
                    found += _wrapped(" · ".join(step(line)))
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
