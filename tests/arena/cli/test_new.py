"""`arena new`, its words and its refusals; what it writes is tried in tests/e2e/test_new.py."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arena.sandbox.languages import Language

Run = Callable[..., Any]


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
