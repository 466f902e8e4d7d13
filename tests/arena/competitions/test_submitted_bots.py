"""Versions on a ladder, where what is in play plays, and when processes of others end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from arena.competitions.competition import Competition
from arena.competitions.live_arena import LiveArena
from arena.formats.spec import Form, Take
from arena.games.verdict import Finding
from arena.storage.store import Store
from protocol.messages import Ending, Mechanism
from tests.support.fake_host import FakeHost, a_while, first_legal, silent, until
from tests.support.fake_submissions import FakeSeatPool, FakeVersionService

pytestmark = pytest.mark.virtual_time

CRASH = Finding(kind=Ending.CRASH, text="crashed", mechanism=Mechanism.EXIT)


@pytest.fixture
async def ladder(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeHost]:
    """A host on whose ladders bots that have just met meet again at once."""
    monkeypatch.setattr("arena.competitions.ladder_runner._WAIT_S", 0)
    yield host
    await host.end()


async def begun(host: FakeHost, take: Take = Take.SUBMITTED, **plan: Any) -> Competition:
    competition, _ = await host.begin(form=Form.LADDER, take=take, **plan)
    return competition


async def played(host: FakeHost, matches: int) -> None:
    """So many more matches are over."""
    until_then = len(host.book.rows) + matches
    await until(lambda: len(host.book.rows) >= until_then)


def labels(host: FakeHost) -> list[dict[str, str]]:
    """Which version of each bot has played, by match."""
    return [
        dict(zip(players, result.record.versions or (), strict=True))
        for players, result in host.book.matches
    ]


def playing(competition: Competition) -> set[str]:
    return {name for table in competition.arbiter.tables for name in table.names}


async def test_K4_on_a_ladder_of_submissions_all_versions_in_play_climb(ladder: FakeHost) -> None:
    ladder.takes_submissions(ann=11, ben=21, cem=31)
    ladder.come("ann", "eve")  # they are no matter here
    competition = await begun(ladder)
    await played(ladder, 12)
    competition.close()
    await a_while()

    assert {row.name for row in competition.ledger.book.rows} == {"ann", "ben", "cem"}
    assert {version for match in labels(ladder) for version in match.values()} == {"v1"}


async def test_another_version_takes_over_at_the_next_match_and_is_an_act(ladder: FakeHost) -> None:
    service = ladder.takes_submissions(ann=11, ben=21)
    competition = await begun(ladder)
    await played(ladder, 3)
    ladder.submitted_play["ann"] = silent
    await until(lambda: any(table.names and table.chairs for table in competition.arbiter.tables))
    service.plays("ann", 12)
    ladder.submitted_play.clear()
    ladder.all_play(first_legal)
    await played(ladder, 6)
    competition.close()
    await a_while()

    versions = [match["ann"] for match in labels(ladder) if "ann" in match]
    assert versions == sorted(versions)
    assert set(versions) == {"v1", "v2"}
    acts = [(noted.bot, noted.text) for noted in ladder.book.acts if noted.what == "version"]
    assert acts == [
        ("ann", "ann v1 is in play"),
        ("ben", "ben v1 is in play"),
        ("ann", "ann v2 is in play"),
    ]


async def test_a_match_that_has_not_begun_is_not_played_by_an_earlier_version(
    ladder: FakeHost,
) -> None:
    service = ladder.takes_submissions(ann=11, ben=21)
    ladder.pool.starts.clear()
    competition = await begun(ladder)
    assert (competition.arbiter.playing, competition.arbiter.tables) == (4, ())
    service.plays("ann", 12)
    ladder.pool.starts.set()
    await played(ladder, 1)

    assert labels(ladder)[0]["ann"] == "v2"


async def test_without_a_version_in_play_a_bot_climbs_no_more(ladder: FakeHost) -> None:
    service = ladder.takes_submissions(ann=11, ben=21, cem=31)
    competition = await begun(ladder)
    await played(ladder, 3)
    service.plays("cem", None)
    await until(lambda: "cem" not in playing(competition))
    before = len(ladder.book.matches)
    await played(ladder, 6)

    assert all("cem" not in match for match in labels(ladder)[before:])


async def test_with_either_a_version_stands_back_while_its_owner_is_connected(
    ladder: FakeHost,
) -> None:
    ladder.takes_submissions(1, ann=11, ben=21)
    ladder.submitted_play["ben"] = silent
    competition = await begun(ladder, Take.EITHER)
    assert playing(competition) == {"ann", "ben"}
    ladder.comes("ben")
    assert playing(competition) == {"ann", "ben"}, "its present match goes on"

    ladder.submitted_play.clear()
    ladder.all_play(first_legal)
    await played(ladder, 6)
    by_ben = [match["ben"] for match in labels(ladder) if "ben" in match]
    assert by_ben[0] == "v1"
    assert set(by_ben[1:]) == {"connected"}

    await until(lambda: not ladder.players["ben"].chairs)
    ladder.players["ben"].leaving = True
    ladder.leaves("ben")
    await played(ladder, 6)
    assert labels(ladder)[-1]["ben"] == "v1"
    acts = [noted.text for noted in ladder.book.acts if noted.what == "version"]
    assert acts.count("ben v1 is in play") == 1, "the same version is no new one"


async def test_with_either_an_owner_takes_part_once_by_whatever_name(ladder: FakeHost) -> None:
    ladder.takes_submissions(ann=11)
    ladder.come("ann/two", "eve")
    await begun(ladder, Take.EITHER)
    await played(ladder, 4)

    assert {name for match in labels(ladder) for name in match} == {"ann/two", "eve"}

    ladder.players["ann/two"].leaving = True
    await until(lambda: not ladder.players["ann/two"].chairs)
    ladder.leaves("ann/two")
    before = len(labels(ladder))
    await played(ladder, 4)
    assert {name for match in labels(ladder)[before + 1 :] for name in match} == {"ann", "eve"}


async def test_a_ladder_of_connected_bots_takes_no_versions(ladder: FakeHost) -> None:
    ladder.takes_submissions(ann=11, ben=21)
    competition = await begun(ladder, Take.CONNECTED)
    await a_while()

    assert not competition.arbiter.tables


async def test_J3_who_does_not_start_loses_that_match_and_rests(ladder: FakeHost) -> None:
    ladder.takes_submissions(ann=11, ben=21)
    ladder.pool.failures["ben"] = CRASH
    competition = await begun(ladder)
    await until(lambda: ladder.book.rows)

    offences = {(verdict.bot, verdict.kind) for verdict in competition.ledger.verdicts}
    assert offences == {("ben", Ending.CRASH)}
    assert competition.arbiter.bots.rests_s("ben") > 0
    assert not competition.arbiter.tables


async def test_processes_of_a_version_end_when_nobody_needs_it_any_more(tmp_path: Path) -> None:
    service, pool = FakeVersionService(ann=11, ben=21), FakeSeatPool(cast(Any, None))
    with Store(tmp_path / "arena.db") as store:
        arena = LiveArena(store)
    arena.take_submissions(cast(Any, service), cast(Any, pool), 1)
    plan = SimpleNamespace(versions={"ann": 11, "ben": 21}, form=Form.ROUND_ROBIN)
    run: Any = SimpleNamespace(plan=plan, rest=0.0, versions_changed=lambda: None)
    run.arbiter = SimpleNamespace(playing=0)
    arena.here.competitions.append(run)
    service.plays("ann", 12)
    assert pool.needed == {11, 12, 21}, "the run plays it to its end"

    arena.here.competitions.clear()
    service.plays("ann", 12)
    assert pool.needed == {12, 21}
