"""How long bots that are away are waited for, and what is left to those who come and go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from arena.competitions.absences import Absences


class FakeDeadline:
    """Rings when the test says so."""

    def __init__(self, left_s: float, ring: Callable[[], None]) -> None:
        self.left_s = left_s
        self.ring = ring
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class AbsencesUnderTest(Absences):
    """Its time and its deadlines are the test's."""

    def __init__(self) -> None:
        self.now = 0.0
        self.set: list[FakeDeadline] = []
        self.absent: list[str] = []
        super().__init__(self._set, lambda: self.now, self.absent.append)

    def _set(self, delay_s: float, call: Callable[[], None]) -> Any:
        self.set.append(FakeDeadline(delay_s, call))
        return cast("Any", self.set[-1])


@pytest.mark.parametrize(
    ("left_s", "here_s", "is_forgiven", "waits_s"),
    [
        (10.0, 50.0, False, 15.0),  # what it had left, and a tenth of its time here
        (60.0, 10_000.0, False, 60.0),  # nobody has more than the whole time
        (10.0, 0.0, True, 60.0),  # who has played or was forgiven has all the time again
    ],
)
def test_who_comes_and_goes_has_what_it_had_left_and_a_tenth_of_its_time_here(
    left_s: float, here_s: float, is_forgiven: bool, waits_s: float
) -> None:
    absences = AbsencesUnderTest()
    absences.begin("ann", 60.0)
    absences.set[-1].left_s = left_s
    absences.came("ann")
    absences.now += here_s
    if is_forgiven:
        absences.forgive("ann")
    absences.begin("ann", 60.0)

    assert absences.set[0].is_cancelled
    assert absences.set[-1].left_s == pytest.approx(waits_s)


def test_who_has_not_come_is_told_once_and_not_waited_for_any_more() -> None:
    absences = AbsencesUnderTest()
    absences.begin("ann", 60.0)
    absences.set[-1].ring()

    assert absences.absent == ["ann"]
    assert "ann" not in absences


@pytest.mark.parametrize(("left_s", "is_due"), [(1.0, True), (1.1, False)])
def test_deadlines_set_one_after_another_are_over_together(left_s: float, is_due: bool) -> None:
    absences = AbsencesUnderTest()
    absences.begin("ann", 60.0)
    absences.set[-1].left_s = left_s

    assert absences.is_due("ann") == is_due
    assert not absences.is_due("ben")


@pytest.mark.parametrize(
    ("left_s", "others", "waits_s"),
    [
        ([1.0, 60.0], ["ben", "here"], None),
        ([25.0, 60.0], ["ben", "here"], 25.0),
        ([25.0, 60.0], ["ben", "cem"], 60.0),
        ([25.0, 60.0], ["here"], None),
    ],
)
def test_J9_who_is_due_first_waits_for_those_who_are_out_with_it(
    left_s: list[float], others: list[str], waits_s: float | None
) -> None:
    """Else the order of the deadlines would say who is out after an outage."""
    absences = AbsencesUnderTest()
    for name in ("ann", "ben", "cem"):
        absences.begin(name, 60.0)
    absences.set[1].left_s, absences.set[2].left_s = left_s
    absences.set[0].ring()

    assert absences.extend("ann", others) == ("ann" in absences)
    assert ("ann" in absences) == (waits_s is not None)
    assert absences.set[-1].left_s == (waits_s or left_s[-1])


def test_J9_another_that_is_away_whenever_one_is_due_holds_nothing_up() -> None:
    absences = AbsencesUnderTest()
    absences.begin("ann", 60.0)
    extends = []
    for _ in range(2):
        anns = absences.set[-1]
        absences.begin("ben", 60.0)
        anns.ring()
        extends.append(absences.extend("ann", ["ben"]))
        absences.came("ben")

    assert extends == [True, False]
