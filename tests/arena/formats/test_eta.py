from __future__ import annotations

from collections.abc import Sequence

import pytest

from arena.formats.eta import Left, Pace, Workload


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
    assert made.left_s(10, since=3_700.0) == 10.0
    assert made.left_s(10, since=3_701.0) is None, "it goes on just now"


def test_how_fast_the_first_matches_were_is_forgotten() -> None:
    made = pace(*(10.0 * number for number in range(50)))
    for number in range(100):
        made.ended(10_000.0 + number)

    assert made.left_s(10) == 10.0


# --- the time that is left ---

EACH, AT_ONCE, MATCHES = 100, 40, 200
"""Decisions of a match, tables, matches; a decision at every table takes 0.01 s."""


def left_s(workload: Workload, at: float, playing: Sequence[int], waiting: int) -> float | None:
    found = workload.left(at, playing, waiting)
    return None if found is None else found.s()


def about(seconds: float) -> object:
    """Lengths that differ by a twentieth are one."""
    return pytest.approx(seconds, rel=0.06, abs=0.3)


def test_before_a_match_has_run_its_course_nobody_knows_how_long_one_takes() -> None:
    workload = Workload(EACH)
    workload.begin(0.0)

    assert left_s(workload, 1.0, [50, 50], 10) is None

    workload.ended(3, is_whole=False)

    assert left_s(workload, 1.0, [50, 50], 10) is None


def test_what_has_been_played_of_a_match_is_not_left() -> None:
    workload = Workload(EACH)
    workload.begin(100.0)
    workload.ended(EACH, is_whole=True)

    assert left_s(workload, 110.0, [60, 40], 0) == about(5.5)
    assert left_s(workload, 110.0, [150], 0) == about(0.0), "it is longer than others"
    assert left_s(workload, 110.0, [], -1) == 0.0


def test_a_match_that_was_stopped_took_time_but_says_nothing_of_the_others() -> None:
    lengths = []
    for is_whole in (True, False):
        workload = Workload(EACH)
        workload.begin(0.0)
        workload.ended(EACH, is_whole=True)
        workload.ended(EACH // 10, is_whole=is_whole)
        found = workload.left(10.0, [], 10)
        assert found is not None
        lengths.append(found.decisions)

    assert lengths == [about(10 * EACH * 0.55), about(10 * EACH)]


def test_the_time_of_a_pause_is_not_counted_as_play() -> None:
    workload = Workload(EACH)
    workload.begin(0.0)
    workload.ended(EACH, is_whole=True)
    workload.begin(3_600.0, [20])

    assert left_s(workload, 3_600.0, [20], 0) is None
    assert left_s(workload, 3_610.0, [70], 0) == about(6.2)


def test_how_fast_it_went_at_first_is_forgotten() -> None:
    workload = Workload(EACH)
    workload.begin(0.0)
    for second in range(1, 11):  # ten times as slow as later
        workload.ended(EACH, is_whole=True)
        workload.mark(float(second), [])
    for second in range(11, 21):
        for _ in range(10):
            workload.ended(EACH, is_whole=True)
        workload.mark(float(second), [])

    found = workload.left(20.0, [], 10)
    assert found is not None
    assert found.per_s == 10 * EACH


def test_matches_that_end_together_do_not_move_the_time_that_is_left() -> None:
    workload = Workload(EACH)
    workload.begin(0.0)
    playing, waiting, now, settled = [0] * AT_ONCE, MATCHES - AT_ONCE, 0.0, 0
    whole_s = MATCHES / AT_ONCE * EACH * 0.01
    while settled < MATCHES:
        now += 0.01
        playing = [made + 1 for made in playing]
        for _ in range(playing.count(EACH)):
            playing.remove(EACH)
            workload.ended(EACH, is_whole=True)
            settled += 1
            if waiting:
                waiting -= 1
                playing.append(0)
            if workload.is_due(now):
                workload.mark(now, playing)
            if settled >= MATCHES / 10:
                expected_s = pytest.approx(whole_s - now, rel=0.3, abs=0.4)

                assert left_s(workload, now, playing, waiting) == expected_s


def test_a_mark_is_due_a_second_after_the_last_one_however_much_was_decided() -> None:
    workload = Workload(EACH)
    assert workload.is_due(0.0)
    workload.begin(100.0, [5_000])

    assert not workload.is_due(100.9)
    assert workload.is_due(101.0)
    workload.mark(101.0, [])
    assert not workload.is_due(101.9)


def test_that_the_short_matches_end_first_says_nothing_of_those_that_go_on() -> None:
    workload = Workload(EACH)
    workload.begin(0.0)
    for _ in range(10):
        workload.ended(EACH // 5, is_whole=True)
    found = workload.left(10.0, [EACH] * 90, 100)

    assert found is not None
    assert found.decisions > 100 * EACH * 0.9


# A match of 100 decisions is in the class whose middle is 102. Ten seconds have brought
# 100 + 500 = 600 decisions at ten tables, so one decision at each takes 10 × 10 / 600 = 0.167 s; 52
# are left in every match: 0.167 × 52 = 8.7 s, whatever the fixed part.
# In the other case it is 10 × 10 / 1005 = 0.0995 s, and 9 × 7 + 52 = 115 decisions are left, 52 of
# them in one match: 0.0995 × (0.05 × 52 + 0.95 × 115 / 10) = 1.35 s.
@pytest.mark.parametrize(("playing", "seconds"), [([50] * 10, 8.7), ([95] * 9 + [50], 1.35)])
def test_the_last_matches_take_longer_if_one_of_them_does(
    playing: list[int], seconds: float
) -> None:
    workload = Workload(EACH)
    workload.begin(0.0)
    workload.ended(EACH, is_whole=True)

    assert left_s(workload, 10.0, playing, 0) == about(seconds)


def left(decisions: float, *, last: float = 0.0, longest: float = 0.0, link_s: float = 0.0) -> Left:
    """Ten tables, a hundred decisions a second."""
    waits = last == 0.0
    return Left(decisions, last, longest, 10, 100.0, 0.1, link_s, waits)


def test_all_that_wait_for_the_same_bots_end_together() -> None:
    long, short = left(9_000), left(1_000)

    assert long.s([short]) == short.s([long]) == 50.0
    assert long.s([left(1_000, last=1_000)]) == 90.0


def test_the_tables_of_one_that_waits_no_more_go_to_the_others() -> None:
    last = left(1_000, last=1_000, longest=300)

    assert last.s([left(9_000)]) == 30.0
    # 0.1 s a round, of which 0.05 stay: 0.005 × 300 + 0.095 × 1,000 / 10.
    assert last.s() == pytest.approx(11.0)
    # Others fill the tables for 10 s more. Then 200 of the 300 are left, and they are quick.
    assert last.s([left(1_000)]) == pytest.approx(10 + 0.005 * 200)
    # Others that wait for nothing either have as many tables: 2,000 decisions at 20 of them.
    assert last.s([last]) == pytest.approx(11.0)


def test_far_away_the_last_matches_are_no_faster() -> None:
    # Of a round of 0.1 s the link and 0.05 of the rest stay, 0.0525 s with a link of 0.05 s:
    # 0.0525 × 300 + 0.0475 × 1,000 / 10 = 20.5; with all of it the longest match: 0.1 × 300.
    for link_s, whole_s in ((0.0, 11.0), (0.05, 20.5), (0.1, 30.0), (0.2, 30.0)):
        last = left(1_000, last=1_000, longest=300, link_s=link_s)

        assert last.s() == pytest.approx(whole_s)


def test_the_longest_of_many_matches_ends_last() -> None:
    workload = Workload(EACH)
    workload.begin(0.0)
    for decisions in [80] * 96 + [160] * 4:
        workload.ended(decisions, is_whole=True)

    few, many = (workload.left(10.0, [0] * tables, 1_000) for tables in (10, 100))
    assert few is not None
    assert many is not None
    assert (few.longest, many.longest) == (about(80), about(160))
    end = workload.left(10.0, [0] * 99 + [70], 0)
    assert end is not None
    assert end.longest == about(160)


def test_matches_that_are_longer_than_all_that_are_over_are_taken_to_be_half_as_long_again() -> (
    None
):
    workload = Workload(EACH)
    workload.begin(0.0)
    workload.ended(EACH // 2, is_whole=True)
    found = workload.left(10.0, [EACH] * 99, 100)

    assert found is not None
    assert found.longest == 1.5 * EACH


def test_a_competition_with_a_few_long_matches_is_taken_to_have_more_left() -> None:
    """So it gets tables earlier, and its last match does not go on alone."""

    def rest(*lengths: int) -> float:
        workload = Workload(EACH)
        workload.begin(0.0)
        for decisions in lengths:
            workload.ended(decisions, is_whole=True)
        workload.mark(10.0, [0] * 20)
        return workload.rest(20, 10)

    assert Workload(EACH).rest(20, 10) == 20 * EACH
    assert rest(*[EACH] * 20) == about(20 * EACH)
    assert rest(*[50] * 10, *[150] * 10) == about(10 * 150 + 10 * EACH)


def test_half_of_a_match_is_left_where_one_is_looked_at_and_nothing_where_none_is() -> None:
    workload = Workload(EACH)
    workload.begin(0.0)
    workload.ended(EACH, is_whole=True)
    found = workload.left(10.0, [50] * 10, 1_000)

    assert found is not None
    assert found.last == about(10 * EACH / 2)
    assert workload.rest(10, 0) == 10 * EACH / 2
    assert workload.rest(0, 0) == 0


def test_how_many_tables_there_were_is_known_from_when_matches_last_waited() -> None:
    workload = Workload(EACH)
    workload.begin(0.0)
    workload.ended(EACH, is_whole=True)
    workload.left(10.0, [50] * 10, 100)
    end = workload.left(12.0, [60] * 2, 0)

    assert end is not None
    assert end.tables == 10
