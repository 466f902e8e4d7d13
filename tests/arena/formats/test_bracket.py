"""How an elimination stands while it is played (K2)."""

from __future__ import annotations

from arena.engine.match import Result
from arena.formats.bracket import Bracket, StageStatus, reached
from arena.formats.spec import Form
from protocol.messages import Ending
from tests.support.written_competition import COMPLETED, names, offence, plan


def bracket(count: int = 8) -> Bracket:
    return Bracket(plan(Form.ELIMINATION, names(count), not_there=("late",)))


def play(cup: Bracket, result: Result) -> None:
    """Have all tables of the present stage end like this."""
    for table, _ in cup.stages[-1].tables:
        cup.add(table, result)


def test_K2_who_is_out_has_its_last_stage_and_the_offence_if_it_was_one() -> None:
    cup = bracket()
    play(cup, Result((5, 4, 3, -12), (0,) * 4, offence(3)))
    rows = cup.rows()

    out = [row for row in rows if row.stands is StageStatus.OUT]
    assert {row.stage for row in out} == {1}
    offenders = [row for row in out if row.eliminated is not None]
    assert len(offenders) == 2
    assert {row.eliminated.kind for row in offenders if row.eliminated} == {Ending.ILLEGAL}
    assert [(row.name, row.stage) for row in rows if row.stands is StageStatus.NOT_THERE] == [
        ("late", 0)
    ]


def test_K2_the_last_four_play_the_final_and_its_places_are_of_that_stage() -> None:
    cup = bracket()
    assert not cup.stages[-1].is_final
    play(cup, Result((5, 4, -4, -5), (0,) * 4, COMPLETED))
    assert cup.stages[-1].is_final
    play(cup, Result((6, 2, -3, -5), (0,) * 4, COMPLETED))

    places = [(placed.rank, stage) for placed, stage in reached(cup.ranking)]
    assert places[0] == (1, "final")
    assert places[-1][1] == "1"
