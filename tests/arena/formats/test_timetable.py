from __future__ import annotations

import time as clock
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from arena.formats.timetable import LATEST_S, Due, Times, due, parse
from protocol.errors import UsageError

BERLIN = ZoneInfo("Europe/Berlin")  # clocks: forward on 2026-03-29, back on 2026-10-25


def local(text: str, fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold)


def times(value: Any) -> Times:
    return parse(value, BERLIN)


def shown(moment: datetime | None) -> str | None:
    return None if moment is None else f"{moment:%a %Y-%m-%d %H:%M%z}"


# ---- What comes next, and what came last


@pytest.mark.parametrize(
    ("value", "now", "expected"),
    [
        ("18:00", "2026-11-23T17:59", "Mon 2026-11-23 18:00+0100"),
        ("18:00", "2026-11-23T18:00", "Tue 2026-11-24 18:00+0100"),
        (time(18), "2026-12-31T19:00", "Fri 2027-01-01 18:00+0100"),
        ("Mon 18:00", "2026-11-23T18:00", "Mon 2026-11-30 18:00+0100"),
        (" mon , THU  18:00 ", "2026-11-23T18:00", "Thu 2026-11-26 18:00+0100"),
        ("Wed 9:05", "2026-11-23T18:00", "Wed 2026-11-25 09:05+0100"),
        (["Wed 9:00", "Tue 23:59"], "2026-11-23T18:00", "Tue 2026-11-24 23:59+0100"),
        (datetime(2026, 11, 23, 18), "2026-01-01T00:00", "Mon 2026-11-23 18:00+0100"),
        (datetime(2026, 11, 23, 18), "2026-11-23T18:00", None),
        (datetime(2026, 11, 23, 18, tzinfo=UTC), "2026-11-23T18:00", "Mon 2026-11-23 19:00+0100"),
        ([datetime(2026, 11, 25, 8), "Thu 8:00"], "2026-11-23T18:00", "Wed 2026-11-25 08:00+0100"),
        # A time that does not exist is as much later.
        ("Sun 2:30", "2026-03-28T12:00", "Sun 2026-03-29 03:30+0200"),
        ("2:30", "2026-03-29T12:00", "Mon 2026-03-30 02:30+0200"),
        ("2:30", "2026-03-29T03:10", "Sun 2026-03-29 03:30+0200"),
        # A week with a change of clocks keeps the hour of the day.
        ("Mon 18:00", "2026-03-23T18:00", "Mon 2026-03-30 18:00+0200"),
        ("Mon 18:00", "2026-10-19T18:00", "Mon 2026-10-26 18:00+0100"),
    ],
)
def test_the_next_moment(value: Any, now: str, expected: str | None) -> None:
    assert shown(times(value).next_after(local(now))) == expected


@pytest.mark.parametrize(
    ("value", "now", "expected"),
    [
        ("18:00", "2026-11-23T18:00", "Mon 2026-11-23 18:00+0100"),
        ("18:00", "2026-11-23T17:59", "Sun 2026-11-22 18:00+0100"),
        ("Tue 18:00", "2026-11-24T17:00", "Tue 2026-11-17 18:00+0100"),
        (datetime(2026, 11, 23, 18), "2026-11-23T17:59", None),
        (datetime(2026, 11, 23, 18), "2027-11-23T18:00", "Mon 2026-11-23 18:00+0100"),
        ("2:30", "2026-03-29T03:10", "Sat 2026-03-28 02:30+0100"),
    ],
)
def test_the_latest_moment(value: Any, now: str, expected: str | None) -> None:
    assert shown(times(value).latest_before(local(now))) == expected


# ---- When the clocks are changed


def test_a_time_that_exists_twice_is_the_first_and_comes_once() -> None:
    daily = times("2:30")
    first = daily.next_after(local("2026-10-24T12:00"))

    assert first == local("2026-10-25T02:30", fold=0)
    assert daily.next_after(first) == local("2026-10-26T02:30")
    assert daily.latest_before(local("2026-10-25T02:45", fold=1)) == first


def test_what_is_next_is_later_also_within_the_hour_of_a_change() -> None:
    daily = times("2:30")
    second = local("2026-10-25T02:15", fold=1)

    assert daily.next_after(second) == local("2026-10-26T02:30")
    assert daily.latest_before(second) == local("2026-10-25T02:30", fold=0)


def test_every_day_of_a_year_has_its_moment() -> None:
    found = list(times("2:30").between(local("2026-01-01T00:00"), local("2027-01-01T00:00")))

    assert [moment.date() for moment in found] == [
        date(2026, 1, 1) + timedelta(days=n) for n in range(365)
    ]
    assert found == sorted(set(found))


@pytest.mark.skipif(not hasattr(clock, "tzset"), reason="no tzset on this system")
def test_without_a_zone_it_is_the_machines_clock(zone: Callable[[str], None]) -> None:
    zone("America/New_York")
    now = datetime(2026, 3, 7, 12, tzinfo=UTC)
    first = parse("2:30").next_after(now)
    second = parse("2:30").next_after(datetime(2026, 3, 8, 7, 29, tzinfo=UTC))
    back = parse("1:30").next_after(datetime(2026, 11, 1, 0, tzinfo=UTC))
    dated = parse(datetime(2026, 7, 1, 18)).next_after(now)

    assert first == second == datetime(2026, 3, 8, 7, 30, tzinfo=UTC)  # 3:30 EDT
    assert back == datetime(2026, 11, 1, 5, 30, tzinfo=UTC)  # the first, EDT
    assert dated == datetime(2026, 7, 1, 22, tzinfo=UTC)


# ---- For how long it may start


@pytest.mark.parametrize(
    ("value", "end"),
    [
        ("18:00", "2026-11-23T19:00"),
        (["18:00", "18:20"], "2026-11-23T18:20"),
        (["18:00", "19:00"], "2026-11-23T19:00"),
        (datetime(2026, 11, 23, 18), "2026-11-23T19:00"),
    ],
)
def test_K5_it_may_start_for_an_hour_or_until_its_next_time(value: Any, end: str) -> None:
    assert times(value).latest_start(local("2026-11-23T18:00")) == local(end)


# ---- What is due


DATE = datetime(2026, 11, 23, 18)


@pytest.mark.parametrize(
    ("value", "now", "played", "start", "skipped"),
    [
        # Nothing is due before its time, and up to an hour late it is made up for.
        (DATE, "11-23T17:59", [], None, []),
        (DATE, "11-23T18:00", [], "11-23T18:00", []),
        (DATE, "11-23T19:00", [], "11-23T18:00", []),
        ("18:00", "11-23T18:00", [], "11-23T18:00", []),
        ("18:00", "11-23T19:00", [], "11-23T18:00", []),
        ("Mon 18:00", "11-23T18:00", [], "11-23T18:00", []),
        ("Mon 18:00", "11-23T19:00", [], "11-23T18:00", []),
        # A date that passed longer ago is skipped and told.
        (DATE, "11-23T19:01", [], None, ["11-23T18:00"]),
        # What comes every week has no past before it was first played.
        ("Mon 18:00", "11-23T19:01", [], None, []),
        # What was played is not played again.
        ("18:00", "11-23T18:30", ["11-23T18:00"], None, []),
        # All since the last that was played are told.
        *[("18:00", "11-22T18:30", ["11-19T18:00"], "11-22T18:00", ["11-20T18:00", "11-21T18:00"])],
        (
            "18:00",
            "11-22T20:00",
            ["11-19T18:00"],
            None,
            [f"11-{day}T18:00" for day in (20, 21, 22)],
        ),
        # Of two within the hour the later is played.
        ([DATE, "18:30"], "11-23T18:45", [], "11-23T18:30", ["11-23T18:00"]),
    ],
)
def test_what_is_due_is_played_late_skipped_or_told(
    value: Any, now: str, played: list[str], start: str | None, skipped: list[str]
) -> None:
    found = due(
        times(value), local(f"2026-{now}"), {local(f"2026-{at}").timestamp() for at in played}
    )

    assert LATEST_S == 3600
    assert found == Due(
        None if start is None else local(f"2026-{start}"),
        tuple(local(f"2026-{moment}") for moment in skipped),
    )


# ---- What it cannot be


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("", "''"),
        ("6 pm", "'6 pm'"),
        ("24:00", "'24:00'"),
        ("Day 18:00", "'Day 18:00'"),
        ("Mon, 18:00", "'Mon, 18:00'"),
        ("Mon18:00", "'Mon18:00'"),
        (["18:00", 18], "18"),
        (True, "True"),
        (date(2026, 11, 23), "2026-11-23"),
        (datetime(1, 1, 1), "0001-01-01T00:00:00"),
        (datetime(9999, 12, 31, tzinfo=UTC), "9999-12-31T00:00:00+00:00"),
        ([], "a list without any"),
    ],
)
def test_what_is_no_moment_is_refused(value: object, shown: str) -> None:
    with pytest.raises(UsageError, match="expected a date and time such as") as caught:
        parse(value)

    assert str(caught.value).endswith(f", got {shown}")
