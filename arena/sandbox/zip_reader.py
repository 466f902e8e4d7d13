"""Reads a zip that a stranger has made; it believes nothing that can be checked.

`zipfile` is for archives of one's own: it reads the whole directory before anybody can count it,
cuts names at a NUL, and takes the sizes that are written there. This one needs little memory, and
takes only zips that all programs read alike: one directory at the end, whose entries agree with
what stands before their data, and share no byte of the file. Any bytes can be read to their end or
raise `BadArchive`.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from itertools import pairwise
from struct import Struct as Layout
from typing import BinaryIO

from msgspec import Struct

from protocol.errors import BadArchive
from protocol.vocabulary import shorten

__all__ = ["ZipEntry", "content", "directory"]

_MOST_LISTED = 20_000  # ten times what a program may have, for what is left out of it, as `.git` is
_CHUNK = 1 << 16
_LONGEST_COMMENT = 0xFFFF

# APPNOTE.TXT 4.3.16, 4.3.12 and 4.3.7, without the versions, times and internal attributes.
_END, _END_MARK = Layout("<4s4H2LH"), b"PK\5\6"
_LISTED, _LISTED_MARK = Layout("<4s4x2H4x3L4H2x2L"), b"PK\1\2"
_LOCAL, _LOCAL_MARK = Layout("<4s2x2H4x3L2H"), b"PK\3\4"

_ENCRYPTED = 1 << 0
_SIZES_FOLLOW = 1 << 3  # written as a stream: the sizes stand behind the data
_STORED, _DEFLATED = 0, 8


class ZipEntry(Struct, frozen=True, kw_only=True):
    """An entry of a zip.

    Attributes:
        name: as it is written; a folder's ends with `/`.
        mode: as in `stat`, or 0 if the zip was made on a system without modes.
        size: of its content, unpacked.
        crc: of its content.
        is_deflated: whether its content is packed.
        start, packed: where its data begin in the zip, and how long they are.
    """

    name: str
    mode: int
    size: int
    crc: int
    is_deflated: bool
    start: int
    packed: int


def directory(zipped: BinaryIO) -> tuple[ZipEntry, ...]:
    """All entries of a zip, as its directory lists them; nothing is unpacked."""
    count, offset, end = _find_directory(zipped)
    if count > _MOST_LISTED:
        raise BadArchive(f"expected a zip with at most {_MOST_LISTED:,} entries, got {count:,}")
    entries = []
    spans = [(offset, end)]
    for _ in range(count):
        zipped.seek(offset)
        listed = _LISTED.unpack(_exactly(zipped, _LISTED.size))
        mark, flags, method, crc, packed, size, name_size, extra, comment, disk = listed[:10]
        attributes, local = listed[10:]
        if mark != _LISTED_MARK or disk:
            raise _damaged("its directory")
        name = _exactly(zipped, name_size)
        shown = shorten(name.decode(errors="replace"), 80)
        if flags & _ENCRYPTED:
            raise BadArchive(f"expected a zip without a password, got {shown} encrypted")
        if method not in (_STORED, _DEFLATED):
            raise BadArchive(
                f"expected files that are stored or deflated, got {shown} packed by method "
                f"{method}; pack the folder with another program, or `arena submit` the folder"
            )
        try:
            text = name.decode()
        except UnicodeDecodeError:
            raise BadArchive(f"expected names in UTF-8, got {shown}; rename it") from None
        start = _start_of_data(zipped, local, (method, crc, packed, size, name))
        spans.append((local, start + packed))
        entries.append(
            ZipEntry(
                name=text,
                mode=attributes >> 16,
                size=size,
                crc=crc,
                is_deflated=method == _DEFLATED,
                start=start,
                packed=packed,
            )
        )
        offset += _LISTED.size + name_size + extra + comment
    if offset != end:
        raise _damaged("its directory")
    if any(before[1] > after[0] for before, after in pairwise(sorted(spans))):
        raise BadArchive(
            "expected a zip whose entries have bytes of their own, got some that share"
        )
    return tuple(entries)


def content(zipped: BinaryIO, entry: ZipEntry) -> Iterator[bytes]:
    """The content of an entry in pieces: exactly as much as its size says, with its checksum."""
    shown = shorten(entry.name, 80)
    inflate = zlib.decompressobj(-zlib.MAX_WBITS) if entry.is_deflated else None
    zipped.seek(entry.start)
    unread, left, crc = entry.packed, entry.size, 0
    waiting = b""  # what is read of the data and not unpacked yet
    while inflate is None or not inflate.eof:
        if not waiting:
            waiting = _exactly(zipped, min(unread, _CHUNK))
            unread -= len(waiting)
        if inflate is None:
            piece, waiting = waiting, b""
        else:
            try:
                piece = inflate.decompress(waiting, _CHUNK)
            except zlib.error:
                raise _damaged(shown) from None
            waiting = inflate.unconsumed_tail
        left -= len(piece)
        if left < 0 or not (piece or waiting or unread):
            break
        crc = zlib.crc32(piece, crc)
        yield piece
    is_whole = inflate is None or (inflate.eof and not inflate.unused_data)
    if left or unread or waiting or not is_whole:
        raise BadArchive(f"expected {entry.size:,} bytes in {shown}, as the zip says, got others")
    if crc != entry.crc:
        raise _damaged(shown)


def _find_directory(zipped: BinaryIO) -> tuple[int, int, int]:
    """How many entries the directory has, where it begins, and where it ends."""
    length = zipped.seek(0, os.SEEK_END)
    start = max(0, length - _END.size - _LONGEST_COMMENT)
    zipped.seek(start)
    tail = _exactly(zipped, length - start)
    at = tail.rfind(_END_MARK, 0, max(0, len(tail) - _END.size + len(_END_MARK)))
    if at < 0:
        raise BadArchive("expected a zip, got a file that is none, or one that is cut off")
    _, *disks, count, size, offset, comment = _END.unpack_from(tail, at)
    if 0xFFFF in (*disks, count) or 0xFFFFFFFF in (size, offset):
        raise BadArchive("expected a plain zip, got a zip64, which is for more than a program has")
    at += start
    if at + _END.size + comment != length or offset + size != at or disks != [0, 0, count]:
        raise _damaged("its end")
    return count, offset, at


def _start_of_data(zipped: BinaryIO, local: int, listed: tuple[int, int, int, int, bytes]) -> int:
    """Where an entry's data begin; what is written before them must be what the directory says."""
    zipped.seek(local)
    mark, flags, *there, name_size, extra = _LOCAL.unpack(_exactly(zipped, _LOCAL.size))
    expected = [*listed]
    if flags & _SIZES_FOLLOW:
        there[1:], expected[1:4] = [], []
    if mark != _LOCAL_MARK or [*there, _exactly(zipped, name_size)] != expected:
        raise _damaged(shorten(listed[-1].decode(errors="replace"), 80))
    return local + _LOCAL.size + int(name_size) + int(extra)


def _exactly(zipped: BinaryIO, size: int) -> bytes:
    data = zipped.read(size)
    if len(data) != size:
        raise _damaged("its end")
    return data


def _damaged(what: str) -> BadArchive:
    return BadArchive(f"expected a whole zip, got one that is damaged at {what}; pack it again")
