"""When a competition is due: `at = …` of a `[[run]]`, and what to do about a moment that has passed (K5).

A moment is a date and time (once), a time (every day), or a time on some days of the week. One without an offset is local. Where
the clocks are changed, a time that does not exist that day is as much later (02:30 is 03:30), and one that exists twice is the first.

Pure: the present comes in, as a datetime that knows its offset. Only the time zone of the machine is looked up, if none is given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any

import msgspec

from protocol.errors import UsageError, one_line

__all__ = ["LATEST_S", "Due", "Times", "Weekly", "due", "parse"]

LATEST_S = 3600.0
"""How late a competition may start, and how long it waits for enough bots: until then the class is still there."""

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
EVERY_DAY = tuple(range(7))
_EXAMPLES = 'a date and time such as 2026-11-23T18:00:00, or "18:00", "Mon 18:00", "Mon,Thu 18:00", or a list of these'
_A_WEEK_AND_A_DAY = 8  # the same weekday again, whatever the clocks do meanwhile
_START = datetime.fromtimestamp(0, UTC)
_LAST_YEAR = 9998  # in the next one some time zones end


class Weekly(msgspec.Struct, frozen=True):
    """A local time on some days of every week; Monday is 0."""

    days: tuple[int, ...]
    time: time


class Times(msgspec.Struct, frozen=True):
    """When something is due.

    Attributes:
        once: dates and times; those without an offset are local.
        weekly: what comes again.
        zone: what is local; the machine's own if None.
    """

    once: tuple[datetime, ...] = ()
    weekly: tuple[Weekly, ...] = ()
    zone: tzinfo | None = None

    def next_after(self, moment: datetime) -> datetime | None:
        """The first moment later than this one, or None if there will be none."""
        today = self._local(moment).date()
        days = (today + timedelta(days=n) for n in range(-1, _A_WEEK_AND_A_DAY))
        # In one zone Python compares the clocks on the wall, which go back in autumn.
        now = moment.timestamp()
        later = (due for due in self._around(days) if due.timestamp() > now)
        return min(later, key=datetime.timestamp, default=None)

    def latest_before(self, moment: datetime) -> datetime | None:
        """The last moment that is not later than this one, or None if there was none."""
        today = self._local(moment).date()
        days = (today - timedelta(days=n) for n in range(-1, _A_WEEK_AND_A_DAY))
        now = moment.timestamp()
        earlier = (due for due in self._around(days) if due.timestamp() <= now)
        return max(earlier, key=datetime.timestamp, default=None)

    def between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """All moments later than `after` and not later than `until`, in their order."""
        moment = self.next_after(after)
        while moment is not None and moment.timestamp() <= until.timestamp():
            yield moment
            moment = self.next_after(moment)

    def latest_start(self, moment: datetime) -> datetime:
        """Until when what is due at this moment may start: for an hour, or until its next moment if that is earlier (K5)."""
        end = moment + timedelta(seconds=LATEST_S)
        following = self.next_after(moment)
        return end if following is None else min(end, following)

    # Not `dateutil.rrule`: it looks for the next time by the clock on the wall, so that of 2:15 in the second hour
    # of an October night the next 2:30 would be the one before, in the first.
    def _around(self, days: Iterator[date]) -> Iterator[datetime]:
        """What is due once, and what is due on these days."""
        for moment in self.once:
            yield self._local(moment)
        for day in days:
            for weekly in self.weekly:
                if day.weekday() in weekly.days:
                    yield self._local(datetime.combine(day, weekly.time))

    def _local(self, moment: datetime) -> datetime:
        """The same moment by the local clock."""
        if moment.tzinfo is not None:
            return moment.astimezone(self.zone)
        # Both readings of a time that exists twice, or not at all: zones do not agree which comes first.
        one, other = sorted(
            moment.replace(tzinfo=self.zone, fold=fold).astimezone(UTC) for fold in (0, 1)
        )
        first = one.astimezone(self.zone)
        exists = first.replace(tzinfo=None) == moment
        return first if exists else other.astimezone(self.zone)


class Due(msgspec.Struct, frozen=True):
    """What is to be done now.

    Attributes:
        start: the moment that a competition is to be started for; None if there is nothing to start.
        skipped: moments that have passed and are not made up for, the earliest first.
    """

    start: datetime | None
    skipped: tuple[datetime, ...]


def due(times: Times, now: datetime, played: Collection[float]) -> Due:
    """What has fallen due and has not been played.

    The last moment is made up for if that is no longer than `LATEST_S` ago. All others since the last that was played are
    skipped; before the first was played only dates count, as what comes every week has no beginning.

    Args:
        times: when it is due.
        now: the present, with its offset.
        played: the `due_at` of this run's competitions, in Unix seconds, and the moments that were skipped and told.
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


def parse(value: object, zone: tzinfo | None = None) -> Times:
    """What stands behind `at` in a file, as `tomllib` gives it.

    Args:
        value: a date and time, a time, one of the texts, or a list of any of these.
        zone: what is local; the machine's own if None.

    Raises:
        UsageError: it is none of them, or a list without any.
    """
    once: list[datetime] = []
    weekly: list[Weekly] = []
    values: list[Any] = value if isinstance(value, list) else [value]
    if not values:
        raise UsageError(f"expected {_EXAMPLES}, got a list without any")
    for one in values:
        match one:
            case datetime():
                once.append(_date(one))
            case time():
                weekly.append(Weekly(EVERY_DAY, one))
            case str():
                weekly.append(_weekly(one))
            case _:
                raise _refusal(one)
    return Times(tuple(once), tuple(weekly), zone)


def _date(moment: datetime) -> datetime:
    if not _START.year < moment.year <= _LAST_YEAR:
        raise _refusal(moment)
    return moment


def _weekly(text: str) -> Weekly:
    """`18:00`, `Mon 18:00` or `Mon,Thu 18:00`."""
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
