"""Bytes go in and come out again, in either kind of database, and nothing half done is seen."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from arena.storage import programs as module
from arena.storage.programs import Programs
from arena.storage.store import Act, Store
from arena.storage.submissions import Submissions
from protocol.errors import StoreFailed, UsageError
from tests.support.databases import rows
from tests.support.submitted_programs import (
    bytes_of,
    enrol,
    hand_in,
    hashed_program,
    read_program_bytes,
)

PART = 50_000
DATA = bytes_of(1, 4 * PART)
SHA256 = hashed_program(DATA)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several parts, in tests of little data."""
    monkeypatch.setattr(module, "_PART_BYTES", PART)
    monkeypatch.setattr(module, "_READ_BYTES", PART // 2)


@pytest.fixture
def programs(engine: sa.Engine) -> Programs:
    return Programs(engine)


class InterruptedTar(io.BytesIO):
    """A tar that calls something when so many bytes of it have been read."""

    def __init__(self, data: bytes, call: Callable[[], object], after: int = 2 * PART) -> None:
        super().__init__(data)
        self._call: Callable[[], object] | None = call
        self._after = after

    def read(self, size: int | None = -1, /) -> bytes:
        if self._call is not None and self.tell() >= self._after:
            call, self._call = self._call, None
            call()
        return super().read(size)


def fail() -> None:
    raise OSError("the disk is gone")


def parts(database: str) -> list[tuple[int, ...]]:
    return rows(database, "SELECT part FROM program_parts ORDER BY upload, part")


RUNS = st.lists(st.tuples(st.binary(min_size=1, max_size=40), st.integers(1, 9_000)), max_size=4)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(runs=[(DATA, 1)])
@example(runs=[(b"\0", 50 * PART)])
@given(runs=RUNS)
def test_what_was_put_comes_out_again(engine: sa.Engine, runs: list[tuple[bytes, int]]) -> None:
    data = b"".join(text * times for text, times in runs)
    Programs(engine).put(hashed_program(data), io.BytesIO(data))

    assert hashed_program(data) in Programs(engine)
    assert read_program_bytes(engine, hashed_program(data)) == data


def test_it_is_compressed_and_in_parts(programs: Programs, database: str) -> None:
    programs.put(SHA256, io.BytesIO(DATA))
    [(size, stored, number)] = rows(database, "SELECT size, stored, parts FROM programs")
    assert len(DATA) == size < stored < size * 1.01
    assert parts(database) == [(part,) for part in range(number)]
    assert number > 2

    plain = bytes(50 * PART)
    programs.put(hashed_program(plain), io.BytesIO(plain))
    query = f"SELECT stored, parts FROM programs WHERE sha256 = '{hashed_program(plain)}'"
    [(stored, number)] = rows(database, query)
    assert stored < PART
    assert number == 1


def test_what_is_there_already_is_not_read_again(programs: Programs, database: str) -> None:
    programs.put(SHA256, io.BytesIO(DATA))
    before = parts(database)
    programs.put(SHA256, InterruptedTar(DATA, fail, after=0))

    assert parts(database) == before


def test_two_who_put_the_same_at_once_put_it_once(programs: Programs, database: str) -> None:
    programs.put(SHA256, InterruptedTar(DATA, lambda: programs.put(SHA256, io.BytesIO(DATA))))

    [(number,)] = rows(database, "SELECT parts FROM programs")
    assert parts(database) == [(part,) for part in range(number)]
    programs.open(SHA256, io.BytesIO())


def test_other_bytes_than_said_or_unreadable_ones_are_not_kept(
    programs: Programs, database: str
) -> None:
    with pytest.raises(UsageError, match=f"expected the program 00, got {SHA256}"):
        programs.put("00", io.BytesIO(DATA))
    with pytest.raises(OSError, match="the disk is gone"):
        programs.put(SHA256, InterruptedTar(DATA, fail))

    assert "00" not in programs
    assert SHA256 not in programs
    assert parts(database) == []


def test_nobody_sees_a_program_that_is_not_there_in_whole(
    programs: Programs, database: str
) -> None:
    def looks() -> None:
        assert parts(database) != []
        assert SHA256 not in programs
        with pytest.raises(UsageError, match=f"^expected a program that is in .*, got {SHA256}$"):
            programs.open(SHA256, io.BytesIO())

    programs.put(SHA256, InterruptedTar(DATA, looks))

    assert SHA256 in programs


def test_results_are_written_while_a_program_is_being_put(store: Store) -> None:
    act = Act(at=1.0, who="arena", what="flag")

    def writes() -> None:
        store.acted(act)
        store.flush(10)

    Programs(store.engine).put(SHA256, InterruptedTar(DATA, writes))

    assert store.actions() == (act,)


def test_a_damaged_program_is_one_line(programs: Programs, database: str) -> None:
    zero = "'\\x00'" if "postgresql" in database else "x'00'"
    missing, other = "part 2 of . is missing", "its bytes are not those that were handed in"
    for number, (change, why) in enumerate(
        [
            (f"UPDATE program_parts SET data = {zero} WHERE part = 0", other),
            (f"UPDATE program_parts SET data = {zero} WHERE part = 1", other),
            ("DELETE FROM program_parts WHERE part = 1", missing),
            ("UPDATE programs SET parts = 1", other),
            ("UPDATE programs SET size = size - 1", other),
            ("UPDATE programs SET size = size + 1", other),
            ("UPDATE programs SET sha256 = '0' || sha256", other),
        ]
    ):
        data = bytes_of(number, 3 * PART)
        sha256 = hashed_program(data)
        programs.put(sha256, io.BytesIO(data))
        rows(database, change)
        damaged = "0" + sha256 if "||" in change else sha256

        with pytest.raises(StoreFailed, match=f"^cannot read program {damaged} in .*{why}$"):
            programs.open(damaged, io.BytesIO())


def test_one_that_goes_while_it_is_read_is_not_there(programs: Programs, engine: sa.Engine) -> None:
    class RemovingFile(io.BytesIO):
        def write(self, data: object, /) -> int:
            programs.remove(SHA256)
            return 1

    programs.put(SHA256, io.BytesIO(DATA))

    with pytest.raises(UsageError, match="expected a program that is in"):
        programs.open(SHA256, RemovingFile())


def test_one_that_is_needed_is_not_removed(engine: sa.Engine, database: str) -> None:
    enrol(engine, "ann")
    hand_in(engine, "ann", DATA)
    programs = Programs(engine)
    programs.remove(SHA256)
    assert read_program_bytes(engine, SHA256) == DATA

    other = bytes_of(2)
    programs.put(hashed_program(other), io.BytesIO(other))
    before = len(parts(database))
    programs.remove(hashed_program(other))
    programs.remove(hashed_program(other))  # again means nothing

    assert hashed_program(other) not in programs
    assert len(parts(database)) == before - 1


def test_an_arena_that_starts_clears_what_a_killed_one_has_left(
    engine: sa.Engine, database: str
) -> None:
    enrol(engine, "ann")
    hand_in(engine, "ann", DATA)
    needed = parts(database)
    programs = Programs(engine)
    unknown = bytes_of(2)
    programs.put(hashed_program(unknown), io.BytesIO(unknown))
    data = "'\\x00'" if "postgresql" in database else "x'00'"
    rows(database, f"INSERT INTO program_parts VALUES ('cut', 0, {data}), ('cut', 1, {data})")
    programs.sweep()

    assert parts(database) == needed
    assert hashed_program(unknown) not in programs
    assert read_program_bytes(engine, SHA256) == DATA


def test_a_submission_that_comes_before_its_program_is_refused(engine: sa.Engine) -> None:
    enrol(engine, "ann")

    with pytest.raises(UsageError, match=f"expected a program that is in .*, got {SHA256}"):
        Submissions(engine).arrived("ann", "bot.py", "", SHA256, 1, 1.0)
    assert Submissions(engine).of(None) == ()
