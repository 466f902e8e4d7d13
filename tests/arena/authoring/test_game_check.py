"""`arena check-game`: no alarm for games that keep to the conventions, and a line for each breach.

The broken games are packages as `arena new-game` writes them, each with one mistake. One process
checks them all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from arena.authoring import game_check
from arena.authoring.game_check import check_game
from arena.authoring.view_check import broken_view
from arena.games.catalogue import GAMES, view_path
from arena.games.rules import Game
from tests.support.game_packages import Edits, breaches, checked_game, install_game
from tests.support.in_process import CommandProcess
from tests.support.toy_games import write_toy


class Mistake(NamedTuple):
    """A case of `game_mistakes.cases`: what is changed in a game, and the line that says so."""

    says: str
    is_only: bool  # whether nothing else is said
    seats: int
    matches: str
    edits: Edits

    @classmethod
    def read(cls, lines: Sequence[str]) -> Mistake:
        about = dict(line.split(" ", 1) for line in lines if line.startswith(_KEYS))
        base = MISTAKES.get(about.get("with", ""))
        edits = {} if base is None else dict(base.edits)
        changes = "\n".join(lines[len(about) :]).replace("=>\n| ", "=> ").replace("\n| ", "\\n")
        for line in filter(None, changes.split("\n")):
            module, _, change = line.replace("\\n", "\n").partition(": ")
            old, _, new = change.partition(" =>")
            file = "view.js" if module == "view" else f"{module}.py"
            edits[file] = (*edits.get(file, ()), (old, new.removeprefix(" ")))
        says = about.get("only", about.get("says", ""))
        seats = int(about.get("seats", 2 if base is None else base.seats))
        matches = about.get("matches", "5")
        return cls(says, "says" not in about, seats, matches, edits)


_KEYS = "says ", "only ", "seats ", "matches ", "with "
_CASES = Path(__file__).with_name("game_mistakes.cases").read_text(encoding="utf-8")
MISTAKES: dict[str, Mistake] = {}
for _title, *_lines in (case.splitlines() for case in _CASES.split("\n== ")[1:]):
    MISTAKES[_title.replace(" ", "_")] = Mistake.read(_lines)


IMPORTS_NOTHING = "from arena.authoring import game_check; game_check.points = lambda *words: ()"


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[str]]:
    """By mistake, what is said of the game with it."""
    folder = tmp_path_factory.mktemp("broken")
    games = {name: f"game_{name}"[:40] for name in MISTAKES}
    for name, mistake in MISTAKES.items():
        install_game(folder, games[name], mistake.seats, mistake.edits)
    found = {}
    with CommandProcess.beside(folder) as commands:
        # First those that are to be found by processes that import a game alone.
        for name in sorted(
            MISTAKES, key=lambda name: not MISTAKES[name].says.startswith("imports")
        ):
            if not MISTAKES[name].says.startswith("imports"):
                commands.python(folder, IMPORTS_NOTHING)
            words = games[name], "--matches", MISTAKES[name].matches, "--seed", "1"
            found[name] = breaches(checked_game(commands, folder, *words))
    return found


@pytest.mark.e2e
@pytest.mark.parametrize("name", MISTAKES)
def test_a_broken_convention_has_its_line(lines: Mapping[str, list[str]], name: str) -> None:
    mistake = MISTAKES[name]
    found = [line for line in lines[name] if re.fullmatch(mistake.says, line)]

    assert bool(found) == bool(mistake.says), lines[name]
    assert found == lines[name] or not mistake.is_only


@pytest.mark.parametrize("game", GAMES.values(), ids=lambda game: str(game.name))
def test_there_is_no_alarm_for_our_games(game: Game) -> None:
    report = check_game(game, matches=20, seed=1)

    assert report.broken == ()
    assert report.package is None
    assert report.decisions > 0


@pytest.mark.e2e
def test_there_is_no_alarm_for_a_toy(tmp_path: Path) -> None:
    toys = {write_toy(tmp_path, seats): seats for seats in (1, 2, 3, 6)}
    with CommandProcess.beside(tmp_path) as commands:
        for name, seats in toys.items():
            report = checked_game(commands, tmp_path, name)

            assert report["broken"] == []
            assert report["package"] == f"{name} 1.0"
            assert report["decisions"] == 6 * seats  # six rounds, a bid of each


def test_without_node_a_view_must_have_its_exports(monkeypatch: pytest.MonkeyPatch) -> None:
    game = GAMES["high_low"]
    text = b"export function start() {}\nexport const Table = 1, Moves = 2;\nexport { step };\n"
    monkeypatch.setattr("arena.authoring.view_check.shutil.which", lambda name: None)
    monkeypatch.setattr("arena.authoring.view_check.view_files", lambda: {view_path(game): text})

    assert [*broken_view(game, 1)] == [("view", "view.js: it exports no function `describe`")]


def test_a_match_that_is_checked_again_is_the_same() -> None:
    game = next(iter(GAMES.values()))
    counted: list[None] = []
    report = check_game(game, matches=3, seed=5, tick=lambda: counted.append(None))

    assert report == check_game(game, matches=3, seed=5)
    assert len(counted) == 3


def test_a_module_that_is_never_imported_has_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    game = next(iter(GAMES.values()))
    monkeypatch.setattr(game_check, "_IMPORT_S", 0)
    report = check_game(game, matches=1, seed=1)

    assert [str(broken) for broken in report.broken] == [
        f"imports: {module} is not imported after 0 seconds"
        for module in (f"protocol.{game.name}", f"bots.{game.name}")
    ]
