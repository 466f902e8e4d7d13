"""What all strategies of ours share, and what holds of the house bots of every game."""

from __future__ import annotations

import random
from collections import Counter
from importlib import import_module
from typing import Any

import pytest

from arena.games.catalogue import GAMES
from arena.lab.in_process import play
from bots import ace_king_queen, blackjack, gin_rummy, high_low, three_card_poker
from bots.strategy import BaseStrategy, RandomMixin, choose
from protocol import blackjack as blackjack_protocol
from protocol import gin_rummy as gin_protocol
from protocol.ace_king_queen import Open, Respond
from protocol.high_low import Swap
from protocol.messages import Ending
from protocol.strategy import find, house_bots
from protocol.three_card_poker import Play
from protocol.vocabulary import Question, Range


def test_choose_takes_each_listed_answer_equally_often() -> None:
    rng = random.Random(1)
    counts = Counter(choose(("a", "b", "c"), rng) for _ in range(3000))

    assert set(counts) == {"a", "b", "c"}
    assert all(abs(count - 1000) < 4 * 26 for count in counts.values())  # √(3000·2/9)


def test_choose_takes_each_integer_of_a_range_both_ends_included() -> None:
    rng = random.Random(1)

    assert {choose(Range(5, 7), rng) for _ in range(100)} == {5, 6, 7}


def seeded(seed: int | str | None) -> list[float]:
    """The numbers that a strategy draws from a source of its own."""
    strategy = BaseStrategy()
    if seed is not None:
        strategy.seed(seed)
    source = strategy.random
    assert strategy.random is source
    return [source.random() for _ in range(3)]


def test_a_seed_makes_a_strategy_repeatable() -> None:
    assert seeded(1) == seeded(1) != seeded("1/0") == seeded("1/0")
    assert seeded(None) != seeded(None)


def test_a_strategy_that_does_not_answer_says_so() -> None:
    with pytest.raises(TypeError, match="BaseStrategy does not answer 'open'"):
        BaseStrategy().decide(Open(1, "A"))


def test_any_question_can_be_answered_at_random() -> None:
    bot = RandomMixin()

    assert {bot.decide(Open(1, "A")) for _ in range(50)} == {"bet", "check"}


_TEN = ("2c", "3c", "4c", "5c", "6c", "7c", "8c", "9c", "Tc", "Jc")
_KNOCK = gin_protocol.TurnAnswer("Kd", True)


@pytest.mark.parametrize(
    ("base", "method", "question"),
    [
        (ace_king_queen.PlayerStrategy, "bet", Open(1, "K")),
        (ace_king_queen.PlayerStrategy, "call", Respond(1, "K")),
        (three_card_poker.PlayerStrategy, "play", Play(("2c", "4d", "9h"), 10, 100)),
        (blackjack.PlayerStrategy, "draw", blackjack_protocol.Draw("7h", ("Tc", "6d"), 16, False)),
        (high_low.PlayerStrategy, "swap", Swap("3c", "9h")),
        (gin_rummy.PlayerStrategy, "will_take_top_discard", gin_protocol.Offer("Kd", _TEN)),
        (gin_rummy.PlayerStrategy, "will_take_top_discard", gin_protocol.Draw("Kd", _TEN)),
        (gin_rummy.PlayerStrategy, "knock", gin_protocol.Turn("Kd", (*_TEN, "Kd"), (_KNOCK,))),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_a_text_in_the_place_of_true_or_false_is_an_error_that_names_the_method(
    base: type[BaseStrategy], method: str, question: Question[Any]
) -> None:
    def bot(returned: object) -> BaseStrategy:
        methods = {"take_turn": lambda self, drawn: drawn, "starter": 0}
        made: BaseStrategy = type(
            "Bot", (base,), {**methods, method: lambda self, *args: returned}
        )()
        return made

    with pytest.raises(TypeError, match=rf"from `{method}` in \S+\.py:\d+, got 'fold'$"):
        bot("fold").decide(question)
    for fine in (True, False, 1):
        bot(fine).decide(question)
    with pytest.warns(UserWarning, match=rf"`{method}` returned None, which is no"):
        bot(None).decide(question)


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
def test_a_question_of_another_game_is_a_mistake_of_the_caller(game: str) -> None:
    strategy = import_module(f"bots.{game}").PlayerStrategy()
    other: Any = Swap("As", "2c") if game == "ace_king_queen" else Open(1, "A")

    with pytest.raises(AssertionError, match="ask nothing else"):
        strategy.decide(other)
