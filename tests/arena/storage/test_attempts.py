"""The table of attempts, on both kinds of database."""

from __future__ import annotations

import asyncio

import pytest
import sqlalchemy as sa

from arena.storage.attempts import Attempts, AttemptState
from arena.storage.schema import changing
from arena.storage.store import Store
from protocol.errors import StoreFailed, UsageError
from protocol.messages import Ending, Termination
from tests.arena.storage.test_store import ended, finish_match, start
from tests.support.databases import rows
from tests.support.written_competition import attempt

VOID = ended(Termination(Ending.VOID))


@pytest.fixture
def attempts(store: Store) -> Attempts:
    return store.attempts


@pytest.fixture
def competition(store: Store) -> str:
    return start(store)


async def announced(store: Store, competition: str, count: int) -> Attempts:
    """The attempts of a store: this number, each of a pairing of its own."""
    for n in range(count):
        await store.attempts.announce(attempt(f"attempt-{n}", competition, pairing=n))
    return store.attempts


async def test_an_attempt_is_there_as_it_was_announced_at_first(
    attempts: Attempts, database: str
) -> None:
    await attempts.announce(attempt())
    assert rows(database, "SELECT id FROM attempts") == [("attempt-1",)], "it is durable"
    await attempts.announce(attempt(announced_at=2.0))  # again it does nothing

    assert attempts.get("attempt-1") == attempt()
    assert attempts.get("attempt-2") is None


@pytest.mark.parametrize("change", [{"worker": "south"}, {"job": "job-2"}, {"commitment": "d"}])
async def test_the_id_of_another_attempt_is_refused_and_the_store_goes_on(
    attempts: Attempts, change: dict[str, str]
) -> None:
    await attempts.announce(attempt())

    with pytest.raises(UsageError, match="fresh id for an attempt, attempt-1 is another one"):
        await attempts.announce(attempt(**change))

    await attempts.announce(attempt("attempt-2"))
    assert attempts.get("attempt-1") == attempt()


async def test_the_id_of_a_match_is_refused_and_the_store_goes_on(
    store: Store, competition: str
) -> None:
    finish_match(store, competition, "akq-match-1")

    with pytest.raises(UsageError, match="fresh id for an attempt, akq-match-1 is a match"):
        await store.attempts.announce(attempt("akq-match-1"))

    await store.attempts.announce(attempt())


@pytest.mark.parametrize(
    "name", ["../../etc", "short", "a.b.c.d.e", "a" * 81, "a b c d e", "a\0bcdefgh"]
)
async def test_what_cannot_name_a_match_is_refused(attempts: Attempts, name: str) -> None:
    with pytest.raises(UsageError, match="expected an id of 8 to 80 letters"):
        await attempts.announce(attempt(name))


async def test_a_thousand_at_once_share_a_few_commits(store: Store, competition: str) -> None:
    commits: list[object] = []
    sa.event.listen(store.engine, "commit", commits.append)

    many = [attempt(f"attempt-{n}", competition) for n in range(1000)]
    await asyncio.gather(*map(store.attempts.announce, many))

    assert len(commits) < 20
    assert {row.id for row in store.attempts.of(competition)} == {row.id for row in many}


async def test_a_match_of_an_attempt_has_the_result_of_its_pairing(
    store: Store, competition: str
) -> None:
    attempts = await announced(store, competition, 4)
    finish_match(store, competition, "attempt-0", 0)
    finish_match(store, competition, "attempt-1", 1, result=VOID)
    finish_match(store, competition, "played-here", 2)
    store.flush()

    assert [row.id for row in attempts.open_of(competition)] == ["attempt-3"]
    assert [attempts.is_recorded(f"attempt-{n}") for n in (1, 2)] == [True, False]


async def test_a_lost_attempt_may_still_have_a_result_and_a_void_one_not(
    store: Store, competition: str
) -> None:
    attempts = await announced(store, competition, 3)
    attempts.ended("attempt-1", AttemptState.LOST, "north is gone")
    attempts.ended("attempt-2", AttemptState.VOID, "no\0")
    attempts.ended("attempt-2", AttemptState.LOST, "north is gone")
    store.flush()

    assert [row.id for row in attempts.open_of(competition)] == ["attempt-0", "attempt-1"]
    told = [(row.id, row.state, row.why) for row in attempts.without_result(competition)]
    assert told == [
        ("attempt-2", AttemptState.VOID, "no\N{REPLACEMENT CHARACTER}"),
        ("attempt-1", AttemptState.LOST, "north is gone"),
    ]


async def test_a_lost_attempt_whose_result_came_late_is_not_without_one(
    store: Store, competition: str
) -> None:
    attempts = await announced(store, competition, 2)
    for n in range(2):
        attempts.ended(f"attempt-{n}", AttemptState.LOST, "north is gone")
    finish_match(store, competition, "attempt-0", 0)
    finish_match(store, competition, "attempt-1", 1, result=VOID)
    store.flush()

    assert [row.id for row in attempts.without_result()] == ["attempt-1"]


async def test_only_so_many_without_a_result_are_listed(store: Store, competition: str) -> None:
    attempts = await announced(store, competition, 3)
    for n in range(3):
        attempts.ended(f"attempt-{n}", AttemptState.VOID, "")
    store.flush()

    assert [row.id for row in attempts.without_result(most=2)] == ["attempt-2", "attempt-1"]
    assert attempts.without_result("another") == ()


def test_an_arena_keeps_its_name(database: str) -> None:
    with Store(database) as store:
        name = store.attempts.arena_id()
        assert name == store.attempts.arena_id()

    with Store(database) as store:
        assert store.attempts.arena_id() == name


async def test_an_older_database_has_no_attempts_until_an_arena_opens_it(database: str) -> None:
    Store(database).close()
    rows(database, "DROP TABLE attempts")

    with Store(database, create=False) as store:
        assert store.attempts.without_result() == ()
        assert store.attempts.get("attempt-1") is None
    with Store(database) as store:
        await store.attempts.announce(attempt())

        assert store.attempts.get("attempt-1") == attempt()


async def test_a_damaged_row_is_reported_in_one_line(store: Store) -> None:
    await store.attempts.announce(attempt())
    with changing(store.engine) as connection:
        connection.exec_driver_sql("UPDATE attempts SET state = 'odd'")

    with pytest.raises(StoreFailed, match="cannot read attempt attempt-1 in the database"):
        store.attempts.get("attempt-1")
