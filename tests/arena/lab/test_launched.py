"""Parts that launched bots play, without processes: fake pools play with objects; in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, cast

import pytest

from arena.games.catalogue import GAMES
from arena.games.match import MatchState, drive
from arena.games.rules import Game
from arena.lab.in_process import Entrant, play_parts
from arena.lab.launched import BotPool, PartPlayer
from arena.lab.matches import Experiment, MatchSpec, PlayedMatch, SampledGame
from arena.lab.ruin import Attempt, Ruin, Trials
from arena.lab.sittings import Sitting, TableMatches
from protocol.messages import Ending
from protocol.strategy import Strategy, find
from protocol.vocabulary import Question, Settings
from tests.support.not_none import not_none
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
    """A pool with one table, which plays at once, with the cards that objects get."""

    def __init__(self, game: Game, strategies: dict[str, Strategy]) -> None:
        self._game = game
        self.strategies = strategies

    def seats(self, bots: Iterable[int]) -> tuple[str, ...]:
        return tuple(self.strategies)

    def release(self, names: Iterable[str]) -> None:
        assert tuple(names) == tuple(self.strategies)

    async def play(
        self,
        spec: MatchSpec,
        settings: Settings,
        names: Sequence[str],
        tick: Callable[[], None] = lambda: None,
    ) -> PlayedMatch:
        sampled = SampledGame(self._game, tick)
        match = MatchState(sampled.game, settings, seed=spec.cards)
        drive(match, [self.strategies[name] for name in names])
        return sampled.played(spec, match.result())


@pytest.mark.parametrize("offence", [None, illegal, crash])
@pytest.mark.parametrize("name", GAMES)
async def test_the_same_sitting_adds_up_to_the_same(
    name: str, offence: Callable[[], object] | None
) -> None:
    game = GAMES[name]
    experiment = TableMatches(game, game.vocabulary.read_settings(SHORT[name]))
    parts = experiment.parts({tuple(range(game.seats)): SEED}, 3)
    here: list[Sitting] = []
    there: list[Sitting] = []
    ticks: list[str] = []
    play_parts(
        *(experiment, entrants(game, offence), parts, here.append),
        units=3,
        report=lambda units: ticks.extend(["here"] * units),
    )
    made = {
        entrant.name: entrant.make(f"{SEED}:{place}")
        for place, entrant in enumerate(entrants(game, offence))
    }
    pool = OneTablePool(game, made)
    await PartPlayer(experiment, pool, lambda: ticks.append("there")).play(parts, there.append)

    assert there == here
    assert (here[0].offence is not None) is (offence is not None)
    assert ticks.count("here") == ticks.count("there")


class HeldMatches:
    """A pool whose matches end when and as a test says."""

    def __init__(self, tables: int = 1) -> None:
        self.tables = tables
        self.busy: list[str] = []
        self.playing: dict[str, asyncio.Future[int | None]] = {}

    def seats(self, bots: Iterable[int]) -> tuple[str, ...] | None:
        taken = tuple(bots)
        names = tuple(str(bot) + "'" * taken[:place].count(bot) for place, bot in enumerate(taken))
        if any(self.busy.count(name) >= self.tables for name in names):
            return None
        self.busy += names
        return names

    def release(self, names: Iterable[str]) -> None:
        for name in names:
            self.busy.remove(name)

    async def play(
        self, spec: MatchSpec, settings: Settings, names: Sequence[str], tick: object
    ) -> PlayedMatch:
        key = "-".join(names)
        if len(spec.bots) == 1:  # of trials, which one it is
            key = f"trial {spec.numbers[0]}"
        over = self.playing[key] = asyncio.get_running_loop().create_future()
        try:
            offender = await over
        finally:
            self.playing.pop(key, None)
        game = GAMES["ace_king_queen" if len(spec.bots) == 2 else "blackjack"]
        match = MatchState(game, settings, seed=bytes(32), start=False)
        if offender is None:
            match.end(Ending.COMPLETED, None, "")
        else:
            match.end(Ending.CRASH, offender, "crashed: exit status 1")
        return PlayedMatch(spec, match.result(), [])

    async def until_playing(self, *keys: str) -> None:
        await all_done()
        assert set(self.playing) == set(keys)


Step = tuple[tuple[str, ...], Mapping[str, int | Exception | None]]
"""The tables at which it plays then, and how it ends at some: well, by an offender, by an error."""


async def stepwise(
    experiment: Experiment[Any, Any],
    parts: Iterable[Any],
    on_sums: Callable[[Any], bool | None],
    schedule: Sequence[Step],
    each: int = 1,
    at_once: int | None = None,
    is_cancelled: bool = False,
) -> None:
    """Play parts, see that matches begin as a schedule says, and end them as it says."""
    pool = HeldMatches(each)
    player = PartPlayer(experiment, cast(BotPool, pool), lambda: None)
    task = asyncio.create_task(player.play(parts, on_sums, at_once))
    for playing, ends in schedule:
        await pool.until_playing(*playing)
        for table, how in ends.items():
            over = pool.playing.pop(table)
            over.set_exception(how) if isinstance(how, Exception) else over.set_result(how)
    if is_cancelled:
        task.cancel()
    try:
        await task
    finally:
        assert pool.busy == []
        assert pool.playing == {}


async def played_by(
    tables: Sequence[tuple[int, ...]], schedule: Sequence[Step], matches: int = 1, **more: Any
) -> list[Sitting]:
    """The sittings of these tables when a schedule ends their matches."""
    game = GAMES["ace_king_queen"]
    experiment = TableMatches(game, game.vocabulary.read_settings({"hands": 2}))
    played: list[Sitting] = []
    parts = experiment.parts(dict.fromkeys(tables, 0), matches)
    await stepwise(experiment, parts, played.append, schedule, **more)
    return played


@pytest.mark.parametrize(
    ("tables", "at_once", "schedule"),
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
async def test_tables_are_played_side_by_side_and_come_in_order(
    tables: list[tuple[int, ...]], at_once: int | None, schedule: list[Step]
) -> None:
    played = await played_by(tables, schedule, at_once=at_once)

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


async def test_what_an_offence_leaves_out_holds_up_no_result() -> None:
    schedule: list[Step] = [(("0-1", "3-4"), {"3-4": None}), (("0-1",), {"0-1": 0})]
    played = await played_by([(0, 1), (0, 2), (3, 4)], schedule)

    assert [sitting.bots for sitting in played] == [(0, 1), (3, 4)]


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


async def test_a_process_keeps_its_number_at_the_table_when_seats_rotate() -> None:
    ends = {"0-0'": None}, {"0'-0": None}, {"0-0'": None}
    [sitting] = await played_by([(0, 0)], [(tuple(end), end) for end in ends], matches=3)

    assert sitting.matches == 3


async def test_what_comes_after_the_last_part_that_was_needed_is_stopped() -> None:
    game = GAMES["ace_king_queen"]
    experiment = TableMatches(game, game.vocabulary.read_settings({"hands": 2}))
    parts = (part for n in count() for part in experiment.parts({(n, n + 1): 0}, 1))
    played: list[Sitting] = []

    def on_sums(sitting: Sitting) -> bool:
        played.append(sitting)
        return len(played) == 2

    schedule: list[Step] = [(("0-1", "1-2"), {"1-2": None}), (("0-1", "2-3"), {"0-1": None})]
    await stepwise(experiment, parts, on_sums, schedule, each=9, at_once=2)

    assert [sitting.bots for sitting in played] == [(0, 1), (1, 2)]


# ---- Trials


async def tried(schedule: Sequence[Step], count: int) -> Ruin:
    """The trials of a bot that was started twice, which a schedule ends."""
    attempt = Attempt(GAMES["blackjack"], stake=20, goal=25)
    trials = Trials()
    parts = attempt.parts(1, count, at_once=1)
    await stepwise(attempt, parts, trials.add, schedule, each=2, at_once=2)
    return trials[0]


async def test_T10_trials_are_played_side_by_side() -> None:
    result = await tried(
        [
            (("trial 1", "trial 2"), {"trial 2": None}),
            (("trial 1", "trial 3"), {"trial 3": None}),
            (("trial 1",), {"trial 1": None}),
        ],
        count=3,
    )

    assert (result.trials, result.offences, result.offence) == (3, 0, None)


@pytest.mark.parametrize("ends", [{"trial 2": 0}, {"trial 2": 0, "trial 1": 0}])
async def test_T10_the_first_offence_ends_all_trials(
    ends: Mapping[str, int | Exception | None],
) -> None:
    result = await tried([(("trial 1", "trial 2"), ends)], count=10)

    assert (result.trials, result.offences) == (1, 1)
    assert not_none(result.offence).kind is Ending.CRASH
