"""`arena new-game`, its words and its refusals; what it writes is tried in tests/e2e."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def test_it_says_what_to_do_next(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    out = run("new-game", "tiny_poker", str(folder)).text

    assert out.startswith(f"{folder} has a package with a game: pyproject.toml, README.md, ")
    assert [line.split()[0] for line in out.splitlines()[3:]] == [
        *("install", "check", "test", "play", "cross")
    ]
    assert (folder / "tiny_poker" / "rules.py").is_file()


@pytest.mark.parametrize("seats", range(1, 7))
def test_as_json(run: Run, tmp_path: Path, seats: int) -> None:
    folder = tmp_path / "mine"
    argv = ["new-game", "tiny_poker", str(folder), "--seats", str(seats), "--json"]
    document = run(*argv).document

    assert [document[key] for key in ("folder", "game", "seats")] == [
        *(str(folder), "tiny_poker", seats)
    ]
    written = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
    assert set(document["files"]) == written
    assert len(written) == 7
    assert [command["purpose"] for command in document["commands"]] == [
        *("install", "check", "test", "play", "cross")
    ]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("akq", "there is a game 'akq'"),
        ("gin_rummy", "there is a game 'gin_rummy'"),
        ("class", "'class' is a word of Python"),
        ("match", "'match' is a word of Python"),
        ("print", "'print' is a word of Python"),
        ("json", "there is a Python module 'json'"),
        ("arena", "there is a Python module 'arena'"),
        ("msgspec", "there is a Python module 'msgspec'"),
        ("Kuhn", "expected a name of 2 to 30 lower case letters"),
        ("kuhn-poker", "expected a name of 2 to 30 lower case letters"),
        ("5kuhn", "expected a name of 2 to 30 lower case letters"),
        ("../kuhn", "expected a name of 2 to 30 lower case letters"),
        ("k", "expected a name of 2 to 30 lower case letters"),
        ("k" * 31, "expected a name of 2 to 30 lower case letters"),
        ("", "expected a name of 2 to 30 lower case letters"),
        ("kühn", "expected a name of 2 to 30 lower case letters"),
    ],
)
def test_a_name_that_no_game_may_have_is_refused(
    run: Run, tmp_path: Path, name: str, why: str
) -> None:
    folder = tmp_path / "mine"

    assert why in run("new-game", name, str(folder)).refusal()
    assert not folder.exists()


@pytest.mark.parametrize("seats", ["0", "7", "-1", "two", "2.5"])
def test_other_numbers_of_seats_are_refused(run: Run, tmp_path: Path, seats: str) -> None:
    folder = tmp_path / "mine"

    assert "--seats" in run("new-game", "tiny_poker", str(folder), "--seats", seats).refusal()
    assert not folder.exists()


def test_a_folder_of_that_name_is_no_module(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    Path("tiny_poker").mkdir()

    assert run("new-game", "tiny_poker", "tiny_poker").status == 0


def test_a_folder_with_something_in_it_is_left_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    line = run("new-game", "tiny_poker", str(tmp_path)).refusal()

    assert line == f"expected an empty folder or a new one, got {tmp_path}"
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_what_cannot_be_written_whole_is_not_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_text

    def full(self: Path, *args: Any, **kwargs: Any) -> int:
        if self.name == "test_tiny_poker.py":
            write(self, "half")
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(self, *args, **kwargs)

    monkeypatch.setattr(Path, "write_text", full)
    folder = tmp_path / "mine"
    line = run("new-game", "tiny_poker", str(folder)).refusal(status=1)

    assert line.startswith(f"cannot write {folder / 'tests'}")
    assert not folder.exists()
