"""The arithmetic of time: banks, credits, links, lags, and many tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from arena.referee.clock import TICK_S, CoreWait, Lag, RoundTripFloor, SeatClock, charged_from
from protocol.messages import Limits

LATE_S = 0.002
"""How late a tick may be without being late."""


def clock(decision_ms: int = 1000, bank_ms: int = 3000, hard_ms: int = 5000) -> SeatClock:
    return SeatClock(Limits(decision_ms=decision_ms, bank_ms=bank_ms, hard_ms=hard_ms))


Charge = tuple[float, float, bool]
"""What a decision took, what of it is credited, and whether it was in time."""

LARGE = {"bank_ms": 60_000}
CHARGES: dict[str, tuple[dict[str, int], list[Charge], int]] = {
    "decision_ms cost nothing": ({}, [(0, 0, True), (999.9, 0, True), (1000, 0, True)], 3000),
    "more drains the bank": ({}, [(1400, 0, True)], 2600),
    "more and more empties it": ({}, [(1400, 0, True), (3600, 0, True)], 0),
    "all of the bank": ({}, [(4000, 0, True)], 0),
    "more than the bank": ({}, [(4000.1, 0, False)], 0),
    "an empty bank leaves decision_ms": ({}, [(4000, 0, True), (1000, 0, True)], 0),
    "an empty bank leaves no more": ({}, [(4000, 0, True), (1000.1, 0, False)], 0),
    "far too late leaves no debt": ({}, [(60_000, 0, False)], 0),
    "whole milliseconds": ({}, [(1000.5, 0, True)], 2999),
    "hard_ms with a large bank": (LARGE, [(5000, 0, True)], 56_000),
    "more than hard_ms with a large bank": (LARGE, [(5000.1, 0, False)], 55_999),
    "hard_ms below decision_ms": ({"hard_ms": 500}, [(500, 0, True), (501, 0, False)], 3000),
    "credit costs nothing": ({}, [(1150, 150, True)], 3000),
    "more than the credit": ({}, [(1150.5, 150, True)], 2999),
    "hard_ms beside the credit": (LARGE, [(5300, 300, True)], 56_000),
    "more than hard_ms and the credit": (LARGE, [(5300.5, 300, False)], 55_999),
    "all of the bank and the credit": ({}, [(4012, 12, True)], 0),
    "more than the bank and the credit": ({}, [(4012.5, 12, False)], 0),
    "credit does not fill the bank": ({}, [(2000, 0, True), (10, 100_000, True)], 2000),
}


@pytest.mark.parametrize(("limits", "charges", "bank_ms"), CHARGES.values(), ids=CHARGES)
def test_J7_what_a_decision_costs(
    limits: dict[str, int], charges: list[Charge], bank_ms: int
) -> None:
    seat = clock(**limits)

    for taken_ms, credit_ms, in_time in charges:
        assert seat.charge(taken_ms, credit_ms=credit_ms) is in_time
    assert seat.bank_ms == bank_ms


def test_J7_what_is_allowed_is_decision_ms_and_the_bank_up_to_hard_ms() -> None:
    seat = clock()
    seat.charge(4000)

    assert (seat.allowed_ms, clock(hard_ms=500).allowed_ms) == (1000, 500)


# --- the link ---


def link(*round_trips_ms: float) -> RoundTripFloor:
    found = RoundTripFloor()
    for round_trip_ms in round_trips_ms:
        found.measured(round_trip_ms)
    return found


@pytest.mark.parametrize("round_trips_ms", [(), (80,), (80, 90)])
def test_J7_fewer_than_three_pings_are_worth_nothing(round_trips_ms: tuple[float, ...]) -> None:
    assert not link(*round_trips_ms).is_known
    assert link(*round_trips_ms).floor_ms == 0


def test_J7_the_floor_of_a_link_is_its_quickest_round_trip() -> None:
    assert link(90, 62, 300).is_known
    assert link(90, 62, 300).floor_ms == 62
    assert link(90, 62, 300, 61.5).floor_ms == 61.5


def test_J7_a_quick_round_trip_before_the_third_counts_too() -> None:
    assert link(20, 90, 90).floor_ms == 20


def test_J7_pongs_that_are_held_back_are_worth_150_ms_at_most() -> None:
    assert link(4000, 5000, 6000).floor_ms == 150
    assert link(4000, 5000, 6000, 40).floor_ms == 40


# --- the arena's own lag ---


def test_J7_a_loop_that_comes_round_in_time_has_no_lag() -> None:
    now = 100.0
    lag = Lag(now)
    for _ in range(1000):
        now += TICK_S + LATE_S
        lag.tick(now)

    assert lag.total_s(now) == pytest.approx(0, abs=1e-9)


def test_J7_lag_is_known_before_the_tick_that_is_late() -> None:
    lag = Lag(100.0)

    assert lag.total_s(100.0 + TICK_S + LATE_S) == pytest.approx(0, abs=1e-9)
    assert lag.total_s(100.3) == pytest.approx(0.3 - TICK_S - LATE_S)


def test_J7_lag_is_counted_once_when_the_tick_comes() -> None:
    lag = Lag(100.0)
    lag.tick(100.3)

    assert lag.total_s(100.3) == pytest.approx(0.3 - TICK_S - LATE_S)

    lag.tick(100.31)

    assert lag.total_s(100.31) == pytest.approx(0.3 - TICK_S - LATE_S)


def test_J7_lags_add_up() -> None:
    lag = Lag(100.0)
    lag.tick(100.112)
    lag.tick(100.224)

    assert lag.total_s(100.224) == pytest.approx(0.2)


@given(some.lists(some.tuples(some.floats(min_value=0, max_value=1), some.booleans()), max_size=50))
def test_J7_lag_never_falls_and_never_exceeds_the_time_that_passed(
    steps: list[tuple[float, bool]],
) -> None:
    now = 100.0
    lag, before_s = Lag(now), 0.0
    for passes_s, ticks in steps:
        now += passes_s
        if ticks:
            lag.tick(now)
        total_s = lag.total_s(now)

        assert before_s <= total_s <= now - 100.0 + 1e-9
        before_s = total_s


# --- many tables ---


def test_J7_with_one_table_time_begins_with_the_question() -> None:
    assert charged_from(100.0, 99.0, 0, 1000) == 100.0


def test_J7_a_question_that_found_none_waiting_does_not_wait_for_its_turn() -> None:
    assert charged_from(100.0, 100.7, 0, 1000) == 100.0


@pytest.mark.parametrize(
    ("last_answer", "begins"),
    [
        (90.0, 100.0),  # it was idle
        (102.5, 102.5),  # it has been busy with others
        (103.0, 103.0),
        (104.0, 103.0),  # it has had 1 s for each of them, and that is enough
        (500.0, 103.0),
    ],
)
def test_J7_with_three_others_waiting_its_turn_comes_after_three_decisions(
    last_answer: float, begins: float
) -> None:
    assert charged_from(100.0, last_answer, 3, 1000) == begins


@given(
    asked_at=some.floats(min_value=0, max_value=1e6),
    last_answer=some.floats(min_value=0, max_value=1e6),
    waiting=some.integers(min_value=0, max_value=512),
    decision_ms=some.integers(min_value=1, max_value=60_000),
)
def test_J7_a_question_is_late_once_it_has_waited_for_all_that_waited_and_itself(
    asked_at: float, last_answer: float, waiting: int, decision_ms: int
) -> None:
    begins = charged_from(asked_at, last_answer, waiting, decision_ms)

    assert asked_at <= begins <= asked_at + waiting * decision_ms / 1000


def test_J7_a_close_follows_a_stall_until_five_seconds_after_its_end() -> None:
    lag = Lag(0.0)
    lag.tick(0.012)

    assert not lag.follows_stall(0.02)
    assert lag.follows_stall(2.0)  # the loop has not even come round

    lag.tick(2.0)

    assert lag.follows_stall(6.9)


def test_J7_what_waited_during_a_stall_is_read_before_its_five_seconds_begin() -> None:
    lag = Lag(0.0)
    for now in (10.0, 10.5, 11.0):  # late, as so much is read
        lag.tick(now)

    assert lag.follows_stall(15.9)

    for step in range(1, 520):
        lag.tick(11.0 + step / 100)

    assert not lag.follows_stall(16.2)


def test_J7_a_loop_that_is_only_busy_does_not_stand_still() -> None:
    lag = Lag(0.0)
    for step in range(1, 100):
        lag.tick(step / 2)

        assert not lag.follows_stall(step / 2)


# --- waits for a core ---


@given(some.lists(some.tuples(some.floats(0, 10), some.floats(0, 100_000))))
def test_J7_waits_for_a_core_are_never_longer_than_the_time_in_which_they_were(
    looks: list[tuple[float, float]],
) -> None:
    now = waited_ms = possible_ms = 0.0
    wait = CoreWait(waited_ms, now)
    for passed_s, more_ms in looks:
        now += passed_s
        waited_ms += more_ms
        possible_ms += min(passed_s * 1000, more_ms)
        wait.look(waited_ms, now)

        assert wait.total_ms == pytest.approx(possible_ms, abs=0.01)


def test_J7_what_a_thread_has_waited_that_has_ended_is_no_debt() -> None:
    wait = CoreWait(500.0, 0.0)
    wait.look(200.0, 1.0)
    wait.look(300.0, 2.0)

    assert wait.total_ms == 100
