"""A whole arena and bots that connect by themselves: who they are, and what losing them costs."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
import stat
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
from websockets.exceptions import ConnectionClosed

from arena.formats.spec import Form, Take
from arena.results.audit_database import examine
from arena.storage.arena_contact import contact_file, find
from arena.storage.live_results import LiveResults
from arena.storage.models import Act
from arena.storage.roster import Roster
from arena.storage.roster_csv import Student
from arena.storage.store import Store
from arena.storage.tokens import Access
from protocol.messages import Done, Ending, Limits, Verdict
from tests.support.arena_in_memory import HostArena, in_host, plan_for
from tests.support.fake_submissions import FakeSeatPool, FakeVersionService

pytestmark = pytest.mark.virtual_time(limit_s=600, tick_s=0.1)

LIMITS = Limits()
GAMES = ("gin_rummy", "blackjack")


def no_processes() -> Any:
    """A pool whose processes never get ready."""
    pool = FakeSeatPool(cast(Any, None))
    pool.starts.clear()
    return pool


async def test_who_comes_back_in_other_letters_is_who_it_was(tmp_path: Path) -> None:
    async with in_host(tmp_path) as arena:
        arena.begin(plan_for("blackjack", ("Ann",), settings={"hands": 2}))
        for said in ("ANN", "ann"):
            async with arena.stranger(said) as bot:
                assert (await bot.hello())["bot"] == "Ann"
                assert (await arena.refuses("aNN"))[0] == "name"
                assert arena.host.here.count("blackjack") == 1
                await bot.say(type="goodbye")
                await bot.closed()
    async with in_host(tmp_path) as arena, arena.stranger("aNN") as bot:
        assert (await bot.hello())["bot"] == "Ann", "in a later arena, too"


async def test_who_administers_the_database_finds_the_arena_and_nobody_else_reads_how(
    tmp_path: Path,
) -> None:
    with Store(tmp_path / "arena.db") as store:
        roster, engine = Roster(store.engine), store.engine
        [ann] = roster.take([Student(name="ann")]).new
        async with in_host(tmp_path) as arena, arena.stranger("ann") as bot:
            file, contact = contact_file(engine), find(engine)
            assert file is not None
            assert contact is not None
            assert file in arena.host.hidden
            if sys.platform != "win32":
                assert stat.S_IMODE(file.stat().st_mode) == 0o600
            await bot.hello(token=ann.token)
            roster.revoke("ann")
            async with arena.stranger() as command:
                told = {"type": "instruct", "protocol": 1, "token": contact.token}
                await command.say(**told, action="status")
                await command.hears("done")
            assert await bot.refused() == ("token", "its token was revoked", 4001)
        assert find(engine) is None


async def test_of_two_changes_of_the_roster_at_once_the_later_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the first one takes longer to read."""
    async with in_host(tmp_path) as arena:
        roster, read = Roster(arena.store.engine), Roster.access
        [ann] = roster.take([Student(name="ann")]).new
        has_read, goes_on = threading.Event(), threading.Event()

        def slowly(each: Roster) -> Access:
            access = read(each)
            if not has_read.is_set():
                has_read.set()
                goes_on.wait(10)
            return access

        monkeypatch.setattr(Roster, "access", slowly)
        first = asyncio.create_task(arena.host.read_roster())
        await asyncio.to_thread(has_read.wait, 10)
        roster.revoke("ann")
        later = asyncio.create_task(arena.host.read_roster())
        await asyncio.sleep(1)
        goes_on.set()
        await asyncio.gather(first, later)

        assert (await arena.refuses("ann", token=ann.token))[0] == "token"


async def test_who_connects_beside_a_version_of_its_own_is_told_that_it_plays_instead() -> None:
    async with in_host() as arena:
        arena.host.take_submissions(cast(Any, FakeVersionService(ann=13)), no_processes(), 1)
        async with arena.stranger("ann/js") as ann, arena.stranger("ben") as ben:
            notes = [(await bot.hello(games=GAMES)).get("note") for bot in (ann, ben)]

    games = "blackjack, gin_rummy"
    text = f"where connected bots and submissions both play, it replaces your v3 ({games})"
    assert notes == [text, None]


async def test_who_gives_no_token_where_there_is_a_roster_is_told_for_whom_it_plays() -> None:
    async with in_host() as arena, arena.stranger("dan") as dan:
        arena.host.gateway.roster_changed(Access(names=frozenset({"ann"})))
        assert "for nobody on the roster" in (await dan.hello())["note"]


async def test_a_bot_of_a_game_that_no_competition_plays_is_told_so() -> None:
    async with in_host() as arena:
        arena.host.planned_games = lambda: {"gin_rummy", "high_low"}
        async with arena.stranger("ann") as ann, arena.stranger("ben") as ben:
            note = (await ann.hello(games=("blackjack",))).get("note")
            other = (await ben.hello(games=GAMES)).get("note")

        arena.begin(plan_for("ace_king_queen", ("ann", "ben")))
        await asyncio.sleep(1)  # it has begun, and waits for both
        async with arena.stranger("cem") as cem:
            third = (await cem.hello(games=("ace_king_queen",))).get("note")
        arena.host.planned_games = lambda: ()
        async with arena.stranger("dan") as dan:
            fourth = (await dan.hello(games=("high_low",))).get("note")

    assert third is None
    assert (fourth or "").startswith("no competition here plays high_low, only ace_king_queen: ")
    assert note == (
        "no competition here plays blackjack, only gin_rummy, high_low: "
        "the bot waits until somebody plays with it at the page"
    )
    assert other is None


async def test_who_plays_is_told_how_it_stands_and_not_who_has_a_version_there() -> None:
    async with in_host() as arena, arena.bot("ann") as ann, arena.bot("ben") as ben:
        arena.host.take_submissions(cast(Any, FakeVersionService(ann=13)), no_processes(), 1)
        plan = plan_for("ace_king_queen", ("ann", "ben"), take=Take.EITHER, versions={"ann": 13})
        competition = arena.host.compete(plan)
        playing = arena.begin(competition)
        await asyncio.sleep(1)  # it waits for a process
        competition.stop(Act(competition=competition.id, at=0.0, who="Eva", what="stop"))
        await playing
        told = await ben.hears("over")
        await ann.say(type="goodbye")
        heard = []
        with suppress(ConnectionClosed):
            while True:
                heard.append(await ann.hear())

    assert told["match"] == told["standing"]["competition"] == competition.id
    assert told["standing"]["text"] == "ace_king_queen was stopped · no match counts"
    assert heard == []


async def test_a_command_waits_until_the_arena_has_begun_but_not_for_long(tmp_path: Path) -> None:
    with Store(tmp_path / "arena.db") as store:
        token = Roster(store.engine).instructor()
    asked = {"type": "instruct", "protocol": 1, "token": token, "action": "status"}
    async with in_host(tmp_path, is_attended=True) as arena, arena.stranger() as prof:
        await prof.say(**asked)
        refused = await prof.hears("refused")
        await prof.say(**asked)
        await asyncio.sleep(4)
        arena.host.on_instruct = lambda message, who: Done(f"{message.action.value} by {who}")

        assert (await prof.hears("done"))["text"] == "status by instructor"
    assert refused["text"].startswith("expected an arena that has started its own bots; try again")


async def test_what_was_played_is_settled_before_a_competition_that_goes_on_has_begun() -> None:
    async with in_host() as arena:
        await arena.come("ann", "ben")
        plan = plan_for("ace_king_queen", ("ann", "ben"), matches=3, settings={"hands": 2})
        report = await arena.begin(plan)
        [row] = arena.store.competitions()
        again = arena.host.competition(arena.host.ledger_of(row))

    assert (report.played, again.settled) == (3, 3)


async def test_one_owner_with_many_names_does_not_hold_a_ladder_up() -> None:
    """Each of its bots takes a match and drops its connection."""
    names = itertools.count(1)

    async def ghosts(arena: HostArena) -> None:
        while True:
            async with arena.bot(f"eve/{next(names)}") as ghost:
                await ghost.hears("match")
                await ghost.vanish()

    async with in_host(limits=LIMITS) as arena:
        for _ in range(4):
            arena.beside(ghosts(arena))
        await arena.come("ann", "ben")
        plan = plan_for(
            "ace_king_queen",
            *(("ann", "ben"), Form.LADDER),
            settings={"hands": 2},
            limits=LIMITS,
            pause_s=1.0,
        )
        ladder = arena.host.compete(plan)
        playing = arena.begin(ladder)
        await asyncio.sleep(60)
        await arena.store.flushed()
        results = arena.store.results(ladder.id)
        met = Counter(set(match.players) == {"ann", "ben"} for match in results)
        ladder.close()
        await playing

    assert met[False] <= 6
    assert met[True] >= 20


async def dropping(folder: Path, forgive: int, *, drops: int, tables: int) -> str:
    """Play a league of ann, who loses her connection `drops` times amid all her matches; its id."""
    more: dict[str, Any] = {"limits": LIMITS, "forgive": forgive, "matches": 3 * tables}
    plan = plan_for("blackjack", ("ann",), settings={"hands": 2}, **more)
    async with in_host(folder, limits=LIMITS) as arena:
        competition = arena.host.compete(plan)
        playing = arena.begin(competition)
        for _ in range(drops):
            async with arena.bot("ann", tables=tables) as ann:
                asked = 0
                while asked < tables:
                    message = await ann.hear()
                    asked += message["type"] == "ask"
                    if message["type"] == "match":
                        await ann.say(type="ready", match=message["match"], nonce="n")
                await ann.vanish()
            await arena.until(lambda: "ann" not in arena.gateway.players)
        if not playing.done():
            await arena.come("ann", tables=tables)
        await playing
    return competition.id


def audited(folder: Path, competition: str) -> tuple[Any, tuple[Verdict, ...]]:
    """The only row of a league, and its verdicts; an audit finds no flaw in it."""
    with Store(folder / "arena.db", create=False) as store:
        results = LiveResults(store, competition)
        [row] = results.standings
        [run] = examine(store)
        assert run.flaws == ()
        return row, results.verdicts


async def test_J3_tables_on_one_lost_connection_are_one_event_and_the_bot_stays_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.referee.table_limit._FIRST", 64)  # at once, as it answers nothing
    row, verdicts = audited(tmp_path, await dropping(tmp_path, 1, drops=1, tables=64))

    assert (row.rank, row.played, row.forgiven) == (1, 192, 64)
    assert len(verdicts) == 64
    assert {(verdict.kind, verdict.forgiven) for verdict in verdicts} == {(Ending.DISCONNECT, True)}
    assert len({verdict.event for verdict in verdicts}) == 1


async def test_J3_who_drops_once_more_is_out_and_what_was_forgiven_is_struck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.referee.table_limit._FIRST", 8)
    row, verdicts = audited(tmp_path, await dropping(tmp_path, 1, drops=2, tables=8))

    assert (row.rank, row.played, row.forgiven) == (None, 0, 0)
    assert row.eliminated.kind is Ending.DISCONNECT
    assert [verdict.forgiven for verdict in verdicts] == [True] * 8 + [False]


async def test_J3_a_forged_event_is_found(tmp_path: Path) -> None:
    competition = await dropping(tmp_path, 2, drops=2, tables=1)
    with Store(tmp_path / "arena.db", create=False) as store:
        first, second = store.verdicts(competition)
    with sqlite3.connect(tmp_path / "arena.db") as database:
        database.execute(
            "UPDATE verdicts SET evidence = replace(evidence, ?, ?)", (second.event, first.event)
        )
    with Store(tmp_path / "arena.db", create=False) as store:
        [run] = examine(store)

    [flaw] = run.flaws
    assert flaw.match == second.match
    assert "its verdict is about the event" in flaw.text


async def test_processes_of_a_version_end_when_nobody_needs_it_any_more() -> None:
    service, pool = FakeVersionService(ann=11, ben=21), no_processes()
    async with in_host() as arena:
        arena.host.take_submissions(cast(Any, service), pool, 1)
        versions = {"ann": 11, "ben": 21}
        plan = plan_for("ace_king_queen", ("ann", "ben"), take=Take.SUBMITTED, versions=versions)
        playing = arena.begin(competition := arena.host.compete(plan))
        await asyncio.sleep(1)
        service.plays("ann", 12)
        assert pool.needed == {11, 12, 21}, "the run plays it to its end"
        competition.stop(Act(competition=competition.id, at=0.0, who="Eva", what="stop"))
        await playing

    assert pool.needed == {12, 21}
