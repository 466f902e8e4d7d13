"""How figures are written for people: counts, signs, times, and a mean with its interval."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone

from arena.games.interval import Interval

__all__ = ["SECONDS", "TOO_FEW", "plural", "several", "signed", "time_of", "with_interval"]

SECONDS = "%Y-%m-%d %H:%M:%S"
"""A form of `time_of`, where minutes are not enough."""

TOO_FEW = "[–]"
"""What stands in the place of an interval that too few values do not give."""


def plural(count: int, noun: str) -> str:
    """`1 match`, `2 matches`, `1,000 hands`."""
    return f"{count:,} {noun if count == 1 else several(noun)}"


def several(noun: str) -> str:
    """`matches`, `hands`."""
    return f"{noun}{'es' if noun.endswith('ch') else 's'}"


def signed(value: float | None, digits: int = 0) -> str:
    """`+12`, `−3`, `0`, or a dash for None."""
    if value is None:
        return "–"
    text = f"{value:+,.{digits}f}"
    return text[1:] if not any(digit in text for digit in "123456789") else text


def time_of(at: float | datetime, form: str = "%Y-%m-%d %H:%M") -> str:
    """`2026-11-27 18:24 UTC+01:00`; Unix seconds are shown in the time zone of this machine."""
    moment = at if isinstance(at, datetime) else datetime.fromtimestamp(at).astimezone()
    offset = moment.utcoffset()
    assert offset is not None, "a moment without an offset is none"
    return f"{moment:{form}} {timezone(offset)}"


def with_interval(value: str, interval: Interval | None, number: Callable[[float], str]) -> str:
    """`0.645 [0.61, 0.68]`, its ends written by `number`; `0.645 [–]` without an interval."""
    if interval is None:
        return f"{value} {TOO_FEW}"
    return f"{value} [{number(interval.low)}, {number(interval.high)}]"
