"""A program as it is handed in: packed by its author, checked, stored as a tar, and unpacked.

A program is one file, or a zip of a folder. `canonical` checks all of it before it writes the first
byte, and then writes a tar that depends on nothing but the files. So a program is identified by the
SHA-256 of its tar. The tar contains only plain files and folders.

Entries that `is_left_out` names, and virtual environments, are not part of a program. This holds
for a folder that `pack` packs and for a zip made by another tool: a student who drops a zip of the
whole folder should not fail because of its `.git`. A build may leave such entries, and they stay.
"""

from __future__ import annotations

import io
import os
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from arena.sandbox.program_files import (
    ENVIRONMENT,
    MOST_UNPACKED,
    CanonicalProgram,
    FileListing,
    Parts,
    TarWriter,
    is_left_out,
    not_plain,
    parts_of,
    plain_mode,
    tar_entries,
)
from protocol.errors import BadArchive, UsageError
from protocol.vocabulary import shorten

__all__ = [
    "MOST_BYTES",
    "MOST_UNPACKED",
    "BadArchive",
    "CanonicalProgram",
    "as_zip",
    "canonical",
    "pack",
    "unpack",
]

MOST_BYTES = 16 << 20  # as sent
_ZIP = ".zip"
_MOST_LISTED = 20_000  # ten times what a program may have, as a `.git` or the like is left out
_LISTED = b"PK\1\2"  # begins each entry of a zip's directory, wherever that is
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 1 << 0
# What `zipfile` raises for a zip that is damaged or of an unknown kind.
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    ValueError,
    OverflowError,
)


def pack(path: Path) -> tuple[str, bytes]:
    """The name and bytes to send: a FILE unchanged, a folder as a zip.

    Raises `UsageError` if there is nothing, or something that no arena accepts.
    """
    try:
        if not path.is_dir():
            with path.open("rb") as file:
                sent = file.read(MOST_BYTES + 1)
            _check_sent(len(sent))
            return path.name, sent
        path = path.resolve()
        return f"{path.name or 'program'}{_ZIP}", _zip_of(path)
    except OSError as error:
        raise UsageError(f"expected a program's file or folder, got {path}: {error}") from error


def canonical(name: str, sent: BinaryIO, into: BinaryIO) -> CanonicalProgram:
    """Check what was sent, a file or a NAME.zip, and write it to `into` as the canonical tar.

    If all of a zip is in a single folder, that folder is the program. Raises `BadArchive`; then
    nothing is written, or, if the zip's data are damaged, an unusable part.
    """
    size = sent.seek(0, os.SEEK_END)
    _check_sent(size)
    tar = TarWriter(into)
    if not name.lower().endswith(_ZIP):
        parts = parts_of(name)
        if len(parts) != 1 or is_left_out(parts):
            raise BadArchive(f"expected a file such as 'bot.py', got {shorten(name, 80)}")
        sent.seek(0)
        tar.add(parts, 0, sent, size)
        return tar.close()
    with _opened(sent) as archive:
        entries = [*_plain_entries(archive.infolist())]
        around = _folders_around(entries)
        files = FileListing[zipfile.ZipInfo]()
        for parts, info in entries:
            if len(parts) > around:
                files.add(parts[around:], info.file_size, None if _is_folder(info) else info)
        if not files.has_files:
            raise BadArchive("expected a program, got a zip with no file in it")
        for parts, source in files.sorted():
            if source is None:
                tar.add_folder(parts)
                continue
            try:
                content = archive.open(source)
            except (*_UNREADABLE, OSError):  # its location may be any number
                raise _damaged(source) from None
            try:
                with content:
                    tar.add(parts, _mode(source), content, source.file_size)
            except _UNREADABLE:
                raise _damaged(source) from None
    return tar.close()


def unpack(tar: BinaryIO, folder: Path) -> None:
    """Unpack a tar into a folder, which must be empty and used by nobody else.

    Everything is checked as in `canonical`, but while unpacking, as a hostile build may have
    written the tar. Links, devices, sparse files and everything else that a tar can have are
    refused with `BadArchive`; the folder then has a part of the files.
    """
    for parts, info, pieces in tar_entries(tar):
        path = folder.joinpath(*parts)
        if info.isdir():
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.writelines(pieces)
        path.chmod(plain_mode(info.mode))


def as_zip(tar: BinaryIO, out: BinaryIO) -> None:
    """Write a stored program to `out` as a zip, which any tool unpacks and `canonical` accepts."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for parts, info, pieces in tar_entries(tar):
            with archive.open(_zip_info(parts, info.mode, info.isdir()), "w") as into:
                for piece in pieces:
                    into.write(piece)


# ---- Zips


def _opened(sent: BinaryIO) -> zipfile.ZipFile:
    """Open a zip after counting its entries, as `zipfile` would read however many there are."""
    sent.seek(0)
    if (count := sent.read().count(_LISTED)) > _MOST_LISTED:
        raise BadArchive(f"expected a zip with at most {_MOST_LISTED:,} entries, got {count:,}")
    try:
        return zipfile.ZipFile(sent, metadata_encoding="utf-8")
    except UnicodeDecodeError as error:
        shown = shorten(error.object.decode(errors="replace"), 80)
        raise BadArchive(f"expected names in UTF-8, got {shown}; rename it") from None
    except (*_UNREADABLE, OSError):
        raise BadArchive(
            "expected a zip, got a file that is none, or one that is cut off"
        ) from None


def _plain_entries(listed: Iterable[zipfile.ZipInfo]) -> Iterator[tuple[Parts, zipfile.ZipInfo]]:
    """The entries of a zip that count, with their names; raises `BadArchive` for a bad one."""
    # `filename` stops at a NUL.
    named = [(parts_of(info.orig_filename.removesuffix("/")), info) for info in listed]
    environments = {parts[:-1] for parts, _ in named if parts[-1] == ENVIRONMENT} - {()}
    for parts, info in named:
        above = (parts[:depth] for depth in range(1, len(parts) + 1))
        if is_left_out(parts) or not environments.isdisjoint(above):
            continue
        shown = shorten(info.orig_filename, 80)
        if info.flag_bits & _ENCRYPTED:
            raise BadArchive(f"expected a zip without a password, got {shown} encrypted")
        if info.compress_type not in _METHODS:
            raise BadArchive(
                f"expected files that are stored or deflated, got {shown} packed by method "
                f"{info.compress_type}; pack the folder with another program, or `arena submit` "
                "the folder"
            )
        kind = stat.S_IFMT(_mode(info))
        if kind not in (0, stat.S_IFDIR if _is_folder(info) else stat.S_IFREG):
            raise not_plain(info.orig_filename, kind)
        if _is_folder(info) and info.file_size:
            raise not_plain(info.orig_filename, "a folder with data")
        yield parts, info


def _damaged(info: zipfile.ZipInfo) -> BadArchive:
    shown = shorten(info.orig_filename, 80)
    return BadArchive(f"expected a whole zip, got one that is damaged at {shown}; pack it again")


def _is_folder(info: zipfile.ZipInfo) -> bool:
    return info.orig_filename.endswith("/")


def _mode(info: zipfile.ZipInfo) -> int:
    """The mode as in `stat`; 0 if the zip was made on a system without modes."""
    return info.external_attr >> 16


def _folders_around(entries: Iterable[tuple[Parts, zipfile.ZipInfo]]) -> int:
    """1 if all entries are in one folder at the top, as many tools pack them, else 0."""
    tops = {parts[0] for parts, _ in entries}
    lone = any(len(parts) == 1 and not _is_folder(info) for parts, info in entries)
    return int(len(tops) == 1 and not lone)


def _zip_of(folder: Path) -> bytes:
    files = FileListing[Path]()
    _list(folder, (), files)
    if not files.has_files:
        raise UsageError(f"expected a program in {folder}, got a folder with no file in it")
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        for parts, source in files.sorted():
            mode = 0 if source is None else source.stat().st_mode
            with archive.open(_zip_info(parts, mode, source is None), "w") as into:
                if source is not None:
                    with source.open("rb") as content:
                        shutil.copyfileobj(content, into)
            _check_sent(zipped.tell())
    _check_sent(zipped.tell())
    return zipped.getvalue()


def _list(folder: Path, above: Parts, files: FileListing[Path]) -> None:
    """Add everything in a folder and below it, except what is left out."""
    for path in folder.iterdir():
        parts = (*above, path.name)
        if is_left_out(parts):
            continue
        name = "/".join(parts)
        parts_of(name)
        found = path.lstat()
        kind = stat.S_IFMT(found.st_mode)
        if kind == stat.S_IFDIR:
            if not (path / ENVIRONMENT).exists():
                files.add(parts, 0, None)
                _list(path, parts, files)
        elif kind == stat.S_IFREG:
            files.add(parts, found.st_size, path)
        else:
            raise not_plain(name, kind)


def _zip_info(parts: Parts, mode: int, is_folder: bool) -> zipfile.ZipInfo:
    """An entry to be written; always the same for the same name and mode."""
    info = zipfile.ZipInfo("/".join(parts) + "/" * is_folder)
    info.create_system = 3  # Unix, so that the mode counts
    info.compress_type = zipfile.ZIP_STORED if is_folder else zipfile.ZIP_DEFLATED
    kind = stat.S_IFDIR if is_folder else stat.S_IFREG
    info.external_attr = (kind | plain_mode(mode, is_folder=is_folder)) << 16
    return info


def _check_sent(size: int) -> None:
    if size > MOST_BYTES:
        raise BadArchive(
            f"expected at most {MOST_BYTES >> 20} MiB packed, got more; leave out what the program "
            "does not need to run"
        )
