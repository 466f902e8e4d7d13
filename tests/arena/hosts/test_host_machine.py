"""What a machine says that it can run, tried, not guessed; and what it has too little of."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from arena.games.catalogue import GAMES
from arena.hosts import host_machine
from arena.hosts.host_machine import host_kind, isolation, shortage, working_commands
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
    monkeypatch.setattr(host_machine, "find_program", find)
    monkeypatch.setattr(host_machine, "_TRY_S", try_s)
    assert working_commands() == ()

    program(tmp_path, "ruby", "exit 0")
    monkeypatch.setattr(host_machine, "_TRY_S", 20.0)
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


@pytest.mark.parametrize(
    ("memory", "disk", "expected"),
    [
        ("MemAvailable: 131072 kB", 64, ""),
        ("MemAvailable:     131071 kB", 64, "127 MiB of memory left"),
        ("MemAvailable: 131072 kB", 63, "63 MiB of disk left"),
        ("MemAvailable: 0 kB", 3, "3 MiB of disk left"),
        ("MemFree: 0 kB", 64, ""),
        ("MemAvailable: much", 64, ""),
        (None, None, ""),
    ],
)
def test_what_is_short_is_said_and_what_is_unknown_is_not_short(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    memory: str | None,
    disk: int | None,
    expected: str,
) -> None:
    meminfo, cache = tmp_path / "meminfo", tmp_path / "cache"
    if memory is not None:
        meminfo.write_text(f"MemTotal: 1 kB\n{memory}\n")

    def usage(folder: Path) -> SimpleNamespace:
        if disk is None:
            raise OSError(2, "No such file or directory")
        return SimpleNamespace(free=disk << 20 if folder == cache else 1 << 40)

    monkeypatch.setattr(host_machine, "_MEMORY", meminfo)
    monkeypatch.setattr(shutil, "disk_usage", usage)

    assert shortage([tmp_path, cache]) == expected
