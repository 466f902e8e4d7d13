"""Waits for the bots of a run, and sets its competition up when enough have come (K5)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from arena.competitions.attendance import SHOWN, Attendance, MissingVersions, Wait, attendance
from arena.competitions.competition import Competition
from arena.competitions.config import Config
from arena.competitions.live_arena import LiveArena
from arena.competitions.planned_run import (
    Participants,
    PlannedRun,
    house_bots_of,
    plan_for,
    teams_of,
)
from arena.competitions.storage_watch import read_again
from arena.formats.spec import HOUSE_TABLES, Form, Plan, Take
from arena.formats.timetable import LATEST_S
from arena.sandbox.bot_spec import some
from protocol.errors import UsageError

__all__ = ["GATHER_S", "LOOK_S", "Gathering", "local_now"]

GATHER_S = 2.0  # a class that starts together should be in one competition together
LOOK_S = 15.0  # the longest sleep, as the clock may be set meanwhile
_GATHERS = 15  # of GATHER_S each; then it starts, even if more bots come
_REJOIN_S = 15.0  # the longest time between two attempts of a bot to connect again
_CALM_S = 0.1  # between two looks at who has come, when a large class comes at once


class Gathering:
    """Waits for the bots of runs and sets up the runs' competitions.

    Args:
        teams: reads the teams of the roster, by name; called when a run starts.
        names: reads the names of the roster; called also while a run waits.

    Attributes:
        latest: the latest competition of every run, by the run's name.
        has_failed: whether a run could not be played by the bots that came.
    """

    def __init__(
        self,
        arena: LiveArena,
        config: Config,
        *,
        tell: Callable[[str], None],
        teams: Callable[[], Mapping[str, str]],
        names: Callable[[], Sequence[str]],
    ) -> None:
        self.latest: dict[str, Competition] = {}
        self.has_failed = False
        self._arena = arena
        self._config = config
        self._tell = tell
        self._teams = teams
        self._names = names
        self._since = local_now()  # when the arena was started

    async def roster(self) -> tuple[Sequence[str], Mapping[str, str]]:
        """The names on the roster now, and their teams by name."""
        return await read_again(lambda: (self._names(), self._teams()))

    def attendance(self, run: PlannedRun, roster: Sequence[str]) -> Attendance:
        versions = self._arena.versions_in_play(run.game)
        return attendance(run, self._arena.here.names(run.game), roster, versions)

    async def too_late(self, run: PlannedRun, left_s: float) -> MissingVersions | None:
        """The versions that cannot all be decided in the time left, at the mean of the latest."""
        each_s = self._arena.decision_s
        if run.take is Take.CONNECTED or each_s is None:
            return None
        names, _ = await self.roster()
        if run.who is Participants.CONNECTED:  # everybody may still come
            run = msgspec.structs.replace(run, who=Participants.ROSTER)
        count = len(self.attendance(run, names).missing)
        return MissingVersions(count, count * each_s) if count * each_s > left_s else None

    async def competition(self, run: PlannedRun, wait: Wait) -> Competition | None:
        """Set up a run when enough bots are there; None if it is too late or started by hand."""
        before, refusal = self.latest.get(run.name), ""
        names, _ = await self.roster()
        read_at = local_now()
        while self.latest.get(run.name) is before:  # else the instructor was quicker
            was_held = self._arena.storage.is_late
            await self._arena.storage.goes_on()
            wait.came = came = self.attendance(run, names)
            # What kept results from the disk takes no run its time.
            if wait.is_over(local_now()) and not (was_held and came.is_enough):
                why = came.refusal if not came.is_enough else refusal or came.refusal
                self._tell(f"{run.name} is not played: {why}")
                return None
            if wait.came.is_enough:
                await self._gathered(run, wait, names)
                wait.starts_by = None
                await self._decided(run, wait, names)
                names, teams = await self.roster()
                came = wait.came = self.attendance(run, names)
                is_other = self.latest.get(run.name) is not before
                if not came.is_enough or is_other or self._arena.storage.is_late:
                    continue  # a bot has left meanwhile, for instance
                try:
                    return self.set_up(run, came, teams, wait.moment)
                except UsageError as error:
                    self.has_failed = True
                    if str(error) != refusal:
                        refusal = str(error)
                        self._tell(f"{run.name} cannot be played: {error}")
            elif line := wait.line(local_now()):
                self._tell(line)
            await self._changed(wait)
            is_old = abs((local_now() - read_at).total_seconds()) >= LOOK_S
            if is_old and run.who is Participants.ROSTER:
                names, _ = await self.roster()
                read_at = local_now()
        return None

    def set_up(
        self, run: PlannedRun, came: Attendance, teams: Mapping[str, str], moment: datetime | None
    ) -> Competition:
        """Set up a run's competition with those who came; `UsageError` if they cannot play it."""
        tables = min(HOUSE_TABLES, self._config.limits.tables)
        versions = self._arena.versions_in_play(run.game)
        taken = {*came.players, *self._arena.here.taken}
        if run.take is not Take.CONNECTED:
            taken |= versions.keys()
        guests = house_bots_of(run, taken, tables)
        is_settled = run.who is Participants.ROSTER and run.form is not Form.LADDER
        not_there = came.missing if is_settled else ()
        plan = plan_for(
            run,
            self._config.limits,
            self._config.games,
            (*came.players, *(bot.name for bot in guests)),
            teams,
            due_at=None if moment is None else moment.timestamp(),
            bots=guests,
            not_there=not_there,
            versions={name: versions[name] for name in came.submitted if name in versions},
        )
        competition = self._arena.compete(plan)
        self.latest[run.name] = competition
        if not_there:
            self._tell(f"{run.name} starts without {some(not_there, SHOWN)}: not there")
        return competition

    def of_all(self, plan: Plan, teams: Mapping[str, str]) -> Competition:
        """Set up a competition of all bots that play its game; `UsageError` for too few."""
        names = self._arena.here.names(plan.game)
        least = 1 if plan.form is Form.LEAGUE else 2
        if len(names) < least:
            raise UsageError(
                f"expected at least {least} connected bots that play {plan.game}, got {len(names)}"
            )
        return self._arena.compete(
            msgspec.structs.replace(plan, players=names, teams=teams_of(names, teams))
        )

    async def _changed(self, wait: Wait) -> None:
        """Wait until a bot comes or goes, or something else has to be looked at."""
        try:
            async with asyncio.timeout(min(LOOK_S, wait.left_s(local_now()))):
                await self._arena.wait_for_change()
        except TimeoutError:
            return
        await asyncio.sleep(_CALM_S)

    async def _decided(self, run: PlannedRun, wait: Wait, names: Sequence[str]) -> None:
        """Wait for the check of what had arrived before the run's moment, at most an hour (K5)."""
        if run.take is Take.CONNECTED:
            return
        before, latest = wait.moment or local_now(), self.latest.get(run.name)
        end = wait.end or before + timedelta(seconds=LATEST_S)
        while (left_s := (end - local_now()).total_seconds()) > 0:
            if self.latest.get(run.name) is not latest:
                return  # it was started by hand
            wait.undecided = self._arena.undecided_before(before.timestamp())
            if not wait.undecided:
                return
            wait.came = self.attendance(run, names)
            if line := wait.line(local_now()):
                self._tell(line)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(LOOK_S, left_s)):
                    await self._arena.wait_for_change()
        wait.undecided = ()

    async def _gathered(self, run: PlannedRun, wait: Wait, names: Sequence[str]) -> None:
        """Wait until no more bots come: who takes part is settled at the start (K5)."""
        is_complete = run.who is not Participants.CONNECTED and not wait.came.missing
        if run.who is Participants.NAMED or is_complete or run.take is Take.SUBMITTED:
            return  # matches wait for a named bot that comes later
        is_again = wait.moment is not None and wait.moment < self._since
        up_s, rejoin_s = (local_now() - self._since).total_seconds(), 0.0
        if wait.came.least and (run.who is Participants.ROSTER or is_again):
            # The arena may have been restarted, and its bots are connecting again.
            rejoin_s = max(0.0, min(_REJOIN_S, _REJOIN_S - up_s))
        wait.starts_by = local_now() + timedelta(seconds=rejoin_s + _GATHERS * GATHER_S)
        await asyncio.sleep(rejoin_s)
        for _ in range(_GATHERS):
            wait.came = self.attendance(run, names)
            here = self._arena.here.names(run.game)
            await asyncio.sleep(GATHER_S)
            is_calm = self._arena.here.names(run.game) == here
            if is_calm and not self._arena.here.is_awaiting(run.game):
                return


def local_now() -> datetime:
    """The time now, in the time zone of this machine."""
    return datetime.now(UTC).astimezone()
