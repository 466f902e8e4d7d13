from __future__ import annotations

from arena.pace import Pace


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
