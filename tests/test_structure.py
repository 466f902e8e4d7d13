"""The shape of the code: imports, places of a game's files, `__all__`, and house bots."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import arena
from arena.games import GAMES
from protocol.schema.definitions import our_games
from tests.support.documents import parsed

ROOT = Path(__file__).parent.parent
PACKAGES = ("protocol", "arena", "bots")
MAY_IMPORT = {
    "protocol": {"protocol"},
    "arena": {"arena", "protocol"},
    "bots": {"bots", "protocol"},
}
FLOORS = (
    ("engine", "manual"),
    ("strength",),
    ("games",),
    ("formats", "records", "referee", "sandbox"),
    ("storage",),
    ("server", "results"),
    ("submissions", "hosts"),
    ("competitions",),
    ("authoring", "lab", "web"),
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


# ---- Games


def test_no_game_is_forgotten() -> None:
    written = {
        path.stem
        for path in (ROOT / "arena/games").glob("*.py")
        if "\nGAME = " in path.read_text(encoding="utf-8")
    }

    assert written == {*OUR_GAMES}
    assert {*OUR_GAMES} <= {*GAMES}
