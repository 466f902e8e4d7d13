from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from arena.formats.eta import Left, Pace, Workload
from tests.support.cases import CaseFile, StepByStep
from tests.support.not_none import not_none

CASES = CaseFile(Path(__file__).with_name("eta.cases"))
EACH, AT_ONCE, MATCHES = 100, 40, 200
"""Decisions of a match, tables, matches."""


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
            case at, "ended", made, *playing:
                is_whole = "stopped" not in playing
                others = made_in([word for word in playing if word != "stopped"])
                for each in made_in([made]):
                    self.work.ended(each, float(at), others, is_whole=is_whole)
            case "rest", matches, playing:
                yield f"{self.work.rest(int(matches), int(playing)):.1f}"
            case at, "left", *playing:
                found = self.work.left(float(at), made_in(playing), int(playing[-1][1:]))
                yield "unknown" if found is None else self._told(found)
            case _:
                raise AssertionError(words)

    def _told(self, left: Left) -> str:
        return f"{left.s():.2f} s: {left.decisions:.0f} decisions, {left.per_s:.1f} a second"


@pytest.mark.parametrize("title", CASES.titles)
def test_work_takes_its_time(title: str) -> None:
    CASES.check(title, TimedWork().step)


def test_how_fast_the_first_matches_were_is_forgotten() -> None:
    made = Pace()
    for number in range(150):
        made.ended(10.0 * number if number < 50 else 9_950.0 + number)

    assert made.left_s(10) == 10.0


def test_matches_that_end_together_do_not_move_the_time_that_is_left() -> None:
    workload = Workload(EACH)
    workload.begin(0.0)
    playing, waiting, now, settled = [0] * AT_ONCE, MATCHES - AT_ONCE, 0.0, 0
    whole_s = MATCHES / AT_ONCE * EACH * 0.01  # a decision at every table takes 0.01 s
    while settled < MATCHES:
        now += 0.01
        playing = [made + 1 for made in playing]
        for _ in range(playing.count(EACH)):
            playing.remove(EACH)
            workload.ended(EACH, now, playing, is_whole=True)
            settled += 1
            if waiting:
                waiting -= 1
                playing.append(0)
        if settled >= MATCHES / 10:
            left = not_none(workload.left(now, playing, waiting))

            assert left.s() == pytest.approx(whole_s - now, rel=0.3, abs=0.4)


@pytest.mark.parametrize(
    ("decisions", "beside", "left_s"),
    [
        pytest.param(9_000, [(1_000, 100.0, True)], 50.0, id="all that wait end together"),
        pytest.param(1_000, [(9_000, 300.0, True)], 25.0, id="those that wait share tables"),
        pytest.param(9_000, [(1_000, 100.0, False)], 90.0, id="the last of another"),
    ],
)
def test_the_same_bots_play_several(
    decisions: float, beside: list[tuple[float, float, bool]], left_s: float
) -> None:
    others = [Left(*other) for other in beside]

    assert Left(decisions, 100.0, True).s(others) == left_s
    assert Left(decisions, 100.0, False).s(others) == decisions / 100.0
