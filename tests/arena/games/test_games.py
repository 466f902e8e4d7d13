"""The five games by name, and what is different about their settings in competitions."""

from __future__ import annotations

import pytest

from arena.engine.rules import Game
from arena.games import GAMES, competition_settings, game_named
from protocol.errors import BadSettings, UnknownGame
from protocol.games import VOCABULARIES

BLACKJACK, POKER = GAMES["blackjack"], GAMES["three_card_poker"]


def test_the_games_are_those_of_the_vocabularies() -> None:
    assert list(GAMES) == list(VOCABULARIES)


@pytest.mark.parametrize("game", GAMES.values(), ids=lambda game: str(game.name))
def test_a_game_has_a_name_and_an_alias(game: Game) -> None:
    assert game_named(game.name) is game
    assert game_named(game.vocabulary.alias) is game


@pytest.mark.parametrize("name", ["chess", "", "AKQ", None, 5, ["akq"]], ids=repr)
def test_an_unknown_game_is_refused(name: str) -> None:
    with pytest.raises(UnknownGame, match=r"unknown game .* expected one of: ace_king"):
        game_named(name)


def test_B14_a_competition_shuffles_fairly_unless_something_else_is_chosen() -> None:
    read = BLACKJACK.vocabulary.read_settings

    assert competition_settings(BLACKJACK, {}) == read({"shuffle": "uniform"})
    assert competition_settings(BLACKJACK, {"shuffle": "riffle"}) == read({})


def test_K3_the_goal_of_a_league_is_twice_the_stake() -> None:
    read = POKER.vocabulary.read_settings
    chosen = {"stake": 30, "goal": 31}

    assert competition_settings(POKER, {"stake": 30}) == read({"stake": 30, "goal": 60})
    assert competition_settings(POKER, chosen) == read(chosen)


def test_K3_a_league_without_a_goal_may_be_chosen() -> None:
    chosen: dict[str, object] = {"goal": None}

    assert competition_settings(POKER, chosen) == POKER.vocabulary.read_settings(chosen)


def test_K3_a_goal_beyond_all_goals_is_refused() -> None:
    with pytest.raises(BadSettings, match="goal"):
        competition_settings(POKER, {"stake": 10**12})


@pytest.mark.parametrize("game", ["ace_king_queen", "gin_rummy", "high_low"])
def test_the_other_games_have_the_settings_of_a_match(game: str) -> None:
    read = GAMES[game].vocabulary.read_settings

    assert competition_settings(GAMES[game], {}) == read({})
