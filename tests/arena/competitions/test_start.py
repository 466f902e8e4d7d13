from __future__ import annotations

from typing import Any

import msgspec
import pytest

from arena.competitions.config import Config
from arena.competitions.start import Setting, plan_by_hand, startable
from arena.formats.formats import check_form
from arena.formats.spec import Form
from arena.games.catalogue import GAMES
from protocol.errors import ArenaError
from tests.support.toy_games import toy_game

EACH_GAME = pytest.mark.parametrize("game", GAMES)


def setting(game: str, name: str, **tables: Any) -> Setting:
    described = startable(GAMES[game], Config(games=tables))
    return next(setting for setting in described.settings if setting.name == name)


@EACH_GAME
def test_a_game_offers_the_forms_it_can_be_played_in_its_usual_one_first(game: str) -> None:
    offered = [choice.form for choice in startable(GAMES[game], Config()).forms]
    usual = plan_by_hand(GAMES[game], Config()).form

    assert offered[0] == usual
    for form in Form:
        try:
            check_form(GAMES[game], form)
        except ArenaError:
            assert form not in offered
        else:
            assert form in offered


@EACH_GAME
def test_every_form_that_is_offered_can_be_started_with_what_it_offers(game: str) -> None:
    offered = startable(GAMES[game], Config()).forms
    plans = [
        plan_by_hand(GAMES[game], Config(), form=choice.form, matches=choice.matches)
        for choice in offered
    ]

    assert offered
    assert [plan.form for plan in plans] == [choice.form for choice in offered]


@pytest.mark.parametrize("meets_itself", [True, False])
def test_A10_a_bot_meets_itself_in_a_round_robin_of_a_game_that_says_so(meets_itself: bool) -> None:
    game = msgspec.structs.replace(toy_game(2), meets_itself=meets_itself)

    assert plan_by_hand(game, Config()).with_itself is meets_itself
    assert not plan_by_hand(game, Config(), form="ladder").with_itself


@EACH_GAME
def test_every_setting_is_described_with_what_is_played(game: str) -> None:
    described = startable(GAMES[game], Config())
    played = plan_by_hand(GAMES[game], Config()).settings

    assert [setting.name for setting in described.settings] == list(played)
    for one in described.settings:
        assert one.about
        assert one.optional or one.default == played[one.name]


@EACH_GAME
def test_bounds_are_those_of_the_rulebook(game: str) -> None:
    for one in startable(GAMES[game], Config()).settings:
        if one.kind != "integer":
            continue
        assert one.least is not None
        assert one.most is not None
        for bad in (one.least - 1, one.most + 1):
            with pytest.raises(ArenaError):
                plan_by_hand(GAMES[game], Config(), settings={one.name: bad})
        for good in (one.least, one.most):
            GAMES[game].vocabulary.read_settings({one.name: good})


def test_what_the_file_says_is_what_is_offered() -> None:
    assert setting("blackjack", "hands", blackjack={"hands": 40}).default == 40


def test_each_kind_of_setting() -> None:
    assert setting("blackjack", "shuffle").choices == ("riffle", "uniform")
    assert setting("three_card_poker", "pair_kicker").kind == "switch"
    starter = setting("gin_rummy", "starter")
    assert starter.optional
    assert starter.choices == (0, 1)
    assert setting("three_card_poker", "goal").optional


def test_K3_a_goal_that_is_left_as_usual_follows_the_stake_of_the_form() -> None:
    game = GAMES["three_card_poker"]
    offered = {one.name: one.default for one in startable(game, Config()).settings}
    sent = {name: value for name, value in offered.items() if value is not None}

    assert plan_by_hand(game, Config()).settings["goal"] == 1125
    assert plan_by_hand(game, Config(), settings=sent).settings["goal"] == 1125
    assert plan_by_hand(game, Config(), settings={**sent, "stake": 80}).settings["goal"] == 90
