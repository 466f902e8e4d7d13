"""`arena new` and `arena new-game`: what they write is tried in tests/e2e."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import Any

import pytest

from arena.sandbox.languages import Language
from tests.support.in_process import Run

LANGUAGES = [*(language.value for language in Language), "other"]


def made(run: Run, folder: Path, *words: str) -> Any:
    """The document of what was written, which names every file."""
    document = run(*words, str(folder), "--json").document
    files = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
    assert (document["folder"], {*document["files"]}) == (str(folder), files)
    return document


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_bot_as_json(run: Run, tmp_path: Path, language: str) -> None:
    document = made(run, tmp_path / "mine", "new", "high_low", "--lang", language)
    purposes = {command["purpose"] for command in document["commands"]}

    assert (document["game"], document["language"]) == ("high_low", language)
    assert {"try", "check", "connect"} <= purposes
    assert ("test" in purposes) == (language != "other")


@pytest.mark.parametrize("seats", range(1, 7))
def test_a_game_as_json(run: Run, tmp_path: Path, seats: int) -> None:
    document = made(run, tmp_path / "mine", "new-game", "tiny_poker", "--seats", str(seats))

    assert (document["game"], document["seats"]) == ("tiny_poker", seats)
    assert len(document["files"]) == 7
    assert [command["purpose"] for command in document["commands"]] == [
        *("install", "check", "test", "play", "cross")
    ]


@pytest.mark.parametrize(
    ("words", "last"),
    [("new akq", "README.md"), ("new-game tiny_poker", "tests/test_tiny_poker.py")],
)
def test_what_cannot_be_written_whole_is_not_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, last: str
) -> None:
    write = Path.write_text

    def full(self: Path, *args: Any, **kwargs: Any) -> int:
        if self.name == Path(last).name:
            write(self, "half")
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(self, *args, **kwargs)

    monkeypatch.setattr(Path, "write_text", full)
    folder = tmp_path / "mine"
    line = run(*words.split(), str(folder)).refusal(status=1)

    assert line == f"cannot write {folder / last}: No space left on device"
    assert not folder.exists()


def test_a_link_that_leads_nowhere_is_a_line(run: Run, tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)

    assert f"cannot write {loop}: " in run("new", "akq", str(loop)).refusal(status=1)
    assert loop.is_symlink()


def test_a_folder_of_that_name_is_no_module(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    Path("tiny_poker").mkdir()

    assert run("new-game", "tiny_poker", "tiny_poker").status == 0
