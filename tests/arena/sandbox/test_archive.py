"""Programs as they are handed in: what is packed comes out the same, and what may harm is refused."""

from __future__ import annotations

import contextlib
import io
import os
import socket
import stat
import struct
import subprocess
import sys
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.sandbox.archive import (
    MOST_BYTES,
    MOST_UNPACKED,
    BadArchive,
    CanonicalProgram,
    as_zip,
    canonical,
    pack,
    unpack,
)
from protocol.errors import UsageError

Tree = Mapping[str, tuple[bytes, bool] | None]
"""By name: the content of a file and whether it is executable; None for a folder."""

BOT: Tree = {"bot.py": (b"print()\n", False), "run": (b"#!/bin/sh\n", True)}


def write(tree: Tree, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.mkdir(exist_ok=True)
        else:
            path.write_bytes(content[0])
            path.chmod(0o750 if content[1] else 0o600)
    return folder


def read(folder: Path) -> Tree:
    """All that is in a folder, folders too."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), os.access(path, os.X_OK))
        if path.is_file()
        else None
        for path in sorted(folder.rglob("*"))
    }


def take(name: str, sent: bytes) -> tuple[CanonicalProgram, bytes]:
    tar = io.BytesIO()
    return canonical(name, io.BytesIO(sent), tar), tar.getvalue()


def taken(name: str, sent: bytes, folder: Path) -> Tree:
    """What a program that was sent is, unpacked."""
    folder.mkdir()
    unpack(io.BytesIO(take(name, sent)[1]), folder)
    return read(folder)


def entry(
    name: str = "bot.py",
    data: bytes = b"print()\n",
    *,
    mode: int = stat.S_IFREG | 0o644,
    method: int = zipfile.ZIP_DEFLATED,
) -> tuple[zipfile.ZipInfo, bytes]:
    info = zipfile.ZipInfo(name)
    info.filename = info.orig_filename = name  # also what comes after a NUL
    info.external_attr = mode << 16
    info.compress_type = method
    return info, data


def zipped(*entries: tuple[zipfile.ZipInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for info, data in entries:
            archive.writestr(info, data)
    return out.getvalue()


def zipped_tree(tree: Tree) -> bytes:
    """As Python's `zipfile` packs it, without the entries of folders that have files."""
    return zipped(
        *(
            entry(f"{name}/", b"", mode=stat.S_IFDIR | 0o755)
            if content is None
            else entry(name, content[0], mode=stat.S_IFREG | (0o700 if content[1] else 0o644))
            for name, content in tree.items()
        )
    )


# ---- What is packed comes out the same


names = st.text(
    st.characters(
        codec="utf-8",
        exclude_categories=("C", "Z"),
        exclude_characters="/\\:.",
        max_codepoint=0x2FF,
    ),
    min_size=1,
    max_size=8,
)
leaves = st.one_of(st.tuples(st.binary(max_size=2_000), st.booleans()), st.none())


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """A program of any names: of those that look alike the first one is kept."""
    tree: dict[str, tuple[bytes, bool] | None] = {"bot.py": (b"", False)}
    for parts in draw(st.lists(st.lists(names, min_size=1, max_size=4), max_size=8)):
        above = {"/".join(parts[:depth]) for depth in range(1, len(parts))}
        if any(tree.get(name) is not None for name in above):
            continue
        name = "/".join(parts)
        if name not in tree:
            tree |= dict.fromkeys(above)
            tree[name] = draw(leaves)
    return tree


def spelled_once(tree: Tree) -> bool:
    return len({normalize("NFKC", name.casefold()) for name in tree}) == len(tree)


@given(trees().filter(spelled_once))
@settings(deadline=None, max_examples=30)
def test_any_tree_comes_out_as_it_was_packed_whoever_packed_it(
    tmp_path_factory: pytest.TempPathFactory, tree: Tree
) -> None:
    base = tmp_path_factory.mktemp("trees")
    folder = write(tree, base / "ann")
    name, sent = pack(folder)

    assert name == "ann.zip"
    assert taken(name, sent, base / "out") == tree
    ours, tar = take(name, sent)
    assert take("any.ZIP", zipped_tree(tree)) == (ours, tar)
    download = io.BytesIO()
    as_zip(io.BytesIO(tar), download)
    assert take(name, download.getvalue()) == (ours, tar)
    assert (ours.size, ours.entries) == (len(tar), len(tree))


@pytest.mark.needs("zip")
@pytest.mark.parametrize("options", [[], ["-D"], ["-0"], ["-fd"]], ids=" ".join)
def test_the_program_zip_makes_the_same_of_a_folder(tmp_path: Path, options: list[str]) -> None:
    tree: Tree = {**BOT, "größe": None, "größe/übung.py": (b"x" * 5_000, False)}
    folder = write(tree, tmp_path / "ann")
    subprocess.run(
        ["zip", "-q", "-r", *options, str(tmp_path / "around.zip"), "ann"], cwd=tmp_path, check=True
    )
    subprocess.run(["zip", "-q", "-r", *options, "../flat.zip", "."], cwd=folder, check=True)

    ours = take(*pack(folder))
    assert take("around.zip", (tmp_path / "around.zip").read_bytes()) == ours
    assert take("flat.zip", (tmp_path / "flat.zip").read_bytes()) == ours


def test_a_program_keeps_its_sha256_in_every_version() -> None:
    program, _ = take("bot.zip", zipped_tree(BOT))

    assert program.sha256 == "60ef5ab969de9713e39238ed4812354f6ab0a0a3cce0be0c3372e168af0de69c"
    assert (program.size, program.entries) == (3_072, 2)


def test_a_single_file_is_not_executable(tmp_path: Path) -> None:
    write({"bot.py": (b"#!/usr/bin/env python3\n", True)}, tmp_path)
    name, sent = pack(tmp_path / "bot.py")

    assert (name, sent) == ("bot.py", b"#!/usr/bin/env python3\n")
    assert taken(name, sent, tmp_path / "out") == {"bot.py": (sent, False)}
    assert take(name, sent) == take("x.zip", zipped_tree({"bot.py": (sent, False)}))


def test_a_zip_file_is_sent_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "ann.zip").write_bytes(zipped_tree(BOT))

    assert pack(tmp_path / "ann.zip") == ("ann.zip", zipped_tree(BOT))


def test_what_tools_leave_is_no_part_of_a_program(tmp_path: Path) -> None:
    left = {".git/config": (b"", False), "__pycache__/bot.pyc": (b"", False), ".env": (b"", False)}
    library = {"node_modules/ws/index.js": (b"", False), "node_modules/.cache/x": (b"", False)}
    name, sent = pack(write({**BOT, **left, **library}, tmp_path / "ann"))
    expected = {**BOT, "node_modules": None, "node_modules/ws": None}
    expected["node_modules/ws/index.js"] = (b"", False)

    assert taken(name, sent, tmp_path / "out") == dict(sorted(expected.items()))
    others = {"__MACOSX/._bot.py": (b"", False), "ann/bot.py": (b"", False)}
    others |= {f"ann/.git/{number}": (b"", False) for number in range(2_500)}
    assert [*taken("ann.zip", zipped_tree(others), tmp_path / "mac")] == ["bot.py"]


def test_a_virtual_environment_is_no_part_of_a_program(tmp_path: Path) -> None:
    folder = write({**BOT, "venv/pyvenv.cfg": (b"", False)}, tmp_path / "ann")
    (folder / "venv/python").symlink_to(sys.executable)
    link = entry("venv/python", b"/usr/bin/python3", mode=stat.S_IFLNK | 0o777)
    around = zipped(
        *(entry(name) for name in ("bot.py", "venv/pyvenv.cfg")), link, entry("venv/", b"", mode=0)
    )

    assert take(*pack(folder)) == take("x.zip", zipped_tree(BOT))
    assert take("x.zip", around) == take("x.zip", ONE)
    library_link = entry("node_modules/.bin/ws", b"../ws", mode=stat.S_IFLNK | 0o777)
    assert take("x.zip", zipped(entry(), library_link)) == take("x.zip", ONE)
    assert take("x.zip", zipped(entry("pyvenv.cfg"), entry()))[0].entries == 2


def test_a_folder_around_all_is_taken_away_once(tmp_path: Path) -> None:
    inner: Tree = {"ann/ann/bot.py": (b"", False)}

    assert [*taken("x.zip", zipped_tree(inner), tmp_path / "out")] == ["ann", "ann/bot.py"]


def test_names_without_the_mark_of_utf8_are_utf8_as_on_macos(tmp_path: Path) -> None:
    data = zipped(entry("üb.py")).replace(b"\x00\x08\x08\x00", b"\x00\x00\x08\x00")  # flags

    assert [*taken("x.zip", data, tmp_path / "out")] == ["üb.py"]


def test_a_zip_that_was_written_as_a_stream_is_taken() -> None:
    out = io.BytesIO()

    class UnseekableBytes(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data: object) -> int:
            return out.write(data)  # type: ignore[arg-type]

    with zipfile.ZipFile(UnseekableBytes(), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(*entry())

    assert take("x.zip", out.getvalue()) == take("x.zip", ONE)


# ---- What may harm is refused before anything is unpacked


def many(count: int, name: str = "{}") -> bytes:
    return zipped(*(entry(name.format(number), b"") for number in range(count)))


def changed(data: bytes, mark: bytes, at: int, layout: str, value: int) -> bytes:
    """A zip with another number in the first header that has a mark."""
    start = data.index(mark) + at
    size = struct.calcsize(layout)
    return data[:start] + struct.pack(layout, value) + data[start + size :]


DIRECTORY, LOCAL, END = b"PK\1\2", b"PK\3\4", b"PK\5\6"
ONE, STORED = zipped(entry()), zipped(entry(method=0))
TWO = zipped(entry("a1"), entry("a2"))


def with_size(size: int, *, data: bytes = b"x" * 50_000, method: int = 8) -> bytes:
    """A zip that lies about the size of its file in both places, but not about its checksum."""
    sent = zipped(entry(data=data, method=method))
    for mark, at in (LOCAL, 14), (DIRECTORY, 16):
        sent = changed(sent, mark, at, "<L", zlib.crc32(data[:size].ljust(size, b"x")))
        sent = changed(sent, mark, at + 8, "<L", size)
    return sent


def overlapping() -> bytes:
    """Two files with the same data, as bombs have thousands of them.

    What stands before the data of `a` has all that stands before those of `b`.
    """
    first, second = zipped(entry("a")), zipped(entry("b"))
    begin, end = first.index(DIRECTORY), first.index(END)
    local = changed(first[:31], LOCAL, 28, "<H", 31) + second[:31]
    data = first[31:begin]
    listed = first[begin:end] + changed(second[begin:end], DIRECTORY, 42, "<L", 31)
    last = struct.pack("<4s4H2LH", END, 0, 0, 2, 2, len(listed), len(local + data), 0)
    return local + data + listed + last


def bomb() -> bytes:
    """Two files that unpack to too much together."""
    return zipped(entry("a", bytes(1 << 20)), entry("b", bytes(MOST_UNPACKED - (1 << 20) + 1)))


HOSTILE: Mapping[str, tuple[Callable[[], bytes], str]] = {
    "a path that leads out": (lambda: zipped(entry("../bot.py")), r"'\.'|\.\."),
    "a path that leads out from within": (lambda: zipped(entry("a/../../b")), r"\.\."),
    "a part that is a dot": (lambda: zipped(entry("a/./b")), "part that is empty"),
    "an empty part": (lambda: zipped(entry("a//b")), "part that is empty"),
    "an absolute path": (lambda: zipped(entry("/etc/passwd")), "absolute path"),
    "a drive": (lambda: zipped(entry("C:/bot.py")), "drive letter"),
    "a drive without a slash": (lambda: zipped(entry("c:bot.py")), "drive letter"),
    "a backslash": (lambda: zipped(entry("a\\b.py")), "backslash"),
    "a newline": (lambda: zipped(entry("a\nb.py")), "printed"),
    "an escape sequence": (lambda: zipped(entry("a\x1b[2Jb.py")), "printed"),
    "a name that turns around": (lambda: zipped(entry("a\u202eyp.exe")), "printed"),
    "a NUL": (lambda: zipped(entry("bot.py\0.txt")), "printed"),
    "a name that is no UTF-8": (lambda: zipped(entry("##")).replace(b"##", b"\xff\xfe"), "UTF-8"),
    "no name": (lambda: zipped(entry("")), "empty"),
    "a long name": (lambda: zipped(entry("x" * 256)), "255 bytes"),
    "a long path": (lambda: zipped(entry("/".join(["x" * 200] * 6))), "1,000 with its folders"),
    "a deep path": (lambda: zipped(entry("x/" * 32 + "bot.py")), "32 folders"),
    "a link": (lambda: zipped(entry("a", b"/etc/passwd", mode=stat.S_IFLNK | 0o777)), "a link"),
    "a device": (lambda: zipped(entry("a", b"", mode=stat.S_IFCHR | 0o666)), "a device"),
    "a block device": (lambda: zipped(entry("a", b"", mode=stat.S_IFBLK | 0o666)), "a device"),
    "a pipe": (lambda: zipped(entry("a", b"", mode=stat.S_IFIFO | 0o666)), "a pipe"),
    "a socket": (lambda: zipped(entry("a", b"", mode=stat.S_IFSOCK | 0o666)), "a socket"),
    "a folder called like a file": (
        lambda: zipped(entry("a", b"", mode=stat.S_IFDIR | 0o755)),
        "a folder that is called like a file",
    ),
    "a folder with data": (lambda: zipped(entry("a/", b"x", mode=0)), "a folder with data"),
    "twins by case": (lambda: zipped(entry("Bot.py"), entry("bot.py")), "more than case"),
    "folders that are twins": (lambda: zipped(entry("A/x"), entry("a/y")), "more than case"),
    "twins by normalization": (lambda: zipped(entry("\u00fc"), entry("u\u0308")), "more than case"),
    "twins by both": (lambda: zipped(entry("stra\u00dfe"), entry("STRASSE")), "more than case"),
    "the same name twice": (lambda: TWO.replace(b"a2", b"a1"), "twice"),
    "a file that is also a folder": (lambda: zipped(entry("a"), entry("a/b")), "as a folder"),
    "a folder that is also a file": (lambda: zipped(entry("a/b"), entry("a")), "as a folder"),
    "10,000 files": (lambda: many(10_000, "data-{}"), "1,000 files and folders at the top"),
    "one file too many": (
        lambda: zipped(entry("x"), *(entry(f"data/{n}", b"") for n in range(1_999))),
        "2,000 files",
    ),
    "too many at the top": (lambda: many(1_001), "1,000 files and folders at the top"),
    "a directory without an end": (lambda: many(20_001), "20,000 entries"),
    "a bomb": (bomb, "200 MiB"),
    "a file that is shorter than it says": (lambda: with_size(50_001), "damaged at"),
    "a stored file that says it is long": (lambda: with_size(60_000, method=0), "damaged at"),
    "an encrypted file": (lambda: changed(ONE, DIRECTORY, 8, "<H", 1), "password"),
    "bzip2": (lambda: zipped(entry(method=zipfile.ZIP_BZIP2)), "method 12"),
    "lzma": (lambda: zipped(entry(method=zipfile.ZIP_LZMA)), "method 14"),
    "another name before the data": (lambda: ONE.replace(b"bot.py", b"bad.py", 1), "damaged at"),
    "no header before the data": (lambda: changed(ONE, DIRECTORY, 42, "<L", 3), "damaged at"),
    "a wrong checksum": (lambda: STORED.replace(b"print()", b"print!!"), "damaged at"),
    "data that are not deflated": (lambda: changed(ONE, LOCAL, 36, "<B", 0xFF), "damaged at"),
    "a later version of zip": (lambda: changed(ONE, DIRECTORY, 6, "<H", 99), "none"),
    "data that are a patch": (lambda: changed(ONE, DIRECTORY, 8, "<H", 1 << 5), "damaged at"),
    "an end that is cut off": (lambda: ONE[:-4], "none"),
    "no zip": (lambda: b"print()\n", "none"),
    "no byte": (lambda: b"", "none"),
    "no entry": (lambda: zipped(), "no file"),
    "folders only": (lambda: zipped(entry("a/", b"", mode=0)), "no file"),
    "only what is left out": (lambda: zipped(entry(".git/config")), "no file"),
    "too much packed": (lambda: bytes(MOST_BYTES + 1), "16 MiB"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_zip_that_may_harm_is_refused(case: str) -> None:
    make, expected = HOSTILE[case]
    into = io.BytesIO()

    with pytest.raises(BadArchive, match=expected) as refused:
        canonical("ann.zip", io.BytesIO(make()), into)

    assert str(refused.value).isprintable()
    if expected != "damaged at":
        assert not into.getvalue()


@pytest.mark.parametrize(
    "data", [ONE[10:], changed(ONE, DIRECTORY, 42, "<I", 1 << 31)], ids=["before it", "beyond it"]
)
def test_of_a_zip_in_a_file_an_entry_that_lies_elsewhere_is_damaged(
    tmp_path: Path, data: bytes
) -> None:
    """A file raises other errors than bytes in memory do."""
    (tmp_path / "sent").write_bytes(data)
    with (tmp_path / "sent").open("rb") as sent, pytest.raises(BadArchive, match="damaged at"):
        canonical("ann.zip", sent, io.BytesIO())


@pytest.mark.parametrize(
    ("make", "sizes"),
    [(lambda: with_size(10), [10]), (lambda: with_size(10, method=0), [10]), (overlapping, [8, 8])],
    ids=["deflated", "stored", "shared data"],
)
def test_no_more_is_taken_of_a_file_than_its_directory_says(
    tmp_path: Path, make: Callable[[], bytes], sizes: list[int]
) -> None:
    tree = taken("x.zip", make(), tmp_path / "out")

    assert [len(content[0]) for content in tree.values() if content] == sizes


@pytest.mark.parametrize("name", ["../bot.py", "/bot.py", "a/bot.py", "a\nb", "", ".", ".bot.py"])
def test_a_single_file_under_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(BadArchive, match="expected"):
        take(name, b"print()\n")


@given(st.data())
@settings(deadline=None, max_examples=200)
def test_any_bytes_are_taken_or_refused_and_nothing_else(data: st.DataObject) -> None:
    sent = bytearray(zipped_tree({**BOT, "a/b": (b"x" * 300, False)}))
    spots = st.tuples(st.integers(0, len(sent) - 1), st.integers(0, 255))
    for at, value in data.draw(st.lists(spots, max_size=6)):
        sent[at] = value
    del sent[data.draw(st.integers(0, len(sent))) or len(sent) :]

    with contextlib.suppress(BadArchive):
        take("x.zip", bytes(sent))


def test_a_bomb_within_the_limits_is_streamed() -> None:
    sent = zipped(entry("a", bytes(50 << 20)))
    with open(os.devnull, "wb") as nowhere:
        tracemalloc.start()
        canonical("x.zip", io.BytesIO(sent), nowhere)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert peak < 2 << 20


# ---- What cannot be sent


def sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


UNSENT: dict[str, tuple[str, Callable[[Path], object], str]] = {
    # what is packed, what is in the folder, what is said
    "a link": ("", lambda folder: (folder / "link").symlink_to("/etc"), '"link", a link; replace'),
    "nothing": ("no", lambda folder: None, "expected a program's file or folder"),
    "no file": ("no.py", lambda folder: None, "expected a program's file or folder"),
    "a folder without files": ("", lambda folder: None, "no file in it"),
    "data that are too large packed": (
        *("", lambda folder: (folder / "a").write_bytes(os.urandom(MOST_BYTES + 1))),
        "16 MiB",
    ),
    "data and directory that are": (
        *("", lambda folder: (folder / "a").write_bytes(os.urandom(MOST_BYTES - 9))),
        "16 MiB",
    ),
    "a large file": ("a.py", lambda folder: sparse(folder / "a.py", MOST_BYTES + 1), "16 MiB"),
    "too much unpacked": ("", lambda folder: sparse(folder / "a", MOST_UNPACKED + 1), "200 MiB"),
}


@pytest.mark.parametrize(("name", "prepare", "why"), UNSENT.values(), ids=UNSENT)
def test_what_cannot_be_sent_is_not_packed(
    tmp_path: Path, name: str, prepare: Callable[[Path], object], why: str
) -> None:
    prepare(tmp_path)

    with pytest.raises(UsageError, match=why):
        pack(tmp_path / name)


@pytest.mark.skipif(sys.platform == "win32", reason="no such sockets")
def test_a_folder_with_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(BOT, tmp_path / "ann")
    monkeypatch.chdir(folder)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("here")

        with pytest.raises(UsageError, match='"here", a socket'):
            pack(folder)
