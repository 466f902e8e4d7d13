"""The package of `arena new-game`: its files, for every number of seats."""

from __future__ import annotations

import ast
import re
import tomllib

import pytest

from arena.authoring.game_package import MOST_SEATS, game_package

EACH = pytest.mark.parametrize("seats", range(1, MOST_SEATS + 1))
NAMES = ("ab", "tiny_poker", "a_name_of_thirty_letters_in_all")


@EACH
@pytest.mark.parametrize("name", NAMES)
def test_every_file_is_filled(name: str, seats: int) -> None:
    for file, text in game_package(name, seats).files.items():
        assert not re.search(r"\{\{ |\{%|NAME", text), file
        assert text.endswith("\n"), file
        assert "\n\n\n\n" not in text, file
        assert not re.search(r"[ \t]$", text, re.MULTILINE), file
        if file.endswith(".py"):
            assert ast.get_docstring(ast.parse(text)), file
            assert max(map(len, text.splitlines())) <= 100, file


@EACH
def test_its_entry_points_are_the_three_parts(seats: int) -> None:
    project = tomllib.loads(game_package("tiny_poker", seats).files["pyproject.toml"])["project"]

    assert project["entry-points"] == {
        "protocol.games": {"tiny_poker": "tiny_poker.vocabulary"},
        "arena.games": {"tiny_poker": "tiny_poker.rules"},
        "arena.bots": {"tiny_poker": "tiny_poker.bots"},
    }
    assert project["dependencies"] == ["card-arena"]


@EACH
def test_the_readme_names_every_file_and_command(seats: int) -> None:
    made = game_package("tiny_poker", seats)
    readme = made.files["README.md"]

    for file in made.files.keys() - {"README.md", "tiny_poker/__init__.py"}:
        assert f"| `{file}` |" in readme
    for command in made.commands:
        assert f"\n{command.line}\n" in readme
