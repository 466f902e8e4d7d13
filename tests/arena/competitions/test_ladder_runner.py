"""A ladder while it is open: who is paired when, who rests, what the instructor does to it."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from functools import partial
from typing import Any

import pytest

from arena.competitions.competing_bots import CompetingBots
from arena.competitions.competition import Competition
from arena.formats.ladder import Ladder
from arena.formats.spec import Form
from arena.games.verdict import outage
from arena.referee.bot_session import LiveMatch
from arena.storage.models import CompetitionReport, MatchRow
from arena.storage.store import CompetitionState
from protocol.errors import UsageError
from protocol.messages import Ending, Limits
from tests.support.fake_bots import FakeArena, FakeBot
from tests.support.fake_host import (
    TIMEOUT_S,
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

LADDER: dict[str, Any] = {"form": Form.LADDER}


async def closed(
    competition: Competition, task: asyncio.Task[CompetitionReport]
) -> CompetitionReport:
    competition.close()
    report: CompetitionReport = await in_time(task)
    return report


async def played(host: FakeHost, matches: int) -> None:
    await until(lambda: len(host.book.matches) >= matches)


async def eve_plays_ann(host: FakeHost, tables: int = 1) -> tuple[FakeBot, Competition, LiveMatch]:
    """A ladder on which a bot of Eve's plays against Ann; neither answers."""
    eve = host.comes("eve/1", silent, tables=tables)
    host.comes("ann", silent)
    competition, _ = await host.begin("ann", **LADDER)
    [table] = competition.arbiter.tables
    return eve, competition, table


async def seated_after_void(competition: Competition, table: LiveMatch) -> set[str]:
    """Make a match void; who plays afterwards."""
    competition.void(table.id, act("void", match=table.id))
    await a_while()
    return {chair.player.name for table in competition.arbiter.tables for chair in table.chairs}


async def test_K4_whoever_is_there_plays_on_and_on_until_it_is_closed(
    house: FakeArena, host: FakeHost
) -> None:
    host.come("ann", "ben", tables=2)
    competition, task = await host.begin("ann", "ben", **LADDER)
    await played(host, 12)
    assert competition.progress.scheduled == 0
    assert competition.progress.left_s is None
    report = await closed(competition, task)

    assert report.state is CompetitionState.FINISHED
    assert {row.name for row in report.standings} == {"ann", "ben"}
    assert report.played == len(host.book.results())
    numbers = sorted(row.pairing for row in host.book.rows)
    assert numbers == [*range(1, len(numbers) + 1)]
    assert not house.referee.tables


async def test_K4_high_low_is_played_by_four(house: FakeArena, host: FakeHost) -> None:
    host.come("ann", "ben", "cem")
    competition, task = await host.begin("ann", game="high_low", **LADDER)
    assert not house.referee.tables
    host.comes("dora")
    await played(host, 2)
    report = await closed(competition, task)

    assert len(report.standings) == 4
    assert host.called == [], "no house bot fills a chair"


async def test_a_bot_rests_between_two_matches(host: FakeHost) -> None:
    host.come("ann", "ben", tables=4)
    competition, task = await host.begin("ann", "ben", pause_s=5.0, **LADDER)
    host.changed()
    await asyncio.sleep(4)
    assert len(host.book.matches) == 1, "one at a time"

    await asyncio.sleep(1.5)
    assert len(host.book.matches) == 2
    assert max(host.most_chairs.values()) == 1

    await closed(competition, task)


async def test_those_who_have_just_met_wait_for_somebody_else_but_not_for_ever(
    host: FakeHost,
) -> None:
    """A third one is busy: the others wait until it is free, or until a while is over."""
    host.comes("ann", silent)
    host.comes("slow", silent)
    await host.begin("ann", **LADDER)
    host.come("ben", "cem")
    await a_while()
    host.changed()
    await asyncio.sleep(0.7)
    assert len(host.book.matches) == 1, "not yet"

    await asyncio.sleep(0.5)
    assert len(host.book.matches) == 2


async def test_two_pairs_that_rest_by_turns_do_not_meet_each_other_for_ever(host: FakeHost) -> None:
    host.come("ann", "ben")
    await host.begin("ann", pause_s=5.0, **LADDER)
    await asyncio.sleep(2.5)
    host.come("cem", "dora")
    await asyncio.sleep(50)

    met = Counter(frozenset(row.players) for row in host.book.results())
    assert len(met) == 6, "everybody has met everybody"
    assert max(met.values()) <= 6


def looks_of(competition: Competition, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """From now on, a word for every look at all who are on the ladder."""
    looks: list[str] = []
    plays = competition.arbiter.bots.plays

    def looked_at() -> Any:
        looks.append("look")
        return plays()

    monkeypatch.setattr(competition.arbiter.bots, "plays", looked_at)
    return looks


async def test_what_happens_among_many_free_bots_is_looked_at_together(
    house: FakeArena, host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.come(*(f"bot {number}" for number in range(200)), plays=silent)
    competition, _ = await host.begin("bot 1", **LADDER)
    looks = looks_of(competition, monkeypatch)
    host.come(*(f"late {number}" for number in range(50)), plays=silent)
    assert looks == []
    await until(lambda: len(house.referee.tables) >= 125)
    assert 0 < len(looks) < 20, "and everybody plays in the end"


async def test_who_leaves_or_plays_something_else_causes_no_look(
    house: FakeArena, host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.come("ann", "ben", "cem", plays=silent)
    competition, _ = await host.begin("ann", **LADDER)
    looks = looks_of(competition, monkeypatch)
    host.leaves("cem")
    await a_while()
    other = house.bot("dora")
    other.player.games = frozenset({"gin_rummy"})
    host.players.add(other.player)
    host.changed()
    await a_while()
    assert looks == []

    host.come("eve", "fay", plays=silent)
    await until(lambda: len(house.referee.tables) == 2)
    assert looks != [], "one that may play does cause one"


@pytest.mark.virtual_time(limit_s=100)
async def test_J3_an_offence_is_a_lost_match_and_the_bot_plays_on_after_longer_pauses(
    host: FakeHost,
) -> None:
    host.comes("ann")
    host.comes("rogue", illegal)
    competition, task = await host.begin("ann", **LADDER)
    for count, pause_s in enumerate((10.0, 20.0, 40.0), start=1):
        await asyncio.sleep(pause_s - 1)
        assert len(host.book.matches) == count
        host.wall_s += pause_s
        await asyncio.sleep(1)
    assert competition.is_in("rogue")
    report = await closed(competition, task)

    rows = {row.name: row for row in report.standings}
    assert rows["rogue"].losses == rows["rogue"].played == 4
    assert rows["rogue"].offences == 4
    assert rows["rogue"].rank == 2
    assert len(report.verdicts) == 4


async def test_J3_a_pause_is_that_of_all_names_of_its_owner_and_of_nobody_else(
    house: FakeArena, host: FakeHost
) -> None:
    host.comes("eve/1", illegal)
    host.comes("ann", silent)
    await host.begin("ann", **LADDER)
    assert host.book.kinds() == {Ending.ILLEGAL: 1}

    host.comes("eve/2", silent)
    assert not house.referee.tables
    host.comes("ben", silent)
    [table] = house.referee.tables
    assert {chair.player.name for chair in table.chairs} == {"ann", "ben"}

    host.comes("cem", silent)
    host.wall_s += 10.0
    await asyncio.sleep(10)
    assert len(house.referee.tables) == 2


async def test_J3_pauses_outlive_a_restart(house: FakeArena, host: FakeHost) -> None:
    first = FakeHost(house)
    first.comes("ann")
    first.comes("rogue", illegal)
    competition, task = await first.begin("ann", **LADDER)
    await closed(competition, task)

    host.wall_s = 4.0
    host.comes("ann")
    host.comes("rogue", illegal)
    earlier = first.book.results()
    assert len(earlier) == 1
    competition, task = await host.begin("ann", earlier=earlier, **LADDER)
    await asyncio.sleep(5)
    assert host.book.matches == []
    host.wall_s = 10.0
    for _ in range(2):
        await asyncio.sleep(1)
        assert len(host.book.matches) == 1, "and the second pause is longer"


async def test_J3_an_offence_that_is_taken_back_has_no_pause(
    house: FakeArena, host: FakeHost
) -> None:
    host.comes("rogue", illegal)
    host.comes("ann", silent)
    competition, _ = await host.begin("ann", **LADDER)
    [offence] = host.book.results()
    host.plays("rogue", silent)
    assert not house.referee.tables
    competition.void(offence.id, act("void", match=offence.id))
    await competition.ledger.rated()

    assert len(house.referee.tables) == 1


async def test_J9_who_leaves_with_a_friend_again_is_named(house: FakeArena, host: FakeHost) -> None:
    """Nothing is played again on a ladder: so it would cost nothing, however often."""
    host.come("ann", "ben", plays=silent)
    competition, _ = await host.begin("ann", "ben", **LADDER)
    for _ in range(3):
        await until(lambda: competition.arbiter.tables)
        [table] = house.referee.tables
        house.referee.void(table, outage(["ann"]), (table.names.index("ann"),))
        host.wall_s += 1_000  # longer than a match of the fake clock lasts

    flags = [act.text for act in host.book.acts if act.what == "flag"]
    assert ["was void as ann was away, ann not for the first" in flag for flag in flags] == [
        True
    ] * 2
    assert len(host.lines) == len(flags)


@pytest.mark.parametrize("is_seen", [True, False], ids=["", "away between two looks"])
async def test_who_has_left_a_match_has_no_other_name_of_its_owner_seated_until_it_is_over(
    house: FakeArena, host: FakeHost, is_seen: bool
) -> None:
    eve, competition, table = await eve_plays_ann(host)
    eve.goes()
    if is_seen:
        host.come("eve/2", "ben", plays=silent)
        assert house.referee.tables == (table,)
    house.now += 0.01
    eve.comes_back()
    eve.reads()
    assert not eve.player.is_away
    if is_seen:
        host.changed()
    else:
        host.come("eve/2", "ben", plays=silent)
    assert house.referee.tables == (table,), "it may leave again"

    host.comes("cem", silent)
    assert len(house.referee.tables) == 2, "others play"
    host.comes("dora", silent)
    assert "eve/2" in await seated_after_void(competition, table)


async def test_who_has_left_a_match_and_come_back_may_play_another_itself(
    house: FakeArena, host: FakeHost
) -> None:
    eve, *_ = await eve_plays_ann(host, tables=2)
    eve.goes()
    host.comes("ben", silent)
    before = len(house.referee.tables)
    eve.comes_back()
    eve.reads()
    host.changed()

    assert len(house.referee.tables) == before + 1


async def test_a_verdict_costs_no_look_at_all_who_are_on_the_ladder(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host asks at every verdict whether its bot still takes part anywhere."""

    competition = host.compete("ann", *(f"bot-{n}" for n in range(50)), **LADDER)
    looks: list[str] = []
    for kind, look in ((Ladder, "rows"), (CompetingBots, "plays")):
        monkeypatch.setattr(kind, look, partial(looks.append, look))

    assert competition.is_in("ann")
    assert not competition.is_in("stranger")
    host.comes("late", silent)
    assert competition.is_in("late")
    assert looks == []


async def test_a_ladder_whose_time_is_over_before_it_has_begun(host: FakeHost) -> None:
    host.come("ann", "ben")
    competition = host.compete("ann", "ben", **LADDER)
    competition.close()
    report = await in_time(competition.run())

    assert report.state is CompetitionState.FINISHED
    assert host.book.matches == []


async def test_a_removed_bot_loses_what_it_plays_and_is_not_paired_again(
    house: FakeArena, host: FakeHost
) -> None:
    host.come("ann", "ben", plays=silent)
    competition, task = await host.begin("ann", limits=Limits(), **LADDER)
    competition.remove("ben", act("remove", bot="ben"))
    await a_while()

    assert host.book.kinds() == {Ending.REMOVED: 1}
    assert not house.referee.tables
    with pytest.raises(UsageError, match="expected a bot that is in c"):
        competition.remove("ben", act("remove", bot="ben"))

    host.comes("cem")
    host.plays("ann", first_legal)
    await played(host, 3)
    report = await closed(competition, task)
    assert Counter("ben" in row.players for row in host.book.rows if row.counts) == {
        True: 1,
        False: report.played - 1,
    }
    assert [verdict.bot for verdict in report.verdicts] == ["ben"]
    *others, ben = report.standings
    assert (ben.name, ben.rank, ben.played) == ("ben", None, 0)
    assert {row.played for row in others} == {report.played - 1}, "but for ben's"


@pytest.mark.virtual_time(is_off=True)
@pytest.mark.parametrize("gone", [("ben",), ("ben", "dan")])
async def test_a_ladder_is_rated_anew_off_the_loop_and_what_ends_meanwhile_counts(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch, gone: tuple[str, ...]
) -> None:
    host.come("ann", "ben", "cem", "dan")
    competition, _ = await host.begin("ann", "ben", "cem", "dan", **LADDER)
    await played(host, 12)
    go, results, read = threading.Event(), host.book.results, list[bool]()

    def held(*which: str) -> list[MatchRow]:
        found = results(*which)
        if threading.current_thread() is not threading.main_thread():
            read.append(go.wait(TIMEOUT_S))
        return found

    monkeypatch.setattr(host.book, "results", held)
    for name in gone:
        competition.remove(name, act("remove", bot=name))
        await played(host, len(host.book.matches) + 3)
    go.set()
    await competition.ledger.rated()
    rows = {row.name: row for row in competition.ledger.book.rows}

    assert any(read)
    for name in {"ann", "cem", "dan"} - set(gone):
        left = [row for row in results() if name in row.players]
        counted = [row for row in left if not set(gone) & set(row.players)]
        assert rows[name].played == len(counted)


async def test_the_house_bots_of_other_competitions_are_not_paired_but_its_own_are(
    house: FakeArena, host: FakeHost
) -> None:
    host.guests = {"theirs", "ours"}
    host.come("ann", "theirs", plays=silent)
    competition, _ = await host.begin("ann", **LADDER)
    competition.arbiter.bots.guests.add("ours")
    assert not house.referee.tables
    assert not competition.is_in("theirs")

    host.comes("ours", silent)
    await a_while()
    [table] = house.referee.tables
    assert {chair.player.name for chair in table.chairs} == {"ann", "ours"}


async def test_people_are_not_paired(house: FakeArena, host: FakeHost) -> None:
    host.people = {"Pat"}
    host.come("ann", "Pat", plays=silent)
    competition, _ = await host.begin("ann", **LADDER)

    assert not house.referee.tables
    assert not competition.is_in("Pat")


async def test_it_gives_no_number_a_second_time_when_it_goes_on(
    house: FakeArena, host: FakeHost
) -> None:
    """There are fewer results than numbers: the first match was taken back."""

    first = FakeHost(house)
    first.come("ann", "ben")
    competition, task = await first.begin("ann", "ben", **LADDER)
    await played(first, 4)
    await closed(competition, task)
    earlier = first.book.results()[1:]

    host.book.rows = list(earlier)
    again = host.compete("ann", "ben", **LADDER, earlier=earlier)
    host.come("ann", "ben")
    task = asyncio.create_task(again.run())
    await played(host, 1)
    await closed(again, task)

    assert host.book.rows[len(earlier)].pairing == earlier[-1].pairing + 1
    assert again.ledger.played == len(host.book.results())


async def test_a_competition_with_an_end_gets_a_table_before_the_ladder_does(
    host: FakeHost,
) -> None:
    host.come("ann", "ben")
    await host.begin("ann", "ben", competition="ladder", **LADDER)
    _, league = await host.begin("ann", "ben", competition="cup", game="ace_king_queen", matches=20)
    started = len(host.book.results("ladder"))
    await in_time(league)
    assert len(host.book.results("cup")) == 20
    # What was being played when the cup came was finished, and no more begun.
    assert len(host.book.results("ladder")) <= started + 1

    await played(host, 20 + started + 3)
