"""Copies an arena's SQLite database while an arena runs on it, by SQLite's own backup API.

One read transaction makes the copy. It delays no writer (WAL), and the copy has each transaction as
a whole or not at all. The copy gets its name only when it is complete and on the disk.
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
    """Copy an SQLite database to a new file.

    Raises UsageError if the file or one of its companions (`-wal`, for example) exists, or if its
    directory does not. Raises ArenaError if reading or writing fails; no partial copy is left then.
    """
    database = store.file
    assert database is not None, "it is SQLite's"
    _check(database, file)
    part = None
    try:
        # A hidden name that is no database's: nobody is to open the copy yet.
        number, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".part", dir=file.parent)
        os.close(number)
        part = Path(name)
        _copy(store, part)
        _name(part, file)
    except (OSError, sqlite3.Error) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise ArenaError(f"cannot write the copy {file}: {reason}") from None
    finally:
        if part is not None:
            for path in _with_companions(part):
                path.unlink(missing_ok=True)


def _with_companions(file: Path) -> list[Path]:
    return [file.with_name(file.name + suffix) for suffix in ("", *_COMPANIONS)]


def _check(database: Path, file: Path) -> None:
    if not file.parent.is_dir():
        raise UsageError(f"expected a directory for the copy, there is no {file.parent}")
    if file.exists() and database.exists() and file.samefile(database):
        raise UsageError(f"expected another file than the database, got {file}")
    for path in _with_companions(file):
        if os.path.lexists(path):
            raise UsageError(f"expected a file that is not there yet, {path} is")


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
    """Give the copy its name, unless a file of that name exists by now."""
    try:
        os.link(part, file)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if file.exists():
            raise FileExistsError(17, "File exists") from None
        part.rename(file)
