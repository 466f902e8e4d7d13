"""What `arena new-game` writes, used as its author would use it: installed beside ours."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from arena.authoring.game_package import MOST_SEATS
from tests.support.in_process import run_here

COMMAND_S = 600
ROOT = Path(__file__).parent.parent.parent
MYPY = "[mypy]\n[mypy-sqlalchemy.*,arena.storage.*,arena.competitions.*]\nfollow_imports = skip\n"
GAMES = {
    "tiny_1": ("--seats", "1", "--luck"),
    "tiny_2": ("--view", "--luck"),
    "tiny_many": ("--seats", str(MOST_SEATS)),
}

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(2 * COMMAND_S)]


class InstalledGames:
    """Packages in an environment of their own, which sees the arena and its tools as well."""

    def __init__(self, folder: Path) -> None:
        environment = folder / "environment"
        venv.create(environment, with_pip=False, symlinks=True)
        self._python = environment / "bin" / "python"
        self.folder = folder / "packages"
        here = next((environment / "lib").glob("python*")) / "site-packages"
        # The fresh environment sees this checkout, and what the tests have installed.
        ours = [str(ROOT), *(path for path in sys.path if path.endswith("site-packages"))]
        (here / "ours.pth").write_text("\n".join(ours))
        for name, options in GAMES.items():
            assert run_here("new-game", name, str(self.folder / name), *options).status == 0
        install = ("pip", "install", "--quiet", "--no-deps", "--no-build-isolation")
        self.run("", *install, *(f"./{name}" for name in GAMES))

    def run(self, game: str, *argv: str) -> str:
        """What a command of the environment's Python prints, in the folder of a package."""
        done = subprocess.run(
            [self._python, "-m", *argv],
            cwd=self.folder / game,
            env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> InstalledGames:
    return InstalledGames(tmp_path_factory.mktemp("games"))


@pytest.mark.parametrize("game", GAMES)
def test_it_passes_its_own_tests(games: InstalledGames, game: str) -> None:
    shown = games.run(game, "pytest", "-q", "-p", "no:cacheprovider")

    assert " passed" in shown
    assert "failed" not in shown


@pytest.mark.parametrize("game", GAMES)
def test_the_checkers_find_nothing_by_our_settings(games: InstalledGames, game: str) -> None:
    settings = str(ROOT / "pyproject.toml")
    games.run(game, "ruff", "check", "--no-cache", "--config", settings, ".")
    games.run(game, "ruff", "format", "--check", "--no-cache", "--config", settings, ".")
    games.run(game, "ruff", "check", "--no-cache", ".")
    # What it knows of ours is known of the next package, too; a game sees none of what is skipped.
    (games.folder / "mypy.ini").write_text(MYPY)
    options = "--strict", "--config-file=../mypy.ini", "--cache-dir=../cache"
    games.run(game, "mypy", *options, game, "tests")


@pytest.mark.parametrize("game", GAMES)
def test_it_is_played(games: InstalledGames, game: str) -> None:
    shown = games.run(game, "arena", "cross", game, "--games", "2", "--seed", "1", "--json")

    assert game in shown
