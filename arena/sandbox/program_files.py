"""What a program that is handed in may have in it: plain files and folders under plain names."""

from __future__ import annotations

import operator
import re
import stat
import unicodedata
from typing import Generic, TypeVar

from protocol.errors import BadArchive
from protocol.vocabulary import shorten

__all__ = [
    "ENVIRONMENT",
    "LONGEST_NAME",
    "MOST_ENTRIES",
    "MOST_UNPACKED",
    "FileListing",
    "Parts",
    "is_left_out",
    "not_plain",
    "parts_of",
    "plain_mode",
]

MOST_UNPACKED = 200 << 20
MOST_ENTRIES = 2_000  # files and folders
LONGEST_NAME = 1_000  # bytes, with its folders: Linux takes 4,096 with what is above them
ENVIRONMENT = "pyvenv.cfg"
"""The file that a virtual environment of Python has: none of it is part of a program."""

_LONGEST_PART = 255  # bytes, as Linux takes
_MOST_AT_TOP = 1_000  # each is a mount: with more, bubblewrap is slow and then refuses
_DEEPEST = 32  # folders in each other

_MADE_BY_TOOLS = frozenset({"__pycache__", "__MACOSX"})
_DRIVE = re.compile(r"[A-Za-z]:")
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFREG: "a file that is called like a folder",
    stat.S_IFDIR: "a folder that is called like a file",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}

Parts = tuple[str, ...]
"""A relative name, part by part."""

_Source = TypeVar("_Source")  # where the content of a file comes from


class FileListing(Generic[_Source]):
    """The files and folders of a program, each checked when it is added.

    A folder's source is None. The folders that a file is in count as entries, listed or not.
    """

    def __init__(self) -> None:
        # By what some systems take as the same name.
        self._found: dict[str, tuple[Parts, _Source | None]] = {}
        self._at_top = 0
        self._size = 0

    @property
    def has_files(self) -> bool:
        return any(source is not None for _, source in self._found.values())

    def add(self, parts: Parts, size: int, source: _Source | None) -> None:
        """Add an entry and the folders that it is in; raises `BadArchive`."""
        for depth in range(1, len(parts)):
            self._put(parts[:depth], None)
        self._put(parts, source)
        self._size += size
        if self._size > MOST_UNPACKED:
            raise BadArchive(
                f"expected at most {MOST_UNPACKED >> 20} MiB unpacked, got more; leave out "
                "what the program does not need to run"
            )

    def sorted(self) -> list[tuple[Parts, _Source | None]]:
        """All entries with their sources, each folder before what is in it."""
        return sorted(self._found.values(), key=operator.itemgetter(0))

    def _put(self, parts: Parts, source: _Source | None) -> None:
        name = "/".join(parts)
        spelled = _folded(name)
        if spelled not in self._found:
            self._found[spelled] = parts, source
            self._at_top += len(parts) == 1
            self._check_count(len(self._found), MOST_ENTRIES, "")
            self._check_count(self._at_top, _MOST_AT_TOP, " at the top")
            return
        before, its_source = self._found[spelled]
        if before != parts:
            raise BadArchive(
                "expected names that differ in more than case, got "
                f"{shorten('/'.join(before), 80)} and {shorten(name, 80)}; rename one"
            )
        if source is not None or its_source is not None:
            got = "as a file and as a folder" if None in (source, its_source) else "twice"
            raise BadArchive(f"expected every name once, got {shorten(name, 80)} {got}")

    def _check_count(self, count: int, most: int, where: str) -> None:
        if count > most:
            raise BadArchive(
                f"expected at most {most:,} files and folders{where}, got more; leave out "
                "what the program does not need, or keep data in one file"
            )


def parts_of(name: str) -> Parts:
    """The parts of a relative name; raises `BadArchive` if it may mean anything else somewhere."""
    parts = tuple(name.split("/"))
    if not name.isprintable():
        fault = "letters that cannot be printed"
    elif "\\" in name:
        fault = "a backslash"
    elif name.startswith("/"):
        fault = "an absolute path"
    elif _DRIVE.match(name):
        fault = "a drive letter"
    elif not {"", ".", ".."}.isdisjoint(parts):
        fault = "a part that is empty, '.' or '..'"
    elif len(parts) > _DEEPEST:
        fault = f"more than {_DEEPEST} folders in each other"
    elif (
        max(len(part.encode()) for part in parts) > _LONGEST_PART
        or len(name.encode()) > LONGEST_NAME
    ):
        fault = f"more than {_LONGEST_PART} bytes, or {LONGEST_NAME:,} with its folders"
    else:
        return parts
    raise BadArchive(
        f"expected relative, printable names such as 'src/bot.py', got {shorten(name, 80)}: {fault}"
    )


def is_left_out(parts: Parts) -> bool:
    """Whether an entry is no part of a program: those with a dot in front, and what tools leave."""
    return any(part.startswith(".") or part in _MADE_BY_TOOLS for part in parts)


def plain_mode(mode: int, *, is_folder: bool = False) -> int:
    """The mode as a program keeps it: whether its owner may execute it is all that counts."""
    return 0o755 if is_folder or mode & stat.S_IXUSR else 0o644


def not_plain(name: str, kind: int | str) -> BadArchive:
    """What to raise for an entry that is neither a plain file nor a folder, by its `S_IFMT`."""
    got = kind if isinstance(kind, str) else _KINDS.get(kind, "something else")
    return BadArchive(
        f"expected plain files and folders, got {shorten(name, 80)}, {got}; "
        "replace it by what it stands for, or leave it out"
    )


def _folded(name: str) -> str:
    """The same for all names that some file system takes for one."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
