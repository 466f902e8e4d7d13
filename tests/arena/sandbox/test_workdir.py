from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from arena.sandbox.workdir import remove


@pytest.mark.skipif(sys.platform == "win32", reason="paths are short there")
def test_a_folder_goes_however_deep_a_bot_has_nested_it(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    here = os.getcwd()
    os.chdir(scratch)
    try:
        for _ in range(2_000):
            os.mkdir("d")
            os.chdir("d")
    finally:
        os.chdir(here)
    for _ in range(2):  # one that is gone is no error
        remove(scratch)
        assert not scratch.exists()
