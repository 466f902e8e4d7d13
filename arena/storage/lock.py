"""The lock that the arena which runs on a database holds, so that no second one plays the same competitions.

For SQLite it is a file beside the database, locked by the operating system; for PostgreSQL an advisory lock on a connection of its
own. Either is freed by the death of its holder, however that comes: nothing has to be cleaned up after `kill -9` or a power cut.
Either can be lost as well, with the file or with the connection; so whoever writes sees each time that it is still held.
Readers, and commands that write a row, do not take it. A launched bot does not inherit it: Python's files are closed on exec.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from arena.sandbox.workdir import LOCK_SUFFIX
from protocol.errors import StoreFailed, UsageError

__all__ = ["DatabaseInUse", "Lock", "hold"]

"""What the file is called beside its database."""
_BYTE = 1 << 30  # the one that Windows locks: far behind the pid, which stays readable
_ARENA = 0x63617264  # "card": the first half of PostgreSQL's key, the second is the schema


class DatabaseInUse(UsageError):
    """Another arena runs on the database."""


class Lock(Protocol):
    """A lock that is held."""

    def keep(self) -> None:
        """Make sure that it is still held, before something is written.

        Raises:
            StoreFailed: it was lost, and another arena has it or may have it.
            SQLAlchemyError: the server cannot be reached; it may be tried again.
        """

    def release(self) -> None:
        """Free it; once more does nothing."""


def hold(engine: sa.Engine, name: str) -> Lock:
    """Take the lock of an arena's database.

    Args:
        engine: the database.
        name: what it is called in messages.

    Raises:
        Taken: another arena holds it.
        UsageError: there is no place for it.
        SQLAlchemyError: the server cannot be reached.
    """
    if engine.dialect.name == "sqlite":
        return _FileLock(Path(engine.url.database or ""), name)
    return _ServerLock(engine, name)


def _taken(name: str, holder: str) -> str:
    by = f" by {holder}" if holder else ""
    return f"expected a database that no other arena runs on, {name} is in use{by}"


class _FileLock:
    """A file beside the database, with the holder's pid in it; it is there only while it is held."""

    def __init__(self, database: Path, name: str) -> None:
        # Resolved: whoever comes by a link meets the same lock.
        database = database.resolve()
        self._file = database.with_name(database.name + LOCK_SUFFIX)
        try:
            self._fd: int | None = self._take(name)
        except OSError as error:
            reason = error.strerror or error
            raise UsageError(f"cannot lock the database {name}: {self._file}: {reason}") from error

    def keep(self) -> None:
        """It is lost with its file: whoever comes then makes another, and locks that."""
        fd = self._fd
        if fd is None:
            return
        try:
            is_there = self._is_there(fd)
        except OSError as error:
            reason = error.strerror or error
            raise StoreFailed(f"cannot see the lock {self._file}: {reason}") from error
        if not is_there:
            raise StoreFailed(
                f"expected the lock {self._file} to stay, it was removed or replaced: another arena may run on this database"
            )

    def release(self) -> None:
        fd, self._fd = self._fd, None
        if fd is None:
            return
        is_ours = False  # if it was lost, the file is another arena's by now
        with contextlib.suppress(OSError):
            is_ours = self._is_there(fd)
            os.ftruncate(fd, 0)
        if sys.platform == "win32":  # what is open cannot be removed there
            os.close(fd)
            fd = None
        # A new holder may have the file open by now; it sees that its own is gone, and makes another.
        if is_ours:
            with contextlib.suppress(OSError):
                self._file.unlink()
        if fd is not None:
            os.close(fd)

    def _take(self, name: str) -> int:
        while True:
            fd = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                if not _locked(fd):
                    raise DatabaseInUse(_taken(name, _pid_in(fd)))
                if self._is_there(fd):
                    os.ftruncate(fd, 0)
                    os.lseek(fd, 0, os.SEEK_SET)
                    os.write(fd, b"%d\n" % os.getpid())
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)

    def _is_there(self, fd: int) -> bool:
        """Whether the file that was locked is still the one that others find."""
        try:
            return os.path.samestat(os.fstat(fd), os.stat(self._file))
        except FileNotFoundError:
            return False


def _pid_in(fd: int) -> str:
    os.lseek(fd, 0, os.SEEK_SET)
    try:
        return f"process {int(os.read(fd, 20))}"
    except (OSError, ValueError):
        return ""


if sys.platform == "win32":
    import msvcrt

    def _locked(fd: int) -> bool:
        os.lseek(fd, _BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(fd, 0, os.SEEK_SET)
        return True

else:
    import fcntl

    def _locked(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class _ServerLock:
    """An advisory lock; the server frees it with the connection, at the latest a minute after its holder's machine has died."""

    def __init__(self, engine: sa.Engine, name: str) -> None:
        self._engine = engine
        self._name = name
        self._guard = threading.Lock()
        self._connection: sa.Connection | None = None
        holder = self._take()
        if holder is not None:
            raise DatabaseInUse(_taken(name, holder))

    def keep(self) -> None:
        with self._guard:
            if self._connection is not None:
                try:
                    self._connection.exec_driver_sql("SELECT 1")
                except SQLAlchemyError:
                    self._drop()
                else:
                    return
            holder = self._take()
        if holder is not None:
            raise StoreFailed(_taken(self._name, holder))

    def release(self) -> None:
        with self._guard:
            self._drop()

    def _take(self) -> str | None:
        """Take it; who has it, if another does, as far as that can be seen."""
        connection = self._engine.connect()
        try:
            connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            # Of its own, never back into the pool: the lock lives as long as it.
            connection.detach()
            key = {"arena": _ARENA}
            taken = connection.execute(sa.text(_TAKE), key).scalar_one()
            if taken:
                shown = f"card-arena {os.getpid()} {socket.gethostname()}"
                for text in _SETTINGS:
                    connection.exec_driver_sql(text)
                connection.execute(sa.text(_NAME), {"name": shown[:63]})
                self._connection = connection
                return None
            holder: str | None = connection.execute(sa.text(_HOLDER), key).scalar()
            connection.close()
        except BaseException:
            connection.invalidate()
            connection.close()
            raise
        match (holder or "").split(" ", 2):
            case ["card-arena", pid, host]:
                return f"process {pid} on {host}"
        return ""

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(SQLAlchemyError):
                connection.close()


_TAKE = "SELECT pg_try_advisory_lock(:arena, hashtext(current_schema()))"
_NAME = "SELECT set_config('application_name', :name, false)"
_HOLDER = """
SELECT application_name FROM pg_stat_activity JOIN pg_locks USING (pid)
WHERE locktype = 'advisory' AND granted AND classid = :arena AND objsubid = 2
AND objid = (hashtext(current_schema())::bigint & 4294967295)::oid
AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_SETTINGS = (
    "SET idle_session_timeout = 0",
    "SET tcp_keepalives_idle = 20",
    "SET tcp_keepalives_interval = 10",
    "SET tcp_keepalives_count = 4",
)
