"""What a run forgives: how events are counted, live, after a restart and when taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from arena.formats.ladder import RatingHistory
from arena.formats.schedule import Pairing
from arena.formats.scorebook import Scorebook
from arena.formats.spec import Form, Plan, plan_of
from arena.games.catalogue import GAMES
from arena.games.match import Result
from arena.games.verdict import FORGIVABLE, Finding
from arena.storage.models import CompetitionReport
from protocol.messages import Ending, Limits, Mechanism, Termination, Verdict
from tests.support.fake_bots import FakeArena
from tests.support.fake_host import SOON, FakeHost, a_while, act, first_legal, in_time, silent

pytestmark = pytest.mark.virtual_time

LOST = Finding(kind=Ending.DISCONNECT, text="did not come back", mechanism=Mechanism.SESSION)
CRASHED = Finding(kind=Ending.CRASH, text="crashed", mechanism=Mechanism.WIRE)


def verdict(match: str, event: str, kind: Ending = Ending.CRASH) -> Verdict:
    """One on ann."""
    return Verdict(
        kind=kind,
        match=match,
        game="ace_king_queen",
        bot="ann",
        seat=0,
        text="",
        bank_ms=0,
        limits=Limits(),
        event=event,
    )


def plan(forgive: int) -> Plan:
    """A round robin of two."""
    rules = GAMES["ace_king_queen"]
    settings = rules.vocabulary.read_settings({})
    return plan_of(rules, settings, ("ann", "ben"), forgive=forgive)


def added(book: Scorebook, match: str, kind: Ending) -> tuple[str, ...]:
    """Who is out by a match that an offence of ann's ended."""
    result = Result((0, 0), (0, 0), Termination(kind, 0))
    return book.add(match, Pairing(1, ("ann", "ben")), result, 0.0)


def counted(most: int, verdicts: Sequence[Verdict]) -> list[bool]:
    """Of each in turn whether it is forgiven."""
    book = Scorebook(plan(most), verdicts=verdicts)
    return [not added(book, verdict.match, verdict.kind) for verdict in verdicts]


# --- counting ---


@pytest.mark.parametrize(
    ("most", "events", "forgiven"),
    [
        (1, "a" * 64, "+" * 64),  # an event is one however many matches it ends
        *[(2, "abcd", "++--"), (0, "abcd", "----")],  # the first n are forgiven
        (2, "abacb", "+++--"),  # in whichever order they end matches
    ],
)
def test_J3_the_first_events_are_forgiven(most: int, events: str, forgiven: str) -> None:
    verdicts = [verdict(f"m-{n}", event) for n, event in enumerate(events)]

    assert counted(most, verdicts) == [each == "+" for each in forgiven]


@pytest.mark.parametrize("kind", [kind for kind in Ending if Termination(kind).is_offence])
def test_J3_only_what_can_happen_to_anybody_is_forgiven(kind: Ending) -> None:
    assert counted(9, [verdict("m-1", "a", kind)]) == [kind in FORGIVABLE]


def test_J3_an_offence_without_a_verdict_is_not_forgiven() -> None:
    assert added(Scorebook(plan(9)), "m-1", Ending.CRASH) == ("ann",)


def test_J3_verdicts_are_told_as_they_stand_after_counting() -> None:
    verdicts = [verdict("m-1", "a"), verdict("m-2", "b")]
    book = Scorebook(plan(1), verdicts=verdicts)
    for made in verdicts:
        added(book, made.match, made.kind)

    told = book.standing(verdicts)
    assert [verdict.forgiven for verdict in told] == [True, False]
    assert told[0].headline.startswith("lost this match and plays on: ")


def test_of_a_removed_bot_a_ladder_has_no_history() -> None:
    rules = GAMES["ace_king_queen"]
    ladder = plan_of(rules, rules.vocabulary.read_settings({}), (), Form.LADDER)
    history = RatingHistory()
    book = Scorebook(ladder, {"ann": Termination(Ending.REMOVED)}, history=history)
    for number, players in enumerate((("ann", "ben"), ("ben", "cem"), ("cem", "ben"))):
        result = Result((1, -1), (0, 0), Termination(Ending.COMPLETED))
        book.add(f"m-{number}", Pairing(number, players), result, float(number))

    assert {name: [at for at, _ in points] for name, points in history.ratings.items()} == {
        "ben": [1.0, 2.0],
        "cem": [1.0, 2.0],
    }
    assert history.ratings["cem"][-1][1] == book.ladder.climber("cem").rating


# --- while it is played ---


def row(report: CompetitionReport, name: str) -> Any:
    return next(row for row in report.standings if row.name == name)


async def test_J3_a_lost_connection_costs_the_matches_that_it_ends_and_no_more(
    host: FakeHost,
) -> None:
    host.come("ann", "ben", tables=4)
    host.comes("cem", silent, tables=4)
    _, task = await host.begin("ann", "ben", "cem", matches=8, forgive=1)
    ended = len(host.players["cem"].chairs)
    assert ended == 4
    host.offends("cem", LOST)
    await a_while()
    host.comes("cem", tables=4)
    report = await in_time(task)

    cem = row(report, "cem")
    assert (cem.rank is not None, cem.played, cem.forgiven) == (True, 16, 4)
    assert cem.losses >= 4
    assert cem.completed == 12
    assert len({verdict.event for verdict in report.verdicts}) == 1
    assert {(verdict.bot, verdict.forgiven) for verdict in report.verdicts} == {("cem", True)}
    won = sum(row(report, name).played for name in ("ann", "ben"))
    assert won == 32, "nobody's pairing is struck"
    assert sum(row.wins for row in report.standings) == sum(row.losses for row in report.standings)


async def test_J3_after_one_event_more_all_is_struck_what_was_forgiven_too(host: FakeHost) -> None:
    host.come("ann", "ben", tables=8)
    host.comes("cem", silent, tables=4)
    _, task = await host.begin("ann", "ben", "cem", matches=8, forgive=1)
    host.offends("cem", CRASHED)
    await a_while()
    host.comes("cem", silent, tables=4)
    await a_while()
    host.offends("cem", CRASHED)
    report = await in_time(task)

    assert row(report, "cem").eliminated.kind is Ending.CRASH
    assert [verdict.forgiven for verdict in report.verdicts] == [True] * 4 + [False]
    assert {row.played for row in report.standings if row.rank} == {8}


async def test_J3_what_is_not_forgivable_puts_out_at_once(host: FakeHost) -> None:
    host.come("ann", "ben")
    host.come("cem", plays=lambda ask: "all in")
    report = await host.play("ann", "ben", "cem", forgive=5)

    assert row(report, "cem").eliminated.kind is Ending.ILLEGAL


async def test_J3_an_absence_costs_the_pairing_that_was_due_and_the_time_begins_anew(
    host: FakeHost,
) -> None:
    host.come("ann", "ben")
    competition, task = await host.begin("ann", "ben", "cem", wait_s=1.0, forgive=1)
    await asyncio.sleep(1)
    await a_while()
    assert competition.progress.waits_for == ("cem",), "for its other pairing"
    host.comes("cem")
    report = await in_time(task)

    [verdict] = report.verdicts
    assert (verdict.kind, verdict.forgiven) == (Ending.ABSENT, True)
    cem = row(report, "cem")
    assert (cem.played, cem.completed, cem.forgiven) == (2, 1, 1)
    assert sum(row.wins for row in report.standings if row.name != "cem") >= 1


async def test_J3_who_never_comes_is_out_after_so_many_absences(host: FakeHost) -> None:
    host.come("ann", "ben")
    report = await host.play("ann", "ben", "cem", matches=9, wait_s=SOON, forgive=3)

    assert [verdict.forgiven for verdict in report.verdicts] == [True] * 3 + [False]
    assert row(report, "cem").rank is None
    assert {row.played for row in report.standings if row.rank} == {9}


async def test_J3_of_two_who_do_not_come_both_lose(host: FakeHost) -> None:
    report = await host.play("ann", "ben", wait_s=SOON, forgive=1)

    for name in ("ann", "ben"):
        one = row(report, name)
        assert (one.rank, one.wins, one.losses, one.forgiven) == (1, 0, 1, 1)
        assert (one.mean, one.error, one.completed) == (None, None, 0)


async def test_J3_a_crash_between_two_matches_costs_the_next(host: FakeHost) -> None:
    host.come("ann", "ben")
    _, task = await host.begin("ann", "ben", "cem", matches=2, forgive=1)
    host.comes("cem", silent)
    host.house.referee.void(host.house.referee.tables[0], "to sit nowhere")
    for table in host.house.referee.tables:
        if "cem" in [chair.player.name for chair in table.chairs]:
            host.house.referee.void(table, "to sit nowhere")
    host.offends("cem", CRASHED)
    await a_while()
    host.comes("cem")
    report = await in_time(task)

    [verdict] = report.verdicts
    assert (verdict.kind, verdict.forgiven) == (Ending.CRASH, True)
    cem = row(report, "cem")
    assert (cem.played, cem.forgiven) == (4, 1)


async def test_J3_who_was_forgiven_a_crash_and_does_not_come_back_is_absent(host: FakeHost) -> None:
    host.comes("ann")
    names = ("ann", "cem")
    competition, task = await host.begin(*names, matches=4, forgive=2, wait_s=1.0)
    competition.offended("cem", CRASHED)
    report = await in_time(task)

    kinds = [(verdict.kind, verdict.forgiven) for verdict in report.verdicts]
    absent = Ending.ABSENT
    assert kinds == [(Ending.CRASH, True), (absent, True), (absent, False)]


async def test_J3_a_crash_at_a_table_costs_nothing_beside_that_match(host: FakeHost) -> None:
    """The gateway tells the competition of it as well, after the match has ended."""

    host.come("ann", "ben")
    _, task = await host.begin("ann", "ben", "cem", matches=4, forgive=1)
    host.comes("cem", silent)
    await a_while()
    host.offends("cem", CRASHED)
    await a_while()
    host.comes("cem")
    report = await in_time(task)

    assert len(report.verdicts) == 1
    assert row(report, "cem").forgiven == 1


async def test_J3_who_was_out_of_time_is_dealt_to_when_it_is_heard_again(
    house: FakeArena, host: FakeHost
) -> None:
    host.come("ann")
    ben = host.comes("ben", silent, tables=2)
    competition, task = await host.begin("ann", "ben", matches=5, forgive=1)
    [table] = house.referee.tables
    house.now += 20
    house.referee.tick()
    await a_while()
    assert competition.ledger.played == 1
    assert house.referee.tables == (), "it is not dealt to while it is silent"
    assert competition.progress.waits_for == ("ben",)
    host.plays("ben", first_legal)
    ben.player.probe(house.now)
    assert ben.player.ponged(ben.wire.pings[-1], house.now)
    host.players.note(ben.player)
    host.changed()
    report = await in_time(task)

    [verdict] = report.verdicts
    assert (verdict.kind, verdict.match) == (Ending.TIMEOUT, table.id)
    assert row(report, "ben").played == 5


async def test_J3_a_bot_that_will_be_started_again_is_dealt_to_no_more(
    house: FakeArena, host: FakeHost
) -> None:
    """The host decides that when it hears the verdict, after the match has been counted."""

    host.come("ann")
    ben = host.comes("ben", silent)
    ben.wire.is_linked = False  # one on its pipes is never silent

    def hangs(verdict: Verdict) -> None:
        ben.player.leaving = True

    house.referee.on_verdict = hangs
    competition, task = await host.begin("ann", "ben", matches=3, forgive=1)
    house.now += 20
    house.referee.tick()
    await a_while()

    assert competition.ledger.played == 1
    assert house.referee.tables == ()
    assert competition.progress.waits_for == ("ben",)
    task.cancel()


# --- a league ---


async def test_J3_in_a_league_the_whole_stake_is_lost_in_nobodys_error(host: FakeHost) -> None:
    host.come("ann")
    host.comes("ben", silent)
    _, task = await host.begin("ann", "ben", game="blackjack", matches=4, forgive=1)
    host.offends("ben", LOST)
    await a_while()
    host.comes("ben")
    report = await in_time(task)

    ben = row(report, "ben")
    completed = [
        result.scores[0]
        for players, result in host.book.matches
        if players == ("ben",) and result.termination.kind is Ending.COMPLETED
    ]
    assert (ben.played, ben.forgiven, len(completed)) == (4, 1, 3)
    assert ben.score == sum(completed) - 100
    assert ben.value == pytest.approx(sum(100 + score for score in completed) / 4)


# --- after a power cut, and when a match is taken back ---


async def eventful(house: FakeArena, forgive: int) -> FakeHost:
    """A round robin in which cem had an event of four matches, then one of one match."""
    host = FakeHost(house)
    host.come("ann", "ben", tables=4)
    host.comes("cem", silent, tables=4)
    _, task = await host.begin("ann", "ben", "cem", matches=6, forgive=forgive)
    for _ in range(2):
        host.offends("cem", LOST)
        await a_while()
        host.comes("cem", silent, tables=4)
        await a_while()
    host.plays("cem", first_legal)
    await in_time(task)
    return host


@pytest.mark.parametrize("forgive", [1, 2])
async def test_J3_who_goes_on_from_any_match_counts_the_same(
    house: FakeArena, forgive: int
) -> None:
    first = await eventful(house, forgive)
    rows = first.book.rows
    whole = first.competition.ledger
    assert len({verdict.event for verdict in whole.verdicts}) == 2
    for count in range(len(rows) + 1):
        host = FakeHost(house)
        earlier = [match for match in rows[:count] if match.counts]
        ids = {match.id for match in earlier}
        ledger = host.compete(
            "ann",
            "ben",
            "cem",
            matches=6,
            forgive=forgive,
            earlier=earlier,
            verdicts=[verdict for verdict in first.book.verdicts if verdict.match in ids],
        ).ledger
        events = {verdict.event for verdict in ledger.verdicts}
        assert ("cem" in ledger.book.out) == (len(events) > forgive)
    assert ledger.book.rows == whole.book.rows
    assert ledger.book.cross_table == whole.book.cross_table
    assert ledger.verdicts == whole.verdicts


async def test_J3_when_the_match_of_an_event_is_taken_back_the_next_one_is_forgiven(
    host: FakeHost,
) -> None:
    host.come("ann", "ben")
    competition, task = await host.begin("ann", "ben", "cem", matches=4, forgive=1)
    for _ in range(2):
        host.comes("cem", silent)
        await a_while()
        host.offends("cem", LOST)
    assert "cem" in competition.ledger.book.out
    assert [verdict.forgiven for verdict in competition.ledger.verdicts] == [True, False]
    first = competition.ledger.verdicts[0].match
    competition.void(first, act("void", match=first))

    assert "cem" not in competition.ledger.book.out
    assert [verdict.forgiven for verdict in competition.ledger.verdicts] == [True]
    host.comes("cem")
    report = await in_time(task)
    cem = row(report, "cem")
    assert (cem.played, cem.forgiven) == (8, 1)
