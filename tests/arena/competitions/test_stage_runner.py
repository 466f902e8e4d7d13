"""A stage as properties: how many matches it opens, and any acts against its results played anew."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest

from arena.competitions.stage_runner import RunningStage
from arena.formats.scorebook import ScheduleRun
from arena.formats.spec import Form, Plan, Settling
from arena.formats.standings import Row
from arena.games.match import Result
from arena.games.settle import Goal
from arena.games.verdict import Finding
from arena.storage.models import CompetitionReport
from bots.strategy import choose
from protocol.errors import UsageError
from protocol.messages import Ask, Ending, Limits, Mechanism
from tests.support.fake_bots import FakeArena
from tests.support.fake_host import FakeHost, a_while, act, at_random, in_time, silent, until

pytestmark = pytest.mark.virtual_time

MEMORY = Finding(kind=Ending.MEMORY, text="took too much", mechanism=Mechanism.CGROUP)


EIGHT = ("ann", "ben", "cem", "dora", "eve", "fritz", "gus", "hal")


def rows_of(standings: Iterable[Row]) -> list[Row]:
    """By name; of the eliminated only why, as the removed have no seat."""
    return sorted(
        (
            msgspec.structs.replace(
                row,
                eliminated=row.eliminated and msgspec.structs.replace(row.eliminated, seat=None),
            )
            for row in standings
        ),
        key=lambda row: row.name,
    )


def rows(report: CompetitionReport) -> list[Row]:
    return rows_of(report.standings)


# --- in the moment of an end ---


async def test_the_last_match_is_made_void_before_anybody_has_noticed_that_it_was_the_last(
    host: FakeHost,
) -> None:
    host.come("ann", "ben")
    competition = host.compete("ann", "ben")

    def void() -> None:
        host.book.on_match = lambda: None
        competition.void(host.book.rows[0].id, act("void"))

    def at_once() -> None:
        # Nothing is between the end of the last match and this.
        asyncio.get_running_loop().call_soon(void)

    host.book.on_match = at_once
    report = await in_time(competition.run())

    assert [row.counts for row in host.book.rows] == [False, True]
    assert report.played == 1
    assert len(host.book.finished) == 1


async def test_a_removal_is_written_down_before_what_it_brings_about(host: FakeHost) -> None:
    host.come("ann", "ben", plays=silent)
    competition, task = await host.begin("ann", "ben")
    noted: list[int] = []
    host.book.on_match = lambda: noted.append(len(host.book.acts))
    competition.remove("ben", act("remove", bot="ben"))
    await in_time(task)

    assert noted == [1]


LEFT = Finding(kind=Ending.DISCONNECT, text="left", mechanism=Mechanism.WIRE)


async def test_goodbye_between_two_matches_and_back_in_time_is_no_offence(host: FakeHost) -> None:
    host.come("ann", "ben")
    competition = host.compete("ann", "ben", matches=3, limits=Limits())
    left = 0

    def leaves() -> None:
        nonlocal left
        if len(host.book.matches) < 3:
            left += 1
            host.offends("ben", LEFT)  # it says goodbye to every `over`
            asyncio.get_running_loop().call_soon(host.comes, "ben")

    host.book.on_match = leaves
    report = await in_time(competition.run())

    assert left == 2
    assert report.verdicts == ()
    assert host.book.counted() == {("ann", "ben"): 3}


# --- how many matches at once, and which ---


async def test_the_records_of_matches_that_are_over_are_in_the_database_alone(
    host: FakeHost,
) -> None:
    host.come("ann", "ben")
    competition, _ = await host.begin("ann", "ben", "cem", matches=9, limits=Limits())
    await until(lambda: competition.ledger.played >= 9)
    stage = competition.stage
    assert isinstance(stage, RunningStage)

    assert {type(outcome.result) for outcome in stage._outcomes.values()} == {Result}


# --- competitions that settle ---


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


# --- anything, at any time ---


class Meddling:
    """An instructor who does anything, and bots that come, go and offend, to one competition.

    Args:
        plan: what `FakeHost.compete` takes, besides the names.
    """

    def __init__(self, house: FakeArena, seed: int, names: Sequence[str], **plan: Any) -> None:
        self._rng = random.Random(seed)
        self.host = FakeHost(house)
        self._names = names
        self.host.come(*names, plays=self._plays, tables=2)
        self.competition = self.host.compete(*names, limits=Limits(), **plan)

    async def goes_on(self, acts: int, apart: int) -> CompetitionReport:
        """Take `acts` actions, at most `apart` answers apart; then let it be played to its end."""
        competition = self.competition
        task = asyncio.create_task(competition.run())
        for _ in range(acts):
            tables = set(competition.arbiter.tables)
            await a_while(self._rng.randrange(apart))
            assert not competition.arbiter.is_paused or tables >= set(competition.arbiter.tables)
            if not task.done():
                self._does_something()
        for name in self._names:
            if name not in self.host.players:
                self.host.comes(name, self._plays, tables=2)
        if competition.plan.form is Form.LADDER:
            competition.close()
        elif not task.done():
            with contextlib.suppress(UsageError):
                competition.resume(act("resume"))
        report: CompetitionReport = await in_time(task)
        assert not self.host.house.referee.tables
        assert not any(player.chairs for player in self.host.players.values())
        return report

    def _plays(self, ask: Ask) -> object:
        if self._rng.random() < 0.002:
            return "all in"
        return choose(ask.question.choices, self._rng)

    def _does_something(self) -> None:
        """It may be nonsense just then: what is refused changes nothing."""
        before = self._state()
        try:
            if self._rng.random() < 0.2:
                self._a_bot_does()
            else:
                self._the_instructor_does()
        except UsageError:
            assert before == self._state()

    def _state(self) -> tuple[object, ...]:
        competition, book = self.competition, self.host.book
        return (
            *(
                competition.state,
                competition.settled,
                competition.arbiter.tables,
                competition.ledger.verdicts,
            ),
            *(competition.ledger.book.rows, len(book.acts), len(book.rows)),
        )

    def _the_instructor_does(self) -> None:
        competition, rng = self.competition, self._rng
        tables = [table.id for table in competition.arbiter.tables]
        counted = [row.id for row in self.host.book.rows if row.counts]
        choice = rng.randrange(10)
        if choice < 2:
            competition.pause(act("pause"))
        elif choice < 5:
            competition.resume(act("resume"))
        elif choice < 9:
            match = rng.choice([*(tables if choice < 7 else counted), "nonsense"])
            competition.void(match, act("void", match=match))
        elif rng.random() < 0.3:
            name = rng.choice([*self._names, "nobody"])
            competition.remove(name, act("remove", bot=name))

    def _a_bot_does(self) -> None:
        """One that plays no match goes, comes back, or offends."""
        name = self._rng.choice(self._names)
        if name not in self.host.players:
            self.host.comes(name, self._plays, tables=2)
        elif not self.host.players[name].chairs:
            if self._rng.random() < 0.1 and self.competition.plan.form is not Form.LADDER:
                self.host.offends(name, MEMORY)
            else:
                self.host.leaves(name)


@pytest.mark.parametrize("seed", range(20))
async def test_K1_whatever_the_instructor_does_every_pairing_counts_once(
    house: FakeArena, seed: int
) -> None:
    meddling = Meddling(house, seed, EIGHT[:5], matches=2)
    host, competition, book = meddling.host, meddling.competition, meddling.host.book
    report = await meddling.goes_on(60, apart=4)
    scratch = host.compete(
        *competition.plan.players,
        matches=2,
        earlier=book.results(),
        acts=book.acts,
        verdicts=book.verdicts,
    ).ledger

    assert rows(report) == rows_of(scratch.book.rows)
    assert report.cross_table == scratch.book.cross_table
    assert set(competition.ledger.book.out) == set(scratch.book.out)
    assert {verdict.match for verdict in report.verdicts} == {
        verdict.match for verdict in scratch.verdicts
    }
    seeds = Counter(result.record.seed for _, result in book.matches)
    assert set(seeds.values()) == {1}, "fresh cards"
    left = [name for name in competition.plan.players if competition.is_in(name)]
    met = Counter(
        frozenset(row.players)
        for row in book.results()
        if all(name in left for name in row.players)
    )
    assert met == {frozenset(pair): 2 for pair in itertools.combinations(left, 2)}
    assert {verdict.bot for verdict in report.verdicts} <= set(scratch.book.out)


@pytest.mark.parametrize("seed", range(20))
async def test_K6_whatever_the_instructor_does_a_competition_settles(
    house: FakeArena, seed: int
) -> None:
    settle = Settling(goal=Goal.PAIRS, level=2.0, most=8)
    meddling = Meddling(house, seed, EIGHT[:4], matches=2, settle=settle)
    report = await meddling.goes_on(60, apart=8)
    results = {row.pairing: row for row in meddling.host.book.results()}
    run = ScheduleRun(meddling.competition.plan)
    out = [row.name for row in report.standings if row.eliminated]
    run.run({number: row.result for number, row in results.items()}, out)

    assert run.missing == []
    assert {acted.bot for acted in meddling.host.book.acts if acted.what == "remove"} <= {*out}
    assert len(results) == len(meddling.host.book.results()) == report.played
    for number, row in results.items():
        assert row.players == run.asked[number].players


@pytest.mark.parametrize("seed", range(20))
async def test_K2_whatever_the_instructor_does_an_elimination_ends_as_it_would_be_drawn(
    house: FakeArena, seed: int
) -> None:
    meddling = Meddling(house, seed, EIGHT, game="high_low")
    book, competition = meddling.host.book, meddling.competition
    report = await meddling.goes_on(60, apart=30)
    again = FakeHost(house)  # in which nobody is
    replayed = await again.play(
        *EIGHT, game="high_low", earlier=book.results(), acts=book.acts, verdicts=book.verdicts
    )

    assert again.book.matches == []
    assert replayed.ranking == report.ranking
    assert sorted(name for place in report.ranking for name in place.names) == sorted(EIGHT)
    for act_ in book.acts:
        if act_.what == "remove" and act_.bot is not None:
            later = [row for row in book.results() if act_.bot in row.players]
            assert not competition.is_in(act_.bot)
            assert later


@pytest.mark.parametrize("seed", range(10))
async def test_K4_whatever_the_instructor_does_a_ladder_is_rated_as_from_the_start(
    house: FakeArena, seed: int
) -> None:
    meddling = Meddling(house, seed, EIGHT[:5], form=Form.LADDER, pause_s=0.0)
    host, book = meddling.host, meddling.host.book
    report = await meddling.goes_on(60, apart=30)
    scratch = host.compete(
        *EIGHT[:5], form=Form.LADDER, earlier=book.results(), acts=book.acts, verdicts=book.verdicts
    ).ledger

    assert report.played == len(book.results()) > 0
    assert rows(report) == rows_of(scratch.book.rows)
    assert {row.name for row in report.standings} >= {
        name for row in book.results() for name in row.players
    }
