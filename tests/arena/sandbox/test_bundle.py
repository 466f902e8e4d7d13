"""What is in a bundle, what is in none, and that it is the same on every machine."""

from __future__ import annotations

import io
import os
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
    PackedProgram,
    bundle_key,
    bundled_program,
    pack_bundle,
    portable_command,
    unpack_bundle,
)
from arena.sandbox.command import Program, bot_command, read_program, strategy_program, views
from protocol.errors import BadArchive, UsageError

GAME = "ace_king_queen"


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


def pack(program: Program, hidden: Sequence[Path] = ()) -> tuple[PackedProgram, bytes]:
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


def test_a_bundle_has_what_the_sandbox_is_shown(folder: Path) -> None:
    program = Program(("python3", "ann/bot.py"), folder=folder)
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
def test_files_of_the_arena_and_dot_files_are_never_in_it(
    folder: Path, words: tuple[str, ...]
) -> None:
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
    program = bundled_program(packed.command.words, packed.stdio, unpacked)
    assert program.words == tuple(bot_command((GAME, "nash"), name="ann"))


def test_what_comes_out_is_what_went_in(folder: Path, tmp_path: Path) -> None:
    (folder / "ann/bot").write_text("#!/bin/sh\n")
    (folder / "ann/bot").chmod(0o700)
    (folder / "ann/empty").mkdir()
    (folder / "ann/latest").symlink_to("deep/data.bin")
    (folder / f"ann/{'n' * 200}.txt").write_text("a long name")
    program = Program(("ann/bot", "--fast"), stdio=True, folder=folder)
    packed, tar = pack(program)
    there = bundled_program(
        packed.command.words, packed.stdio, unpack(tar, tmp_path / "there").resolve()
    )

    assert (there.words, there.stdio) == (program.words, True)
    assert there.folder is not None
    assert os.access(there.folder / "ann/bot", os.X_OK)
    assert stat.S_IMODE((there.folder / "ann/lib.py").stat().st_mode) == 0o644
    assert (there.folder / "ann/latest").read_text() == "data"
    assert (there.folder / "ann/latest").is_symlink()
    assert (there.folder / "ann/empty").is_dir()
    assert (there.folder / f"ann/{'n' * 200}.txt").read_text() == "a long name"
    assert [str(item.place) for item in views(there, ())] == ["ann"]


def test_a_bundle_is_shown_though_the_cache_that_it_is_in_is_hidden(
    folder: Path, tmp_path: Path
) -> None:
    packed, tar = pack(Program(("python3", "ann/bot.py", ".git"), folder=folder))
    there = bundled_program(packed.command.words, False, unpack(tar, tmp_path / "there"))

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
    program = Program(("python3", "ann/bot.py"), folder=folder)
    before = pack(program)[0].key
    assert callable(change)
    change(folder / "ann")

    assert pack(program)[0].key != before


def test_words_streams_and_game_are_part_of_the_key() -> None:
    keys = {
        bundle_key(("a", "b"), False, GAME, "tar"),
        bundle_key(("ab",), False, GAME, "tar"),
        bundle_key(("a", "b"), True, GAME, "tar"),
        bundle_key(("a", "b"), False, "blackjack", "tar"),
        bundle_key(("a", "b"), False, GAME, "other"),
    }

    assert len(keys) == 5


# ---- Its words


def test_our_client_runs_in_the_python_of_the_other_machine(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    program = strategy_program("ann/bot.py", name="ann", url="ws://127.0.0.1:1", tables=2)
    command = portable_command(program)

    assert command.words[:5] == ("{python}", "-P", "-m", "bots", "ann/bot.py")
    assert "ws://127.0.0.1:1" not in command.words
    assert "--tables" in command.words
    assert (command.needs, command.is_native) == ("", False)
    words = bundled_program(command.words, False, folder).words
    assert words == strategy_program("ann/bot.py", name="ann", tables=2).words


def test_the_python_on_path_is_the_other_machine_s_if_it_is_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path
) -> None:
    program = Program(("python3", "ann/bot.py"), folder=folder)
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
def test_an_absolute_path_into_the_folder_becomes_relative(
    folder: Path, word: str, sent: str
) -> None:
    command = portable_command(Program(("python3", word.format(folder)), folder=folder))

    assert command.words[1] == sent.format(folder)


def test_a_file_of_its_own_may_fit_one_kind_of_machine(folder: Path) -> None:
    (folder / "ann/bot").write_bytes(b"\x7fELF")
    (folder / "ann/bot").chmod(0o755)

    for word in ("ann/bot", f"{folder}/ann/bot"):
        command = portable_command(Program((word,), folder=folder))
        assert (command.needs, command.is_native) == ("", True)
        assert command.words[0].endswith("ann/bot")
        assert not os.path.isabs(command.words[0])


@pytest.mark.parametrize(
    ("line", "needs"),
    [
        ("#!/usr/bin/env -S python3 -u", "python3"),
        ("#!/usr/bin/env node", "node"),
        ("#! /bin/sh", "sh"),
    ],
)
def test_a_script_needs_what_its_first_line_names(folder: Path, line: str, needs: str) -> None:
    (folder / "run.py").write_text(f"{line}\nsomething\n")
    command = portable_command(Program(("./run.py",), folder=folder))

    assert command == bundle.PortableCommand(("./run.py",), needs, is_native=False)


def test_a_program_by_its_path_in_the_system_is_found_by_its_name_elsewhere(folder: Path) -> None:
    sh = shutil.which("sh")
    assert sh is not None
    command = portable_command(Program((sh, "ann/bot.sh", "/dev/null"), folder=folder))

    assert (command.words, command.needs) == (("sh", "ann/bot.sh", "/dev/null"), "sh")


def test_a_sandbox_s_own_files_are_in_no_bundle(folder: Path) -> None:
    _, tar = pack(Program(("sh", "ann/bot.py", "/dev/null"), folder=folder))

    names = names_in(tar)
    assert "ann/bot.py" in names
    assert [
        name for name in names if not name.startswith(("ann/", "bob/", "run", "arena", "course"))
    ] == []


# ---- What is refused


@pytest.mark.parametrize("form", ["{}/model.bin", "--model={}/model.bin", "-I.:{}"])
def test_a_path_outside_of_the_folder_is_refused_in_a_line(
    folder: Path, tmp_path: Path, form: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "model.bin").write_text("model")
    program = Program(("python3", "ann/bot.py", form.format(outside)), folder=folder)

    with pytest.raises(UsageError, match=r"other machines do not have it") as refused:
        pack(program)
    assert str(outside) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_path_that_leads_out_by_dots_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_text("model")

    with pytest.raises(UsageError, match="other machines do not have it"):
        pack(Program(("python3", f"{folder}/../model.bin"), folder=folder))


def test_a_program_that_lies_elsewhere_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "java").write_text("#!/bin/sh\n")
    (tmp_path / "java").chmod(0o755)

    with pytest.raises(UsageError, match=r"expected a program on PATH or in .*java"):
        pack(Program((str(tmp_path / "java"), "-cp", "."), folder=folder))


def test_a_file_of_the_system_that_is_missing_is_refused_here_and_there(folder: Path) -> None:
    words = ("python3", "ann/bot.py", "/usr/share/java/none.jar")

    with pytest.raises(UsageError, match=r"none.jar\" on this machine"):
        pack(Program(words, folder=folder))
    with pytest.raises(UsageError, match=r"none.jar\" on this machine"):
        bundled_program(words, False, folder)


@pytest.mark.parametrize("words", [("no-such-program",), ("./missing",), ("ann/lib.py",)])
def test_what_cannot_be_started_on_the_other_machine_is_refused(
    folder: Path, words: tuple[str, ...]
) -> None:
    with pytest.raises(UsageError, match="expected a program"):
        bundled_program(words, True, folder)


@pytest.mark.parametrize("target", ["../../outside", "/srv/model", "../.."])
def test_a_link_that_leads_out_is_refused_in_a_line(folder: Path, target: str) -> None:
    (folder / "ann/model").symlink_to(target)

    with pytest.raises(UsageError, match=f'"ann/model", which leads to "{target}"') as refused:
        pack(Program(("python3", "ann/bot.py"), folder=folder))
    assert "\n" not in str(refused.value)


def test_a_link_into_the_system_stays(folder: Path, tmp_path: Path) -> None:
    (folder / "ann/python").symlink_to("/usr/bin/env")
    _, tar = pack(Program(("ann/python", "ann/bot.py"), folder=folder))

    assert os.readlink(unpack(tar, tmp_path / "there") / "ann/python") == "/usr/bin/env"


@pytest.mark.parametrize(("name", "most"), [("MOST_BUNDLED", 10), ("_MOST_ENTRIES", 3)])
def test_too_much_is_refused_in_a_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    monkeypatch.setattr(bundle, name, most)

    with pytest.raises(UsageError, match=r"expected at most .* got more in"):
        pack(Program(("python3", "ann/bot.py"), folder=folder))


def test_a_large_file_is_refused_before_it_is_read(folder: Path) -> None:
    with (folder / "ann/large").open("wb") as file:
        file.truncate(bundle.MOST_BUNDLED + 1)
    tracemalloc.start()

    with pytest.raises(UsageError, match="expected at most 512 MiB"):
        pack(Program(("python3", "ann/bot.py"), folder=folder))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < bundle.MOST_BUNDLED // 100


def test_a_name_that_is_not_utf_8_is_refused(folder: Path) -> None:
    (folder / "ann" / os.fsdecode(b"\xff.txt")).write_text("x")

    with pytest.raises(UsageError, match="expected names in UTF-8"):
        pack(Program(("python3", "ann/bot.py"), folder=folder))


def test_a_file_that_is_gone_while_it_is_packed_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "_content", lambda path, size: (path / "gone").open())

    with pytest.raises(UsageError, match="expected files that can be read"):
        pack(Program(("python3", "ann/bot.py"), folder=folder))


def test_pipes_are_left_out_and_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "ann/pipe")

    assert "ann/pipe" not in names_in(pack(Program(("python3", "ann/bot.py"), folder=folder))[1])


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
    _, tar = pack(Program(("python3", "ann/bot.py"), folder=folder))

    with pytest.raises(BadArchive):
        unpack(tar[:50_000], tmp_path / "there")


def test_a_command_line_as_an_arena_reads_it_can_be_packed(folder: Path) -> None:
    packed, _ = pack(read_program("ann/bot.py", folder), hidden_in(folder))

    assert packed.command.words[:5] == ("{python}", "-P", "-m", "bots", "ann/bot.py")
