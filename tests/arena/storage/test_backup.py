from __future__ import annotations

import os
import re
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from arena.formats.spec import Form
from arena.storage import backup as module
from arena.storage.backup import backup
from arena.storage.store import CompetitionState, Store
from arena.storage.submissions import Submissions
from protocol.errors import ArenaError, UsageError
from tests.support.arena_process import ROOT
from tests.support.submitted_programs import enrol, hand_in, read_program_bytes
from tests.support.written_competition import WrittenCompetition, plan, play


@pytest.fixture
def db(tmp_path: Path) -> Path:
    file = tmp_path / "class.db"
    with Store(file) as store:
        begun(store).notes(1, ("ann", "ben"), play(seed=1, hands=4))
    return file


def begun(store: Store) -> WrittenCompetition:
    return WrittenCompetition(store, plan(Form.ROUND_ROBIN, ("ann", "ben"), matches=2), "akq-1")


def copied(database: Path, file: Path) -> None:
    """Copy it as a process beside the arena would."""
    with Store(database, create=False) as store:
        backup(store, file)


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def test_a_copy_is_made_beside_the_arena_that_runs_and_can_be_gone_on_with(tmp_path: Path) -> None:
    file, copy = tmp_path / "class.db", tmp_path / "copy.db"
    with Store(file, exclusive=True) as store:
        course = begun(store)
        course.notes(1, ("ann", "ben"), play(seed=1, hands=4))
        store.flush()
        enrol(store.engine, "ann")
        made = hand_in(store.engine, "ann", b"a bot")
        copied(file, copy)
        course.notes(2, ("ben", "ann"), play(seed=2, hands=4))

    with Store(copy, exclusive=True) as other:
        [competition] = other.competitions()
        assert competition.state is CompetitionState.RUNNING
        assert len(other.matches("akq-1")) == 1
        assert Submissions(other.engine).of("ann") == (made,)
        assert read_program_bytes(other.engine, made.program) == b"a bot"
    with Store(file, create=False) as store:
        assert len(store.matches("akq-1")) == 2


def test_what_another_is_writing_just_now_is_not_in_it(db: Path, tmp_path: Path) -> None:
    with sqlite3.connect(db) as writer:
        writer.execute("DELETE FROM seats")
        copied(db, tmp_path / "copy.db")
        writer.rollback()

    with sqlite3.connect(tmp_path / "copy.db") as copy:
        assert copy.execute("SELECT count(*) FROM seats").fetchone() == (2,)
    writer.close()
    copy.close()


@pytest.mark.parametrize(
    ("file", "taken", "why"),
    [
        *(
            ("copy.db", f"copy.db{end}", f"yet, .*copy.db{end} is")
            for end in ("", "-wal", "-journal")
        ),
        ("class.db", "", "another file than the database"),
        ("link.db", "", "another file than the database"),
        ("nowhere/copy.db", "", "expected a directory for the copy"),
    ],
)
def test_what_is_no_place_for_a_copy_is_refused_and_nothing_made(
    db: Path, tmp_path: Path, file: str, taken: str, why: str
) -> None:
    (tmp_path / "link.db").symlink_to(db)
    if taken:
        (tmp_path / taken).write_text("mine")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    with pytest.raises(UsageError, match=why):
        copied(db, tmp_path / file)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_timer_of_the_manual_keeps_seven_copies(db: Path, tmp_path: Path) -> None:
    """Also after a clock was wrong; what is no copy of it, and all if it fails, stays."""
    manual = (ROOT / "arena/server/operations.md").read_text("utf-8")
    [make, copy] = re.findall("^ExecStart=(/bin/(?:mkdir|sh) .*)$", manual, re.MULTILINE)
    copy = copy.replace("$$", "$").replace("%%", "%")
    copy = copy.replace("/opt/card-arena/bin/arena", f"{sys.executable} -m arena")
    folder = tmp_path / "backups"
    subprocess.run(shlex.split(make), cwd=tmp_path, check=True)
    others = {"notes", "before-upgrade.db", "2026-11-01-0400.db.gz", "x2026-11-01-0400.db"}
    copies = [f"{year}-11-{day}-0400.db" for year in (2025, 2999) for day in range(10, 16)]
    for name in (*others, *copies):
        (folder / name).write_text("")
    for is_there in (False, True):
        db.rename(db := tmp_path / ("class.db" if is_there else "gone"))
        done = subprocess.run(
            shlex.split(copy), cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
        assert (done.returncode == 0) is is_there
        left = {*names(folder)} - others
        assert left >= {*copies[6:]}
        assert len(left) == (7 if is_there else 12)
        assert {*names(folder)} >= others


FULL = """
import resource, sys
from pathlib import Path
from arena.storage.backup import backup
from arena.storage.store import Store
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)  )
with Store(sys.argv[1], create=False) as store:
    backup(store, Path(sys.argv[2]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it limits no files")
def test_without_space_nothing_is_left(db: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(db), str(tmp_path / "copy.db")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )

    assert done.returncode == 1
    assert "ArenaError: cannot write the copy" in done.stderr
    assert names(tmp_path) == ["class.db"]


def test_who_makes_a_file_of_that_name_meanwhile_keeps_it(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy.db"
    made = module._copy

    def makes(store: Store, part: Path) -> None:
        made(store, part)
        copy.write_text("mine")

    monkeypatch.setattr(module, "_copy", makes)

    with pytest.raises(ArenaError, match=r"cannot write the copy .*: File exists"):
        copied(db, copy)
    assert copy.read_text() == "mine"
    assert names(tmp_path) == ["class.db", "copy.db"]
