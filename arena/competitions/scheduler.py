"""Starts what an arena has to play: interrupted competitions, runs that are due, and open games.

Each is a task of its own, so that one that cannot go on stops no other. A run that is due waits for
its bots and is set up when enough have come (K5). If the database can never be written again,
everything stops, as nothing played after that would count. No sleep is long, as laptops sleep and
clocks are set.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from arena.competitions.attendance import (
    SHOWN,
    Attendance,
    MissingVersions,
    Upcoming,
    Wait,
    attendance,
)
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
from arena.competitions.start import Startable, plan_by_hand, startable
from arena.competitions.storage_watch import read_again
from arena.formats.spec import HOUSE_TABLES, Form, Plan, Take
from arena.formats.timetable import LATEST_S, due
from arena.games.catalogue import GAMES, game_named, other_rules
from arena.games.names import alike, owner_of
from arena.games.statistics import time_of
from arena.sandbox.bot_spec import some
from arena.server.background import BackgroundTasks
from arena.storage.models import CompetitionReport
from arena.storage.store import CompetitionRow, CompetitionState, Store
from protocol.errors import ArenaError, StoreFailed, UnknownGame, UsageError
from protocol.messages import Ending

__all__ = ["OpenGame", "Scheduler"]

_GATHER_S = 2.0  # bots of a class that start together should be in one competition
_GATHERS = 15  # pauses of _GATHER_S; then it starts, even if more bots come
_REJOIN_S = 15.0  # the longest time between two attempts of a bot to connect again
_CALM_S = 0.1  # between two looks at the attendance when a large class comes at once
_LOOK_S = 15.0  # the longest sleep, as the clock may be set meanwhile
# If a run is due this soon, an arena that is stopped tells its bots to connect again.
_SOON = timedelta(hours=1)


class OpenGame(msgspec.Struct, frozen=True):
    """A game that all bots play again when a new one has come; `plan` has no players yet."""

    plan: Plan
    least: int


class Scheduler:
    """Plays everything that an arena has to play.

    Args:
        on_start: called with every competition that starts or goes on.
        roster: reads the names on the roster and their teams, by name; called when a run starts,
            and while one waits.
        once: whether to end when everything has been played.

    Attributes:
        has_failed: whether a competition could not be played, or not to its end.
    """

    def __init__(
        self,
        arena: LiveArena,
        store: Store,
        config: Config,
        *,
        on_start: Callable[[Competition], None],
        on_report: Callable[[CompetitionReport], None],
        tell: Callable[[str], None],
        roster: Callable[[], tuple[Sequence[str], Mapping[str, str]]] = lambda: ((), {}),
        once: bool = False,
    ) -> None:
        self.has_failed = False
        self._arena = arena
        self._store = store
        self._config = config
        self._on_start = on_start
        self._on_report = on_report
        self._tell = tell
        self._read_roster = roster
        self._once = once
        self._since = local_now()  # when the arena was started
        self._runs: Mapping[str, PlannedRun] = {}
        self._games: Mapping[str, Plan] = {}
        self._latest: dict[str, Competition] = {}  # by run, if it has been started
        self._past: set[str] = set()  # runs without a time that have been played
        self._waits: dict[str, Wait] = {}  # runs that wait for bots
        self._too_late: dict[str, MissingVersions | None] = {}  # for runs that are due soon
        self._tasks = BackgroundTasks(self._ended)
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, runs: Sequence[PlannedRun], games: Sequence[OpenGame]) -> None:
        """Continue interrupted competitions, and play the others when they are due.

        With `once` it ends when everything has been played. Raises `StoreFailed` when the database
        can never be written again.
        """
        before: dict[str, asyncio.Task[None]] = {}
        self._runs = {run.name: run for run in runs}
        self._games = {game.plan.game: game.plan for game in games}
        for row in self._arena.unfinished():
            try:
                competition = self._resumed(row)
            except ArenaError as error:
                self.has_failed = True
                self._tell(f"{row.id} cannot go on: {error}")
                continue
            task = self.play(competition)
            if competition.unplayed:
                continue  # it may wait for weeks, and must not hold up anything
            if not row.plan.run:
                before[row.plan.game] = task
            elif (interrupted := self._runs.get(row.plan.run)) is not None:
                self._latest[interrupted.name] = competition
                self._close_in_time(interrupted, competition, row.started_at)
        for run in runs:
            self._tasks.start(self._repeat(run))
        for game in games:
            self._tasks.start(self._open(game, before.get(game.plan.game)))
        if not self._tasks and self._once:
            return
        try:
            await self._arena.storage.guard(self._end)
        finally:
            soon = (local_now() + _SOON).timestamp()
            if self._waits or any(0 < (run.next_at or 0) < soon for run in self.upcoming):
                self._arena.will_go_on()
            self._tasks.cancel()
            await self._tasks.ended()

    @property
    def upcoming(self) -> tuple[Upcoming, ...]:
        """The runs that wait for their time, or for bots."""
        upcoming = []
        for run in self._runs.values():
            wait = self._waits.get(run.name)
            following = None if run.at is None else run.at.next_after(local_now())
            is_done = run.name in self._past or run.name in self._latest
            if wait is not None:
                upcoming.append(wait.upcoming)
            elif following is not None or (run.at is None and not is_done):
                at = None if following is None else following.timestamp()
                submitted = None if run.take is Take.CONNECTED else 0
                too_late = self._too_late.get(run.name)
                about = run.name, run.game, run.form.value, at
                upcoming.append(Upcoming(*about, submitted=submitted, too_late=too_late))
        return tuple(upcoming)

    @property
    def planned_games(self) -> frozenset[str]:
        """The games of competitions in which a bot that connects now may play."""
        return frozenset(self._games) | {run.game for run in self.upcoming}

    def awaiting(self, name: str) -> str | None:
        """Return an upcoming run's name if it names this owner or its bots as players."""
        for upcoming in self.upcoming:
            players = self._runs[upcoming.run].named
            if alike(name) in (alike(owner_of(player)) for player in players):
                return upcoming.run
        return None

    @property
    def waiting(self) -> tuple[str, ...]:
        """A line for each run that waits, with the bots or the time that it waits for."""
        later = [
            f"{run.name} starts {_for_people(at)}"
            for run in self._runs.values()
            if run.name not in self._waits
            and run.at is not None
            and (at := run.at.next_after(local_now())) is not None
        ]
        return (*(wait.text for wait in self._waits.values()), *later)

    def play(self, competition: Competition) -> asyncio.Task[None]:
        return self._tasks.start(self._play(competition))

    @property
    def startable(self) -> tuple[Startable, ...]:
        return tuple(
            startable(game, self._config, self._games.get(name)) for name, game in GAMES.items()
        )

    async def start(self, name: str, **chosen: Any) -> Competition:
        """Play a run now, whatever its time is, or a game with all connected bots that play it.

        `chosen` are the `form`, `matches` and `settings` of `plan_by_hand`, for a game only; None
        means the usual ones. Raises `UsageError` if there is none of that name, it is already
        running, too few bots are there, or the choice is invalid; then nothing is recorded.
        """
        run = self._runs.get(name)
        if run is None:
            competition = await self._start_game(name, chosen)
        elif all(value is None for value in chosen.values()):
            competition = await self._start_run(run)
        else:
            raise UsageError(
                f"expected form, matches and settings with a game only, {name} is a run of the file"
            )
        self.play(competition)
        return competition

    async def _start_run(self, run: PlannedRun) -> Competition:
        names, teams = await self._roster()
        last = self._latest.get(run.name)
        if last is not None and not last.is_over:
            raise UsageError(f"expected a run that is not being played, {run.name} is: {last.id}")
        came = self._attendance(run, names)
        if came.come < came.fewest:
            of = "of the roster " if run.who is Participants.ROSTER else ""
            by = "connected or submitted" if run.take is Take.EITHER else run.take.value
            raise UsageError(
                f"expected at least {came.fewest} {by} bots {of}that play {run.game} "
                f"for {run.name}, got {came.come}"
            )
        wait = self._waits.get(run.name)
        competition = self._set_up(run, came, teams, None if wait is None else wait.moment)
        self._waits.pop(run.name, None)
        return competition

    async def _start_game(self, name: str, chosen: Mapping[str, Any]) -> Competition:
        try:
            game = game_named(name)
        except UnknownGame as error:
            known = ", ".join(self._runs) or "none is in its file"
            raise UsageError(f"{error}; or a run: {known}") from None
        _, teams = await self._roster()
        plan = plan_by_hand(game, self._config, self._games.get(game.name), **chosen)
        names = self._arena.here.names(plan.game)
        least = 1 if plan.form is Form.LEAGUE else 2
        if len(names) < least:
            raise UsageError(
                f"expected at least {least} connected bots that play {plan.game}, got {len(names)}"
            )
        return self._compete(plan, names, teams)

    def _compete(self, plan: Plan, names: tuple[str, ...], teams: Mapping[str, str]) -> Competition:
        """Set up a competition of the bots that have come for a game."""
        plan = msgspec.structs.replace(plan, players=names, teams=teams_of(names, teams))
        return self._arena.compete(plan)

    async def _roster(self) -> tuple[Sequence[str], Mapping[str, str]]:
        return await read_again(self._read_roster)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self._end.done() or task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._end.set_exception(error)
        elif self._once and not self._tasks:
            self._end.set_result(None)

    async def _play(self, competition: Competition) -> None:
        """Play a competition and report it; if it cannot go on, the others still do."""
        self._on_start(competition)
        try:
            self._on_report(await self._arena.play(competition))
        except StoreFailed:
            raise
        except ArenaError as error:
            self.has_failed = True
            self._tell(f"{competition.id} cannot go on: {error}")

    def _resumed(self, row: CompetitionRow) -> Competition:
        competition = self._arena.resume(row)
        competition.started_at = row.started_at
        state = " (paused)" if competition.arbiter.is_paused else ""
        scheduled = competition.progress.scheduled
        far = f"{competition.ledger.played:,}" + (f" of {scheduled}" if scheduled else "")
        self._tell(f"{row.id} goes on: {competition.title}, {far} matches played{state}")
        if competition.unplayed:
            self._tell(competition.unplayed)
        if (why := other_rules(row.plan.game, row.plan.package)) is not None:
            self._tell(f"{row.id} goes on by other rules: {why}")
        return competition

    # --- runs ---

    async def _repeat(self, run: PlannedRun) -> None:
        if run.at is None:
            await self._play_once(run)
            return
        tried: set[float] = set()  # moments that were played or skipped, or had too few bots
        while True:
            before = (row.plan.due_at for row in await self._earlier(run))
            started = {moment for moment in before if moment is not None}
            moments = due(run.at, local_now(), started | tried)
            for skipped in moments.skipped:
                tried.add(skipped.timestamp())
                self._tell(f"{run.name} was not played at {_for_people(skipped)}")
            if moments.start is not None:
                tried.add(moments.start.timestamp())
                await self._play_run(run, moments.start)
                continue
            following = run.at.next_after(local_now())
            if following is None:
                return
            self._tell(f"{run.name} starts {_for_people(following)}")
            await self._sleep_until(run, following)

    async def _sleep_until(self, run: PlannedRun, moment: datetime) -> None:
        """Sleep until a run is due; in the last hour, check which versions are missing."""
        while (left_s := (moment - local_now()).total_seconds()) > 0:
            if left_s <= LATEST_S:
                self._too_late[run.name] = await self._missing_versions(run, left_s)
            await asyncio.sleep(min(left_s, _LOOK_S))
        self._too_late.pop(run.name, None)

    async def _missing_versions(self, run: PlannedRun, left_s: float) -> MissingVersions | None:
        """Return the missing versions if deciding all takes longer than is left; else None."""
        each_s = self._arena.decision_s
        if run.take is Take.CONNECTED or each_s is None:
            return None
        names, _ = await self._roster()
        if run.who is Participants.CONNECTED:  # then anybody on the roster may still come
            run = msgspec.structs.replace(run, players=Participants.ROSTER.value)
        count = len(self._attendance(run, names).missing)
        return MissingVersions(count, count * each_s) if count * each_s > left_s else None

    async def _play_once(self, run: PlannedRun) -> None:
        """Play a run without a time, unless it has been played."""
        earlier = await self._earlier(run)
        if earlier and earlier[-1].finished_at is None:
            return  # it is still running
        # It has been played if any bot came to it, or the instructor stopped it.
        if earlier and (
            earlier[-1].state is CompetitionState.STOPPED
            or any(
                match.result.termination.kind is not Ending.ABSENT
                for match in await read_again(lambda: self._store.results(earlier[-1].id))
            )
        ):
            self._past.add(run.name)
            self._tell(
                f"{run.name} is not played again: it was {earlier[-1].id}; "
                "give it a time, `at`, or another name"
            )
        else:
            await self._play_run(run, None)

    async def _play_run(self, run: PlannedRun, moment: datetime | None) -> None:
        wait = self._waits[run.name] = Wait(run, moment)
        try:
            competition = await self._gathered(run, wait)
        finally:
            self._waits.pop(run.name, None)  # gone already if it was started by hand
        if competition is not None:
            await self._play(competition)

    def _close_in_time(self, run: PlannedRun, competition: Competition, began: float) -> None:
        """Close a ladder when its time is over; `began` is its start in Unix seconds."""
        if run.until is not None and competition.plan.form is Form.LADDER:
            end = run.until.next_after(datetime.fromtimestamp(began, UTC))
            if end is not None:
                self._tasks.start(_close(competition, end))

    async def _earlier(self, run: PlannedRun) -> list[CompetitionRow]:
        rows = await read_again(self._store.competitions)
        return [row for row in rows if row.plan.run == run.name]

    # --- the bots of a run ---

    def _attendance(self, run: PlannedRun, roster: Sequence[str]) -> Attendance:
        versions = self._arena.versions_in_play(run.game)
        return attendance(run, self._arena.here.names(run.game), roster, versions)

    async def _gathered(self, run: PlannedRun, wait: Wait) -> Competition | None:
        """Set up a run when enough bots are there; None if it is too late or started by hand."""
        refusal = ""
        names, _ = await self._roster()
        read_at = local_now()
        while self._waits.get(run.name) is wait:  # otherwise the instructor has started it
            was_held = self._arena.storage.is_late
            await self._arena.storage.goes_on()
            wait.came = came = self._attendance(run, names)
            # A run loses no time while results could not reach the disk.
            if wait.is_over(local_now()) and not (was_held and came.is_enough):
                why = came.refusal if not came.is_enough else refusal or came.refusal
                self._tell(f"{run.name} is not played: {why}")
                return None
            if wait.came.is_enough:
                await self._joined(run, wait, names)
                wait.starts_by = None
                await self._decided(run, wait, names)
                names, teams = await self._roster()
                came = wait.came = self._attendance(run, names)
                is_other = self._waits.get(run.name) is not wait
                if not came.is_enough or is_other or self._arena.storage.is_late:
                    continue  # for example, a bot has left meanwhile
                try:
                    return self._set_up(run, came, teams, wait.moment)
                except UsageError as error:
                    self.has_failed = True
                    if str(error) != refusal:
                        refusal = str(error)
                        self._tell(f"{run.name} cannot be played: {error}")
            else:
                comes = self._arena.undecided_before(local_now().timestamp())
                wait.closed = "" if comes else self._arena.submissions_closed
                if line := wait.line(local_now()):
                    self._tell(line)
            if await self._change(wait.left_s(local_now())):
                await asyncio.sleep(_CALM_S)
            is_old = abs((local_now() - read_at).total_seconds()) >= _LOOK_S
            if is_old and run.who is Participants.ROSTER:
                names, _ = await self._roster()
                read_at = local_now()
        return None

    def _set_up(
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
            versions={name: versions[name] for name in came.submitted},
        )
        competition = self._arena.compete(plan)
        self._latest[run.name] = competition
        self._close_in_time(run, competition, local_now().timestamp())
        if not_there:
            self._tell(f"{run.name} starts without {some(not_there, SHOWN)}: not there")
        return competition

    async def _decided(self, run: PlannedRun, wait: Wait, names: Sequence[str]) -> None:
        """Wait up to an hour for the check of submissions from before the run's moment (K5)."""
        if run.take is Take.CONNECTED:
            return
        before = wait.moment or local_now()
        end = wait.end or before + timedelta(seconds=LATEST_S)
        while (left_s := (end - local_now()).total_seconds()) > 0:
            if self._waits.get(run.name) is not wait:
                return  # it was started by hand
            wait.undecided = self._arena.undecided_before(before.timestamp())
            if not wait.undecided:
                return
            wait.came = self._attendance(run, names)
            if line := wait.line(local_now()):
                self._tell(line)
            await self._change(left_s)
        wait.undecided = ()

    async def _joined(self, run: PlannedRun, wait: Wait, names: Sequence[str]) -> None:
        """Wait until no more bots come, as the start decides who takes part (K5)."""
        is_complete = run.who is not Participants.CONNECTED and not wait.came.missing
        if run.who is Participants.NAMED or is_complete or run.take is Take.SUBMITTED:
            return  # matches wait for a named bot that comes later
        is_again = wait.moment is not None and wait.moment < self._since
        up_s, rejoin_s = (local_now() - self._since).total_seconds(), 0.0
        if wait.came.least and (run.who is Participants.ROSTER or is_again):
            # The arena may have been restarted, with its bots still connecting again.
            rejoin_s = max(0.0, min(_REJOIN_S, _REJOIN_S - up_s))
        wait.starts_by = local_now() + timedelta(seconds=rejoin_s + _GATHERS * _GATHER_S)
        await asyncio.sleep(rejoin_s)
        for _ in range(_GATHERS):
            wait.came = self._attendance(run, names)
            here = self._arena.here.names(run.game)
            await asyncio.sleep(_GATHER_S)
            is_calm = self._arena.here.names(run.game) == here
            if is_calm and not self._arena.here.is_awaiting(run.game):
                return

    async def _change(self, within_s: float) -> bool:
        """Wait until a bot comes or goes, but not for long; return whether one did."""
        try:
            async with asyncio.timeout(min(_LOOK_S, within_s)):
                await self._arena.wait_for_change()
        except TimeoutError:
            return False
        return True

    # --- open games ---

    async def _open(self, game: OpenGame, before: asyncio.Task[None] | None) -> None:
        """Play a game again and again, after `before`, if enough bots are there and one is new."""
        name, presence = game.plan.game, self._arena.here
        if before is not None:
            await asyncio.wait([before])
            if self._once:
                return
            presence.saw(name, presence.names(name))
        while True:
            while presence.count(name) < game.least or not presence.has_new(name):
                await self._arena.wait_for_change()
            await self._arena.storage.goes_on()
            await asyncio.sleep(_GATHER_S)
            _, teams = await self._roster()
            names = presence.names(name)
            if len(names) < game.least:
                continue
            presence.saw(name, names)
            try:
                competition = self._compete(game.plan, names, teams)
            except UsageError as error:  # for example, there are too few of them
                self.has_failed = True
                self._tell(f"{name} cannot be played: {error}")
            else:
                await self._play(competition)
            if self._once:
                return


async def _close(competition: Competition, end: datetime) -> None:
    while not competition.is_over:
        left_s = (end - local_now()).total_seconds()
        if left_s <= 0:
            competition.close()
            return
        await asyncio.sleep(min(left_s, _LOOK_S))


def local_now() -> datetime:
    """Return the time now, in the time zone of this machine."""
    return datetime.now(UTC).astimezone()


def _for_people(moment: datetime) -> str:
    """Format a moment; the year is shown if it is not this one, as it may be a mistake."""
    year = "" if moment.year == local_now().year else " %Y"
    return time_of(moment, f"%a %d %b{year} %H:%M")
