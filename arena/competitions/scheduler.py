"""Starts what an arena has to play: interrupted competitions, runs that are due, and open games.

Each is a task of its own, so that one that cannot go on stops no other. A database that can never
be written again stops all, as nothing that is played then would count. No sleep lasts long, as
laptops sleep and clocks are set.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from arena.competitions.attendance import MissingVersions, Upcoming, Wait
from arena.competitions.competition import Competition
from arena.competitions.config import Config
from arena.competitions.gathering import GATHER_S, LOOK_S, Gathering, local_now
from arena.competitions.ledger import CompetitionReport
from arena.competitions.live_arena import LiveArena
from arena.competitions.planned_run import Participants, PlannedRun, teams_of
from arena.competitions.start import Startable, plan_by_hand, startable
from arena.competitions.storage_watch import read_again
from arena.engine.names import alike, owner_of
from arena.formats.spec import Form, Plan, Take
from arena.formats.timetable import LATEST_S, due
from arena.games import GAMES, game_named, other_rules
from arena.server.background import BackgroundTasks
from arena.storage.store import CompetitionRow, CompetitionState, Store
from arena.strength.figures import time_of
from protocol.errors import ArenaError, StoreFailed, UnknownGame, UsageError
from protocol.messages import Ending

__all__ = ["OpenGame", "Scheduler"]

# If a run is due so soon, bots are told to connect again to an arena that is stopped now.
_SOON = timedelta(hours=1)


class OpenGame(msgspec.Struct, frozen=True):
    """A game that all bots play again when a new one has come; `plan` is still without players."""

    plan: Plan
    least: int


class Scheduler:
    """Has everything played that is to be played.

    Args:
        on_start: called with every competition that starts or goes on.
        teams: reads the teams of the roster, by name; called when a run starts.
        names: reads the names of the roster; called also while a run waits.
        once: whether to end when everything has been played.
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
        teams: Callable[[], Mapping[str, str]] = dict,
        names: Callable[[], Sequence[str]] = lambda: (),
        once: bool = False,
    ) -> None:
        self._arena = arena
        self._store = store
        self._config = config
        self._on_start = on_start
        self._on_report = on_report
        self._tell = tell
        self._gathering = Gathering(arena, config, tell=tell, teams=teams, names=names)
        self._once = once
        self._runs: Mapping[str, PlannedRun] = {}
        self._games: Mapping[str, Plan] = {}
        self._past: set[str] = set()  # runs without a time that have been played
        self._waits: dict[str, Wait] = {}  # runs that wait for bots
        self._too_late: dict[str, MissingVersions | None] = {}  # of runs that are due soon
        self._tasks = BackgroundTasks(self._ended)
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._has_failed = False

    @property
    def has_failed(self) -> bool:
        """Whether a competition could not be played, or not to its end."""
        return self._has_failed or self._gathering.has_failed

    async def run(self, runs: Sequence[PlannedRun], games: Sequence[OpenGame]) -> None:
        """Play interrupted competitions on, and the others as they are due.

        With `once` it ends when everything has been played. It raises `StoreFailed` when the
        database can never be written again.
        """
        before: dict[str, asyncio.Task[None]] = {}
        self._runs = {run.name: run for run in runs}
        self._games = {game.plan.game: game.plan for game in games}
        for row in self._arena.unfinished():
            try:
                competition = self._resumed(row)
            except ArenaError as error:
                self._has_failed = True
                self._tell(f"{row.id} cannot go on: {error}")
                continue
            task = self.play(competition)
            if competition.unplayed:
                continue  # it may wait for weeks, and holds up nothing
            if not row.plan.run:
                before[row.plan.game] = task
            elif (interrupted := self._runs.get(row.plan.run)) is not None:
                self._gathering.latest[interrupted.name] = competition
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
            is_done = run.name in self._past or run.name in self._gathering.latest
            if wait is not None:
                upcoming.append(wait.upcoming)
            elif following is not None or (run.at is None and not is_done):
                at = None if following is None else following.timestamp()
                too_late = self._too_late.get(run.name)
                upcoming.append(Upcoming(run.name, run.game, run.form.value, at, too_late=too_late))
        return tuple(upcoming)

    def awaiting(self, name: str) -> str | None:
        """The name of an upcoming run that names this owner, or one of its bots, as a player."""
        for upcoming in self.upcoming:
            players = self._runs[upcoming.run].players
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

    async def start(
        self,
        name: str,
        *,
        form: str | None = None,
        matches: int | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> Competition:
        """Play a run now, whatever its time is, or a game with all connected bots that play it.

        `form`, `matches` and `settings` are for a game only; None means the usual ones. It raises
        `UsageError` if there is none of that name, it is on, too few bots are there, or it is not
        played so; then nothing is recorded.
        """
        run = self._runs.get(name)
        if run is None:
            competition = await self._start_game(name, form, matches, settings)
        elif form is None and matches is None and settings is None:
            competition = await self._start_run(run)
        else:
            raise UsageError(
                f"expected form, matches and settings with a game only, {name} is a run of the file"
            )
        self.play(competition)
        return competition

    async def _start_run(self, run: PlannedRun) -> Competition:
        names, teams = await self._gathering.roster()
        last = self._gathering.latest.get(run.name)
        if last is not None and not last.is_over:
            raise UsageError(f"expected a run that is not being played, {run.name} is: {last.id}")
        came = self._gathering.attendance(run, names)
        if came.come < came.fewest:
            of = "of the roster " if run.who is Participants.ROSTER else ""
            by = "connected or submitted" if run.take is Take.EITHER else run.take.value
            raise UsageError(
                f"expected at least {came.fewest} {by} bots {of}that play {run.game} "
                f"for {run.name}, got {came.come}"
            )
        wait = self._waits.get(run.name)
        moment = None if wait is None else wait.moment
        competition = self._gathering.set_up(run, came, teams, moment)
        self._waits.pop(run.name, None)
        self._close_in_time(run, competition, local_now().timestamp())
        return competition

    async def _start_game(
        self,
        name: str,
        form: str | None,
        matches: int | None,
        settings: Mapping[str, object] | None,
    ) -> Competition:
        try:
            game = game_named(name)
        except UnknownGame as error:
            known = ", ".join(self._runs) or "none is in its file"
            raise UsageError(f"{error}; or a run: {known}") from None
        _, teams = await self._gathering.roster()
        usual = self._games.get(game.name)
        plan = plan_by_hand(game, self._config, usual, form, matches, settings)
        return self._gathering.of_all(plan, teams)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self._end.done() or task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._end.set_exception(error)
        elif self._once and not self._tasks:
            self._end.set_result(None)

    async def _play(self, competition: Competition) -> None:
        """Play a competition and report it; if it cannot go on, the others do."""
        self._on_start(competition)
        try:
            self._on_report(await self._arena.play(competition))
        except StoreFailed:
            raise
        except ArenaError as error:
            self._has_failed = True
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
        tried: set[float] = set()  # moments that were played, had too few bots, or were skipped
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
        """Sleep until a run is due, and in the last hour look which versions are missing."""
        while (left_s := (moment - local_now()).total_seconds()) > 0:
            if left_s <= LATEST_S:
                self._too_late[run.name] = await self._gathering.too_late(run, left_s)
            await asyncio.sleep(min(left_s, LOOK_S))
        self._too_late.pop(run.name, None)

    async def _play_once(self, run: PlannedRun) -> None:
        """Play a run without a time, unless it has been played."""
        earlier = await self._earlier(run)
        if earlier and earlier[-1].finished_at is None:
            return  # it goes on
        if earlier and await self._was_played(earlier[-1]):
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
            competition = await self._gathering.competition(run, wait)
        finally:
            self._waits.pop(run.name, None)  # it may have been started by hand
        if competition is not None:
            self._close_in_time(run, competition, local_now().timestamp())
            await self._play(competition)

    async def _was_played(self, row: CompetitionRow) -> bool:
        """Whether any bot came to a competition, or the instructor has stopped it."""
        return row.state is CompetitionState.STOPPED or any(
            match.result.termination.kind is not Ending.ABSENT
            for match in await read_again(lambda: self._store.results(row.id))
        )

    def _close_in_time(self, run: PlannedRun, competition: Competition, began: float) -> None:
        """Close a ladder when its time is over; it `began` at that Unix second."""
        if run.until is not None and competition.plan.form is Form.LADDER:
            end = run.until.next_after(datetime.fromtimestamp(began, UTC))
            if end is not None:
                self._tasks.start(_close(competition, end))

    async def _earlier(self, run: PlannedRun) -> list[CompetitionRow]:
        rows = await read_again(self._store.competitions)
        return [row for row in rows if row.plan.run == run.name]

    # --- open games ---

    async def _open(self, game: OpenGame, before: asyncio.Task[None] | None) -> None:
        """Play a game over and over, after `before`, when enough bots are there and one is new."""
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
            await asyncio.sleep(GATHER_S)
            _, teams = await self._gathering.roster()
            names = presence.names(name)
            if len(names) < game.least:
                continue
            presence.saw(name, names)
            plan = msgspec.structs.replace(game.plan, players=names, teams=teams_of(names, teams))
            try:
                competition = self._arena.compete(plan)
            except UsageError as error:  # they are too few, for instance
                self._has_failed = True
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
        await asyncio.sleep(min(left_s, LOOK_S))


def _for_people(moment: datetime) -> str:
    """A moment as text; another year than this one is shown, as it may be a mistake in the file."""
    year = "" if moment.year == local_now().year else " %Y"
    return time_of(moment, f"%a %d %b{year} %H:%M")
