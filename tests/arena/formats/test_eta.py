from __future__ import annotations

import pytest

from arena.formats.eta import Pace, Workload


def pace(*ended: float) -> Pace:
    made = Pace()
    for at in ended:
        made.ended(at)
    return made


def test_one_match_says_nothing_of_the_pace() -> None:
    assert pace().left_s(5) is None
    assert pace(100.0).left_s(5) is None


def test_what_is_left_takes_as_long_as_what_was_played() -> None:
    assert pace(100.0, 110.0, 120.0).left_s(5) == 50.0
    assert pace(100.0, 110.0).left_s(0) == 0.0


def test_matches_that_ended_in_another_order_than_they_were_told() -> None:
    made = pace(120.0, 100.0, 110.0)

    assert made.left_s(5) == 50.0
    assert made.last == 120.0


def test_the_time_of_a_pause_is_not_counted() -> None:
    made = pace(100.0, 110.0, 3_700.0, 3_701.0)

    assert made.left_s(10, since=3_690.0) == 10.0
    assert made.left_s(10, since=3_701.0) is None, "it goes on just now"


def test_how_fast_the_first_matches_were_is_forgotten() -> None:
    made = pace(*(10.0 * number for number in range(50)))
    for number in range(100):
        made.ended(10_000.0 + number)

    assert made.left_s(10) == 10.0


# --- the time that is left ---

EACH, AT_ONCE, MATCHES = 100, 40, 200
"""Decisions of a match, tables, and matches; a decision at every table takes a hundredth of a second."""


def test_before_a_match_has_run_its_course_nobody_knows_how_long_one_takes() -> None:
    workload = Workload()
    workload.begin(0.0)

    assert workload.left_s(1.0, [50, 50], 10) is None

    workload.ended(3, 1.0, is_whole=False)

    assert workload.left_s(1.0, [50, 50], 10) is None


def test_what_has_been_played_of_a_match_is_not_left() -> None:
    workload = Workload()
    workload.begin(100.0)
    workload.ended(EACH, 1.0, is_whole=True)

    assert workload.left_s(110.0, [60, 40], 0) == 5.0
    assert workload.left_s(110.0, [60, 40], 3) == 20.0
    assert workload.left_s(110.0, [150], 0) == 0.0, "it is longer than others"
    assert workload.left_s(110.0, [], -1) == 0.0


def test_a_match_that_was_stopped_took_time_but_says_nothing_of_the_others() -> None:
    workload = Workload()
    workload.begin(0.0)
    workload.ended(EACH, 1.0, is_whole=True)
    workload.ended(EACH, 1.0, is_whole=False)

    assert workload.left_s(10.0, [], 1) == 5.0


def test_the_time_of_a_pause_is_not_counted_as_play() -> None:
    workload = Workload()
    workload.begin(0.0)
    workload.ended(EACH, 1.0, is_whole=True)
    workload.begin(3_600.0, 20)

    assert workload.left_s(3_600.0, [20], 1) is None
    assert workload.left_s(3_610.0, [70], 1) == 26.0


def test_how_fast_it_went_at_first_is_forgotten() -> None:
    workload = Workload()
    workload.begin(0.0)
    for second in range(1, 11):  # ten times as slow as later
        workload.ended(EACH, 1.0, is_whole=True)
        workload.mark(float(second), 0)
    for second in range(11, 21):
        for _ in range(10):
            workload.ended(EACH, 1.0, is_whole=True)
        workload.mark(float(second), 0)

    assert workload.left_s(20.0, [], 10) == 1.0


def test_matches_that_end_together_do_not_move_the_time_that_is_left() -> None:
    workload = Workload()
    workload.begin(0.0)
    playing, waiting, now, settled = [0] * AT_ONCE, MATCHES - AT_ONCE, 0.0, 0
    whole_s = MATCHES / AT_ONCE * EACH * 0.01
    while settled < MATCHES:
        now += 0.01
        playing = [made + 1 for made in playing]
        for _ in range(playing.count(EACH)):
            playing.remove(EACH)
            workload.ended(EACH, 1.0, is_whole=True)
            settled += 1
            if waiting:
                waiting -= 1
                playing.append(0)
            if workload.is_due(now):
                workload.mark(now, sum(playing))
            if settled >= MATCHES / 10:
                left_s = workload.left_s(now, playing, waiting)

                assert left_s == pytest.approx(whole_s - now, rel=0.3, abs=0.4)


def test_a_mark_is_due_a_second_after_the_last_one_however_much_was_decided() -> None:
    workload = Workload()
    assert workload.is_due(0.0)
    workload.begin(100.0, 5_000)

    assert not workload.is_due(100.9)
    assert workload.is_due(101.0)
    workload.mark(101.0, 0)
    assert not workload.is_due(101.9)


def test_no_match_takes_less_time_than_the_fastest_took() -> None:
    workload = Workload()
    workload.begin(0.0)
    for _ in range(100):
        workload.ended(EACH, 10.0, is_whole=True)

    assert workload.left_s(10.0, [], 5) == 10.0, "all at once"
    assert workload.left_s(10.0, [20, 90], 0) == 8.0
    assert workload.left_s(10.0, [20, 90], 1) == 11.0, "one begins as another ends"
    assert workload.left_s(10.0, [], 500) == 50.0
