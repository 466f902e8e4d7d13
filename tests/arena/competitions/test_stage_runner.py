"""What an instructor does to a stage that is played, and which bots it waits for meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import pytest

from arena.competitions.competition import Competition
from arena.competitions.stage_runner import RunningStage
from arena.formats.scorebook import ScheduleRun
from arena.formats.spec import Form, Settling
from arena.formats.standings import Row
from arena.games.match import Result
from arena.games.settle import Goal
from arena.games.verdict import Finding
from arena.storage.models import CompetitionReport
from arena.storage.store import CompetitionState
from bots.strategy import choose
from protocol.errors import StoreFailed, UsageError
from protocol.messages import Ask, Ending, Limits, Mechanism
from tests.support.fake_bots import FakeArena
from tests.support.fake_host import (
    SOON,
    FakeHost,
    Plays,
    a_while,
    act,
    at_random,
    first_legal,
    illegal,
    in_time,
    silent,
    until,
)

pytestmark = pytest.mark.virtual_time


THREE = ("ann", "ben", "cem")
NOBODY: tuple[str, ...] = ()
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


async def without_cem(
    host: FakeHost, tables: int = 1, **plan: Any
) -> tuple[Competition, asyncio.Task[CompetitionReport]]:
    """Three have begun: ann and ben have played, and cem answers nothing."""
    host.come("ann", "ben", tables=2)
    host.comes("cem", silent, tables=tables)
    return await host.begin(*THREE, **plan)


async def answers(host: FakeHost, *names: str) -> None:
    """Bots that were silent play on."""
    for name in names:
        host.plays(name, first_legal)
    await a_while(400)


# --- pause, resume ---


@pytest.mark.virtual_time(limit_s=200)
async def test_after_a_pause_whoever_is_away_has_all_its_time_again(host: FakeHost) -> None:
    host.comes("ann")
    competition, task = await host.begin("ann", "ben", wait_s=60)
    await asyncio.sleep(50)
    assert competition.progress.waits_for == ("ben",)
    competition.pause(act("pause"))
    await asyncio.sleep(61)
    host.changed()

    assert competition.progress.waits_for == NOBODY
    assert host.book.matches == []

    competition.resume(act("resume"))
    await asyncio.sleep(59)

    assert competition.progress.waits_for == ("ben",)

    report = await task

    assert [verdict.kind for verdict in report.verdicts] == [Ending.ABSENT]


# --- stop ---


async def test_when_it_is_stopped_running_matches_are_void_and_standings_stay(
    house: FakeArena, host: FakeHost
) -> None:
    competition, task = await without_cem(host, tables=2)
    competition.stop(act("stop"))
    report = await in_time(task)

    assert host.book.kinds() == {Ending.COMPLETED: 1, Ending.VOID: 2}
    assert house.referee.tables == ()
    assert report.state is competition.state is CompetitionState.STOPPED
    assert report.played == 1
    assert {row.name: row.played for row in report.standings} == {"ann": 1, "ben": 1, "cem": 0}
    [(_, _, ranking, state)] = host.book.finished
    assert (ranking, state) == ((), CompetitionState.STOPPED)
    assert [(noted.what, noted.who) for noted in host.book.acts] == [("stop", "Eva")]
    assert host.book.void_texts() == {"its competition was stopped"}


@pytest.mark.parametrize("form", [Form.ROUND_ROBIN, Form.LADDER])
async def test_bots_are_told_that_a_stopped_match_does_not_count(
    house: FakeArena, host: FakeHost, form: Form
) -> None:
    host.come("ann", "ben", plays=silent)
    _, task = await host.begin("ann", "ben", form=form)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await in_time(task)

    assert house.referee.tables == ()
    [text] = host.book.void_texts()
    assert text == "the arena was stopped, and this match does not count"


@pytest.mark.parametrize("is_paused", [False, True])
@pytest.mark.parametrize("form", [Form.ROUND_ROBIN, Form.LADDER])
async def test_a_stop_before_anything_is_played(
    host: FakeHost, form: Form, is_paused: bool
) -> None:
    host.come(*THREE)
    competition = host.compete(*THREE, form=form, is_paused=is_paused)
    competition.stop(act("stop"))
    report = await in_time(competition.run())

    assert report.state is CompetitionState.STOPPED
    assert host.book.matches == []


async def test_a_stop_while_the_final_is_being_made(host: FakeHost) -> None:
    host.come("ann", "ben", "cem")
    called = asyncio.Event()
    goes_on = asyncio.Event()

    async def call_house(game: str, name: str) -> None:
        called.set()
        await goes_on.wait()
        host.comes(name)

    competition = host.compete(*THREE, game="high_low", call_house=call_house)
    task = asyncio.create_task(competition.run())
    await in_time(called.wait())
    competition.stop(act("stop"))
    goes_on.set()
    report = await in_time(task)

    assert report.state is CompetitionState.STOPPED
    assert report.ranking == ()
    assert host.book.matches == []


# --- void ---


async def test_K2_whose_elimination_was_taken_back_plays_in_the_next_stage(host: FakeHost) -> None:
    """It was out by an offence between matches; an offender at its own table saves it (H13)."""

    host.come(*EIGHT, plays=silent)
    competition, task = await host.begin(*EIGHT, game="high_low", limits=Limits(), is_paused=True)
    host.offends("ann", MEMORY)
    [row] = host.book.results()
    assert row.result.termination.kind is Ending.MEMORY

    host.comes("ann", silent)
    competition.void(row.id, act("void", match=row.id))
    competition.resume(act("resume"))
    rogue = next(name for name in row.players if name != "ann")
    plays = at_random()
    for name in EIGHT:
        host.plays(name, illegal if name == rogue else plays)
    report = await in_time(task)

    assert [verdict.bot for verdict in report.verdicts] == [rogue]
    [place] = [place for place in report.ranking if "ann" in place.names]
    assert not place.offence


async def test_J2_who_is_absent_after_an_elimination_was_taken_back_has_not_offended_again(
    host: FakeHost,
) -> None:
    host.come("ann", "ben", plays=silent)
    competition, task = await host.begin("ann", "ben", limits=Limits(), wait_s=SOON, is_paused=True)
    host.offends("ben", MEMORY)
    [row] = host.book.results()
    competition.void(row.id, act("void", match=row.id))
    competition.resume(act("resume"))
    report = await in_time(task)

    [verdict] = report.verdicts
    assert (verdict.bot, verdict.kind) == ("ben", Ending.ABSENT)


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


async def test_K2_the_final_of_a_finished_elimination_is_played_again(host: FakeHost) -> None:
    host.come(*EIGHT, plays=at_random())
    await host.play(*EIGHT, game="high_low")
    final = host.book.rows[-1]
    earlier = host.book.results()
    competition = host.compete(*EIGHT, game="high_low", earlier=earlier)
    for row in earlier[:-1]:
        if row.pairing <= 2:
            with pytest.raises(UsageError, match="a match of the latest stage"):
                competition.ledger.take_back(row.id, act("void"))
    competition.ledger.take_back(final.id, act("void", match=final.id))
    report = await in_time(competition.run())

    assert report.ranking
    assert len(host.book.results()) == len(earlier)
    assert host.book.results()[-1].players == final.players


# --- remove ---


async def test_a_removal_is_written_down_before_what_it_brings_about(host: FakeHost) -> None:
    host.come("ann", "ben", plays=silent)
    competition, task = await host.begin("ann", "ben")
    noted: list[int] = []
    host.book.on_match = lambda: noted.append(len(host.book.acts))
    competition.remove("ben", act("remove", bot="ben"))
    await in_time(task)

    assert noted == [1]


@pytest.mark.parametrize("kind", [Ending.REMOVED, Ending.MEMORY])
async def test_K2_who_goes_between_two_stages_is_out_in_the_next(
    house: FakeArena, host: FakeHost, kind: Ending
) -> None:
    """It is removed, or offends, while it has nothing to play."""
    host.come(*EIGHT, plays=silent)
    competition, task = await host.begin(*EIGHT, game="high_low", limits=Limits())
    one, other = house.referee.tables
    plays = at_random()
    for chair in one.chairs:
        host.plays(chair.player.name, plays)
    await until(lambda: one.is_over)
    assert one.match is not None
    scores = one.match.scores
    resting = one.names[scores.index(max(scores))]
    if kind is Ending.REMOVED:
        competition.remove(resting, act("remove", bot=resting))
        with pytest.raises(UsageError, match="expected a bot that is in c"):
            competition.remove(resting, act("remove", bot=resting))  # once more
        assert not competition.is_in(resting)
    else:
        host.offends(resting, MEMORY)

    assert host.book.verdicts == [], "it has played all that there was for it"

    for chair in other.chairs:
        host.plays(chair.player.name, plays)
    report = await in_time(task)

    [verdict] = report.verdicts
    assert (verdict.bot, verdict.kind) == (resting, kind)
    assert len(host.book.acts) == 1
    [place] = [place for place in report.ranking if resting in place.names]
    assert (place.rank, place.names, place.offence) == (4, (resting,), True)


async def test_K2_a_void_match_of_a_removed_bot_is_not_played_by_it(
    house: FakeArena, host: FakeHost
) -> None:
    host.come(*EIGHT, plays=silent)
    competition, task = await host.begin(*EIGHT, game="high_low", limits=Limits())
    one, other = house.referee.tables
    gone = one.chairs[0].player.name
    competition.remove(gone, act("remove", bot=gone))
    [row] = host.book.rows
    host.heard.clear()
    competition.void(row.id, act("void", match=row.id))
    await a_while()

    assert gone not in host.heard
    [again] = host.book.results()
    assert again.players == row.players
    assert again.result.termination.kind is Ending.REMOVED

    await answers(host, *EIGHT)
    report = await in_time(task)
    assert [verdict.bot for verdict in report.verdicts] == [gone]
    assert other.id in [row.id for row in host.book.results()]


# --- what cannot be written down ---


@pytest.mark.parametrize("what", ["pause", "resume", "void", "void running", "remove"])
async def test_an_action_that_cannot_be_written_down_changes_nothing(
    house: FakeArena, host: FakeHost, what: str
) -> None:
    competition, _ = await without_cem(host, tables=2, matches=1, is_paused=what == "resume")
    if what == "resume":
        running, counted = "", ""
    else:
        running = house.referee.tables[0].id
        counted = host.book.rows[0].id
    host.book.fails_to_act = True

    def state() -> object:
        return (
            *(competition.arbiter.is_paused, competition.settled, competition.ledger.book.rows),
            *(competition.ledger.verdicts, house.referee.tables, len(host.book.matches)),
        )

    before = state()
    actions: dict[str, Callable[[], None]] = {
        "pause": lambda: competition.pause(act("pause")),
        "resume": lambda: competition.resume(act("resume")),
        "void": lambda: competition.void(counted, act("void")),
        "void running": lambda: competition.void(running, act("void")),
        "remove": lambda: competition.remove("ben", act("remove")),
    }
    with pytest.raises(StoreFailed, match="the disk is full"):
        actions[what]()

    assert before == state()
    assert all(competition.is_in(name) for name in THREE)


async def test_a_stop_that_cannot_be_written_down_ends_the_competition(
    house: FakeArena, host: FakeHost
) -> None:
    host.come("ann", "ben", plays=silent)
    competition, task = await host.begin("ann", "ben")
    host.book.fails_to_act = True
    competition.stop(act("stop"))
    with pytest.raises(StoreFailed, match="the disk is full"):
        await in_time(task)

    assert house.referee.tables == ()


# --- who is waited for ---


async def test_A10_a_bot_that_only_its_own_match_waits_for_is_never_absent(
    house: FakeArena, host: FakeHost
) -> None:
    first = FakeHost(house)
    first.come("ann", "ben")
    await first.play("ann", "ben")
    [played] = first.book.results()
    played = msgspec.structs.replace(played, pairing=3)

    host.comes("ben")
    report = await host.play(*("ann", "ben"), with_itself=True, wait_s=SOON, earlier=[played])

    assert report.verdicts == ()
    assert host.book.matches == []


async def test_A10_who_does_not_come_is_absent_from_a_match_with_somebody_else(
    host: FakeHost,
) -> None:
    """Its match with itself waits as well, and a forfeit of that would count for nobody."""

    host.comes("ben")
    report = await host.play("ann", "ben", with_itself=True, wait_s=SOON)

    [verdict] = report.verdicts
    assert (verdict.bot, verdict.kind) == ("ann", Ending.ABSENT)
    [row] = host.book.results()
    assert set(row.players) == {"ann", "ben"}


async def test_A10_a_bot_that_is_away_at_its_own_match_does_not_lose_what_it_is_playing(
    house: FakeArena, host: FakeHost
) -> None:
    """It has lost its connection, and its time to come back is not over."""

    bot = host.comes("ann", silent, tables=2)
    host.come("ben", "cem", plays=silent)
    _, other_task = await host.begin("ann", "cem", competition="other")
    competition, task = await host.begin("ann", "ben", with_itself=True, wait_s=SOON)
    tables = house.referee.tables
    assert len(tables) == 2, "so ann has no two chairs for itself"
    bot.goes()
    host.changed()
    await until(lambda: competition.settled == 2)  # both matches against itself are off

    assert house.referee.tables == tables

    bot.comes_back()
    await answers(host, "ann", "ben", "cem")
    report = await in_time(task)

    await in_time(other_task)

    assert report.verdicts == ()
    assert host.book.kinds() == {Ending.COMPLETED: 2}


async def test_who_is_waited_for_is_not_any_more_when_its_opponent_is_out(host: FakeHost) -> None:
    host.comes("ann", silent)
    host.comes("ben", silent)
    competition, task = await host.begin("ann", "ben", "late", wait_s=60.0)
    assert competition.progress.waits_for == ("late",)
    competition.remove("ann", act("remove", bot="ann"))
    competition.remove("ben", act("remove", bot="ben"))

    assert competition.progress.waits_for == NOBODY

    report = await in_time(task)
    assert {verdict.bot for verdict in report.verdicts} <= {"ann", "ben"}


# --- several at once ---


async def test_two_competitions_share_their_bots_and_their_tables(host: FakeHost) -> None:
    host.come(*THREE, plays=silent)
    one, first = await host.begin(*THREE, competition="one", limits=Limits())
    _, second = await host.begin(*THREE, competition="two", matches=2)
    one.pause(act("pause"))
    one.remove("cem", act("remove", bot="cem"))  # it plays on in the other
    await answers(host, *THREE)
    report = await in_time(second)

    assert (report.played, report.verdicts) == (6, ())

    one.resume(act("resume"))
    report = await in_time(first)

    assert not one.is_in("cem")
    assert host.competitions[1].is_in("cem")
    assert set(host.most_chairs.values()) == {1}
    assert len(host.book.results("two")) == 6


# --- how many matches at once, and which ---

CLASS = tuple(f"bot {number}" for number in range(12))


async def test_a_competition_opens_as_few_matches_at_once_as_keep_its_bots_busy(
    host: FakeHost,
) -> None:
    host.come(*CLASS, plays=silent, tables=64)
    competition, task = await host.begin(*CLASS, matches=4)
    playing = Counter(
        chair.player.name for table in competition.arbiter.tables for chair in table.chairs
    )

    assert len(competition.arbiter.tables) < 4 * len(CLASS) / 2 + 1
    assert set(playing.values()) == {4}

    await answers(host, *CLASS)
    report = await in_time(task)

    assert report.played == 4 * 66


async def test_A10_bots_with_two_tables_meet_one_another_before_they_meet_themselves(
    host: FakeHost,
) -> None:
    host.come("ann", "ben", tables=2)
    report = await host.play("ann", "ben", matches=6, with_itself=True)
    met = [len(set(players)) for players, _ in host.book.matches]

    assert met == [2] * 6 + [1] * 12
    assert report.played == 18


async def test_A10_who_waits_for_nobody_but_bots_that_are_away_meets_itself(host: FakeHost) -> None:
    host.come("ann", "ben", tables=2)
    competition, task = await host.begin("ann", "ben", "cem", with_itself=True, matches=2)
    await until(lambda: competition.ledger.played == 6)
    assert sum(len(set(players)) == 1 for players, _ in host.book.matches) == 4

    host.comes("cem", tables=2)
    await in_time(task)


def some(answers: int) -> Plays:
    """Answers so many questions at all tables together, and no more."""
    left = iter(range(answers))
    return lambda ask: None if next(left, None) is None else first_legal(ask)


LONG: dict[str, Any] = {"settings": {"hands": 1000}, "matches": 4}


@pytest.mark.parametrize("looks", [1_000, 1])
async def test_more_are_opened_as_the_first_matches_go_on(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    """Also if only some of thousands of bots are looked at."""
    monkeypatch.setattr("arena.competitions.stage_runner._GROW_S", 0.001)
    monkeypatch.setattr("arena.competitions.stage_runner._TRIES", looks)

    host.come(*CLASS, plays=silent, tables=64)
    competition, _ = await host.begin(*CLASS, **LONG)
    before = len(competition.arbiter.tables)

    assert before == 4 * len(CLASS) / 2

    for name in CLASS:
        host.plays(name, some(500))
    await a_while(1_000)
    after = len(competition.arbiter.tables)
    playing = Counter(
        chair.player.name for table in competition.arbiter.tables for chair in table.chairs
    )

    assert competition.settled == 0
    assert all(playing[name] > 4 for name in CLASS)
    assert before < after < 64 * len(CLASS) / 2

    competition.pause(act("pause"))
    for name in CLASS:
        host.plays(name, some(100))
    await a_while(400)

    assert len(competition.arbiter.tables) == after


async def test_when_a_match_has_ended_all_are_opened_however_long_one_was_said_to_take(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.referee.bot_session.LiveMatch.progress", 0.0)

    host.come(*CLASS, tables=64)
    _, task = await host.begin(*CLASS, matches=4)
    await in_time(task)

    assert max(host.most_chairs.values()) > 4


async def test_after_a_pause_few_are_opened_again(host: FakeHost) -> None:
    host.come(*CLASS, plays=silent, tables=64)
    competition, _ = await host.begin(*CLASS, matches=40)
    for name in CLASS:
        host.plays(name, some(60))
    await a_while(400)

    assert len(competition.arbiter.tables) > 4 * len(CLASS)

    competition.pause(act("pause"))
    await answers(host, *CLASS)

    assert competition.arbiter.tables == ()

    for name in CLASS:
        host.plays(name, silent)
    competition.resume(act("resume"))
    await a_while()

    assert 0 < len(competition.arbiter.tables) <= 4 * len(CLASS) / 2


async def test_the_records_of_matches_that_are_over_are_in_the_database_alone(
    host: FakeHost,
) -> None:
    host.come("ann", "ben")
    competition, _ = await host.begin("ann", "ben", "cem", matches=9, limits=Limits())
    await until(lambda: competition.ledger.played >= 9)
    stage = competition._stage
    assert isinstance(stage, RunningStage)

    assert {type(outcome.result) for outcome in stage._outcomes.values()} == {Result}


async def test_whoever_has_had_the_fewest_matches_is_next(host: FakeHost) -> None:
    host.come("ann", "ben")
    task = asyncio.create_task(host.play("ann", "ben", "cem", "dora", matches=9, limits=Limits()))
    await until(lambda: len(host.book.matches) == 8 and host.house.referee.tables)
    host.comes("cem")
    host.comes("dora")
    await until(lambda: len(host.book.matches) >= 18)
    task.cancel()
    latest = [set(players) for players, _ in host.book.matches[9:]]

    assert latest.count({"cem", "dora"}) > latest.count({"ann", "cem"}) + 2


async def test_progress_says_how_far_it_is_and_about_how_long_it_takes(host: FakeHost) -> None:
    competition, task = await without_cem(host, run="cup", matches=2)
    progress = competition.progress

    assert (progress.competition, progress.run) == ("c", "cup")
    assert (progress.game, progress.form) == ("ace_king_queen", "round_robin")
    assert (progress.settled, progress.scheduled) == (2, 6)
    assert progress.state == "running"
    assert progress.left_s is not None
    assert progress.left_s >= 0

    competition.stop(act("stop"))
    await in_time(task)
    assert competition.progress.state == "stopped"


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
