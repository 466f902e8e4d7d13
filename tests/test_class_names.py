"""A class name stands for one thing: a search for it finds the class that is meant."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

from arena.games import GAMES

ROOT = Path(__file__).parent.parent
PACKAGES = ("arena", "bots", "protocol", "tests")
PROGRAMS_OF_THEIR_OWN = ("bots/examples", "bots/starters")
OF_EACH_GAME = {"Dealt", "Draw", "HandOver", "PlayerStrategy", "Random", "RoundOver", "Simple"}
"""What stands for the same in several games, once in each of their files."""
ALSO_ALLOWED = {
    "Deck": {"arena/games/blackjack.py", "bots/cards.py"},
    "Turn": {"protocol/gin_rummy.py", "protocol/watching.py"},
}
"""Names that people write: those of `bots/cards.py`, and words of the protocol."""


@cache
def files_by_class() -> dict[str, list[str]]:
    found = defaultdict(list)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if name.startswith(PROGRAMS_OF_THEIR_OWN):
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(name)
    return found


def is_allowed(name: str, files: list[str]) -> bool:
    if name in OF_EACH_GAME:
        are_of_games = all(Path(file).stem in GAMES for file in files)
        return are_of_games and len(set(files)) == len(files)
    return name in ALSO_ALLOWED and sorted(files) == sorted(ALSO_ALLOWED[name])


def test_a_class_name_stands_for_one_thing() -> None:
    several = {
        name: files
        for name, files in files_by_class().items()
        if len(files) > 1 and not is_allowed(name, files)
    }

    assert several == {}


def test_no_name_is_allowed_without_need() -> None:
    several = {name for name, files in files_by_class().items() if len(files) > 1}

    assert OF_EACH_GAME | ALSO_ALLOWED.keys() <= several
