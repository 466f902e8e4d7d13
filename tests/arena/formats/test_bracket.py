"""How an elimination stands while it is played (K2)."""

from __future__ import annotations

import pytest

from arena.formats.bracket import Bracket, StageStatus, reached
from arena.formats.spec import Form, plan_of
from arena.games.match import Result
from protocol.messages import Ending
from tests.support.toy_games import install_toy
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


def test_K2_a_cup_at_tables_of_three_sends_one_of_each_to_the_final(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    game = install_toy(3, monkeypatch)
    settings = game.vocabulary.read_settings(None)
    cup = Bracket(plan_of(game, settings, names(7), seed="5eed", house=("x", "y")))
    [first] = cup.stages
    assert (len(first.tables), len(first.byes), first.is_final) == (2, 1, False)

    play(cup, Result((3, -1, -2), (0,) * 3, COMPLETED))
    through = {table.players[0] for table, _ in first.tables} | {*first.byes}
    [final, _] = cup.stages[-1].tables[0]
    assert cup.stages[-1].is_final
    assert set(final.players) == through
    assert {row.name for row in cup.rows() if row.stands is StageStatus.OUT} == (
        {*names(7)} - through
    )
