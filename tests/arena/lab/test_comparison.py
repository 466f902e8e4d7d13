"""When two bots are told apart, level or alike."""

from __future__ import annotations

import random

import pytest

from arena.lab.comparison import Comparison, Standpoint
from arena.strength.interval import beta_sequence


def games(*values: float, level: float = 0.02) -> Comparison:
    comparison = Comparison(is_share=True, level=level)
    for value in values:
        comparison.add(value)
    return comparison


def gains(*values: float, level: float = 0.02) -> Comparison:
    comparison = Comparison(is_share=False, level=level)
    for value in values:
        comparison.add(value)
    return comparison


def test_nothing_is_known_before_the_first_value() -> None:
    for comparison in games(), gains():
        assert comparison.interval is None
        assert comparison.standpoint is Standpoint.OPEN
        assert comparison.more_needed() is None


def test_who_wins_all_games_is_better_as_soon_as_a_half_is_refused() -> None:
    comparison = games()
    while comparison.standpoint is Standpoint.OPEN:
        comparison.add(1.0)

    count = comparison.values.count
    assert comparison.standpoint is Standpoint.FIRST
    assert 5 <= count <= 15
    assert beta_sequence(count - 1, count - 1).low <= 0.5 < beta_sequence(count, count).low


def test_the_second_may_be_better() -> None:
    assert games(*[0.0] * 15).standpoint is Standpoint.SECOND
    assert gains(*[-1.0, -2.0] * 50).standpoint is Standpoint.SECOND


def test_draws_tell_nobody_apart() -> None:
    assert games(*[0.5] * 100).standpoint is Standpoint.OPEN


def test_within_the_level_two_bots_are_level() -> None:
    even = [1.0, 0.0] * 200

    assert games(*even, level=0.02).standpoint is Standpoint.OPEN
    assert games(*even, level=0.10).standpoint is Standpoint.LEVEL
    assert gains(*[1.0, -1.0] * 200, level=0.2).standpoint is Standpoint.LEVEL


def test_gains_are_open_before_the_20th() -> None:
    values = [10.0, 11.0] * 10

    assert gains(*values[:19]).standpoint is Standpoint.OPEN
    assert gains(*values).standpoint is Standpoint.FIRST


def test_who_never_differs_plays_alike() -> None:
    assert gains(*[0.0] * 99).standpoint is Standpoint.OPEN
    assert gains(*[0.0] * 100).standpoint is Standpoint.ALIKE
    assert gains(*[0.0] * 99, 0.001).standpoint is not Standpoint.ALIKE


def test_the_same_gain_every_time_is_a_gain_and_has_a_width() -> None:
    interval = gains(*[3.0] * 100).interval

    assert interval is not None
    assert 0 < interval.low < 3 < interval.high


def test_before_the_20th_gain_it_says_how_many_more_it_takes() -> None:
    assert gains(10.0, 11.0).more_needed() == 18
    assert gains(0.0, 0.0).more_needed() is None


@pytest.mark.parametrize("share", [0.55, 0.5])
def test_what_more_it_takes_is_enough_and_not_too_much(share: float) -> None:
    draw = random.Random(1)
    comparison = games(*[1.0, 0.0] * 10, level=0.05)
    for _ in range(30):
        comparison.add(float(draw.random() < share))
    more, count = comparison.more_needed(), comparison.values.count
    mean = comparison.values.mean
    assert more is not None
    assert mean is not None

    def is_settled(games_in_all: int) -> bool:
        found = beta_sequence(mean * games_in_all, games_in_all)
        return not found.low <= 0.5 <= found.high or max(found.high - 0.5, 0.5 - found.low) <= 0.05

    assert is_settled(count + more)
    assert not is_settled(count + more - 1)
