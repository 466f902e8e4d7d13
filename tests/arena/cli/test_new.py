"""`arena new`, its words and its refusals; what it writes is tried in tests/e2e/test_new.py."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arena.sandbox.languages import Language

Run = Callable[..., Any]


def test_it_says_what_to_do_next(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "my bot"
    out = run("new", "akq", str(folder)).text

    assert "has a bot for Ace-King-Queen in Python: " in out
    assert [line.split()[0] for line in out.splitlines()[3:]] == [
        *("test", "try", "check", "connect", "submit")
    ]
    assert "--name my-bot" in out
    assert (folder / "bot.py").is_file()


@pytest.mark.parametrize("language", [*(language.value for language in Language), "other"])
def test_as_json(run: Run, tmp_path: Path, language: str) -> None:
    folder = tmp_path / "mine"
    argv = ["new", "high_low", "--lang", language, "--json", str(folder)]
    document = run(*argv).document

    assert [document[key] for key in ("folder", "game", "language")] == [
        *(str(folder), "high_low", language)
    ]
    written = [file.relative_to(folder) for file in folder.rglob("*") if file.is_file()]
    assert sorted(document["files"]) == sorted(file.as_posix() for file in written)
    purposes = {command["purpose"] for command in document["commands"]}
    assert {"try", "check", "connect"} <= purposes
    assert ("test" in purposes) == (language != "other")


def test_for_a_language_without_a_starter_there_are_two_pages(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    out = run("new", "gin", str(folder), "--lang", "other").text

    assert out.startswith(f"{folder} has what a bot for Gin rummy is written from: ")
    assert [line.split()[0] for line in out.splitlines()[3:]] == [*("try", "check", "connect")]
    assert {file.name for file in folder.iterdir()} == {"gin_rummy.md", "session.md"}


def test_an_empty_folder_is_taken(run: Run, tmp_path: Path) -> None:
    assert run("new", "blackjack", str(tmp_path)).status == 0
    assert (tmp_path / "README.md").is_file()


def test_folders_above_it_are_made(run: Run, tmp_path: Path) -> None:
    assert run("new", "gin", str(tmp_path / "a" / "b")).status == 0


def test_a_folder_with_something_in_it_is_left_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".hidden").write_text("mine")
    line = run("new", "akq", str(tmp_path)).refusal()

    assert line == f"expected an empty folder or a new one, got {tmp_path}"
    assert [file.name for file in tmp_path.iterdir()] == [".hidden"]


def test_a_file_is_no_folder(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine"
    file.write_text("mine")

    assert run("new", "akq", str(file)).refusal() == (f"expected a folder, {file} is a file")
    assert "Not a directory" in run("new", "akq", str(file / "below")).refusal(1)
    assert file.read_text() == "mine"


def test_an_unknown_game_or_language_is_named(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "mine"

    assert "unknown game 'whist'" in run("new", "whist", str(folder)).refusal()
    assert "'rust' is not one of" in (run("new", "akq", "--lang", "rust", str(folder)).refusal())
    assert not folder.exists()


def test_what_cannot_be_written_whole_is_not_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_text

    def full(self: Path, *args: Any, **kwargs: Any) -> int:
        if self.name == "README.md":
            write(self, "half")
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(self, *args, **kwargs)

    monkeypatch.setattr(Path, "write_text", full)
    folder = tmp_path / "mine"
    line = run("new", "akq", str(folder)).refusal(status=1)

    assert line == f"cannot write {folder / 'README.md'}: No space left on device"
    assert not folder.exists()


def test_a_link_that_leads_nowhere_is_a_line(run: Run, tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)

    assert f"cannot write {loop}: " in run("new", "akq", str(loop)).refusal(status=1)
    assert loop.is_symlink()
