"""Who has come to a run, and whether it starts; how long it waits is tried in `test_course.py`."""

from __future__ import annotations

from typing import Any

import pytest

from arena.attendance import attendance
from arena.plan import Form
from arena.run import Run, Who
from arena.timetable import parse

SIX = parse("18:00")
CLASS = tuple("abcdefg")


def a_run(
    who: Who, game: str = "gin_rummy", form: Form = Form.ROUND_ROBIN, **more: Any
) -> Run:
    return Run(name="cup", game=game, form=form, who=who, **more)


@pytest.mark.parametrize(
    ("run", "least"),
    [
        (a_run(Who.CONNECTED), 2),
        (a_run(Who.CONNECTED, "high_low", Form.ELIMINATION), 4),
        (a_run(Who.CONNECTED, least=5), 5),
        (a_run(Who.CONNECTED, least=3, house=("simple", "expert")), 1),
        (a_run(Who.CONNECTED, house=("simple", "expert", "patient")), 0),
        (a_run(Who.ROSTER), 7),
        (a_run(Who.ROSTER, house=("simple",)), 7),
        (a_run(Who.ROSTER, least=3), 3),
        (a_run(Who.ROSTER, at=SIX), 2),
        (a_run(Who.ROSTER, "high_low", Form.ELIMINATION, at=SIX), 4),
        (a_run(Who.ROSTER, at=SIX, least=6, house=("simple",)), 5),
        (a_run(Who.ROSTER, at=SIX, house=("simple", "expert")), 1),
        (a_run(Who.ROSTER, "blackjack", Form.LEAGUE, at=SIX), 1),
        (a_run(Who.ROSTER, form=Form.LADDER, at=SIX), 2),
        (a_run(Who.NAMED, players=CLASS), 1),
        (a_run(Who.NAMED, players=CLASS, at=SIX), 1),
        (a_run(Who.NAMED, players=CLASS, least=4), 4),
        (a_run(Who.NAMED, players=CLASS, least=2, house=("simple", "expert")), 1),
    ],
)
def test_K5_how_many_must_be_there(run: Run, least: int) -> None:
    assert attendance(run, (), CLASS).least == least
    assert not least or not attendance(run, CLASS[: least - 1], CLASS).is_enough
    assert attendance(run, CLASS[:least], CLASS).is_enough


def test_K5_with_an_empty_roster_it_does_not_start() -> None:
    for form in (Form.ROUND_ROBIN, Form.LADDER):
        assert not attendance(a_run(Who.ROSTER, form=form), ("zoe",), ()).is_enough


@pytest.mark.parametrize(
    ("run", "fewest"),
    [
        (a_run(Who.ROSTER), 2),
        (a_run(Who.ROSTER, with_itself=True), 2),
        (a_run(Who.ROSTER, least=1, with_itself=True), 1),
        (a_run(Who.ROSTER, least=6, house=("simple",)), 1),
        (a_run(Who.ROSTER, "blackjack", Form.LEAGUE), 1),
        (a_run(Who.ROSTER, "high_low", Form.ELIMINATION), 2),
        (a_run(Who.ROSTER, form=Form.LADDER), 0),
        (a_run(Who.NAMED, players=CLASS), 0),
        (a_run(Who.CONNECTED, least=6), 6),
    ],
)
def test_how_many_the_instructor_needs(run: Run, fewest: int) -> None:
    assert attendance(run, (), CLASS).fewest == fewest


@pytest.mark.parametrize("who", [Who.ROSTER, Who.NAMED])
def test_they_are_known_by_their_own_name_or_the_first_below_it(who: Who) -> None:
    names = ("ann", "ben", "cem", "dan/gin")
    here = ("ben/x", "annabel", "ben/y", "ann/z", "ann", "stranger", "dan")
    came = attendance(a_run(who, players=names), here, names)

    assert came.missing == ("cem", "dan/gin")
    assert came.come == 2
    assert [name for name in came.players if name not in came.missing] == [
        "ann",
        "ben/x",
    ]
    assert len(came.players) == (4 if who is Who.NAMED else 2)
