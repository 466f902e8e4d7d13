"""Who has come to a run, and whether it starts: `attendance.cases`; `test_scheduler.py` has how long.

A line of a case says what a run is like, who is `here`, who is on the `roster`, and who has a `version`;
`-` is nobody. `>` is who takes part, of whom some by their submissions, who is missing, with how many
it starts, also by hand, and the line for people. Roster and class are `a` to `g` if nobody says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from arena.competitions.attendance import Wait, attendance
from arena.competitions.planned_run import PlannedRun, check
from arena.formats.spec import Form, Take
from arena.formats.timetable import parse
from protocol.messages import Limits
from tests.support.cases import CaseFile, StepByStep

CASES = CaseFile(Path(__file__).with_name("attendance.cases"))
CLASS = tuple("abcdefg")
FIELDS: dict[str, Any] = {
    "form": Form,
    "take": Take,
    "least": int,
    "at": parse,
    "house": lambda text: tuple(text.split(",")),
}


def names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.replace("-", "").split(",")))


class ComingBots(StepByStep):
    """Runs of the words of a line, and who has come to each."""

    def does(self, *words: str) -> Iterator[str]:
        who = words[0]
        flags = [word for word in words if "=" not in word]
        fields = dict(word.split("=", 1) for word in words if "=" in word)
        lists = {name: fields.pop(name, None) for name in ("here", "roster", "version", "named")}
        given = {name: names(text) for name, text in lists.items() if text is not None}
        players = {"connected": None, "roster": "roster", "named": given.get("named", CLASS)}[who]
        closed = "submissions were closed" if "closed" in flags else ""
        run = PlannedRun(
            name="cup",
            **{
                "game": "gin_rummy",
                "form": Form.ROUND_ROBIN,
                "players": players,
                "with_itself": "itself" in flags,
                **{name: FIELDS.get(name, str)(text) for name, text in fields.items()},
            },
        )
        check(run, Limits(), {})  # a file can say so
        roster, versions = given.get("roster", CLASS), given.get("version", ())
        came = attendance(run, given.get("here", ()), roster, versions)
        if "here" in given or "version" in given:
            yield f"plays {' '.join(came.players) or '-'}"
            if came.submitted:
                yield f"submitted {' '.join(came.submitted)}"
            if came.missing:
                yield f"missing {' '.join(came.missing)}"
        yield f"with {came.least}, {came.fewest} by hand{', so it starts' * came.is_enough}"
        if "text" in flags:
            wait = Wait(run, None)
            wait.came, wait.closed = came, closed
            yield wait.text


@pytest.mark.parametrize("title", CASES.titles)
def test_who_has_come(title: str) -> None:
    CASES.check(title, ComingBots().step)


@pytest.mark.parametrize("who", ["roster", "named"])
@pytest.mark.parametrize("form", [Form.ROUND_ROBIN, Form.LADDER])
def test_K5_it_starts_with_its_least_and_not_with_fewer(who: str, form: Form) -> None:
    players: Any = CLASS if who == "named" else "roster"
    run = PlannedRun(name="cup", game="gin_rummy", form=form, players=players, least=4)

    starts: Sequence[bool] = [
        attendance(run, CLASS[:count], CLASS).is_enough for count in range(len(CLASS) + 1)
    ]
    assert starts == [False] * 4 + [True] * 4


def test_until_when_it_waits_is_said_by_the_clock_of_then() -> None:
    at = parse("2:30", ZoneInfo("Europe/Berlin"))
    run = PlannedRun(name="cup", game="gin_rummy", form=Form.ROUND_ROBIN, at=at)
    before_it_is_set_back = datetime.fromisoformat("2026-10-25T02:30+02:00")

    text = Wait(run, before_it_is_set_back).text

    assert text == "cup waits until 02:30 UTC+01:00: 0 here, it starts with 2"
