"""The question before many matches are made void, and the times of day that are meant."""

from __future__ import annotations

import io
import re
import sys
from datetime import datetime, timedelta

import pytest

from tests.support.in_process import Run

pytestmark = pytest.mark.usefixtures("answering_arena")


class Terminal(io.StringIO):
    """A terminal with what somebody types."""

    def isatty(self) -> bool:
        return True


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
