"""What `arena new-game` writes, used as its author would use it: installed beside ours."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import NamedTuple

import pytest

from arena.authoring.game_package import MOST_SEATS

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parent.parent.parent
COMMAND_S = 200


class InstalledGame(NamedTuple):
    """A package in an environment of its own, which sees the arena and its tools as well."""

    name: str
    folder: Path
    python: Path

    def run(self, *argv: str, status: int = 0) -> str:
        """What a command of the environment's Python prints, in the folder of the package."""
        done = subprocess.run(
            [self.python, "-m", *argv],
            cwd=self.folder,
            env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr


def installed(folder: Path, seats: int) -> InstalledGame:
    """Write the package and install it; nothing is fetched from a network."""
    name = f"tiny_{seats}"
    package, environment = folder / "package", folder / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    python = environment / "bin" / "python"
    here = next((environment / "lib").glob("python*")) / "site-packages"
    # The fresh environment sees this checkout, and what the tests have installed.
    ours = [str(ROOT), *(path for path in sys.path if path.endswith("site-packages"))]
    (here / "ours.pth").write_text("\n".join(ours))
    argv = [sys.executable, "-m", "arena", "new-game", name, str(package), "--seats", str(seats)]
    subprocess.run(argv, check=True, capture_output=True, timeout=COMMAND_S)
    game = InstalledGame(name, package, python)
    game.run("pip", "install", "--quiet", "--no-deps", "--no-build-isolation", ".")
    return game


@pytest.fixture(scope="module", params=(1, 2, MOST_SEATS))
def game(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> InstalledGame:
    return installed(tmp_path_factory.mktemp("game"), request.param)


def test_it_passes_its_own_tests(game: InstalledGame) -> None:
    shown = game.run("pytest", "-q", "-p", "no:cacheprovider")

    assert " passed" in shown
    assert "failed" not in shown


def test_every_convention_holds(game: InstalledGame) -> None:
    assert "every convention holds" in game.run("arena", "check-game", game.name)


def test_the_checkers_find_nothing_by_our_settings(game: InstalledGame) -> None:
    settings = str(ROOT / "pyproject.toml")
    game.run("ruff", "check", "--no-cache", "--config", settings, ".")
    game.run("ruff", "format", "--check", "--no-cache", "--config", settings, ".")
    game.run("ruff", "check", "--no-cache", ".")
    game.run("mypy", "--strict", "--cache-dir", os.devnull, game.name, "tests")


def test_it_is_played(game: InstalledGame) -> None:
    assert game.name in game.run(
        "arena", "cross", game.name, "--games", "2", "--seed", "1", "--json"
    )
