"""Chains to a goal, against programs in plain Python that are written another way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

import numpy as np
import pytest

from arena.games.three_card_poker.chain import (
    STEPS,
    BestForGoal,
    GoalChain,
    best_for_goal,
    play_odds,
    round_odds,
)
from arena.games.three_card_poker.table import (
    CLASSES,
    DEALERS_HANDS,
    HANDS,
    LINE,
    OUTCOMES,
    hand_classes,
)
from bots.three_card_poker import Q64, Always
from protocol.three_card_poker import ThreeCardPokerSettings
from tests.tools.league_odds import chance, outcomes

Number = TypeVar("Number", float, Fraction)

Q64_SHARES = [float(one.group < LINE) for one in hand_classes(False)]


def antes_of(ante: Callable[[int], int], goal: int) -> list[int]:
    return [0, 0, *(min(ante(cash), cash // 2) for cash in range(2, goal))]


def eliminated(
    start: int, goal: int, antes: Sequence[int], odds: Mapping[int, Number], one: Number
) -> Number:
    """The probability of the goal by elimination of one cash after the other, without numpy."""
    rows: dict[int, dict[int, Number]] = {}
    open_ = [start]
    for cash in open_:
        rows[cash] = {}
        for step, share in odds.items():
            after = min(goal, cash + step * antes[cash])
            if after >= 2:
                rows[cash][after] = rows[cash].get(after, 0 * one) + share
                if after < goal and after not in open_:
                    open_.append(after)
    for cash in reversed(open_):
        row = rows.pop(cash)
        stays = one - row.pop(cash, 0 * one)
        row = {after: share / stays for after, share in row.items()}
        if cash == start:
            return row.get(goal, 0 * one)
        for other in rows.values():
            through = other.pop(cash, None)
            if through is not None:
                for after, share in row.items():
                    other[after] = other.get(after, 0 * one) + through * share
    raise AssertionError("the start is eliminated last")


@pytest.mark.stats
def test_the_odds_of_a_round_are_those_of_all_hands() -> None:
    for bot, shares in (Q64(), Q64_SHARES), (Always(), [1.0] * CLASSES):
        found = dict(zip(STEPS, round_odds(shares, False), strict=True))
        counted = outcomes(bot)

        assert found == pytest.approx({step: float(counted.get(step, 0)) for step in STEPS})


def test_q64_reaches_a_goal_as_likely_as_elimination_in_exact_fractions_says() -> None:
    goal = 60
    antes = antes_of(lambda cash: 10, goal)
    values = GoalChain(goal, antes, round_odds(Q64_SHARES, False)).values()
    for start in 40, 59, 3:
        exact = eliminated(start, goal, antes, outcomes(Q64()), Fraction(1))

        assert abs(float(exact) - values[start]) < 1e-12


@pytest.mark.stats
@pytest.mark.parametrize(
    "ante", [lambda cash: 10, lambda cash: 1 + cash // 16], ids=["fixed", "share of the cash"]
)
def test_a_leagues_goal_is_reached_as_likely_as_elimination_says(
    ante: Callable[[int], int],
) -> None:
    goal = 1125
    antes = antes_of(ante, goal)
    values = GoalChain(goal, antes, round_odds(Q64_SHARES, False)).values()
    odds = {step: float(share) for step, share in outcomes(Q64()).items()}

    assert abs(eliminated(1000, goal, antes, odds, 1.0) - values[1000]) < 1e-12


@pytest.mark.stats
def test_K3_within_the_rounds_of_a_league_it_is_what_league_odds_say() -> None:
    settings = ThreeCardPokerSettings(stake=200, goal=225, rounds=300)
    chain = GoalChain(225, antes_of(lambda cash: 10, 225), round_odds(Q64_SHARES, False))
    simulated = chance(Q64(), settings)

    assert abs(chain.within(300)[200] - simulated.reached) < simulated.dropped + 1e-12
    assert chain.within(300)[200] < chain.values()[200]
    assert chain.within(100_000)[200] == pytest.approx(chain.values()[200], abs=1e-13)


def test_slopes_say_what_a_hand_more_changes() -> None:
    goal, number = 60, 800
    antes = antes_of(lambda cash: 7, goal)
    chain = GoalChain(goal, antes, round_odds(Q64_SHARES, False))
    one = hand_classes(False)[number]
    other = [*Q64_SHARES]
    other[number] = 1 - other[number]
    change = (other[number] - Q64_SHARES[number]) * one.size
    then = GoalChain(goal, antes, round_odds(other, False)).values()[40]

    slope = play_odds(False)[number] @ chain.slopes(40)
    assert change * slope == pytest.approx(then - chain.values()[40], rel=1e-2)


def looked_at(best: BestForGoal, cash: int, ante: int, pair_kicker: bool) -> float:
    """What an ante is worth: each class by itself is played or folded, without numpy."""
    values = best.values.tolist()
    after = {step: values[min(best.goal, cash + step * ante)] for step in STEPS}
    folded = after[-1]
    paid = [after[outcome] for outcome in OUTCOMES]
    worth = 0.0
    for one in hand_classes(pair_kicker):
        a, b, c, d = one.counts
        played = (a * paid[0] + b * paid[1] + c * paid[2] + d * paid[3]) / DEALERS_HANDS
        worth += one.size * max(folded, played)
    return worth / HANDS


@pytest.mark.parametrize("pair_kicker", [False, True])
def test_no_ante_and_no_play_is_better_than_the_best(pair_kicker: bool) -> None:
    best = best_for_goal(30, pair_kicker)
    for cash in range(2, 30):
        antes = {ante: looked_at(best, cash, ante, pair_kicker) for ante in range(1, cash // 2 + 1)}

        assert max(antes.values()) == pytest.approx(best.values[cash], abs=1e-12)
        assert antes[int(best.antes[cash])] == pytest.approx(best.values[cash], abs=1e-12)
        for ante, worth in antes.items():
            assert best.cost_of(cash, ante) == pytest.approx(best.values[cash] - worth, abs=1e-12)


@pytest.mark.stats
def test_no_ante_is_better_in_a_league() -> None:
    best = best_for_goal(1125, False)
    values = [looked_at(best, 1000, ante, False) for ante in range(1, 501, 2)]

    assert max(values) == pytest.approx(best.values[1000], abs=1e-12)
    assert best.values[1000] == pytest.approx(0.857345, abs=1e-6)
    assert np.all(np.diff(best.values) >= 0)


def test_with_the_rounds_needed_the_limit_hardly_matters() -> None:
    best = best_for_goal(60, False)

    assert best.rounds_needed(0.5) < best.rounds_needed(1e-4) <= 64
