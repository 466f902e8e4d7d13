"""Who has come to a run, and whether it starts; `test_scheduler.py` tests how long it waits."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from arena.competitions.attendance import Wait, attendance
from arena.competitions.planned_run import Participants, PlannedRun, check
from arena.formats.spec import Form, Take
from arena.formats.timetable import parse
from protocol.messages import Limits

SIX = parse("18:00")
CLASS = tuple("abcdefg")
HIGH_LOW = (Participants.NAMED, "high_low", Form.ELIMINATION)


def a_run(
    who: Participants, game: str = "gin_rummy", form: Form = Form.ROUND_ROBIN, **more: Any
) -> PlannedRun:
    if who is not Participants.NAMED:
        more["players"] = "roster" if who is Participants.ROSTER else None
    return PlannedRun(name="cup", game=game, form=form, **more)


@pytest.mark.parametrize(
    ("run", "least"),
    [
        (a_run(Participants.CONNECTED), 2),
        (a_run(Participants.CONNECTED, "high_low", Form.ELIMINATION), 4),
        (a_run(Participants.CONNECTED, least=5), 5),
        (a_run(Participants.CONNECTED, least=3, house=("simple", "expert")), 1),
        (a_run(Participants.CONNECTED, house=("simple", "expert", "patient")), 0),
        (a_run(Participants.ROSTER), 7),
        (a_run(Participants.ROSTER, house=("simple",)), 7),
        (a_run(Participants.ROSTER, least=3), 3),
        (a_run(Participants.ROSTER, at=SIX), 2),
        (a_run(Participants.ROSTER, "high_low", Form.ELIMINATION, at=SIX), 4),
        (a_run(Participants.ROSTER, at=SIX, least=6, house=("simple",)), 5),
        (a_run(Participants.ROSTER, at=SIX, house=("simple", "expert")), 1),
        (a_run(Participants.ROSTER, "blackjack", Form.LEAGUE, at=SIX), 1),
        (a_run(Participants.ROSTER, form=Form.LADDER, at=SIX), 2),
        (a_run(Participants.ROSTER, form=Form.LADDER), 2),
        (a_run(Participants.ROSTER, form=Form.LADDER, house=("simple",)), 1),
        (a_run(Participants.NAMED, players=CLASS), 1),
        (a_run(Participants.NAMED, players=CLASS, at=SIX), 2),
        (a_run(*HIGH_LOW, players=CLASS, at=SIX), 4),
        (a_run(*HIGH_LOW, players=CLASS[:3], at=SIX), 3),
        (a_run(*HIGH_LOW, players=CLASS[:3], at=SIX, take=Take.SUBMITTED), 3),
        (a_run(Participants.NAMED, players=CLASS, at=SIX, house=("simple", "expert")), 1),
        (a_run(Participants.NAMED, players=CLASS, least=4), 4),
        (a_run(Participants.NAMED, players=CLASS, least=2, house=("simple", "expert")), 1),
        (a_run(Participants.NAMED, players=CLASS[:1], house=("simple",)), 1),
        (a_run(Participants.NAMED, players=CLASS[:1], least=3, house=("simple", "expert")), 1),
        (a_run(Participants.NAMED, players=CLASS[:1], least=1, house=("simple",)), 1),
        (a_run(Participants.ROSTER, least=1, house=("simple",)), 1),
    ],
)
def test_K5_how_many_must_be_there(run: PlannedRun, least: int) -> None:
    check(run, Limits(), {})  # a file can say so
    assert attendance(run, (), CLASS).least == least
    assert not least or not attendance(run, CLASS[: least - 1], CLASS).is_enough
    assert attendance(run, CLASS[:least], CLASS, CLASS[:least]).is_enough


def test_K5_with_an_empty_roster_it_does_not_start() -> None:
    for form in (Form.ROUND_ROBIN, Form.LADDER):
        assert not attendance(a_run(Participants.ROSTER, form=form), ("zoe",), ()).is_enough


@pytest.mark.parametrize(
    ("run", "fewest"),
    [
        (a_run(Participants.ROSTER), 2),
        (a_run(Participants.ROSTER, with_itself=True), 2),
        (a_run(Participants.ROSTER, least=1, with_itself=True), 1),
        (a_run(Participants.ROSTER, least=6, house=("simple",)), 1),
        (a_run(Participants.ROSTER, "blackjack", Form.LEAGUE), 1),
        (a_run(Participants.ROSTER, "high_low", Form.ELIMINATION), 2),
        (a_run(Participants.ROSTER, form=Form.LADDER), 0),
        (a_run(Participants.NAMED, players=CLASS), 0),
        (a_run(Participants.CONNECTED, least=6), 2),
        (a_run(Participants.CONNECTED, least=6, house=("simple",)), 1),
        (a_run(Participants.CONNECTED, "blackjack", Form.LEAGUE, least=6), 1),
        (a_run(Participants.CONNECTED, form=Form.LADDER, least=6), 0),
    ],
)
def test_how_many_the_instructor_needs(run: PlannedRun, fewest: int) -> None:
    assert attendance(run, (), CLASS).fewest == fewest


@pytest.mark.parametrize("who", [Participants.ROSTER, Participants.NAMED])
def test_they_are_known_by_their_own_name_or_the_first_below_it(who: Participants) -> None:
    names = ("ann", "ben", "cem", "dan/gin")
    here = ("ben/x", "annabel", "ben/y", "ann/z", "ann", "stranger", "dan")
    came = attendance(a_run(who, players=names), here, names)

    assert came.missing == ("cem", "dan/gin")
    assert came.come == 2
    assert [name for name in came.players if name not in came.missing] == ["ann", "ben/x"]
    assert len(came.players) == (4 if who is Participants.NAMED else 2)


@pytest.mark.parametrize("who", [Participants.ROSTER, Participants.NAMED])
@pytest.mark.parametrize(
    ("names", "here", "came"),
    [
        (("Ann", "ann"), ("ann",), {"ann": "ann"}),
        (("Ann", "ann"), ("ANN",), {"Ann": "ANN"}),
        (("Ann", "ann"), ("ann/gin",), {"ann": "ann/gin"}),
        (("Ann", "ann"), ("ann", "ann/gin"), {"ann": "ann"}),
        (("ann", "ann/one"), ("ann/one",), {"ann/one": "ann/one"}),
        (("ann", "ann/one"), ("ANN/one",), {"ann/one": "ANN/one"}),
        (("ann", "ann/one"), ("ann/one/x", "ann/two"), {"ann": "ann/two", "ann/one": "ann/one/x"}),
        (("ann",), ("ben", "ann"), {"ann": "ann"}),
        (("ANN",), ("ann/gin", "ann"), {"ANN": "ann"}),
        (("Ann",), ("ann/tonic", "ann/gin"), {"Ann": "ann/tonic"}),
        (("ann",), ("Ann", "ann"), {"ann": "ann"}),
        (("ann",), ("anna", "ben/ann"), {}),
    ],
)
def test_a_bot_stands_for_one_name_and_first_for_its_own(
    who: Participants, names: tuple[str, ...], here: tuple[str, ...], came: dict[str, str]
) -> None:
    found = attendance(a_run(who, players=names), here, names)

    assert found.missing == tuple(name for name in names if name not in came)
    expected = [came.get(name, name) for name in names]
    if who is Participants.ROSTER:
        expected = [came[name] for name in names if name in came]
    assert found.players == tuple(expected)


def test_who_is_named_and_not_here_is_spelled_as_on_the_roster() -> None:
    named = a_run(Participants.NAMED, players=("ANN", "Ben/gin", "cem"))

    assert attendance(named, (), ("ann", "ben")).missing == ("ann", "ben/gin", "cem")


def test_until_when_it_waits_is_said_by_the_clock_of_then() -> None:
    at = parse("2:30", ZoneInfo("Europe/Berlin"))
    run = a_run(Participants.CONNECTED, at=at)
    before_it_is_set_back = datetime.fromisoformat("2026-10-25T02:30+02:00")

    text = Wait(run, before_it_is_set_back).text

    assert text == "cup waits until 02:30 UTC+01:00: 0 here, it starts with 2"


def test_a_run_that_can_never_start_says_why_and_what_starts_it() -> None:
    by_roster = Wait(a_run(Participants.ROSTER, least=3), None)
    by_roster.came = attendance(by_roster.came.run, ("ann",), ("ann", "ben"))
    handed_in = Wait(a_run(Participants.ROSTER, least=2, take=Take.SUBMITTED), None)
    handed_in.came = attendance(handed_in.came.run, (), ("ann", "ben"), {"ann"})
    handed_in.closed = "submissions were closed at 18:00"

    how = "`arena start cup` starts it now"
    assert f"with 3, which cannot be reached (2 on the roster; {how})" in by_roster.text
    assert f"with 2, which cannot be reached ({handed_in.closed}; {how})" in handed_in.text


# --- submissions ---

VERSIONS = ("ann", "ben", "cem")


@pytest.mark.parametrize(
    ("take", "here", "players", "submitted"),
    [
        (Take.CONNECTED, ("ann",), ("ann",), ()),
        (Take.SUBMITTED, ("ann", "eve"), VERSIONS, VERSIONS),
        (Take.EITHER, (), VERSIONS, VERSIONS),
        (Take.EITHER, ("eve", "ben"), ("eve", "ben", "ann", "cem"), ("ann", "cem")),
        (Take.EITHER, ("ann/two",), ("ann/two", "ben", "cem"), ("ben", "cem")),
    ],
)
def test_all_come_who_are_connected_or_have_a_version(
    take: Take, here: tuple[str, ...], players: tuple[str, ...], submitted: tuple[str, ...]
) -> None:
    came = attendance(a_run(Participants.CONNECTED, take=take), here, (), VERSIONS)

    assert (came.players, came.submitted) == (players, submitted)
    assert came.come == len(players)


@pytest.mark.parametrize("who", [Participants.ROSTER, Participants.NAMED])
@pytest.mark.parametrize(
    ("take", "here", "players", "submitted"),
    [
        (Take.CONNECTED, ("ann",), ("ann",), ()),
        (Take.SUBMITTED, ("ann", "dan"), ("ann", "ben"), ("ann", "ben")),
        (Take.EITHER, (), ("ann", "ben"), ("ann", "ben")),
        (Take.EITHER, ("ann", "dan"), ("ann", "ben", "dan"), ("ben",)),
        (Take.EITHER, ("ann/two",), ("ann/two", "ben"), ("ben",)),
        (Take.EITHER, ("ann", "ann/two"), ("ann", "ben"), ("ben",)),
    ],
)
def test_of_names_each_comes_connected_or_by_its_version(
    who: Participants,
    take: Take,
    here: tuple[str, ...],
    players: tuple[str, ...],
    submitted: tuple[str, ...],
) -> None:
    names = ("ann", "ben", "dan")  # cem has a version, and is none of them
    run = a_run(who, players=names, take=take)
    came = attendance(run, here, names, VERSIONS)

    assert came.submitted == submitted
    assert [name for name in came.players if name not in came.missing] == [*players]
    assert came.come == len(players)


def test_a_named_bot_without_a_version_is_not_waited_for_where_nobody_can_connect() -> None:
    run = a_run(Participants.NAMED, players=("ann", "zoe"), take=Take.SUBMITTED)
    came = attendance(run, ("zoe",), (), VERSIONS)

    assert (came.players, came.missing) == (("ann",), ("zoe",))
    assert not came.is_enough


@pytest.mark.parametrize(
    ("take", "text"),
    [
        (Take.CONNECTED, "cup waits: 1 of 3 here, it starts with 3; missing: ben, cem"),
        (Take.SUBMITTED, "cup waits: 2 of 3 submitted, it starts with 3; missing: cem"),
        (
            Take.EITHER,
            "cup waits: 2 of 3 here (1 connected, 1 submitted), it starts with 3; missing: cem",
        ),
    ],
)
def test_people_are_told_who_has_come_and_by_what(take: Take, text: str) -> None:
    run = a_run(Participants.ROSTER, take=take)
    wait = Wait(run, None)
    wait.came = attendance(run, ("ann",), ("ann", "ben", "cem"), ("ann", "ben"))

    assert wait.text == text
