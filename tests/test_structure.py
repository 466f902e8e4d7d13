"""The shape of the code: imports, floors, `__all__`, and the files of a game."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import arena
from arena.games.catalogue import GAMES
from bots.strategy import BaseStrategy
from protocol.games import VOCABULARIES
from protocol.schema.definitions import our_games
from protocol.strategy import house_bots
from tests.support.documents import DOCUMENTS, ROOT, parsed
from tests.support.rule_cases import rules_named

PACKAGES = ("protocol", "arena", "bots")
MAY_IMPORT = {
    "protocol": {"protocol"},
    "arena": {"arena", "protocol"},
    "bots": {"bots", "protocol"},
}
FLOORS = (
    ("games",),
    ("formats", "records", "referee", "sandbox"),
    ("storage",),
    ("server", "results"),
    ("submissions",),
    ("competitions",),
    ("authoring", "hosts", "lab", "web"),
    ("cli",),
)
"""The packages of `arena`, from the ground up: each imports only from those below its own."""
OUR_GAMES = [words.name for words in our_games()]
EACH_GAME = pytest.mark.parametrize("game", OUR_GAMES)


@cache
def trees() -> dict[Path, ast.Module]:
    """The code of every module."""
    found = parsed(PACKAGES)
    assert len(found) > 100
    return found


def imported(tree: ast.Module) -> Iterator[str]:
    """All modules that a file imports, also in functions and under `if TYPE_CHECKING`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "we import by whole names"
            assert node.module is not None, "only relative imports have none"
            yield node.module


# ---- Packages and modules


def test_packages_import_in_one_direction() -> None:
    for module, tree in trees().items():
        ours = {name.split(".")[0] for name in imported(tree)} & {*PACKAGES, "tests"}
        assert ours <= MAY_IMPORT[module.parts[0]], module


def floor_of(package: str) -> int:
    return next(at for at, packages in enumerate(FLOORS) if package in packages)


def test_a_package_of_the_arena_imports_from_the_floors_below_its_own() -> None:
    for module, tree in trees().items():
        package, own = module.parts[:2]
        if package == "arena" and own not in ("__init__.py", "__main__.py"):
            names = {name.split(".")[1] for name in imported(tree) if name.startswith("arena.")}
            assert all(floor_of(name) < floor_of(own) for name in names - {own}), module


def test_all_of_the_arena_stands_in_a_package() -> None:
    found = {path.relative_to(ROOT / "arena").parts[0] for path in (ROOT / "arena").rglob("*.py")}

    assert found == {"__init__.py", "__main__.py"}.union(*FLOORS)


def test_a_match_in_a_script_loads_no_database_and_no_tables_for_people() -> None:
    code = (
        "import sys, arena, bots.ace_king_queen as b\n"
        "arena.play('ace_king_queen', [b.Nash(), b.Bluffer()], settings={'hands': 1}, seed=1)\n"
        "heavy = ('sqlalchemy', 'rich', 'websockets', 'jinja2', 'prometheus_client')\n"
        "print([m for m in heavy if m in sys.modules])"
    )

    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)

    assert shown.stdout.split() == [b"[]"]


@pytest.mark.parametrize("name", [*arena.__all__])
def test_the_public_names_of_the_arena_are_there(name: str) -> None:
    assert getattr(arena, name) is not None
    assert name in dir(arena)


def test_another_name_is_refused_as_by_any_module() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'no'"):
        _ = arena.no


def test_imports_are_found_wherever_they_stand() -> None:
    tree = ast.parse("import a.b, c\ndef f():\n    from d.e import f\nif 0:\n    import g as h")

    assert set(imported(tree)) == {"a.b", "c", "d.e", "g"}


def test_every_module_says_what_it_is_for() -> None:
    assert [module for module, tree in trees().items() if not ast.get_docstring(tree)] == []


def test_every_public_module_lists_what_is_public() -> None:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    lacking = [
        module
        for module, tree in trees().items()
        if module.name[0] != "_" and any(isinstance(node, kinds) for node in tree.body)
        if not any(
            isinstance(node, ast.Assign) and "__all__" in map(ast.unparse, node.targets)
            for node in tree.body
        )
    ]

    assert lacking == []


# ---- Tests


TESTS = [path.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("*.py")]


def test_beside_tests_and_fixtures_there_are_only_support_and_tools() -> None:
    """And no test hides there."""
    assert [
        path
        for path in TESTS
        if path.name not in ("conftest.py", "__init__.py")
        and path.name.startswith("test_") == (path.parts[0] in ("support", "tools"))
    ] == []


def test_folders_of_tests_are_those_of_the_packages() -> None:
    folders = {path.parent for path in TESTS if path.parts[0] in PACKAGES}

    assert {folder for folder in folders if not (ROOT / folder).is_dir()} == set()


# ---- Games: the recipe of CONTRIBUTING.md for a new one

PATHS = re.findall(r"^\d+\. `([^`]+)`", DOCUMENTS["CONTRIBUTING.md"], re.MULTILINE)
SECTIONS = {
    "ace_king_queen": ("A", 10),
    "blackjack": ("B", 14),
    "gin_rummy": ("G", 16),
    "high_low": ("H", 13),
    "three_card_poker": ("T", 10),
}
"""The games' letters in the rulebook, and how many paragraphs each section has."""


def test_the_recipe_names_the_files() -> None:
    assert len(PATHS) == 10


def test_all_games_have_a_section() -> None:
    assert list(GAMES) == list(VOCABULARIES) == list(SECTIONS)


@pytest.mark.parametrize("game", SECTIONS)
@pytest.mark.parametrize("path", PATHS)
def test_every_game_has_every_file_of_the_recipe(game: str, path: str) -> None:
    assert (ROOT / path.replace("GAME", game)).is_file()


@pytest.mark.parametrize("game", SECTIONS)
def test_every_paragraph_has_a_case_or_a_test_named_after_it(game: str) -> None:
    letter, paragraphs = SECTIONS[game]
    # A section's tests may be spread over the mirrors: what a bot or the odds do is tested there.
    sources = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")
    )
    named = {rule.removeprefix("test_") for rule in re.findall(r"test_[A-Z]\d+(?=_)", sources)}
    named |= rules_named(ROOT / "tests")

    assert {f"{letter}{number}" for number in range(1, paragraphs + 1)} <= named


@pytest.mark.parametrize("game", SECTIONS)
def test_every_game_has_a_player_strategy_and_house_bots(game: str) -> None:
    module = importlib.import_module(f"bots.{game}")
    bots = house_bots(game)

    assert issubclass(module.PlayerStrategy, BaseStrategy)
    assert module.PlayerStrategy.game == game
    assert all(cls.game == game for cls in bots.values())
    assert "random" in bots or GAMES[game].seats == 1  # B12 has no random player


@pytest.mark.parametrize(
    ("group", "module"),
    [
        ("protocol.games", "protocol.{}"),
        ("arena.games", "arena.games.{}.rules"),
        ("arena.bots", "bots.{}"),
    ],
)
def test_every_game_has_one_line_in_each_group(group: str, module: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    assert project["project"]["entry-points"][group] == {
        game: module.format(game) for game in SECTIONS
    }
