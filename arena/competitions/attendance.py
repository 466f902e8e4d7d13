"""Decides which bots have come to a run and whether it starts, and reports while it waits (K5).

Pure: the connected bots, the versions in play, the roster and the time are arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

import msgspec

from arena.competitions.planned_run import Participants, PlannedRun
from arena.formats.spec import Form, Take
from arena.games.names import Spellings, alike, owner_of
from arena.games.statistics import time_of
from arena.sandbox.bot_spec import some

__all__ = ["SHOWN", "Attendance", "MissingVersions", "Upcoming", "Wait", "attendance"]


class MissingVersions(msgspec.Struct, frozen=True):
    """How many of a run's bots have no version yet, if checking them would take too long."""

    count: int
    needed_s: float


class Upcoming(msgspec.Struct, frozen=True):
    """A run that is to be played, at its time, or with `null` as soon as enough bots are there.

    If it is waiting now, `come` of the `expected` bots have come, and it starts with `least` of
    them; its `own` house bots are in neither number. Once enough are there, it starts by
    `starts_by`, or sooner if nobody else comes. `missing` are some of the roster's bots, or of the
    named ones, that have not come. At `until` the run is skipped. `submitted` of those that have
    come play by their submissions; it is `null` if the run takes none. The run waits for the check
    of submissions that the `undecided` owners handed in before its time.
    """

    run: str
    game: str
    form: str
    next_at: float | None
    come: int | None = None
    least: int | None = None
    missing: tuple[str, ...] = ()
    until: float | None = None
    own: int = 0
    expected: int | None = None
    starts_by: float | None = None
    submitted: int | None = None
    undecided: tuple[str, ...] = ()
    too_late: MissingVersions | None = None


SHOWN = 8  # names of missing bots in a line
_LISTED = 100  # names of missing bots, or of owners, in the lobby's document
_SAY_S = 10.0  # between two lines about missing bots


class Attendance(msgspec.Struct, frozen=True):
    """The bots that have come to a run, and whether it can start (K5).

    Attributes:
        players: the bots that take part if it starts now, by their names here.
        submitted: the players that play by their submissions.
        missing: names on the roster, or named by the run, that have not come.
    """

    run: PlannedRun
    players: tuple[str, ...]
    come: int
    submitted: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def here(self) -> str:
        """How many have come, out of how many if known, and in which way."""
        of = f" of {self.come + len(self.missing)}" if self.missing else ""
        if self.run.take is Take.SUBMITTED:
            return f"{self.come}{of} submitted"
        submitted = len(self.submitted)
        by = f" ({self.come - submitted} connected, {submitted} submitted)"
        return f"{self.come}{of} here{by if self.run.take is Take.EITHER else ''}"

    @property
    def fewest(self) -> int:
        """How many must have come even if it is started by hand: as many as the form needs."""
        return 0 if self.run.waits_for_named else max(0, self.run.needed - len(self.run.house))

    @property
    def least(self) -> int:
        """How many must have come before it starts.

        The run may say how many; its own house bots are included in that. Otherwise it starts

        - with everybody, if it has no time and takes the roster, or named bots that submit; but a
          ladder starts earlier, as it is open for latecomers;
        - with one bot, if it has no time and takes other named bots, as their matches wait for the
          rest;
        - in all other cases, with as many as the game has seats.

        At least one of the roster or of the named bots must be there, and of the roster as many as
        the form needs.
        """
        run, expected = self.run, self.come + len(self.missing)
        least = run.at_least - len(run.house)
        is_unsaid = run.least is None and run.at is None
        if run.who is Participants.CONNECTED:
            return max(0, least)
        if run.waits_for_named:
            return min(1 if is_unsaid else max(1, least), expected)
        if is_unsaid and run.form is not Form.LADDER:
            least = expected
        least = max(1, least, self.fewest)
        return min(least, expected) if run.who is Participants.NAMED else least

    @property
    def is_enough(self) -> bool:
        return self.come >= self.least

    def out_of_reach(self, closed: str) -> str:
        """Return why not enough bots can come any more; empty while they can.

        `closed` is the reason why nothing can be submitted any more.
        """
        on_roster = self.come + len(self.missing)
        if self.run.who is Participants.ROSTER and 0 < on_roster < self.least:
            return f"{on_roster} on the roster"
        return closed if self.run.take is Take.SUBMITTED and not self.is_enough else ""

    @property
    def refusal(self) -> str:
        """Why a run whose time is over does not start."""
        if self.is_enough:
            return f"the {self.come} bots that are here came too late"
        return f"expected {self.least} bots, {self.come} came"


def attendance(
    run: PlannedRun, here: Sequence[str], roster: Sequence[str], versions: Collection[str] = ()
) -> Attendance:
    """Find which of the bots of a run have come to it (K5).

    If the run takes submissions, a bot whose owner has a version in play has come. If it takes
    either, a connected bot of the owner, `ann` or `ann/two`, has precedence. If the run has a list
    of names, `ann/two` stands for `ann`; otherwise it is a bot of its own.

    `here` are the connected bots that play its game, `roster` are all names on the roster, and
    `versions` are the owners of versions that are in play in it.
    """
    if run.take is Take.CONNECTED:
        versions = ()
    elif run.take is Take.SUBMITTED:
        here = ()
    if run.who is Participants.CONNECTED:
        owners = {alike(owner_of(name)) for name in here}
        submitted = tuple(name for name in versions if alike(name) not in owners)
        players = (*here, *submitted)
        return Attendance(run, players, len(players), submitted)
    is_named = run.who is Participants.NAMED
    names = tuple(map(Spellings(roster).of, run.named) if is_named else roster)
    came = _came(here, names)
    submitted = tuple(name for name in names if name in versions and name not in came)
    came |= {name: name for name in submitted}
    missing = tuple(name for name in names if name not in came)
    players = tuple(came.get(name, name) for name in names if run.waits_for_named or name in came)
    return Attendance(run, players, len(names) - len(missing), submitted, missing)


def _came(here: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return the bot that has come for each of these names, by name.

    It is the bot of that name, or one whose name looks like it, or the first one below it, as
    `ann/two` is below `ann`. A bot stands for at most one name; if its own name is among them, for
    that.
    """
    known = set(names)
    likes: dict[str, list[str]] = {}
    for name in names:
        likes.setdefault(alike(name), []).append(name)
    came = {name: name for name in here if name in known}

    def stands(bot: str, spelling: str) -> bool:
        """Let a bot stand for a name that looks like `spelling`, if there is one left."""
        similar = [spelling] if spelling in known else likes.get(alike(spelling), [])
        name = next((name for name in similar if name not in came), None)
        if name is not None:
            came[name] = bot
        return name is not None

    for bot in [bot for bot in here if bot not in known and not stands(bot, bot)]:
        above = bot.rpartition("/")[0]
        while above and not stands(bot, above):
            above = above.rpartition("/")[0]
    return came


class Wait:
    """A run that waits for bots.

    Attributes:
        moment: when it was due; None if it has no time.
        end: until when it waits; None without a time.
        came: the attendance at the last look.
        starts_by: when it starts at the latest; None until enough have come.
        undecided: the owners of submissions that arrived in time and are not checked yet.
        closed: why nothing can be submitted any more; empty while something can.
    """

    def __init__(self, run: PlannedRun, moment: datetime | None) -> None:
        self.moment = moment
        self.end = run.at.latest_start(moment) if run.at and moment else None
        self.came = attendance(run, (), ())
        self.starts_by: datetime | None = None
        self.undecided: Sequence[str] = ()
        self.closed = ""
        self._told: tuple[str, ...] | None = None
        self._told_at = self._minute = -1.0

    @property
    def upcoming(self) -> Upcoming:
        run, came = self.came.run, self.came
        return Upcoming(
            run.name,
            run.game,
            run.form.value,
            None,
            come=came.come,
            least=came.least,
            missing=came.missing[:_LISTED],
            until=None if self.end is None else self.end.timestamp(),
            own=len(run.house),
            expected=came.come + len(came.missing) if came.missing else None,
            starts_by=None if self.starts_by is None else self.starts_by.timestamp(),
            submitted=None if run.take is Take.CONNECTED else len(came.submitted),
            undecided=tuple(self.undecided[:_LISTED]),
        )

    def is_over(self, now: datetime) -> bool:
        return self.end is not None and now >= self.end

    def left_s(self, now: datetime) -> float:
        """Return the most seconds to wait until `line` or `is_over` may have changed."""
        if self.moment is None or self.end is None:
            return _SAY_S
        passed_s = (now - self.moment).total_seconds()
        return max(0.0, min(60 - passed_s % 60, (self.end - now).total_seconds()))

    @property
    def text(self) -> str:
        """A line on the bots that it waits for."""
        run, came, until = self.came.run, self.came, ""
        if run.at is not None and self.end is not None:
            # Summer time may begin or end between `moment` and then.
            until = f" until {time_of(self.end.astimezone(run.at.zone), '%H:%M')}"
        if run.who is Participants.ROSTER and not came.come and not came.missing:
            return (
                f"{run.name} waits{until}: nobody is on the roster, "
                "`arena roster import FILE.csv` puts a class on it"
            )
        missing = f"; missing: {some(came.missing, SHOWN)}" if came.missing else ""
        own = f" besides {len(run.house)} of its own" if run.house else ""
        starts = f"with {came.least}{own}"
        if self.starts_by is not None:
            zone = run.at.zone if run.at is not None else None
            starts_by = time_of(self.starts_by.astimezone(zone), "%H:%M:%S")
            starts = f"by {starts_by}, sooner if nobody else comes"
        if self.undecided:
            starts = f"when what {some(self.undecided, SHOWN)} handed in before is checked"
        elif why := came.out_of_reach(self.closed):
            starts += f", which cannot be reached ({why}; `arena start {run.name}` starts it now)"
        return f"{run.name} waits{until}: {came.here}, it starts {starts}{missing}"

    def line(self, now: datetime) -> str:
        """Return `text` if it should be told now, else an empty string.

        A run with a time has its line every minute. A run without a time has it when it begins to
        wait, and whenever the missing bots change.
        """
        news = (*self.came.missing, *self.undecided)
        if self.moment is not None:
            minute = (now - self.moment).total_seconds() // 60
            if minute <= self._minute:
                return ""
            self._minute = minute
        else:
            at = now.timestamp()
            is_same = not news or news == self._told
            if self._told is not None and (is_same or at - self._told_at < _SAY_S):
                return ""
            self._told, self._told_at = news, at
        return self.text
