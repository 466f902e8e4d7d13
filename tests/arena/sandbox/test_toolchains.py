"""What is installed is found by trying it, and what is not by its name in Debian."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

import pytest

from arena.sandbox import toolchains
from arena.sandbox.languages import LANGUAGES, Language
from arena.sandbox.toolchains import installed


def test_each_language_of_the_starters_is_tried() -> None:
    found = installed()

    assert [each.name for each in found] == [*Language]
    assert f"Python {platform.python_version()}" in found[0].version
    for each in found:
        need = LANGUAGES[Language(each.name)].needs
        if need and shutil.which(need[0].probe[0]):
            assert need[0].name in each.version
        elif need:
            assert need[0].package in each.missing


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.mark.skipif(os.name == "nt", reason="the programs are scripts")
def test_missing_old_and_hanging_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "node", "echo v16.20.2")
    program(tmp_path, "javac", "echo javac 21")
    program(tmp_path, "javap", "exit 1")
    program(tmp_path, "make", "read never < /dev/zero")
    program(tmp_path, "jq", "echo jq")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(toolchains, "_TRY_S", 0.2)
    found = {each.name: each for each in installed()}

    assert found["javascript"].missing == "nodejs (version 18.17 or later)"
    assert found["java"].version == "Java 21"
    assert found["java"].missing == "libgoogle-gson-java, make"
    assert found["cpp"].missing == "g++, libboost-dev, nlohmann-json3-dev, make"
    assert found["bash"].version == "jq"
    assert found["bash"].missing == "bash"
    assert not found["python"].missing
