"""Matches whose bots are launched: their seats, what waits for room, and what does not begin."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from arena.competitions.competition import Competition
from arena.competitions.process_pool import SeatBot
from arena.competitions.seating import WantedSeats
from arena.formats.spec import Form, Take
from arena.games.verdict import Finding
from arena.storage.models import CompetitionReport
from arena.storage.store import CompetitionState
from protocol.errors import ArenaError, UsageError
from protocol.messages import Ending, Mechanism
from tests.support.fake_bots import ANY_GAME
from tests.support.fake_host import (
    FakeHost,
    a_while,
    act,
    first_legal,
    illegal,
    in_time,
    silent,
    until,
)

pytestmark = pytest.mark.virtual_time

CRASH = Finding(
    kind=Ending.CRASH, text="crashed: exit status 1", mechanism=Mechanism.EXIT, stderr="oh no"
)
SUBMITTED: dict[str, Any] = {
    "take": Take.SUBMITTED,
    "versions": {"ann": 11, "ben": 21, "cem": 31, "dora": 41},
}
FOUR = tuple(SUBMITTED["versions"])


@pytest.fixture
async def handed_in(host: FakeHost) -> AsyncIterator[FakeHost]:
    """An arena in which four have a version in play."""
    host.takes_submissions(**SUBMITTED["versions"])
    yield host
    await host.end()


def submitted(*names: str, **plan: Any) -> dict[str, Any]:
    """The part of a plan in which these play by their submissions, and the others are connected."""
    versions = {name: SUBMITTED["versions"][name] for name in names}
    return {"take": Take.EITHER, "versions": versions, **plan}


# --- forms ---


@pytest.mark.parametrize("game", ["ace_king_queen", "high_low", "blackjack"])
async def test_submitted_bots_play_every_form(handed_in: FakeHost, game: str) -> None:
    report = await handed_in.play(*FOUR, game=game, **SUBMITTED)

    assert report.state is CompetitionState.FINISHED
    assert not report.verdicts
    assert {name for players, _ in handed_in.book.matches for name in players} == {*FOUR}
    assert not handed_in.pool.reserved
    matches = {row.id for row in handed_in.book.rows}
    assert {match for _, _, match in handed_in.pool.released} == matches


async def test_records_say_which_version_has_played(handed_in: FakeHost) -> None:
    handed_in.comes("eve")
    await handed_in.play("ann", "eve", matches=2, **submitted("ann"))

    records = {result.record.versions for _, result in handed_in.book.matches}
    assert records == {("v1", "connected"), ("connected", "v1")}


async def test_each_plays_with_its_submission_of_the_plan(handed_in: FakeHost) -> None:
    await handed_in.play("ann", "ben", take=Take.SUBMITTED, versions={"ann": 19, "ben": 21})

    seated = {(bot.name, bot.submission) for bot in handed_in.pool.seated}
    assert seated == {("ann", 19), ("ben", 21)}


@pytest.mark.parametrize(("at_once", "most"), [(1, 2), (2, 4), (4, 8)])
async def test_so_many_are_played_at_once_and_no_process_more(
    host: FakeHost, at_once: int, most: int
) -> None:
    host.takes_submissions(at_once, **SUBMITTED["versions"])
    await host.play(*FOUR, matches=12, **SUBMITTED)

    assert host.pool.most_reserved == most
    await host.end()


# --- seats ---


async def test_a_connected_bot_keeps_a_table_free_while_the_other_process_starts(
    handed_in: FakeHost,
) -> None:
    handed_in.comes("eve", silent)
    handed_in.comes("fay", silent)
    handed_in.pool.starts.clear()
    competition, _ = await handed_in.begin("ann", "eve", **submitted("ann"))
    other, _ = await handed_in.begin("eve", "fay", competition="d")

    assert not other.arbiter.tables

    handed_in.pool.starts.set()
    await a_while()
    [table] = competition.arbiter.tables
    assert [chair.player.public_name for chair in table.chairs] == ["ann", "eve"]
    assert handed_in.players["eve"].held == 0
    assert not other.arbiter.tables


async def test_a_bot_that_leaves_meanwhile_is_waited_for_and_nothing_is_recorded(
    handed_in: FakeHost,
) -> None:
    handed_in.comes("eve")
    handed_in.pool.starts.clear()
    competition, task = await handed_in.begin("ann", "eve", **submitted("ann"))
    handed_in.leaves("eve")
    handed_in.pool.starts.set()
    await a_while()

    assert competition.progress.waits_for == ("eve",)
    assert not handed_in.book.rows
    assert not handed_in.pool.reserved

    handed_in.comes("eve")
    await in_time(task)
    assert handed_in.book.counted() == {("ann", "eve"): 1}


async def test_a_match_waits_until_there_is_room(handed_in: FakeHost) -> None:
    handed_in.pool.most = 2
    report = await handed_in.play(*FOUR, **SUBMITTED)

    assert report.played == 6
    assert handed_in.pool.most_reserved == 2


class SeatsInOrder:
    """Asks for the seats of matches, and notes in which order they are there; each is short.

    Attributes:
        told: the numbers of the matches that were seated.
    """

    def __init__(self, host: FakeHost, most: int) -> None:
        host.takes_submissions(100)
        host.pool.most = most
        self.told: list[int] = []
        self.wanted: list[WantedSeats] = []
        self._seating = host.seating

    def want(self, *names: str, lasts: int = 4) -> None:
        number = len(self.wanted)

        def seated(sessions: object) -> None:
            self.told.append(number)
            asyncio.get_running_loop().call_later(lasts / 1000, self._seating.give_back, wanted)

        bots = [SeatBot(name, SUBMITTED["versions"][name], ANY_GAME) for name in names]
        wanted = WantedSeats(
            f"m{number}",
            bots,
            is_portable=False,
            is_limited=True,
            seated=seated,
            refused=_never,
            failed=_never,
        )
        self.wanted.append(wanted)
        self._seating.want(wanted)


def _never(*_: object) -> None:
    raise AssertionError("nothing fails here")


async def test_a_large_match_is_overtaken_by_small_ones_but_not_for_ever(host: FakeHost) -> None:
    order = SeatsInOrder(host, most=5)
    for number in range(60):  # there is always one of these, with which four others do not fit
        if number == 2:
            order.want(*FOUR)
        order.want("ann", "ben", lasts=4 + number % 3)
    await until(lambda: len(order.told) == 61)

    assert 2 < order.told.index(2) < 30


async def test_matches_whose_processes_are_warm_come_first_but_not_for_ever(host: FakeHost) -> None:
    order = SeatsInOrder(host, most=100)
    host.pool.at_once = 1
    order.want(*FOUR[2:])
    for _ in range(120):
        order.want(*FOUR[:2])
    host.pool.idle = set(order.wanted[1].bots)
    await until(lambda: len(order.told) == 121)

    assert 100 <= order.told.index(0) < 120


async def test_a_small_match_does_not_wait_for_a_large_one_that_never_fits(host: FakeHost) -> None:
    order = SeatsInOrder(host, most=2)
    order.want(*FOUR)
    for _ in range(40):
        order.want("ann", "ben")
    await until(lambda: len(order.told) == 40)

    assert 0 not in order.told


@pytest.mark.parametrize("form", [Form.ROUND_ROBIN, Form.LADDER])
async def test_who_computes_out_of_turn_has_one_match_at_a_time(host: FakeHost, form: Form) -> None:
    host.takes_submissions(6, **SUBMITTED["versions"])
    host.pool.restless = {"ann"}
    ladder = {"take": Take.SUBMITTED, "form": form}
    plan = ladder if form is Form.LADDER else {**SUBMITTED, "matches": 20}
    for name in FOUR:
        host.submitted_play[name] = silent
    competition, _ = await host.begin(*(() if form is Form.LADDER else FOUR), **plan)
    matches = Counter(name for table in competition.arbiter.tables for name in table.names)

    assert matches["ann"] == 1
    assert min(matches[name] for name in FOUR[1:]) > 1
    await host.end()


# --- offences and faults ---


async def test_J2_who_does_not_start_is_out_and_nobody_else_is_harmed(handed_in: FakeHost) -> None:
    handed_in.pool.failures["ben"] = CRASH
    handed_in.house.referee.on_verdict = handed_in.told.append
    report = await handed_in.play(*FOUR, **SUBMITTED)

    [verdict] = report.verdicts
    assert (verdict.bot, verdict.kind, verdict.stderr) == ("ben", Ending.CRASH, "oh no")
    assert handed_in.told == [verdict]
    assert verdict.match in [row.id for row in handed_in.book.rows]
    assert {row.name for row in report.standings if row.eliminated} == {"ben"}
    assert handed_in.book.counted().total() == 3  # of the three others


async def test_J3_a_run_may_forgive_that_a_submission_does_not_start(handed_in: FakeHost) -> None:
    handed_in.pool.failures["ben"] = CRASH
    report = await handed_in.play("ann", "ben", forgive=9, matches=2, **SUBMITTED)

    assert [verdict.forgiven for verdict in report.verdicts] == [True] * report.played
    assert not any(row.eliminated for row in report.standings)


async def test_J5_what_the_arena_cannot_start_is_void_but_not_for_ever(
    handed_in: FakeHost, caplog: pytest.LogCaptureFixture
) -> None:
    handed_in.pool.failures["ann"] = ArenaError("no space left on device")

    with pytest.raises(ArenaError, match="ann against ben was void 3 times"):
        await handed_in.play("ann", "ben", **SUBMITTED)

    assert not handed_in.book.rows
    assert "no space left" in caplog.text


async def test_J5_seats_that_never_fit_are_a_fault_of_the_arena(
    handed_in: FakeHost, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def never(seats: object) -> None:
        raise UsageError("expected at most 1 submitted bots in a match")

    monkeypatch.setattr(handed_in.pool, "reserve", never)

    with pytest.raises(ArenaError, match="void 3 times"):
        await handed_in.play("ann", "ben", **SUBMITTED)


# --- the instructor ---


async def begun(
    host: FakeHost, *names: str, **plan: Any
) -> tuple[Competition, asyncio.Task[CompetitionReport]]:
    """A round robin of submitted bots that answer nothing."""
    for name in names:
        host.submitted_play[name] = silent
    return await host.begin(*names, **{**SUBMITTED, **plan})


def answer(host: FakeHost) -> None:
    """All that are silent play on, and will from now on."""
    host.submitted_play.clear()
    host.all_play(first_legal)


async def test_a_stop_ends_matches_in_every_state(host: FakeHost) -> None:
    host.takes_submissions(1, **SUBMITTED["versions"])
    competition, task = await begun(host, *FOUR)
    competition.stop(act("stop"))
    report = await in_time(task)
    await host.end()

    assert report.state is CompetitionState.STOPPED
    assert [row.counts for row in host.book.rows] == [False]  # the one that had begun
    assert not host.pool.reserved


@pytest.mark.parametrize("has_begun", [True, False])
async def test_a_bot_that_is_removed_leaves_its_matches(
    handed_in: FakeHost, has_begun: bool
) -> None:
    if not has_begun:
        handed_in.pool.starts.clear()
    competition, task = await begun(handed_in, "ann", "ben", "cem")
    competition.remove("ann", act("remove", bot="ann"))
    handed_in.pool.starts.set()
    await a_while()
    answer(handed_in)
    report = await in_time(task)

    assert {row.name for row in report.standings if row.eliminated} == {"ann"}
    assert handed_in.book.counted() == {("ben", "cem"): 1}


async def test_what_a_connected_bot_of_the_same_name_does_is_no_matter(handed_in: FakeHost) -> None:
    handed_in.comes("ann", illegal)
    _, task = await begun(handed_in, "ann", "ben")
    handed_in.offends("ann", CRASH)
    answer(handed_in)
    report = await in_time(task)

    assert not report.verdicts
