"""How long an owner rests on a ladder: from the records alone."""

from __future__ import annotations

import pytest

from arena.formats.pauses import FIRST_S, LAPSE_S, LONGEST_S, MATCHES_EACH, Pauses
from arena.games.match import Result
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


@pytest.mark.parametrize(
    ("history", "nth"),
    [
        ([("offends", 3), ("plays", 2 * MATCHES_EACH)], 2),  # matches in a row work an offence off
        ([("offends", 2), ("plays", 2 * MATCHES_EACH)], 1),  # with everything off it begins anew
        # Another offence breaks the row.
        ([("offends", 1), ("plays", MATCHES_EACH - 1), ("offends", 1), ("plays", 1)], 3),
        # Matches that others have ended work nothing off.
        ([("offends", 1), ("meets offenders", 3 * MATCHES_EACH)], 2),
        ([("offends", 4), ("waits", 2 * LAPSE_S)], 3),  # an hour without one takes one off
        ([("offends", 4), ("waits", 100 * LAPSE_S)], 1),
    ],
)
def test_J3_offences_are_worked_off(history: list[tuple[str, int]], nth: int) -> None:
    pauses, at = Pauses(), 0.0
    for what, count in history:
        if what == "offends":
            at = offends(pauses, count, at)
        elif what == "waits":
            at += count
        else:
            by = 1 if what == "meets offenders" else None
            for number in range(count):
                pauses.add(*played(at + number, "eve/good", f"other-{number}", by=by))
            at += 100
    pauses.add(*played(at, "ann", "eve", by=1))

    assert pauses.left_s("eve", at) == FIRST_S * 2 ** (nth - 1)


@pytest.mark.parametrize("back_s", [60.0, 3600.0])
def test_a_clock_that_is_put_back_ends_a_pause(back_s: float) -> None:
    pauses = Pauses()
    offends(pauses, 1, at=10_000)

    assert pauses.left_s("eve", 10_000 - back_s) == 0
