"""What bots won without luck, added up over matches."""

from __future__ import annotations

import pytest

from arena.engine.statistics import UnitSums
from arena.records.luck import LuckSums
from arena.results.luck_table import LuckTable
from arena.strength.interval import MeanPart, mean_of

PAIR = ("ann", "ben")


def match(*values: float, luck: float = 0.0) -> LuckSums:
    """A match of two: what seat 0 won in each round without luck, and its luck in all."""
    total = sum(values)
    squares = sum(value * value for value in values)
    sums = UnitSums(len(values), (total, -total), (squares, squares))
    return LuckSums(len(values), (total + luck, -total - luck), (luck, -luck), sums)


def test_a_line_has_what_was_won_and_what_was_won_without_luck_per_round() -> None:
    lines = LuckTable([(PAIR, match(1, 2, luck=6)), (PAIR, match(3, luck=-3))]).lines()

    assert (lines["ann"].matches, lines["ann"].rounds) == (2, 3)
    assert lines["ann"].gain == pytest.approx(3)
    assert lines["ann"].mean == pytest.approx(2)
    interval = mean_of([MeanPart(1, 2, 1, 3)])
    assert interval is not None
    assert lines["ann"].interval == pytest.approx((interval.low, interval.high))
    assert (lines["ann"].level, lines["ann"].method) == (0.95, "Student")
    assert lines["ben"].mean == pytest.approx(-2)


def test_a_bot_has_its_own_luck_in_whichever_seat_it_sat() -> None:
    table = LuckTable([(PAIR, match(1, 3)), (("ben", "ann"), match(-5, -7))])

    assert table.lines()["ann"].mean == pytest.approx(4)


def test_a_match_of_a_bot_against_itself_is_nobodys() -> None:
    table = LuckTable([(("ann", "ann"), match(1, 3))])

    assert table.lines() == {}
    assert table.against("ann", "ann") is None


def test_the_luck_against_one_opponent_leaves_the_others_out() -> None:
    table = LuckTable([(PAIR, match(1, 3)), (("ann", "cem"), match(10, 20))])
    line = table.against("ann", "ben")

    assert line is not None
    assert line.mean == pytest.approx(2)
    assert table.against("ben", "cem") is None


def test_how_opponents_differ_is_no_chance() -> None:
    table = LuckTable([(PAIR, match(9, 11)), (("ann", "cem"), match(-9, -11))])
    interval = table.lines()["ann"].interval

    assert interval is not None
    assert interval.high - interval.low < 10
    pooled = mean_of([MeanPart(1, 0, 404 / 3, 4)])
    assert pooled is not None
    assert pooled.high - pooled.low > 30


def test_from_ten_matches_on_the_wider_of_both_intervals_counts() -> None:
    """Rounds of a match that are alike say less than their number promises."""
    alike = [(PAIR, match(*[value] * 10)) for value in (5, -5) * 5]
    few, many = LuckTable(alike[:9]).lines()["ann"], LuckTable(alike).lines()["ann"]

    assert few.interval is not None
    assert many.interval is not None
    assert many.interval.high - many.interval.low > 2 * (few.interval.high - few.interval.low)


def test_blocks_are_taken_a_round_each_and_rounds_in_no_block_count_in_the_mean() -> None:
    blocks = UnitSums(2, (30, -30), (500, 500))  # 10 and 20
    luck = LuckSums(25, (40, -40), (0, 0), blocks, block=10)
    line = LuckTable([(PAIR, luck)]).lines()["ann"]
    interval = mean_of([MeanPart(1, 40 / 25, 0.5, 2)])

    assert line.mean == pytest.approx(40 / 25)
    assert line.interval is not None
    assert interval is not None
    assert line.interval.low == pytest.approx(interval.low)


def test_a_match_without_a_round_adds_nothing() -> None:
    assert LuckTable([(PAIR, LuckSums(0, (0, 0), (0, 0), None))]).lines() == {}


def test_one_round_alone_has_no_interval() -> None:
    assert LuckTable([(PAIR, match(1))]).lines()["ann"].interval is None
