"""Two competitions with the same bots share their tables, end together, and know their time left."""

from __future__ import annotations

import asyncio

import pytest

from arena.competitions.competition import Competition
from tests.support.arena_in_memory import in_host, plan_for
from tests.support.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time

CLASS = tuple(f"bot {number}" for number in range(6))
EVEN = plan_for("three_card_poker", CLASS, settings={"rounds": 12}, matches=30)
UNEVEN = plan_for("ace_king_queen", CLASS, settings={"hands": 4}, matches=8)


class WatchedCompetition:
    """How many matches were over at each look, and how long it was said to take then."""

    def __init__(self, competition: Competition) -> None:
        self.competition = competition
        self.looks: list[tuple[float, float, float | None]] = []

    def look(self, now: float) -> None:
        if not self.competition.is_over:
            over = self.competition.settled / self.competition.scheduled
            self.looks.append((now, over, self.competition.progress.left_s))


async def test_two_competitions_with_the_same_bots_end_together_and_know_their_time_left() -> None:
    async with in_host() as arena:
        virtual_loop().network.latency_s = 0.02
        await arena.come(*CLASS, tables=4)
        both = [WatchedCompetition(arena.host.compete(plan)) for plan in (EVEN, UNEVEN)]
        began = virtual_loop().time()
        playing = [arena.begin(watched.competition) for watched in both]
        while not all(task.done() for task in playing):
            await asyncio.sleep(0.1)
            for watched in both:
                watched.look(virtual_loop().time() - began)

    ends = [watched.looks[-1][0] for watched in both]
    assert ends[0] == pytest.approx(ends[1], rel=0.15)
    for watched, end in zip(both, ends, strict=True):
        [at_half, *_] = [over for now, over, _ in watched.looks if now >= end / 2]
        assert 0.25 < at_half < 0.7
        right = [
            left_s == pytest.approx(end - now, rel=0.3, abs=1.0)
            for now, over, left_s in watched.looks
            if 0.1 <= over <= 0.9
        ]
        assert sum(right) > 0.85 * len(right) > 20
