"""Sittings and trials of launched bots, without processes: fake pools play with objects; in order."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, cast

import pytest

from arena.engine.drive import drive
from arena.engine.match import MatchResult, MatchState
from arena.engine.rules import Game
from arena.engine.shuffle import seed_from_int
from arena.games import GAMES
from arena.lab import launched
from arena.lab.bot_pool import BotPool, PoolBot
from arena.lab.in_order import InOrder
from arena.lab.in_process import Entrant, derived_seed, sittings
from arena.lab.ruin import Attempt, Ruin
from arena.lab.series import Offence, Sitting
from protocol.messages import Ending, Limits, Verdict
from protocol.strategy import Strategy, find
from protocol.vocabulary import Question, Settings
from tests.support.virtual_time import all_done

pytestmark = pytest.mark.virtual_time

BOTS = {
    "ace_king_queen": ("nash", "honest"),
    "gin_rummy": ("simple", "patient"),
    "high_low": ("timid", "bold", "counter", "random"),
    "three_card_poker": ("q64",),
    "blackjack": ("simple",),
}
SHORT: dict[str, dict[str, object]] = {
    "ace_king_queen": {"hands": 30},
    "gin_rummy": {"games": 3, "target": 20},
    "high_low": {"max_shuffles": 2},
    "three_card_poker": {"rounds": 20},
    "blackjack": {"hands": 20},
}
SEED = 7


class DelayedRogue:
    """Plays as a house bot does for some answers, then offends."""

    def __init__(self, bot: Strategy, answers: int, offence: Callable[[], object]):
        self._bot, self._left, self._offence = bot, answers, offence
        self.hear, self.reset = bot.hear, bot.reset

    def decide(self, question: Question[Any]) -> object:
        self._left -= 1
        return self._bot.decide(question) if self._left >= 0 else self._offence()


def illegal() -> object:
    return "cheat"


def crash() -> object:
    raise ValueError("no such card")


def entrants(game: Game, offence: Callable[[], object] | None) -> list[Entrant]:
    """The house bots of a game; the last of them offends in the middle, if anyone."""

    def entrant(place: int, name: str) -> Entrant:
        def make(seed: str) -> Strategy:
            made: Any = find(game.name, name)()
            made.seed(seed)
            last = place == len(BOTS[game.name]) - 1
            return DelayedRogue(made, 10, offence) if last and offence else made

        return Entrant(name, make)

    return [entrant(*pair) for pair in enumerate(BOTS[game.name])]


class OneTablePool(BotPool):
    """A pool with one table, which plays at once, with the cards of `in_process.sittings`."""

    def __init__(self, strategies: dict[str, Strategy]) -> None:
        self.strategies = strategies
        self.matches = 0

    def seats(self, bots: Iterable[int]) -> tuple[str, ...]:
        return tuple(self.strategies)

    def release(self, names: Iterable[str]) -> None:
        assert tuple(names) == tuple(self.strategies)

    async def play(
        self, game: Callable[[], Game], settings: Settings, names: Sequence[str]
    ) -> tuple[MatchResult, Verdict | None]:
        seed = derived_seed(SEED, "match", self.matches) if self.matches else SEED
        self.matches += 1
        match = MatchState(game(), settings, seed=seed_from_int(seed))
        drive(match, [self.strategies[name] for name in names])
        return match.result(), None


def numbers(sitting: Sitting) -> object:
    """A sitting as something that can be compared."""
    samples = [(s.count, s.total, s.mean, s.variance) for s in sitting.samples]
    rest = (sitting.scores, sitting.points, sitting.won, sitting.offence)
    return sitting.bots, sitting.matches, samples, rest


@pytest.mark.parametrize("offence", [None, illegal, crash])
@pytest.mark.parametrize("name", GAMES)
async def test_the_same_sitting_adds_up_to_the_same(
    name: str, offence: Callable[[], object] | None
) -> None:
    game = GAMES[name]
    settings = game.vocabulary.read_settings(SHORT[name])
    places = tuple(range(game.seats))
    ticks: list[str] = []
    [local] = sittings(
        game,
        entrants(game, offence),
        [places],
        seeds=[SEED],
        matches=3,
        settings=settings,
        report=lambda units: ticks.extend(["local"] * units),
    )
    made = {
        entrant.name: entrant.make(f"{SEED}:{place}")
        for place, entrant in enumerate(entrants(game, offence))
    }
    play = launched._SittingRunner(
        OneTablePool(made), game, [places], 3, settings, lambda: ticks.append("outside")
    )
    [sitting] = await play.run()

    assert numbers(sitting) == numbers(local)
    assert (sitting.offence is not None) is (offence is not None)
    assert ticks.count("local") == ticks.count("outside")


class HeldMatches:
    """A pool whose matches end when and as a test says."""

    def __init__(self, tables: int = 1) -> None:
        self.tables = tables
        self.busy: list[str] = []
        self.playing: dict[str, asyncio.Future[int | None]] = {}

    def seats(self, bots: Iterable[int]) -> tuple[str, ...] | None:
        names = tuple(map(str, bots))
        if any(self.busy.count(name) >= self.tables for name in names):
            return None
        self.busy += names
        return names

    def release(self, names: Iterable[str]) -> None:
        for name in names:
            self.busy.remove(name)

    async def play(
        self, game: Callable[[], Game], settings: Settings, names: Sequence[str]
    ) -> tuple[MatchResult, Verdict | None]:
        key = "-".join(names)
        over = self.playing[key] = asyncio.get_running_loop().create_future()
        try:
            offender = await over
        finally:
            self.playing.pop(key, None)
        match = MatchState(game(), settings, seed=bytes(32), start=False)
        if offender is None:
            match.end(Ending.COMPLETED, None, "")
        else:
            match.end(Ending.CRASH, offender, "crashed: exit status 1")
        return match.result(), None

    async def until_playing(self, *keys: str) -> None:
        await all_done()
        assert set(self.playing) == set(keys)


Step = tuple[tuple[str, ...], Mapping[str, int | Exception | None]]
"""The tables at which it plays then, and how it ends at some: well, by an offender, by an error."""


async def stepwise(pool: HeldMatches, schedule: Sequence[Step]) -> None:
    """See that matches begin as a schedule says, and end them as it says."""
    for playing, ends in schedule:
        await pool.until_playing(*playing)
        for table, how in ends.items():
            over = pool.playing.pop(table)
            over.set_exception(how) if isinstance(how, Exception) else over.set_result(how)


async def played_by(
    tables: Sequence[tuple[int, ...]],
    schedule: Sequence[Step],
    each: int = 1,
    jobs: int | None = None,
    is_cancelled: bool = False,
) -> tuple[Sitting, ...]:
    """The sittings of these tables when a schedule ends their matches."""
    game = GAMES["ace_king_queen"]
    settings = game.vocabulary.read_settings({"hands": 2})

    pool = HeldMatches(each)
    play = launched._SittingRunner(
        cast(BotPool, pool), game, tables, 1, settings, lambda: None, jobs
    )
    task = asyncio.create_task(play.run())
    await stepwise(pool, schedule)
    if is_cancelled:
        task.cancel()
    try:
        return await task
    finally:
        assert pool.busy == []
        assert pool.playing == {}


@pytest.mark.parametrize(
    ("tables", "jobs", "schedule"),
    [
        pytest.param(
            [(0, 1), (0, 2), (2, 3), (2, 4)],
            None,
            [
                (("0-1", "2-3"), {"2-3": None}),
                (("0-1", "2-4"), {"2-4": None, "0-1": None}),
                (("0-2",), {"0-2": None}),
            ],
            id="tables without a bot in common",
        ),
        pytest.param(
            [(0, 1), (2, 3)],
            1,
            [(("0-1",), {"0-1": None}), (("2-3",), {"2-3": None})],
            id="no more tables than jobs",
        ),
    ],
)
async def test_tables_are_played_side_by_side(
    tables: list[tuple[int, ...]], jobs: int | None, schedule: list[Step]
) -> None:
    played = await played_by(tables, schedule, jobs=jobs)

    assert [sitting.bots for sitting in played] == tables


async def test_J3_an_offender_plays_no_more() -> None:
    schedule: list[Step] = [
        (("0-1", "0-2", "1-2"), {"0-2": 1}),
        (("0-1", "0-3"), {"0-1": None, "0-3": None}),
    ]
    played = await played_by([(0, 1), (0, 2), (1, 2), (0, 3), (2, 3)], schedule, each=2)

    assert [sitting.bots for sitting in played] == [(0, 1), (0, 2), (0, 3)]
    [offence] = [sitting.offence for sitting in played if sitting.offence]
    assert (offence.bot, offence.place, offence.match) == (2, 1, 1)


async def test_an_offence_at_two_tables_at_once_is_one() -> None:
    both = ("0-2", "1-2")
    played = await played_by([(0, 2), (1, 2)], [(both, dict.fromkeys(both, 1))], each=2)

    assert len(played) == 1


@pytest.mark.parametrize(
    ("ends", "error"),
    [({"0-1": OSError("no")}, OSError), ({}, asyncio.CancelledError)],
    ids=["what goes wrong", "cancelled"],
)
async def test_what_stops_a_table_stops_all(
    ends: Mapping[str, int | Exception | None], error: type[BaseException]
) -> None:
    with pytest.raises(error):
        await played_by([(0, 1), (2, 3)], [(("0-1", "2-3"), ends)], is_cancelled=not ends)


# ---- Trials


TRIALS = Attempt.of(GAMES["blackjack"], stake=20, goal=25)


async def tried(
    monkeypatch: pytest.MonkeyPatch, schedule: Sequence[Step], trials: int
) -> tuple[Ruin, Offence | None]:
    """The trials of a bot that was started twice, which a schedule ends."""
    pool = HeldMatches()
    names = iter(["ann", "ann-2"])
    pool.seats = lambda bots: (next(names),)  # type: ignore[method-assign]

    @contextlib.asynccontextmanager
    async def gathered(*_: object, copies: int) -> AsyncIterator[HeldMatches]:
        assert copies == 2
        yield pool

    monkeypatch.setattr(launched, "gathered", gathered)
    task = asyncio.create_task(
        launched.ruin(
            *(TRIALS, PoolBot("ann")), trials=trials, limits=Limits(), tick=lambda: None, jobs=2
        )
    )
    await stepwise(pool, schedule)
    try:
        return await task
    finally:
        assert pool.playing == {}


BOTH = ("ann", "ann-2")


async def test_T10_trials_are_played_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule: list[Step] = [
        (BOTH, {"ann-2": None}),
        (BOTH, {"ann-2": None}),
        (("ann",), {"ann": None}),
    ]

    result, offence = await tried(monkeypatch, schedule, trials=3)

    assert (result.trials, result.offences, offence) == (3, 0, None)


@pytest.mark.parametrize("ends", [{"ann-2": 0}, {"ann-2": 0, "ann": 0}])
async def test_T10_the_first_offence_ends_all_trials(
    monkeypatch: pytest.MonkeyPatch, ends: Mapping[str, int | Exception | None]
) -> None:
    result, offence = await tried(monkeypatch, [(BOTH, ends)], trials=10)

    assert (result.trials, result.offences) == (1, 1)
    assert offence is not None
    assert (offence.kind, offence.match) == (Ending.CRASH, 2)


async def test_T10_what_goes_wrong_in_a_trial_stops_all(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match="no"):
        await tried(monkeypatch, [(BOTH, {"ann": OSError("no")})], trials=10)


class HeldWork:
    """Pieces of work that end when a test says."""

    def __init__(self) -> None:
        self.begun: dict[int, asyncio.Future[str]] = {}

    async def __call__(self, piece: int) -> str:
        self.begun[piece] = asyncio.get_running_loop().create_future()
        return await self.begun[piece]


async def test_results_come_in_the_order_of_the_pieces() -> None:
    work = HeldWork()

    async with InOrder(work, range(3), 3) as results:
        await all_done()
        for piece in (2, 0, 1):
            work.begun[piece].set_result(f"result {piece}")
        taken = [result async for result in results]

    assert taken == ["result 0", "result 1", "result 2"]


async def test_a_slow_piece_holds_up_no_other() -> None:
    work = HeldWork()

    async with InOrder(work, range(9), 2):
        await all_done()
        for piece in (1, 2, 3):
            work.begun[piece].set_result("")
            await all_done()

        assert set(work.begun) == {0, 1, 2, 3, 4}


async def test_what_is_not_over_at_the_end_is_cancelled() -> None:
    work = HeldWork()

    async with InOrder(work, count(), 2) as results:
        await all_done()
        work.begun[0].set_result("")
        await anext(results)
        await all_done()

    assert [future.cancelled() for future in work.begun.values()] == [False, True, True]


async def test_what_a_piece_raises_is_raised_in_its_turn_and_nothing_more_is_begun() -> None:
    work = HeldWork()

    async with InOrder(work, count(), 2) as results:
        await all_done()
        work.begun[1].set_exception(OSError("no"))
        await all_done()
        begun = set(work.begun)
        work.begun[0].set_result("")
        await anext(results)
        with pytest.raises(OSError, match="no"):
            await anext(results)

    assert begun == {0, 1}
