from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from arena.games.figures import time_of


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("UTC", "00:30 UTC"),
        ("Europe/Berlin", "02:30 UTC+02:00"),
        ("Asia/Kolkata", "06:00 UTC+05:30"),
    ],
)
def test_a_time_names_its_zone(zone: Callable[[str], None], name: str, shown: str) -> None:
    zone(name)
    assert time_of(datetime(2026, 10, 25, 0, 30, tzinfo=UTC).timestamp()) == f"2026-10-25 {shown}"
