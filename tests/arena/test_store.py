from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import arena
from arena import database
from arena.games import GAMES
from arena.match import MatchResult, replay
from arena.schedule import Placed
from arena.store import Competition, Played, Store
from bots.strategy import RandomMixin
from protocol.errors import ArenaError, StoreFailed, UsageError
from protocol.messages import Ending, Limits, Termination, Verdict

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

SHORT = {
    "ace_king_queen": {"hands": 4},
    "gin_rummy": {"max_rounds": 1},
    "high_low": {"max_shuffles": 1},
    "three_card_poker": {"rounds": 5},
    "blackjack": {"hands": 5},
}


def play(game: str = "ace_king_queen", seed: int = 1) -> MatchResult:
    strategies = [RandomMixin() for _ in range(GAMES[game].seats)]
    for number, strategy in enumerate(strategies):
        strategy.seed(f"{seed}:{number}")
    return arena.play(game, strategies, settings=SHORT[game], seed=seed)


RESULT = play()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "arena.db"


@pytest.fixture
def store(file: Path) -> Iterator[Store]:
    with Store(file) as store:
        yield store


def start(store: Store, players: tuple[str, ...] = ("ann", "ben")) -> str:
    return store.competition_started(
        "ace_king_queen", "round_robin", {"hands": 4}, players, 100.5
    )


def finish_match(store: Store, competition: str, match: str, **more: Any) -> None:
    store.match_finished(
        competition, match, ("ann", "ben"), RESULT, 101.0, 102.0, **more
    )


def rows(file: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(file)) as other:
        return other.execute(query).fetchall()


# --- round trips ---


def test_a_competition_comes_back_as_it_was_set_up(store: Store) -> None:
    competition = start(store)
    store.flush()

    assert store.competitions() == (
        Competition(
            id=competition,
            game="ace_king_queen",
            form="round_robin",
            settings={"hands": 4},
            players=("ann", "ben"),
            started_at=100.5,
            finished_at=None,
            ranking=(),
        ),
    )


def test_a_finished_competition_has_its_ranking(store: Store) -> None:
    ranking = (
        Placed(rank=1, names=("ann",), stage=2),
        Placed(rank=2, names=("ben", "cem"), stage=1, offence=True),
    )
    first, second = start(store), start(store)
    store.competition_finished(second, 200.0, ranking)
    store.flush()

    by_id = {one.id: one for one in store.competitions()}
    assert by_id[second].ranking == ranking
    assert by_id[second].finished_at == 200
    assert by_id[first].finished_at is None


def test_competitions_come_in_the_order_of_their_start(store: Store) -> None:
    for started_at in (3.0, 1.0, 2.0):
        store.competition_started("blackjack", "league", {}, ("ann",), started_at)
    store.flush()

    assert [one.started_at for one in store.competitions()] == [1, 2, 3]


def test_a_match_comes_back_by_seat(store: Store) -> None:
    competition = start(store)
    finish_match(store, competition, "m-1")
    store.flush()

    assert store.matches(competition) == (
        Played(
            id="m-1",
            competition=competition,
            game="ace_king_queen",
            players=("ann", "ben"),
            scores=RESULT.scores,
            points=RESULT.points,
            termination=RESULT.termination,
            started_at=101,
            finished_at=102,
        ),
    )


def test_matches_come_in_the_order_in_which_they_were_put_in(store: Store) -> None:
    competition, other = start(store), start(store)
    for match in "cab":
        finish_match(store, competition, match)
    finish_match(store, other, "d")
    store.flush()

    assert [played.id for played in store.matches(competition)] == ["c", "a", "b"]
    assert store.matches("no such competition") == ()


@pytest.mark.parametrize("game", GAMES)
def test_J6_a_record_from_the_database_replays_to_the_same_result(
    store: Store, game: str
) -> None:
    result = play(game)
    players = ("ann", "ben", "cem", "dan")[: len(result.scores)]
    competition = store.competition_started(game, "league", {}, players, 0.0)
    store.match_finished(competition, "m", players, result, 0.0, 1.0)
    store.flush()

    record = store.record("m")
    assert record.to_json() == result.record.to_json()
    assert replay(record) == replay(result.record) == result


def test_J4_a_verdict_comes_with_its_match(store: Store) -> None:
    ended = Termination(VERDICT.kind, VERDICT.seat, VERDICT.text)
    result = MatchResult(RESULT.scores, RESULT.points, ended, RESULT.record)
    competition, other = start(store), start(store)
    store.match_finished(
        competition, "m-2", ("ann", "ben"), result, 101.0, 102.0, VERDICT
    )
    store.flush()

    assert store.verdicts() == store.verdicts(competition) == (VERDICT,)
    assert store.verdicts(other) == ()
    assert store.matches(competition)[0].termination == ended


def test_J4_a_verdict_can_stand_alone(store: Store) -> None:
    store.verdict(start(store), VERDICT, 103.0)
    store.flush()

    assert store.verdicts() == (VERDICT,)


def test_an_unknown_match_has_no_record(store: Store) -> None:
    with pytest.raises(UsageError, match=r"id of a match in .*, got 'm-9'"):
        store.record("m-9")


# --- durability ---


def test_what_was_put_in_before_a_flush_is_there_for_others(
    store: Store, file: Path
) -> None:
    competition = start(store)
    for number in range(50):
        finish_match(store, competition, f"m-{number}")
    store.flush()

    assert rows(file, "SELECT count(*) FROM matches") == [(50,)]
    assert rows(file, "SELECT count(*) FROM seats") == [(100,)]


def test_closing_writes_what_is_left_and_may_be_repeated(file: Path) -> None:
    store = Store(file)
    finish_match(store, start(store), "m-1")
    store.close()
    store.close()

    assert rows(file, "SELECT id FROM matches") == [("m-1",)]


def test_a_closed_store_takes_nothing_more(file: Path) -> None:
    store = Store(file)
    store.close()

    with pytest.raises(UsageError, match=r"arena\.db is closed"):
        start(store)


def test_the_file_is_in_wal_mode_and_commits_reach_the_disk(
    store: Store, file: Path
) -> None:
    assert rows(file, "PRAGMA journal_mode") == [("wal",)]
    with store._engine.connect() as connection:
        full = 2
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == full


def test_an_arena_goes_on_with_its_file(file: Path) -> None:
    with Store(file) as store:
        first = start(store)
    with Store(str(file)) as store:
        finish_match(store, first, "m-1")
        store.flush()

        assert [played.id for played in store.matches(first)] == ["m-1"]


def test_many_changes_share_a_transaction(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits: list[int] = []
    started, release = threading.Event(), threading.Event()
    commit = store._writer._commit

    def slow(changes: list[Any]) -> None:
        commits.append(len(changes))
        started.set()
        assert release.wait(10)
        commit(changes)

    monkeypatch.setattr(store._writer, "_commit", slow)
    competition = start(store)
    assert started.wait(10)
    for number in range(20):
        finish_match(store, competition, f"m-{number}")
    release.set()
    store.flush()

    assert commits == [1, 20]


def test_a_coroutine_waits_without_stopping_the_loop(store: Store) -> None:
    async def scenario() -> int:
        competition = start(store)
        finish_match(store, competition, "m-1")
        await asyncio.gather(store.flushed(), store.flushed())
        return len(await asyncio.to_thread(store.matches, competition))

    assert asyncio.run(scenario()) == 1


def test_a_cancelled_wait_does_not_stop_the_writer(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    commit = store._writer._commit

    def slow(changes: list[Any]) -> None:
        assert release.wait(10)
        commit(changes)

    async def scenario() -> None:
        waiting = asyncio.ensure_future(store.flushed())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert barriers[0].cancelled()

    barriers: list[Future[None]] = []
    barrier = store._writer.barrier

    def noted() -> Future[None]:
        barriers.append(barrier())
        return barriers[-1]

    monkeypatch.setattr(store._writer, "barrier", noted)
    monkeypatch.setattr(store._writer, "_commit", slow)
    start(store)
    asyncio.run(scenario())
    release.set()
    start(store)
    store.flush()

    assert len(store.competitions()) == 2


def test_readers_see_whole_matches_while_the_arena_writes(
    store: Store, file: Path
) -> None:
    competition = start(store)
    store.flush()
    done = threading.Event()

    def write() -> None:
        for number in range(300):
            finish_match(store, competition, f"m-{number}")
            store.flush()
        done.set()

    writing = threading.Thread(target=write)
    with Store(file, create=False) as reader:
        writing.start()
        seen = [0]
        while not done.is_set() or seen[-1] < 300:
            played = reader.matches(competition)
            assert all(match.players == ("ann", "ben") for match in played)
            seen.append(len(played))
            assert len(seen) < 100_000
    writing.join()

    assert seen == sorted(seen)


# --- refusals ---


def tables(*statements: str) -> Callable[[Path], None]:
    def make(file: Path) -> None:
        with closing(sqlite3.connect(file)) as other:
            for statement in statements:
                other.execute(statement)
            other.commit()

    return make


def newer(file: Path) -> None:
    Store(file).close()
    tables("UPDATE meta SET value = '2' WHERE key = 'schema'")(file)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda file: file.write_bytes(b"once upon a time " * 99), "not a database"),
        (tables("CREATE TABLE songs (title)"), "has other tables: songs"),
        (tables("CREATE TABLE meta (title)"), "has other tables: meta"),
        (tables("CREATE TABLE meta (key, value)"), "has other tables: meta"),
        (newer, "expected a database of schema 1, .* has 2"),
    ],
)
@pytest.mark.parametrize("create", [True, False])
def test_what_is_no_arenas_is_refused_and_left_alone(
    file: Path, make: Callable[[Path], None], text: str, create: bool
) -> None:
    make(file)
    before = file.read_bytes()

    with pytest.raises(UsageError, match=text) as caught:
        Store(file, create=create)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("where", "text"),
    [
        (":memory:", "expected a file"),
        ("sqlite://", "expected a file"),
        ("nosuch://host/base", "nosuch://host/base: Can't load plugin"),
        ("://", "cannot open the database at that address"),
    ],
)
def test_an_address_that_is_none_is_refused(where: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        Store(where)


def test_a_password_is_never_shown() -> None:
    with pytest.raises(UsageError) as caught:
        Store("nosuch://ann:secret@host/base")

    assert "secret" not in str(caught.value)


def test_a_directory_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unable to open"):
        Store(tmp_path)


def test_looking_on_makes_no_file(file: Path) -> None:
    with pytest.raises(UsageError, match="found no file"):
        Store(file, create=False)
    assert not file.exists()


def test_looking_on_makes_no_arena_of_an_empty_file(file: Path) -> None:
    file.touch()

    with pytest.raises(UsageError, match="is empty"):
        Store(file, create=False)
    assert file.stat().st_size == 0


# --- failures ---


def test_J5_nothing_is_lost_if_somebody_makes_room_on_a_full_disk(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("arena.writer.RETRY_S", 0.01)
    store = Store(file)
    disk = {"pages": 40}
    sa.event.listen(
        store._engine,
        "checkout",
        lambda raw, *_: raw.execute(f"PRAGMA max_page_count = {disk['pages']}"),
    )
    tried = threading.Event()
    commit = store._writer._commit

    def trying(changes: list[Any]) -> None:
        try:
            commit(changes)
        except Exception:
            tried.set()
            raise

    monkeypatch.setattr(store._writer, "_commit", trying)
    competition = start(store)
    for number in range(300):
        finish_match(store, competition, f"m-{number}")
    assert tried.wait(10)
    disk["pages"] = 100_000
    store.flush()
    store.close()

    assert rows(file, "SELECT count(*) FROM matches") == [(300,)]
    assert "database or disk is full; trying again for 60 s" in caplog.text
    assert "Traceback" in caplog.text


def test_a_full_disk_is_reported_by_every_later_call(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.writer.PATIENCE_S", 0.0)
    set_up = database._set_up_sqlite

    def on_a_small_disk(connection: Any, record: object) -> None:
        set_up(connection, record)
        connection.execute("PRAGMA max_page_count = 40")

    monkeypatch.setattr(database, "_set_up_sqlite", on_a_small_disk)
    store = Store(file)
    competition = start(store)

    def fill() -> None:
        for number in range(2000):
            finish_match(store, competition, f"m-{number}")
        store.flush()

    full = r"cannot write the database .*arena\.db: database or disk is full"
    with pytest.raises(StoreFailed, match=full) as caught:
        fill()
    assert isinstance(caught.value, ArenaError)
    for call in (
        lambda: start(store),
        lambda: store.verdict(competition, VERDICT, 0.0),
        lambda: finish_match(store, competition, "one more"),
        lambda: store.competition_finished(competition, 0.0),
        store.flush,
        lambda: asyncio.run(store.flushed()),
        store.close,
    ):
        with pytest.raises(StoreFailed, match=full):
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


def test_a_failed_transaction_leaves_nothing_of_it(file: Path) -> None:
    store = Store(file)
    competition = start(store)
    finish_match(store, competition, "m-1")
    store.flush()
    finish_match(store, competition, "m-1")

    with pytest.raises(StoreFailed, match="UNIQUE constraint"):
        store.close()
    assert rows(file, "SELECT count(*) FROM seats") == [(2,)]


def test_a_match_of_no_competition_is_a_failure(file: Path) -> None:
    store = Store(file)
    finish_match(store, "no such competition", "m-1")

    with pytest.raises(StoreFailed, match="FOREIGN KEY"):
        store.close()


def test_a_damaged_database_cannot_be_read(store: Store, file: Path) -> None:
    tables("DROP TABLE verdicts")(file)

    with pytest.raises(StoreFailed, match="cannot read the database"):
        store.verdicts()
