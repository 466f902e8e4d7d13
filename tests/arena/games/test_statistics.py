from __future__ import annotations

import statistics
from collections.abc import Iterable
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.games.statistics import Sample, UnitCounter, UnitSums, error_of_sum

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
