from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from arena.formats.spec import plan_of
from arena.games.catalogue import GAMES
from arena.games.match import MatchResult
from arena.records.luck import luck_of
from arena.results import match_sums, workers
from arena.results.match_sums import Recomputed, next_sums, recompute
from arena.storage.models import MatchSums
from arena.storage.schema import MATCHES
from arena.storage.store import Store
from tests.support.databases import rows
from tests.support.written_competition import play

GAME = GAMES["ace_king_queen"]
SETTINGS = {"hands": 120}


def written(where: str, matches: int) -> tuple[MatchResult, ...]:
    """A database with this number of matches between ann and ben."""
    results = tuple(play(GAME.name, seed, **SETTINGS) for seed in range(matches))
    settings = GAME.vocabulary.read_settings(SETTINGS)
    with Store(where) as store:
        store.competition_started("akq-1", plan_of(GAME, settings, ("ann", "ben")), 0.0)
        for number, result in enumerate(results, start=1):
            match = f"m-{number}"
            store.match_finished("akq-1", number, match, ("ann", "ben"), result, 1.0, 2.0)
    return results


def expected(result: MatchResult) -> MatchSums:
    return MatchSums(result.units, luck_of(result.record).sums)


def sums(where: str) -> list[MatchSums | None]:
    with Store(where, create=False) as store:
        return [played.sums for played in store.matches("akq-1")]


def test_the_sums_of_a_database_of_before_are_those_that_an_arena_writes(database: str) -> None:
    results = written(database, 3)
    rows(database, "ALTER TABLE matches DROP COLUMN sums")
    assert sums(database) == [None] * 3

    with Store(database, exclusive=True) as store:
        assert match_sums.count(store) == 3
        assert recompute(store) == Recomputed(3, {})

    assert sums(database) == [expected(result) for result in results]
    assert all(result.units is not None and result.units.count == 2 for result in results)


def test_what_has_sums_is_left_alone_unless_all_are_made_again(database: str) -> None:
    results = written(database, 2)
    wrong = msgspec.json.encode(MatchSums(None, "unknown")).decode()
    rows(database, f"UPDATE matches SET sums = '{wrong}' WHERE id = 'm-1'")
    rows(database, "UPDATE matches SET sums = NULL WHERE id = 'm-2'")

    with Store(database, exclusive=True) as store:
        assert recompute(store) == Recomputed(1, {})
    assert sums(database) == [MatchSums(None, "unknown"), expected(results[1])]

    with Store(database, exclusive=True) as store:
        assert recompute(store, again=True) == Recomputed(2, {})
    assert sums(database) == [expected(result) for result in results]


def test_whoever_is_interrupted_goes_on_where_that_was(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = written(database, 5)
    rows(database, "UPDATE matches SET sums = NULL")
    monkeypatch.setattr(workers, "_CHUNK_MATCHES", 2)
    ticks = iter((None, None, KeyboardInterrupt()))

    def tick() -> None:
        if (pressed := next(ticks)) is not None:
            raise pressed

    with Store(database, exclusive=True) as store:
        assert len(next_sums(store, 0).rows) == 5  # of three chunks
        with pytest.raises(KeyboardInterrupt):
            recompute(store, tick=tick)
        assert match_sums.count(store) == 1  # two whole batches are written
        assert recompute(store) == Recomputed(1, {})

    assert sums(database) == [expected(result) for result in results]


def test_many_are_shared_out_to_processes(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    results = written(database, 6)
    rows(database, "UPDATE matches SET sums = NULL")
    for name, value in {"_CHUNK_MATCHES": 2, "_ALONE_BYTES": 1}.items():
        monkeypatch.setattr(workers, name, value)
    monkeypatch.setattr(workers, "usable_cores", lambda: 2)

    with Store(database, exclusive=True) as store:
        assert recompute(store) == Recomputed(6, {})

    assert sums(database) == [expected(result) for result in results]


def test_a_record_that_cannot_be_played_again_is_left_and_said(database: str) -> None:
    results = written(database, 3)
    answers = replace(results[0].record, answers=("fly",)).to_json()
    with Store(database) as store, store.engine.begin() as connection:
        table = MATCHES
        for match, record in (("m-1", answers), ("m-2", b"{")):
            update = table.update().where(table.c.id == match)
            connection.execute(update.values(record=record, sums=None))
    with Store(database, exclusive=True) as store:
        assert recompute(store).written == 1  # the third, whose luck was not measured yet

    with Store(database, exclusive=True) as store:
        done = recompute(store)

    assert done.written == 0
    assert [*done.left.values()] == [1, 1]
    first, second = done.left
    assert first.startswith('it cannot be played again: seat 1 answered "fly"')
    assert second.startswith("its record cannot be read: ")
