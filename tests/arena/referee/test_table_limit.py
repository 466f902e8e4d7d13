from __future__ import annotations

from itertools import pairwise

import pytest

from arena.referee.table_limit import tables_at_once


def test_a_bot_plays_few_matches_at_first_and_evenly_more_until_one_is_half_over() -> None:
    at_once = [tables_at_once(tenth / 10, 1_000) for tenth in range(11)]
    steps = {more - fewer for fewer, more in pairwise(at_once[:6])}

    assert (at_once[0], at_once[5], at_once[10]) == (4, 64, 64)
    assert steps == {12}


def test_a_match_that_takes_longer_than_others_changes_nothing() -> None:
    assert tables_at_once(7.5, 64) == tables_at_once(1.0, 64)


@pytest.mark.parametrize(("answer_s", "most"), [(0.001, 64), (0.005, 40), (0.050, 8), (5.0, 8)])
def test_a_slow_bot_plays_few_matches_in_the_end_too(answer_s: float, most: int) -> None:
    assert tables_at_once(1.0, 1_000, answer_s) == most


@pytest.mark.parametrize(
    ("answer_s", "link_s", "more"),
    [(0.010, 0.040, 16), (0.0005, 0.040, 320), (1.0, 0.040, 1), (0.010, 0.0, 0)],
)
def test_what_is_on_its_way_to_a_quick_bot_far_away_comes_on_top(
    answer_s: float, link_s: float, more: int
) -> None:
    near = tables_at_once(1.0, 1_000, answer_s)

    assert tables_at_once(1.0, 1_000, answer_s, link_s) == near + more


def test_a_bot_far_away_passes_for_quick_as_long_as_nobody_knows() -> None:
    assert tables_at_once(1.0, 1_000, link_s=0.040) > 64


def test_a_bot_far_away_plays_half_as_many_matches_at_first() -> None:
    assert tables_at_once(0.0, 64, link_s=0.040) == 4 + 32
    assert tables_at_once(0.5, 64, link_s=0.040) == 64


@pytest.mark.parametrize("come", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("tables", [1, 2, 5])
def test_nobody_plays_more_matches_than_it_takes(tables: int, come: float) -> None:
    assert tables_at_once(come, tables, link_s=0.040) == tables
    assert tables_at_once(come, tables) <= tables
