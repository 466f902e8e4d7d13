"""Two competitions with the same bots share their tables, end together, and know their time left.

Real stages share simulated bots: in a round every match makes a decision; a round takes a fixed
time, and more for every match.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
from collections.abc import Callable, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

import pytest

from arena.competitions.arbiter import Arbiter
from arena.competitions.competition import Competition
from arena.competitions.stage_runner import RunningStage
from arena.competitions.table_sharing import in_turn, share
from arena.formats.eta import Left, Workload
from arena.formats.schedule import Pairing
from arena.formats.spec import Form
from arena.referee.bot_session import BotSession
from arena.referee.clock import RoundTripFloor
from protocol.messages import Ending
from protocol.session import Session

BOTS, TABLES = 41, 64
# A round of 1,312 matches, 32 for every bot, takes 36 ms, of which 8 % are fixed. `_FIXED` in
# `arena/formats/eta.py` assumes a little less.
FIXED_S, EACH_S = 0.003, 0.000_025
COMPLETED = SimpleNamespace(termination=SimpleNamespace(kind=Ending.COMPLETED), out=())


class SimulatedBot:
    """Answers at once at all its tables."""

    link = RoundTripFloor()
    is_away = is_unresponsive = False
    answers, _busy_s = 1_000, 0.05
    tables, held, session = TABLES, 0, Session()
    free_tables = BotSession.free_tables

    def __init__(self, name: str) -> None:
        self.name = name
        self.chairs: set[SimulatedMatch] = set()


class SimulatedMatch:
    """Is over after so many decisions."""

    def __init__(self, of: SimulatedCompetition, pairing: Pairing, on_over: Any) -> None:
        self.length = max(10, int(of.length()))
        self.usual = of.usual
        self.pairing = pairing
        self.on_over = on_over
        self.decisions = 0

    @property
    def progress(self) -> float:
        return self.decisions / self.usual


class SimulatedCompetition:
    """What a stage, `share` and `in_turn` know of a competition and of its arbiter."""

    is_halted = False
    plan = SimpleNamespace(form=Form.ROUND_ROBIN)

    def __init__(
        self, night: ManyCompetitions, usual: float, length: Callable[[], float], meetings: int
    ) -> None:
        pairs = list(itertools.combinations(night.bots, 2)) * meetings
        self.id = str(length)
        self.usual, self.length = usual, length
        self.night = night
        self.matches = len(pairs)
        self.tables: list[SimulatedMatch] = []
        self.ends: list[float] = []
        self.left_seen: list[tuple[float, float]] = []
        self._workload = Workload(usual)
        self._workload.begin(night.now)
        self.ledger = self.listener = self
        self.gateway = SimpleNamespace(timers=self)
        self.stage = RunningStage(
            cast("Arbiter", self), [Pairing(number, pair) for number, pair in enumerate(pairs)]
        )
        night.competitions.append(cast("Competition", self))
        self.task = asyncio.ensure_future(self.stage.outcomes())

    @property
    def playing(self) -> int:
        return len(self.tables)

    @property
    def is_spreading(self) -> bool:
        return self.stage.progress < 1.0

    @property
    def rest(self) -> float:
        return self._workload.rest(self.stage.playing, self.stage.waiting)

    @property
    def left(self) -> Left | None:
        playing = [match.decisions for match in self.tables]
        return self._workload.left(self.night.now, playing, self.stage.waiting)

    def wants(self, name: str) -> bool:
        return self.stage.wants(name)

    def share(self, competition: str, name: str) -> float:
        return share(competition, self.night.competitions, name)

    def player(self, name: str) -> Any:
        return self.night.bots[name]

    def submission(self, name: str) -> None:
        """Nobody is played from a submission."""

    def is_carried(self, name: str) -> bool:
        return False

    def are_carried(self, names: Sequence[str]) -> bool:
        return False

    def take_up(self, pairing: Pairing, on_over: object) -> None:
        """Nothing is played elsewhere."""

    def known(self, pairing: Pairing) -> None:
        return None

    left_again = known

    def is_out(self, *names: str) -> bool:
        return False

    def awaited(self, name: str) -> float:
        raise AssertionError(f"{name} is here")

    forfeit = void_too_often = cast("Any", awaited)

    def after(self, delay_s: float, call: Callable[[], None]) -> Any:
        due = (self.night.now + delay_s, next(self.night.numbers), call)
        heapq.heappush(self.night.timers, due)
        return SimpleNamespace(cancel=lambda: None)

    def open(self, pairing: Pairing, on_over: Any) -> Any:
        match = SimulatedMatch(self, pairing, on_over)
        self.tables.append(match)
        self.night.open(match)
        return match

    def note(self, pairing: Pairing, table: Any, result: Any, verdict: Any) -> Any:
        now = self.night.now
        self.tables.remove(table)
        self.ends.append(now)
        self._workload.ended(table.decisions, is_whole=True)
        if self._workload.is_due(now):
            self._workload.mark(now, [match.decisions for match in self.tables])
        return result

    def freed(self, names: Sequence[str]) -> None:
        self.night.freed.append(names)


class ManyCompetitions:
    """The bots, the time, and what is played."""

    def __init__(self) -> None:
        self.now = 0.0
        self.numbers = itertools.count()
        self.timers: list[tuple[float, int, Callable[[], None]]] = []
        self.bots = {f"bot {n}": SimulatedBot(f"bot {n}") for n in range(BOTS)}
        self.competitions: list[Competition] = []
        self.matches: dict[SimulatedMatch, None] = {}  # in order
        self.freed: list[Sequence[str]] = []

    def open(self, match: SimulatedMatch) -> None:
        self.matches[match] = None
        for name in match.pairing.players:
            self.bots[name].chairs.add(match)

    async def play(self) -> None:
        """Until all is over."""
        competitions = cast("list[SimulatedCompetition]", self.competitions)
        await asyncio.sleep(0)
        while not all(running.stage.settled == running.matches for running in competitions):
            while self.timers and self.timers[0][0] <= self.now:
                heapq.heappop(self.timers)[2]()
            self._round()
            await asyncio.sleep(0)
            for running in competitions:
                if running.matches / 10 <= running.stage.settled <= running.matches * 0.9:
                    others = [other.left for other in competitions if other is not running]
                    left = running.left
                    assert left is not None
                    shown_s = left.s([other for other in others if other is not None])
                    running.left_seen.append((self.now, shown_s))

    def _round(self) -> None:
        self.now += FIXED_S + EACH_S * len(self.matches)
        for match in tuple(self.matches):
            match.decisions += 1
            if match.decisions == match.length:
                del self.matches[match]
                for name in match.pairing.players:
                    self.bots[name].chairs.remove(match)
                match.on_over(match, COMPLETED, None)
        freed, self.freed = self.freed, []
        for names in freed:
            for competition in in_turn(self.competitions):
                cast("SimulatedCompetition", competition).stage.seat(names)


@cache
def play_both() -> tuple[SimulatedCompetition, SimulatedCompetition]:
    """One whose matches are of much the same length, and one whose matches are not."""

    async def evening() -> tuple[SimulatedCompetition, SimulatedCompetition]:
        rng = random.Random(13)
        night = ManyCompetitions()
        even = SimulatedCompetition(night, 300, lambda: rng.gauss(334, 6), 2)
        uneven = SimulatedCompetition(night, 200, lambda: rng.gammavariate(10.8, 310 / 10.8), 2)
        await night.play()
        await asyncio.gather(even.task, uneven.task)
        return even, uneven

    return asyncio.run(evening())


def test_two_competitions_with_the_same_bots_end_together_and_both_move() -> None:
    ends = []
    for played in play_both():
        assert len(played.ends) == played.matches
        ends.append(played.ends[-1])
        assert played.ends[0] < 0.35 * played.ends[-1]
        half = sum(at <= played.ends[-1] / 2 for at in played.ends)
        assert 0.25 < half / played.matches < 0.55

    assert ends[0] == pytest.approx(ends[1], rel=0.1)


def test_the_time_left_of_two_competitions_is_right_from_a_tenth_to_nine_tenths_of_each() -> None:
    for played in play_both():
        wrong = [left_s / (played.ends[-1] - at) - 1 for at, left_s in played.left_seen]

        assert abs(wrong[0]) < 0.3
        assert sum(abs(by) < 0.3 for by in wrong) > 0.85 * len(wrong)
