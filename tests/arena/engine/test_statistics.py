from __future__ import annotations

import statistics
from collections.abc import Iterable
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.engine.statistics import Sample, UnitCounter, UnitSums, error_of_sum

values = st.lists(st.integers(-1000, 1000), min_size=2, max_size=50)


def sample_of(values: Iterable[float]) -> Sample:
    sample = Sample()
    for value in values:
        sample.add(value)
    return sample


def test_hand_worked_sample() -> None:
    sample = sample_of([2, 4, 4, 4, 5, 5, 7, 9])

    assert sample.count == 8
    assert sample.mean == pytest.approx(5)
    assert sample.total == pytest.approx(40)
    assert sample.variance == pytest.approx(32 / 7)
    assert sample.standard_error == pytest.approx(sqrt(32 / 7 / 8))
    assert sample.error_of_total == pytest.approx(8 * sqrt(32 / 7 / 8))


def test_no_values_have_no_mean_and_sum_to_nothing() -> None:
    sample = Sample()

    assert (sample.count, sample.mean, sample.total) == (0, None, 0)
    assert sample.variance is sample.standard_error is sample.error_of_total is None


def test_one_value_has_a_mean_and_no_error() -> None:
    sample = sample_of([3])

    assert sample.mean == sample.total == 3
    assert sample.standard_error is None
    assert sample.error_of_total is None


def test_equal_values_have_no_error() -> None:
    assert sample_of([1] * 10).standard_error == 0


@given(values)
def test_agrees_with_the_standard_library(numbers: list[int]) -> None:
    sample = sample_of(numbers)

    assert sample.mean == pytest.approx(statistics.fmean(numbers), abs=1e-9)
    assert sample.variance == pytest.approx(statistics.variance(numbers), abs=1e-6)


@given(st.lists(st.integers(-1000, 1000)), st.lists(st.integers(-1000, 1000)))
def test_merged_samples_are_the_sample_of_all_values(first: list[int], second: list[int]) -> None:
    merged, whole = sample_of(first), sample_of(first + second)
    merged.merge(sample_of(second))

    assert (merged.count, merged.total) == (whole.count, whole.total)
    assert merged.mean == whole.mean
    assert merged.variance == pytest.approx(whole.variance, abs=1e-6)


@given(values)
def test_an_offset_changes_the_mean_and_not_the_error(numbers: list[int]) -> None:
    plain = sample_of(numbers)
    shifted = sample_of(number + 1e9 for number in numbers)

    assert shifted.standard_error == pytest.approx(plain.standard_error, abs=1e-4)


def test_error_of_a_share() -> None:
    won = sample_of([1] * 70 + [0] * 30)

    assert won.mean == pytest.approx(0.7)
    assert won.standard_error == pytest.approx(sqrt(0.7 * 0.3 / 99))


def test_errors_of_independent_terms_add_in_squares() -> None:
    assert error_of_sum([3.0, 4.0]) == 5


def test_a_sum_with_an_unknown_error_has_none() -> None:
    assert error_of_sum([3.0, None]) is None


def test_a_sum_of_nothing_has_no_error() -> None:
    assert error_of_sum([]) is None


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
