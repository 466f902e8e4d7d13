"""CONTRIBUTING.md's recipe for adding a game, checked against those that are there."""

from __future__ import annotations

import importlib
import re
import tomllib

import pytest

from arena.games.catalogue import GAMES
from bots.strategy import BaseStrategy
from protocol.games import VOCABULARIES
from protocol.strategy import house_bots
from tests.support.documents import DOCUMENTS, ROOT
from tests.support.rule_cases import rules_named

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
