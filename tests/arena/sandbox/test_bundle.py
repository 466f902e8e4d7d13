"""What is in a bundle, what is in none, and that it is the same on every machine."""

from __future__ import annotations

import io
import os
import re
import shutil
import stat
import sys
import tarfile
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest

from arena.sandbox import bundle
from arena.sandbox.bundle import (
    Bundle,
    PortableCommand,
    bundle_key,
    bundled_program,
    pack_bundle,
    portable_command,
    unpack_bundle,
)
from arena.sandbox.command import Program, bot_command, strategy_program, views
from protocol.errors import BadArchive, UsageError

GAME = "ace_king_queen"
PYTHON = ("python3", "ann/bot.py")
BOT = ("./ann/bot", "./ann/bot")
SH = shutil.which("sh")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A course's folder with bots, and with files of the arena in several places."""
    folder = tmp_path / "course"
    for name, text in {
        "ann/bot.py": "import lib",
        "ann/lib.py": "x = 1",
        "ann/.weights": "0.5",
        "ann/deep/arena.db": "results",
        "ann/deep/data.bin": "data",
        "ann/__pycache__/lib.pyc": "made",
        "bob/MyBot.class": "Java",
        "arena.db": "results",
        "arena.db-wal": "the latest results",
        "course.toml": "tokens",
        ".git/config": "secret",
        ".env": "secret",
        "run.py": "#!/usr/bin/env -S python3 -u\n",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "run.py").chmod(0o755)
    return folder.resolve()


def hidden_in(folder: Path) -> tuple[Path, ...]:
    return (folder / "arena.db", folder / "ann/deep/arena.db", folder / "course.toml")


def pack(program: Program, hidden: Sequence[Path] = ()) -> tuple[Bundle, bytes]:
    into = io.BytesIO()
    packed = pack_bundle(program, GAME, hidden, into)
    assert packed.size == len(into.getvalue())
    return packed, into.getvalue()


def names_in(tar: bytes) -> set[str]:
    with tarfile.open(fileobj=io.BytesIO(tar)) as opened:
        return {info.name for info in opened if not info.isdir()}


def unpack(tar: bytes, folder: Path) -> Path:
    folder.mkdir()
    unpack_bundle(io.BytesIO(tar), folder)
    return folder


# ---- What is in it


@pytest.mark.parametrize("words", [PYTHON, ("sh", "ann/bot.py", "/dev/null")])
def test_a_bundle_has_what_the_sandbox_is_shown(folder: Path, words: tuple[str, ...]) -> None:
    program = Program(words, folder=folder)
    _, tar = pack(program, hidden_in(folder))

    shown = {str(item.place) for item in views(program, hidden_in(folder))}
    assert all(any(name.startswith(place) for place in shown) for name in names_in(tar))
    assert names_in(tar) == {"ann/bot.py", "ann/lib.py", "ann/.weights", "ann/deep/data.bin"}


@pytest.mark.parametrize(
    "words",
    [
        ("java", "-cp", ".", "MyBot"),
        ("python3", "run.py"),
        ("python3", "run.py", "arena.db", "ann/deep/arena.db", "course.toml", "arena.db-wal"),
        ("python3", "{}/run.py", "{}/arena.db", "{}/course.toml", "--x={}/ann/deep/arena.db"),
        ("python3", "run.py", "link"),
    ],
)
def test_arena_and_dot_files_are_never_in_it(folder: Path, words: tuple[str, ...]) -> None:
    (folder / "link").symlink_to("arena.db")
    (folder / "bob/link").symlink_to("../arena.db")
    program = Program(tuple(word.format(folder) for word in words), folder=folder)
    _, tar = pack(program, hidden_in(folder))

    assert names_in(tar) == {
        "ann/bot.py",
        "ann/lib.py",
        "ann/.weights",
        "ann/deep/data.bin",
        "bob/MyBot.class",
        "bob/link",
        "run.py",
    }
    assert b"results" not in tar
    assert b"tokens" not in tar


def test_a_file_that_begins_with_a_dot_is_in_it_if_it_is_named(folder: Path) -> None:
    _, tar = pack(Program(("python3", "ann/bot.py", ".env"), folder=folder), hidden_in(folder))

    assert ".env" in names_in(tar)
    assert ".git/config" not in names_in(tar)


def test_a_program_without_a_folder_has_an_empty_bundle(tmp_path: Path) -> None:
    packed, tar = pack(Program(tuple(bot_command((GAME, "nash"), name="ann"))))
    unpacked = unpack(tar, tmp_path / "there")

    assert [*unpacked.iterdir()] == []
    program = bundled_program(packed.words, packed.stdio, unpacked)
    assert program.words == tuple(bot_command((GAME, "nash"), name="ann"))


def test_what_comes_out_is_what_went_in(folder: Path, tmp_path: Path) -> None:
    (folder / "ann/bot").write_text("#!/bin/sh\n")
    (folder / "ann/bot").chmod(0o700)
    (folder / "ann/empty").mkdir()
    os.mkfifo(folder / "ann/pipe")  # nobody waits for it
    (folder / "ann/latest").symlink_to("deep/data.bin")
    (folder / "ann/python").symlink_to("/usr/bin/env")
    (folder / f"ann/{'n' * 200}.txt").write_text("a long name")
    program = Program(("ann/bot", "--fast"), stdio=True, folder=folder)
    packed, tar = pack(program)
    there = bundled_program(packed.words, packed.stdio, unpack(tar, tmp_path / "there").resolve())

    assert (there.words, there.stdio) == (program.words, True)
    assert there.folder is not None
    assert os.readlink(there.folder / "ann/python") == "/usr/bin/env"
    assert os.access(there.folder / "ann/bot", os.X_OK)
    assert stat.S_IMODE((there.folder / "ann/lib.py").stat().st_mode) == 0o644
    assert (there.folder / "ann/latest").read_text() == "data"
    assert (there.folder / "ann/latest").is_symlink()
    assert (there.folder / "ann/empty").is_dir()
    assert not (there.folder / "ann/pipe").exists()
    assert (there.folder / f"ann/{'n' * 200}.txt").read_text() == "a long name"
    assert [str(item.place) for item in views(there, ())] == ["ann"]


def test_a_bundle_is_shown_though_its_cache_is_hidden(folder: Path, tmp_path: Path) -> None:
    packed, tar = pack(Program(("python3", "ann/bot.py", ".git"), folder=folder))
    there = bundled_program(packed.words, False, unpack(tar, tmp_path / "there"))

    assert [str(item.place) for item in views(there, [tmp_path])] == [".git", "ann"]


# ---- Its key


def test_the_same_files_have_the_same_key_wherever_they_lie(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    shutil.copytree(folder, other, symlinks=True, copy_function=shutil.copyfile)
    (other / "run.py").chmod(0o777)
    shutil.rmtree(other / "ann/__pycache__")
    os.utime(other / "ann/lib.py", (1, 1))
    here, there = (
        pack(Program(("python3", f"{where}/ann/bot.py"), folder=where), hidden_in(where))[0]
        for where in (folder, other.resolve())
    )

    assert here == there


@pytest.mark.parametrize(
    "change",
    [
        lambda ann: (ann / "lib.py").write_text("x = 2"),
        lambda ann: (ann / "lib.py").chmod(0o755),
        lambda ann: (ann / "lib.py").rename(ann / "lib2.py"),
        lambda ann: (ann / "new").mkdir(),
        lambda ann: (ann / "new").symlink_to("lib.py"),
    ],
)
def test_a_change_of_a_file_gives_another_key(folder: Path, change: object) -> None:
    program = Program(PYTHON, folder=folder)
    before = pack(program)[0].key
    assert callable(change)
    change(folder / "ann")

    assert pack(program)[0].key != before


def test_words_streams_and_game_are_part_of_the_key() -> None:
    keys = [
        bundle_key(words, stdio, game, tar)
        for words in (("a", "b"), ("ab",))
        for stdio in (False, True)
        for game in (GAME, "blackjack")
        for tar in ("tar", "other")
    ]

    assert len(set(keys)) == len(keys) == 16


# ---- Its words


def test_our_client_runs_in_the_other_python(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    program = strategy_program("ann/bot.py", name="ann", url="ws://127.0.0.1:1", tables=2)
    command = portable_command(program)

    assert command.words[:5] == ("{python}", "-P", "-m", "bots", "ann/bot.py")
    assert "ws://127.0.0.1:1" not in command.words
    assert "--tables" in command.words
    assert (command.needs, command.is_native) == ("", False)
    words = bundled_program(command.words, False, folder).words
    assert words == strategy_program("ann/bot.py", name="ann", tables=2).words


def test_python_on_path_is_the_other_machines_if_it_is_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path
) -> None:
    program = Program(PYTHON, folder=folder)
    (tmp_path / "python3").symlink_to(os.path.realpath(sys.executable))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert portable_command(program).needs == "python3"

    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
    assert portable_command(program).words == ("{python}", "ann/bot.py")


@pytest.mark.parametrize(
    ("word", "sent"),
    [
        ("{}/ann/bot.py", "./ann/bot.py"),
        ("{}", "./."),
        ("--dir={}/ann", "--dir=./ann"),
        ("{0}/ann:{0}/bob:lib", "./ann:./bob:lib"),
        ("{}/ann/../bob/", "./bob"),
        ("{}nearby", "{}nearby"),
    ],
)
def test_a_whole_path_into_the_folder_becomes_relative(folder: Path, word: str, sent: str) -> None:
    command = portable_command(Program(("python3", word.format(folder)), folder=folder))

    assert command.words[1] == sent.format(folder)


STARTED: dict[str, tuple[str, str, str, str, bool]] = {
    # the file ann/bot, the words; those on another machine, what it needs, whether it is native
    "a file of its own": ("\x7fELF", "ann/bot", "ann/bot", "", True),
    "a file by its whole path": ("\x7fELF", "HERE/ann/bot", "./ann/bot", "", True),
    "a script by env with options": ("#!/usr/bin/env -S python3 -u", *BOT, "python3", False),
    "a script by env": ("#!/usr/bin/env node", *BOT, "node", False),
    "a script": ("#! /bin/sh", *BOT, "sh", False),
    "a program of the system": ("", f"{SH} ann/bot /dev/null", "sh ann/bot /dev/null", "sh", False),
}


@pytest.mark.parametrize(
    ("text", "words", "there", "needs", "native"), STARTED.values(), ids=STARTED
)
def test_what_starts_a_program_on_another_machine(
    folder: Path, text: str, words: str, there: str, needs: str, native: bool
) -> None:
    (folder / "ann/bot").write_text(f"{text}\nsomething\n")
    (folder / "ann/bot").chmod(0o755)
    here = tuple(words.replace("HERE", str(folder)).split())

    command = portable_command(Program(here, folder=folder))
    assert command == PortableCommand(tuple(there.split()), needs, is_native=native)


# ---- What is refused


OUTSIDE = "/model.bin.*other machines do not have it"
REFUSED: dict[str, tuple[str, str, str]] = {
    # words, a link that is there, what is said
    "a path outside": ("python3 ann/bot.py OUT/model.bin", "", OUTSIDE),
    "an option with a path outside": ("python3 ann/bot.py --model=OUT/model.bin", "", OUTSIDE),
    "a folder outside": ("python3 ann/bot.py -I.:OUT", "", "outside.*machines do not have it"),
    "a path that leads out by dots": ("python3 HERE/../outside/model.bin", "", OUTSIDE),
    "a program outside": ("OUT/java -cp .", "", "expected a program on PATH or in .*java"),
    "a file of the system that is missing": (
        *("python3 ann/bot.py /usr/share/java/none.jar", ""),
        'none.jar" on this machine',
    ),
    **{
        f"a link to {target}": (
            *("python3 ann/bot.py", target),
            f'"ann/model", which leads to "{re.escape(target)}"',
        )
        for target in ("../../outside", "/srv/model", "../..")
    },
}


@pytest.mark.parametrize(("words", "link", "why"), REFUSED.values(), ids=REFUSED)
def test_what_others_do_not_have_is_refused(folder: Path, words: str, link: str, why: str) -> None:
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "model.bin").write_text("model")
    (outside / "java").write_text("#!/bin/sh\n")
    (outside / "java").chmod(0o755)
    if link:
        (folder / "ann/model").symlink_to(link)
    words = words.replace("OUT", str(outside)).replace("HERE", str(folder))

    with pytest.raises(UsageError, match=why) as refused:
        pack(Program(tuple(words.split()), folder=folder))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("no-such-program",), "expected a program"),
        (("./missing",), "expected a program"),
        (("ann/lib.py",), "expected a program"),
        ((*PYTHON, "/usr/share/java/none.jar"), r"none.jar\" on this machine"),
    ],
)
def test_what_cannot_start_there_is_refused(folder: Path, words: tuple[str, ...], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        bundled_program(words, True, folder)


@pytest.mark.parametrize(("name", "most"), [("MOST_BUNDLED", 10), ("_MOST_ENTRIES", 3)])
def test_too_much_is_refused_in_a_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    monkeypatch.setattr(bundle, name, most)

    with pytest.raises(UsageError, match=r"expected at most .* got more in"):
        pack(Program(PYTHON, folder=folder))


def test_a_large_file_is_refused_before_it_is_read(folder: Path) -> None:
    with (folder / "ann/large").open("wb") as file:
        file.truncate(bundle.MOST_BUNDLED + 1)
    tracemalloc.start()

    with pytest.raises(UsageError, match="expected at most 512 MiB"):
        pack(Program(PYTHON, folder=folder))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < bundle.MOST_BUNDLED // 100


def test_files_gone_or_without_a_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(bundle, "_opened", lambda path: (path / "gone").open())
        with pytest.raises(UsageError, match="expected files that can be read"):
            pack(Program(PYTHON, folder=folder))
    (folder / "ann" / os.fsdecode(b"\xff.txt")).write_text("x")
    with pytest.raises(UsageError, match="expected names in UTF-8"):
        pack(Program(PYTHON, folder=folder))


# ---- Tars of others


def tar_of(*infos: tuple[str, bytes, str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, kind, target in infos:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            tar.addfile(info, io.BytesIO())
    return out.getvalue()


@pytest.mark.parametrize(
    "tar",
    [
        tar_of(("../out", tarfile.REGTYPE, "")),
        tar_of(("/out", tarfile.REGTYPE, "")),
        tar_of(("..", tarfile.DIRTYPE, "")),
        tar_of(("a", tarfile.SYMTYPE, ".."), ("a/out", tarfile.REGTYPE, "")),
        tar_of(("a", tarfile.SYMTYPE, "../out"), ("a", tarfile.REGTYPE, "")),
        tar_of(("pipe", tarfile.FIFOTYPE, "")),
        tar_of(("twice", tarfile.REGTYPE, ""), ("twice", tarfile.REGTYPE, "")),
        b"no tar" * 1000,
        b"",
    ],
)
def test_another_tar_is_refused_and_writes_nothing_elsewhere(tmp_path: Path, tar: bytes) -> None:
    with pytest.raises(BadArchive):
        unpack(tar, tmp_path / "there")

    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_tar_that_is_cut_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "ann/lib.py").write_bytes(bytes(100_000))
    _, tar = pack(Program(PYTHON, folder=folder))

    with pytest.raises(BadArchive):
        unpack(tar[:50_000], tmp_path / "there")
