"""The lock of the arena that runs on a database, so that no second one plays the same competitions.

For SQLite the lock is a file beside the database, locked by the operating system. For PostgreSQL it
is an advisory lock on a connection of its own. Both are freed when their holder dies, so nothing
has to be cleaned up after `kill -9` or a power cut. Both can be lost, with the file or the
connection, so the writer checks before each commit that the lock is still held. Readers, and
commands that write one row, do not take it. A launched bot does not inherit it, as Python closes
its files on exec.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from arena.sandbox.workdir import LOCK_SUFFIX
from protocol.errors import StoreFailed, UsageError

__all__ = ["DatabaseInUse", "Lock", "hold"]

_WAIT_S = 0.1  # a lock that is being released is free in a moment
_LOOK_S = 0.01
_ARENA = 0x63617264  # "card": first half of the key of PostgreSQL's lock; the second is the schema


class DatabaseInUse(UsageError):
    """Another arena runs on the database."""


class Lock(Protocol):
    """A lock that is held."""

    def keep(self) -> None:
        """Check before a write that the lock is still held.

        Raises StoreFailed if it was lost, as another arena may have it. Raises SQLAlchemyError if
        the server cannot be reached; the caller may then try again.
        """

    def release(self) -> None:
        """Free the lock; a second call does nothing."""


def hold(engine: sa.Engine, name: str) -> Lock:
    """Take the lock of an arena's database. Error messages call the database `name`.

    Raises:
        DatabaseInUse: another arena holds it.
        UsageError: the lock file cannot be made.
        SQLAlchemyError: the server cannot be reached.
    """
    if engine.dialect.name == "sqlite":
        return _FileLock(Path(engine.url.database or ""), name)
    return _ServerLock(engine, name)


def _taken(name: str, holder: str) -> str:
    by = f" by {holder}" if holder else ""
    return f"expected a database that no other arena runs on, {name} is in use{by}"


class _FileLock:
    """A file beside the database, with the holder's pid in it; it is removed with the lock."""

    def __init__(self, database: Path, name: str) -> None:
        from filelock import FileLock, Timeout  # only an arena needs it

        database = database.resolve()  # a link to the database leads to the same lock
        self._file = database.with_name(database.name + LOCK_SUFFIX)
        self._lock = FileLock(
            self._file,
            _WAIT_S,
            mode=0o644,
            thread_local=False,
            poll_interval=_LOOK_S,
            on_acquired=self._write_pid,
        )
        try:
            self._lock.acquire()
        except Timeout:
            raise DatabaseInUse(_taken(name, _pid_in(self._file))) from None
        except OSError as error:
            reason = error.strerror or error
            raise UsageError(f"cannot lock the database {name}: {self._file}: {reason}") from error

    def keep(self) -> None:
        """Raise StoreFailed if the file is gone: the next arena would lock a new file instead."""
        try:
            is_there = not self._lock.is_locked or self._is_there()
        except OSError as error:
            reason = error.strerror or error
            raise StoreFailed(f"cannot see the lock {self._file}: {reason}") from error
        if not is_there:
            raise StoreFailed(
                f"expected the lock {self._file} to stay, but it was removed or replaced: "
                "another arena may run on this database"
            )

    def release(self) -> None:
        if self._lock.is_locked:
            with contextlib.suppress(OSError):  # Windows cannot remove an open file: it stays
                if self._is_there():  # after a lost lock, the file is another arena's
                    self._file.unlink()
            self._lock.release()

    def _write_pid(self, fd: int) -> None:
        os.ftruncate(fd, 0)
        os.write(fd, b" %d\n" % os.getpid())  # on Windows nobody else reads the first byte
        self._held = os.fstat(fd)

    def _is_there(self) -> bool:
        """Return whether the locked file is still the one that others find."""
        try:
            return os.path.samestat(self._held, self._file.stat())
        except FileNotFoundError:
            return False


def _pid_in(file: Path) -> str:
    try:
        with file.open("rb", buffering=0) as text:
            text.seek(1)
            return f"process {int(text.read(20))}"
    except (OSError, ValueError):
        return ""


class _ServerLock:
    """An advisory lock, freed with its connection, at most a minute after the machine has died."""

    def __init__(self, engine: sa.Engine, name: str) -> None:
        self._engine = engine
        self._name = name
        self._guard = threading.Lock()
        self._connection: sa.Connection | None = None
        self._backend: int | None = None  # the server's process behind that connection
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
            with contextlib.suppress(SQLAlchemyError):
                if self._connection is not None:
                    # The server frees the lock of a closed connection only a moment later.
                    self._connection.execute(sa.text(_FREE), {"arena": _ARENA})
            self._drop()

    def _take(self, tries: int = 3) -> str | None:
        """Take the lock; otherwise return the process that holds it, or "" if that is unknown.

        Try again if the lock was freed before its holder could be seen.
        """
        connection = self._engine.connect()
        try:
            connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            key = {"arena": _ARENA}
            if connection.execute(sa.text(_TAKE), key).scalar_one():
                shown = f"card-arena {os.getpid()} {socket.gethostname()}"
                for text in _SETTINGS:
                    connection.exec_driver_sql(text)
                connection.execute(sa.text(_NAME), {"name": shown[:63]})
                self._backend = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
                connection.detach()  # it never returns to the pool, as the lock lives as long as it
                self._connection = connection
                return None
            holder = connection.execute(sa.text(_HOLDER), key).first()
            if holder is not None and holder.pid == self._backend:
                cut = TimeoutError("the server will soon notice that a connection was cut")
                raise OperationalError("take the lock", None, cut)
            if holder is None and tries == 1:
                nobody = TimeoutError("nobody holds it, and it is not given: is there a schema")
                raise OperationalError("take the lock", None, nobody)
            connection.close()
        except BaseException:
            connection.invalidate()
            connection.close()
            raise
        if holder is None:
            return self._take(tries - 1)
        match (holder.application_name or "").split(" ", 2):
            case ["card-arena", pid, host]:
                return f"process {pid} on {host}"
        return ""

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(SQLAlchemyError):
                connection.close()


_TAKE = "SELECT pg_try_advisory_lock(:arena, hashtext(current_schema()))"
_FREE = "SELECT pg_advisory_unlock(:arena, hashtext(current_schema()))"
_NAME = "SELECT set_config('application_name', :name, false)"
_HOLDER = """
SELECT pid, application_name FROM pg_stat_activity JOIN pg_locks USING (pid)
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
