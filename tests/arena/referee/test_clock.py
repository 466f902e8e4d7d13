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


LINKS: dict[str, tuple[list[float], bool, float]] = {
    "nothing is known without a ping": ([], False, 0),
    "nor by one": ([80], False, 0),
    "nor by two": ([80, 90], False, 0),
    "the floor is the quickest round trip": ([90, 62, 300], True, 62),
    "also a later one": ([90, 62, 300, 61.5], True, 61.5),
    "also one before the third": ([20, 90, 90], True, 20),
    "pongs that are held back are worth 150 ms at most": ([4000, 5000, 6000], True, 150),
    "until one is not": ([4000, 5000, 6000, 40], True, 40),
}


@pytest.mark.parametrize(("round_trips_ms", "is_known", "floor_ms"), LINKS.values(), ids=LINKS)
def test_J7_the_floor_of_a_link_is_its_quickest_round_trip(
    round_trips_ms: list[float], is_known: bool, floor_ms: float
) -> None:
    link = RoundTripFloor()
    for round_trip_ms in round_trips_ms:
        link.measured(round_trip_ms)

    assert (link.is_known, link.floor_ms) == (is_known, floor_ms)


# --- the arena's own lag ---

IN_TIME = [100.0 + number * (TICK_S + LATE_S) for number in range(1, 1001)]
LAGS: dict[str, tuple[list[float], float, float]] = {
    "a loop that comes round in time has no lag": (IN_TIME, IN_TIME[-1], 0),
    "a tick that is not late yet": ([], 100.0 + TICK_S + LATE_S, 0),
    "lag is known before the tick that is late": ([], 100.3, 0.3 - TICK_S - LATE_S),
    "lag is counted once when the tick comes": ([100.3], 100.3, 0.3 - TICK_S - LATE_S),
    "and not again": ([100.3, 100.31], 100.31, 0.3 - TICK_S - LATE_S),
    "lags add up": ([100.112, 100.224], 100.224, 0.2),
}


@pytest.mark.parametrize(("ticks", "now", "total_s"), LAGS.values(), ids=LAGS)
def test_J7_what_the_loop_is_late_is_the_arenas_lag(
    ticks: list[float], now: float, total_s: float
) -> None:
    lag = Lag(100.0)
    for tick in ticks:
        lag.tick(tick)

    assert lag.total_s(now) == pytest.approx(total_s, abs=1e-9)


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


@pytest.mark.parametrize(
    ("last_answer", "waiting", "begins"),
    [
        pytest.param(99.0, 0, 100.0, id="with one table time begins with the question"),
        pytest.param(100.7, 0, 100.0, id="a question that found none waiting does not wait"),
        pytest.param(90.0, 3, 100.0, id="it was idle"),
        pytest.param(102.5, 3, 102.5, id="it has been busy with three others"),
        pytest.param(103.0, 3, 103.0, id="and with all of them"),
        pytest.param(104.0, 3, 103.0, id="it has had 1 s for each, and that is enough"),
        pytest.param(500.0, 3, 103.0, id="however long it is busy"),
    ],
)
def test_J7_with_three_others_waiting_its_turn_comes_after_three_decisions(
    last_answer: float, waiting: int, begins: float
) -> None:
    assert charged_from(100.0, last_answer, waiting, 1000) == begins


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
