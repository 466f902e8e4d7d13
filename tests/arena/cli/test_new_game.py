"""`arena new-game`, its words and its refusals; what it writes is tried in tests/e2e."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


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


def test_a_folder_of_that_name_is_no_module(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    Path("tiny_poker").mkdir()

    assert run("new-game", "tiny_poker", "tiny_poker").status == 0


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
