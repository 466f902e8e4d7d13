"""What ways to play Ace-King-Queen are worth, against an enumeration of its own."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product
from random import Random

import pytest

from arena.games.ace_king_queen.values import (
    EQUILIBRIUM,
    best_response,
    exploitability,
    exploited,
    gains,
    losses,
    value,
)

THIRD, HALF = Fraction(1, 3), Fraction(1, 2)
Six = tuple[Fraction | int, ...]

# By house bot: bets with A, K, Q, and calls with A, K, Q.
BOTS: dict[str, Six] = {
    "honest": (1, 0, 0, 1, 0, 0),
    "bluffer": (1, 0, 1, 1, 1, 0),
    "nash": (1, 0, THIRD, 1, THIRD, 0),
    "random": (HALF,) * 6,
    "bets and calls all": (1,) * 6,
    "checks and folds all": (0,) * 6,
}
PURE: list[Six] = [*product((0, 1), repeat=6)]


def enumerated(first: Six, second: Six) -> Fraction:
    """What a hand brings the first, as a sum over all that can happen (rules A2 to A5)."""
    total = Fraction(0)
    for first_bets in True, False:
        bettor, caller = (first, second) if first_bets else (second, first)
        for cards in permutations("AKQ", 2):
            higher = 1 if cards[0] < cards[1] else -1  # A, K, Q is also the order of the alphabet
            bets = Fraction(bettor["AKQ".index(cards[0])])
            calls = Fraction(caller[3 + "AKQ".index(cards[1])])
            won = (1 - bets) * higher + bets * (1 - calls) * 1 + bets * calls * 2 * higher
            total += Fraction(1, 12) * (won if first_bets else -won)
    return total


def some_strategies(number: int) -> list[Six]:
    random = Random(20)
    return [tuple(Fraction(random.randint(0, 7), 7) for _ in range(6)) for _ in range(number)]


@pytest.mark.parametrize("first", BOTS.values(), ids=BOTS)
@pytest.mark.parametrize("second", BOTS.values(), ids=BOTS)
def test_the_value_of_a_pair_is_that_of_all_hands(first: Six, second: Six) -> None:
    assert value(first, second) == enumerated(first, second)


@pytest.mark.stats
@pytest.mark.parametrize("bot", [*BOTS.values(), *some_strategies(20)])
def test_no_pure_strategy_wins_more_than_the_best_response(bot: Six) -> None:
    best = max(enumerated(pure, bot) for pure in PURE)

    assert exploitability(bot) == best
    assert enumerated(best_response(bot), bot) == best


@pytest.mark.parametrize(
    ("bot", "taken"),
    [
        ("nash", 0),
        ("honest", Fraction(1, 12)),
        ("bluffer", Fraction(1, 6)),
        ("bets and calls all", Fraction(1, 3)),
    ],
)
def test_an_opponent_that_knows_a_bot_takes_so_much(bot: str, taken: Fraction) -> None:
    assert exploitability(BOTS[bot]) == taken


def test_the_equilibrium_wins_a_sixth_from_a_bot_that_always_bets_and_calls() -> None:
    assert value(EQUILIBRIUM, BOTS["bets and calls all"]) == Fraction(1, 6)


@pytest.mark.parametrize("bot", ["honest", "bluffer"])
def test_the_equilibrium_wins_nothing_from_a_bot_that_does_nothing_foolish(bot: str) -> None:
    assert value(EQUILIBRIUM, BOTS[bot]) == 0


@pytest.mark.parametrize("bot", [*BOTS.values(), *some_strategies(20)])
def test_losses_sum_to_what_the_equilibrium_wins(bot: Six) -> None:
    assert sum(losses(bot)) == enumerated(EQUILIBRIUM, bot)
    assert all(loss >= 0 for loss in losses(bot))


@pytest.mark.stats
@pytest.mark.parametrize("bot", [*BOTS.values(), *some_strategies(5)])
def test_what_is_exploited_sums_to_the_exploitability(bot: Six) -> None:
    assert sum(exploited(bot)) == max(enumerated(pure, bot) for pure in PURE)


def test_what_one_spot_does_to_no_other_is_exploited_as_it_stands() -> None:
    only_calls_queens = (1, 0, THIRD, 1, THIRD, 1)

    # The only mistake: a twelfth a hand that calls, as two queens in three are not bet against.
    assert exploited(only_calls_queens) == [0, 0, 0, 0, 0, exploitability(only_calls_queens)]


def test_spots_that_are_alike_are_exploited_alike() -> None:
    random = BOTS["random"]
    parts = exploited(random)

    # Betting and calling do not depend on one another, so each role's parts sum to its own.
    bets_only = (*random[:3], *EQUILIBRIUM[3:])
    assert sum(parts[:3]) == exploitability(bets_only)


def test_gains_are_what_changing_one_spot_brings() -> None:
    for other in some_strategies(5):
        for spot, gain in enumerate(gains(other)):
            for does in 0, 1:
                assert does * gain == enumerated(
                    tuple(does if at == spot else 0 for at in range(6)), other
                ) - enumerated((0,) * 6, other)
