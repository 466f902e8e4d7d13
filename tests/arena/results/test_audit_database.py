"""The audit of whole databases: what was written fits, and each change is said of its match."""

from __future__ import annotations

import random
import shutil
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from arena.formats.formats import schedule_of
from arena.formats.schedule import Pairing
from arena.formats.spec import Form
from arena.games.match import MatchResult
from arena.results import audit_database, workers
from arena.results.audit import Flaw
from arena.storage import schema
from arena.storage.models import ARENA, VERSION
from arena.storage.store import Act, CompetitionState, Store
from protocol.errors import StoreFailed, UsageError
from protocol.messages import Ending, Termination
from tests.support.databases import rows
from tests.support.sample_database import SampleWriter, plan, play, void, write

FLIPS = 300


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database as an arena leaves it."""
    return write(tmp_path_factory.mktemp("written") / "arena.db")


@pytest.fixture
def file(written: Path, tmp_path: Path) -> Path:
    """A copy, to be damaged."""
    return Path(shutil.copy(written, tmp_path / "copy.db"))


def flaws(where: str | Path, competition: str | None = None) -> list[Flaw]:
    with Store(where, create=False) as store:
        audited = audit_database.examine(store, competition)
        found = [flaw for run in audited for flaw in run.flaws]
        return [*found, *audit_database.loose_ends(store)]


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
        found = list(audit_database.examine(store, tick=lambda: ticks.append(None)))

        assert audit_database.count(store) == len(ticks) == sum(one.matches for one in found)
        assert audit_database.count(store, found[0].competition) == found[0].matches

    assert len(found) == 5
    assert not any(one.flaws or one.notes for one in found)
    assert flaws(written) == []


def test_one_competition_alone(file: Path) -> None:
    change(file, "UPDATE seats SET score = score + 1 WHERE match = 'gin_rummy-1'")

    with Store(file, create=False) as store:
        ids = {row.plan.game: row.id for row in store.competitions()}
    assert flaws(file, ids["blackjack"]) == []
    assert {flaw.match for flaw in flaws(file, ids["gin_rummy"])} == {"gin_rummy-1"}
    with Store(file, create=False) as store, pytest.raises(UsageError):
        list(audit_database.examine(store, "none"))


def test_what_the_instructor_did_fits(tmp_path: Path) -> None:
    with Store(tmp_path / "arena.db") as store:
        writing = SampleWriter(store, plan("three_card_poker"), "tcp-1")
        writing.to_the_end()
        match = "three_card_poker-2"
        act = Act(competition="tcp-1", at=9.0, who="eva", what="void", match=match)
        store.taken_back("tcp-1", match, act)
        again = Pairing(2, ("ben",))
        writing.finished(again, play("three_card_poker", 77), "again")

    assert flaws(tmp_path / "arena.db") == []


def test_many_matches_are_checked_in_several_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_ALONE_BYTES", 1)
    monkeypatch.setattr(workers, "_CHUNK_MATCHES", 3)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    with Store(tmp_path / "arena.db") as store:
        SampleWriter(store, plan("blackjack", matches=10), "b-1").to_the_end()
    change(tmp_path / "arena.db", "UPDATE seats SET score = 10000 WHERE match = 'blackjack-17'")

    [flaw] = flaws(tmp_path / "arena.db")

    assert flaw.match == "blackjack-17"
    assert flaw.text.startswith("its score says 10000, the answers make ")


def test_one_match_without_a_commitment_among_others_is_none_of_the_arenas(tmp_path: Path) -> None:
    with Store(tmp_path / "arena.db") as store:
        writing = SampleWriter(store, plan("three_card_poker"), "tcp-1")
        writing.finished(Pairing(1, ("ann",)), play("three_card_poker", 1), "m-1")
        writing.finished(Pairing(2, ("ben",)), _uncommitted(play("three_card_poker", 2)), "m-2")

    assert [(flaw.match, flaw.text) for flaw in flaws(tmp_path / "arena.db")] == [
        ("m-2", "it was dealt without a commitment")
    ]


def _uncommitted(result: Any) -> Any:
    return replace(result, record=replace(result.record, commitment=None))


# ---- What is written meanwhile


def test_an_arena_may_write_while_its_database_is_checked(tmp_path: Path) -> None:
    """A match that ends, and one that is taken back, after all matches have been read."""
    with Store(tmp_path / "arena.db") as store:
        writing = SampleWriter(store, plan("ace_king_queen"), "akq-1")
        one, two, _ = next(schedule_of(writing.plan))
        writing.finished(one, play("ace_king_queen", 1))
        store.flush()

        class LateStore(Store):
            def verdicts(self, competition: str | None = None) -> Any:
                writing.finished(two, play("ace_king_queen", 2, offender=0))
                match = "ace_king_queen-1"
                act = Act(competition="akq-1", at=9.0, who="eva", what="void", match=match)
                store.taken_back("akq-1", match, act)
                store.flush()
                return super().verdicts(competition)

        with LateStore(tmp_path / "arena.db", create=False) as late:
            [found] = audit_database.examine(late)

        assert (found.matches, found.flaws, found.notes) == (1, (), ())
        [found] = audit_database.examine(store)
        assert (found.matches, found.flaws, found.notes) == (2, (), ())


# ---- Verdicts, acts and states, which no seal protects


def _steered(where: str) -> None:
    """A round robin that was paused and stopped, with a void match and a removed bot; a ladder.

    The ladder has an offence and a forfeit.
    """

    def act(what: str, at: float, **more: Any) -> Act:
        return Act(competition="robin", at=at, who="eva", what=what, **more)

    with Store(where) as store:
        robin = SampleWriter(store, plan("ace_king_queen"), "robin")
        first, second, _ = next(schedule_of(robin.plan))
        robin.finished(first, play("ace_king_queen", 1), "r-1")
        store.state_changed("robin", CompetitionState.PAUSED, act("pause", 1_001.6))
        store.taken_back("robin", "r-1", act("void", 1_001.7, match="r-1"))
        store.state_changed("robin", CompetitionState.RUNNING, act("resume", 1_001.8))
        robin.finished(first, play("ace_king_queen", 2), "r-2")
        store.acted(act("remove", 1_002.6, bot=second.players[0], text="copied"))
        robin.finished(second, _forfeit(Ending.REMOVED, "copied"), "r-3")
        stop = act("stop", 1_010.0)
        store.competition_finished("robin", 1_010.0, (), CompetitionState.STOPPED, stop)
        of = replace(plan("ace_king_queen"), form=Form.LADDER)
        ladder = SampleWriter(store, of, "ladder")
        versions = "connected", "v1"
        for number in range(1, 6):
            offender = 1 if number == 3 else None
            result = play("ace_king_queen", number, offender=offender, versions=versions)
            ladder.finished(Pairing(number, ("ann", "ben")), result, f"l-{number}")
            if number in (1, 4):
                text = "ann v1 is in play" if number == 1 else "ben v2 is in play"
                store.acted(
                    Act(
                        competition="ladder",
                        at=1_000.0 + number,
                        who=ARENA,
                        what=VERSION,
                        match=f"l-{number}",
                        bot=text[:3],
                        text=text,
                    )
                )
                versions = ("v1", "v1") if number == 1 else ("v1", "v2")
        absent = _forfeit(Ending.CRASH, "it said a\0b")
        ladder.finished(Pairing(6, ("ann", "ben")), absent, "l-6")


def _forfeit(kind: Ending, text: str) -> Any:
    """A match to which its first player did not come."""
    record = void("ace_king_queen").record
    ended = Termination(kind, 0, text)
    record = replace(record, nonces=(), enforced=(), commitment=None, termination=ended)
    return MatchResult(record.scores, record.points, ended, record=record)


def test_what_an_instructor_has_steered_fits(database: str) -> None:
    _steered(database)

    assert flaws(database) == []
    with Store(database, create=False) as store:
        assert not any(one.notes for one in audit_database.examine(store))


_EVIDENCE = "UPDATE verdicts SET evidence = replace(evidence, '{}', '{}') WHERE match = 'l-3'"
_COPY = (
    "INSERT INTO verdicts (number, competition, match, bot, kind, text, at, evidence) "
    "SELECT 99, competition, '{0}', bot, kind, text, at, replace(evidence, 'l-3', '{0}') "
    "FROM verdicts WHERE match = 'l-3'"
)
_VERSION = "UPDATE actions SET {} WHERE what = 'version' AND match = 'l-4'"
_COUNTS = "UPDATE matches SET counts = {} WHERE id = '{}'"
_RANKING = """UPDATE competitions SET ranking = '[{"rank":1,"names":["ann"],"stage":1}]'"""


@pytest.mark.parametrize(
    ("competition", "match", "statements"),
    [
        ("ladder", "l-2", [_COUNTS.format("false", "l-2")]),
        ("robin", "r-2", [_COUNTS.format("false", "r-2")]),
        ("robin", "r-1", [_COUNTS.format("false", "r-2"), _COUNTS.format("true", "r-1")]),
        ("robin", "r-1", ["DELETE FROM actions WHERE what = 'void'"]),
        ("robin", None, ["DELETE FROM actions WHERE what = 'stop'"]),
        ("robin", None, ["UPDATE competitions SET finished_at = NULL WHERE state = 'stopped'"]),
        ("ladder", None, ["UPDATE competitions SET state = 'stopped'"]),
        ("ladder", None, ["UPDATE competitions SET state = 'finished'"]),
        ("ladder", None, [f"{_RANKING} WHERE id = 'ladder'"]),
        (
            *("ladder", "l-3"),
            [
                _EVIDENCE.format("seat 2 answered", "seat 2 invented"),
                "UPDATE verdicts SET text = 'seat 2 invented' WHERE match = 'l-3'",
            ],
        ),
        ("ladder", "l-3", [_EVIDENCE.format('"seat":1', '"seat":0')]),
        ("ladder", "l-3", [_EVIDENCE.format('"decision_ms":1000', '"decision_ms":9')]),
        ("ladder", "l-3", [_EVIDENCE.format('"legal":"', '"legal":"nothing ')]),
        ("ladder", "l-3", [_EVIDENCE.format('"asked":"', '"asked":"x')]),
        ("ladder", "l-3", [_EVIDENCE.format(r"\"no\"", r"\"bet\"")]),
        ("ladder", "l-3", [_EVIDENCE.format("ace_king_queen", "gin_rummy")]),
        ("ladder", "l-3", ["UPDATE verdicts SET at = 5 WHERE match = 'l-3'"]),
        ("ladder", "l-6", ["DELETE FROM verdicts WHERE match = 'l-6'"]),
        ("ladder", "l-3", [_COPY.format("l-3")]),
        ("ladder", "l-2", [_COPY.format("l-2")]),
        (
            *("ladder", None),
            ["DELETE FROM seats WHERE match = 'l-6'", "DELETE FROM matches WHERE id = 'l-6'"],
        ),
        ("ladder", "l-3", ["UPDATE verdicts SET competition = 'robin'"]),
        ("ladder", "l-4", ["UPDATE seats SET version = 'v2' WHERE match = 'l-4' AND seat = 0"]),
        ("ladder", "l-4", ["UPDATE seats SET version = NULL WHERE match = 'l-4'"]),
        ("robin", "r-2", ["UPDATE seats SET version = 'v1' WHERE match = 'r-2' AND seat = 1"]),
        ("ladder", None, [_VERSION.format("match = 'l-9'")]),
        ("ladder", None, [_VERSION.format("match = 'r-2'")]),
        ("ladder", None, [_VERSION.format("bot = NULL")]),
        ("robin", None, [_VERSION.format("competition = 'robin', match = 'r-2'")]),
    ],
)
def test_what_no_seal_protects_is_noticed_all_the_same(
    database: str, competition: str, match: str | None, statements: list[str]
) -> None:
    _steered(database)
    for statement in statements:
        rows(database, statement)

    assert (competition, match) in {(flaw.competition, flaw.match) for flaw in flaws(database)}


def test_verdicts_and_acts_of_a_competition_that_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "arena.db"
    _steered(str(file))
    change(
        file,
        "UPDATE verdicts SET competition = 'gone' WHERE match = 'r-3'",
        "UPDATE actions SET competition = 'gone' WHERE what = 'stop'",
        "INSERT INTO actions (at, who, what, text) VALUES (1, 'eva', 'status', 'the arena')",
    )

    name = next(schedule_of(plan("ace_king_queen")))[1].players[0]
    gone = [flaw for flaw in flaws(file) if flaw.competition == "gone"]
    assert [(flaw.match, flaw.text) for flaw in gone] == [
        (None, f"a verdict on {name} is of this competition, which is not there"),
        (None, "stop by eva was done to it, and it is not there"),
    ]


def test_what_is_gone_from_the_middle_of_a_ladder_is_noted(tmp_path: Path) -> None:
    file = tmp_path / "arena.db"
    _steered(str(file))
    change(
        file,
        "DELETE FROM seats WHERE match = 'l-2'",
        "DELETE FROM matches WHERE id = 'l-2'",
        "UPDATE matches SET number = 900 WHERE id = 'l-4'",
        "UPDATE competitions SET state = 'finished', finished_at = 2e3 WHERE id = 'ladder'",
    )

    with Store(file, create=False) as store:
        [found] = audit_database.examine(store, "ladder")

    assert found.flaws == ()
    assert [note.partition(":")[0] for note in found.notes] == [
        "match l-4 stands after one that ended later, 1 in all do",
        "1 of its pairings have no match, the first is 2",
    ]


# ---- One flipped bit

TARGETS = {
    "record": ("matches", "record", "id"),
    "digest": ("matches", "digest", "id"),
    "score": ("seats", "score", "match"),
    "points": ("seats", "points", "match"),
}


def _bits(connection: sqlite3.Connection, rng: random.Random) -> Iterator[str]:
    """Flip one bit of one match, and give the match; the next call puts it back first."""
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
        return value[:place] + chr(ord(value[place]) ^ 1 << rng.randrange(7)) + value[place + 1 :]
    data = bytearray(zlib.decompress(value))  # padding of what is stored means nothing
    begin = max(0, data.find(b'"%s":' % target.encode()))
    end = len(data) if begin == 0 else min(len(data), begin + 80)
    data[rng.randrange(begin, end)] ^= 1 << rng.randrange(8)
    return bytes(data)


def test_whichever_bit_is_flipped_that_match_is_named(file: Path) -> None:
    rng = random.Random(20)
    with closing(sqlite3.connect(file)) as connection, Store(file, create=False) as store:
        connection.execute("PRAGMA synchronous = OFF")
        bits = _bits(connection, rng)
        for _ in range(FLIPS):
            match = next(bits)
            [found] = audit_database.examine(store, store.played(match).competition)

            assert [flaw.match for flaw in found.flaws] == [match], found
        next(bits)

    assert flaws(file)  # the last one


# ---- Other damage


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE matches SET record = X'' WHERE id = '{}'",
        "UPDATE matches SET record = substr(record, 1, 40) WHERE id = '{}'",
        "UPDATE matches SET record = CAST(record || 'x' AS BLOB) WHERE id = '{}'",
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
        "INSERT INTO seats (match, seat, bot, score, points) VALUES ('{}', 2, 'zoe', 0, 0)",
    ],
)
def test_a_damaged_match_is_named(file: Path, damage: str) -> None:
    match = "ace_king_queen-void"  # of another one, the competition would miss it

    change(file, damage.format(match))

    assert {flaw.match for flaw in flaws(file)} == {match}


def test_a_record_that_unpacks_to_too_much_is_damaged(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "_MOST_BYTES", 100)

    assert {(flaw.match, flaw.text[:25]) for flaw in flaws(file)} == {
        (match, "its record cannot be read") for [match] in rows(file, "SELECT id FROM matches")
    }


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (
            "DELETE FROM matches WHERE id = 'ace_king_queen-1'",
            {(None, "pairing 1"), ("ace_king_queen-1", "its seats are there")},
        ),
        (
            "DELETE FROM competitions WHERE game = 'blackjack'",
            {(None, "a verdict on ben is of this competition")}
            | {(f"blackjack-{n}", "its competition is not there") for n in ("void", 1, 2, 3)},
        ),
        (
            "UPDATE competitions SET form = 'ladder' WHERE game = 'blackjack'",
            {(None, "its row says ladder of blackjack")},
        ),
        (
            "UPDATE verdicts SET bot = 'zoe' WHERE match = 'gin_rummy-2'",
            {("gin_rummy-2", "the row of its verdict says otherwise than the evidence")},
        ),
    ],
)
def test_what_is_gone_or_unlike_its_document_is_named(
    file: Path, damage: str, said: set[tuple[str | None, str]]
) -> None:
    change(file, damage)

    assert {(flaw.match, flaw.text.partition(",")[0]) for flaw in flaws(file)} == said


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


def test_what_cannot_even_be_opened_is_a_line(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **options: Any) -> None:
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "sqlite said so")

    monkeypatch.setattr(audit_database, "Store", fail)

    with pytest.raises(StoreFailed, match="cannot read the database: UnicodeDecode"):
        audit_database.opened(str(file))


def test_a_competition_by_the_name_of_its_run(tmp_path: Path) -> None:
    with Store(tmp_path / "arena.db") as store:
        SampleWriter(store, plan("blackjack", run="monday"), "b-1").to_the_end()
        store.flush()

        assert audit_database.named(store, "monday") == audit_database.named(store, "b-") == "b-1"
        with pytest.raises(UsageError):
            audit_database.named(store, "tuesday")
