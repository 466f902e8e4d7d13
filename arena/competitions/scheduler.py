"""What an arena has before it: competitions that were interrupted, runs that are due, and games for whoever comes.

Each is a task of its own, so that one that cannot go on stops no other. A database that cannot be written stops all: what would be
played then would not count. Time is looked at again and again instead of slept through, as laptops sleep and clocks are set.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from arena.competitions.arena_host import Host
from arena.competitions.attendance import Upcoming, Wait
from arena.competitions.competition import Competition
from arena.competitions.config import Config
from arena.competitions.gathering import GATHER_S, LOOK_S, Gathering, local_now
from arena.competitions.ledger import CompetitionReport
from arena.competitions.planned_run import Participants, PlannedRun, teams_of
from arena.competitions.start import Startable, plan_by_hand, startable
from arena.engine.names import alike, owner_of
from arena.formats.spec import Form, Plan
from arena.formats.timetable import due
from arena.games import GAMES, game_named
from arena.server.background import BackgroundTasks
from arena.storage.store import CompetitionRow, CompetitionState, Store
from protocol.errors import ArenaError, StoreFailed, UnknownGame, UsageError
from protocol.messages import Ending

__all__ = ["OpenGame", "Scheduler"]

_SOON = timedelta(hours=1)
"""For a run that is due by then bots look out for an arena that was stopped."""


class OpenGame(msgspec.Struct, frozen=True):
    """A game for whoever comes: its competition starts again when somebody new is there.

    Attributes:
        plan: what is played; its players are filled in.
        least: how many must be there.
    """

    plan: Plan
    least: int


class Scheduler:
    """Has everything played that is to be played.

    Args:
        host: the arena, which is open.
        store: its database.
        config: limits and settings, for the runs.
        on_start: told of every competition as it starts or goes on.
        on_report: told how one ended.
        tell: told what people should know, a line each.
        teams: by name, from the roster; read when a run starts.
        names: all on the roster; read when a run starts, and again and again while it waits.
        once: whether to end when nothing more is to come.
    """

    def __init__(
        self,
        host: Host,
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
        self._host = host
        self._store = store
        self._config = config
        self._on_start = on_start
        self._on_report = on_report
        self._tell = tell
        self._gathering = Gathering(host, config, tell=tell, teams=teams, names=names)
        self._once = once
        self._runs: Mapping[str, PlannedRun] = {}
        self._games: Mapping[str, Plan] = {}
        self._past: set[str] = set()  # runs that were played before, once and for all
        self._waits: dict[str, Wait] = {}  # by run, those that wait for bots
        self._tasks = BackgroundTasks(self._ended)
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._has_failed = False

    @property
    def has_failed(self) -> bool:
        """Whether a competition could not be played, or not to its end."""
        return self._has_failed or self._gathering.has_failed

    async def run(self, runs: Sequence[PlannedRun], games: Sequence[OpenGame]) -> None:
        """Play on what was interrupted, then what comes; with `once` until all is done, else for ever.

        Raises:
            StoreFailed: the database cannot be written any more.
        """
        before: dict[str, asyncio.Task[None]] = {}
        self._runs = ends = {run.name: run for run in runs}
        self._games = {game.plan.game: game.plan for game in games}
        for written in self._host.unfinished():
            try:
                competition = self._resumed(written)
            except ArenaError as error:
                self._has_failed = True
                self._tell(f"{written.id} cannot go on: {error}")
                continue
            played = self.play(competition)
            if not written.plan.run:
                before[written.plan.game] = played
            if written.plan.run in ends:
                run = ends[written.plan.run]
                self._gathering.latest[run.name] = competition
                self._until(run, competition, written.started_at)
        for run in runs:
            self._tasks.start(self._repeat(run))
        for game in games:
            self._tasks.start(self._open(game, before.get(game.plan.game)))
        if not self._tasks and self._once:
            return
        try:
            await self._end
        finally:
            soon = (local_now() + _SOON).timestamp()
            if self._waits or any(0 < (one.next_at or 0) < soon for one in self.upcoming):
                self._host.will_go_on()
            self._tasks.cancel()
            await self._tasks.ended()

    @property
    def upcoming(self) -> tuple[Upcoming, ...]:
        """What is to be played: the runs that wait for their time, or for bots."""
        coming = []
        for run in self._runs.values():
            wait = self._waits.get(run.name)
            following = None if run.at is None else run.at.next_after(local_now())
            is_done = run.name in self._past or run.name in self._gathering.latest
            if wait is not None:
                coming.append(wait.upcoming)
            elif following is not None or (run.at is None and not is_done):
                at = None if following is None else following.timestamp()
                coming.append(Upcoming(run.name, run.game, run.form.value, at))
        return tuple(coming)

    def awaiting(self, name: str) -> str | None:
        """The run that is still to be played and names somebody, or one of somebody's bots, among its players."""
        for run in (self._runs[one.run] for one in self.upcoming):
            if alike(name) in (alike(owner_of(player)) for player in run.players):
                return run.name
        return None

    @property
    def waiting(self) -> tuple[str, ...]:
        """For whom runs wait, or for what time, a line each."""
        later = [
            f"{run.name} starts {_said(at)}"
            for run in self._runs.values()
            if run.name not in self._waits
            and run.at is not None
            and (at := run.at.next_after(local_now())) is not None
        ]
        return (*(wait.text for wait in self._waits.values()), *later)

    def play(self, competition: Competition) -> asyncio.Task[None]:
        """Have a competition played beside the others."""
        return self._tasks.start(self._play(competition))

    @property
    def startable(self) -> tuple[Startable, ...]:
        """What can be chosen for each game, if it is started by hand."""
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
        """Have a run played now, whatever its time is, or a game by all who are connected and play it.

        Args:
            name: of the run, or of the game.
            form: of a game, if not the usual one.
            matches: of a game, how often each two meet, or each bot the dealer.
            settings: of a game, if not the usual ones.

        Raises:
            UsageError: there is none of that name, it is on, too few are there, or it is not played so; nothing is written.
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

    # --- within ---

    async def _start_run(self, run: PlannedRun) -> Competition:
        names, teams = await self._gathering.roster()
        last = self._gathering.latest.get(run.name)
        if last is not None and not last.is_over:
            raise UsageError(f"expected a run that is not being played, {run.name} is: {last.id}")
        came = self._gathering.attendance(run, names)
        if came.come < came.fewest:
            of = "of the roster " if run.who is Participants.ROSTER else ""
            raise UsageError(
                f"expected at least {came.fewest} bots {of}that play {run.game} for {run.name}, {came.come} are connected"
            )
        wait = self._waits.get(run.name)
        moment = None if wait is None else wait.moment
        competition = self._gathering.set_up(run, came, teams, moment)
        self._until(run, competition, local_now().timestamp())
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
        """Play it and tell what came of it; if it cannot go on, the others do."""
        self._on_start(competition)
        try:
            self._on_report(await self._host.play(competition))
        except StoreFailed:
            raise
        except ArenaError as error:
            self._has_failed = True
            self._tell(f"{competition.id} cannot go on: {error}")

    def _resumed(self, written: CompetitionRow) -> Competition:
        competition = self._host.resume(written)
        competition.started_at = written.started_at
        state = " (paused)" if competition.is_paused else ""
        progress = competition.progress
        self._tell(
            f"{written.id} goes on: {competition.title}, {competition.played:,} of {progress.scheduled or 'ever more'} matches played{state}"
        )
        return competition

    # --- runs ---

    async def _repeat(self, run: PlannedRun) -> None:
        """All competitions of one run, each at its time."""
        if run.at is None:
            earlier = self._earlier(run)
            if earlier and earlier[-1].finished_at is None:
                return  # it goes on
            if earlier and self._was_played(earlier[-1]):
                self._past.add(run.name)
                self._tell(
                    f"{run.name} is not played again: it was {earlier[-1].id}; give it a time, `at`, or another name"
                )
            else:
                await self._play_run(run, None)
            return
        tried: set[float] = set()  # also those that came to nothing, or were left out
        while True:
            before = (one.plan.due_at for one in self._earlier(run))
            started = {moment for moment in before if moment is not None}
            moments = due(run.at, local_now(), started | tried)
            for skipped in moments.skipped:
                tried.add(skipped.timestamp())
                self._tell(f"{run.name} was not played at {_said(skipped)}")
            if moments.start is not None:
                tried.add(moments.start.timestamp())
                await self._play_run(run, moments.start)
                continue
            following = run.at.next_after(local_now())
            if following is None:
                return
            self._tell(f"{run.name} starts {_said(following)}")
            while (left_s := (following - local_now()).total_seconds()) > 0:
                await asyncio.sleep(min(left_s, LOOK_S))

    async def _play_run(self, run: PlannedRun, moment: datetime | None) -> None:
        wait = self._waits[run.name] = Wait(run, moment)
        try:
            competition = await self._gathering.competition(run, wait)
        finally:
            del self._waits[run.name]
        if competition is not None:
            self._until(run, competition, local_now().timestamp())
            await self._play(competition)

    def _was_played(self, written: CompetitionRow) -> bool:
        """Whether it was more than a competition to which nobody came."""
        return written.state is CompetitionState.STOPPED or any(
            one.result.termination.kind is not Ending.ABSENT
            for one in self._store.results(written.id)
        )

    def _until(self, run: PlannedRun, competition: Competition, began: float) -> None:
        """Close a ladder when its time is over."""
        if run.until is not None and competition.plan.form is Form.LADDER:
            end = run.until.next_after(datetime.fromtimestamp(began, UTC))
            if end is not None:
                self._tasks.start(_close(competition, end))

    def _earlier(self, run: PlannedRun) -> list[CompetitionRow]:
        return [one for one in self._store.competitions() if one.plan.run == run.name]

    # --- games for whoever comes ---

    async def _open(self, game: OpenGame, before: asyncio.Task[None] | None) -> None:
        """One game's competitions, one after another; first the one that was interrupted."""
        name = game.plan.game
        if before is not None:
            await asyncio.wait([before])
            if self._once:
                return
            self._host.presence.saw(name, self._host.presence.names(name))
        while True:
            while not self._is_worth(game):
                await self._host.wait_for_change()
            await asyncio.sleep(GATHER_S)
            _, teams = await self._gathering.roster()
            names = self._host.presence.names(name)
            if len(names) < game.least:
                continue
            self._host.presence.saw(name, names)
            plan = msgspec.structs.replace(game.plan, players=names, teams=teams_of(names, teams))
            try:
                competition = self._host.compete(plan)
            except UsageError as error:  # these are too few, say
                self._has_failed = True
                self._tell(f"{name} cannot be played: {error}")
            else:
                await self._play(competition)
            if self._once:
                return

    def _is_worth(self, game: OpenGame) -> bool:
        """Whether enough bots are there, and one of them has not competed yet."""
        name = game.plan.game
        return self._host.presence.count(name) >= game.least and self._host.presence.has_new(name)


async def _close(competition: Competition, end: datetime) -> None:
    while not competition.is_over:
        left_s = (end - local_now()).total_seconds()
        if left_s <= 0:
            competition.close()
            return
        await asyncio.sleep(min(left_s, LOOK_S))


def _said(moment: datetime) -> str:
    """A moment for people; its year is said if it is not this one, as it may be a slip of the pen then."""
    year = "" if moment.year == local_now().year else " %Y"
    return moment.strftime(f"%a %d %b{year} %H:%M")
