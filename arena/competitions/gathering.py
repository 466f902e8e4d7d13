"""Waits for the bots of a run, and sets its competition up when enough are there (K5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from arena.competitions.arena_host import Host
from arena.competitions.attendance import SHOWN, Attendance, Wait, attendance
from arena.competitions.competition import Competition
from arena.competitions.config import Config
from arena.competitions.planned_run import (
    Participants,
    PlannedRun,
    house_bots_of,
    plan_for,
    teams_of,
)
from arena.formats.spec import HOUSE_TABLES, Form, Plan
from arena.sandbox.bot_spec import some
from protocol.errors import UsageError

__all__ = ["GATHER_S", "LOOK_S", "Gathering", "local_now"]

GATHER_S = 2.0
"""A class that starts together should be in one competition together."""
LOOK_S = 15.0
"""How long to sleep at most: the clock may be set meanwhile."""
_GATHERS = 15  # and then it starts, whoever may still come
_REJOIN_S = 15.0  # a bot looks at least so often whether the arena is there again
_CALM_S = 0.1  # between two looks at who has come, when a large class comes at once


class Gathering:
    """Brings the bots of runs together.

    Args:
        host: the arena, which is open.
        config: limits and settings, for the runs.
        tell: told what people should know, a line each.
        teams: by name, from the roster; read when a run starts.
        names: all on the roster; read when a run starts, and again and again while it waits.

    Attributes:
        latest: the latest competition of every run.
        has_failed: whether a run could not be played by those who came.
    """

    def __init__(
        self,
        host: Host,
        config: Config,
        *,
        tell: Callable[[str], None],
        teams: Callable[[], Mapping[str, str]],
        names: Callable[[], Sequence[str]],
    ) -> None:
        self.latest: dict[str, Competition] = {}
        self.has_failed = False
        self._host = host
        self._config = config
        self._tell = tell
        self._teams = teams
        self._names = names
        self._since = local_now()  # when the arena was started

    async def roster(self) -> tuple[Sequence[str], Mapping[str, str]]:
        """Who is on it now, and in which team."""
        return await asyncio.to_thread(lambda: (self._names(), self._teams()))

    def attendance(self, run: PlannedRun, roster: Sequence[str]) -> Attendance:
        """Who of those who are to play a run has come to it."""
        return attendance(run, self._host.presence.names(run.game), roster)

    async def competition(self, run: PlannedRun, wait: Wait) -> Competition | None:
        """A run's competition as soon as enough are there; None if it is not to be played for this moment any more."""
        before, refusal = self.latest.get(run.name), ""
        names, _ = await self.roster()
        read_at = local_now()
        while self.latest.get(run.name) is before:  # else the instructor was quicker
            wait.came = self.attendance(run, names)
            if wait.is_over(local_now()):
                came = wait.came
                why = came.refusal if not came.is_enough else refusal or came.refusal
                self._tell(f"{run.name} is not played: {why}")
                return None
            if wait.came.is_enough:
                await self._gathered(run, wait, names)
                wait.starts_by = None
                names, teams = await self.roster()
                came = wait.came = self.attendance(run, names)
                if not came.is_enough or self.latest.get(run.name) is not before:
                    continue  # somebody has gone meanwhile, say
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
        """A run's competition, with who takes part now.

        Raises:
            UsageError: it cannot be played by them.
        """
        tables = min(HOUSE_TABLES, self._config.limits.tables)
        guests = house_bots_of(run, {*came.players, *self._host.presence.taken}, tables)
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
        )
        competition = self._host.compete(plan)
        self.latest[run.name] = competition
        if not_there:
            self._tell(f"{run.name} starts without {some(not_there, SHOWN)}: not there")
        return competition

    def of_all(self, plan: Plan, teams: Mapping[str, str]) -> Competition:
        """A competition between all who are connected and play its game.

        Raises:
            UsageError: they are too few.
        """
        names = self._host.presence.names(plan.game)
        least = 1 if plan.form is Form.LEAGUE else 2
        if len(names) < least:
            raise UsageError(
                f"expected at least {least} connected bots that play {plan.game}, got {len(names)}"
            )
        return self._host.compete(
            msgspec.structs.replace(plan, players=names, teams=teams_of(names, teams))
        )

    # --- within ---

    async def _changed(self, wait: Wait) -> None:
        """Wait until a bot has come or gone, but not for long."""
        try:
            async with asyncio.timeout(min(LOOK_S, wait.left_s(local_now()))):
                await self._host.wait_for_change()
        except TimeoutError:
            return
        await asyncio.sleep(_CALM_S)

    async def _gathered(self, run: PlannedRun, wait: Wait, names: Sequence[str]) -> None:
        """Wait for those who come just now, as who takes part is settled when it starts (K5); also for lost connections."""
        is_complete = run.who is not Participants.CONNECTED and not wait.came.missing
        if run.who is Participants.NAMED or is_complete:
            return  # whoever is named and comes later is awaited by its matches
        is_again = wait.moment is not None and wait.moment < self._since
        up_s, rejoin_s = (local_now() - self._since).total_seconds(), 0.0
        if wait.came.least and (run.who is Participants.ROSTER or is_again):
            # The arena may have been started again, and its bots are on their way back.
            rejoin_s = max(0.0, min(_REJOIN_S, _REJOIN_S - up_s))
        wait.starts_by = local_now() + timedelta(seconds=rejoin_s + _GATHERS * GATHER_S)
        await asyncio.sleep(rejoin_s)
        for _ in range(_GATHERS):
            wait.came = self.attendance(run, names)
            here = self._host.presence.names(run.game)
            await asyncio.sleep(GATHER_S)
            is_calm = self._host.presence.names(run.game) == here
            if is_calm and not self._host.presence.is_awaiting(run.game):
                return


def local_now() -> datetime:
    """The time of day, in the time zone of this machine."""
    return datetime.now(UTC).astimezone()
