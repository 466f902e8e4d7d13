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
    status, out, err = run("backup", str(copy), "--db", db)

    assert (status, err) == (0, "")
    assert out == f"{copy}: 0 competitions, {copy.stat().st_size:,} bytes\n"
    assert run("verify", str(copy))[0] == 0


def test_as_a_document(run: Run, db: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    document = run("backup", str(copy), "--db", db, "--json").document

    size = copy.stat().st_size
    assert document == {"file": str(copy), "bytes": size, "competitions": 0}


def test_what_is_wrong_is_one_line(run: Run, db: str, tmp_path: Path) -> None:
    status, out, err = run("backup", db, "--db", db)

    assert (status, out) == (2, "")
    assert err == f"arena: expected another file than the database, got {db}\n"


def test_for_postgresql_it_says_what_makes_the_copy(run: Run, tmp_path: Path) -> None:
    copy = tmp_path / "copy.dump"
    url = "postgresql+psycopg://me:secret@host/name?sslpassword=hidden"
    status, out, err = run("backup", str(copy), "--db", url)

    assert (status, out) == (2, "")
    assert err.endswith(
        f"is copied by: pg_dump --format=custom --file={copy} postgresql://me@host/name\n"
    )
    assert "secret" not in err
    assert not copy.exists()
