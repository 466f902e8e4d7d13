"""A process that is killed while it stores a program, and what the database holds then."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from arena.storage.programs import Programs
from arena.storage.schema import open_database
from arena.storage.store import Store
from arena.storage.submissions import Submissions, SubmissionState
from tests.support.arena_process import ROOT
from tests.support.databases import database, rows
from tests.support.submitted_programs import bytes_of, enrol, hashed_program, read_program_bytes

__all__ = ["database"]

pytestmark = pytest.mark.e2e

MIB = 1 << 20
KNOWN, UNKNOWN, CUT = (bytes_of(number, 2 * MIB) for number in range(3))

CHILD = """
import io, sys
from arena.storage.programs import Programs
from arena.storage.store import Store
from arena.storage.submissions import Submissions, SubmissionState
from tests.e2e.test_programs import CUT, KNOWN, UNKNOWN
from tests.support.submitted_programs import hand_in, hashed_program

class EndlessTar(io.BytesIO):
    def read(self, size=-1):
        if self.tell() == len(CUT):
            print("half done", flush=True)
            sys.stdin.read()
        return super().read(size)

with Store(sys.argv[1], exclusive=True) as store:
    made = hand_in(store.engine, "ann", KNOWN)
    Submissions(store.engine).began(made.number, SubmissionState.BUILDING)
    programs = Programs(store.engine)
    programs.put(hashed_program(UNKNOWN), io.BytesIO(UNKNOWN))
    programs.put(hashed_program(CUT + b"end"), EndlessTar(CUT))
"""


@pytest.fixture
def killed(database: str) -> str:
    """The database of an arena that was killed in the middle of an upload."""
    engine, _ = open_database(database, create=True)
    enrol(engine, "ann")
    engine.dispose()
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, database],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with child:
        assert child.stdout is not None, "it was made with one"
        assert child.stdout.readline() == b"half done\n"
        child.kill()
    return database


def test_what_was_acknowledged_is_there_and_nothing_half_done_remains(killed: str) -> None:
    parts = "SELECT count(*) FROM program_parts"
    assert rows(killed, "SELECT count(*) FROM programs") == [(2,)]
    [(before,)] = rows(killed, parts)

    with Store(killed, exclusive=True) as store:
        programs, submissions = Programs(store.engine), Submissions(store.engine)
        assert hashed_program(CUT + b"end") not in programs
        submissions.restarted()

        [known] = submissions.undecided()
        assert (known.owner, known.state) == ("ann", SubmissionState.WAITING)
        assert read_program_bytes(store.engine, known.program) == KNOWN
        assert hashed_program(UNKNOWN) not in programs
    [(needed,)] = rows(killed, "SELECT parts FROM programs")
    assert rows(killed, parts) == [(needed,)]
    assert before > 2 * needed
