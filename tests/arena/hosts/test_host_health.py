"""What a host has too little of, as it says it."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from arena.hosts import host_health
from arena.hosts.host_health import shortage


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

    monkeypatch.setattr(host_health, "_MEMORY", meminfo)
    monkeypatch.setattr(shutil, "disk_usage", usage)

    assert shortage([tmp_path, cache]) == expected
