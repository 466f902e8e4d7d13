"""How long an owner rests on a ladder: from the records alone."""

from __future__ import annotations

import pytest

from arena.engine.match import Result
from arena.formats.pauses import FIRST_S, LAPSE_S, LONGEST_S, MATCHES_EACH, Pauses
from protocol.messages import Ending, Termination


def played(
    at: float, *players: str, by: int | None = None, kind: Ending = Ending.DISCONNECT
) -> tuple[tuple[str, ...], Result, float]:
    """A match that ended at a moment, by an offence of seat `by` or in the regular way."""
    ended = Termination(Ending.COMPLETED if by is None else kind, by, "")
    return players, Result((0, 0), (0, 0), ended), at


def offends(pauses: Pauses, count: int, at: float = 0.0) -> float:
    """The owner `eve` offends so often, as soon as it may play; when its last pause is over."""
    for number in range(count):
        pauses.add(*played(at, "ann", f"eve/{number}", by=1))
        at += pauses.left_s("eve", at)
    return at


def after(count: int) -> float:
    """The pause after so many offences."""
    pauses = Pauses()
    at = offends(pauses, count - 1)
    pauses.add(*played(at, "ann", "eve", by=1))
    return pauses.left_s("eve", at)


def test_J3_every_offence_of_an_owner_doubles_its_pause_up_to_a_quarter_of_an_hour() -> None:
    assert [after(count) for count in range(1, 5)] == [10, 20, 40, 80]
    assert after(8) == after(50) == LONGEST_S


def test_J3_the_opponent_of_an_offender_does_not_rest() -> None:
    pauses = Pauses()
    pauses.add(*played(0, "ann", "eve", by=1))

    assert pauses.left_s("ann", 0) == 0
    assert pauses.left_s("stranger", 0) == 0


def test_J3_who_comes_back_with_another_spelling_rests_all_the_same() -> None:
    pauses = Pauses()
    pauses.add(*played(0, "ann", "eve/1", by=1))
    assert pauses.left_s("EVE", 0) == FIRST_S

    pauses.add(*played(FIRST_S, "ann", "Eve/2", by=1))
    assert pauses.left_s("eve", FIRST_S) == 2 * FIRST_S


def test_a_pause_runs_off() -> None:
    pauses = Pauses()
    offends(pauses, 1, at=100.0)

    assert pauses.left_s("eve", 103) == FIRST_S - 3
    assert pauses.left_s("eve", 100 + FIRST_S) == 0


def test_J3_matches_that_end_by_one_lost_connection_are_one_offence() -> None:
    pauses = Pauses()
    for table in range(64):
        pauses.add(*played(0.01 * table, "ann", "eve", by=1))

    assert pauses.left_s("eve", 0) == FIRST_S
    assert offends(pauses, 1, at=FIRST_S) == FIRST_S + 2 * FIRST_S


def test_J3_completed_matches_in_a_row_work_an_offence_off() -> None:
    pauses = Pauses()
    at = offends(pauses, 3)
    for number in range(2 * MATCHES_EACH):
        pauses.add(*played(at + number, "eve/good", "ann"))
    pauses.add(*played(at + 100, "ann", "eve", by=1))

    assert pauses.left_s("eve", at + 100) == 2 * FIRST_S, "its second"


def test_J3_an_hour_without_an_offence_takes_one_off() -> None:
    pauses = Pauses()
    at = offends(pauses, 4) + 2 * LAPSE_S
    pauses.add(*played(at, "eve", "ann", by=0))
    assert pauses.left_s("eve", at) == 4 * FIRST_S, "its third"

    later = at + 100 * LAPSE_S
    pauses.add(*played(later, "eve", "ann", by=0))
    assert pauses.left_s("eve", later) == FIRST_S


def test_J3_who_has_worked_everything_off_begins_anew() -> None:
    pauses = Pauses()
    at = offends(pauses, 2)
    for number in range(2 * MATCHES_EACH):
        pauses.add(*played(at + number, "eve", "ann"))
    pauses.add(*played(at + 100, "eve", "ann", by=0))

    assert pauses.left_s("eve", at + 100) == FIRST_S


def test_J3_another_offence_breaks_the_row() -> None:
    pauses = Pauses()
    at = offends(pauses, 1)
    for number in range(MATCHES_EACH - 1):
        pauses.add(*played(at + number, "eve", "ann"))
    at = offends(pauses, 1, at + 100)
    pauses.add(*played(at, "eve", "ann"))
    pauses.add(*played(at + 1, "eve", "ann", by=0))

    assert pauses.left_s("eve", at + 1) == 4 * FIRST_S, "its third"


def test_J3_matches_that_others_have_ended_work_nothing_off() -> None:
    pauses = Pauses()
    at = offends(pauses, 1)
    for number in range(3 * MATCHES_EACH):
        pauses.add(*played(at + number, "eve", f"rogue-{number}", by=1))
    pauses.add(*played(at + 100, "eve", "ann", by=0))

    assert pauses.left_s("eve", at + 100) == 2 * FIRST_S


@pytest.mark.parametrize("back_s", [60.0, 3600.0])
def test_a_clock_that_is_put_back_ends_a_pause(back_s: float) -> None:
    pauses = Pauses()
    offends(pauses, 1, at=10_000)

    assert pauses.left_s("eve", 10_000 - back_s) == 0
