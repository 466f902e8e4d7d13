"""What a machine says that it can run: tried, not guessed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from arena.games import GAMES
from arena.hosts import host_kind as module
from arena.hosts.host_kind import host_kind, isolation, working_commands
from arena.sandbox import bubblewrap, cgroup
from protocol.version import __version__


def program(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


@pytest.mark.parametrize(("text", "try_s"), [("exit 1", 20.0), ("exec sleep 60", 0.05)])
def test_command_counts_only_if_it_starts_with_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, try_s: float
) -> None:
    def find(name: str) -> str | None:
        return str(tmp_path / name) if (tmp_path / name).exists() else None

    program(tmp_path, "julia", text)
    (tmp_path / "perl").write_text("")
    monkeypatch.setattr(module, "find_program", find)
    monkeypatch.setattr(module, "_TRY_S", try_s)
    assert working_commands() == ()

    program(tmp_path, "ruby", "exit 0")
    monkeypatch.setattr(module, "_TRY_S", 20.0)
    (tmp_path / "julia").unlink()
    assert working_commands() == ("ruby",)


@pytest.mark.parametrize(
    ("bwrap", "group", "expected"),
    [
        (None, None, "bubblewrap, cgroup"),
        (None, "not delegated", "bubblewrap"),
        ("not installed", None, ""),
    ],
)
def test_isolation_is_said_in_words_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch, bwrap: str | None, group: str | None, expected: str
) -> None:
    monkeypatch.setattr(bubblewrap, "probe", lambda **_: bwrap)
    monkeypatch.setattr(cgroup, "probe", lambda: group)

    assert isolation() == expected


def test_this_machine_has_a_kind() -> None:
    kind = host_kind()

    assert kind.arena_version == __version__
    assert kind.system == "linux" or os.name != "posix"
    assert "python" in kind.languages
    assert kind.games == tuple(sorted(GAMES))
