"""Who has come to a run, whether it starts, and what is said while it waits (K5).

Pure: who is here, who is on the roster and what time it is comes in.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from arena.competitions.planned_run import Participants, PlannedRun
from arena.engine.names import Spellings, alike
from arena.formats.formats import fewest
from arena.formats.spec import Form
from arena.sandbox.bot_spec import some

__all__ = ["SHOWN", "Attendance", "Upcoming", "Wait", "attendance"]


class Upcoming(msgspec.Struct, frozen=True):
    """A run that is to be played, at its time, or with `null` as soon as enough bots are there.

    `come` of the `expected` bots have come to one that waits now, and it starts with `least`, `own` house bots of the run counted in
    neither; once enough are there it starts by `starts_by`, and sooner if nobody else comes. `missing` are some of those who have not
    come, of the roster or of those who are named, and at `until` it is skipped.
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


SHOWN = 8
"""Of the names of a class in a line."""
_LISTED = 100  # of them in the lobby's document
_SAY_S = 10.0  # between two lines about who is missing


class Attendance(msgspec.Struct, frozen=True, kw_only=True):
    """Who has come to a run, and whether it can start.

    Attributes:
        players: who takes part if it starts now, by the names under which they are here.
        missing: those of the roster, or of the named, who have not come.
        come: how many have come.
        least: how many must have come before it starts.
        fewest: how many must have come whoever starts it.
    """

    players: tuple[str, ...]
    missing: tuple[str, ...]
    come: int
    least: int
    fewest: int

    @property
    def is_enough(self) -> bool:
        """Whether it starts."""
        return self.come >= self.least

    @property
    def refusal(self) -> str:
        """Why a run does not start whose time is over."""
        if self.is_enough:
            return f"the {self.come} bots that are here came too late"
        return f"expected {self.least} bots, {self.come} came"


def attendance(run: PlannedRun, here: Sequence[str], roster: Sequence[str]) -> Attendance:
    """Who of those who are to play a run has come to it (K5).

    It starts when `least` are there, its own house bots among them. If the run does not say how many, it starts

    - without a time of the roster with everybody, but for a ladder, which is open for those who come later;
    - without a time of those who are named with one, as their matches wait for the others;
    - otherwise with as many as the game has seats.

    At least one of the roster or of the named must be there, and as many of the roster as the form needs. Whoever starts a run by
    hand needs no more than that, whatever `least` says.

    Args:
        run: what is played.
        here: who is connected and plays the game.
        roster: all that are on it.
    """
    own = len(run.house)
    least = run.at_least - own
    needed = max(0, min(fewest(run.form), run.at_least) - own)
    if run.who is Participants.CONNECTED:
        return Attendance(
            players=tuple(here), missing=(), come=len(here), least=max(0, least), fewest=needed
        )
    spelled = map(Spellings(roster).of, run.players)
    names = tuple(spelled if run.who is Participants.NAMED else roster)
    came = _came(here, names)
    missing = tuple(name for name in names if name not in came)
    is_unsaid = run.least is None and run.at is None
    if run.who is Participants.NAMED:
        least = 1 if is_unsaid else max(1, least)
        return Attendance(
            players=tuple(came.get(name, name) for name in names),
            missing=missing,
            come=len(names) - len(missing),
            least=min(least, len(names)),
            fewest=0,
        )
    if is_unsaid and run.form is not Form.LADDER:
        least = len(names)
    return Attendance(
        players=tuple(came[name] for name in names if name in came),
        missing=missing,
        come=len(names) - len(missing),
        least=max(1, least, needed),
        fewest=needed,
    )


def _came(here: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Under which name each of these has come: its own, one that looks like it, or the first below it, as `ann/gin` is of `ann`.

    A bot stands for one name at most, and for its own if that is among them. So it is with those below a name.
    """
    known = set(names)
    likes: dict[str, list[str]] = {}
    for name in names:
        likes.setdefault(alike(name), []).append(name)
    came = {name: name for name in here if name in known}

    def stands(bot: str, looks: str) -> bool:
        """Whether the bot stands for a name that looks so."""
        similar = [looks] if looks in known else likes.get(alike(looks), [])
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

    Args:
        run: what is to be played.
        moment: when it was due; None if it has no time.

    Attributes:
        came: who has come, at the last look.
        starts_by: when it starts at the latest, while enough have come and it waits for those who come just now; else None.
    """

    def __init__(self, run: PlannedRun, moment: datetime | None) -> None:
        self.moment = moment
        self.came = attendance(run, (), ())
        self.starts_by: datetime | None = None
        self._run = run
        self._end: datetime | None = None
        self._said: tuple[str, ...] | None = None
        self._said_at = self._minute = -1.0
        if run.at is not None and moment is not None:
            self._end = run.at.latest_start(moment)

    @property
    def upcoming(self) -> Upcoming:
        """It, as the lobby has it."""
        run, came = self._run, self.came
        return Upcoming(
            run.name,
            run.game,
            run.form.value,
            None,
            come=came.come,
            least=came.least,
            missing=came.missing[:_LISTED],
            until=None if self._end is None else self._end.timestamp(),
            own=len(run.house),
            expected=came.come + len(came.missing) if came.missing else None,
            starts_by=None if self.starts_by is None else self.starts_by.timestamp(),
        )

    def is_over(self, now: datetime) -> bool:
        """Whether it does not wait any longer."""
        return self._end is not None and now >= self._end

    def left_s(self, now: datetime) -> float:
        """For how long it waits at most until it has to be looked at again."""
        if self.moment is None or self._end is None:
            return _SAY_S
        passed_s = (now - self.moment).total_seconds()
        return max(0.0, min(60 - passed_s % 60, (self._end - now).total_seconds()))

    @property
    def text(self) -> str:
        """For whom it waits, in a line."""
        run, came, until = self._run, self.came, ""
        if run.at is not None and self._end is not None:
            # By the clock of then, which may have been changed since `moment`.
            until = f" until {self._end.astimezone(run.at.zone):%H:%M}"
        if run.who is Participants.ROSTER and not came.come and not came.missing:
            return f"{run.name} waits{until}: nobody is on the roster, `arena roster import FILE.csv` puts a class on it"
        of = f" of {came.come + len(came.missing)}" if came.missing else ""
        missing = f"; missing: {some(came.missing, SHOWN)}" if came.missing else ""
        own = f" besides {len(run.house)} of its own" if run.house else ""
        starts = f"with {came.least}{own}"
        if self.starts_by is not None:
            zone = run.at.zone if run.at is not None else None
            starts = f"by {self.starts_by.astimezone(zone):%H:%M:%S}, sooner if nobody else comes"
        return f"{run.name} waits{until}: {came.come}{of} here, it starts {starts}{missing}"

    def line(self, now: datetime) -> str:
        """The same, if people should know it now: when it begins to wait and when others are missing, or every minute of its time."""
        missing = self.came.missing
        if self.moment is not None:
            minute = (now - self.moment).total_seconds() // 60
            if minute <= self._minute:
                return ""
            self._minute = minute
        else:
            at = now.timestamp()
            is_same = not missing or missing == self._said
            if self._said is not None and (is_same or at - self._said_at < _SAY_S):
                return ""
            self._said, self._said_at = missing, at
        return self.text
