"""What the scheduler plays and when, by a clock that tests set."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from arena.competitions import gathering, scheduler
from arena.competitions.arena_host import Host
from arena.competitions.attendance import Upcoming, attendance
from arena.competitions.config import Config
from arena.competitions.planned_run import Participants, PlannedRun, teams_of
from arena.competitions.scheduler import OpenGame, Scheduler
from arena.formats.spec import Form, Plan, Take, plan_of
from arena.formats.timetable import Times, parse
from arena.games import GAMES
from arena.storage.store import CompetitionRow, CompetitionState, Store
from protocol.errors import ArenaError, StoreFailed, UsageError
from protocol.messages import Ending, Limits, Termination
from tests.support.fake_host import turns

MONDAY = datetime(2026, 11, 23, 17, 0, tzinfo=UTC)
SIX = MONDAY.replace(hour=18)
GATHER_S = 0.001
CLASS = ("ann", "ben", "cem", "dan")


def sets(monkeypatch: pytest.MonkeyPatch, name: str, value: object) -> None:
    """A time, or the clock, wherever it is used."""
    for module in (gathering, scheduler):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, value)


class FakeCompetition:
    """Stands in for a competition: it is over when a test says so."""

    def __init__(self, name: str, plan: Plan, is_paused: bool = False) -> None:
        self.id = name
        self.plan = plan
        self.title = plan.run or plan.game
        self.is_paused = is_paused
        self.is_over = False
        self.is_closed = False
        self.played = 3
        self.progress = SimpleNamespace(scheduled=0 if plan.form is Form.LADDER else 1_200)
        self.ends: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def end(self, error: Exception | None = None) -> None:
        self.is_over = True
        if error is None:
            self.ends.set_result(f"report of {self.id}")
        else:
            self.ends.set_exception(error)

    def close(self) -> None:
        self.is_closed = True
        if not self.ends.done():
            self.end()


class FakeSchedulerHost:
    """Stands in for the host and its store: keeps what is to be played."""

    def __init__(self) -> None:
        self.here: dict[str, object] = {}  # who is connected, and its session
        self.started: list[FakeCompetition] = []
        self.playing: list[FakeCompetition] = []
        self.written: list[CompetitionRow] = []
        self.seen: set[object] = set()  # who took part in the last
        self.endings: dict[str, list[Ending]] = {}  # of matches, by competition
        self.is_waiting_for_somebody = False
        self.goes_on = False
        self.refuses: str | None = None
        self.versions: dict[str, int] = {}  # the submissions that are in play
        self.undecided: list[float] = []  # when submissions arrived that are not decided
        self.decides_within_s = 60.0
        self._changed = asyncio.Event()

    @property
    def taken(self) -> set[str]:
        """Names that are somebody's."""
        return {*self.here, *(name for cup in self.playing for name in cup.plan.players)}

    def comes(self, *names: str) -> None:
        for name in names:
            self.here[name] = object()
        self._changed.set()

    # --- as a host ---

    @property
    def presence(self) -> FakeSchedulerHost:
        return self

    def names(self, game: str) -> tuple[str, ...]:
        fillers = {bot.name for cup in self.playing for bot in cup.plan.bots}
        return tuple(name for name in self.here if name not in fillers)

    def count(self, game: str) -> int:
        return len(self.names(game))

    def saw(self, game: str, names: Collection[str]) -> None:
        self.seen = {self.here[name] for name in names}

    def has_new(self, game: str) -> bool:
        return any(self.here[name] not in self.seen for name in self.names(game))

    def will_go_on(self) -> None:
        self.goes_on = True

    def is_awaiting(self, game: str) -> bool:
        return self.is_waiting_for_somebody

    def versions_in_play(self, game: str) -> dict[str, int]:
        return self.versions

    def undecided_before(self, at: float) -> int:
        return sum(arrived < at for arrived in self.undecided)

    async def wait_for_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def unfinished(self) -> tuple[CompetitionRow, ...]:
        unfinished = (CompetitionState.RUNNING, CompetitionState.PAUSED)
        return tuple(row for row in self.written if row.state in unfinished)

    def resume(self, row: CompetitionRow) -> FakeCompetition:
        cup = FakeCompetition(row.id, row.plan, row.state is CompetitionState.PAUSED)
        self.started.append(cup)
        return cup

    def compete(self, plan: Plan) -> FakeCompetition:
        if self.refuses is not None:
            raise UsageError(self.refuses)
        cup = FakeCompetition(f"c{len(self.started)}", plan)
        self.started.append(cup)
        self.note(cup)
        return cup

    async def play(self, cup: FakeCompetition) -> str:
        self.playing.append(cup)
        try:
            return await cup.ends
        finally:
            self.playing.remove(cup)
            self.note(cup, CompetitionState.FINISHED)

    # --- as a store ---

    def note(
        self, cup: FakeCompetition, state: CompetitionState = CompetitionState.RUNNING
    ) -> None:
        self.written = [row for row in self.written if row.id != cup.id]
        self.written.append(written(cup.id, cup.plan, state))

    def has(
        self, state: CompetitionState = CompetitionState.RUNNING, run: str = "cup", **plan: Any
    ) -> None:
        """A competition of a run, `akq-1`, is in the database."""
        of_run = msgspec.structs.replace(a_game().plan, run=run, **plan)
        self.written.append(written("akq-1", of_run, state))

    def competitions(self) -> tuple[CompetitionRow, ...]:
        return tuple(self.written)

    def results(self, competition: str) -> Sequence[Any]:
        return [
            SimpleNamespace(result=SimpleNamespace(termination=Termination(kind)))
            for kind in self.endings.get(competition, [Ending.COMPLETED])
        ]


def written(
    name: str, plan: Plan, state: CompetitionState = CompetitionState.RUNNING
) -> CompetitionRow:
    return CompetitionRow(
        id=name,
        plan=plan,
        state=state,
        revision=0,
        started_at=MONDAY.timestamp(),
        finished_at=None if state in (CompetitionState.RUNNING, CompetitionState.PAUSED) else 1.0,
        ranking=(),
    )


class RunningScheduler:
    """A scheduler that runs, what it has told, and its clock; the class is on its roster."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, stand: FakeSchedulerHost | None = None
    ) -> None:
        self.now = MONDAY
        sets(monkeypatch, "local_now", lambda: self.now)
        sets(monkeypatch, "LOOK_S", 0)
        for pause in ("GATHER_S", "_REJOIN_S", "_CALM_S"):
            sets(monkeypatch, pause, 0)
        self.stand = stand or FakeSchedulerHost()
        self.roster = list(CLASS)
        self.teams: dict[str, str] = {}
        self.lines: list[str] = []
        self.reports: list[object] = []
        self.task: asyncio.Task[None] | None = None
        self.scheduler = self.a_scheduler()

    def a_scheduler(self) -> Scheduler:
        """A scheduler whose arena is started now."""
        return Scheduler(
            cast(Host, self.stand),
            cast(Store, self.stand),
            Config(limits=Limits(bank_ms=1, tables=8)),
            on_start=lambda competition: None,
            on_report=self.reports.append,
            tell=self.lines.append,
            teams=lambda: self.teams,
            names=lambda: self.roster,
        )

    def begins(
        self, *runs: PlannedRun, games: Sequence[OpenGame] = (), once: bool = False
    ) -> asyncio.Task[None]:
        self.scheduler._once = once
        self.task = asyncio.create_task(self.scheduler.run(runs, games))
        return self.task

    async def until(self, holds: Callable[[], Any]) -> None:
        while not holds():
            await asyncio.sleep(0)

    async def starts(self, count: int) -> FakeCompetition:
        """The competition that starts as number `count`, from 1."""
        await self.until(lambda: len(self.stand.started) >= count)
        await self.until(lambda: self.stand.started[count - 1] in self.stand.playing)
        assert len(self.stand.started) == count
        return self.stand.started[-1]

    async def ends(self) -> None:
        """The arena is stopped; until then its scheduler has run, unless it plays once or fails."""
        task, self.task = self.task, None
        if task is not None and not task.done():
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        elif task is not None:
            assert self.scheduler._once or isinstance(task.exception(), StoreFailed)


@pytest.fixture
async def evening(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunningScheduler]:
    evening = RunningScheduler(monkeypatch)
    yield evening
    await evening.ends()


def a_run(name: str = "cup", at: str | None = None, **fields: Any) -> PlannedRun:
    times = None if at is None else parse(at, UTC)
    return PlannedRun(
        name=name,
        game=fields.pop("game", "ace_king_queen"),
        form=fields.pop("form", Form.ROUND_ROBIN),
        least=fields.pop("least", 2),
        at=times,
        **fields,
    )


async def begin_to_gather(
    monkeypatch: pytest.MonkeyPatch, evening: RunningScheduler, *, once: bool = False
) -> asyncio.Event:
    """Ann and Ben have come to a run, which waits for others until the event is set."""
    gathers, goes_on, real = asyncio.Event(), asyncio.Event(), asyncio.sleep

    async def sleep(delay_s: float) -> None:
        if delay_s == GATHER_S:
            monkeypatch.setattr(asyncio, "sleep", real)
            gathers.set()
            await goes_on.wait()
        await real(0)

    sets(monkeypatch, "GATHER_S", GATHER_S)
    evening.begins(a_run(), once=once)
    await turns()
    monkeypatch.setattr(asyncio, "sleep", sleep)
    evening.stand.comes("ann", "ben")
    await gathers.wait()
    sets(monkeypatch, "GATHER_S", 0)
    return goes_on


def a_game(name: str = "ace_king_queen", least: int = 2) -> OpenGame:
    game = GAMES[name]
    settings = game.vocabulary.read_settings({})
    return OpenGame(plan_of(game, settings, ()), least)


# --- runs without a time ---


async def test_a_run_without_a_time_starts_when_enough_are_there(evening: RunningScheduler) -> None:
    task = evening.begins(a_run(least=3), once=True)
    evening.stand.comes("ann", "ben")
    await evening.until(lambda: evening.lines)
    assert evening.stand.started == []

    evening.stand.comes("cem")
    cup = await evening.starts(1)
    assert cup.plan.players == ("ann", "ben", "cem")
    assert cup.plan.run == "cup"
    assert cup.plan.due_at is None
    assert cup.plan.limits.bank_ms == 1

    cup.end()
    await task
    assert evening.reports == ["report of c0"]
    assert not evening.scheduler.has_failed
    assert evening.lines == ["cup waits: 2 here, it starts with 3"]


async def test_a_run_of_submissions_starts_with_the_versions_in_play(
    evening: RunningScheduler,
) -> None:
    evening.begins(a_run(take=Take.SUBMITTED, house=("nash",)))
    evening.stand.comes("eve")
    evening.stand.versions = {"ann": 11, "nash": 21}
    cup = await evening.starts(1)

    assert cup.plan.players == ("ann", "nash", "nash-2")
    assert (cup.plan.take, cup.plan.versions) == (Take.SUBMITTED, {"ann": 11, "nash": 21})


async def test_what_arrived_in_time_is_waited_for(evening: RunningScheduler) -> None:
    evening.stand.versions = {"ann": 11, "ben": 21}
    evening.stand.undecided = [MONDAY.timestamp() - 60]
    evening.begins(a_run(take=Take.EITHER))
    await evening.until(lambda: evening.lines)

    assert evening.lines == [
        "cup waits: 2 here (0 connected, 2 submitted), "
        "it starts when 1 submission that came in time is checked"
    ]
    [upcoming] = evening.scheduler.upcoming
    assert (upcoming.submitted, upcoming.undecided) == (2, 1)

    evening.stand.undecided = [MONDAY.timestamp() + 60]
    evening.stand.versions = {"ann": 12, "ben": 21}
    cup = await evening.starts(1)
    assert cup.plan.versions == {"ann": 12, "ben": 21}


async def test_but_not_for_ever(evening: RunningScheduler) -> None:
    evening.stand.versions = {"ann": 11, "ben": 21}
    evening.stand.undecided = [MONDAY.timestamp() - 60]
    evening.stand.decides_within_s = 0.001
    evening.begins(a_run(take=Take.SUBMITTED))

    assert (await evening.starts(1)).plan.versions == {"ann": 11, "ben": 21}


async def test_a_run_that_is_still_to_be_played_keeps_the_names_of_its_players(
    evening: RunningScheduler,
) -> None:
    names = ("Ann/gin", "ben")
    evening.roster.clear()
    later = a_run("later", "Mon 19:00", who=Participants.NAMED, players=("dan",))
    cup = a_run("cup", who=Participants.NAMED, players=names)
    evening.begins(cup, later)
    await turns()

    awaiting = evening.scheduler.awaiting
    assert (awaiting("ANN"), awaiting("dan"), awaiting("cem")) == (*("cup", "later"), None)

    evening.stand.comes(*names)
    played = await evening.starts(1)
    assert awaiting("ann") is None, "it is being played"
    played.end()


async def test_it_does_not_start_when_one_of_them_goes_again(
    monkeypatch: pytest.MonkeyPatch, evening: RunningScheduler
) -> None:
    goes_on = await begin_to_gather(monkeypatch, evening, once=True)
    del evening.stand.here["ben"]
    goes_on.set()
    await turns()
    assert evening.stand.started == []

    evening.stand.comes("cem")
    cup = await evening.starts(1)
    assert cup.plan.players == ("ann", "cem")
    cup.end()
    await evening.until(lambda: evening.task and evening.task.done())


async def test_a_run_without_a_time_is_played_once_in_a_database(evening: RunningScheduler) -> None:
    evening.stand.has(CompetitionState.FINISHED)
    evening.stand.comes("ann", "ben")
    await evening.begins(a_run(), once=True)

    assert evening.stand.started == []
    [line] = evening.lines
    assert "cup is not played again: it was akq-1" in line


async def test_a_run_that_goes_on_is_not_told_to_be_over(evening: RunningScheduler) -> None:
    evening.stand.has()
    task = evening.begins(a_run(), once=True)
    cup = await evening.starts(1)
    assert evening.lines == ["akq-1 goes on: cup, 3 of 1200 matches played"]
    cup.end()
    await task
    assert len(evening.stand.started) == 1


# --- runs at a time ---


async def test_K5_a_run_starts_at_its_time_and_again_a_week_later(
    evening: RunningScheduler,
) -> None:
    evening.stand.comes("ann", "ben")
    evening.begins(a_run(at="Mon 18:00"))
    await turns()
    assert evening.lines == ["cup starts Mon 23 Nov 18:00"]

    evening.now = SIX - timedelta(seconds=1)
    await turns()
    assert evening.stand.started == []

    evening.now = SIX
    cup = await evening.starts(1)
    assert cup.plan.due_at == SIX.timestamp()
    evening.now = SIX + timedelta(minutes=20)
    cup.end()
    await turns()
    assert len(evening.stand.started) == 1, "not twice for the same moment"
    assert evening.lines[-1] == "cup starts Mon 30 Nov 18:00"

    evening.now = SIX + timedelta(days=7)
    again = await evening.starts(2)
    assert again.plan.due_at == (SIX + timedelta(days=7)).timestamp()
    again.end()


async def test_a_run_at_one_date_ends_with_it(evening: RunningScheduler) -> None:
    evening.stand.comes("ann", "ben")
    run = msgspec.structs.replace(a_run(), at=Times(once=(SIX,), zone=UTC))
    task = evening.begins(run, once=True)
    await turns()
    evening.now = SIX
    cup = await evening.starts(1)
    cup.end()
    await task


async def test_within_the_hour_it_is_made_up_for(evening: RunningScheduler) -> None:
    evening.stand.comes("ann", "ben")
    evening.now = SIX + timedelta(minutes=59)
    evening.begins(a_run(at="18:00"))
    cup = await evening.starts(1)
    assert cup.plan.due_at == SIX.timestamp()


async def test_later_than_that_it_is_skipped_and_told(evening: RunningScheduler) -> None:
    evening.stand.comes("ann", "ben")
    evening.now = SIX + timedelta(hours=2)
    run = msgspec.structs.replace(a_run(), at=Times(once=(SIX,), zone=UTC))
    await evening.begins(run, once=True)

    assert evening.stand.started == []
    assert evening.lines == ["cup was not played at Mon 23 Nov 18:00"]


async def test_the_year_is_told_if_it_is_not_this_one(evening: RunningScheduler) -> None:
    evening.stand.comes("ann", "ben")
    evening.now = SIX
    past = SIX.replace(year=SIX.year - 1)
    run = msgspec.structs.replace(a_run(), at=Times(once=(past,), zone=UTC))
    await evening.begins(run, once=True)

    assert evening.lines == [f"cup was not played at Sun 23 Nov {past.year} 18:00"]


async def test_what_was_skipped_is_told_once(evening: RunningScheduler) -> None:
    evening.stand.comes("ann", "ben")
    friday = (SIX - timedelta(days=3)).timestamp()
    evening.stand.has(CompetitionState.FINISHED, due_at=friday)
    evening.now = SIX + timedelta(hours=2)
    evening.begins(a_run(at="18:00"))
    await evening.until(lambda: len(evening.lines) >= 4)
    assert evening.lines == [
        "cup was not played at Sat 21 Nov 18:00",
        "cup was not played at Sun 22 Nov 18:00",
        "cup was not played at Mon 23 Nov 18:00",
        "cup starts Tue 24 Nov 18:00",
    ]

    evening.now = SIX + timedelta(days=1)
    cup = await evening.starts(1)
    assert len(evening.lines) == 4

    evening.now = SIX + timedelta(days=2, hours=2)
    cup.end()
    await evening.until(lambda: len(evening.lines) >= 6)
    assert evening.lines[4:] == [
        "cup was not played at Wed 25 Nov 18:00",
        "cup starts Thu 26 Nov 18:00",
    ]


async def test_a_run_that_was_played_before_the_arena_was_killed_is_not_played_again(
    evening: RunningScheduler,
) -> None:
    evening.stand.comes("ann", "ben")
    evening.now = SIX + timedelta(minutes=5)
    evening.stand.has(due_at=SIX.timestamp())
    evening.begins(a_run(at="18:00"))
    await evening.starts(1)
    await turns()
    assert [cup.id for cup in evening.stand.started] == ["akq-1"]


async def test_who_does_not_come_within_the_hour_does_not_play(evening: RunningScheduler) -> None:
    evening.stand.comes("ann")
    evening.now = SIX
    run = msgspec.structs.replace(a_run(), at=Times(once=(SIX,), zone=UTC))
    task = evening.begins(run, once=True)
    await evening.until(lambda: evening.lines)
    evening.now = SIX + timedelta(hours=1)
    await task

    assert evening.stand.started == []
    assert evening.lines == [
        "cup waits until 19:00: 1 here, it starts with 2",
        "cup is not played: expected 2 bots, 1 came",
    ]


async def test_what_cannot_be_played_is_told_once_and_the_others_go_on(
    evening: RunningScheduler,
) -> None:
    evening.now = SIX
    evening.stand.refuses = "expected bots, at least 2 of them, got 0"
    evening.stand.comes("ann", "ben")
    evening.begins(a_run(at="Mon 18:00"))
    await evening.until(lambda: evening.lines)
    await turns(300)
    assert len(evening.lines) == 1, "it is tried again and again"
    evening.now = SIX + timedelta(hours=1)
    await evening.until(lambda: len(evening.lines) >= 3)

    assert evening.lines == [
        "cup cannot be played: expected bots, at least 2 of them, got 0",
        "cup is not played: expected bots, at least 2 of them, got 0",
        "cup starts Mon 30 Nov 18:00",
    ]
    assert evening.scheduler.has_failed


async def test_K5_what_can_be_played_within_the_hour_is_played(evening: RunningScheduler) -> None:
    evening.now = SIX
    evening.stand.refuses = "expected every bot once, got 'ann' twice"
    evening.stand.comes("ann", "ben")
    evening.begins(a_run(at="Mon 18:00"))
    await evening.until(lambda: evening.lines)

    evening.now += timedelta(minutes=59)
    evening.stand.refuses = None
    cup = await evening.starts(1)
    assert cup.plan.due_at == SIX.timestamp()
    assert len(evening.lines) == 1


# --- runs that wait for those who are to play them ---


def a_class_run(at: str | None = None, **fields: Any) -> PlannedRun:
    return a_run(at=at, who=Participants.ROSTER, least=fields.pop("least", None), **fields)


async def test_K5_a_run_of_the_roster_without_a_time_starts_when_everybody_is_there(
    evening: RunningScheduler,
) -> None:
    evening.begins(a_class_run())
    await evening.until(lambda: evening.lines)
    for name in CLASS[:3]:
        evening.stand.comes(name)
        await turns(300)
    assert evening.stand.started == []

    evening.stand.comes("dan")
    cup = await evening.starts(1)
    assert (cup.plan.players, cup.plan.not_there) == (CLASS, ())


async def test_K5_it_says_who_is_missing_when_it_begins_to_wait_and_when_that_changes(
    evening: RunningScheduler,
) -> None:
    evening.roster[:] = [f"bot-{n}" for n in range(10)]
    evening.begins(a_class_run())
    await evening.until(lambda: evening.lines)
    await turns(300)
    assert evening.lines == [
        "cup waits: 0 of 10 here, it starts with 10; missing: "
        "bot-0, bot-1, bot-2, bot-3, bot-4, bot-5, bot-6, bot-7 and 2 more"
    ]

    evening.stand.comes("bot-0")
    await turns(300)
    evening.stand.comes("bot-2")
    await turns(300)
    assert len(evening.lines) == 1, "not a line for everybody of a class"

    evening.now += timedelta(seconds=10)
    await evening.until(lambda: len(evening.lines) > 1)
    evening.now += timedelta(seconds=60)
    await turns(300)
    assert evening.lines[1:] == [
        "cup waits: 2 of 10 here, it starts with 10; missing: "
        "bot-1, bot-3, bot-4, bot-5, bot-6, bot-7, bot-8, bot-9"
    ]


async def test_K5_who_has_not_come_by_then_is_not_there(evening: RunningScheduler) -> None:
    evening.begins(a_class_run(least=2))
    await turns()
    evening.stand.comes("cem")
    await turns(300)
    assert evening.stand.started == []
    evening.stand.comes("ann/akq")
    cup = await evening.starts(1)

    assert cup.plan.players == ("ann/akq", "cem")
    assert cup.plan.not_there == ("ben", "dan")
    assert evening.lines[-1] == "cup starts without ben, dan: not there"
    evening.stand.comes("ben")
    await turns(300)
    assert cup.plan.players == ("ann/akq", "cem"), "it is settled"


async def test_K5_house_bots_count_and_one_of_the_class_must_be_there_in_any_case(
    evening: RunningScheduler,
) -> None:
    evening.begins(a_class_run(least=2, house=("nash", "honest")))
    await evening.until(lambda: evening.lines)
    await turns(300)
    assert evening.stand.started == []

    evening.stand.comes("ben")
    cup = await evening.starts(1)
    assert cup.plan.players == ("ben", "nash", "honest")


async def test_K5_a_class_that_is_put_on_the_roster_while_the_run_waits_is_waited_for(
    evening: RunningScheduler,
) -> None:
    evening.roster.clear()
    evening.stand.comes("ann", "ben")
    evening.begins(a_class_run())
    await turns(300)
    assert evening.stand.started == []
    assert evening.lines == [
        "cup waits: nobody is on the roster, `arena roster import FILE.csv` puts a class on it"
    ]
    assert not evening.scheduler.has_failed

    evening.roster += ["ann", "ben"]
    cup = await evening.starts(1)
    assert cup.plan.players == ("ann", "ben")


async def test_K5_the_roster_is_read_again_though_a_bot_comes_and_goes_all_the_time(
    monkeypatch: pytest.MonkeyPatch, evening: RunningScheduler
) -> None:
    evening.roster.clear()
    sets(monkeypatch, "LOOK_S", 15.0)
    evening.stand.comes("ann", "ben")
    evening.begins(a_class_run())
    await evening.until(lambda: evening.lines)

    evening.roster += ["ann", "ben"]
    for _ in range(1_000):  # the thread that reads may take its time
        if evening.stand.started:
            break
        evening.now += timedelta(seconds=5)
        evening.stand.comes("stranger")
        await turns()
    cup = await evening.starts(1)
    assert cup.plan.players == ("ann", "ben")


async def test_K5_an_empty_roster_is_told_also_at_its_time(evening: RunningScheduler) -> None:
    evening.roster.clear()
    evening.now = SIX
    evening.begins(a_class_run("18:00"))
    await evening.until(lambda: evening.lines)
    assert "cup waits until 19:00: nobody is on the roster" in evening.lines[0]


async def test_K5_one_whose_connection_is_lost_as_it_starts_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, evening: RunningScheduler
) -> None:
    sets(monkeypatch, "_GATHERS", 1_000_000)
    evening.stand.is_waiting_for_somebody = True
    evening.begins(a_class_run(least=2))
    evening.stand.comes("ann", "ben")
    await turns(300)
    assert evening.stand.started == []

    evening.stand.comes("cem")
    evening.stand.is_waiting_for_somebody = False
    cup = await evening.starts(1)
    assert cup.plan.players == ("ann", "ben", "cem")


@pytest.mark.parametrize(
    ("at", "since_s", "waits"),
    [("18:00", 5, True), ("18:00", 60, False), (None, 5, True), (None, 60, False)],
)
async def test_K5_an_arena_that_was_just_started_again_lets_its_bots_come_back_first(
    monkeypatch: pytest.MonkeyPatch,
    at: str | None,
    since_s: float,
    waits: bool,
    evening: RunningScheduler,
) -> None:
    sets(monkeypatch, "_REJOIN_S", 15.0)
    slept: list[float] = []
    real = asyncio.sleep

    async def sleep(delay_s: float) -> None:
        if delay_s:
            slept.append(delay_s)
        await real(0)

    evening.now = SIX + timedelta(minutes=20)
    evening.scheduler = evening.a_scheduler()
    evening.begins(a_class_run(at, least=2))
    await evening.until(lambda: evening.lines)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    evening.now += timedelta(seconds=since_s)
    evening.stand.comes("ann", "ben")
    while not evening.stand.started:
        await real(0)

    assert slept == ([10.0] if waits else [])


async def test_K5_what_a_run_still_waits_for_is_said(
    monkeypatch: pytest.MonkeyPatch, evening: RunningScheduler
) -> None:
    evening.roster[:] = ["ann", "ben"]
    sets(monkeypatch, "GATHER_S", 2.0)
    sets(monkeypatch, "_REJOIN_S", 15.0)
    halt = asyncio.Event()
    real = asyncio.sleep

    async def sleep(delay_s: float) -> None:
        await (halt.wait() if delay_s else real(0))

    monkeypatch.setattr(asyncio, "sleep", sleep)
    weekly = msgspec.structs.replace(a_class_run("18:00"), name="weekly")
    evening.begins(a_class_run(least=2, house=("simple",)), weekly)
    await evening.until(lambda: len(evening.lines) > 1)
    later = "weekly starts Mon 23 Nov 18:00"
    assert evening.scheduler.waiting == (
        "cup waits: 0 of 2 here, it starts with 1 besides 1 of its own; missing: ann, ben",
        later,
    )
    [cup, _] = evening.scheduler.upcoming
    assert (cup.come, cup.expected, cup.least, cup.own) == (0, 2, 1, 1)

    evening.stand.comes("ann")
    await evening.until(lambda: evening.scheduler.upcoming[0].starts_by)
    assert evening.scheduler.waiting == (
        f"cup waits: 1 of 2 here, it starts by {evening.now + timedelta(seconds=45):%H:%M:%S}, "
        "sooner if nobody else comes; missing: ben",
        later,
    )
    halt.set()
    await evening.starts(1)


async def test_K5_a_run_that_nobody_came_to_is_not_spent(evening: RunningScheduler) -> None:
    evening.roster[:] = ["ann", "ben"]
    evening.stand.has(CompetitionState.FINISHED)
    evening.stand.endings["akq-1"] = [Ending.ABSENT, Ending.ABSENT]
    evening.begins(a_class_run())
    evening.stand.comes("ann", "ben")
    await evening.starts(1)
    assert evening.lines == []


async def test_K5_a_run_that_was_stopped_is_spent(evening: RunningScheduler) -> None:
    evening.roster[:] = ["ann", "ben"]
    evening.stand.has(CompetitionState.STOPPED)
    evening.stand.endings["akq-1"] = []
    await evening.begins(a_class_run(), once=True)
    assert "cup is not played again" in evening.lines[0]


async def test_K5_a_run_without_a_time_that_cannot_be_played_yet_is_tried_again(
    evening: RunningScheduler,
) -> None:
    evening.stand.refuses = "expected every bot once, got 'ann' twice"
    evening.stand.comes("ann", "ben")
    evening.begins(a_run())
    await evening.until(lambda: evening.lines)
    await turns(300)
    assert evening.lines == ["cup cannot be played: expected every bot once, got 'ann' twice"]

    evening.stand.refuses = None
    await evening.starts(1)


async def test_K5_at_its_time_it_waits_for_the_games_seats_and_says_so_every_minute(
    evening: RunningScheduler,
) -> None:
    evening.now = SIX
    evening.begins(a_class_run("Mon 18:00"))
    await evening.until(lambda: evening.lines)
    evening.now += timedelta(seconds=59)
    await turns(300)
    assert len(evening.lines) == 1
    evening.stand.comes("ann")
    evening.now += timedelta(seconds=1)
    await evening.until(lambda: len(evening.lines) > 1)
    evening.now += timedelta(minutes=1)
    await evening.until(lambda: len(evening.lines) > 2)
    said = "cup waits until 19:00: {} of 4 here, it starts with 2; missing: {}"
    assert evening.lines == [
        said.format(0, "ann, ben, cem, dan"),
        said.format(1, "ben, cem, dan"),
        said.format(1, "ben, cem, dan"),
    ]

    evening.stand.comes("ben")
    cup = await evening.starts(1)
    assert cup.plan.due_at == SIX.timestamp()
    assert (cup.plan.players, cup.plan.not_there) == (CLASS[:2], CLASS[2:])


async def test_K5_at_its_next_time_it_is_skipped_and_waits_anew(evening: RunningScheduler) -> None:
    evening.now = SIX
    run = msgspec.structs.replace(a_class_run(), at=parse(["18:00", "18:30"], zone=UTC))
    evening.begins(run)
    await evening.until(lambda: evening.lines)
    evening.now = SIX + timedelta(minutes=30)
    await evening.until(lambda: len(evening.lines) > 2)
    here = "0 of 4 here, it starts with 2; missing: ann, ben, cem, dan"
    assert evening.lines == [
        f"cup waits until 18:30: {here}",
        "cup is not played: expected 2 bots, 0 came",
        f"cup waits until 19:30: {here}",
    ]

    evening.stand.comes("ann", "ben")
    cup = await evening.starts(1)
    assert cup.plan.due_at == (SIX + timedelta(minutes=30)).timestamp()


async def test_K5_it_does_not_start_when_a_laptop_wakes_up_after_the_hour(
    evening: RunningScheduler,
) -> None:
    evening.now = SIX
    evening.begins(a_class_run("18:00"))
    await evening.until(lambda: evening.lines)
    evening.now = SIX + timedelta(hours=3)
    evening.stand.comes(*CLASS)
    await evening.until(lambda: len(evening.lines) > 2)
    assert evening.lines[1:] == [
        "cup is not played: the 4 bots that are here came too late",
        "cup starts Tue 24 Nov 18:00",
    ]
    assert evening.stand.started == []


@pytest.mark.parametrize("who", [Participants.ROSTER, Participants.CONNECTED])
async def test_K5_those_who_come_at_the_same_moment_are_in_it(
    monkeypatch: pytest.MonkeyPatch, who: Participants, evening: RunningScheduler
) -> None:
    sets(monkeypatch, "GATHER_S", GATHER_S)
    late = ["dan", "cem"]
    real = asyncio.sleep

    async def sleep(delay_s: float) -> None:
        if delay_s == GATHER_S and late:
            evening.stand.comes(late.pop())
        await real(0)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    evening.begins(a_run(who=who))
    evening.stand.comes("ann", "ben")
    cup = await evening.starts(1)
    assert cup.plan.players == CLASS


@pytest.mark.parametrize("minutes", [1, 59])
async def test_K5_an_arena_that_is_started_again_within_the_hour_waits_until_the_same_end(
    monkeypatch: pytest.MonkeyPatch, minutes: int
) -> None:
    before = RunningScheduler(monkeypatch)
    before.now = SIX
    before.begins(a_class_run("18:00"))
    await before.until(lambda: before.lines)
    await before.ends()

    evening = RunningScheduler(monkeypatch, before.stand)
    evening.now = SIX + timedelta(minutes=minutes)
    evening.begins(a_class_run("18:00"))
    await evening.until(lambda: evening.lines)
    assert "cup waits until 19:00: 0 of 4 here" in evening.lines[0]
    evening.now = SIX + timedelta(hours=1)
    await evening.until(lambda: len(evening.lines) > 2)
    assert evening.lines[1:] == [
        "cup is not played: expected 2 bots, 0 came",
        "cup starts Tue 24 Nov 18:00",
    ]
    await evening.ends()

    late = RunningScheduler(monkeypatch, before.stand)
    late.now = SIX + timedelta(hours=1, seconds=1)
    late.stand.comes(*CLASS)
    late.begins(a_class_run("18:00"))
    await late.until(lambda: late.lines)
    assert late.lines == ["cup starts Tue 24 Nov 18:00"]
    assert late.stand.started == []
    await late.ends()


async def test_K5_the_instructor_starts_it_with_those_who_are_there(
    evening: RunningScheduler,
) -> None:
    task = evening.begins(a_class_run(), once=True)
    await evening.until(lambda: evening.lines)
    evening.stand.comes("ann", "cem")
    await turns(300)
    assert [upcoming.run for upcoming in evening.scheduler.upcoming] == ["cup"]
    await evening.scheduler.start("cup")
    assert (evening.scheduler.upcoming, evening.scheduler.waiting) == ((), ()), "it is on"
    cup = await evening.starts(1)

    assert (cup.plan.players, cup.plan.not_there) == (("ann", "cem"), ("ben", "dan"))
    assert evening.lines[-1] == "cup starts without ben, dan: not there"
    cup.end()
    await task
    assert evening.stand.started == [cup], "it waits no longer"


async def test_K5_what_the_instructor_starts_while_a_run_waits_stands_for_that_moment(
    evening: RunningScheduler,
) -> None:
    evening.now = SIX
    evening.begins(a_class_run("18:00", least=4))
    await evening.until(lambda: evening.lines)
    evening.stand.comes("ann", "cem")
    await evening.scheduler.start("cup")
    cup = await evening.starts(1)
    assert cup.plan.due_at == SIX.timestamp()

    evening.stand.comes("ben", "dan")
    await evening.until(lambda: "cup starts Tue" in evening.lines[-1])
    assert evening.stand.started == [cup]


async def test_K5_with_too_few_for_the_form_the_instructor_is_told_in_a_line(
    evening: RunningScheduler,
) -> None:
    evening.begins(a_class_run())
    await turns()
    evening.stand.comes("ann", "stranger")
    with pytest.raises(UsageError) as caught:
        await evening.scheduler.start("cup")
    assert str(caught.value) == (
        "expected at least 2 connected bots of the roster that play ace_king_queen for cup, got 1"
    )
    assert evening.stand.started == []

    evening.stand.comes("ben")
    await evening.scheduler.start("cup")
    await evening.starts(1)


async def test_K5_of_those_who_are_named_so_many_are_waited_for_as_the_run_says(
    evening: RunningScheduler,
) -> None:
    evening.begins(a_run(who=Participants.NAMED, players=CLASS, least=3))
    await turns()
    evening.stand.comes("dan", "ann")
    await turns(300)
    assert evening.stand.started == []
    evening.stand.comes("ben")
    cup = await evening.starts(1)
    assert (cup.plan.players, cup.plan.not_there) == (CLASS, ())


@pytest.mark.parametrize(
    ("at", "minutes_before", "comes_back"),
    [(None, 0, True), ("18:00", -10, True), ("18:00", 50, True), ("18:00", 70, False)],
)
async def test_K5_bots_come_back_to_an_arena_that_is_stopped_before_their_run(
    at: str | None, minutes_before: int, comes_back: bool, evening: RunningScheduler
) -> None:
    evening.now = SIX - timedelta(minutes=minutes_before)
    evening.begins(a_class_run(at))
    await evening.until(lambda: evening.lines)
    await evening.ends()
    assert evening.stand.goes_on is comes_back


async def test_K5_a_ladder_is_open_to_those_of_the_roster_who_come_later(
    evening: RunningScheduler,
) -> None:
    evening.begins(a_class_run(form=Form.LADDER, least=2))
    evening.stand.comes("ann", "ben")
    ladder = await evening.starts(1)
    assert (ladder.plan.players, ladder.plan.not_there) == (("ann", "ben"), ())


async def test_K5_the_lobby_shows_for_whom_a_run_waits(evening: RunningScheduler) -> None:
    evening.now = SIX
    evening.begins(a_class_run("18:00", least=3), a_class_run(name="open"))
    await evening.until(lambda: len(evening.lines) > 1)
    evening.stand.comes("ann")
    await evening.until(lambda: all(run.come for run in evening.scheduler.upcoming))
    at_six, whenever = evening.scheduler.upcoming
    assert at_six == Upcoming(
        *("cup", "ace_king_queen", "round_robin", None),
        come=1,
        least=3,
        missing=("ben", "cem", "dan"),
        until=(SIX + timedelta(hours=1)).timestamp(),
        expected=4,
    )
    assert (whenever.come, whenever.least, whenever.until) == (1, 4, None)


# --- who plays ---


async def test_all_on_the_roster_play_under_the_names_they_have_come_by(
    evening: RunningScheduler,
) -> None:
    evening.roster.remove("dan")
    evening.teams = {"ann": "red", "zoe": "red"}
    evening.stand.comes("ben/fast", "benny", "stranger", "ann")
    evening.begins(a_run(who=Participants.ROSTER))
    cup = await evening.starts(1)

    assert cup.plan.players == ("ann", "ben/fast")
    assert cup.plan.not_there == ("cem",)
    assert cup.plan.teams == {"ann": "red"}
    assert evening.lines == ["cup starts without cem: not there"]


async def test_K5_of_those_who_are_named_one_is_waited_for_before_it_starts(
    evening: RunningScheduler,
) -> None:
    evening.begins(a_run(who=Participants.NAMED, players=("zoe", "ann"), least=None))
    await evening.until(lambda: evening.lines)
    assert evening.lines == ["cup waits: 0 of 2 here, it starts with 1; missing: zoe, ann"]
    evening.stand.comes("ann")
    cup = await evening.starts(1)
    assert (cup.plan.players, cup.plan.not_there) == (("zoe", "ann"), ())


async def test_house_bots_have_names_that_nobody_has(evening: RunningScheduler) -> None:
    evening.stand.comes("optimal", "ann")
    evening.begins(a_run(least=4, house=("optimal", "random", "optimal")))
    cup = await evening.starts(1)

    assert cup.plan.players == ("optimal", "ann", "optimal-2", "random", "optimal-3")
    assert [(bot.name, bot.house, bot.tables) for bot in cup.plan.bots] == [
        ("optimal-2", "optimal", 8),
        ("random", "random", 8),
        ("optimal-3", "optimal", 8),
    ]


# --- ladders that are closed ---


async def test_K4_a_ladder_is_closed_when_its_time_is_over(evening: RunningScheduler) -> None:
    evening.stand.comes("ann", "ben")
    until = parse("20:00", UTC)
    task = evening.begins(a_run(form=Form.LADDER, until=until), once=True)
    ladder = await evening.starts(1)
    evening.now = SIX.replace(hour=19, minute=59)
    await turns()
    assert not ladder.is_closed

    evening.now = SIX.replace(hour=20)
    await task
    assert ladder.is_closed
    assert evening.reports == ["report of c0"]


async def test_K4_a_ladder_whose_time_was_over_while_the_arena_was_off_is_closed(
    evening: RunningScheduler,
) -> None:
    evening.stand.has(run="ladder", form=Form.LADDER)
    evening.now = SIX.replace(hour=20)
    task = evening.begins(a_run("ladder", form=Form.LADDER, until=parse("20:00", UTC)), once=True)
    await task

    [ladder] = evening.stand.started
    assert ladder.is_closed
    assert evening.lines == ["akq-1 goes on: ladder, 3 matches played"]


# --- what was interrupted, what cannot go on ---


async def test_what_was_interrupted_goes_on_first_also_in_its_pause(
    evening: RunningScheduler,
) -> None:
    plan = a_game().plan
    evening.stand.written += [
        written("akq-1", plan, CompetitionState.FINISHED),
        written("akq-2", plan, CompetitionState.PAUSED),
        written("akq-3", plan, CompetitionState.STOPPED),
    ]
    evening.stand.comes("ann", "ben")
    task = evening.begins(games=[a_game()], once=True)
    one = await evening.starts(1)
    await turns()

    assert one.id == "akq-2"
    assert evening.lines == ["akq-2 goes on: ace_king_queen, 3 of 1200 matches played (paused)"]
    assert len(evening.stand.started) == 1, "the next one waits for it"
    one.end()
    await task


async def test_a_run_of_the_same_name_as_a_game_does_not_stand_for_its_competition(
    evening: RunningScheduler,
) -> None:
    evening.stand.has(run="ace_king_queen")
    evening.stand.comes("ann", "ben")
    evening.begins(games=[a_game()])
    open_to_all = await evening.starts(2)
    assert open_to_all.plan.run == ""


async def test_a_competition_that_cannot_go_on_is_told_and_the_others_go_on(
    evening: RunningScheduler,
) -> None:
    plan = a_game().plan
    evening.stand.written += [written("akq-1", plan), written("akq-2", plan)]
    task = evening.begins(once=True)
    await evening.until(lambda: len(evening.stand.playing) == 2)
    bad, good = evening.stand.started
    bad.end(ArenaError("expected ann v ben in match m, got ann v cem"))
    await turns()
    assert not task.done()
    good.end()
    await task

    assert evening.scheduler.has_failed
    assert evening.lines[-1] == ("akq-1 cannot go on: expected ann v ben in match m, got ann v cem")
    assert evening.reports == ["report of akq-2"]


async def test_a_database_that_cannot_be_written_ends_all(evening: RunningScheduler) -> None:
    plan = a_game().plan
    evening.stand.written += [written("akq-1", plan), written("akq-2", plan)]
    task = evening.begins(a_run())
    await evening.until(lambda: len(evening.stand.playing) == 2)
    evening.stand.started[0].end(StoreFailed("the disk is full"))
    with pytest.raises(StoreFailed, match="the disk is full"):
        await task
    assert evening.stand.playing == [], "the other one is stopped"


async def test_what_an_instructor_opens_again_is_played_beside_the_others(
    evening: RunningScheduler,
) -> None:
    evening.begins()
    await turns()
    again = FakeCompetition("akq-1", a_game().plan)
    evening.scheduler.play(cast(Any, again))
    await evening.until(lambda: again in evening.stand.playing)
    again.end()
    await turns()
    assert evening.reports == ["report of akq-1"]


async def test_with_nothing_before_it_a_single_evening_is_over(evening: RunningScheduler) -> None:
    await evening.begins(once=True)


# --- open games ---


async def test_a_game_is_played_again_when_somebody_new_has_come(evening: RunningScheduler) -> None:
    evening.begins(games=[a_game()])
    await turns()
    evening.stand.comes("ann", "ben")
    first = await evening.starts(1)
    assert first.plan.players == ("ann", "ben")

    first.end()
    await turns()
    assert len(evening.stand.started) == 1, "these have competed"

    evening.stand.comes("cem")
    second = await evening.starts(2)
    assert second.plan.players == ("ann", "ben", "cem")

    second.end()
    await turns()
    evening.stand.comes("ann")  # another session of hers
    await evening.starts(3)


async def test_once_is_one_competition_of_every_game(evening: RunningScheduler) -> None:
    evening.stand.comes("ann", "ben")
    task = evening.begins(games=[a_game(), a_game("blackjack", 1)], once=True)
    await evening.until(lambda: len(evening.stand.playing) == 2)
    for cup in evening.stand.started:
        cup.end()
    await task

    assert {cup.plan.game for cup in evening.stand.started} == {"ace_king_queen", "blackjack"}


async def test_a_game_that_so_few_cannot_play_is_told_and_the_arena_stays(
    evening: RunningScheduler,
) -> None:
    evening.stand.refuses = "expected bots, at least 2 of them, got 1"
    evening.stand.comes("ann")
    task = evening.begins(games=[a_game(least=1)])
    await turns(300)
    assert not task.done()
    assert evening.lines == [
        "ace_king_queen cannot be played: expected bots, at least 2 of them, got 1"
    ]
    assert evening.scheduler.has_failed

    evening.stand.refuses = None
    evening.stand.comes("ben")
    await evening.starts(1)


# --- house bots and teams ---


async def test_house_bots_of_two_runs_at_once_have_names_of_their_own(
    evening: RunningScheduler,
) -> None:
    evening.begins(
        *(
            a_run(name, game=game, form=Form.LEAGUE, least=1, house=("random",))
            for name, game in (("one", "three_card_poker"), ("two", "blackjack"))
        )
    )
    await evening.until(lambda: len(evening.stand.playing) == 2)

    names = [bot.name for cup in evening.stand.playing for bot in cup.plan.bots]
    assert len(set(names)) == 2


async def test_K2_a_program_is_in_the_team_of_its_owner(evening: RunningScheduler) -> None:
    evening.roster[:] = ["ann", "ben"]
    evening.teams = {"ann": "red", "ben": "red"}
    evening.stand.comes("ann/hl", "ben")
    evening.begins(a_run(who=Participants.ROSTER))
    cup = await evening.starts(1)

    assert cup.plan.teams == {"ann/hl": "red", "ben": "red"}


def test_K2_two_programs_of_one_owner_are_a_team() -> None:
    players = ("ann/one", "ann/two", "ben/one", "cem")

    assert teams_of(players, {"cem": "red"}) == {"ann/one": "ann/", "ann/two": "ann/", "cem": "red"}


async def test_K2_whoever_comes_to_an_open_game_is_in_its_team(evening: RunningScheduler) -> None:
    evening.roster[:] = ["ann", "ben"]
    evening.teams = {"ann": "red", "ben": "red"}
    evening.stand.comes("ann", "ben")
    evening.begins(games=[a_game()])
    cup = await evening.starts(1)

    assert cup.plan.teams == {"ann": "red", "ben": "red"}


# --- what the instructor starts ---


async def test_a_run_is_started_before_its_time_and_comes_at_its_time_all_the_same(
    evening: RunningScheduler,
) -> None:
    evening.stand.comes("ann", "ben")
    evening.begins(a_run(at="Mon 18:00"))
    await turns()
    await evening.scheduler.start("cup")
    cup = await evening.starts(1)
    assert (cup.plan.run, cup.plan.players) == ("cup", ("ann", "ben"))
    assert cup.plan.due_at is None

    with pytest.raises(UsageError, match="cup is: c0"):
        await evening.scheduler.start("cup")
    cup.end()
    await turns()
    evening.now = SIX
    cup = await evening.starts(2)
    assert cup.plan.due_at == SIX.timestamp()

    cup.end()
    await turns()
    await evening.scheduler.start("cup")
    await evening.starts(3)


async def test_a_run_without_a_time_that_was_started_is_not_played_once_more(
    monkeypatch: pytest.MonkeyPatch, evening: RunningScheduler
) -> None:
    goes_on = await begin_to_gather(monkeypatch, evening)
    await evening.scheduler.start("cup")
    cup = await evening.starts(1)
    goes_on.set()
    await turns()
    cup.end()
    await turns()

    assert evening.stand.started == [cup]


async def test_a_run_that_goes_on_is_not_started_beside_itself(evening: RunningScheduler) -> None:
    evening.stand.has()
    evening.stand.comes("ann", "ben")
    evening.begins(a_run())
    await evening.starts(1)

    with pytest.raises(UsageError, match="cup is: akq-1"):
        await evening.scheduler.start("cup")


async def test_a_game_is_started_with_who_is_connected(evening: RunningScheduler) -> None:
    evening.teams = {"ann": "red"}
    evening.stand.comes("ann", "ben")
    evening.begins()
    await evening.scheduler.start("akq", form="round_robin", matches=3, settings={"hands": 20})
    one = await evening.starts(1)

    assert (one.plan.game, one.plan.run) == ("ace_king_queen", "")
    assert one.plan.players == ("ann", "ben")
    assert (one.plan.matches, one.plan.settings["hands"]) == (3, 20)
    assert one.plan.limits.bank_ms == 1
    assert one.plan.with_itself
    assert one.plan.teams == {"ann": "red"}

    await evening.scheduler.start("high_low", form="ladder")
    ladder = await evening.starts(2)
    assert (ladder.plan.form, ladder.plan.pause_s) == (Form.LADDER, 5.0)
    assert not ladder.plan.with_itself
    await evening.scheduler.start("tcp")
    assert (await evening.starts(3)).plan.settings["goal"] == 1125


async def test_a_game_that_is_open_is_started_as_it_is_played_there(
    evening: RunningScheduler,
) -> None:
    game = a_game(least=8)
    plan = msgspec.structs.replace(game.plan, matches=7, settings={"hands": 44})
    evening.begins(games=[OpenGame(plan, 8)])
    evening.stand.comes("ann", "ben")
    await evening.scheduler.start("akq")
    one = await evening.starts(1)

    assert (one.plan.matches, one.plan.settings) == (7, {"hands": 44})


@pytest.mark.parametrize(
    ("name", "about", "said"),
    [
        ("poker", {}, "or a run: cup"),
        ("cup", {"matches": 2}, "with a game only, cup is a run of the file"),
        ("cup", {}, "expected at least 2 connected bots that play ace_king_queen for cup, got 1"),
        ("akq", {}, "expected at least 2 connected bots that play ace_king_queen, got 1"),
        ("akq", {"form": "cup"}, "expected a form that is one of: round_robin, eli"),
        ("akq", {"form": "elimination"}, "expected a game for 3 or more for an elimination"),
        ("gin", {"form": "ladder", "matches": 2}, "expected matches with a round robin"),
        ("gin", {"settings": {"hands": 2}}, "hands"),
        ("gin", {"settings": {"games": 0}}, "games"),
    ],
)
async def test_what_cannot_be_started(
    evening: RunningScheduler, name: str, about: dict[str, Any], said: str
) -> None:
    evening.stand.comes("ann")
    evening.begins(a_run(least=3))
    await turns()
    with pytest.raises(UsageError) as caught:
        await evening.scheduler.start(name, **about)

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert evening.stand.started == []
    assert not evening.scheduler.has_failed


# --- who takes part ---


@pytest.mark.parametrize(
    ("name", "here", "found"),
    [
        ("ann", ["ben", "ann"], "ann"),
        ("ANN", ["ann/gin", "ann"], "ann"),
        ("Ann", ["ann/tonic", "ann/gin"], "ann/tonic"),
        ("ann", ["Ann", "ann"], "ann"),
        ("ann", ["anna", "ben/ann"], "ann"),
    ],
)
def test_who_is_named_takes_part_under_the_name_it_came_with(
    name: str, here: list[str], found: str
) -> None:
    named = a_run(who=Participants.NAMED, players=(name, "ben"))

    assert attendance(named, here, ()).players[0] == found

    listed = attendance(a_run(who=Participants.ROSTER), here, [name])

    assert (*listed.players, *listed.missing) == (found,)


def test_who_is_named_and_not_here_is_spelled_as_on_the_roster() -> None:
    named = a_run(who=Participants.NAMED, players=("ANN", "Ben/gin", "cem"))

    assert attendance(named, (), ["ann", "ben"]).missing == ("ann", "ben/gin", "cem")
