"""What an arena does while another program keeps its results from the disk (J5)."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import count
from shutil import disk_usage
from typing import Any

import msgspec
import pytest
from sqlalchemy.exc import OperationalError

from arena.competitions import storage_watch
from arena.competitions.admin import AdminCommands
from arena.competitions.competition import Competition
from arena.competitions.config import Config
from arena.competitions.listener import Listener
from arena.competitions.scheduler import OpenGame, Scheduler
from arena.competitions.storage_watch import DiskForecast
from arena.formats.spec import Form
from arena.storage.roster import Roster
from arena.storage.store import Act, Store
from arena.storage.writer import Backlog
from arena.web.lobby import lobby
from protocol.errors import StoreFailed, UsageError
from protocol.messages import VERSION, Action, Instruct
from tests.support.arena_in_memory import HostArena, in_host, plan_for
from tests.support.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time(limit_s=1_000, tick_s=0.1)


class ToldByCompetitions(Listener):
    """Keeps what the instructor is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def told(self, text: str) -> None:
        self.lines.append(text)


@pytest.fixture(autouse=True)
def _late_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In virtual time a commit takes none, unless another program is in its way."""
    monkeypatch.setattr(storage_watch, "_LATE_S", 1e-9)
    monkeypatch.setattr("arena.storage.writer.BUSY_S", 0)
    monkeypatch.setattr("arena.storage.writer.RETRY_S", 0.01)


@contextmanager
def locked(store: Store) -> Iterator[None]:
    """Hold the write lock, as another program would."""
    assert store.file is not None
    with closing(sqlite3.connect(store.file, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


async def is_held(arena: HostArena, held: bool = True) -> None:
    """Wait until nothing begins any more, or all goes on."""
    while arena.host.storage.is_late is not held:
        await asyncio.sleep(1)


@pytest.mark.parametrize("form", [Form.ROUND_ROBIN, Form.LADDER])
async def test_no_match_begins_nobody_is_absent_and_all_goes_on_by_itself(form: Form) -> None:
    told = ToldByCompetitions()
    async with in_host(listener=told) as arena:
        virtual_loop().network.latency_s = 0.01  # a match takes some seconds
        await arena.come("ann", "ben")
        names = ("ann", "ben", "cem") if form is Form.ROUND_ROBIN else ("ann", "ben")
        more = {"matches": 6} if form is Form.ROUND_ROBIN else {"pause_s": 1.0}
        plan = plan_for("ace_king_queen", names, form, settings={"hands": 50}, wait_s=20.0, **more)
        competition = arena.host.compete(plan)
        playing = arena.begin(competition)
        while competition.ledger.played < 2:
            await asyncio.sleep(0.1)
        with locked(arena.store):
            await is_held(arena)
            while competition.arbiter.playing:
                await asyncio.sleep(1)
            before = competition.ledger.played
            await asyncio.sleep(150)  # cem is still away

            assert competition.ledger.played == before
            assert arena.host.storage.state == f"{waiting(arena)} not on the disk yet"
            assert len([line for line in told.lines if "not on the disk yet" in line]) >= 3
            assert "arena.db: database is locked" in told.lines[-1]
        await is_held(arena, held=False)
        await arena.come("cem")
        if form is Form.LADDER:
            while competition.ledger.played == before:
                await asyncio.sleep(0.1)
            competition.close()
        report = await playing

        assert told.lines[-1] == "the database is written again, and play goes on"
        assert report.verdicts == ()
        assert report.is_written
        assert report.played == 18 or form is Form.LADDER
        assert len(tuple(arena.store.results(report.competition))) == report.played


def waiting(arena: HostArena) -> str:
    results = arena.store.backlog.results
    return "1 result is" if results == 1 else f"{results:,} results are"


async def test_a_competition_that_ends_meanwhile_says_that_it_is_not_on_the_disk() -> None:
    async with in_host() as arena:
        await arena.come("ann", "ben")
        plan = plan_for("ace_king_queen", ("ann", "ben"), settings={"hands": 4}, matches=2)
        competition = arena.host.compete(plan)
        await arena.store.flushed()
        with locked(arena.store):
            report = await arena.begin(competition)

            assert (report.played, report.is_written) == (2, False)
        await arena.store.flushed()
        assert len(tuple(arena.store.results(report.competition))) == 2


WARNED = "the disk will be full within {}: the database has grown by {} MiB within {} minutes, and"


@pytest.mark.parametrize(
    ("grows", "free", "said"),
    [
        ([0, 100], 14_400, ""),  # a hundred in a minute are not yet 144,000 a day
        ([0, 100], 14_100, f"{WARNED.format('24 hours', '100.0', 10)} 14,100.0 MiB are left"),
        (
            [0, *[10] * 20],
            14_100,
            f"{WARNED.format('24 hours', '200.0', 20)} 14,100.0 MiB are left",
        ),
        ([0, *[1] * 500], 90, f"{WARNED.format('2 hours', '60.0', 60)} 90.0 MiB are left"),
        ([0, 100, *[0] * 59], 1, f"{WARNED.format('an hour', '100.0', 60)} 1.0 MiB are left"),
        ([0, 100, *[0] * 60], 1, ""),  # it has grown no more for an hour
        ([900, -100, 100], 0, ""),
    ],
)
def test_a_disk_is_foretold_to_be_full(grows: Sequence[int], free: int, said: str) -> None:
    """By what the database grows by each minute, in MiB."""
    forecast, size = DiskForecast(), 0
    for grown in grows:
        size += grown * 2**20
        line = forecast.look(size, free * 2**20)
    assert line == said


async def test_a_disk_that_fills_is_told_of_each_hour_and_everywhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disks: list[Any] = []
    monkeypatch.setattr(storage_watch, "disk_usage", lambda folder: disks[-1])
    told = ToldByCompetitions()
    async with in_host(listener=told) as arena:
        acts, storage, minute = acts_of(arena, scheduler_of(arena)), arena.host.storage, count(1)
        for free, minutes, lines in ((2**40, 9, 0), (0, 70, 1), (2**40, 9, 0)):
            disks.append(disk_usage(".")._replace(free=free))
            for _ in range(minutes):
                arena.store.acted(Act(at=0.0, who="prof", what="flag", text="x" * 10**5))
                await arena.store.flushed()
                storage.look(60.0 * next(minute))
            status: Any = acts(Instruct(VERSION, "", Action.STATUS), "prof")
            assert status.lines == (storage.filling,) * lines
            nobody: Any = None
            shown = msgspec.json.decode(lobby(arena.host, nobody))["arena"]["filling"]
            assert shown == storage.filling
    assert len([line for line in told.lines if "the disk will be full within" in line]) == 2


def ignore(competition: Competition) -> None:
    """Nobody wants to know which competition begins."""


def acts_of(arena: HostArena, starter: Scheduler) -> AdminCommands:
    return AdminCommands(
        arena.host,
        arena.store,
        starter=starter,
        roster=Roster(arena.store.engine),
        lines=lambda: (),
    )


def scheduler_of(arena: HostArena, on_start: Callable[[Competition], None] = ignore) -> Scheduler:
    return Scheduler(
        arena.host,
        arena.store,
        Config(),
        on_start=on_start,
        on_report=lambda report: None,
        tell=lambda line: None,
        once=True,
    )


async def test_a_failure_for_good_ends_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written meanwhile, so nobody else would learn of it."""
    async with in_host() as arena:
        waits = plan_for("ace_king_queen", ("ann", "ben"), wait_s=900.0)
        playing = arena.begin(waits)
        game = OpenGame(plan_for("ace_king_queen", ()), 2)
        idle = asyncio.ensure_future(scheduler_of(arena).run((), (game,)))
        await asyncio.sleep(1)
        failure = Backlog(0, 0.0, "", StoreFailed("the lock was removed"))
        monkeypatch.setattr(Store, "backlog", failure)

        for each in (playing, idle):
            with pytest.raises(StoreFailed, match="the lock was removed"):
                await each


async def test_a_read_waits_for_a_database_that_is_away() -> None:
    def away() -> StoreFailed:
        error = StoreFailed("cannot read the database")
        error.__cause__ = OperationalError("SELECT 1", None, ConnectionError("it restarts"))
        return error

    left: list[Exception] = [away(), away()]

    def read() -> str:
        if left:
            raise left.pop()
        return "read"

    assert await storage_watch.read_again(read) == "read"
    left.append(StoreFailed("it is damaged"))
    with pytest.raises(StoreFailed, match="it is damaged"):
        await storage_watch.read_again(read)


async def test_what_could_not_be_written_is_refused_and_no_run_starts() -> None:
    reopened: list[Competition] = []
    async with in_host() as arena:
        scheduler = scheduler_of(arena, reopened.append)
        acts = acts_of(arena, scheduler)
        with locked(arena.store):
            arena.store.acted(Act(competition=None, at=0.0, who="prof", what="flag"))
            await is_held(arena)
            game = OpenGame(plan_for("ace_king_queen", (), settings={"hands": 4}), 2)
            playing = asyncio.ensure_future(scheduler.run((), (game,)))
            await arena.come("ann", "ben")
            await asyncio.sleep(100)

            assert reopened == []
            void = Instruct(VERSION, "", Action.VOID, match="m-1")
            remove = Instruct(VERSION, "", Action.REMOVE, bot="ann")
            start = Instruct(VERSION, "", Action.START, competition="akq")
            unlist = Instruct(VERSION, "", Action.UNLIST, bot="ann", from_running=True)
            for asked in (void, msgspec.structs.replace(void, since=0.0), remove, unlist, start):
                with pytest.raises(UsageError, match="expected a database that is written, but"):
                    acts(asked, "prof")
            status = acts(Instruct(VERSION, "", Action.STATUS), "prof")
            assert status.lines == (arena.host.storage.state,)  # type: ignore[union-attr]
        await playing

        assert [competition.ledger.played for competition in reopened] == [1]
