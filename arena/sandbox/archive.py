"""A program as it is handed in: packed by its author, checked, stored as a tar, and unpacked.

A program is one file, or a zip of a folder. `canonical` checks all of it before it writes the first
byte, and then writes one tar, the same for the same files, whoever has packed them: so a program
is known by the SHA-256 of its tar. There are plain files and folders in it and nothing else.

What `is_left_out` says and virtual environments are no part of a program, neither of a folder that
`pack` packs nor of a zip that another tool has made: a student who drops a zip of the whole folder
is not to fail for its `.git`. A build may leave such entries, and they stay.
"""

from __future__ import annotations

import io
import os
import shutil
import stat
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from arena.sandbox import zip_reader
from arena.sandbox.program_files import (
    ENVIRONMENT,
    MOST_ENTRIES,
    MOST_UNPACKED,
    FileListing,
    Parts,
    is_left_out,
    not_plain,
    parts_of,
    plain_mode,
)
from arena.sandbox.program_tar import CanonicalProgram, TarWriter, tar_entries
from arena.sandbox.zip_reader import ZipEntry
from protocol.errors import BadArchive, UsageError
from protocol.vocabulary import shorten

__all__ = [
    "MOST_BYTES",
    "MOST_ENTRIES",
    "MOST_UNPACKED",
    "BadArchive",
    "CanonicalProgram",
    "as_zip",
    "canonical",
    "pack",
    "unpack",
]

MOST_BYTES = 16 << 20  # as it is sent
_ZIP = ".zip"
_CHUNK = 1 << 16


def pack(path: Path) -> tuple[str, bytes]:
    """A name and the bytes to send: a FILE as it is, a folder as a zip.

    Raises `UsageError` if there is nothing, or something that no arena takes.
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
    """Check what was sent, a file or a NAME.zip, and write it to `into` as the one tar.

    If all of a zip is in a single folder, that folder is the program. Raises `BadArchive`; nothing
    is written then, or, if it is the data of a zip that are damaged, a part that is of no use.
    """
    size = sent.seek(0, os.SEEK_END)
    _check_sent(size)
    tar = TarWriter(into)
    if not name.lower().endswith(_ZIP):
        parts = parts_of(name)
        if len(parts) != 1 or is_left_out(parts):
            raise BadArchive(f"expected a file such as 'bot.py', got {shorten(name, 80)}")
        sent.seek(0)
        tar.add(parts, 0, size, iter(lambda: sent.read(_CHUNK), b""))
        return tar.close()
    entries = [*_plain_entries(zip_reader.directory(sent))]
    around = _folders_around(entries)
    files = FileListing[ZipEntry]()
    for parts, entry in entries:
        if len(parts) > around:
            files.add(parts[around:], entry.size, None if _is_folder(entry) else entry)
    if not files.has_files:
        raise BadArchive("expected a program, got a zip with no file in it")
    for parts, source in files.sorted():
        if source is None:
            tar.add_folder(parts)
        else:
            tar.add(parts, source.mode, source.size, zip_reader.content(sent, source))
    return tar.close()


def unpack(tar: BinaryIO, folder: Path) -> None:
    """Unpack a tar into a folder, which must be empty and nobody else's.

    Everything is checked as by `canonical`, but while it is unpacked: a hostile build may have
    written it. Links, devices, sparse files and all else that a tar can have are refused with
    `BadArchive`; then the folder holds a part of it. Of a pax header only the name counts.
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
    """Write a stored program to `out` as a zip, which any tool unpacks and `canonical` takes."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for parts, info, pieces in tar_entries(tar):
            with archive.open(_zip_info(parts, info.mode, info.isdir()), "w") as into:
                for piece in pieces:
                    into.write(piece)


# ---- Zips


def _plain_entries(listed: Iterable[ZipEntry]) -> Iterator[tuple[Parts, ZipEntry]]:
    """The entries of a zip that count, with their names; raises `BadArchive` for a bad one."""
    named = [(parts_of(entry.name.removesuffix("/")), entry) for entry in listed]
    environments = {parts[:-1] for parts, _ in named if parts[-1] == ENVIRONMENT} - {()}
    for parts, entry in named:
        above = (parts[:depth] for depth in range(1, len(parts) + 1))
        if is_left_out(parts) or not environments.isdisjoint(above):
            continue
        kind = stat.S_IFMT(entry.mode)
        if kind not in (0, stat.S_IFDIR if _is_folder(entry) else stat.S_IFREG):
            raise not_plain(entry.name, kind)
        if _is_folder(entry) and entry.size:
            raise not_plain(entry.name, "a folder with data")
        yield parts, entry


def _is_folder(entry: ZipEntry) -> bool:
    return entry.name.endswith("/")


def _folders_around(entries: Iterable[tuple[Parts, ZipEntry]]) -> int:
    """1 if all entries are in one folder at the top, as many tools pack it, else 0."""
    tops = {parts[0] for parts, _ in entries}
    lone = any(len(parts) == 1 and not _is_folder(entry) for parts, entry in entries)
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
    """Add what is in a folder and below, but for what is left out."""
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
    info.create_system = 3  # Unix: the mode counts
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
