"""What bots won without luck, added up over matches."""

from __future__ import annotations

import pytest

from arena.games.statistics import Bounds, Interval, MeanPart, UnitSums, mean_of
from arena.records.luck import LuckSums
from arena.results.luck_table import LuckTable

PAIR = ("ann", "ben")


def match(*values: float, luck: float = 0.0) -> LuckSums:
    """A match of two: what seat 0 won in each round without luck, and its luck in all."""
    total = sum(values)
    squares = sum(value * value for value in values)
    sums = UnitSums(len(values), (total, -total), (squares, squares))
    return LuckSums(len(values), (total + luck, -total - luck), (luck, -luck), sums)


def bounds(interval: Interval | Bounds | None) -> tuple[float, float]:
    assert interval is not None, "there are enough values"
    return interval.low, interval.high


def width(interval: Interval | Bounds | None) -> float:
    low, high = bounds(interval)
    return high - low


def test_a_line_has_what_was_won_and_what_was_won_without_luck_per_match() -> None:
    lines = LuckTable([(PAIR, match(1, 2, luck=6)), (PAIR, match(3, luck=-3))]).lines()

    assert (lines["ann"].matches, lines["ann"].rounds) == (2, 3)
    assert lines["ann"].gain == pytest.approx(4.5)
    assert lines["ann"].mean == pytest.approx(3)
    assert lines["ann"].interval == pytest.approx(bounds(mean_of([MeanPart(1.5, 2, 1, 3)])))
    assert (lines["ann"].level, lines["ann"].method) == (0.95, "Student")
    assert lines["ben"].mean == pytest.approx(-3)


def test_who_is_out_has_no_line() -> None:
    assert LuckTable([(PAIR, match(1, 2))], {"ben"}).lines().keys() == {"ann"}


def test_a_bot_has_its_own_luck_in_whichever_seat_it_sat() -> None:
    table = LuckTable([(PAIR, match(1, 3)), (("ben", "ann"), match(-5, -7))])

    assert table.lines()["ann"].mean == pytest.approx(8)


def test_a_match_of_a_bot_against_itself_is_nobodys() -> None:
    table = LuckTable([(("ann", "ann"), match(1, 3))])

    assert table.lines() == {}
    assert table.against("ann", "ann") is None


def test_the_luck_against_one_opponent_leaves_the_others_out() -> None:
    table = LuckTable([(PAIR, match(1, 3)), (("ann", "cem"), match(10, 20))])

    assert table.against("ann", "ben") == LuckTable([(PAIR, match(1, 3))]).lines()["ann"]
    assert table.against("ben", "cem") is None


def test_how_opponents_differ_is_no_chance() -> None:
    table = LuckTable([(PAIR, match(9, 11)), (("ann", "cem"), match(-9, -11))])

    assert width(table.lines()["ann"].interval) < 20
    assert width(mean_of([MeanPart(2, 0, 404 / 3, 4)])) > 60, "of all matches as one"


def test_from_ten_matches_on_the_wider_of_both_intervals_counts() -> None:
    """Rounds of a match that are alike say less than their number promises."""
    alike = [(PAIR, match(*[value] * 10)) for value in (5, -5) * 5]
    few, many = (LuckTable(some).lines()["ann"].interval for some in (alike[:9], alike))

    assert width(many) > 2 * width(few)


def test_blocks_are_taken_a_round_each_and_rounds_in_no_block_count_in_the_mean() -> None:
    blocks = UnitSums(2, (30, -30), (500, 500))  # 10 and 20
    luck = LuckSums(25, (40, -40), (0, 0), blocks, block=10)
    line = LuckTable([(PAIR, luck)]).lines()["ann"]

    assert line.mean == pytest.approx(40)
    assert line.interval == pytest.approx(bounds(mean_of([MeanPart(25, 40 / 25, 0.5, 2)])))


def test_a_match_without_a_round_adds_nothing() -> None:
    assert LuckTable([(PAIR, LuckSums(0, (0, 0), (0, 0), None))]).lines() == {}


def test_one_round_alone_has_no_interval() -> None:
    assert LuckTable([(PAIR, match(1))]).lines()["ann"].interval is None
