"""A copy of an arena's database in SQLite, as it is at one moment, while an arena runs on it: by SQLite's own backup API.

The whole copy is made in one read transaction, which keeps no writer waiting (WAL), so it has every transaction in whole or not at all.
It appears under its name when it is complete and on the disk, not before.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from pathlib import Path

from arena.sandbox.workdir import LOCK_SUFFIX
from arena.storage.store import Store
from protocol.errors import ArenaError, UsageError

__all__ = ["backup"]

_COMPANIONS = ("-wal", "-shm", "-journal", LOCK_SUFFIX)


def backup(store: Store, file: Path) -> None:
    """Copy a database of SQLite to a file that is not there yet.

    Args:
        store: the database, perhaps beside an arena that runs on it.
        file: where the copy is to be.

    Raises:
        UsageError: the file is there, or what SQLite would take for a part of it; or its directory is not.
        ArenaError: it cannot be written, or the database cannot be read; nothing is left of the copy.
    """
    database = store.file
    assert database is not None, "it is SQLite's"
    _check(database, file)
    try:
        # Its name is no database's, as nobody is to open it yet.
        number, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".part", dir=file.parent)
    except OSError as error:
        raise ArenaError(_failed(file, error)) from None
    os.close(number)
    part = Path(name)
    try:
        _copy(store, part)
        _name(part, file)
    except (OSError, sqlite3.Error) as error:
        raise ArenaError(_failed(file, error)) from None
    finally:
        for companion in ("", *_COMPANIONS):
            part.with_name(part.name + companion).unlink(missing_ok=True)


def _check(database: Path, file: Path) -> None:
    if not file.parent.is_dir():
        raise UsageError(f"expected a directory for the copy, there is no {file.parent}")
    if file.exists() and database.exists() and file.samefile(database):
        raise UsageError(f"expected another file than the database, got {file}")
    for companion in ("", *_COMPANIONS):
        one = file.with_name(file.name + companion)
        if os.path.lexists(one):
            raise UsageError(f"expected a file that is not there yet, {one} is")


def _copy(store: Store, part: Path) -> None:
    source = store.engine.raw_connection()
    copy = sqlite3.connect(part)
    try:
        assert isinstance(source.driver_connection, sqlite3.Connection)
        source.driver_connection.backup(copy)  # all pages in one step
    finally:
        copy.close()
        source.close()
    with part.open("rb+") as written:
        os.fsync(written.fileno())


def _name(part: Path, file: Path) -> None:
    """Give it its name; whoever has made a file of that name meanwhile keeps it."""
    try:
        os.link(part, file)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if file.exists():
            raise FileExistsError(17, "File exists") from None
        part.rename(file)


def _failed(file: Path, error: Exception) -> str:
    reason = (isinstance(error, OSError) and error.strerror) or error
    return f"cannot write the copy {file}: {reason}"
