"""A bot as people write it for the arena: `java -cp . MyBot`, or `ann=java -cp . MyBot`.

Without a name it gets one from the command line that its author will recognize.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path, PurePath

import msgspec

from arena.games.names import alike, spelled
from arena.sandbox.command import Program, read_program
from protocol.errors import UsageError

__all__ = ["BotSpec", "check_name", "named", "read_entry", "some", "unused"]

_NAME = re.compile(r"[\w-]{1,64}")  # 64 is what `hello` takes
_NAMED = re.compile(r"\s*([\w-]+)=(.*)", re.DOTALL)
_LONGEST_DEFAULT = 24  # for a table on a terminal
# File stems and folders that do not distinguish bots.
_SAYS_NOTHING = frozenset({"bot", "main", "run", "start", "src", "target", "build"})


class BotSpec(msgspec.Struct, frozen=True):
    """A bot to be launched; `name` is None before `named`, `game` is None if `hello` gives it."""

    program: Program
    name: str | None = None
    game: str | None = None


def read_entry(text: str) -> BotSpec:
    """Read `COMMAND` or `NAME=COMMAND`; raises `UsageError` if one is invalid.

    A name is letters, digits, `-` and `_`, with no space before the `=`.
    """
    parts = _NAMED.fullmatch(text)
    if parts is None:
        return BotSpec(read_program(text))
    return BotSpec(read_program(parts[2]), check_name(parts[1]))


def check_name(name: str) -> str:
    """Return the name; raises `UsageError` if it is too long or has other characters."""
    if _NAME.fullmatch(name) is None:
        raise UsageError(f"expected a name of 1 to 64 letters, digits, - and _, got {name!r}")
    return name


def named(entries: Iterable[BotSpec]) -> tuple[BotSpec, ...]:
    """Give each bot a unique name; raises `UsageError` if given names look alike."""
    entries = tuple(entries)
    taken: set[str] = set()
    for entry in entries:
        if entry.name is None:
            continue
        other = spelled(entry.name, taken)
        if other in taken:
            got = f"{other!r} and {entry.name!r}, which look alike"
            got = f"{other!r} twice" if other == entry.name else got
            raise UsageError(f"expected every bot by another name, got {got}")
        taken.add(entry.name)
    complete = []
    for entry in entries:
        if entry.name is None:
            name = unused(_default_name(entry.program), taken)
            taken.add(name)
            entry = msgspec.structs.replace(entry, name=name)
        complete.append(entry)
    return tuple(complete)


def unused(name: str, taken: Collection[str]) -> str:
    """The first of `name`, `name-2`, `name-3` and so on that looks like no taken name."""
    free, number = name, 1
    keys = set(map(alike, taken))
    while alike(free) in keys:
        number += 1
        free = f"{name}-{number}"
    return free


def some(names: Sequence[str], most: int = 3) -> str:
    """List names: `ann, ben, cem and 4 more`."""
    more = len(names) - most
    listed = ", ".join(names[:most])
    return listed if more <= 0 else f"{listed} and {more:,} more"


def _default_name(program: Program) -> str:
    """`mybot` for `./mybot`, `MyBot` for `java -cp . MyBot`, `ann` for `python3 ann/bot.py`."""
    plain = re.sub(r"[^\w-]+", "-", _telling_word(program))[:_LONGEST_DEFAULT]
    return plain.strip("-") or "bot"


def _telling_word(program: Program) -> str:
    first, *rest = program.words
    if os.path.dirname(first) and not os.path.isabs(first):
        return _stem(first)  # the author's own program, not an interpreter
    words = [word for word in rest if not word.startswith("-")]
    folder = program.folder or Path()
    for word in words:
        if (folder / word).is_file():
            return _stem(word)
    for word in reversed(words):
        if any(map(str.isalpha, word)):
            return word.rpartition(".")[2]  # the class in a package
    return _stem(first)


def _stem(word: str) -> str:
    """A file's name without its suffix, or the name of its folder if that says more."""
    path = PurePath(word)
    for part in (path.stem, *reversed(path.parent.parts)):
        if part.lower() not in _SAYS_NOTHING and part not in (os.curdir, os.pardir):
            return part
    return path.stem
