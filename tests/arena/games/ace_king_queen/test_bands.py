"""Bands of counted shares, and tests of whether shares differ."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from scipy.stats import binom, chi2_contingency, fisher_exact  # type: ignore[import-untyped]

from arena.games.ace_king_queen.bands import (
    Box,
    box,
    differs,
    exploitability_band,
    extremes,
    halves_differ,
)
from arena.games.ace_king_queen.values import EQUILIBRIUM, exploitability


@pytest.mark.parametrize("done", [1, 7, 19])
def test_at_the_ends_of_an_interval_the_count_is_as_rare_as_may_be(done: int) -> None:
    ((low, high),) = box([(done, 20)], 5)

    assert binom.sf(done - 1, 20, low) == pytest.approx(0.005)
    assert binom.cdf(done, 20, high) == pytest.approx(0.005)


def test_what_was_always_or_never_done_may_be_sure() -> None:
    never, always = box([(0, 20), (20, 20)], 1)

    assert [*never, *always] == pytest.approx([0, 1 - 0.025 ** (1 / 20), 0.025 ** (1 / 20), 1])


def test_what_was_never_seen_may_be_anything() -> None:
    assert box([(0, 0)], 6) == [(0.0, 1.0)]


def test_extremes_are_found_at_corners() -> None:
    assert extremes(lambda corner: corner[0] - corner[1], [(0.25, 0.5), (0.0, 1.0)]) == (-0.75, 0.5)


def some_box(random: Random) -> Box:
    low = [random.random() * 0.8 for _ in range(6)]
    return [(least, least + random.random() * 0.2) for least in low]


@pytest.mark.stats
@pytest.mark.parametrize("seed", range(5))
def test_no_strategy_in_a_box_is_outside_its_band(seed: int) -> None:
    shares = some_box(Random(seed))
    low, high = exploitability_band(shares)
    # Of a finer and finer grid the least comes down to the least of all.
    grid = [
        exploitability(point) for point in product(*([a, a + (b - a) / 2, b] for a, b in shares))
    ]

    assert low - 1e-9 <= min(grid) < low + 0.02
    assert max(grid) == pytest.approx(high)


def test_a_box_with_the_equilibrium_in_it_begins_at_0() -> None:
    around = [(max(0.0, float(e) - 0.1), min(1.0, float(e) + 0.1)) for e in EQUILIBRIUM]

    low, high = exploitability_band(around)

    assert low == pytest.approx(0, abs=1e-9)
    assert high > 0.05


def test_chi_square_is_that_of_scipy() -> None:
    counts = [(20, 100), (40, 110), (60, 150)]
    table = [[done, asked - done] for done, asked in counts]

    assert differs(counts) == pytest.approx(chi2_contingency(table, correction=False).pvalue)


def test_matches_with_too_few_answers_are_left_out() -> None:
    counts = [(20, 100), (40, 110)]

    assert differs([*counts, (3, 3), (0, 0)]) == pytest.approx(differs(counts), rel=0.1)


@pytest.mark.parametrize(
    "counts",
    [[], [(0, 0)], [(3, 3), (5, 5)], [(0, 300), (1, 300)], [(50, 100)], [(90, 100), (1, 2)]],
)
def test_what_is_always_done_or_too_seldom_differs_in_nothing(
    counts: list[tuple[int, int]],
) -> None:
    assert differs(counts) == 1.0


@pytest.mark.parametrize(
    ("first", "second"),
    [((3, 10), (8, 11)), ((0, 10), (10, 10)), ((300, 900), (350, 901)), ((0, 0), (2, 5))],
)
def test_fishers_test_is_that_of_scipy(first: tuple[int, int], second: tuple[int, int]) -> None:
    table = [[done, asked - done] for done, asked in (first, second)]

    assert halves_differ(first, second) == pytest.approx(fisher_exact(table).pvalue)
