"""What rounds add up to: medians, ranges, and intervals that say how sure a ratio is."""

from __future__ import annotations

from itertools import product

import pytest

from arena.lab.bench.spread import compared, spread


def test_a_spread_is_the_median_between_the_lowest_and_the_highest() -> None:
    found = spread([3.0, 1.0, 2.0, 10.0])

    assert (found.median, found.range) == (2.5, (1.0, 10.0))


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([0.7, 0.9, 0.8, 0.75, 0.85, 0.95], "faster"),
        ([1.1, 1.3, 1.2, 1.4, 1.5, 1.6], "slower"),
        ([0.9, 1.1, 0.95, 1.05, 0.9, 1.2], "no difference seen"),
    ],
)
def test_a_side_is_faster_if_the_whole_interval_says_so(ratios: list[float], verdict: str) -> None:
    assert compared(ratios).verdict == verdict


def test_with_few_rounds_the_interval_is_all_of_them_and_less_sure() -> None:
    found = compared([0.9, 0.8, 0.7, 0.6, 0.5])

    assert (found.ratio, found.low, found.high) == (0.7, 0.5, 0.9)
    assert (found.level, found.verdict) == (0.9375, "too few rounds to say")


def test_with_many_rounds_single_ratios_that_lie_far_off_do_not_count() -> None:
    found = compared([0.01, 0.8, 0.81, 0.82, 0.83, 0.84, 0.85, 0.86, 99.0])

    assert (found.low, found.high) == (0.8, 0.86)
    assert found.level == pytest.approx(0.9609, abs=1e-4)


@pytest.mark.parametrize("count", [1, 2, 5, 6, 9, 12])
def test_the_level_is_the_share_of_all_coin_throws(count: int) -> None:
    """A ratio is above 1 or below it by a coin; the interval contains 1 so often."""
    throws = list(product((0.5, 2.0), repeat=count))
    contains = [found.low <= 1 <= found.high for found in map(compared, throws)]

    assert sum(contains) / len(throws) == pytest.approx(compared(throws[0]).level)
