"""Samples and intervals: against tables and exact sums, and how often they are wrong."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from math import comb, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom  # type: ignore[import-untyped]

from arena.games.statistics import (
    FEWEST,
    Interval,
    MeanPart,
    Sample,
    SharePart,
    UnitCounter,
    UnitSums,
    beta_sequence,
    clopper_pearson,
    error_of_sum,
    mean_of,
    normal_sequence,
    plural,
    share_of,
    signed,
    student,
    student_quantile,
    time_of,
    wider,
    wilson,
    with_interval,
)
from tests.support.not_none import not_none

LOOKS = 200


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.7062), (2, 4.30265), (3.5, 2.94009), (19, 2.09302), (100, 1.98397), (1e7, 1.95996)],
)
def test_quantiles_are_those_of_the_tables(degrees: float, quantile: float) -> None:
    assert student_quantile(degrees) == pytest.approx(quantile, abs=1e-4)


def test_a_quantile_that_no_number_can_hold_is_a_large_one() -> None:
    assert student_quantile(0.01, 0.9999) > 1e150


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


@pytest.mark.parametrize(("count", "of"), [(0, 10), (3, 10), (10, 10)])
def test_two_and_a_half_per_cent_are_left_on_either_side(count: int, of: int) -> None:
    low, high = clopper_pearson(count, of)

    assert low == 0 if count == 0 else binom.sf(count - 1, of, low) == pytest.approx(0.025)
    assert high == 1 if count == of else binom.cdf(count, of, high) == pytest.approx(0.025)


def test_a_share_that_was_never_seen_may_be_anything() -> None:
    assert clopper_pearson(0, 0) == (0.0, 1.0)


# ---- Samples

values = st.lists(st.integers(-1000, 1000), min_size=2, max_size=50)


def sample_of(values: Iterable[float]) -> Sample:
    sample = Sample()
    for value in values:
        sample.add(value)
    return sample


def test_no_values_have_no_mean_and_sum_to_nothing() -> None:
    sample = Sample()

    assert (sample.count, sample.mean, sample.total) == (0, None, 0)
    assert sample.variance is sample.standard_error is sample.error_of_total is None


@given(values | st.lists(st.integers(-9, 9), min_size=1, max_size=1))
def test_agrees_with_the_standard_library(numbers: list[int]) -> None:
    sample = sample_of(numbers)

    variance = statistics.variance(numbers) if len(numbers) > 1 else None
    error = None if variance is None else sqrt(variance / len(numbers))
    assert sample.count == len(numbers)
    assert sample.total == pytest.approx(sum(numbers))
    assert sample.mean == pytest.approx(statistics.fmean(numbers), abs=1e-9)
    assert sample.variance == pytest.approx(variance, abs=1e-6)
    assert sample.standard_error == pytest.approx(error, abs=1e-4)
    assert sample.error_of_total == pytest.approx(error and error * len(numbers), abs=1e-2)
    shifted = sample_of(number + 1e9 for number in numbers)
    assert shifted.standard_error == pytest.approx(error, abs=1e-4)


@pytest.mark.parametrize(("errors", "whole"), [([3.0, 4.0], 5), ([3.0, None], None), ([], None)])
def test_errors_of_independent_terms_add_in_squares(
    errors: list[float | None], whole: float | None
) -> None:
    assert error_of_sum(errors) == whole


@given(st.lists(st.integers(-1000, 1000)), st.lists(st.integers(-1000, 1000)))
def test_merged_samples_are_the_sample_of_all_values(first: list[int], second: list[int]) -> None:
    merged, whole = sample_of(first), sample_of(first + second)
    merged.merge(sample_of(second))

    assert (merged.count, merged.total) == (whole.count, whole.total)
    assert merged.mean == whole.mean
    assert merged.variance == pytest.approx(whole.variance, abs=1e-6)


@given(st.lists(st.tuples(values), max_size=5), st.integers(1, 7))
def test_units_of_a_match_add_up_in_whole_blocks(parts: list[tuple[list[int]]], block: int) -> None:
    units = [value for (part,) in parts for value in part]
    counter = UnitCounter(2, block)
    for value in units:
        counter.add((value, -value))

    whole = [sum(units[at : at + block]) for at in range(0, len(units) - block + 1, block)]
    sums = counter.sums()
    if not whole:
        assert sums is None
        return
    squares = sum(value * value for value in whole)
    assert sums == UnitSums(len(whole), (sum(whole), -sum(whole)), (squares, squares))


@given(values, values)
def test_sums_of_many_values_are_the_values_themselves(first: list[int], second: list[int]) -> None:
    sample = sample_of(first)
    sample.add_sums(len(second), sum(second), sum(value * value for value in second))
    sample.add_sums(0, 0, 0)

    assert sample.count == len(first) + len(second)
    assert sample.total == sum(first) + sum(second)
    assert sample.variance == pytest.approx(statistics.variance(first + second))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("UTC", "00:30 UTC"),
        ("Europe/Berlin", "02:30 UTC+02:00"),
        ("Asia/Kolkata", "06:00 UTC+05:30"),
    ],
)
def test_a_time_names_its_zone(zone: Callable[[str], None], name: str, shown: str) -> None:
    zone(name)
    assert time_of(datetime(2026, 10, 25, 0, 30, tzinfo=UTC).timestamp()) == f"2026-10-25 {shown}"


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (plural(1, "match"), "1 match"),
        (plural(2000, "match"), "2,000 matches"),
        (plural(0, "hand"), "0 hands"),
        (signed(12), "+12"),
        (signed(-3.26, 1), "-3.3"),
        (signed(-0.04, 1), "0.0"),
        (signed(None), "–"),
        (with_interval("0.6", Interval(0.5, 0.7, "x"), "{:.2f}".format), "0.6 [0.50, 0.70]"),
        (with_interval("0.6", None, str), "0.6 [–]"),
    ],
)
def test_figures_are_written_for_people(written: str, text: str) -> None:
    assert written == text
