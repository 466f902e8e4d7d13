"""Whole databases: what is written fits, whatever is changed in one is said of the right match, and nothing else is."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from arena import checkers, examine
from arena.audit import Flaw
from arena.schedule import Pairing
from arena.store import Act, Store
from protocol.errors import StoreFailed, UsageError
from tests.arena.sample import Writing, plan, play, write

FLIPS = 300


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database as an arena leaves it."""
    return write(tmp_path_factory.mktemp("written") / "arena.db")


@pytest.fixture
def file(written: Path, tmp_path: Path) -> Path:
    """A copy, to be damaged."""
    return Path(shutil.copy(written, tmp_path / "copy.db"))


def flaws(file: Path, competition: str | None = None) -> list[Flaw]:
    with Store(file, create=False) as store:
        found = [
            flaw for one in examine.examine(store, competition) for flaw in one.flaws
        ]
        return [*found, *examine.loose_ends(store)]


def change(file: Path, *statements: str) -> None:
    """Write past the arena."""
    with closing(sqlite3.connect(file)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


# ---- What fits


def test_a_database_as_it_was_written_fits(written: Path) -> None:
    ticks: list[None] = []

    with Store(written, create=False) as store:
        found = list(examine.examine(store, tick=lambda: ticks.append(None)))

        assert examine.count(store) == len(ticks) == sum(one.matches for one in found)
        assert examine.count(store, found[0].competition) == found[0].matches

    assert len(found) == 5
    assert not any(one.flaws or one.notes for one in found)
    assert flaws(written) == []


def test_one_competition_alone(file: Path) -> None:
    change(file, "UPDATE seats SET score = score + 1 WHERE match = 'gin_rummy-1'")

    assert flaws(file, "blackjack-00000004") == []
    assert {flaw.match for flaw in flaws(file, "gin_rummy-00000001")} == {"gin_rummy-1"}
    with Store(file, create=False) as store, pytest.raises(UsageError):
        list(examine.examine(store, "none"))


def test_what_the_instructor_did_fits(tmp_path: Path) -> None:
    with Store(tmp_path / "arena.db") as store:
        writing = Writing(store, plan("three_card_poker"), "tcp-1")
        writing.to_the_end()
        act = Act(competition="tcp-1", at=9.0, who="eva", what="void", match="x")
        store.taken_back("tcp-1", "three_card_poker-2", act)
        again = Pairing(2, ("ben",))
        writing.finished(again, play("three_card_poker", 77), "again")

    assert flaws(tmp_path / "arena.db") == []


def test_many_matches_are_checked_in_several_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkers, "_ALONE_BYTES", 1)
    monkeypatch.setattr(checkers, "_CHUNK_MATCHES", 3)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    with Store(tmp_path / "arena.db") as store:
        Writing(store, plan("blackjack", matches=10), "b-1").to_the_end()
    change(
        tmp_path / "arena.db",
        "UPDATE seats SET score = 10000 WHERE match = 'blackjack-17'",
    )

    [flaw] = flaws(tmp_path / "arena.db")

    assert flaw.match == "blackjack-17"
    assert flaw.text.startswith("its score says 10000, the answers make ")


def test_matches_of_before_commitments_are_noted(file: Path) -> None:
    competition = "ace_king_queen-00000000"
    with Store(file) as store:
        writing = Writing(store, plan("ace_king_queen"), "old")
        for number in (3, 1, 2):  # they were not numbered then
            result = play("ace_king_queen", number)
            writing.finished(
                Pairing(number, ("ann", "cem")), _uncommitted(result), f"o-{number}"
            )
    with Store(file, create=False) as store:
        found = {one.competition: one for one in examine.examine(store)}

    assert found["old"].flaws == ()
    [note] = found["old"].notes
    assert note.startswith("3 matches without a commitment")
    assert found[competition].notes == ()


def test_one_match_without_a_commitment_among_others_is_none_of_the_arenas(
    tmp_path: Path,
) -> None:
    with Store(tmp_path / "arena.db") as store:
        writing = Writing(store, plan("three_card_poker"), "tcp-1")
        writing.finished(Pairing(1, ("ann",)), play("three_card_poker", 1), "m-1")
        writing.finished(
            Pairing(2, ("ben",)), _uncommitted(play("three_card_poker", 2)), "m-2"
        )

    assert [(flaw.match, flaw.text) for flaw in flaws(tmp_path / "arena.db")] == [
        ("m-2", "it was dealt without a commitment")
    ]


def _uncommitted(result: Any) -> Any:
    from msgspec.structs import replace

    return replace(result, record=replace(result.record, commitment=None))


# ---- One flipped bit

TARGETS = {
    "record": ("matches", "record", "id"),
    "digest": ("matches", "digest", "id"),
    "score": ("seats", "score", "match"),
    "points": ("seats", "points", "match"),
}


def _bits(connection: sqlite3.Connection, rng: random.Random) -> Iterator[str]:
    """Flip one bit somewhere, in one match; gives the match and puts it back when it is asked for the next."""
    while True:
        target = rng.choice([*TARGETS, "seed", "commitment", "answers"])
        table, column, key = TARGETS.get(target, TARGETS["record"])
        rows = connection.execute(f"SELECT rowid, {key}, {column} FROM {table}")
        rowid, match, value = rng.choice(rows.fetchall())
        update = f"UPDATE {table} SET {column} = ? WHERE rowid = ?"
        connection.execute(update, (_flipped(value, target, rng), rowid))
        connection.commit()
        yield match
        connection.execute(update, (value, rowid))
        connection.commit()


def _flipped(value: Any, target: str, rng: random.Random) -> Any:
    if isinstance(value, int):
        return value ^ 1 << rng.randrange(62)
    if isinstance(value, str):
        place = rng.randrange(len(value))
        return (
            value[:place]
            + chr(ord(value[place]) ^ 1 << rng.randrange(7))
            + value[place + 1 :]
        )
    data = bytearray(value)
    begin = max(0, value.find(b'"%s":' % target.encode()))
    end = len(data) if begin == 0 else min(len(data), begin + 80)
    data[rng.randrange(begin, end)] ^= 1 << rng.randrange(8)
    return bytes(data)


def test_whichever_bit_is_flipped_that_match_is_named(file: Path) -> None:
    rng = random.Random(20)
    with (
        closing(sqlite3.connect(file)) as connection,
        Store(file, create=False) as store,
    ):
        connection.execute("PRAGMA synchronous = OFF")
        bits = _bits(connection, rng)
        for _ in range(FLIPS):
            match = next(bits)
            competition = connection.execute(
                "SELECT competition FROM matches WHERE id = ?", (match,)
            ).fetchone()[0]
            [found] = examine.examine(store, competition)

            assert [flaw.match for flaw in found.flaws] == [match], found
        next(bits)

    assert flaws(file)  # the last one


# ---- Other damage


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE matches SET record = X'' WHERE id = '{}'",
        "UPDATE matches SET record = substr(record, 1, 40) WHERE id = '{}'",
        "UPDATE matches SET record = X'FF00FE' WHERE id = '{}'",
        "UPDATE matches SET record = 'a text' WHERE id = '{}'",
        "UPDATE matches SET record = zeroblob(100000) WHERE id = '{}'",
        "UPDATE matches SET game = 'poker' WHERE id = '{}'",
        "UPDATE matches SET kind = 'crash' WHERE id = '{}'",
        "UPDATE matches SET seat = 0 WHERE id = '{}'",
        "UPDATE matches SET text = 'so' WHERE id = '{}'",
        "UPDATE matches SET started_at = started_at + 1 WHERE id = '{}'",
        "UPDATE matches SET pairing = 3 WHERE id = '{}'",
        "UPDATE seats SET bot = 'zoe' WHERE match = '{}' AND seat = 0",
        "UPDATE seats SET score = 'three' WHERE match = '{}' AND seat = 1",
        "UPDATE seats SET seat = 3 WHERE match = '{}' AND seat = 1",
        "DELETE FROM seats WHERE match = '{}' AND seat = 1",
        "DELETE FROM seats WHERE match = '{}'",
        "INSERT INTO seats VALUES ('{}', 2, 'zoe', 0, 0)",
    ],
)
def test_a_damaged_match_is_named(file: Path, damage: str) -> None:
    match = "ace_king_queen-void"  # of another one, the competition would miss it

    change(file, damage.format(match))

    assert {flaw.match for flaw in flaws(file)} == {match}


def test_a_match_that_is_gone_is_missed(file: Path) -> None:
    change(file, "DELETE FROM matches WHERE id = 'ace_king_queen-1'")

    found = flaws(file)

    texts = {(flaw.match, flaw.text.partition(",")[0]) for flaw in found}
    assert texts == {
        (None, "pairing 1"),
        ("ace_king_queen-1", "its seats are there"),
    }


def test_a_competition_that_is_gone(file: Path) -> None:
    change(file, "DELETE FROM competitions WHERE game = 'blackjack'")

    found = flaws(file)

    assert len(found) == 4
    assert {flaw.text for flaw in found} == {"its competition is not there"}


def test_columns_that_say_otherwise_than_their_document(file: Path) -> None:
    change(
        file,
        "UPDATE competitions SET form = 'ladder' WHERE game = 'blackjack'",
        "UPDATE verdicts SET bot = 'zoe' WHERE match = 'gin_rummy-2'",
    )

    assert [(flaw.match, flaw.text) for flaw in flaws(file)] == [
        (None, "its row says ladder of blackjack, its plan league of blackjack"),
        ("gin_rummy-2", "the row of its verdict says otherwise than the evidence"),
    ]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE competitions SET plan = '{' WHERE game = 'blackjack'",
        "UPDATE competitions SET state = 'odd' WHERE game = 'blackjack'",
        "UPDATE competitions SET ranking = 'odd' WHERE game = 'blackjack'",
        "UPDATE competitions SET plan = CAST(X'FF' AS TEXT) WHERE game = 'blackjack'",
        "UPDATE matches SET kind = 'odd' WHERE id = 'blackjack-1'",
        "UPDATE matches SET text = CAST(X'FF' AS TEXT) WHERE id = 'blackjack-1'",
        "UPDATE verdicts SET evidence = '{}'",
        "DROP TABLE seats",
    ],
)
def test_what_cannot_be_read_is_a_line(file: Path, damage: str) -> None:
    change(file, damage)

    with pytest.raises(StoreFailed) as failed:
        flaws(file)

    assert "\n" not in str(failed.value)


def test_what_cannot_even_be_opened_is_a_line(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **options: Any) -> None:
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "sqlite said so")

    monkeypatch.setattr(examine, "Store", fail)

    with pytest.raises(StoreFailed, match="cannot read the database: UnicodeDecode"):
        examine.opened(str(file))


def test_a_competition_by_the_name_of_its_run(tmp_path: Path) -> None:
    with Store(tmp_path / "arena.db") as store:
        Writing(store, plan("blackjack", run="monday"), "b-1").to_the_end()
        store.flush()

        assert examine.named(store, "monday") == examine.named(store, "b-") == "b-1"
        with pytest.raises(UsageError):
            examine.named(store, "tuesday")
