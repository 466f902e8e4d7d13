"""Competitions from their beginning to their end: who plays, who is out, and who is absent."""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from arena.formats.spec import WAIT_S, Form
from arena.games.catalogue import GAMES
from arena.games.verdict import Finding
from arena.storage.models import CompetitionReport
from bots.strategy import choose
from protocol.errors import ArenaError, StoreFailed
from protocol.messages import Ask, Ending, Limits, Mechanism
from tests.support.fake_bots import FakeArena, FakeBot
from tests.support.fake_host import (
    SOON,
    FakeHost,
    a_while,
    act,
    at_random,
    failing,
    first_legal,
    illegal,
    in_time,
    silent,
    until,
)

pytestmark = pytest.mark.virtual_time


# --- forms ---


async def test_A10_every_bot_meets_itself_if_it_has_two_tables(host: FakeHost) -> None:
    host.comes("ann", tables=2)
    host.comes("ben", tables=1)
    await host.play("ann", "ben", with_itself=True, matches=5)

    assert host.book.counted() == {("ann", "ann"): 5, ("ann", "ben"): 5}


async def test_bots_that_have_met_meet_others_before_they_meet_again(host: FakeHost) -> None:
    host.come("ann", "ben", "cem", tables=1)
    await host.play("ann", "ben", "cem", matches=4)

    met = [frozenset(players) for players, _ in host.book.matches]
    assert all(one != other for one, other in pairwise(met))


async def test_no_bot_gets_more_matches_at_once_than_it_has_tables(host: FakeHost) -> None:
    names = tuple(f"bot {number}" for number in range(5))
    for number, name in enumerate(names, start=1):
        host.comes(name, tables=number)
    await host.play(*names, matches=4)

    assert sum(host.book.counted().values()) == 40
    for number, name in enumerate(names, start=1):
        assert 1 <= host.most_chairs[name] <= number


async def answers(
    house: FakeArena, bot: FakeBot, held: list[Ask], task: asyncio.Task[CompetitionReport]
) -> CompetitionReport:
    """A slow bot answers what it has held back, and everything else, until all is over."""
    while not task.done():
        for ask in held:
            house.answer(bot, ask)
        held.clear()
        await a_while(1)
    return task.result()


async def test_a_slow_bot_delays_nothing_but_its_own_matches(
    house: FakeArena, host: FakeHost
) -> None:
    held: list[Ask] = []
    names = ("slow", "ann", "ben", "cem")
    slow = host.comes("slow", lambda ask: held.append(ask))
    host.come(*names[1:], tables=2)
    task = asyncio.create_task(host.play(*names, matches=2))
    await until(lambda: sum(host.book.counted().values()) == 6)

    assert not any("slow" in players for players in host.book.counted())

    await answers(house, slow, held, task)

    assert sum(host.book.counted().values()) == 12


async def test_its_progress_can_be_watched(host: FakeHost) -> None:
    host.comes("ann")
    competition = host.compete("ann", game="blackjack", matches=7)
    seen = {competition.settled}
    task = asyncio.create_task(competition.run())
    while not task.done():
        await a_while(1)
        seen.add(competition.settled)

    assert seen == set(range(8))
    assert competition.scheduled == 7


# --- offenders ---


async def test_J3_an_offender_is_out_and_nobody_else_is_harmed(
    house: FakeArena, host: FakeHost
) -> None:
    names = ("ann", "ben", "cem", "rogue")
    for name in names[:3]:
        host.comes(name, tables=4)
    host.comes("rogue", illegal, tables=8)
    report = await host.play(*names, matches=4)

    pairs = {("ann", "ben"): 4, ("ann", "cem"): 4, ("ben", "cem"): 4}
    assert host.book.counted() == pairs
    assert [verdict.bot for verdict in report.verdicts] == ["rogue"]
    assert report.standings[-1].name == "rogue"
    assert report.standings[-1].eliminated.kind is Ending.ILLEGAL
    assert all(row.played == 8 for row in report.standings[:-1])
    assert house.referee.tables == ()


async def test_J3_what_an_offender_was_still_playing_is_void(host: FakeHost) -> None:
    host.comes("ann", lambda ask: None, tables=8)
    host.comes("rogue", illegal, tables=8)
    await host.play("ann", "rogue", matches=6)

    kinds = Counter(result.termination.kind for _, result in host.book.matches)
    assert kinds == {Ending.ILLEGAL: 1, Ending.VOID: 3}


async def test_a_competition_of_offenders_ends(host: FakeHost) -> None:
    names = tuple(f"rogue {number}" for number in range(4))
    for name in names:
        host.comes(name, illegal, tables=3)
    report = await host.play(*names, matches=3)

    out = [verdict.bot for verdict in report.verdicts]
    assert len(out) == len(set(out)) == 3  # nobody was left to play the fourth
    assert all(row.rank is None for row in report.standings)  # K5: it met nobody


# --- who does not come ---


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (lambda host: None, ""),
        (
            lambda host: host.comes("nobody").player.connection_lost(0.0, 0.0),
            r": its connection was lost at \d\d:\d\d:\d\d UTC",
        ),
        (
            lambda host: setattr(host.comes("nobody").player, "event", "m-1.0"),
            ": it was too late and has not been heard since",
        ),
    ],
    ids=["never here", "lost", "late and silent"],
)
async def test_J2_J10_who_does_not_come_is_absent_and_is_told_why(
    host: FakeHost, last: Callable[[FakeHost], object], why: str
) -> None:
    host.come("ann", "ben")
    last(host)
    report = await host.play("ann", "nobody", "ben", wait_s=SOON, matches=3)

    [verdict] = report.verdicts
    assert (verdict.kind, verdict.bot) == (Ending.ABSENT, "nobody")
    assert re.fullmatch(f"did not come within 1 ms{why}", verdict.text)
    assert host.book.counted() == {("ann", "ben"): 3}
    assert host.book.verdicts == [verdict]


async def test_who_goes_between_matches_may_come_back(host: FakeHost) -> None:
    host.comes("ann")
    bot = host.comes("ben")
    bot.goes()
    task = asyncio.create_task(host.play("ann", "ben", matches=3))
    await asyncio.sleep(0)
    bot.comes_back()
    bot.reads()
    host.players.note(bot.player)
    host.changed()
    await task

    assert host.book.counted() == {("ann", "ben"): 3}


async def test_who_has_said_goodbye_is_not_dealt_to(host: FakeHost) -> None:
    host.comes("ann")
    host.comes("ben").player.leaving = True
    report = await host.play("ann", "ben", wait_s=SOON)

    assert [verdict.bot for verdict in report.verdicts] == ["ben"]


# --- who offends between two matches ---


CRASHED = Finding(
    kind=Ending.CRASH,
    text="crashed: exit status 1",
    mechanism=Mechanism.EXIT,
    got=None,
    exit_status=1,
    stderr="Traceback",
)
MEMORY = Finding(
    kind=Ending.MEMORY,
    text="memory 312 MiB > 256 MiB (sampled)",
    mechanism=Mechanism.SAMPLED,
    stderr="it hums",
)
LEFT = Finding(kind=Ending.DISCONNECT, text="left", mechanism=Mechanism.WIRE)


@pytest.mark.parametrize("finding", [CRASHED, MEMORY])
async def test_J3_who_offends_while_it_sits_nowhere_is_out_for_that_at_once(
    house: FakeArena, host: FakeHost, finding: Finding
) -> None:
    held: list[Ask] = []
    ann = host.comes("ann", held.append)
    host.come("ben", "rogue")
    names = ("ann", "ben", "rogue")
    task = asyncio.create_task(host.play(*names, matches=3, limits=Limits()))
    await until(lambda: held and not host.players["rogue"].chairs)
    host.offends("rogue", finding)

    [verdict] = host.book.verdicts
    assert host.told == [verdict], "without waiting for it"
    assert (verdict.bot, verdict.kind) == ("rogue", finding.kind)
    assert (verdict.text, verdict.mechanism) == (finding.text, finding.mechanism)
    assert verdict.exit_status == finding.exit_status
    assert verdict.stderr == finding.stderr
    assert verdict.advice
    assert verdict.asked is None

    report = await answers(house, ann, held, task)

    assert report.verdicts == (verdict,)
    assert host.book.counted()["ann", "ben"] == 3
    assert report.standings[-1].name == "rogue"
    assert report.standings[-1].eliminated.kind is finding.kind


async def test_J3_who_offends_at_a_table_has_one_verdict(host: FakeHost) -> None:
    host.comes("ann", tables=2)
    host.comes("rogue", lambda ask: None, tables=2)
    task = asyncio.create_task(host.play("ann", "rogue", matches=4))
    await until(lambda: "rogue" in host.heard)
    host.offends("rogue", CRASHED)
    report = await task

    [verdict] = report.verdicts
    assert verdict.text == "crashed: exit status 1"
    assert host.told == [], "the conduct has told it"
    assert len(host.book.verdicts) == 1


async def test_who_offends_before_the_competition_begins_is_out_in_it(host: FakeHost) -> None:
    host.come("ann", "ben", "rogue")
    competition = host.compete("ann", "ben", "rogue", limits=Limits())
    host.offends("rogue", CRASHED)
    report = await in_time(competition.run())

    assert [verdict.kind for verdict in report.verdicts] == [Ending.CRASH]
    assert host.book.counted() == {("ann", "ben"): 1}


async def test_an_offence_of_somebody_else_is_nothing_here(host: FakeHost) -> None:
    host.come("ann", "ben", "guest")
    host.compete("ann", "ben")
    host.offends("guest", CRASHED)
    report = await host.competition.run()

    assert report.verdicts == ()


async def test_J2_the_first_of_two_offences_counts(host: FakeHost) -> None:
    host.come("ann", "rogue")
    competition = host.compete("ann", "rogue")
    host.offends("rogue", MEMORY)
    competition.offended("rogue", CRASHED)
    report = await competition.run()

    assert [verdict.kind for verdict in report.verdicts] == [Ending.MEMORY]


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


# --- faults of the arena ---


@pytest.mark.parametrize("plan", [{"matches": 9}, {"form": Form.LADDER}], ids=["", "ladder"])
async def test_a_store_that_fails_ends_the_competition_and_stops_its_matches(
    house: FakeArena, host: FakeHost, plan: dict[str, Any]
) -> None:
    host.book.fails_at = 2
    host.come("ann", "ben", "cem", tables=3)

    with pytest.raises(StoreFailed, match="the disk is full"):
        await host.play("ann", "ben", "cem", **plan)
    assert house.referee.tables == ()


async def test_a_store_that_fails_at_an_absence_ends_the_competition(host: FakeHost) -> None:
    host.book.fails_at = 0
    host.comes("ann")

    with pytest.raises(StoreFailed, match="the disk is full"):
        await host.play("ann", "nobody", wait_s=SOON)


async def test_J5_a_pairing_that_was_void_three_times_waits_and_the_others_go_on(
    host: FakeHost, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(GAMES, "ace_king_queen", failing(3))
    host.come("ann", "ben", "cem")
    host.leaves("cem")  # so that it is ann and ben who have bad luck
    competition, task = await host.begin("ann", "ben", "cem", is_attended=True)
    host.comes("cem")
    await a_while(400)

    assert not task.done()
    assert host.book.counted() == {("ann", "cem"): 1, ("ben", "cem"): 1}
    assert competition.settled == 2
    [flag] = host.book.acts
    assert (flag.who, flag.what, flag.competition) == ("the arena", "flag", "c")
    [line] = host.lines
    assert "void 3 times by faults of the arena and waits" in line
    assert "`arena resume c`" in line

    competition.resume(act("resume"))
    report = await in_time(task)

    assert host.book.counted()["ann", "ben"] == 1
    assert report.verdicts == ()
    assert [noted.what for noted in host.book.acts] == ["flag", "resume"]


async def test_J5_what_is_void_three_times_again_waits_again(
    host: FakeHost, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(GAMES, "ace_king_queen", failing(6))
    host.come("ann", "ben")
    competition, task = await host.begin("ann", "ben", is_attended=True)
    competition.resume(act("resume"))
    await a_while()

    assert len(host.book.matches) == 6
    assert [noted.what for noted in host.book.acts] == ["flag", "resume", "flag"]

    competition.resume(act("resume"))
    await in_time(task)

    assert host.book.counted() == {("ann", "ben"): 1}


async def test_J5_who_offends_while_its_match_waits_for_the_instructor_is_out_for_that(
    host: FakeHost, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(GAMES, "ace_king_queen", failing(3))
    host.come("ann", "ben")
    _, task = await host.begin("ann", "ben", is_attended=True)
    host.offends("ben", CRASHED)
    report = await in_time(task)

    assert [verdict.kind for verdict in report.verdicts] == [Ending.CRASH]


async def test_J5_what_an_elimination_or_the_instructor_stopped_was_no_fault(
    house: FakeArena, host: FakeHost
) -> None:
    host.come("ann", "ben", plays=silent)
    competition, task = await host.begin("ann", "ben")
    for _ in range(5):
        [table] = house.referee.tables
        competition.void(table.id, act("void", match=table.id))
        await a_while()
    host.plays("ann", first_legal)
    host.plays("ben", first_legal)
    await in_time(task)

    assert host.book.kinds() == {Ending.VOID: 5, Ending.COMPLETED: 1}
    assert [noted.what for noted in host.book.acts] == ["void"] * 5


# --- teams and house bots in eliminations ---

EIGHT = ("ann", "ben", "cem", "dora", "eve", "fritz", "gus", "rogue")


@pytest.mark.parametrize(
    ("names", "team", "flags"),
    [(EIGHT, "blue", 0), (EIGHT, "red", 3), (EIGHT[-4:], "red", 0)],
    ids=["others", "team mates", "nobody in a final"],
)
async def test_K2_an_offence_is_flagged_if_it_saves_team_mates(
    host: FakeHost, names: tuple[str, ...], team: str, flags: int
) -> None:
    host.come(*names[:-1])
    host.comes("rogue", illegal)
    teams = dict.fromkeys(names, "red") | {"rogue": team}
    report = await host.play(*names, game="high_low", teams=teams)

    assert report.ranking[-1].names == ("rogue",)
    assert [act.what for act in host.book.acts] == ["flag"] * flags
    assert len(host.lines) == flags


async def test_K2_an_offence_that_saves_a_team_mate_is_flagged_and_told_once(
    house: FakeArena, host: FakeHost
) -> None:
    """A bot spoils its table's match when another one of its team is clearly behind there."""

    rng = random.Random(4)
    spoilt: list[str] = []

    def plays(ask: Ask) -> object:
        [match] = [
            table.match
            for table in house.referee.tables
            if ask.match in [chair.id for chair in table.chairs]
        ]
        assert match is not None
        assert match.pending is not None
        mine = match.scores[match.pending.seat]
        if not spoilt and len(set(match.scores)) == 4 and mine == max(match.scores):
            spoilt.append(ask.match)
            return "all in"
        return choose(ask.question.choices, rng)

    host.come(*EIGHT, plays=plays)
    teams = dict.fromkeys(EIGHT, "red")
    settings = {"max_shuffles": 50}
    report = await host.play(*EIGHT, game="high_low", teams=teams, settings=settings)

    [verdict] = report.verdicts
    [row] = [row for row in host.book.rows if row.result.termination.is_offence]
    assert len(host.book.acts) == 2, "the third and the fourth of its table"
    for flag, line in zip(host.book.acts, host.lines, strict=True):
        assert (flag.who, flag.what) == ("the arena", "flag")
        assert (flag.bot, flag.match) == (verdict.bot, row.id)
        saved = flag.text.rpartition(" ")[2]
        place = sorted(row.result.scores).index(row.result.scores[row.players.index(saved)])
        assert place < 2
        assert flag.text in line

    again = host.compete(
        *EIGHT,
        game="high_low",
        teams=teams,
        settings=settings,
        earlier=host.book.results(),
        acts=tuple(host.book.acts),
    )
    await in_time(again.run())

    assert len(host.book.acts) == len(host.lines) == 2, "not after a restart"


class Houses:
    """House bots, the first of which do not do as they should."""

    def __init__(self, host: FakeHost, *bad: str) -> None:
        self.host = host
        self.bad = list(bad)
        self.called = 0

    async def __call__(self, game: str, name: str) -> None:
        if name in self.host.players:
            return  # as the host does: it is on its way
        self.called += 1
        match self.bad.pop(0) if self.bad else "plays":
            case "is absent":
                pass
            case "cannot be started":
                raise ArenaError("no memory")
            case "is illegal":
                self.host.comes(name, illegal)
            case "crashes":
                self.host.comes(name, silent)
            case _:
                self.host.comes(name)


async def test_J5_a_house_bot_that_crashes_in_a_final_costs_nobody_anything(host: FakeHost) -> None:
    host.come("ann", "ben", "cem")
    houses = Houses(host, "crashes")
    _, task = await host.begin(
        "ann", "ben", "cem", game="high_low", call_house=houses, limits=Limits()
    )
    for name in ("ann", "ben", "cem"):
        host.plays(name, silent)
    await a_while()
    host.offends("house-0", CRASHED)
    for name in ("ann", "ben", "cem"):
        host.plays(name, first_legal)
    report = await in_time(task)

    assert host.book.kinds() == {Ending.VOID: 1, Ending.COMPLETED: 1}
    assert houses.called == 2
    assert report.verdicts == ()
    placed = sorted(name for place in report.ranking for name in place.names)
    assert placed == ["ann", "ben", "cem"]


async def test_J5_a_house_bot_that_offends_three_times_is_for_the_instructor(
    host: FakeHost,
) -> None:
    host.come("ann", "ben", "cem")
    houses = Houses(host, "is illegal")
    competition, task = await host.begin(
        "ann", "ben", "cem", game="high_low", call_house=houses, is_attended=True
    )
    await a_while(2000)

    assert host.book.kinds() == {Ending.VOID: 3}
    assert "void 3 times" in host.lines[-1]

    host.plays("house-0", first_legal)
    competition.resume(act("resume"))
    report = await in_time(task)

    assert report.verdicts == ()
    assert host.book.kinds() == {Ending.VOID: 3, Ending.COMPLETED: 1}


async def test_J5_a_house_bot_that_does_not_come_is_started_again_and_nobody_is_absent(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.competitions.arbiter.WAIT_S", SOON)
    host.come("ann", "ben", "cem")
    houses = Houses(host, "is absent", "cannot be started")
    report = await host.play(*("ann", "ben", "cem"), game="high_low", call_house=houses, wait_s=0.0)

    assert houses.called == 3
    assert host.lines == ["house-0: no memory"]
    assert host.book.kinds() == {Ending.VOID: 1, Ending.COMPLETED: 1}
    assert report.verdicts == ()


async def test_J5_a_house_bot_has_time_to_start_however_short_bots_are_waited_for(
    host: FakeHost,
) -> None:
    competition = host.compete("ann", "ben", game="high_low", wait_s=0.0)

    assert competition.arbiter.awaited("house-0") == WAIT_S
    assert competition.arbiter.awaited("ann") == 0.0

    await a_while()  # it is being started


async def test_K2_no_house_bot_is_started_for_a_final_that_was_played(host: FakeHost) -> None:
    host.come("ann", "ben")
    report = await host.play("ann", "ben", game="high_low")
    assert sorted(host.called) == ["house-0", "house-1"]
    assert host.book.finished[0][2] == report.ranking
    assert report.standings == ()

    host.called.clear()
    earlier = host.book.results()
    again = await host.play("ann", "ben", game="high_low", earlier=earlier)

    assert host.called == []
    assert again.ranking == report.ranking


async def test_a_house_bot_that_cannot_be_started_at_all_ends_the_competition(
    host: FakeHost,
) -> None:
    host.come("ann", "ben", "cem")
    houses = Houses(host, "cannot be started")

    with pytest.raises(ArenaError, match="no memory"):
        await host.play("ann", "ben", "cem", game="high_low", call_house=houses)


async def test_J5_a_house_bot_that_never_gets_going_is_not_waited_for_for_ever(
    host: FakeHost,
) -> None:
    host.come("ann", "ben", "cem")
    houses = Houses(host, *["is absent"] * 5)
    competition, task = await host.begin("ann", "ben", "cem", game="high_low", call_house=houses)
    for count in range(3):
        assert len(host.book.matches) == count
        competition.offended("house-0", CRASHED)
        await a_while()
    with pytest.raises(ArenaError, match="void 3 times by faults of the arena"):
        await in_time(task)

    assert host.book.kinds() == {Ending.VOID: 3}
    assert host.lines[0] == ("high_low: the house bot house-0 crashed: exit status 1")


# --- offences off the table, and a power cut ---


async def test_J3_who_offends_while_it_has_a_bye_is_out_also_after_a_power_cut(
    house: FakeArena, host: FakeHost
) -> None:
    six = EIGHT[:6]
    host.come(*six, plays=lambda ask: None)
    _, task = await host.begin(*six, game="high_low")
    seated = {chair.player.name for table in house.referee.tables for chair in table.chairs}
    rests = next(name for name in six if name not in seated)
    host.offends(rests, MEMORY)
    task.cancel()
    book = host.book

    again = FakeHost(house)
    again.come(*six, plays=at_random())
    report = await again.play(*six, game="high_low", earlier=book.results(), acts=book.acts)

    assert [(verdict.bot, verdict.kind) for verdict in report.verdicts] == [(rests, Ending.MEMORY)]
    assert rests not in report.ranking[0].names


# --- several who do not come ---


async def test_J2_all_who_do_not_come_to_a_table_are_out_and_nobody_of_them_advances(
    host: FakeHost,
) -> None:
    here = EIGHT[:3]
    host.come(*here, plays=at_random())
    report = await host.play(*EIGHT, game="high_low", wait_s=SOON)

    absent = {verdict.bot for verdict in report.verdicts}
    assert absent == set(EIGHT) - set(here)
    assert {verdict.kind for verdict in report.verdicts} == {Ending.ABSENT}
    for place in report.ranking:
        assert place.offence == (not set(place.names).isdisjoint(absent))
    assert set(report.ranking[0].names) <= set(here)
    assert len(host.book.matches) == 3, "two tables, and the final"


async def test_J2_nobody_wins_an_elimination_to_which_nobody_comes(host: FakeHost) -> None:
    report = await host.play(*EIGHT, game="high_low", wait_s=SOON)

    assert [(set(place.names), place.offence) for place in report.ranking] == [(set(EIGHT), True)]


async def test_J2_of_two_who_do_not_come_to_their_match_neither_is_first(
    house: FakeArena, host: FakeHost
) -> None:
    report = await host.play("ann", "ben", wait_s=SOON)

    assert [row.rank for row in report.standings] == [None, None]
    again = FakeHost(house)
    rest = await again.play("ann", "ben", earlier=host.book.results(), verdicts=host.book.verdicts)
    assert [row.rank for row in rest.standings] == [None, None]


async def test_a_person_does_not_play_in_the_place_of_a_bot_of_its_name(host: FakeHost) -> None:
    host.people = {"ben"}
    host.come("ann", "ben")
    report = await host.play("ann", "ben", wait_s=SOON)

    assert host.heard == []
    [verdict] = report.verdicts
    assert (verdict.bot, verdict.kind) == ("ben", Ending.ABSENT)
