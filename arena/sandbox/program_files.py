"""The files that a program may contain when it is handed in, and the tar that it is stored as.

A program has only plain files and folders under plain names. `TarFile` reads a header in one piece,
however long it claims to be, follows sparse files and global headers, and accepts a tar that is cut
off between two entries. A hostile build may have written the tar, so it is read only by `TarInfo`:
a header is one block or a short name.
"""

from __future__ import annotations

import hashlib
import operator
import re
import stat
import tarfile
import unicodedata
from collections.abc import Iterator
from typing import IO, BinaryIO, Generic, TypeVar

from msgspec import Struct

from protocol.errors import BadArchive
from protocol.vocabulary import shorten

__all__ = [
    "ENVIRONMENT",
    "MOST_UNPACKED",
    "CanonicalProgram",
    "FileListing",
    "Parts",
    "TarWriter",
    "is_left_out",
    "not_plain",
    "parts_of",
    "plain_mode",
    "tar_entries",
]

MOST_UNPACKED = 200 << 20
_MOST_ENTRIES = 2_000  # files and folders
_LONGEST_NAME = 1_000  # bytes, with its folders: Linux allows 4,096 with the folders above
ENVIRONMENT = "pyvenv.cfg"
"""The file that marks a virtual environment of Python, which is not part of a program."""

_LONGEST_PART = 255  # bytes, as in Linux
_MOST_AT_TOP = 1_000  # each is a mount: with more, bubblewrap is slow and then refuses
_DEEPEST = 32  # nested folders

_BLOCK = tarfile.BLOCKSIZE
_CHUNK = 1 << 16
_MOST_HEADERS = 3 * _MOST_ENTRIES  # an entry may have one before it; a folder may come again
_PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE)

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
"""A relative name, split into its parts."""

_Source = TypeVar("_Source")  # where the content of a file comes from


class FileListing(Generic[_Source]):
    """The files and folders of a program, each checked when it is added.

    A folder's source is None. The folders around a file count as entries, listed or not.
    """

    def __init__(self) -> None:
        # By a key that is equal for names that are the same on some systems.
        self._found: dict[str, tuple[Parts, _Source | None]] = {}
        self._at_top = 0
        self._size = 0

    @property
    def has_files(self) -> bool:
        return any(source is not None for _, source in self._found.values())

    def add(self, parts: Parts, size: int, source: _Source | None) -> None:
        """Add an entry and the folders around it; raises `BadArchive`."""
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
        """All entries with their sources, each folder before its contents."""
        return sorted(self._found.values(), key=operator.itemgetter(0))

    def _put(self, parts: Parts, source: _Source | None) -> None:
        name = "/".join(parts)
        spelled = _folded(name)
        if spelled not in self._found:
            self._found[spelled] = parts, source
            self._at_top += len(parts) == 1
            self._check_count(len(self._found), _MOST_ENTRIES, "")
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
    """Split a relative name; raises `BadArchive` if it could mean something else on any system."""
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
        or len(name.encode()) > _LONGEST_NAME
    ):
        fault = f"more than {_LONGEST_PART} bytes, or {_LONGEST_NAME:,} with its folders"
    else:
        return parts
    raise BadArchive(
        f"expected relative, printable names such as 'src/bot.py', got {shorten(name, 80)}: {fault}"
    )


def is_left_out(parts: Parts) -> bool:
    """Whether an entry is not part of a program: dot files, and what tools leave behind."""
    return any(part.startswith(".") or part in _MADE_BY_TOOLS for part in parts)


def plain_mode(mode: int, *, is_folder: bool = False) -> int:
    """The mode that a program keeps: only whether its owner may execute it counts."""
    return 0o755 if is_folder or mode & stat.S_IXUSR else 0o644


def not_plain(name: str, kind: int | str) -> BadArchive:
    """The error for an entry that is neither a plain file nor a folder, by its `S_IFMT`."""
    got = kind if isinstance(kind, str) else _KINDS.get(kind, "something else")
    return BadArchive(
        f"expected plain files and folders, got {shorten(name, 80)}, {got}; "
        "replace it by what it stands for, or leave it out"
    )


def _folded(name: str) -> str:
    """A key that is equal for all names that some file system treats as the same."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


# ---- The tar


class CanonicalProgram(Struct, frozen=True):
    """What is known of an accepted program: its tar's SHA-256 and size, and its entries."""

    sha256: str
    size: int
    entries: int


class TarWriter:
    """Writes a tar that is the same for the same entries, if they come sorted."""

    def __init__(self, into: BinaryIO) -> None:
        self._into, self._hash = into, hashlib.sha256()
        self._size = self._entries = 0

    def add(self, parts: Parts, mode: int, source: IO[bytes], size: int) -> None:
        """Write a file, `size` bytes of the source; raises `EOFError` if it has fewer."""
        self._header(parts, tarfile.REGTYPE, plain_mode(mode), size)
        left = size
        while left:
            piece = source.read(min(left, _CHUNK))
            if not piece:
                raise EOFError
            left -= len(piece)
            self._write(piece)
        self._write(bytes(-size % _BLOCK))

    def add_folder(self, parts: Parts) -> None:
        self._header(parts, tarfile.DIRTYPE, plain_mode(0, is_folder=True), 0)

    def add_link(self, parts: Parts, target: str) -> None:
        self._header(parts, tarfile.SYMTYPE, 0o777, 0, target)

    def close(self) -> CanonicalProgram:
        """Write the end of the tar; `into` stays open."""
        self._write(bytes(2 * _BLOCK))
        return CanonicalProgram(self._hash.hexdigest(), self._size, self._entries)

    def _header(self, parts: Parts, kind: bytes, mode: int, size: int, target: str = "") -> None:
        info = tarfile.TarInfo("/".join(parts))
        info.type, info.mode, info.size, info.linkname = kind, mode, size, target
        self._write(info.tobuf(tarfile.GNU_FORMAT, "utf-8", "strict"))
        self._entries += 1

    def _write(self, data: bytes) -> None:
        self._into.write(data)
        self._hash.update(data)
        self._size += len(data)


def tar_entries(tar: BinaryIO) -> Iterator[tuple[Parts, tarfile.TarInfo, Iterator[bytes]]]:
    """Yield each entry of a tar with its content, which must be read before the next entry.

    Names and long names are in GNU's format. Raises `BadArchive` at the first entry that is not a
    plain file or folder, has a name that no program may have, or exceeds what a program may have.
    """
    listing = FileListing[bool]()
    longer = ""  # the name of the next entry, if it did not fit into its header
    for _ in range(_MOST_HEADERS):
        block = _exactly(tar, _BLOCK)
        if not any(block):
            return
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        except (tarfile.HeaderError, ValueError) as error:
            raise _no_tar(str(error)) from None
        if info.size < 0:
            raise _no_tar("a negative size")
        if info.type == tarfile.GNUTYPE_LONGNAME:
            if longer or info.size > _LONGEST_NAME + 1:
                raise _no_tar("a name that is too long, or a second one for the same entry")
            long_name = b"".join(_content(tar, info.size)).removesuffix(b"\0")
            longer = long_name.decode(
                errors="surrogateescape"
            )  # `parts_of` refuses names that are not UTF-8
            continue
        name, longer = longer or info.name, ""
        if info.type not in _PLAIN:
            raise not_plain(name, "something else")
        if info.isdir() and info.size:
            raise not_plain(name, "a folder with data")
        parts = parts_of(name.removesuffix("/"))
        listing.add(parts, info.size, None if info.isdir() else True)
        pieces = _content(tar, info.size)
        yield parts, info, pieces
        assert next(pieces, None) is None, "an entry is read to its end before the next one"
    raise _no_tar("more headers than its files and folders need")


def _content(tar: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the next `size` bytes, in pieces; the padding of the last block is skipped."""
    left = size
    while left:
        piece = _exactly(tar, min(left, _CHUNK))
        left -= len(piece)
        yield piece
    _exactly(tar, -size % _BLOCK)


def _exactly(tar: BinaryIO, size: int) -> bytes:
    data = b""
    while len(data) < size:  # a pipe gives what it has
        piece = tar.read(size - len(data))
        if not piece:
            raise _no_tar("its end too early")
        data += piece
    return data


def _no_tar(got: str) -> BadArchive:
    return BadArchive(f"expected a whole tar of plain files and folders, got {got}")
