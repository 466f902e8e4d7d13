"""What is installed from a wheel, far from a checkout: every program that is started by its
module's name or path starts.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from arena.web.manual.documents import documents
from tests.support.arena_process import ROOT

HANDS = ("--set", "hands=2")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages of the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d")
    subprocess.run([*build, str(folder)], cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    install = (sys.executable, "-m", "pip", "install", "--no-deps", "--quiet")
    target = folder / "installed"
    subprocess.run([*install, "--target", str(target), str(wheel)], check=True)
    return target


def started(installed: Path, *words: str) -> str:
    """What a program prints that is started with these words, in a folder with nothing of ours."""
    done = subprocess.run(
        [sys.executable, "-P", *words],
        cwd=installed.parent,
        env={**os.environ, "PYTHONPATH": str(installed)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_packages_are_those_of_the_wheel(installed: Path) -> None:
    code = "import arena, bots, protocol; print(arena.__file__, bots.__file__, protocol.__file__)"

    assert started(installed, "-c", code).split() == [
        str(installed / package / "__init__.py") for package in ("arena", "bots", "protocol")
    ]


@pytest.mark.parametrize("module", ["arena", "bots"])
def test_a_command_says_what_it_does(installed: Path, module: str) -> None:
    assert "sage:" in started(installed, "-m", module, "--help")


def test_the_process_that_reads_for_the_page_starts(installed: Path) -> None:
    started(installed, "-m", "arena.web.side_program")


def test_a_match_is_played(installed: Path) -> None:
    assert started(installed, "-m", "arena", "play", "akq", "nash", "bluffer", *HANDS)


def test_the_documents_and_the_page_of_an_export_are_those_of_the_checkout(installed: Path) -> None:
    code = (
        "from arena.web.manual.documents import documents; print(*documents(), sep='\\n')\n"
        "from arena.results.html_report import page; print('<h1>Results</h1>' in page([]))"
    )

    assert started(installed, "-c", code).splitlines() == [*documents(), "True"]


def test_starters_and_what_a_bot_is_written_from_are_written(installed: Path) -> None:
    for words in ("gin other --lang other", "akq mine", "akq in-js --lang javascript"):
        started(installed, "-m", "arena", "new", *words.split())

    assert "# " in (installed.parent / "other" / "gin_rummy.md").read_text("utf-8")
    assert (installed.parent / "mine").is_dir()
    assert (installed.parent / "in-js/node_modules/ws/lib/websocket.js").is_file()
