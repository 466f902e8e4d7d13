"""The question before many matches are made void, and the times of day that are meant."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.in_process import Run, Terminal

pytestmark = pytest.mark.usefixtures("answering_arena")


@pytest.fixture
def noon(zone: Callable[[str], None]) -> None:
    """It is between twelve and one o'clock here."""
    zone(f"NOON{datetime.now(UTC).hour - 12:+d}")


@pytest.mark.parametrize(
    ("typed", "last", "sent"), [("y\n", "1 match made void", 1), ("n\n", "2 matches left as is", 0)]
)
def test_somebody_is_asked_before_matches_are_void(
    run: Run, monkeypatch: pytest.MonkeyPatch, typed: str, last: str, sent: int
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    ran = run("void", "--since", "18:02")

    assert ran.out.splitlines()[-1] == last
    assert "make 2 matches void? [y/N]" in ran.err
    assert ran.err.count("'match': '3f-") == sent, "that the arena has not refused"


@pytest.mark.parametrize("later", [False, True])
def test_a_time_of_day_is_the_latest_one(run: Run, later: bool) -> None:
    now = datetime.now().astimezone()
    then = now + timedelta(hours=1 if later else -1)
    ran = run("void", "quiet", "--since", f"{then:%H:%M:%S}")

    [since] = re.findall(r"'since': ([0-9.]+)", ran.err)
    latest = then - timedelta(days=later)
    assert abs(float(since) - latest.timestamp()) < 1


@pytest.mark.parametrize(
    ("since", "until", "is_sent"),
    [("09:00", "10:00", True), ("10:00", "09:00", False), ("23:00", "01:00", True)],
)
def test_an_end_before_the_beginning_is_not_one_of_tomorrow(
    run: Run, noon: None, since: str, until: str, is_sent: bool
) -> None:
    ran = run("void", "quiet", "--since", since, "--until", until)

    assert ("'until': " in ran.err) == is_sent
    assert ("expected --until after --since" in ran.err) != is_sent
