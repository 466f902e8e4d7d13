"""What is installed from a wheel, far from a checkout: every program that is started by its
module's name or path starts, and an arena plays without the parts that it can be without.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from arena.web.manual.documents import documents
from tests.support.arena_process import ROOT

HANDS = ("--set", "hands=2")
PARTS = {
    "lab": ("lab",),
    "authoring": ("authoring",),
    "hosts": ("hosts",),
    "evaluators": ("games/*/evaluator.py", "games/*/analysis.py", "games/*/chain.py"),
}
"""What an arena can be without, as patterns in its package."""
CUP = """
[serve]
port = 0
[[run]]
name = "cup"
game = "ace_king_queen"
house = ["nash", "bluffer"]
settings = { hands = 4 }
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of the wheel, in an environment with what else is installed here."""
    folder = tmp_path_factory.mktemp("wheel")
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d")
    subprocess.run([*build, str(folder)], cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    venv.create(folder / "venv")
    paths = {"base": str(folder / "venv"), "platbase": str(folder / "venv")}
    packages = Path(sysconfig.get_path("purelib", vars=paths))
    ours = shutil.ignore_patterns("arena", "bots", "protocol", "*card_arena*")
    here = sysconfig.get_path("purelib")
    shutil.copytree(here, packages, ignore=ours, copy_function=_linked, dirs_exist_ok=True)
    install = (sys.executable, "-m", "pip", "install", "--no-deps", "--quiet")
    subprocess.run([*install, "--target", str(packages), str(wheel)], check=True)
    return packages


def _linked(one: str, other: str) -> None:
    try:
        os.link(one, other)
    except OSError:  # another file system
        shutil.copy2(one, other)


def python_of(installed: Path) -> str:
    [scripts] = installed.parents[2].glob("bin/python")
    return str(scripts)


def ran(
    installed: Path, *words: str, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """A program that is started with these words, in a folder with nothing of ours."""
    return subprocess.run(
        [python_of(installed), "-P", *words],
        cwd=folder or installed.parents[3],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def started(installed: Path, *words: str, folder: Path | None = None) -> str:
    """What such a program prints."""
    done = ran(installed, *words, folder=folder)
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

    folder = installed.parents[3]
    assert "# " in (folder / "other" / "gin_rummy.md").read_text("utf-8")
    assert (folder / "mine").is_dir()
    assert (folder / "in-js/node_modules/ws/lib/websocket.js").is_file()


# ---- Without a part


@pytest.fixture(params=PARTS)
def part(request: pytest.FixtureRequest, installed: Path, tmp_path: Path) -> Iterator[str]:
    """A part that is not installed meanwhile."""
    arena, name = installed / "arena", str(request.param)
    found = [path for pattern in PARTS[name] for path in arena.glob(pattern)]
    assert found
    gone = {path: tmp_path / "gone" / path.relative_to(arena) for path in found}
    for path, there in gone.items():
        there.parent.mkdir(parents=True, exist_ok=True)
        path.rename(there)
    yield name
    for path, there in gone.items():
        there.rename(path)


def test_an_arena_plays_without_a_part(part: str, installed: Path, tmp_path: Path) -> None:
    (tmp_path / "class.toml").write_text(CUP)
    words = (python_of(installed), "-P", "-m", "arena", "serve", "--config", "class.toml", "--json")
    with subprocess.Popen(
        words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as arena:
        try:
            assert arena.stdout is not None
            assert arena.stderr is not None
            url = next(line for line in arena.stderr if "the page is at " in line).split()[-1]
            report = json.loads(arena.stdout.readline())
            with urlopen(f"{url}/api/competitions/{report['competition']}.json") as page:
                shown = json.load(page)
        finally:
            arena.terminate()
    assert [row["eliminated"] for row in report["standings"]] == [None, None]
    assert shown["state"] == "finished"
    assert (shown["luck_unit"] is None) == (part == "evaluators")
    started(installed, "-m", "arena", "verify", "arena.db", folder=tmp_path)
    mistakes = ran(installed, *"-m arena mistakes last --seat 1".split(), folder=tmp_path)
    assert mistakes.returncode == (part == "evaluators"), mistakes.stderr


NEEDS = [
    ("lab", "play akq nash bluffer"),
    ("lab", "demo"),
    ("authoring", "new akq mine"),
    ("authoring", "serve --config handed_in.toml"),
    ("hosts", "host --bus tls://localhost:1"),
    ("hosts", "serve --bus tls://localhost:1"),
]


def test_what_needs_a_part_says_so(part: str, installed: Path, tmp_path: Path) -> None:
    (tmp_path / "handed_in.toml").write_text("[submissions]\n")
    for words in (words for needed, words in NEEDS if needed == part):
        done = ran(installed, "-m", "arena", *words.split(), folder=tmp_path)
        assert done.returncode == 2, words
        assert f"needs arena.{part}" in done.stderr
        assert done.stderr.count("\n") == 1
    if part == "lab":
        failed = ran(installed, "-c", "import arena; arena.play", folder=tmp_path)
        assert "arena.play needs arena.lab, which is not installed here" in failed.stderr
