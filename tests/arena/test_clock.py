from __future__ import annotations

import pytest

from arena.clock import Clock
from protocol.messages import Limits


def clock(decision_ms: int = 1000, bank_ms: int = 3000, hard_ms: int = 5000) -> Clock:
    return Clock(Limits(decision_ms=decision_ms, bank_ms=bank_ms, hard_ms=hard_ms))


def test_J7_a_decision_within_decision_ms_costs_nothing() -> None:
    seat = clock()

    assert [seat.charge(taken_ms) for taken_ms in (0, 999.9, 1000)] == [True] * 3
    assert seat.bank_ms == 3000


def test_J7_what_it_takes_beyond_that_drains_the_bank() -> None:
    seat = clock()

    assert seat.charge(1400)
    assert seat.bank_ms == 2600
    assert seat.charge(3600)
    assert seat.bank_ms == 0


@pytest.mark.parametrize(("taken_ms", "in_time"), [(4000, True), (4000.1, False)])
def test_J7_it_is_out_of_time_when_the_bank_is_empty(
    taken_ms: float, in_time: bool
) -> None:
    assert clock().charge(taken_ms) is in_time


@pytest.mark.parametrize(("taken_ms", "in_time"), [(5000, True), (5000.1, False)])
def test_J7_no_bank_allows_more_than_hard_ms(taken_ms: float, in_time: bool) -> None:
    assert clock(bank_ms=60_000).charge(taken_ms) is in_time


def test_J7_with_an_empty_bank_decision_ms_are_left() -> None:
    seat = clock()
    seat.charge(4000)

    assert seat.allowed_ms == 1000
    assert seat.charge(1000)
    assert not seat.charge(1000.1)


def test_J7_a_decision_that_came_too_late_leaves_no_debt() -> None:
    seat = clock()

    assert not seat.charge(60_000)
    assert seat.bank_ms == 0


def test_the_bank_is_told_in_whole_milliseconds() -> None:
    seat = clock()
    seat.charge(1000.5)

    assert seat.bank_ms == 2999


def test_hard_ms_may_be_less_than_decision_ms() -> None:
    seat = clock(decision_ms=1000, hard_ms=500)

    assert seat.allowed_ms == 500
    assert not seat.charge(501)
