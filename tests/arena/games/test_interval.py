"""Intervals: against tables and exact sums, and how often they are wrong."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.games.interval import (
    FEWEST,
    Interval,
    MeanPart,
    SharePart,
    beta_sequence,
    mean_of,
    normal_sequence,
    share_of,
    student,
    student_quantile,
    wider,
    wilson,
)
from tests.support.not_none import not_none

LOOKS = 200


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.7062), (2, 4.30265), (3.5, 2.94009), (19, 2.09302), (100, 1.98397), (1e7, 1.95996)],
)
def test_quantiles_are_those_of_the_tables(degrees: float, quantile: float) -> None:
    assert student_quantile(degrees) == pytest.approx(quantile, abs=1e-4)


def test_a_share_of_13_in_20_is_as_in_the_textbook() -> None:
    interval = wilson(13 / 20, 20)

    assert (interval.low, interval.high) == pytest.approx((0.43285, 0.81881), abs=1e-5)
    assert (interval.level, interval.method) == (0.95, "Wilson")


@given(st.integers(1, 10_000), st.data())
def test_an_interval_of_a_share_has_a_width_and_holds_the_share(
    count: int, data: st.DataObject
) -> None:
    won = data.draw(st.integers(0, count))
    for interval in (wilson(won / count, count), beta_sequence(won, count)):
        assert 0 <= interval.low <= won / count <= interval.high <= 1
        assert interval.high > interval.low


@pytest.mark.parametrize("share", [0.5, 0.8])
@pytest.mark.parametrize("count", [20, 100])
def test_wilsons_interval_holds_the_true_share_in_94_to_98_5_of_100_cases(
    count: int, share: float
) -> None:
    held = 0.0
    for won in range(count + 1):
        interval = wilson(won / count, count)
        if interval.low <= share <= interval.high:
            held += comb(count, won) * share**won * (1 - share) ** (count - won)

    assert 0.94 <= held <= 0.985


def test_one_part_is_as_its_own_interval_and_equal_parts_as_one() -> None:
    assert share_of([SharePart(1, 13, 20)]) == wilson(13 / 20, 20)
    halves = share_of([SharePart(0.5, 50, 100), SharePart(0.5, 50, 100)])
    whole = wilson(0.5, 200)
    assert halves is not None
    assert halves.low == pytest.approx(whole.low, abs=1e-3)
    assert share_of([]) is None


def test_how_opponents_differ_is_no_chance() -> None:
    parts = [SharePart(0.5, 95, 100), SharePart(0.5, 5, 100)]
    interval, pooled = share_of(parts), wilson(0.5, 200)

    assert interval is not None
    assert interval.high - interval.low < 0.6 * (pooled.high - pooled.low)
    mean = not_none(mean_of([MeanPart(0.5, 10, 4, 50), MeanPart(0.5, -10, 4, 50)]))
    assert (mean.low, mean.high) == pytest.approx((-0.3969, 0.3969), abs=1e-3)


def test_where_nothing_can_be_said_there_is_no_interval() -> None:
    assert student(3, 0, 5) is None
    assert mean_of([MeanPart(1, 3, None, 1)]) is None
    assert mean_of([]) is None
    assert normal_sequence(0, 1, FEWEST - 1) is None
    assert normal_sequence(0, 0, FEWEST) is None
    assert beta_sequence(0, 0).high - beta_sequence(0, 0).low == 1


def test_the_wider_of_two_is_taken() -> None:
    narrow, wide = Interval(0, 1, "a"), Interval(-1, 1, "b")

    assert wider(narrow, wide) == wider(wide, narrow) == wide
    assert wider(None, narrow) == wider(narrow, None) == narrow
    assert wider(None, None) is None
    assert narrow.scaled(20) == Interval(0, 20, "a")


def test_who_looks_after_every_game_refuses_the_true_share_in_one_of_twenty_cases_at_most() -> None:
    """Exact: the probability of every score that a look has not refused yet."""
    open_, refused = {0: 1.0}, 0.0
    for games in range(1, LOOKS + 1):
        after: dict[int, float] = {}
        for won, chance in open_.items():
            after[won] = after.get(won, 0.0) + chance / 2
            after[won + 1] = after.get(won + 1, 0.0) + chance / 2
        open_ = {}
        for won, chance in after.items():
            interval = beta_sequence(won, games)
            if interval.low <= 0.5 <= interval.high:
                open_[won] = chance
            else:
                refused += chance

    assert 0.005 < refused < 0.05


def test_a_sequence_is_wider_than_an_interval_for_one_look_and_narrows() -> None:
    widths = []
    for count in (50, 200, 1000):
        looked = beta_sequence(0.6 * count, count)
        once = wilson(0.6, count)
        assert looked.low < once.low < once.high < looked.high
        widths.append(looked.high - looked.low)
        chips = not_none(normal_sequence(0.6, 0.24, count))
        assert chips.low < once.low < once.high < chips.high

    assert widths == sorted(widths, reverse=True)
