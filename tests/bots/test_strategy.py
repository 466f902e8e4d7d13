"""What all strategies of ours share."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from bots import ace_king_queen, blackjack, gin_rummy, high_low, three_card_poker
from bots.strategy import BaseStrategy, RandomMixin, choose
from protocol import blackjack as blackjack_protocol
from protocol import gin_rummy as gin_protocol
from protocol.ace_king_queen import Open, Respond
from protocol.high_low import Swap
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


def test_a_seed_makes_a_strategy_repeatable() -> None:
    def numbers(seed: int | str) -> list[float]:
        strategy = BaseStrategy()
        strategy.seed(seed)
        return [strategy.random.random() for _ in range(3)]

    assert numbers(1) == numbers(1)
    assert numbers("1/0") == numbers("1/0")
    assert numbers(1) != numbers("1/0")


def test_two_strategies_draw_different_numbers_from_sources_of_their_own() -> None:
    first, second = BaseStrategy(), BaseStrategy()
    source = first.random

    assert first.random is source
    assert first.random.random() != second.random.random()


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

    with pytest.raises(TypeError, match=f"expected True or False from {method}, got 'fold'"):
        bot("fold").decide(question)
    for fine in (True, False, None, 1):
        bot(fine).decide(question)
