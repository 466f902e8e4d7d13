"""Programs as they are handed in, in a database of any kind."""

from __future__ import annotations

import hashlib
import io
import random

import sqlalchemy as sa

from arena.sandbox.manifest import ProgramManifest
from arena.storage.programs import Programs
from arena.storage.roster import Roster
from arena.storage.roster_csv import Student
from arena.storage.submissions import Submission, Submissions

__all__ = ["MANIFEST", "bytes_of", "enrol", "hand_in", "hashed_program", "read_program_bytes"]

MANIFEST = ProgramManifest(language="python", command=("python3", "bot.py"), stdio=False)


def bytes_of(number: int, size: int = 1000) -> bytes:
    """A program that cannot be compressed; each number gives another one."""
    return random.Random(number).randbytes(size)


def hashed_program(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def enrol(engine: sa.Engine, *names: str) -> None:
    """Put people on the roster."""
    Roster(engine).take([Student(name=name, email="", team="") for name in names])


def hand_in(engine: sa.Engine, owner: str, data: bytes, at: float = 1.0) -> Submission:
    """A submission that has arrived and waits."""
    sha256 = hashed_program(data)
    Programs(engine).put(sha256, io.BytesIO(data))
    return Submissions(engine).arrived(owner, "bot.py", "", sha256, len(data), at)


def read_program_bytes(engine: sa.Engine, sha256: str) -> bytes:
    into = io.BytesIO()
    Programs(engine).open(sha256, into)
    return into.getvalue()
