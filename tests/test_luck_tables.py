"""What `tests/tools/luck_tables.py` computes, and in short what it is to show."""

from __future__ import annotations

from math import sqrt
from random import Random
from statistics import fmean, stdev, variance

import pytest

from tests.tools.luck_tables import (
    FIT_SEED,
    MOST_ERRORS,
    SEED,
    TABLES,
    LuckOfSeat,
    MeasuredTable,
    fitted,
    games_needed,
    lines,
    samples,
    seating,
)

LEFT = {"simple": 0.02, "counting": 0.02, "competitor": 0.04}
"""How much of the variance of a hand of blackjack may be left; other games have tests like it."""


@pytest.mark.parametrize("bot", LEFT)
def test_luck_is_0_on_average_and_without_it_little_variance_is_left(bot: str) -> None:
    [table] = (table for table in TABLES if table.bots == (bot,) and table.game == "blackjack")
    values = [value[0] for seed in range(10) for value in samples(table, seed)]
    luck = [one.luck for one in values]

    assert len(values) >= 1000
    assert abs(fmean(luck)) < MOST_ERRORS * stdev(luck) / sqrt(len(luck))
    assert variance([one.without for one in values]) <= LEFT[bot] * variance(
        [o.gain for o in values]
    )


def test_a_fit_finds_the_weights_of_each_term_whatever_bots_gain_in_the_mean() -> None:
    random = Random(1)
    groups = []
    for mean in (0.2, 0.9):
        terms = [tuple(random.gauss(3, 1) for _ in range(3)) for _ in range(50)]
        groups.append(
            [(mean + 2 * one - 0.5 * three, (one, two, three)) for one, two, three in terms]
        )

    assert fitted(groups) == pytest.approx([2, 0, -0.5], abs=1e-9)


def test_nothing_is_measured_on_matches_that_weights_were_fitted_on() -> None:
    assert FIT_SEED + 6 * 100_000 <= SEED


def test_half_of_the_variance_needs_half_of_the_games() -> None:
    # (1.95996 + 0.84162)² · variance / mean²: 7.849 for a variance of the square of the mean.
    values = [0.0, 2.0] * 5000

    assert games_needed(values) == pytest.approx(7.85, abs=0.01)
    assert games_needed([1 + (value - 1) / 2**0.5 for value in values]) == pytest.approx(
        7.85 / 2, abs=0.01
    )


def test_a_mean_far_from_0_is_reported() -> None:
    table = MeasuredTable("gin_rummy", ("expert", "simple"))

    def is_near(shift: float) -> list[bool]:
        lucks = [shift + (-1) ** number for number in range(100)]
        values = [(LuckOfSeat(2 * luck, luck), LuckOfSeat(0.1 * luck, -luck)) for luck in lucks]
        return [near for _, near in lines(table, values)]

    assert all(is_near(0.3))
    assert is_near(0.4).count(False) == 2


def test_values_follow_the_bots_and_not_the_seats() -> None:
    table = MeasuredTable("high_low", ("random", "counter", "timid", "bold"), {"max_shuffles": 2})
    seeds = range(40)
    values = [samples(table, seed)[0] for seed in seeds]

    assert len({tuple(seating(table, seed)) for seed in seeds}) > 10
    assert sum(random.gain for random, *_ in values) < 0 < sum(value[1].gain for value in values)
