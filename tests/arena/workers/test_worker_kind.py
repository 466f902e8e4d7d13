"""What a machine says that it can play: tried, not guessed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from arena.games import GAMES
from arena.sandbox import bubblewrap, cgroup
from arena.workers import worker_kind as module
from arena.workers.worker_kind import isolation, known_games, worker_kind, working_commands
from protocol.errors import UsageError
from protocol.version import __version__


def program(folder: Path, name: str, status: int) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\nexit {status}\n")
    file.chmod(0o755)


def test_command_counts_only_if_it_starts_with_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "ruby", 0)
    program(tmp_path, "julia", 1)
    (tmp_path / "perl").write_text("")
    monkeypatch.setattr(module, "find_program", lambda name: _in(tmp_path, name))

    assert working_commands() == ("ruby",)


def _in(folder: Path, name: str) -> str | None:
    return str(folder / name) if (folder / name).exists() else None


def test_command_that_does_not_end_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ruby"
    file.write_text("#!/bin/sh\nexec sleep 60\n")
    file.chmod(0o755)
    monkeypatch.setattr(module, "find_program", lambda name: _in(tmp_path, name))
    monkeypatch.setattr(module, "_TRY_S", 0.05)

    assert working_commands() == ()


def test_all_games_are_played_unless_some_are_named() -> None:
    assert len(known_games()) == len(GAMES)
    assert known_games(["gin_rummy", "blackjack"]) == ("blackjack", "gin_rummy")


def test_unknown_game_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"unknown game 'chess'; expected some of: .*gin_rummy"):
        known_games(["chess"])


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
    kind = worker_kind(["gin_rummy"])

    assert kind.arena_version == __version__
    assert kind.system == "linux" or os.name != "posix"
    assert "python" in kind.languages
    assert kind.games == ("gin_rummy",)
