from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from arena.formats.eta import Left, Pace, Workload
from tests.support.cases import CaseFile, StepByStep
from tests.support.not_none import not_none

CASES = CaseFile(Path(__file__).with_name("eta.cases"))


def made_in(words: Sequence[str]) -> list[int]:
    """`50*10 60`: ten matches with 50 decisions, and one with 60."""
    pairs = (word.partition("*") for word in words if word[0] != "+")
    return [int(made) for made, _, times in pairs for _ in range(int(times or 1))]


class TimedWork(StepByStep):
    """A competition by the lines of a case."""

    def __init__(self) -> None:
        super().__init__()
        self.work = Workload(EACH)

    def does(self, *words: str) -> Iterator[str]:
        match words:
            case "pace", *moments:
                self.pace = Pace()
                for at in moments:
                    self.pace.ended(float(at))
            case "left", matches, *since:
                left_s = self.pace.left_s(int(matches), *map(float, since[1:]))
                yield f"{left_s} s, the last at {self.pace.last}"
            case "began", at, *playing:
                if at == "0":
                    self.work = Workload(EACH)
                self.work.begin(float(at), made_in(playing))
            case "ended", made, *how:
                for _ in made_in([made + "".join(how).removesuffix("stopped")]):
                    self.work.ended(int(made), is_whole="stopped" not in how)
            case at, "mark", *playing:
                self.work.mark(float(at), made_in(playing))
            case at, "due":
                yield f"{self.work.is_due(float(at))}"
            case at, "rest", matches, playing:
                yield f"{self.work.rest(int(matches), int(playing)):.1f}"
            case at, "left", *playing:
                found = self.work.left(float(at), made_in(playing), int(playing[-1][1:]))
                yield "unknown" if found is None else self._told(found)
            case _:
                raise AssertionError(words)

    def _told(self, left: Left) -> str:
        decisions = (
            f"{left.decisions:.0f} decisions, {left.last:.0f} at last, {left.longest:.0f} in one"
        )
        return f"{left.s():.2f} s: {decisions}, {left.tables} tables, {left.per_s:.1f} a second"


@pytest.mark.parametrize("title", CASES.titles)
def test_work_takes_its_time(title: str) -> None:
    CASES.check(title, TimedWork().step)


def test_how_fast_the_first_matches_were_is_forgotten() -> None:
    made = Pace()
    for number in range(150):
        made.ended(10.0 * number if number < 50 else 9_950.0 + number)

    assert made.left_s(10) == 10.0


# --- the time that is left ---

EACH, AT_ONCE, MATCHES = 100, 40, 200
"""Decisions of a match, tables, matches; a decision at every table takes 0.01 s."""


def left_of(workload: Workload, at: float, playing: list[int], waiting: int) -> Left:
    return not_none(workload.left(at, playing, waiting))


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

    assert left_of(workload, 20.0, [], 10).per_s == 10 * EACH


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

                assert left_of(workload, now, playing, waiting).s() == expected_s


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
