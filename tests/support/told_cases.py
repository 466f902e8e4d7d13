"""Files of cases whose outcome is written into them: NAME.cases, a paragraph for each case.

    == what it shows
    a line of what happens
    > all that comes of it

A runner plays the lines without `>` and returns them with what came of each, which must be what the
file has. After a change that is meant `rewrite` has the file written anew; read what git shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

__all__ = ["Play", "cases_of", "played_anew", "rewrite"]

Play = Callable[[Sequence[str]], list[str]]


def cases_of(file: Path) -> dict[str, list[str]]:
    """The lines of each case, by what it shows."""
    found: dict[str, list[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            title = line.removeprefix("== ")
            assert title not in found, title
            found[title] = []
        elif line and not line.startswith("#"):
            found[title].append(line)
    return found


def played_anew(lines: Sequence[str], play: Play) -> list[str]:
    """A case with what comes of it now."""
    return play([line for line in lines if line[0] != ">"])


def rewrite(file: Path, play: Play) -> None:
    """Write what comes of all cases of a file anew."""
    text: list[str] = []
    cases = cases_of(file)
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith(("==", "#")):
            text.append(line)
        if line.startswith("== "):
            text += played_anew(cases[line.removeprefix("== ")], play)
    file.write_text("\n".join([*text, ""]), encoding="utf-8")
