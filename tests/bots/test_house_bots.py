"""What holds of the house bots of every game: their names, that they play, and that a seed repeats."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from arena.games import GAMES
from arena.lab.in_process import play
from protocol.ace_king_queen import Open
from protocol.high_low import Swap
from protocol.messages import Ending
from protocol.strategy import find, house_bots

HOUSE = {
    "ace_king_queen": "bluffer honest learner nash random",
    "blackjack": "competitor counting simple",
    "gin_rummy": "expert patient random simple",
    "high_low": "bold counter random timid",
    "three_card_poker": "always doubler q64 random",
}
BOTS = [(game, name) for game, names in HOUSE.items() for name in names.split()]


def played(game: str, bot: type[Any], seed: int, **settings: object) -> Any:
    """A match of one kind of bot against itself."""
    bots = [bot() for _ in range(GAMES[game].seats)]
    for number, one in enumerate(bots):
        one.seed(f"{seed} {number}")
    return play(game, bots, settings={**GAMES[game].rounds(60), **settings}, seed=seed)


@pytest.mark.parametrize("game", HOUSE)
def test_house_bots_are_found_by_name(game: str) -> None:
    found = house_bots(game)

    assert list(found) == HOUSE[game].split()
    assert [find(game, name) for name in found] == list(found.values())
    assert {bot.game for bot in found.values()} == {game}


@pytest.mark.parametrize(("game", "name"), BOTS)
def test_a_house_bot_plays_legally_and_a_seed_repeats_it(game: str, name: str) -> None:
    bot = find(game, name)
    for seed in range(2):
        result = played(game, bot, seed)

        assert result.termination.kind is Ending.COMPLETED
        assert played(game, bot, seed) == result


@pytest.mark.parametrize("name", HOUSE["blackjack"].split())
def test_B14_after_a_riffle_a_house_bot_plays_as_well(name: str) -> None:
    result = played("blackjack", find("blackjack", name), 1, hands=200, shuffle="riffle")

    assert result.termination.kind is Ending.COMPLETED


@pytest.mark.parametrize("game", HOUSE)
def test_a_strategy_that_overrides_nothing_plays(game: str) -> None:
    strategy = import_module(f"bots.{game}").PlayerStrategy

    assert played(game, strategy, 1).termination.kind is Ending.COMPLETED


@pytest.mark.parametrize("game", HOUSE)
def test_a_question_of_another_game_is_a_mistake_of_the_caller(game: str) -> None:
    strategy = import_module(f"bots.{game}").PlayerStrategy()
    other: Any = Swap("As", "2c") if game == "ace_king_queen" else Open(1, "A")

    with pytest.raises(AssertionError, match="ask nothing else"):
        strategy.decide(other)
