"""Competitions with `settle` while they are played: blocks overlap, and nothing changes the draw."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from arena.formats.formats import open_stages
from arena.formats.scorebook import ScheduleRun
from arena.formats.spec import Plan, Settling
from arena.games.settle import Goal
from arena.games.verdict import Finding
from protocol.errors import UsageError
from protocol.messages import Ending, Mechanism
from tests.support.fake_host import FakeHost, a_while, act, at_random, in_time, silent, until

pytestmark = pytest.mark.virtual_time

THREE = ("ann", "ben", "cem")
FIRST = 12  # matches of the first block of three bots that meet four times
BOTH = 18  # with the second, in which they meet twice


def settling(goal: Goal = Goal.PAIRS, most: int = 30, **more: Any) -> dict[str, Any]:
    return {"matches": 4, "settle": Settling(goal=goal, level=2.0, most=most), **more}


def come(host: FakeHost, *names: str) -> None:
    for name in names:
        host.comes(name, at_random(len(name)), tables=4)


def fits(host: FakeHost, plan: Plan, out: tuple[str, ...] = ()) -> ScheduleRun:
    """The schedule, run again with what the database has; all that was played was asked for."""
    rows = {row.pairing: row for row in host.book.results()}
    run = ScheduleRun(plan)
    run.run({number: row.result for number, row in rows.items()}, out)
    assert {number: row.players for number, row in rows.items()}.items() <= {
        number: pairing.players for number, pairing in run.asked.items()
    }.items()
    return run


@pytest.mark.parametrize(
    ("game", "goal", "most"),
    [("ace_king_queen", Goal.PAIRS, 60), ("blackjack", Goal.FIRST, 40)],
    ids=["round robin", "league"],
)
async def test_K6_a_competition_plays_on_until_it_is_settled(
    host: FakeHost, game: str, goal: Goal, most: int
) -> None:
    come(host, *THREE)
    report = await host.play(*THREE, game=game, **settling(goal, most))
    run = fits(host, host.competition.plan)
    counts = set(host.book.counted().values())

    assert (run.missing, run.ranking) == ([], ())
    assert report.played == len(run.asked) == host.competition.settled
    assert max(counts) <= most
    assert all(row.rank_low <= row.rank <= row.rank_high for row in report.standings)


async def test_K6_a_block_begins_while_the_one_before_is_being_played(host: FakeHost) -> None:
    """One match of block 1 hangs: block 2 is played, block 3 is not drawn."""
    come(host, *THREE)
    host.plays("cem", silent)
    competition, _ = await host.begin(*THREE, **settling())
    await until(lambda: host.book.counted()["ann", "ben"] == 6)
    await a_while()

    assert competition.scheduled == BOTH
    assert (competition.progress.scheduled, competition.progress.left_s) == (0, None)
    assert max(row.pairing for row in host.book.results()) > FIRST

    host.plays("cem", at_random(3))
    await until(lambda: competition.scheduled > BOTH)
    fits(host, competition.plan)


async def test_an_interrupted_competition_goes_on_as_if_it_never_was(host: FakeHost) -> None:
    come(host, *THREE)
    await host.play(*THREE, **settling())
    whole = host.book.results()
    for cut in (0, 1, FIRST, BOTH + 3, len(whole) - 1, len(whole)):
        host.book.rows = whole[:cut]
        report = await host.play(*THREE, earlier=tuple(whole[:cut]), **settling())
        run = fits(host, host.competition.plan)

        assert (run.missing, report.played) == ([], len(run.asked))
        assert Counter(row.pairing for row in host.book.results()).most_common(1)[0][1] == 1


async def test_a_result_that_blocks_were_drawn_by_is_not_taken_back(host: FakeHost) -> None:
    come(host, *THREE)
    competition, _ = await host.begin(*THREE, **settling(most=2_000))
    await until(lambda: competition.scheduled > BOTH + 6)
    early = next(row for row in host.book.results() if row.pairing == 1)

    with pytest.raises(UsageError, match="drawn by its result"):
        competition.void(early.id, act("void", match=early.id))

    fits(host, competition.plan)


async def test_who_would_come_back_into_blocks_that_are_over_stays_out(host: FakeHost) -> None:
    """A bot is out by a match of block 2; block 1 has ended without it and drew block 3."""
    come(host, *THREE)
    host.comes("dora", silent, tables=1)
    competition, _ = await host.begin(*THREE, "dora", **settling(most=2_000))
    host.offends(
        "dora", Finding(kind=Ending.MEMORY, text="took too much", mechanism=Mechanism.CGROUP)
    )
    await until(lambda: competition.scheduled > 36 + 12)
    offence = next(row for row in host.book.results() if row.result.out)

    with pytest.raises(UsageError, match="drawn by its result"):
        competition.void(offence.id, act("void", match=offence.id))

    fits(host, competition.plan, ("dora",))


async def test_an_instructor_may_stop_it_at_any_time(host: FakeHost) -> None:
    come(host, *THREE)
    competition, task = await host.begin(*THREE, **settling(most=2_000))
    await until(lambda: len(host.book.results()) > BOTH)
    competition.stop(act("stop"))
    report = await in_time(task)

    assert all(row.rank_low <= row.rank <= row.rank_high for row in report.standings)
    fits(host, competition.plan)


def test_the_second_block_may_be_played_at_once_and_no_third(host: FakeHost) -> None:
    plan = host.plan(*THREE, **settling())

    assert [len(stage) for stage in open_stages(plan).open] == [FIRST, BOTH - FIRST]
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan
