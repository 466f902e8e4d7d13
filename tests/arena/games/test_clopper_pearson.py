"""Clopper and Pearson's interval."""

from __future__ import annotations

import pytest
from scipy.stats import binom  # type: ignore[import-untyped]

from arena.games.clopper_pearson import clopper_pearson


@pytest.mark.parametrize(("count", "of"), [(0, 10), (3, 10), (10, 10)])
def test_two_and_a_half_per_cent_are_left_on_either_side(count: int, of: int) -> None:
    low, high = clopper_pearson(count, of)

    assert low == 0 if count == 0 else binom.sf(count - 1, of, low) == pytest.approx(0.025)
    assert high == 1 if count == of else binom.cdf(count, of, high) == pytest.approx(0.025)


def test_a_share_that_was_never_seen_may_be_anything() -> None:
    assert clopper_pearson(0, 0) == (0.0, 1.0)
