from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arena.storage.store import Store

Run = Callable[..., Any]


@pytest.fixture
def db(tmp_path: Path) -> str:
    Store(tmp_path / "class.db").close()
    return str(tmp_path / "class.db")


def test_the_copy_is_told(run: Run, db: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    out = run("backup", str(copy), "--db", db).text

    assert out == f"{copy}: 0 competitions, {copy.stat().st_size:,} bytes\n"
    assert run("verify", str(copy))[0] == 0


def test_as_a_document(run: Run, db: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    document = run("backup", str(copy), "--db", db, "--json").document

    size = copy.stat().st_size
    assert document == {"file": str(copy), "bytes": size, "competitions": 0}


def test_what_is_wrong_is_one_line(run: Run, db: str, tmp_path: Path) -> None:
    line = run("backup", db, "--db", db).refusal()

    assert line == f"expected another file than the database, got {db}"


def test_for_postgresql_it_says_what_makes_the_copy(run: Run, tmp_path: Path) -> None:
    copy = tmp_path / "copy.dump"
    url = "postgresql+psycopg://me:secret@host/name?sslpassword=hidden"
    line = run("backup", str(copy), "--db", url).refusal()

    dump = f"pg_dump --format=custom --file={copy} postgresql://me@host/name"
    assert line.endswith(f"is copied by: {dump}")
    assert "secret" not in line
    assert not copy.exists()
