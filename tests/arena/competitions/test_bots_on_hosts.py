"""Launched bots that hosts can start as well: how many matches they have, and where."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from arena.competitions.competition import Competition
from arena.formats.spec import Form, Take
from arena.games.names import is_process
from arena.games.verdict import Finding
from arena.referee.bot_session import LiveMatch
from protocol.errors import UsageError
from protocol.messages import Ending, Mechanism
from tests.support.fake_bots import FakeArena
from tests.support.fake_host import FakeHost, a_while, act, first_legal, in_time, silent
from tests.support.fake_submissions import FakeHostPools

pytestmark = pytest.mark.virtual_time

PAIR = ("ann", "ben")
THREE = ("ann", "ben", "cem")
CRASH = Finding(kind=Ending.CRASH, text="crashed: exit status 1", mechanism=Mechanism.EXIT)


def launched(host: FakeHost, *names: str) -> None:
    """These are bots of ours, whose processes here do not answer."""
    for name in names:
        host.comes(name, silent, is_launched=True)


@pytest.fixture
async def hosts(host: FakeHost) -> FakeHostPools:
    """A host that plays four matches at once; it can start ann, ben and cem, which are here."""
    hosts = host.has_hosts(4, *THREE)
    launched(host, *THREE)
    return hosts


def far(competition: Competition) -> list[LiveMatch]:
    """The matches that are played on the host."""
    return [
        table
        for table in competition.arbiter.tables
        if all(is_process(chair.player.name) for chair in table.chairs)
    ]


async def test_a_bot_with_one_table_has_as_many_matches_as_hosts_play(
    host: FakeHost, hosts: FakeHostPools
) -> None:
    for name in PAIR:
        host.submitted_play[name] = silent
    competition, _ = await host.begin(*PAIR, matches=20)

    assert competition.arbiter.playing == 5
    assert (len(competition.arbiter.tables), len(far(competition))) == (5, 4)
    await host.end()


async def test_without_hosts_it_plays_at_its_table(host: FakeHost, house: FakeArena) -> None:
    host.has_hosts(0, *PAIR)
    launched(host, *PAIR)
    competition, _ = await host.begin(*PAIR, matches=20)

    assert competition.arbiter.playing == len(house.referee.tables) == 1
    assert not competition.arbiter.bots.is_on_hosts("ann")
    await host.end()


async def test_every_pairing_is_played_once_wherever_its_bots_run(
    host: FakeHost, hosts: FakeHostPools
) -> None:
    for name in THREE:
        host.plays(name, first_legal)
    report = await host.play(*THREE, matches=4)

    assert report.played == 12
    assert set(host.book.counted().values()) == {4}
    assert {bot.name for bot in hosts.pool.seated} == {*THREE}
    await host.end()


async def test_what_no_host_can_start_is_played_here_meanwhile(
    host: FakeHost, hosts: FakeHostPools
) -> None:
    """cem stays here, and dora has connected by herself."""
    hosts.portable.remove("cem")
    for name in PAIR:
        host.submitted_play[name] = silent
    host.comes("dora", silent)
    competition, _ = await host.begin(*PAIR, "cem", "dora", matches=6)

    assert {frozenset(table.names) for table in far(competition)} == {frozenset(PAIR)}
    near = [table for table in competition.arbiter.tables if table not in far(competition)]
    assert sorted(name for table in near for name in table.names) == [*THREE, "dora"]
    await host.end()


async def test_a_match_of_a_submission_and_a_house_bot_may_be_played_on_a_host(
    host: FakeHost,
) -> None:
    host.takes_submissions(1, ann=11)
    host.pool.at_once = 0
    host.has_hosts(2, "cem")
    launched(host, "cem")
    report = await host.play("ann", "cem", take=Take.EITHER, versions={"ann": 11}, matches=2)

    assert report.played == 2
    assert not host.pool.seated
    await host.end()


async def test_a_match_that_never_fits_here_is_played_on_a_host(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(bots: object) -> None:
        raise UsageError("expected at most 1 submitted bots in a match")

    host.takes_submissions(1, ann=11, ben=21)
    monkeypatch.setattr(host.pool, "reserve", never)
    host.has_hosts(2)
    report = await host.play(*PAIR, take=Take.SUBMITTED, versions={"ann": 11, "ben": 21})

    assert report.played == 1
    await host.end()


async def test_where_there_is_no_room_hosts_are_asked(host: FakeHost, hosts: FakeHostPools) -> None:
    hosts.pool.most = 0
    await host.begin(*PAIR, matches=3)

    [asked] = {tuple(sorted(bot.name for bot in bots)) for bots in hosts.asked}
    assert asked == PAIR
    await host.end()


async def test_when_hosts_go_what_is_left_is_played_here(
    host: FakeHost, house: FakeArena, hosts: FakeHostPools
) -> None:
    hosts.pool.starts.clear()
    competition, task = await host.begin(*PAIR, matches=8)
    hosts.at_once = 0
    host.room_changed()
    competition.pause(act("pause"))
    competition.resume(act("resume"))
    await a_while()

    assert competition.arbiter.playing == len(house.referee.tables) == 1
    task.cancel()
    await host.end()


async def test_in_a_pause_what_waits_for_its_seats_is_withdrawn(
    host: FakeHost, hosts: FakeHostPools
) -> None:
    hosts.pool.starts.clear()
    competition, task = await host.begin(*PAIR, matches=8)
    competition.pause(act("pause"))
    near = competition.arbiter.playing
    hosts.pool.starts.set()
    await a_while()

    assert (near, len(far(competition))) == (1, 0)
    for name in PAIR:
        host.plays(name, first_legal)
    competition.resume(act("resume"))
    assert (await in_time(task)).played == 8
    await host.end()


async def test_J3_who_dies_here_while_hosts_play_it_is_out_as_ever(
    host: FakeHost, hosts: FakeHostPools
) -> None:
    for name in THREE:
        host.submitted_play[name] = silent
    competition, _ = await host.begin(*THREE, matches=4)
    host.offends("ann", CRASH)
    await a_while()

    assert not competition.is_in("ann")
    assert {name for table in competition.arbiter.tables for name in table.names} == {"ben", "cem"}
    await host.end()


LADDER: dict[str, Any] = {"form": Form.LADDER}


async def test_K4_launched_bots_climb_in_as_many_matches_as_hosts_play(
    host: FakeHost, hosts: FakeHostPools
) -> None:
    for name in THREE:
        host.submitted_play[name] = silent
    competition, task = await host.begin(*THREE, **LADDER)
    matches = Counter(name for table in competition.arbiter.tables for name in table.names)

    assert competition.arbiter.bots.launched_at_once == 4
    assert max(matches.values()) >= 3
    competition.close()
    await in_time(task)
    await host.end()


async def test_K4_who_has_connected_meets_launched_bots_at_its_table(
    host: FakeHost, hosts: FakeHostPools
) -> None:
    for name in THREE:
        host.submitted_play[name] = silent
    for name in ("dora", "eve"):
        host.comes(name, silent)
    competition, _ = await host.begin(*THREE, **LADDER)
    await a_while()

    near = [table for table in competition.arbiter.tables if table not in far(competition)]
    assert {name for table in near for name in table.names} >= {"dora", "eve"}
    assert max(len(player.chairs) for player in host.players.values()) == 1
    assert far(competition)
    await host.end()
