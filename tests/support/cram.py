"""Command lines with what they print, as data: files NAME.cram.

A case is a paragraph: `== what it shows`, then a line a step:
    @ NAME                a fixture that the case needs; above the first case it is for all
    ~ NAME REGEX          what matches is shown as <NAME>, as it differs each time; above, for all
    $ arena WORDS         is run in this process; what it prints stands below, stderr after `! `
    = arena WORDS         prints exactly what the command before has printed
    $ arena {ONE,OTHER}   runs for each; if all print the same, it stands once, {} for the word
    $ FIRST {A,B}; NEXT   runs one after the other for each
    $ arena WORDS | grep TEXT | head 3 | tail 3 | json PATH...        only some of it
    $ arena WORDS > FILE  into a file; NAME=VALUE before a command is its environment
    [2] text              the exit status and the line `arena: text`, which comes with it
    > text                a line of what the command above reads
Of a fraction eight digits are shown, of a table no borders. Each case runs in a folder of its own. Beside `arena` there are the commands of `TOOLS`. A path of
`json` is keys with points between; `*` is each, `#` how many, `@` their names.
`pytest tests/arena/cli --update` writes what the commands print now.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from itertools import takewhile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.support.in_process import Ran, run_here

__all__ = ["CramCase", "cases", "write_bot"]

NAMES = (
    ("python", re.escape(sys.executable)),
    (
        "time",
        r"(19|20)\d\d-\d\d-\d\d(T\d\d:\d\d(:\d\d)?(\.\d+)?| \d\d:\d\d(:\d\d)? UTC([+-]\d\d:\d\d)?)",
    ),
    ("id", r"(?<=[a-z]-)(?!0000)[0-9a-f]{8}\b"),
    ("port", r"(?<=127\.0\.0\.1:)[1-9]\d{4}\b"),
)

BORDERS = ("┏", "┡", "└")


class CramCase:
    """A paragraph of a file, without its heading."""

    def __init__(self, file: Path, title: str, head: list[str], lines: list[str]) -> None:
        self.file, self.title, self.lines = file, title, lines
        settings = [line for line in (*head, *lines) if line[:2] in ("@ ", "~ ")]
        self.fixtures = [line[2:] for line in settings if line[0] == "@"]
        self.names = [line[2:].split(" ", 1) for line in settings if line[0] == "~"]

    def __repr__(self) -> str:
        return f"{self.file.stem}: {self.title}"

    def played(self, here: Path) -> list[str]:
        """The case as it is now, run in the current folder, `here`."""
        shown: list[str] = []
        before: list[str] = []
        for number, line in enumerate(self.lines):
            if line[:2] in ("@ ", "~ ", "# "):
                shown.append(line)
            if line[:2] not in ("$ ", "= "):
                continue
            after = self.lines[number + 1 :]
            said = list(takewhile(lambda each: each.startswith(">"), after))
            text = "".join(f"{each[2:]}\n" for each in said)
            printed = self.printed_for_each(line[2:], text, here)
            shown += [line, *said]
            if line[0] == "$" or printed != before:
                shown += printed
            before = printed
        return shown

    def printed_for_each(self, line: str, said: str, here: Path) -> list[str]:
        """What a command line prints for each of its words in braces."""
        if (braces := re.search(r"\{([^{}]*,[^{}]*)\}", line)) is None:
            return self.printed(line, said, here)
        words = braces[1].split(",")
        printed = [
            [
                each
                for part in line.replace(braces[0], word).split("; ")
                for each in self.printed(part, said, here)
            ]
            for word in words
        ]
        first, *rest = (
            [
                re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", "{}", each) if word else each
                for each in lines
            ]
            for word, lines in zip(words, printed, strict=True)
        )
        if all(each == first for each in rest):
            return first
        return [each for lines in printed for each in lines]

    def printed(self, line: str, said: str, here: Path) -> list[str]:
        """What a command line prints, with names for what differs each time."""
        first, *filters = re.split(r" \| (?=grep |head |tail |json )", line)
        first, _, target = first.partition(" > ")
        words = shlex.split(first)
        environ = dict(word.split("=", 1) for word in takewhile(_is_variable, words))
        name, *words = words[len(environ) :]
        with patch.dict(os.environ, environ):
            ran = run_here(*words) if name == "arena" else TOOLS[name](said, *words)
        text = ran.out
        for words in map(shlex.split, filters):
            text = "".join(f"{each}\n" for each in FILTERS[words[0]](text, *words[1:]))
        if target:
            Path(target).write_text(text)
            text = ""
        shown = [line for line in text.splitlines() if not line.startswith(BORDERS)]
        lines = [*shown, *(f"! {each}" for each in ran.err.splitlines())]
        if ran.status and lines and lines[-1].startswith("! arena: "):
            lines[-1] = f"[{ran.status}]{lines[-1][8:]}"
        elif ran.status:
            lines.append(f"[{ran.status}]")
        return [self.named(each.rstrip(), here) for each in lines]

    def named(self, line: str, here: Path) -> str:
        for name, pattern in (("here", re.escape(str(here))), *self.names, *NAMES):
            line = re.sub(pattern, f"<{name}>", line)
        return re.sub(r"(\.\d{8})\d+", r"\1…", line)

    def write(self, lines: list[str]) -> None:
        """Put what is printed now in the place of what was."""
        text = self.file.read_text(encoding="utf-8")
        old, new = ("".join(f"{each}\n" for each in part) for part in (self.lines, lines))
        heading = f"== {self.title}\n"
        assert text.count(heading) == 1, f"a title of its own: {self.title}"
        self.file.write_text(text.replace(heading + old, heading + new), encoding="utf-8")


def cases(folder: Path) -> list[CramCase]:
    """All cases of the files in a folder."""
    found = []
    for file in sorted(folder.glob("*.cram")):
        head, *parts = re.split(r"^== ", file.read_text(encoding="utf-8"), flags=re.M)
        for part in parts:
            title, *lines = part.split("\n")[:-1]
            found.append(CramCase(file, title, head.splitlines(), lines))
    return found


def _is_variable(word: str) -> bool:
    return re.match(r"[A-Z_]+=", word) is not None


# ---- Only some of what is printed


def _grep(text: str, part: str) -> list[str]:
    return [line for line in text.splitlines() if part in line]


def _head(text: str, count: str) -> list[str]:
    return text.splitlines()[: int(count)]


def _tail(text: str, count: str) -> list[str]:
    return text.splitlines()[-int(count) :]


def _json(text: str, *paths: str) -> list[str]:
    if not text:  # then what stands on stderr says why
        return []
    document = json.loads(text)
    values = [_at(document, path.split(".")) for path in paths]
    return [" ".join(json.dumps(value, ensure_ascii=False) for value in values)]


def _at(value: Any, keys: list[str]) -> Any:
    if not keys:
        return value
    key, *rest = keys
    match key:
        case "#":
            return len(value)
        case "@":
            return [*value]
        case "*":
            each = value.values() if isinstance(value, dict) else value
            return [_at(one, rest) for one in each]
    return _at(value[int(key) if isinstance(value, list) else key], rest)


FILTERS: Mapping[str, Callable[..., list[str]]] = {
    "grep": _grep,
    "head": _head,
    "tail": _tail,
    "json": _json,
}

# ---- What stands beside `arena`


def write_bot(
    file: Path, answer: str = "question.legal[0]", game: str = "ace_king_queen", init: str = "pass"
) -> str:
    """Write a bot by the expression that it answers, its game, and what it does at first."""
    file.write_text(
        f"class Mine:\n    game = {game!r}\n    def __init__(self): {init}\n"
        f"    def decide(self, question): return {answer}\n"
        "    def hear(self, news): pass\n    def reset(self): pass\n"
    )
    return str(file)


def _write(said: str, file: str) -> Iterator[str]:
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text(said, encoding="utf-8")
    yield from ()


def _bot(said: str, file: str, *about: str) -> Iterator[str]:
    write_bot(Path(file), *about)
    yield from ()


def _edit(said: str, file: str, old: str, new: str) -> Iterator[str]:
    """Replace the first place where a text stands; it must be there."""
    text = Path(file).read_bytes()
    assert old.encode() in text, f"no {old!r} in {file}"
    Path(file).write_bytes(text.replace(old.encode(), new.encode(), 1))
    yield from ()


def _ls(said: str, folder: str = ".") -> Iterator[str]:
    yield from sorted(file.name for file in Path(folder).iterdir())


def _cat(said: str, file: str) -> Iterator[str]:
    yield from Path(file).read_text(encoding="utf-8-sig").splitlines()


def _sql(said: str, file: str, statement: str) -> Iterator[str]:
    with closing(sqlite3.connect(file)) as connection:
        for row in connection.execute(statement).fetchall():
            yield " ".join(map(str, row))
        connection.commit()


def _mkdir(said: str, folder: str) -> Iterator[str]:
    Path(folder).mkdir(parents=True)
    yield from ()


def _cp(said: str, old: str, new: str) -> Iterator[str]:
    shutil.copy(old, new)
    yield from ()


def _cut(said: str, file: str, bytes_: str) -> Iterator[str]:
    """Keep only the first bytes of a file."""
    Path(file).write_bytes(Path(file).read_bytes()[: int(bytes_)])
    yield from ()


def _recode(said: str, file: str, encoding: str) -> Iterator[str]:
    """Write a text as Windows has it: in another encoding, its lines ended by CR and LF."""
    text = Path(file).read_text(encoding="utf-8")
    Path(file).write_text(text, encoding=encoding, newline="\r\n")
    yield from ()


def _fill(said: str, file: str, text: str, times: str) -> Iterator[str]:
    r"""A text again and again; `\xff` is a byte."""
    Path(file).write_bytes(text.encode().decode("unicode_escape").encode("latin-1") * int(times))
    yield from ()


def _tool(function: Callable[..., Iterator[str]]) -> Callable[..., Ran]:
    def call(said: str, *words: str) -> Ran:
        return Ran(0, "".join(f"{line}\n" for line in function(said, *words)), "")

    return call


TOOLS = {
    function.__name__[1:]: _tool(function)
    for function in (_write, _bot, _edit, _ls, _cat, _sql, _mkdir, _cp, _cut, _fill, _recode)
}
