"""The tar that a program is stored as: how it is written, and how any tar is read.

`TarFile` reads a header in one piece, however long it says it is, follows sparse files and global
headers, and takes a tar that is cut off between two entries for whole. A hostile build may have
written the tar, so only `TarInfo` is used to read it: a header is a block or a short name, and all
but plain files and folders is refused.
"""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterator
from typing import IO, BinaryIO

from msgspec import Struct

from arena.sandbox.program_files import (
    LONGEST_NAME,
    MOST_ENTRIES,
    FileListing,
    Parts,
    not_plain,
    parts_of,
    plain_mode,
)
from protocol.errors import BadArchive

__all__ = ["CanonicalProgram", "TarWriter", "tar_entries"]

_BLOCK = tarfile.BLOCKSIZE
_CHUNK = 1 << 16
_MOST_HEADERS = 3 * MOST_ENTRIES  # an entry may have one before it; a folder may come again
_PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE)


class CanonicalProgram(Struct, frozen=True):
    """What is known of a program that was taken: its tar's SHA-256 and size, and its entries."""

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
    """Each entry of a tar with its content, which must be read to its end before the next entry.

    Names and long names are as GNU writes them. Raises `BadArchive` at the first entry that is no
    plain file or folder, has a name that no program may have, or is more than a program may have.
    """
    listing = FileListing[bool]()
    longer = ""  # the name of the next entry, if its header had no room for it
    for _ in range(_MOST_HEADERS):
        block = _exactly(tar, _BLOCK)
        if not any(block):
            return
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        except (tarfile.HeaderError, ValueError) as error:
            raise _bad(str(error)) from None
        if info.size < 0:
            raise _bad("a negative size")
        if info.type == tarfile.GNUTYPE_LONGNAME:
            if longer or info.size > LONGEST_NAME + 1:
                raise _bad("a name that is too long, or a second one for the same entry")
            long_name = b"".join(_content(tar, info.size)).removesuffix(b"\0")
            longer = long_name.decode(
                errors="surrogateescape"
            )  # `parts_of` refuses what is no UTF-8
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
    raise _bad("more headers than its files and folders need")


def _content(tar: BinaryIO, size: int) -> Iterator[bytes]:
    """The next `size` bytes, in pieces; what fills the last block is passed over."""
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
            raise _bad("its end too early")
        data += piece
    return data


def _bad(got: str) -> BadArchive:
    return BadArchive(f"expected a whole tar of plain files and folders, got {got}")
