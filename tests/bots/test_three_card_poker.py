"""The interface and the house bots of three card poker."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

import arena
from bots.three_card_poker import Q64, Always, Doubler, PlayerStrategy, Random
from protocol.cards import PACK
from protocol.errors import UsageError
from protocol.messages import Ending
from protocol.three_card_poker import Ante, Hand, Play, RoundOver, compare
from protocol.vocabulary import Range

ACES_UP: Hand = ("As", "Ah", "Kd")
NINES: Hand = ("9s", "9h", "5d")
JUNK: Hand = ("7s", "5h", "2d")

HOUSE_BOTS = [Always, Doubler, Q64, Random]


def ante_of(bot: PlayerStrategy, cash: int = 1000) -> object:
    """What the bot antes with so much cash."""
    return bot.decide(Ante(1, cash, Range(1, cash // 2)))


def plays(bot: PlayerStrategy, *hand: str) -> bool:
    """Whether the bot plays a hand."""
    answer = bot.decide(Play((hand[0], hand[1], hand[2]), 10, 1000))
    assert answer in ("play", "fold")
    return answer == "play"


def hears(bot: PlayerStrategy, outcome: int, ante: int = 10) -> None:
    """Tell the bot of a round."""
    bot.hear(RoundOver(NINES, ACES_UP, ante, outcome, 1000 + outcome * ante))


# The interface


def test_a_strategy_antes_the_least_and_plays_everything_unless_it_says_otherwise() -> None:
    bot = PlayerStrategy()

    assert ante_of(bot) == 1
    assert plays(bot, *JUNK)


# The house bots


@pytest.mark.parametrize(("bot", "ante"), [(Always, 10), (Doubler, 10), (Q64, 10), (Random, 50)])
def test_a_house_bot_has_an_ante_of_its_own_or_what_it_was_made_with(
    bot: type[Any], ante: int
) -> None:
    assert ante_of(bot()) == ante
    assert ante_of(bot(ante=25)) == 25
    assert [ante_of(bot(ante=10), cash) for cash in (20, 19, 3, 2)] == [10, 9, 1, 1]


@pytest.mark.parametrize("bot", HOUSE_BOTS)
@pytest.mark.parametrize("ante", [0, -5])
def test_an_ante_below_one_is_refused(bot: type[Any], ante: int) -> None:
    with pytest.raises(UsageError, match="ante of at least 1"):
        bot(ante=ante)


@pytest.mark.parametrize("bot", HOUSE_BOTS)
@pytest.mark.parametrize("ante", [1, 10, 10_000])
def test_a_house_bot_plays_legally_until_it_is_broke(bot: type[Any], ante: int) -> None:
    player = bot(ante=ante)
    player.seed(1)

    result = arena.play("tcp", [player], settings={"stake": 60, "rounds": 300}, seed=1)

    assert result.termination.kind is Ending.COMPLETED


@pytest.mark.parametrize("bot", [Q64(), Doubler()])
def test_q64_and_doubler_play_queen_six_four_or_better(bot: PlayerStrategy) -> None:
    least = ("Qs", "6h", "4d")

    assert plays(bot, *least)
    assert not plays(bot, "Qs", "6h", "3d")
    assert not plays(bot, "Qs", "5h", "4d")
    assert not plays(bot, "Js", "Th", "8d")
    assert plays(bot, "2s", "2h", "3d")
    for hand in list(combinations(PACK, 3))[::37]:
        assert plays(bot, *hand) == (compare(hand, least) >= 0)
        assert plays(Always(), *hand)


def test_random_does_not_look_at_its_hand() -> None:
    bot = Random()
    bot.seed(1)

    played = [plays(bot, *JUNK) for _ in range(400)]
    assert 150 < sum(played) < 250

    bot.seed(1)
    assert [plays(bot, *ACES_UP) for _ in range(400)] == played


@pytest.mark.parametrize(("outcome", "ante"), [(-2, 20), (-1, 20), (0, 10), (1, 5), (2, 5)])
def test_doubler_doubles_after_a_loss_until_it_wins(outcome: int, ante: int) -> None:
    bot = Doubler(ante=5)

    hears(bot, -2, ante=5)
    assert ante_of(bot) == 10
    hears(bot, outcome, ante=10)
    assert ante_of(bot) == ante


def test_doubler_antes_no_more_than_it_may() -> None:
    bot = Doubler()
    hears(bot, -2, ante=400)

    assert ante_of(bot, cash=200) == 100
    bot.reset()
    assert ante_of(bot) == 10
