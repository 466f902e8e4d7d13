"""Tars that a hostile build may hand out: what is in them is plain, or they are refused."""

from __future__ import annotations

import contextlib
import io
import os
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.sandbox.archive import MOST_UNPACKED, BadArchive, unpack


def entry(name: str = "bot", data: bytes = b"x", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, data


def tarred(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for info, data in entries:
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def unpacked(tar: bytes, folder: Path) -> Mapping[str, bytes]:
    folder.mkdir()
    unpack(io.BytesIO(tar), folder)
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_what_tarfile_packs_of_a_folder_is_unpacked(tmp_path: Path) -> None:
    long = "/".join(["folder" * 5] * 5)
    tree = {"bot": b"\x7fELF", ".hidden/x": b"", f"{long}/größe.py": b"x" * 100_000}
    for name, data in tree.items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(data)
    (tmp_path / "in/bot").chmod(0o700)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in (tmp_path / "in").iterdir():
            tar.add(path, path.name)

    assert unpacked(out.getvalue(), tmp_path / "out") == tree
    assert os.access(tmp_path / "out/bot", os.X_OK)
    assert not os.access(tmp_path / "out/.hidden/x", os.X_OK)


def test_bits_other_than_the_owners_right_to_execute_are_not_kept(tmp_path: Path) -> None:
    unpacked(tarred(entry("a", mode=0o6777), entry("b", mode=0o4066)), tmp_path / "out")

    assert [(tmp_path / "out" / name).stat().st_mode & 0o7777 for name in "ab"] == [0o755, 0o644]


def test_a_pipe_gives_a_tar_in_pieces(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, tarred(entry(data=b"x" * 700))[:3_000])
    os.close(writing)
    with open(reading, "rb", buffering=0) as tar:
        unpack(tar, tmp_path)

    assert (tmp_path / "bot").read_bytes() == b"x" * 700


def signed(size: int) -> bytes:
    """A header with a size in base 256, which may be negative."""
    block = bytearray(tarred(entry())[:512])
    block[124:136] = (b"\x80" if size >= 0 else b"\xff") + size.to_bytes(11, "big", signed=True)
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def of_type(kind: bytes) -> Callable[[], bytes]:
    return lambda: tarred(entry(data=b"", type=kind, linkname="/etc"))


HOSTILE: Mapping[str, tuple[Callable[[], bytes], str]] = {
    "a link": (of_type(tarfile.SYMTYPE), "plain files"),
    "a hard link": (of_type(tarfile.LNKTYPE), "plain files"),
    "a device": (of_type(tarfile.CHRTYPE), "plain files"),
    "a block device": (of_type(tarfile.BLKTYPE), "plain files"),
    "a pipe": (of_type(tarfile.FIFOTYPE), "plain files"),
    "a sparse file": (of_type(tarfile.GNUTYPE_SPARSE), "plain files"),
    "a long target of a link": (of_type(tarfile.GNUTYPE_LONGLINK), "plain files"),
    "a pax header": (of_type(tarfile.XHDTYPE), "plain files"),
    "a global header": (of_type(tarfile.XGLTYPE), "plain files"),
    "a type that nobody knows": (of_type(b"Z"), "plain files"),
    "a path that leads out": (lambda: tarred(entry("../bot")), "part that is empty"),
    "an absolute path": (lambda: tarred(entry("/tmp/bot")), "absolute"),
    "a newline": (lambda: tarred(entry("a\nb")), "printed"),
    "a long name that is no UTF-8": (
        lambda: tarred(entry("y" * 200)).replace(b"y" * 200, b"\xff" * 200),
        "printed",
    ),
    "a header that is no UTF-8": (lambda: tarred(entry("\udcff")), "whole tar|checksum"),
    "the same name twice": (lambda: tarred(entry(), entry()), "twice"),
    "a file and a folder": (lambda: tarred(entry("a"), entry("a/b")), "as a folder"),
    "twins": (lambda: tarred(entry("Bot"), entry("bot")), "more than case"),
    "a folder with data": (lambda: tarred(entry(type=tarfile.DIRTYPE)), "a folder with data"),
    "10,000 files": (
        lambda: tarred(*(entry(f"d/{number}") for number in range(10_000))),
        "2,000 files",
    ),
    "a folder without end": (
        lambda: tarred(*(entry("a", b"", type=tarfile.DIRTYPE) for _ in range(6_001))),
        "more headers",
    ),
    "more than it may unpack to": (lambda: signed(MOST_UNPACKED + 1), "200 MiB"),
    "a negative size": (lambda: signed(-1), "negative"),
    "a name of a gigabyte": (
        lambda: entry(data=b"", size=1 << 30, type=tarfile.GNUTYPE_LONGNAME)[0].tobuf(),
        "too long",
    ),
    "two names for an entry": (
        lambda: tarred(entry("y" * 200))[:1024] + tarred(entry("z" * 200)),
        "second one",
    ),
    "a wrong checksum": (lambda: b"x" + tarred(entry())[1:], "checksum"),
    "an end too early": (lambda: tarred(entry())[:700], "too early"),
    "no end": (lambda: tarred(entry())[:1024], "too early"),
    "nothing": (lambda: b"", "too early"),
    "no tar": (lambda: b"#!/bin/sh\n" * 100, "whole tar"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_tar_that_may_harm_is_refused(case: str, tmp_path: Path) -> None:
    make, expected = HOSTILE[case]

    with pytest.raises(BadArchive, match=expected) as refused:
        unpacked(make(), tmp_path / "out")

    assert str(refused.value).isprintable()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@given(st.data())
@settings(deadline=None, max_examples=100)
def test_any_bytes_are_unpacked_or_refused_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    sent = bytearray(tarred(entry(), entry("a/b", b"y" * 600), entry("z" * 150)))
    for at in data.draw(st.lists(st.integers(0, len(sent) - 1), max_size=4)):
        header = at - at % 512
        sent[at] = data.draw(st.integers(0, 255))
        block = sent[header : header + 512]
        block[148:156] = b" " * 8
        sent[header + 148 : header + 156] = b"%06o\0 " % sum(block)  # or none would get far

    with contextlib.suppress(BadArchive):
        unpacked(bytes(sent), tmp_path_factory.mktemp("any") / "out")
