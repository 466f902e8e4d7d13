"""What all strategies of ours share."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from bots.strategy import BaseStrategy, RandomMixin, choose
from protocol.ace_king_queen import Open
from protocol.vocabulary import Range


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

    assert first.random is first.random
    assert first.random.random() != second.random.random()


def test_a_strategy_that_does_not_answer_says_so() -> None:
    with pytest.raises(TypeError, match="BaseStrategy does not answer 'open'"):
        BaseStrategy().decide(Open(1, "A"))


def test_any_question_can_be_answered_at_random() -> None:
    bot = RandomMixin()

    assert {bot.decide(Open(1, "A")) for _ in range(50)} == {"bet", "check"}
