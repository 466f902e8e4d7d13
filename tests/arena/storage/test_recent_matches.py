"""The last matches on this machine: kept, pruned, and never in the way."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import arena
from arena.games.match import Record
from arena.storage.recent_matches import MOST_KEPT, LabMatches, recent_match
from protocol.errors import ArenaError
from protocol.strategy import find


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of the test's own; gives where the matches are."""
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_STATE_HOME"
    monkeypatch.setenv(variable, str(tmp_path))
    return tmp_path / "card-arena" / "matches"


def record(seed: int = 1) -> Record:
    bots = [find("ace_king_queen", name)() for name in ("nash", "honest")]
    return arena.play("akq", bots, settings={"hands": 1}, seed=seed).record


def keep(*records: Record) -> None:
    matches = LabMatches()
    for each in records:
        matches.add((1, 0), each)
    matches.keep(("nash", "honest"))


def test_only_the_last_twenty_are_kept(state: Path) -> None:
    keep(*map(record, range(MOST_KEPT + 2)))
    keep(record(99))

    assert len(list(state.iterdir())) == MOST_KEPT
    last, oldest = recent_match(1), recent_match(MOST_KEPT)
    assert last is not None
    assert last.record == record(99)
    assert oldest is not None
    assert oldest.record == record(3)


def test_a_full_disk_leaves_nothing_behind(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> int:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    keep(record())

    assert list(state.iterdir()) == []


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setenv("LOCALAPPDATA", "")
    monkeypatch.setattr(Path, "home", homeless)
    keep(record())

    assert recent_match(1) is None


@pytest.mark.parametrize(
    ("platform", "told", "place"),
    [
        ("linux", "", ".local/state"),
        ("linux", "not/absolute", ".local/state"),
        ("darwin", "", "Library/Application Support"),
        ("win32", "", "AppData/Local"),
    ],
)
def test_where_a_user_keeps_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str, told: str, place: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("LOCALAPPDATA" if platform == "win32" else "XDG_STATE_HOME", told)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    keep(record())

    assert len(list((tmp_path / place / "card-arena" / "matches").iterdir())) == 1


def test_a_file_that_was_damaged_is_named(state: Path) -> None:
    keep(record())
    [path] = state.iterdir()
    path.write_text("{")

    with pytest.raises(ArenaError, match=f"{path.name} cannot be read"):
        recent_match(1)
