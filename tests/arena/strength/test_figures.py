from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from arena.strength.figures import SECONDS, time_of


@pytest.mark.parametrize(
    ("zone_name", "form", "shown"),
    [
        ("UTC", SECONDS, "2026-10-25 00:30:00 UTC"),
        ("Europe/Berlin", SECONDS, "2026-10-25 02:30:00 UTC+02:00"),
        ("Europe/London", "%H:%M", "01:30 UTC+01:00"),
        ("Asia/Kolkata", "%H:%M", "06:00 UTC+05:30"),
    ],
)
def test_a_time_names_its_zone(
    zone: Callable[[str], None], zone_name: str, form: str, shown: str
) -> None:
    zone(zone_name)
    assert time_of(datetime(2026, 10, 25, 0, 30, tzinfo=UTC).timestamp(), form) == shown
