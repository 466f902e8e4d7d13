"""What other machines play of a competition: how much of it, and what becomes of what they lose."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from arena.competitions.competition import Competition
from arena.competitions.job_match import JobMatch
from arena.competitions.remote_play import WaitNotice
from arena.engine.verdict import Finding
from arena.formats.spec import Form, Take
from arena.referee.live_match import LiveMatch
from arena.storage.store import CompetitionState
from protocol.messages import Ending, Mechanism
from tests.support.fake_bots import FakeArena
from tests.support.fake_host import FakeHost, a_while, act, first_legal, in_time, silent, until
from tests.support.fake_jobs import WORKER, FakeJobs

pytestmark = pytest.mark.virtual_time

PAIR = ("ann", "ben")
THREE = ("ann", "ben", "cem")
CRASH = Finding(kind=Ending.CRASH, text="crashed: exit status 1", mechanism=Mechanism.EXIT)


def launched(host: FakeHost, *names: str, tables: int = 1) -> None:
    """These are bots of ours, which play nothing here: they do not answer."""
    for name in names:
        host.comes(name, silent, tables, is_launched=True)


@pytest.fixture
async def jobs(host: FakeHost) -> FakeJobs:
    """A worker that takes four matches at once; ann, ben and cem are launched here."""
    jobs = host.has_worker(4, THREE)
    launched(host, *THREE)
    return jobs


def ids(jobs: FakeJobs) -> list[str]:
    return [job.id for job in jobs.open_jobs]


def kinds(competition: Competition) -> Counter[type]:
    return Counter(map(type, competition.tables))


# --- how much ---


async def test_a_launched_bot_with_one_table_has_as_many_matches_as_workers_take(
    host: FakeHost, house: FakeArena, jobs: FakeJobs
) -> None:
    competition, _ = await host.begin(*PAIR, matches=20)

    assert len(jobs.open_jobs) == competition.playing == 5  # and one that is played here
    assert not house.referee.tables

    jobs.at_once = 12
    host.room_changed()
    await a_while()

    assert len(jobs.open_jobs) == 13


async def test_without_workers_it_plays_at_its_table(host: FakeHost, house: FakeArena) -> None:
    jobs = host.has_worker(0, PAIR)
    launched(host, *PAIR)
    competition, _ = await host.begin(*PAIR, matches=20)

    assert competition.playing == len(house.referee.tables) == 1
    assert not jobs.open_jobs


async def test_every_pairing_is_played_once_whoever_plays_it(
    host: FakeHost, jobs: FakeJobs
) -> None:
    jobs.plays_all()
    report = await host.play(*THREE, matches=4)

    assert set(host.book.counted().values()) == {4}
    assert report.played == 12
    assert {result.record.worker for _, result in host.book.matches} == {WORKER}
    assert {row.id for row in host.book.rows} == {f"{WORKER}-{n}" for n in range(1, 24, 2)}
    assert not report.verdicts


async def test_what_no_worker_can_play_is_played_here_meanwhile(
    host: FakeHost, house: FakeArena, jobs: FakeJobs
) -> None:
    """cem stays here, and dora has connected by herself."""
    jobs.portable.remove("cem")
    host.comes("dora", silent)
    competition, _ = await host.begin(*PAIR, "cem", "dora", matches=6)

    assert {job.players for job in jobs.open_jobs} == {PAIR, PAIR[::-1]}
    assert len(jobs.open_jobs) == 5
    assert sorted(sorted(table.names) for table in house.referee.tables) in (
        [["ann", "cem"], ["ben", "dora"]],
        [["ann", "dora"], ["ben", "cem"]],
        [["ann", "ben"], ["cem", "dora"]],
    )
    assert max(len(player.chairs) for player in host.players.values()) == 1
    assert competition.playing == 7


async def test_submissions_have_the_room_of_the_workers_too(host: FakeHost) -> None:
    jobs = FakeJobs(20, ("cem",))
    host.takes_submissions(2, jobs=jobs, ann=11, ben=21)
    launched(host, "cem")
    plan: dict[str, Any] = {"take": Take.EITHER, "versions": {"ann": 11, "ben": 21}}
    competition, _ = await host.begin(*THREE, matches=40, **plan)

    assert competition.arbiter.jobs_at_once == 15  # (20 + 2) of two seats, for three bots
    matches = Counter(name for job in jobs.open_jobs for name in job.players)
    assert min(matches.values()) >= 14
    assert {
        job.submissions[job.players.index("cem")] for job in jobs.open_jobs if "cem" in job.players
    } == {None}


async def test_when_workers_go_what_is_left_is_played_here(
    host: FakeHost, house: FakeArena, jobs: FakeJobs
) -> None:
    for name in PAIR:
        host.plays(name, first_legal)
    competition, task = await host.begin(*PAIR, matches=8)
    jobs.at_once = 0
    host.room_changed()
    for job in ids(jobs):
        jobs.begins(job)
        jobs.ends(job)
    report = await in_time(task)

    assert report.played == 8
    workers = Counter(result.record.worker for _, result in host.book.matches)
    assert workers[WORKER] == 5
    assert competition.is_over


async def test_a_bot_that_meets_itself_needs_its_tables_here_all_the_same(
    host: FakeHost, jobs: FakeJobs
) -> None:
    """Results are what they are without workers."""
    jobs.plays_all()
    report = await host.play(*PAIR, with_itself=True)

    assert {players for players, _ in host.book.matches} == {PAIR}
    assert report.played == 1


# --- what is lost (J5) ---


async def test_J5_a_match_that_is_lost_is_played_again_and_counts_once(
    host: FakeHost, jobs: FakeJobs
) -> None:
    competition, task = await host.begin(*PAIR)
    [job] = ids(jobs)
    jobs.begins(job)
    [table] = competition.tables
    jobs.says(job, 7)
    assert competition.arbiter.decisions == [7]
    jobs.loses(job)
    assert competition.arbiter.decisions == [0]
    assert table.id == job
    jobs.begins(job)
    jobs.ends(job)
    report = await in_time(task)

    assert report.played == 1
    assert [row.id for row in host.book.rows] == [f"{WORKER}-2"]


async def test_J5_the_result_of_a_lost_attempt_counts_if_it_is_the_first(
    host: FakeHost, jobs: FakeJobs
) -> None:
    competition, task = await host.begin(*PAIR)
    [job] = ids(jobs)
    first = jobs.begins(job)
    jobs.loses(job)
    jobs.begins(job)
    jobs.matches[job] = first
    jobs.ends(job)
    await in_time(task)

    assert [row.id for row in host.book.rows] == [first]
    assert competition.played == 1


@pytest.mark.parametrize("why", ["", "the worker has no python9"], ids=["lost", "not played"])
async def test_J5_after_three_losses_it_waits_for_the_instructor_who_has_it_played_again(
    host: FakeHost, jobs: FakeJobs, why: str
) -> None:
    competition, task = await host.begin(*PAIR, is_attended=True)
    for _ in range(3):
        [job] = ids(jobs)
        jobs.begins(job)
        if why:
            jobs.void(job, why)
        else:
            jobs.loses(job)
        await a_while()

    assert competition.is_stuck
    assert competition.progress.waits_for == PAIR
    assert "void 3 times" in host.lines[-1]
    assert not jobs.open_jobs
    assert len(host.book.matches) == (3 if why else 0)

    competition.resume(act("resume"))
    [again] = ids(jobs)
    assert again != job
    jobs.begins(again)
    jobs.ends(again)

    assert (await in_time(task)).played == 1


# --- the instructor ---


async def test_in_a_pause_what_has_begun_goes_on_and_the_rest_is_withdrawn(
    host: FakeHost, jobs: FakeJobs
) -> None:
    competition, task = await host.begin(*PAIR, matches=8)
    first, second = ids(jobs)[:2]
    jobs.begins(first)
    jobs.begins(second)
    competition.pause(act("pause"))

    assert ids(jobs) == [first, second]
    assert not jobs.cancelled

    jobs.ends(first)
    jobs.loses(second)
    await a_while()

    assert not jobs.open_jobs, "what is lost is not played again in a pause"
    assert competition.played == 1

    jobs.plays_all()
    competition.resume(act("resume"))
    assert (await in_time(task)).played == 8


async def test_a_stop_reaches_the_workers(host: FakeHost, jobs: FakeJobs) -> None:
    competition, task = await host.begin(*PAIR, matches=8)
    job = ids(jobs)[0]
    jobs.begins(job)
    competition.stop(act("stop"))
    report = await in_time(task)

    assert report.state is CompetitionState.STOPPED
    assert jobs.cancelled == {job: "its competition was stopped"}
    assert not jobs.open_jobs, "what comes later counts for nobody"
    assert not jobs.abandoned


async def test_a_stop_ends_the_match_of_a_bot_that_was_just_removed(
    host: FakeHost, jobs: FakeJobs
) -> None:
    competition, task = await host.begin(*PAIR)
    [job] = ids(jobs)
    jobs.begins(job)
    competition.remove("ann", act("remove", bot="ann"))
    competition.stop(act("stop"))
    await in_time(task)

    assert jobs.offended
    assert not jobs.open_jobs


async def test_a_match_that_the_instructor_voids_is_played_again_once_the_worker_has_ended_it(
    host: FakeHost, jobs: FakeJobs
) -> None:
    competition, task = await host.begin(*PAIR)
    [job] = ids(jobs)
    match = jobs.begins(job)
    competition.void(match, act("void", match=match))
    assert jobs.cancelled == {job: "void by Eva"}
    assert competition.table(match) is not None
    jobs.void(job)
    await a_while()
    [again] = ids(jobs)
    jobs.begins(again)
    jobs.ends(again)

    assert (await in_time(task)).played == 1
    assert [result.termination.kind for _, result in host.book.matches] == [
        Ending.VOID,
        Ending.COMPLETED,
    ]


async def test_a_match_of_a_bot_that_is_removed_ends_by_that_and_is_not_cancelled_too(
    host: FakeHost, jobs: FakeJobs
) -> None:
    competition, task = await host.begin(*THREE)
    job = next(job.id for job in jobs.open_jobs if set(job.players) == {"ann", "cem"})
    jobs.begins(job)
    competition.remove("cem", act("remove", bot="cem"))

    seat, finding = jobs.offended[job]
    assert (jobs.put_here[job].players[seat], finding.kind) == ("cem", Ending.REMOVED)
    assert not jobs.cancelled
    assert {job.players for job in jobs.open_jobs if job.id in jobs.waiting} == {PAIR}

    jobs.ends(job, seat, Ending.REMOVED)
    jobs.plays_all()
    report = await in_time(task)

    assert report.played == 3  # one of them by its removal, and one that had not begun
    assert competition.ledger.book.out["cem"].kind is Ending.REMOVED


async def test_one_match_of_a_bot_that_is_removed_says_so_and_the_others_are_void(
    host: FakeHost, jobs: FakeJobs
) -> None:
    competition, _ = await host.begin(*THREE, matches=2)
    begun = [job.id for job in jobs.open_jobs if "cem" in job.players]
    for job in begun:
        jobs.begins(job)
    competition.remove("cem", act("remove", bot="cem"))

    assert len(begun) > 1
    assert len(jobs.offended) == 1
    assert set(jobs.cancelled) == set(begun) - set(jobs.offended)
    assert set(jobs.cancelled.values()) == {"cem was removed"}


async def test_what_is_lost_of_a_removed_bot_is_not_played_again(
    host: FakeHost, jobs: FakeJobs
) -> None:
    competition, _ = await host.begin(*THREE)
    job = next(job.id for job in jobs.open_jobs if set(job.players) == {"ann", "cem"})
    jobs.begins(job)
    competition.remove("cem", act("remove", bot="cem"))
    jobs.loses(job)
    await a_while()

    assert {job.players for job in jobs.open_jobs} == {PAIR}


# --- offences ---


async def test_J3_who_offends_elsewhere_is_out_here(host: FakeHost, jobs: FakeJobs) -> None:
    competition, task = await host.begin(*THREE, matches=4)
    mine = [job for job in jobs.open_jobs if "ann" in job.players]
    for job in mine:
        jobs.begins(job.id)
    jobs.ends(mine[0].id, mine[0].players.index("ann"))

    assert competition.is_in("ann") is False
    assert set(jobs.cancelled) == {job.id for job in mine[1:]}
    assert {name for job in jobs.open_jobs if job.id in jobs.waiting for name in job.players} == {
        "ben",
        "cem",
    }

    for job in mine[1:]:
        jobs.void(job.id)
    jobs.plays_all()
    report = await in_time(task)
    assert [verdict.bot for verdict in report.verdicts] == ["ann"]


async def test_J3_who_dies_here_while_workers_play_it_is_out_as_ever(
    host: FakeHost, jobs: FakeJobs
) -> None:
    competition, task = await host.begin(*THREE, matches=4)
    for job in ids(jobs):
        jobs.begins(job)
    host.offends("ann", CRASH)
    await a_while()

    assert not competition.is_in("ann")
    mine = {job.id for job in jobs.open_jobs if "ann" in job.players}
    assert set(jobs.cancelled) == mine != set()
    for job in mine:
        jobs.void(job)
    for job in ids(jobs):
        jobs.ends(job)
    jobs.plays_all()
    await in_time(task)


async def test_the_offence_of_a_house_bot_elsewhere_excuses_none_of_its_process_here(
    host: FakeHost,
) -> None:
    jobs = host.has_worker(4, PAIR)
    launched(host, *PAIR)

    async def call_house(game: str, name: str) -> None:
        launched(host, name)
        jobs.portable.add(name)

    competition, _ = await host.begin(*PAIR, game="high_low", call_house=call_house)
    [final] = jobs.open_jobs
    house = competition.plan.house
    seat = next(seat for seat, name in enumerate(final.players) if name in house)
    jobs.begins(final.id)
    jobs.ends(final.id, seat)
    await a_while()

    assert not competition.arbiter.is_excused(final.players[seat])
    assert not competition.verdicts
    assert host.book.matches[-1][1].termination.kind is Ending.VOID


# --- an arena that is stopped, and the next one ---


async def restarted(first: FakeHost, jobs: FakeJobs, house: FakeArena) -> tuple[FakeHost, FakeJobs]:
    """Another arena on the same database, for which a worker has gone on."""
    await first.end()
    again = FakeHost(house)
    later = again.has_worker(jobs.at_once, jobs.portable)
    later.earlier = [jobs.put_here[job] for job in jobs.abandoned]
    later.matches = {job: jobs.matches[job] for job in jobs.abandoned}
    return again, later


async def test_what_has_begun_goes_on_without_the_arena_and_counts_for_the_next(
    host: FakeHost, house: FakeArena, jobs: FakeJobs
) -> None:
    _, task = await host.begin(*PAIR, matches=6)
    begun = ids(jobs)[:2]
    for job in begun:
        jobs.begins(job)
    task.cancel()
    await a_while()

    assert jobs.abandoned == begun
    assert not jobs.open_jobs
    assert not host.book.matches

    again, later = await restarted(host, jobs, house)
    competition, task = await again.begin(*PAIR, matches=6)
    assert ids(later) == begun, "before its bots are here, and no others"

    launched(again, *PAIR)
    await a_while()
    pairings = Counter(job.pairing for job in later.open_jobs)
    assert set(pairings.values()) == {1}

    for job in begun:
        later.ends(job)
    later.plays_all()
    report = await in_time(task)
    assert report.played == 6
    assert len({row.pairing for row in again.book.rows}) == 6
    assert {jobs.matches[job] for job in begun} <= {row.id for row in again.book.rows}
    assert competition.is_over
    await again.end()


async def test_what_an_earlier_arena_began_goes_on_in_a_pause_too(
    host: FakeHost, house: FakeArena, jobs: FakeJobs
) -> None:
    await host.begin(*PAIR, matches=6)
    first, second = ids(jobs)[:2]
    jobs.begins(first)
    jobs.begins(second)
    again, later = await restarted(host, jobs, house)
    competition, _ = await again.begin(*PAIR, matches=6, is_paused=True)

    assert ids(later) == [first, second]

    later.ends(first)
    later.loses(second)
    await a_while()
    assert not later.open_jobs
    assert competition.played == 1
    await again.end()


async def test_what_cannot_count_any_more_is_ended_by_the_next_arena(
    host: FakeHost, house: FakeArena, jobs: FakeJobs
) -> None:
    competition, task = await host.begin(*THREE, matches=2)
    for job in ids(jobs):
        jobs.begins(job)
    again, later = await restarted(host, jobs, house)
    remove = act("remove", bot="cem")
    competition, task = await again.begin(*THREE, matches=2, acts=[remove])

    assert {job for job, why in later.cancelled.items()} == {
        job.id for job in later.earlier if "cem" in job.players
    }
    for job in ids(later):
        if job in later.cancelled:
            later.void(job)
        else:
            later.ends(job)
    launched(again, *PAIR)
    later.plays_all()
    report = await in_time(task)
    assert report.played == 2
    assert competition.is_over
    await again.end()


# --- ladders ---

LADDER: dict[str, Any] = {"form": Form.LADDER}


async def test_K4_launched_bots_climb_in_as_many_matches_as_workers_take(
    host: FakeHost, house: FakeArena, jobs: FakeJobs
) -> None:
    competition, task = await host.begin(*THREE, **LADDER)
    each = competition.arbiter.jobs_at_once
    matches = Counter(name for job in jobs.open_jobs for name in job.players)

    assert each == 4
    assert max(matches.values()) == each
    assert not house.referee.tables

    jobs.at_once = 8
    host.room_changed()
    assert len(jobs.open_jobs) > matches.total() // 2
    competition.close()
    await in_time(task)


async def test_K4_who_has_connected_meets_a_launched_bot_at_its_table_and_others_too(
    host: FakeHost, house: FakeArena, jobs: FakeJobs
) -> None:
    for name in ("dora", "eve", "fritz"):
        host.comes(name, silent)
    competition, _ = await host.begin(*THREE, **LADDER)
    await a_while()

    assert max(len(player.chairs) for player in host.players.values()) == 1
    seated = {name for table in house.referee.tables for name in table.names}
    assert seated >= {"dora", "eve", "fritz"}
    assert {name for job in jobs.open_jobs for name in job.players} <= set(THREE)
    assert kinds(competition)[LiveMatch] == len(house.referee.tables)
    assert kinds(competition)[JobMatch] == len(jobs.open_jobs) > 0


async def test_K4_the_next_arena_takes_up_what_is_played_and_gives_no_number_twice(
    host: FakeHost, house: FakeArena, jobs: FakeJobs
) -> None:
    _, task = await host.begin(*PAIR, **LADDER)
    for job in ids(jobs):
        jobs.begins(job)
    jobs.ends(ids(jobs)[0])
    await a_while()
    begun = list(jobs.matches)
    again, later = await restarted(host, jobs, house)
    again.book.rows = host.book.rows
    again.book.matches = host.book.matches
    competition, task = await again.begin(*PAIR, earlier=host.book.results(), **LADDER)
    assert ids(later) == begun
    launched(again, *PAIR)
    await a_while()
    for job in begun:
        later.ends(job)
    later.plays_all()
    await until(lambda: len(again.book.matches) > 12)
    competition.close()
    await in_time(task)

    numbers = [row.pairing for row in again.book.rows]
    assert len(numbers) == len(set(numbers))
    assert {later.put_here[job].pairing for job in begun} <= set(numbers)
    await again.end()


async def test_another_version_plays_what_has_not_begun_or_was_lost(host: FakeHost) -> None:
    jobs = FakeJobs(2)
    service = host.takes_submissions(1, jobs=jobs, ann=11, ben=21)
    plan: dict[str, Any] = {"take": Take.SUBMITTED, **LADDER}
    competition, task = await host.begin(**plan)
    begun = ids(jobs)[0]
    jobs.begins(begun)
    service.plays("ann", 12)
    await a_while()

    assert {number for job in jobs.open_jobs if job.id != begun for number in job.submissions} == {
        12,
        21,
    }

    jobs.loses(begun)
    await a_while()
    assert begun not in ids(jobs)
    competition.close()
    await in_time(task)


# --- machines of one speed ---


async def test_that_all_matches_wait_is_told_once_in_each_wait(
    host: FakeHost, jobs: FakeJobs
) -> None:
    competition, _ = await host.begin(*PAIR, is_alike=True)
    [table], [job], notice = competition.tables, ids(jobs), WaitNotice()

    def told(after_s: float, times: int = 1) -> str:
        return notice.look([table] * times, table.opened_at + after_s)

    assert told(9.0) == ""
    assert told(11.0).startswith("1 match waits for workers of the speed")
    assert told(20.0) == ""

    jobs.begins(job)
    assert told(30.0) == ""
    jobs.loses(job)
    assert "2 matches wait" in (text := told(40.0, times=2))
    assert "ann against ben" in text or "ben against ann" in text


async def test_jobs_say_whether_their_machines_are_to_be_alike(
    host: FakeHost, jobs: FakeJobs
) -> None:
    await host.begin(*PAIR, is_alike=True)

    assert [job.is_alike for job in jobs.open_jobs] == [True]
    assert [job.pairing for job in jobs.open_jobs] == [1]
