from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def test_what_is_written_and_what_comes_next_is_told(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "bus"
    out = run("bus", "init", str(folder), "--host", "bus.example.org", "--worker", "w1").text

    assert out.splitlines()[:3] == [
        f"{folder}: bus.example.org; 1 worker",
        f"the bus:  nats-server -c {folder}/nats-server.conf",
        f"arenas:   --bus tls://bus.example.org:4222 --bus-key {folder}/arena.nk --bus-ca {folder}/ca.pem",
    ]
    assert "--bus-key w1.nk --bus-ca ca.pem" in out


def test_as_a_document(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "bus"
    run("bus", "init", str(folder), "--host", "localhost", "--worker", "w1")
    document = run("bus", "init", str(folder), "--worker", "w2", "--json").document

    assert document["hosts"] == ["localhost"]
    assert document["workers"] == ["w1", "w2"]
    assert {"arena.nk", "ca.pem", "nats-server.conf", "w1.nk", "w2.nk"} < set(document["files"])


def test_what_is_wrong_is_one_line(run: Run, tmp_path: Path) -> None:
    line = run("bus", "init", str(tmp_path / "bus"), "--worker", "w1").refusal()

    assert line.startswith("expected --host NAME")
    line = run("bus", "init", str(tmp_path / "bus"), "--host", "a b").refusal()
    assert line == "expected a name or an address of this machine, got 'a b'"
    assert not (tmp_path / "bus").exists()


def test_alone_it_says_what_it_can(run: Run) -> None:
    assert "init" in run("bus").text


def test_without_nats_py_it_says_what_is_to_be_installed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.delitem(sys.modules, "arena.workers.bus_setup", raising=False)
    line = run("bus", "init", str(tmp_path / "bus"), "--host", "localhost").refusal()

    assert line == "nats-py is not installed: pip install 'card-arena[nats]'"
