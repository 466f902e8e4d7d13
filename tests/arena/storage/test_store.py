from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from msgspec.structs import replace

from arena.formats.schedule import RankingPlace
from arena.formats.spec import Form, Plan, RelaunchSpec
from arena.games.catalogue import GAMES
from arena.games.match import MatchResult, Result
from arena.games.replay import replay
from arena.games.statistics import UnitSums
from arena.records.document import sealed
from arena.storage import schema as opening
from arena.storage.models import VERSION, MatchSums, VersionChange
from arena.storage.reader import document_of
from arena.storage.schema import MATCHES, META, ROSTER, changing, open_database
from arena.storage.store import Act, CompetitionRow, CompetitionState, MatchRow, Store, new_id
from arena.storage.writer import Backlog, Writer
from protocol.errors import ArenaError, StoreFailed, UsageError
from protocol.messages import Ending, Limits, Termination, Verdict
from tests.support.databases import Server, anybody, rows
from tests.support.needs import skip_without
from tests.support.written_competition import play

VERDICT = Verdict(
    kind=Ending.ILLEGAL,
    match="m-2",
    game="ace_king_queen",
    bot="ben",
    seat=1,
    text="seat 2 answered 'raise' to open; legal: bet, check",
    asked='{"kind":"open","round":2,"card":"K"}',
    legal="bet, check",
    got="'raise'",
    taken_ms=1.5,
    bank_ms=10_000,
    limits=Limits(),
)

RESULT = play(hands=4)


def ended(termination: Termination) -> MatchResult:
    """That match with another end."""
    return MatchResult(RESULT.scores, RESULT.points, termination, record=RESULT.record)


VOID = ended(Termination(Ending.VOID))
PLAN = Plan(
    game="ace_king_queen", form=Form.ROUND_ROBIN, settings={"hands": 4}, players=("ann", "ben")
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """For tests of files alone; all others take `database`, which is on PostgreSQL too."""
    return tmp_path / "arena.db"


def start(store: Store, competition: str | None = None, **changes: Any) -> str:
    competition = competition or new_id("ace_king_queen")
    plan = replace(PLAN, **changes)
    store.competition_started(competition, plan, 100.5)
    return competition


def finish_match(
    store: Store,
    competition: str,
    match: str,
    pairing: int | None = None,
    result: MatchResult = RESULT,
    **more: Any,
) -> None:
    """Write a match, of a pairing of its own unless one is given."""
    if pairing is None:
        pairing = int.from_bytes(hashlib.sha256(match.encode()).digest()[:3])
    players = ("ann", "ben")
    store.match_finished(competition, pairing, match, players, result, 101.0, 102.0, **more)


def act(what: str, **more: Any) -> Act:
    return Act(at=150.25, who="prof", what=what, **more)


# --- round trips ---


FULL_PLAN = Plan(
    game="high_low",
    form=Form.ELIMINATION,
    settings={"max_shuffles": 1, "gap": 7},
    players=("ann", "Łukasz ♠"),
    matches=3,
    with_itself=True,
    limits=Limits(decision_ms=7),
    wait_s=12.5,
    pause_s=0.5,
    teams={"ann": "red"},
    house=("Ada",),
    seed="00ff",
    run="monday",
    due_at=99.5,
    bots=(RelaunchSpec(name="ann", words=("python3", "ann.py"), folder="/home/ann"),),
)
UNITS = UnitSums(3, (10.0, -10.5), (140.0, 140.25))
RANKING = (
    RankingPlace(rank=1, names=("ann",), stage=2),
    RankingPlace(rank=2, names=("ben", "cem"), stage=1, offence=True),
)


def summed(units: UnitSums | None = UNITS) -> MatchResult:
    return replace(RESULT, units=units)


def of_versions(*versions: str) -> MatchResult:
    record = replace(RESULT.record, versions=versions)
    return replace(RESULT, record=record)


ENDED: list[tuple[MatchResult, tuple[str | None, ...]]] = [
    *((RESULT, ()), (VOID, ()), (summed(), ())),
    (ended(Termination(VERDICT.kind, VERDICT.seat, VERDICT.text)), ()),
    (of_versions("v3", "connected"), ("v3", "connected")),
    (of_versions("", "v1"), (None, "v1")),
]
"""How matches end, and the versions that are read of them."""


class Model:
    """What is in a store, in dicts and lists; whatever it does, it does to both."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self.random = random.Random(seed)
        self.rows: dict[str, CompetitionRow] = {}
        self.matches: list[MatchRow] = []
        self.records: dict[str, bytes] = {}
        self.acts: list[Act] = []
        self.verdicts: list[tuple[str, Verdict]] = []
        self.changes: list[tuple[str, VersionChange]] = []
        self.open_pairings: list[int] = []

    def any_competition(self) -> CompetitionRow:
        return self.random.choice([*self.rows.values()])

    def act(self, what: str, **more: Any) -> Act:
        self.acts.append(Act(at=self.random.random(), who="prof", what=what, text="why", **more))
        return self.acts[-1]

    def starts(self) -> None:
        row = CompetitionRow(
            id=f"c-{len(self.rows)}",
            plan=self.random.choice((PLAN, FULL_PLAN)),
            state=CompetitionState.RUNNING,
            revision=0,
            started_at=self.random.random(),
            finished_at=None,
            ranking=(),
        )
        self.rows[row.id] = row
        self.store.competition_started(row.id, row.plan, row.started_at)

    def plays(self) -> None:
        competition, number = self.any_competition().id, len(self.matches) + 1
        result, versions = self.random.choice(ENDED)
        is_offence, is_void = result.termination.is_offence, result is VOID
        verdict = replace(VERDICT, match=f"m-{number}") if is_offence else None
        pairing = self.open_pairings.pop() if self.open_pairings else number
        self.open_pairings += [pairing] * is_void
        played = MatchRow(
            number=number,
            id=f"m-{number}",
            competition=competition,
            pairing=pairing,
            counts=not is_void,
            game="ace_king_queen",
            players=("ann", "ben"),
            result=Result(result.scores, result.points, result.termination),
            started_at=101,
            finished_at=102,
            digest="",
            sums=MatchSums(result.units),
            versions=versions,
        )
        self.matches.append(played)
        self.records[played.id] = result.record.to_json()
        finish_match(self.store, competition, played.id, pairing, result, verdict=verdict)
        if verdict is not None:
            self.verdicts.append((competition, verdict))

    def has_one_of_before(self) -> None:
        """An arena of before has written a match, and its record as it is."""
        if self.matches:
            match = self.random.choice(self.matches).id
            self.store.flush(30.0)
            plain = MATCHES.update().where(MATCHES.c.id == match)
            with changing(self.store.engine) as connection:
                connection.execute(plain.values(record=self.records[match]))

    def takes_back(self) -> None:
        if counted := [played for played in self.matches if played.counts]:
            played = self.random.choice(counted)
            self.matches[played.number - 1] = replace(played, counts=False)
            row = self.rows[played.competition]
            self.rows[row.id] = replace(row, revision=row.revision + 1)
            void = self.act("void", competition=row.id, match=played.id)
            self.store.taken_back(row.id, played.id, void)

    def pauses_or_goes_on(self) -> None:
        row = self.any_competition()
        state = self.random.choice((CompetitionState.PAUSED, CompetitionState.RUNNING))
        self.rows[row.id] = replace(row, state=state, finished_at=None, ranking=())
        self.store.state_changed(row.id, state, self.act("pause", competition=row.id))

    def ends(self) -> None:
        row = self.any_competition()
        state = self.random.choice((CompetitionState.FINISHED, CompetitionState.STOPPED))
        over = replace(row, state=state, finished_at=200.0, ranking=RANKING)
        self.rows[row.id] = over
        stop = self.act("stop", competition=row.id) if state == "stopped" else None
        self.store.competition_finished(row.id, 200.0, RANKING, state, stop)

    def notes(self) -> None:
        competition = self.random.choice((None, self.any_competition().id))
        played = self.random.choice((None, *self.matches))
        match = played.id if played else None
        what = self.random.choice(("flag", VERSION))
        self.store.acted(self.act(what, competition=competition, match=match, bot="ann"))
        if what == VERSION and competition is not None:
            change = VersionChange("ann", match, played.number if played else 0)
            self.changes.append((competition, change))

    def is_what_is_stored(self) -> None:
        store = self.store
        store.flush(30.0)
        by_start = sorted(self.rows.values(), key=lambda row: row.started_at)
        assert store.competitions() == tuple(by_start)
        assert store.actions() == tuple(self.acts)
        assert store.verdicts() == tuple(verdict for _, verdict in self.verdicts)
        for row in self.rows.values():
            mine = [played for played in self.matches if played.competition == row.id]
            counted = [played for played in mine if played.counts]
            middle = mine[len(mine) // 2].number if mine else 0
            assert store.competition(row.id) == row
            assert unsealed(store.matches(row.id)) == mine
            assert unsealed(store.results(row.id)) == counted
            assert unsealed(store.results(row.id, middle)) == [
                played for played in counted if played.number > middle
            ]
            assert unsealed(store.latest(row.id, 3)) == mine[:-4:-1]
            assert unsealed(played for played, _ in store.sealed_matches(row.id)) == mine
            for_it = (self.verdicts, self.changes)
            verdicts, changes = ([one for of, one in what if of == row.id] for what in for_it)
            assert store.verdicts(row.id) == tuple(verdicts)
            assert store.version_changes(row.id) == tuple(changes)
            assert store.actions(row.id) == tuple(a for a in self.acts if a.competition == row.id)
        assert unsealed(store.played(played.id) for played in self.matches) == self.matches
        assert [played.id for played, _ in store.sealed_matches()] == [*self.records]
        for played, record in store.sealed_matches():
            assert record == store.stored(played.id) == self.records[played.id]
            assert sealed(document_of(played, record)) == played.digest


def unsealed(matches: Iterable[MatchRow]) -> list[MatchRow]:
    return [replace(played, digest="") for played in matches]


@pytest.mark.parametrize("seed", range(2))
def test_J5_what_was_put_in_comes_out_again(
    database: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it was, in the order of writing; also once the store was opened again.

    What is too much for one transaction goes into the next without a pause.
    """
    monkeypatch.setattr("arena.storage.reader._BATCH", 4)
    monkeypatch.setattr("arena.storage.writer.PAUSE_S", 3_600.0)
    monkeypatch.setattr("arena.storage.writer.GROUP", 10)
    with Store(database) as store:
        model = Model(store, seed)
        model.starts()
        steps = [model.starts, model.pauses_or_goes_on, model.ends, model.takes_back, model.notes]
        for number in range(90):
            model.random.choice((*steps, *[model.plays] * 5))()
            if number % 30 == 0:
                model.has_one_of_before()
                model.is_what_is_stored()
        assert any(played.counts is False for played in model.matches)
        assert model.verdicts
        assert model.changes
    with Store(database) as model.store:
        model.plays()
        model.is_what_is_stored()


def test_a_new_id_says_the_game_and_is_another_every_time() -> None:
    first, second = new_id("ace_king_queen"), new_id("ace_king_queen")

    assert first != second
    assert first.startswith("akq-")
    assert len(first) == len("akq-3f2a1c9e")
    assert new_id("gin_rummy").startswith("gin-")


def test_an_arena_keeps_its_name_on_the_bus(database: str) -> None:
    with Store(database) as store:
        name = store.arena_id()
        assert name == store.arena_id()

    with Store(database) as store:
        assert store.arena_id() == name


def test_a_competition_is_found_by_id_by_its_run_and_by_how_it_begins(store: Store) -> None:
    for text in ("", "akq"):
        with pytest.raises(UsageError, match="expected the id of a competition"):
            store.find(text)
    for started_at, competition, run in (
        (1.0, "akq-11", "monday"),
        (2.0, "akq-12", "monday"),
        (3.0, "akq-1", ""),
        (4.0, "gin-2", "akq-12"),
    ):
        plan = replace(PLAN, run=run)
        store.competition_started(competition, plan, started_at)
    store.flush()

    found = {text: store.find(text).id for text in ("akq-11", "akq-12", "monday", "akq-1", "g")}
    assert found == {
        "akq-11": "akq-11",
        "akq-12": "akq-12",  # an id is one before it is the name of a run
        "monday": "akq-12",  # the latest
        "akq-1": "akq-1",
        "g": "gin-2",
    }
    with pytest.raises(UsageError, match="got 'akq', which may be akq-11 or akq-12"):
        store.find("akq")
    with pytest.raises(UsageError, match=r"name of its run, got 'tuesday'$"):
        store.find("tuesday")
    with pytest.raises(UsageError, match=r"id of a competition in .*, got 'akq'"):
        store.competition("akq")


# --- what counts ---


def test_changes_take_place_in_the_order_in_which_they_were_put_in(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowWriter(store, monkeypatch)
    competition = start(store)
    assert slow.started.wait(10)
    for number in range(3):  # each counts until it is taken back: all in one group
        finish_match(store, competition, f"m-{number}", 5)
        if number < 2:
            store.taken_back(competition, f"m-{number}", act("void"))
    slow.release.set()
    store.flush()

    assert slow.groups == [1, 5]
    assert [played.counts for played in store.matches(competition)] == [False, False, True]
    assert store.competition(competition).revision == 2


def test_a_pairing_never_counts_twice(database: str) -> None:
    store = Store(database)
    competition = start(store)
    finish_match(store, competition, "m-1", 3)
    finish_match(store, start(store), "m-2", 3)  # of another competition
    store.flush()
    finish_match(store, competition, "m-3", 3)

    with pytest.raises(StoreFailed, match=r"(?i)unique constraint") as caught:
        store.close()
    assert "\n" not in str(caught.value)
    with Store(database, create=False) as again:
        assert [played.id for played in again.matches(competition)] == ["m-1"]
    assert rows(database, "SELECT count(*) FROM seats") == [(4,)], "of m-3 nothing is left"


# --- records and seals ---


@pytest.mark.parametrize("game", GAMES)
def test_J6_a_record_from_the_database_replays_to_the_same_result(
    store: Store, database: str, game: str
) -> None:
    result = play(game, 1, **GAMES[game].rounds(4))
    players = ("ann", "ben", "cem", "dan")[: len(result.scores)]
    competition = start(store, game=game, players=players)
    store.match_finished(competition, 0, "m", players, result, 0.0, 1.0)
    store.flush()

    record = store.record("m")
    assert record.to_json() == result.record.to_json()
    assert rows(database, "SELECT length(record) FROM matches") < [(len(record.to_json()),)]
    assert replay(record) == replay(result.record) == result


def test_an_unknown_match_has_no_record(store: Store) -> None:
    for read in (store.record, store.played):
        with pytest.raises(UsageError, match=r"id of a match in .*, got 'm-9'"):
            read("m-9")


def test_a_seal_is_over_all_that_is_stored(store: Store) -> None:
    competition = start(store)
    finish_match(store, competition, "m-1", 7)
    store.flush()

    # As any other program would do it.
    end = RESULT.termination
    fields = [
        *("m-1", competition, 7, ["ann", "ben"], RESULT.scores, RESULT.points),
        *(end.kind, end.seat, end.text, 101.0, 102.0),
    ]
    text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
    sealed = hashlib.sha256(text.encode() + b"\n" + RESULT.record.to_json())
    assert store.played("m-1").digest == sealed.hexdigest()


# --- durability ---


def test_what_comes_soon_after_a_commit_shares_the_next_and_a_flush_waits_for_no_pause(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.storage.writer.PAUSE_S", 3_600.0)
    with Store(database) as store:
        commits: list[object] = []
        sa.event.listen(store.engine, "commit", commits.append)
        competition = start(store)
        store.flush(30.0)
        commits.clear()
        for number in range(20):
            finish_match(store, competition, f"m-{number}")
            while not store._writer._queue.empty():  # the writer has taken it, and waits
                time.sleep(0)
            finish_match(store, competition, f"n-{number}")
            store.flush(30.0)

        assert len(commits) == 20
        assert rows(database, "SELECT count(*) FROM matches") == [(40,)]

        finish_match(store, competition, "m-last")

    assert rows(database, "SELECT count(*) FROM matches") == [(41,)]


def test_a_flush_during_a_commit_waits_for_no_pause(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.storage.writer.PAUSE_S", 3_600.0)
    with Store(database) as store:
        competition = start(store)
        store.flush(30.0)
        committing, goes_on = threading.Event(), threading.Event()

        def held(_: object) -> None:
            committing.set()
            goes_on.wait(30.0)

        sa.event.listen(store.engine, "commit", held)
        finish_match(store, competition, "m-1")
        first = store._writer.barrier()
        committing.wait(30.0)
        finish_match(store, competition, "m-2")
        second = store._writer.barrier()
        goes_on.set()

        first.result(30.0)
        second.result(30.0)
    assert rows(database, "SELECT count(*) FROM matches") == [(2,)]


def test_closing_writes_what_is_left_and_takes_nothing_more(database: str) -> None:
    store = Store(database)
    finish_match(store, start(store), "m-1")
    store.close()
    store.close()

    assert rows(database, "SELECT id FROM matches") == [("m-1",)]
    with pytest.raises(UsageError, match=r"the database .* is closed"):
        start(store)


def test_the_file_is_in_wal_mode_and_commits_reach_the_disk(file: Path) -> None:
    with Store(file) as store, store.engine.connect() as connection:
        full = 2
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == full
    assert rows(file, "PRAGMA journal_mode") == [("wal",)]


# --- databases of before ---


def columns(where: str, table: str) -> list[str]:
    engine = sa.create_engine(where if "://" in where else f"sqlite:///{where}")
    try:
        return [column["name"] for column in sa.inspect(engine).get_columns(table)]
    finally:
        engine.dispose()


Lack = tuple[str, str, dict[str, Any]]
LATER: list[Lack] = [("matches", "sums", {"sums": None}), ("seats", "version", {"versions": ()})]
"""A column that came later, and what a match has without it."""


@pytest.mark.parametrize("lacks", [LATER[:1], LATER[1:], LATER])
def test_a_database_of_before_is_read_and_gets_what_it_lacks(
    database: str, lacks: list[Lack]
) -> None:
    result = replace(of_versions("v3", "v1"), units=UNITS)
    with Store(database) as store:
        competition = start(store)
        finish_match(store, competition, "m-1", result=result)
        store.flush()
        [whole] = store.results(competition)
    bare = whole
    rows(database, "UPDATE meta SET value = '2' WHERE key = 'schema'")
    for table, column, without in lacks:
        rows(database, f"ALTER TABLE {table} DROP COLUMN {column}")
        bare = replace(bare, **without)
    before = [columns(database, table) for table, _, _ in lacks]

    with Store(database, create=False) as store:
        [(old, record)] = store.sealed_matches(competition)
        assert (old, record) == (bare, result.record.to_json())
        assert store.results(competition) == store.latest(competition, 9) == (old,)
        assert store.played("m-1") == old
    assert [columns(database, table) for table, _, _ in lacks] == before
    schema = "SELECT value FROM meta WHERE key = 'schema'"
    assert rows(database, schema) == [("2",)]
    for number in (2, 3):  # once more does nothing
        with Store(database, exclusive=True) as store:
            finish_match(store, competition, f"m-{number}", result=result)
            store.flush()
            first, *_, last = store.results(competition)
            assert (first, last.units, last.versions) == (old, UNITS, ("v3", "v1"))
    assert rows(database, schema) == [("3",)], "an arena of before cannot read what is new"
    now = [columns(database, table) for table, _, _ in lacks]
    assert now == [[*names, column] for names, (_, column, _) in zip(before, lacks, strict=True)]


def test_an_arena_that_is_refused_adds_nothing_to_a_database_of_before(database: str) -> None:
    Store(database).close()
    rows(database, "ALTER TABLE matches DROP COLUMN sums")
    engine, lock = open_database(database, create=False, exclusive=True)
    try:
        with pytest.raises(UsageError, match="is in use"):
            Store(database, exclusive=True)
    finally:
        assert lock is not None, "it is exclusive"
        lock.release()
        engine.dispose()

    assert "sums" not in columns(database, "matches")


class SlowWriter:
    """A writer whose first commit waits for `release`; `groups` are the numbers of changes."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.groups: list[int] = []
        self.started, self.release = threading.Event(), threading.Event()
        self._commit = store._writer._commit
        monkeypatch.setattr(store._writer, "_commit", self)

    def __call__(self, changes: list[Any]) -> None:
        self.groups.append(len(changes))
        self.started.set()
        assert self.release.wait(10)
        self._commit(changes)


def test_records_are_encoded_in_the_writers_thread(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    encode = type(RESULT.record).to_json

    def noted(record: Any) -> bytes:
        threads.append(threading.current_thread().name)
        return encode(record)

    monkeypatch.setattr(type(RESULT.record), "to_json", noted)
    finish_match(store, start(store), "m-1")
    store.flush()

    assert threads == ["writer"]


NO_RECORD = replace(RESULT, record=replace(RESULT.record, answers=(object(),)))


@pytest.mark.parametrize(
    ("competition", "result", "why"),
    [
        ("akq-1", NO_RECORD, "type object is unsupported"),
        ("no such competition", RESULT, r"(?i)foreign key"),
    ],
)
def test_what_cannot_be_written_is_a_failure_and_ends_no_thread(
    database: str, competition: str, result: MatchResult, why: str
) -> None:
    store = Store(database)
    start(store, "akq-1")
    finish_match(store, competition, "m-1", result=result)

    for call in (store.flush, store.close):
        with pytest.raises(StoreFailed, match=why):
            call()


def test_others_may_write_beside_the_store(store: Store, database: str) -> None:
    row = {"name": "ann", "token_hash": "00", "made_at": 1.0}
    with changing(store.engine) as connection:
        assert connection.execute(sa.select(ROSTER)).all() == []
        connection.execute(ROSTER.insert(), row)
        finish_match(store, start(store), "m-1")  # waits its turn, or does not need to
    store.flush()

    assert rows(database, "SELECT name FROM roster") == [("ann",)]
    assert rows(database, "SELECT id FROM matches") == [("m-1",)]


async def test_a_coroutine_waits_without_stopping_the_loop(store: Store) -> None:
    competition = start(store)
    finish_match(store, competition, "m-1")
    await asyncio.gather(store.flushed(), store.flushed())

    assert len(await asyncio.to_thread(store.matches, competition)) == 1


async def test_a_cancelled_wait_does_not_stop_the_writer(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    barriers: list[Future[None]] = []
    barrier = store._writer.barrier

    def noted() -> Future[None]:
        barriers.append(barrier())
        return barriers[-1]

    monkeypatch.setattr(store._writer, "barrier", noted)
    slow = SlowWriter(store, monkeypatch)
    start(store)
    waiting = asyncio.ensure_future(store.flushed())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert barriers[0].cancelled()
    slow.release.set()
    start(store)
    store.flush()

    assert len(store.competitions()) == 2


def test_readers_see_whole_matches_while_the_arena_writes(store: Store, database: str) -> None:
    competition = start(store)
    store.flush()
    done = threading.Event()

    def write() -> None:
        for number in range(100):
            finish_match(store, competition, f"m-{number}")
            store.flush()
        done.set()

    writing = threading.Thread(target=write)
    with Store(database, create=False) as reader:
        writing.start()
        seen = [0]
        while not done.is_set() or seen[-1] < 100:
            played = reader.matches(competition)
            assert all(match.players == ("ann", "ben") for match in played)
            seen.append(len(played))
            assert len(seen) < 100_000
    writing.join()

    assert seen == sorted(seen)


# --- refusals ---


def tables(*statements: str) -> Callable[[str], None]:
    def make(database: str) -> None:
        for statement in statements:
            rows(database, statement)

    return make


def of_schema(schema: str) -> Callable[[str], None]:
    def make(database: str) -> None:
        Store(database).close()
        rows(database, f"UPDATE meta SET value = '{schema}' WHERE key = 'schema'")

    return make


def everything(database: str) -> Any:
    """The whole content of a database."""
    if "://" not in database:
        return Path(database).read_bytes()
    names = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
    return [(name, rows(database, f"SELECT * FROM {name}")) for (name,) in rows(database, names)]


def test_two_who_open_one_that_is_not_there_make_it_once(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2)
    counts: list[int] = []
    prepare = opening._prepare

    def together(*args: Any, **options: Any) -> None:
        both.wait(10)  # both have found it empty
        prepare(*args, **options)

    def opened() -> None:
        with Store(empty_database) as store:
            counts.append(len(store.competitions()))

    monkeypatch.setattr(opening, "_prepare", together)
    threads = [threading.Thread(target=opened) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert counts == [0, 0]
    assert rows(empty_database, "SELECT count(*) FROM meta") == [(6,)]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (tables("CREATE TABLE songs (title INT)"), "has other tables: songs"),
        (tables("CREATE TABLE meta (title INT)"), "has other tables: meta"),
        (tables("CREATE TABLE meta (key VARCHAR, value VARCHAR)"), "has other tables: meta"),
        (of_schema("4"), "schema 3, .* has 4: open it with a newer Card Arena, or begin another"),
        (of_schema("1"), "schema 3, .* has 1: open it with an older Card Arena, or begin another"),
        (of_schema("two"), "has other tables: actions"),
    ],
)
@pytest.mark.parametrize("create", [True, False])
def test_what_is_no_arenas_is_refused_and_left_alone(
    empty_database: str, make: Callable[[str], None], text: str, create: bool
) -> None:
    make(empty_database)
    before = everything(empty_database)

    with pytest.raises(UsageError, match=text) as caught:
        Store(empty_database, create=create, exclusive=create)
    assert empty_database.removeprefix("postgresql+psycopg://arena@/")[:7] in str(caught.value)
    assert "\n" not in str(caught.value)
    assert everything(empty_database) == before


@pytest.mark.parametrize(
    ("where", "text"),
    [
        (":memory:", "expected a file"),
        ("sqlite://", "expected a file"),
        ("nosuch://host/base", r"postgresql\+psycopg://….*, got nosuch://host/base"),
        ("mysql://host/base", r"postgresql\+psycopg://….*, got mysql://host/base"),
        ("://", "cannot open the database at that address"),
        (str(Path(__file__).parent), "unable to open"),
    ],
)
def test_an_address_that_is_none_is_refused(where: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        Store(where)


@pytest.mark.parametrize(
    "where",
    [
        "nosuch://ann:secret@host/base",
        "postgresql+psycopg://ann:secret@/base?host=/nowhere",
        "postgresql+psycopg:///base?host=/nowhere&user=ann&password=secret",
    ],
)
def test_a_password_is_never_shown(where: str) -> None:
    with pytest.raises(UsageError) as caught:
        Store(where)

    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_J4_texts_may_hold_what_a_database_cannot(store: Store) -> None:
    text = "out\0of order"
    result = ended(Termination(Ending.CRASH, 0, text))
    verdict = replace(VERDICT, text=text)
    finish_match(store, start(store), "m-1", result=result, verdict=verdict)
    store.acted(act("flag", text=text))
    store.flush()

    told = "out\N{REPLACEMENT CHARACTER}of order"
    assert store.played("m-1").result.termination.text == told
    assert store.verdicts() == (verdict,)
    assert [act.text for act in store.actions()] == [told]


TALE = b"once upon a time " * 99


@pytest.mark.parametrize(
    ("content", "create", "text"),
    [
        (TALE, True, r"arena\.db: file is not a database$"),
        (TALE, False, r"arena\.db: file is not a database$"),
        (b"", False, "is empty"),  # looking on makes no arena of it
        (None, False, "found no file"),  # nor a file
    ],
)
def test_what_is_no_database_is_refused_and_left_alone(
    file: Path, content: bytes | None, create: bool, text: str
) -> None:
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(UsageError, match=text):
        Store(file, create=create, exclusive=create)
    assert [each.read_bytes() for each in file.parent.iterdir()] == [content] * (
        content is not None
    )


# --- failures ---


def test_J5_nothing_is_lost_if_somebody_makes_room_on_a_full_disk(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.storage.writer.RETRY_S", 0.01)
    store = Store(file)
    disk = {"pages": 40}
    sa.event.listen(
        store.engine,
        "checkout",
        lambda raw, *_: raw.execute(f"PRAGMA max_page_count = {disk['pages']}"),
    )
    competition = start(store)
    for number in range(300):
        finish_match(store, competition, f"m-{number}")
    kept = waits(store)
    disk["pages"] = 100_000
    store.flush()

    assert 0 < kept.results <= 300
    assert re.fullmatch(r"cannot write .*arena\.db: database or disk is full", kept.why)
    assert store.backlog == Backlog(0, 0.0, "")
    store.close()
    assert rows(file, "SELECT count(*) FROM matches") == [(300,)]


def waits(store: Store) -> Backlog:
    """What has not reached the disk, as soon as all of it has or a reason is known."""
    while (backlog := store.backlog).results and not backlog.why:
        time.sleep(0.001)
    return backlog


def test_a_commit_whose_reply_was_lost_is_not_made_twice(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.storage.writer.RETRY_S", 0.01)
    competition = start(store)
    finish_match(store, competition, "m-1")
    store.flush()
    dialect: Any = store.engine.dialect
    commit, left = dialect.do_commit, ["lost"]

    def cuts(connection: Any) -> None:
        commit(connection)
        if left:
            left.pop()
            raise dialect.dbapi.OperationalError("the connection was cut")

    monkeypatch.setattr(dialect, "do_commit", cuts)
    store.taken_back(competition, "m-1", act("void", competition=competition))
    finish_match(store, competition, "m-2")
    store.flush()

    assert not left
    assert [row.id for row in store.matches(competition)] == ["m-1", "m-2"]
    assert len(store.actions(competition)) == 1


def test_J5_nothing_is_lost_while_a_server_is_away(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.storage.writer.RETRY_S", 0.01)
    with Store(postgres.url(), exclusive=True) as store:
        competition = start(store)
        store.flush()
        postgres.stop()
        try:
            finish_match(store, competition, "m-1")
            kept = waits(store)
        finally:
            postgres.start()
        store.flush()

        assert kept.results == 1
        assert "cannot write the database postgresql" in kept.why
        assert [row.id for row in store.matches(competition)] == ["m-1"]


def test_what_cannot_be_written_is_reported_by_every_later_call(file: Path) -> None:
    store = Store(file)
    competition = start(store)
    finish_match(store, competition, "m-1")
    store.flush()
    rows(file, "DROP TABLE verdicts")

    def fill() -> None:
        finish_match(store, competition, "m-2", verdict=VERDICT)
        store.flush()

    lost = (
        r"cannot write the database .*arena\.db: no such table: verdicts; 1 match that was over is"
    )
    with pytest.raises(StoreFailed, match=lost) as caught:
        fill()
    assert isinstance(caught.value, ArenaError)
    for call in (
        lambda: start(store),
        lambda: store.acted(act("flag")),
        lambda: store.taken_back(competition, "m-1", act("void")),
        lambda: store.state_changed(competition, CompetitionState.PAUSED, act("pause")),
        lambda: finish_match(store, competition, "one more"),
        lambda: store.competition_finished(competition, 0.0),
        store.flush,
        lambda: asyncio.run(store.flushed()),
        store.close,
    ):
        with pytest.raises(StoreFailed, match=lost):
            call()


def test_whoever_waits_while_writing_fails_is_told(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()

    def fail(changes: list[Any]) -> None:
        assert release.wait(10)
        raise OSError("no space left on device")

    store = Store(file)
    monkeypatch.setattr(store._writer, "_commit", fail)
    start(store)
    barrier = store._writer.barrier()
    release.set()

    with pytest.raises(StoreFailed, match="no space left on device"):
        barrier.result(10)
    with pytest.raises(StoreFailed, match="no space left on device"):
        store.close()


class LostLock:
    """A lock that another arena has taken meanwhile."""

    def keep(self) -> None:
        raise StoreFailed("another arena has it")

    def release(self) -> None:
        """There is nothing to free."""


def test_nothing_is_written_without_the_lock(file: Path) -> None:
    engine, _ = opening.open_database(file, create=True)
    writer = Writer(engine, {"meta": META.insert()}, "arena.db", LostLock())
    writer.put((("meta", {"key": "x", "value": "y"}),))
    with pytest.raises(StoreFailed, match="another arena has it"):
        writer.barrier().result(timeout=10)
    with pytest.raises(StoreFailed, match="another arena has it"):
        writer.close()
    engine.dispose()

    assert rows(file, "SELECT * FROM meta WHERE key = 'x'") == []


SUMS = "UPDATE matches SET sums = '{}'"
UNREADABLE = [
    ("UPDATE matches SET kind = 'cold'", "matches", "match m-1 in .*'cold'"),
    ("UPDATE matches SET record = '{'", "record", "match m-1 in"),
    ("UPDATE matches SET record = substr(record, 1, 99)", "record", "match m-1 in"),
    (SUMS.format("{"), "matches", "the sums of match m-1 in"),
    (SUMS.format('{"units":{"count":"a"}}'), "matches", "the sums of match m-1 in"),
    (
        SUMS.format('{"units":{"count":1,"sums":[1],"squares":[1]}}'),
        *("matches", "the sums of match m-1 in"),
    ),
    ("UPDATE competitions SET plan = '{'", "competition", "competition akq-1 in"),
    ("UPDATE competitions SET state = 'x'", "competition", "competition akq-1 in"),
    ("UPDATE competitions SET ranking = '4'", "competition", "competition akq-1"),
    ("DROP TABLE verdicts", "verdicts", "the database"),
]


@pytest.mark.parametrize(("change", "read", "text"), UNREADABLE)
def test_what_cannot_be_understood_is_named(
    store: Store, database: str, change: str, read: str, text: str
) -> None:
    start(store, "akq-1")
    finish_match(store, "akq-1", "m-1")
    store.flush()
    rows(database, change)

    with pytest.raises(StoreFailed, match=f"cannot read {text}") as caught:
        getattr(store, read)("m-1" if read == "record" else "akq-1")
    assert "\n" not in str(caught.value)


# --- real disks, and other programs ---


def unharmed(file: Path, matches: int) -> None:
    """Look into a file, which with those beside it its owner may write again."""
    file.parent.chmod(0o755)
    for path in file.parent.iterdir():
        path.chmod(0o644)
    assert rows(file, "PRAGMA integrity_check") == [("ok",)]
    assert rows(file, "SELECT count(*) FROM matches") == [(matches,)]
    with Store(file) as store:
        assert len(list(store.sealed_matches())) == matches


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are others there")
@pytest.mark.parametrize("exclusive", [True, False])
def test_no_arena_opens_in_a_directory_that_cannot_be_written(
    public: Path, exclusive: bool
) -> None:
    public.chmod(0o555)

    with anybody(), pytest.raises(UsageError, match=r"arena\.db: ") as caught:
        Store(public / "arena.db", exclusive=exclusive)
    assert f"{public} cannot be written" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(public.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are others there")
@pytest.mark.parametrize("mode", [0o555, 0o777])
def test_a_file_that_cannot_be_written_is_read_and_not_opened(
    public: Path, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.storage.writer.CLOSING_S", 0.0)
    file = public / "arena.db"
    with Store(file) as store:
        finish_match(store, start(store), "m-1")
    file.chmod(0o444)
    public.chmod(mode)
    before = file.read_bytes()

    for exclusive in (True, False):
        with anybody(), pytest.raises(UsageError, match=r"arena\.db") as caught:
            Store(file, exclusive=exclusive)
        assert "\n" not in str(caught.value)
        assert file.read_bytes() == before
    with anybody(), Store(file, create=False) as store:
        assert store.played("m-1").players == ("ann", "ben")
        start(store)
        with pytest.raises(StoreFailed, match="readonly database"):
            store.close()
    unharmed(file, 1)


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A disk of one MiB.

    Not in pytest's folders: another run that clears them away cannot remove a mount point.
    """
    skip_without("root", "mount")
    folder = Path(tempfile.mkdtemp(prefix="disk-"))
    argv = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    subprocess.run(argv, check=True)
    try:
        yield folder
    finally:  # lazily, as a test that has failed may have left a file open
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


def test_a_full_disk_is_one_line_and_nothing_is_damaged(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.storage.writer.CLOSING_S", 0.0)
    file = small_disk / "arena.db"
    filler = small_disk / "filler"
    filler.write_bytes(bytes(300_000))
    store = Store(file, exclusive=True)
    competition = start(store)
    for durable in range(5000):
        finish_match(store, competition, f"m-{durable}", durable)
        if waits(store).why:
            break
    full = r"arena\.db: database or disk is full; 1 match that was over is lost$"
    with pytest.raises(StoreFailed, match=full):
        store.close()
    assert durable > 5
    filler.unlink()

    unharmed(file, durable)


def test_no_arena_opens_on_a_full_disk_and_nothing_is_damaged(small_disk: Path) -> None:
    file = small_disk / "arena.db"
    with Store(file) as store:
        finish_match(store, start(store), "m-1")
    filler = small_disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as rest:
        while rest.write(bytes(4096)):
            pass

    for where in (file, small_disk / "other.db"):
        with pytest.raises(UsageError, match=rf"{where}: .*(full|I/O|space)") as caught:
            Store(where, exclusive=True)
        assert "\n" not in str(caught.value)
    filler.unlink()
    unharmed(file, 1)


HOLDS = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
connection.execute("DELETE FROM matches WHERE 0")
print("held", flush=True)
sys.stdin.readline()
"""


@contextlib.contextmanager
def another_program_writes(file: Path) -> Iterator[None]:
    """Another program is in a transaction until the context ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None, "it was made with one"
        assert other.stdout.readline().startswith(b"held")
        try:
            yield
        finally:
            other.communicate(b"\n", timeout=10)


def test_a_file_that_another_program_writes_to_is_not_opened(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_BUSY_S", 0)
    with Store(file) as store:
        finish_match(store, start(store), "m-1")

    with another_program_writes(file):
        with pytest.raises(UsageError, match=r"arena\.db: database is locked") as caught:
            Store(file, exclusive=True)
        assert "\n" not in str(caught.value)
        with Store(file, create=False) as reader:  # nobody holds up who reads
            assert len(reader.competitions()) == 1
    unharmed(file, 1)


def test_J5_nothing_is_lost_while_another_program_writes(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.storage.writer.BUSY_S", 0)
    monkeypatch.setattr("arena.storage.writer.RETRY_S", 0.01)
    with Store(file) as store:
        competition = start(store)
        store.flush()
        with another_program_writes(file):
            finish_match(store, competition, "m-1")
            kept = waits(store)
        store.flush()

    assert kept.results == 1
    assert kept.why.endswith("arena.db: database is locked")
    unharmed(file, 1)


def test_J5_who_closes_a_locked_database_is_told_what_is_lost(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.storage.writer.CLOSING_S", 0.0)
    store = Store(file)
    competition = start(store)
    store.flush()
    lost = r"arena\.db: database is locked; 2 matches that were over are lost$"
    with another_program_writes(file):
        for match in ("m-1", "m-2"):
            finish_match(store, competition, match)
        with pytest.raises(StoreFailed, match=lost):
            store.close()
    unharmed(file, 0)
