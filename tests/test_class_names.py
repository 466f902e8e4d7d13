"""A class name stands for one thing: a search for it finds the class that is meant."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from functools import cache
from itertools import chain
from pathlib import Path

from arena.games.catalogue import GAMES

ROOT = Path(__file__).parent.parent
PACKAGES = ("arena", "bots", "protocol", "tests")
PROGRAMS_OF_THEIR_OWN = ("bots/examples", "bots/starters")
OF_EACH_GAME = {"Dealt", "Draw", "HandOver", "PlayerStrategy", "Random", "RoundOver", "Simple"}
"""What stands for the same in several games, once in each of their files."""
ALSO_ALLOWED = {
    "Deck": {"arena/games/blackjack/rules.py", "bots/cards.py"},
    "Turn": {"protocol/gin_rummy.py", "protocol/watching.py"},
}
"""Names that people write: those of `bots/cards.py`, and words of the protocol."""


@cache
def files_by_class() -> dict[str, list[str]]:
    """The files of each class; only those with a line that another has too are read as code."""
    files = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    }
    ours = [name for name in files if not name.startswith(PROGRAMS_OF_THEIR_OWN)]
    lines = {name: re.findall(r"^ *class (\w+)", files[name], re.MULTILINE) for name in ours}
    often = Counter(chain.from_iterable(lines.values()))
    found = defaultdict(list)
    for name in ours:
        if any(often[each] > 1 for each in lines[name]):
            for node in ast.walk(ast.parse(files[name])):
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
