"""Sittings and comparisons whose matches other machines play: a double plays them in process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

import pytest

from arena.competitions.arena_host import Host
from arena.competitions.jobs import Jobs, JobWatcher, MatchJob, unplayed
from arena.competitions.local_jobs import LocalJobs
from arena.engine.drive import drive
from arena.engine.match import MatchState, Record
from arena.engine.rules import Game
from arena.games import GAMES, game_named
from arena.games.replay import replay
from arena.lab import bot_pool, launched
from arena.lab.bot_pool import BotPool, PoolBot
from arena.lab.compare import Matchup, MatchupPart
from arena.lab.series import Series, Sitting
from arena.sandbox.command import Program
from arena.sandbox.worker_pool import usable_cores
from protocol.errors import ArenaError
from protocol.messages import Limits
from protocol.strategy import Strategy, find
from tests.arena.lab.test_bot_pool import FakePoolHost
from tests.support.fake_bots import FakeArena

pytestmark = pytest.mark.virtual_time


def strategies(game: str, number: int, names: Sequence[str]) -> list[Strategy]:
    """House bots by seat, with the luck of a match."""
    made: list[Any] = [find(game, name)() for name in names]
    for seat, bot in enumerate(made):
        bot.seed(f"{number}:{seat}")
    return made


class WorkersInProcess(LocalJobs):
    """Jobs that are played at once by house bots, and take as long as `takes_s` says."""

    def __init__(self, at_once: int = 4) -> None:
        super().__init__()
        self.slots = at_once
        self.busy = self.most_busy = 0
        self.needs_busy, self.held_from = 0, 0
        """No job from that number on is over before so many were played at once."""
        self.played: list[MatchJob] = []
        self.takes_s: Callable[[int], float] = lambda number: 0.0
        self.spoils: Callable[[int], tuple[int, bool]] = lambda number: (0, False)
        """By number of the job: how many attempts are lost, and whether it is void."""
        self.tasks: set[asyncio.Task[None]] = set()
        self.cancelled: set[str] = set()

    def cancel(self, job: str, why: str) -> None:
        self.cancelled.add(job)

    @property
    def at_once(self) -> int:
        return self.slots

    def put(self, job: MatchJob, watcher: JobWatcher) -> None:
        number = len(self.played)
        self.played.append(job)
        task = asyncio.create_task(self._play(number, job, watcher))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _play(self, number: int, job: MatchJob, watcher: JobWatcher) -> None:
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        while number >= self.held_from and self.most_busy < self.needs_busy:
            await asyncio.sleep(0.01)
        await asyncio.sleep(self.takes_s(number))
        losses, is_void = self.spoils(number)
        for _ in range(losses):
            watcher.lost(job.id, "lost")
        self.busy -= 1
        if is_void:
            watcher.done(job.id, "", unplayed(job, "a fault"), None)
            return
        game = game_named(job.game)
        seed = number.to_bytes(32, "big")
        match = MatchState(game, game.vocabulary.read_settings(job.settings), seed=seed)
        names = [name.partition("-")[0] for name in job.players]
        drive(match, strategies(job.game, number, names))
        watcher.done(job.id, f"match {number}", match.result(), None)


AKQ = GAMES["ace_king_queen"]
SHORT = AKQ.vocabulary.read_settings({"hands": 8})
BOTS = (PoolBot("nash"), PoolBot("honest"))
MATCHES = 12


@pytest.fixture
def jobs(house: FakeArena, monkeypatch: pytest.MonkeyPatch) -> WorkersInProcess:
    """What carries the jobs of every pool; its bots have connected to a fake host."""
    carrier = WorkersInProcess()

    @asynccontextmanager
    async def gathered(
        game: Game, bots: Sequence[PoolBot], limits: Limits, copies: int, *_: object, **__: object
    ) -> AsyncIterator[BotPool]:
        pool = BotPool(cast(Host, FakePoolHost(house)), game, carrier)
        for bot in bots:
            await pool.launch(bot, copies)
        await pool.gather()
        yield pool
        pool.close()

    monkeypatch.setattr(launched, "gathered", gathered)
    return carrier


def no_carrier(*_: object) -> AbstractAsyncContextManager[Jobs]:
    raise AssertionError("`gathered` is another")


async def sittings(
    tables: Sequence[tuple[int, ...]] = ((0, 1),), **options: Any
) -> tuple[Sitting, ...]:
    options = {"matches": MATCHES, "tick": lambda: None, **options}
    return await launched.sittings(
        AKQ, BOTS, tables, settings=SHORT, limits=Limits(), carrier=no_carrier, **options
    )


def one_after_another() -> Sitting:
    """The same matches with the same cards, played in this process."""
    series = Series(AKQ, (0, 1), range(MATCHES), lambda: None)
    for number, seats in enumerate(series):
        match = MatchState(series.begin(), SHORT, seed=number.to_bytes(32, "big"))
        drive(match, strategies(AKQ.name, number, [BOTS[place].name for place in seats]))
        series.add(match.result())
    return series.sitting()


def sooner(number: int) -> float:
    """Later matches are over sooner."""
    return 1.0 - number / 50


def sums(sitting: Sitting) -> object:
    samples = [
        [(each.count, each.total, each.variance) for each in of]
        for of in (sitting.samples, sitting.blocks, sitting.gaps)
    ]
    return sitting.bots, sitting.matches, sitting.scores, sitting.won, sitting.blocked, samples


@pytest.mark.parametrize("takes_s", [lambda number: 0.0, sooner])
async def test_a_sitting_adds_up_as_if_matches_had_been_played_one_after_another(
    jobs: WorkersInProcess, takes_s: Callable[[int], float]
) -> None:
    jobs.takes_s = takes_s
    ticks: list[None] = []
    records: list[tuple[tuple[int, ...], Record]] = []

    [sitting] = await sittings(
        tick=lambda: ticks.append(None),
        on_match=lambda seats, record: records.append((seats, record)),
    )

    assert sums(sitting) == sums(one_after_another())
    assert len(ticks) == 8 * MATCHES
    assert [seats for seats, _ in records] == [(0, 1), (1, 0)] * (MATCHES // 2)


@pytest.mark.parametrize(
    ("tables", "most", "at_once"), [([(0, 1)], None, 8), ([(0, 1), (0, 0), (1, 1)], 3, 3)]
)
async def test_matches_at_once_are_jobs_or_what_workers_have_room_for(
    jobs: WorkersInProcess, tables: list[tuple[int, int]], most: int | None, at_once: int
) -> None:
    """Jobs are matches at once at all tables together."""
    jobs.needs_busy = at_once

    await sittings(tables, jobs=most)

    assert jobs.most_busy == at_once
    assert len(jobs.played) == len(tables) * MATCHES


async def test_a_worker_that_comes_later_is_given_matches(jobs: WorkersInProcess) -> None:
    jobs.slots = 1
    jobs.held_from = 4

    def on_match(seats: tuple[int, ...], record: Record) -> None:
        jobs.slots = 4
        jobs.needs_busy = 8

    await sittings(on_match=on_match)

    assert jobs.most_busy == 8


async def test_J5_what_workers_have_lost_three_times_is_not_tried_for_ever(
    jobs: WorkersInProcess,
) -> None:
    jobs.spoils = lambda number: (2, True) if number == 0 else (0, True)

    with pytest.raises(ArenaError, match="void 3 times"):
        await sittings(jobs=1)
    assert len(jobs.played) == 2


async def test_J5_a_match_that_was_void_is_played_again(jobs: WorkersInProcess) -> None:
    jobs.spoils = lambda number: (0, number == 1)

    [sitting] = await sittings()

    assert sitting.matches == MATCHES
    assert len(jobs.played) == MATCHES + 1


async def test_parts_of_a_comparison_come_in_order_and_have_their_units(
    jobs: WorkersInProcess,
) -> None:
    jobs.takes_s = sooner
    jobs.needs_busy = 8
    parts: list[MatchupPart] = []

    def on_part(part: MatchupPart) -> bool:
        parts.append(part)
        return len(parts) == 6

    await launched.compare(
        Matchup(AKQ, SHORT), BOTS, on_part, limits=Limits(), jobs=None, carrier=no_carrier
    )

    assert [part.units for part in parts] == [16] * 6
    # Of each part both matches are dealt by cards of their own, so each has its place.
    records = [match.record for part in parts for match in part.matches]
    assert all(replay(record).record == record for record in records)
    firsts = [part.matches[0].record.seed for part in parts]
    assert firsts == [number.to_bytes(32, "big").hex() for number in range(6)]
    assert jobs.most_busy == 8


async def test_when_a_comparison_is_settled_nothing_goes_on(jobs: WorkersInProcess) -> None:
    await launched.compare(
        Matchup(AKQ, SHORT), BOTS, lambda part: True, limits=Limits(), carrier=no_carrier
    )
    played = len(jobs.played)
    await asyncio.sleep(10)

    assert len(jobs.played) == played
    assert jobs.cancelled <= {job.id for job in jobs.played}


async def test_a_process_here_stands_for_any_number_elsewhere(
    jobs: WorkersInProcess, house: FakeArena
) -> None:
    pool = BotPool(cast(Host, FakePoolHost(house)), AKQ, jobs)
    await pool.launch(PoolBot("mine", Program(("./bot",))), copies=2)
    await pool.gather()

    assert [pool.seats((0, 0)) for _ in range(3)] == [("mine", "mine-2")] * 3


async def test_without_any_worker_matches_begin_here(
    jobs: WorkersInProcess, house: FakeArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bot_pool, "_WORKERS_S", 0.0)
    jobs.slots = 0
    pool = BotPool(cast(Host, FakePoolHost(house)), AKQ, jobs)
    await pool.gather()

    assert pool.room(None) == usable_cores()
    assert pool.room(1) == 1


async def test_a_file_that_may_travel_names_no_address(
    jobs: WorkersInProcess, house: FakeArena
) -> None:
    host = FakePoolHost(house)
    pool = BotPool(cast(Host, host), AKQ, jobs)
    await pool.launch(PoolBot("ann/mine.py"), copies=1)

    assert "ann/mine.py" in host.programs["mine"].words
    assert "--url" not in host.programs["mine"].words
