"""How jobs are played: their seats, what waits for room, and matches that do not begin."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from arena.competitions.competition import Competition
from arena.competitions.job_match import JobMatch
from arena.competitions.jobs import MatchJob
from arena.competitions.ledger import CompetitionReport
from arena.engine.match import MatchResult
from arena.engine.verdict import Finding
from arena.formats.spec import Take
from arena.games import GAMES
from arena.referee.live_match import Forgives, LiveMatch
from arena.storage.store import CompetitionState
from protocol.errors import ArenaError, UsageError
from protocol.messages import Ending, Limits, Mechanism, Verdict
from tests.support.fake_host import (
    SHORT,
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


# --- what is a job ---


@pytest.mark.parametrize(
    ("players", "kind"),
    [(("ours", "yours"), JobMatch), (("ann", "ben"), LiveMatch), (("ours", "ann"), LiveMatch)],
)
async def test_a_match_is_a_job_if_all_its_bots_were_launched(
    host: FakeHost, players: tuple[str, str], kind: type
) -> None:
    host.has_jobs()
    for name in players:
        host.comes(name, silent, is_launched=name in ("ours", "yours"))
    competition, _ = await host.begin(*players)

    assert [type(table) for table in competition.tables] == [kind]
    await host.end()


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

    assert set(handed_in.pool.seated) == {("ann", 19), ("ben", 21)}


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

    assert not other.tables

    handed_in.pool.starts.set()
    await a_while()
    [table] = competition.tables
    assert [chair.player.public_name for chair in table.chairs] == ["ann", "eve"]
    assert handed_in.players["eve"].held == 0
    assert not other.tables


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


async def test_a_job_waits_until_there_is_room(handed_in: FakeHost) -> None:
    handed_in.pool.most = 2
    report = await handed_in.play(*FOUR, **SUBMITTED)

    assert report.played == 6
    assert handed_in.pool.most_reserved == 2


class WatcherOfOrder:
    """Notes in which order jobs begin and end."""

    def __init__(self, told: list[str]) -> None:
        self._told = told

    @property
    def forgives(self) -> Forgives:
        return lambda bot, kind, event: False

    def progressed(self, job: str, match: str, decisions: int) -> None:
        if not decisions:
            self._told.append(f"{job} begins")

    def lost(self, job: str, match: str) -> None:
        raise AssertionError("nothing is lost in process")

    def done(self, job: str, match: str, result: MatchResult, verdict: Verdict | None) -> None:
        self._told.append(f"{job} ends" if match else f"{job}: {result.termination.text}")


def a_job(name: str, *players: str, game: str = "ace_king_queen", **settings: object) -> MatchJob:
    read = GAMES[game].vocabulary.read_settings({**SHORT[game], **settings})
    return MatchJob(
        id=name,
        game=game,
        settings=msgspec.to_builtins(read),
        limits=Limits(),
        players=players,
        submissions=tuple(SUBMITTED["versions"][player] for player in players),
    )


async def test_a_large_match_is_overtaken_by_small_ones_but_not_for_ever(host: FakeHost) -> None:
    host.takes_submissions(100)
    assert host.runner is not None
    jobs, told, host.pool.most = host.runner.jobs, list[str](), 5
    watcher = WatcherOfOrder(told)
    for number in range(60):  # there is always one of these, with which four others do not fit
        if number == 2:
            jobs.put(a_job("large", *FOUR, game="high_low"), watcher)
        jobs.put(a_job(f"small {number}", "ann", "ben", hands=4 + number % 3), watcher)
    await until(lambda: len(told) == 2 * 61)
    await host.end()

    before = told[: told.index("large begins")]
    assert 2 < sum(line.endswith("begins") for line in before) < 30


async def test_matches_whose_processes_are_warm_come_first_but_not_for_ever(host: FakeHost) -> None:
    host.takes_submissions(100)
    assert host.runner is not None
    host.pool.at_once = 1
    jobs, told = host.runner.jobs, list[str]()
    cold, *warm = (
        a_job(f"match {number}", *names)
        for number, names in enumerate([FOUR[2:], *([FOUR[:2]] * 120)])
    )
    host.pool.idle = set(warm[0].submitted.values())
    watcher = WatcherOfOrder(told)
    for job in (cold, *warm):
        jobs.put(job, watcher)
    await until(lambda: len(told) == 2 * 121)
    await host.end()

    begun = [line for line in told if line.endswith("begins")]
    assert 100 <= begun.index("match 0 begins") < 120


async def test_a_small_match_does_not_wait_for_a_large_one_that_never_fits(host: FakeHost) -> None:
    host.takes_submissions(100)
    assert host.runner is not None
    jobs, told, host.pool.most = host.runner.jobs, list[str](), 2
    watcher = WatcherOfOrder(told)
    jobs.put(a_job("large", *FOUR, game="high_low"), watcher)
    for number in range(40):
        jobs.put(a_job(f"small {number}", "ann", "ben"), watcher)
    await until(lambda: len(told) == 80)
    await host.end()

    assert "large begins" not in told


async def test_in_the_end_everything_here_is_void(host: FakeHost) -> None:
    host.takes_submissions(1)
    assert host.runner is not None
    told = list[str]()
    host.submitted_play["ann"] = silent
    for name in ("first", "second"):
        host.runner.jobs.put(a_job(name, "ann", "ben"), WatcherOfOrder(told))
    await a_while()
    host.runner.close("the arena stops")
    await host.end()

    assert told == ["first begins", "first ends", "second: the arena stops"]
    assert not host.pool.reserved


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


async def test_a_stop_ends_jobs_in_every_state(host: FakeHost) -> None:
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


async def test_jobs_show_how_far_they_are(handed_in: FakeHost, monkeypatch: Any) -> None:
    monkeypatch.setattr("arena.competitions.job_runner._PROGRESS_S", 0.001)
    competition, _ = await begun(handed_in, "ann", "ben")
    handed_in.all_play(first_legal, once=True)
    await until(lambda: competition.tables and competition.tables[0].decisions)

    assert competition.tables[0].progress > 0
