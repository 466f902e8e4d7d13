"""When a competition is due: `at = …` of a `[[run]]`, and how missed moments are treated (K5).

A moment is a date and time (once), a time (every day), or a time on some days of the week. A moment
without an offset is in local time. When the clocks change, a time that does not exist on that day
is moved by the change (02:30 becomes 03:30); of a time that exists twice, the first counts.

Pure: the present is passed in, as a datetime with an offset. Only the machine's time zone is looked
up, if none is given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any

import msgspec

from protocol.errors import UsageError, one_line

__all__ = ["LATEST_S", "Due", "Times", "Weekly", "due", "once", "parse"]

LATEST_S = 3600.0
"""How late a competition may start, and how long it waits for bots: the length of a lesson."""

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
EVERY_DAY = tuple(range(7))
_EXAMPLES = (
    'a date and time such as 2026-11-23T18:00:00, or "18:00", "Mon 18:00", "Mon,Thu 18:00", '
    "or a list of these"
)
_A_WEEK_AND_A_DAY = 8  # the same weekday again, whatever the clocks do meanwhile
_START = datetime.fromtimestamp(0, UTC)
_LAST_YEAR = 9998  # 9999 ends before the last offset does, and `datetime` overflows


class Weekly(msgspec.Struct, frozen=True):
    """A local time on some days of every week; Monday is 0."""

    days: tuple[int, ...]
    time: time


class Times(msgspec.Struct, frozen=True):
    """The moments at which something is due."""

    once: tuple[datetime, ...] = ()  # local, unless they have an offset
    weekly: tuple[Weekly, ...] = ()
    zone: tzinfo | None = None  # for local times; None: the machine's own

    def next_after(self, moment: datetime) -> datetime | None:
        today = self._local(moment).date()
        days = (today + timedelta(days=n) for n in range(-1, _A_WEEK_AND_A_DAY))
        # In one zone Python compares wall-clock times, which go back in autumn.
        now = moment.timestamp()
        later = (due for due in self._around(days) if due.timestamp() > now)
        return min(later, key=datetime.timestamp, default=None)

    def latest_before(self, moment: datetime) -> datetime | None:
        """The last moment that is not later than this one."""
        today = self._local(moment).date()
        days = (today - timedelta(days=n) for n in range(-1, _A_WEEK_AND_A_DAY))
        now = moment.timestamp()
        earlier = (due for due in self._around(days) if due.timestamp() <= now)
        return max(earlier, key=datetime.timestamp, default=None)

    def between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """All moments later than `after` and not later than `until`, in order."""
        moment = self.next_after(after)
        while moment is not None and moment.timestamp() <= until.timestamp():
            yield moment
            moment = self.next_after(moment)

    def latest_start(self, moment: datetime) -> datetime:
        """The latest start of a competition due at `moment`: in an hour, or at the next (K5)."""
        end = moment + timedelta(seconds=LATEST_S)
        following = self.next_after(moment)
        return end if following is None else min(end, following)

    # Not `dateutil.rrule`, which compares wall-clock times: when the clocks go back in October, it
    # would answer 2:15 of the second hour with 2:30 of the first, which is over.
    def _around(self, days: Iterator[date]) -> Iterator[datetime]:
        for moment in self.once:
            yield self._local(moment)
        for day in days:
            for weekly in self.weekly:
                if day.weekday() in weekly.days:
                    yield self._local(datetime.combine(day, weekly.time))

    def _local(self, moment: datetime) -> datetime:
        if moment.tzinfo is not None:
            return moment.astimezone(self.zone)
        # A time that exists twice, or not at all, has two readings. They are sorted, as zones
        # disagree which of them is `fold=0`.
        first, second = (
            reading.astimezone(self.zone)
            for reading in sorted(
                moment.replace(tzinfo=self.zone, fold=fold).astimezone(UTC) for fold in (0, 1)
            )
        )
        exists = first.replace(tzinfo=None) == moment
        return first if exists else second


class Due(msgspec.Struct, frozen=True):
    """What is to be done now."""

    start: datetime | None  # the moment for which to start a competition, if any
    skipped: tuple[datetime, ...]  # missed moments, the earliest first


def due(times: Times, now: datetime, played: Collection[float]) -> Due:
    """What is due by `now`, which has an offset, and has not been played.

    The last moment still counts if it is at most `LATEST_S` ago. All others since the last one
    played are skipped. If none was played, only dates count as missed, as weekly times have no
    beginning. `played` are the `due_at` of this run's competitions, and the moments reported as
    skipped, in Unix seconds.
    """
    last = times.latest_before(now)
    if last is None or last.timestamp() in played:
        return Due(None, ())
    started = [moment for moment in played if moment <= now.timestamp()]
    if started:
        since = datetime.fromtimestamp(max(started), UTC)
        passed = tuple(times.between(since, now))
    else:
        dates = msgspec.structs.replace(times, weekly=())
        passed = tuple(dates.between(_START, now))
    if (now - last).total_seconds() > LATEST_S:
        return Due(None, passed)
    return Due(last, tuple(moment for moment in passed if moment != last))


def once(value: object, zone: tzinfo | None = None) -> datetime:
    """Read one date and time and give it an offset; raises UsageError for anything else."""
    if not isinstance(value, datetime):
        shown = one_line(repr(value), 60)
        raise UsageError(f"expected a date and time such as 2026-11-23T18:00:00, got {shown}")
    return Times(zone=zone)._local(_date(value))


def parse(value: object, zone: tzinfo | None = None) -> Times:
    """Read `at` as `tomllib` gives it: a date and time, a time, a text, or a list of any of these.

    Raises UsageError for anything else, and for an empty list.
    """
    once: list[datetime] = []
    weekly: list[Weekly] = []
    values: list[Any] = value if isinstance(value, list) else [value]
    if not values:
        raise UsageError(f"expected {_EXAMPLES}, got a list without any")
    for moment in values:
        match moment:
            case datetime():
                once.append(_date(moment))
            case time():
                weekly.append(Weekly(EVERY_DAY, moment))
            case str():
                weekly.append(_weekly(moment))
            case _:
                raise _refusal(moment)
    return Times(tuple(once), tuple(weekly), zone)


def _date(moment: datetime) -> datetime:
    if not _START.year < moment.year <= _LAST_YEAR:
        raise _refusal(moment)
    return moment


def _weekly(text: str) -> Weekly:
    """Read `18:00`, `Mon 18:00` or `Mon,Thu 18:00`."""
    days, space, clock = text.strip().rpartition(" ")
    try:
        at = datetime.strptime(clock, "%H:%M").time()
        names = [name.strip().capitalize() for name in days.split(",")]
        chosen = {DAYS.index(name) for name in names} if space else EVERY_DAY
    except ValueError:
        raise _refusal(text) from None
    return Weekly(tuple(sorted(chosen)), at)


def _refusal(value: object) -> UsageError:
    shown = value.isoformat() if isinstance(value, date) else repr(value)
    return UsageError(f"expected {_EXAMPLES}, got {one_line(shown, 60)}")
