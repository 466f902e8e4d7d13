"""Group commit: one thread writes what all others queue, and a caller may wait for the disk.

Changes that are queued between two commits go into the next one, so that one commit, which takes a
disk milliseconds, serves many changes. Two commits begin at least `PAUSE_S` apart unless somebody
waits for the disk. A change that is slow to encode is queued as a function and encoded in that
thread. Errors that can pass (a full disk, a write lock held by another program, a server that is
away) are retried for as long as the writer is open. A commit may have succeeded though its reply
was lost, so each leaves a mark, which is looked for before a retry. After a commit has failed for
good, nothing more is written or accepted, as later changes may build on the missing ones; every
match played then is void (J5).
"""

from __future__ import annotations

import logging
import queue
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from arena.storage.lock import Lock
from arena.storage.schema import META, changing, shown
from protocol.errors import StoreFailed, UsageError, one_line

__all__ = [
    "Backlog",
    "Change",
    "Row",
    "Rows",
    "Writer",
    "can_pass",
    "failed",
    "raise_revision",
    "reading",
    "writing",
]

log = logging.getLogger(__name__)

CLOSING_S = 5.0  # how long `close` retries after an error that can pass
RETRY_S = 0.5
BUSY_S = 0.5  # how long a commit waits for a write lock that another program holds
PAUSE_S = 0.05  # with commits one after another, a short match costs the writer three times as much
GROUP = 1000  # most changes in one transaction, so that readers never wait long for news

Row: TypeAlias = tuple[str, dict[str, Any]]
"""The name of a statement, and its values."""
Rows: TypeAlias = tuple[Row, ...]
Change: TypeAlias = Rows | Callable[[], Rows]
"""The rows of one transaction, or a function that makes them in the writer's thread."""

_MARK = META.update().where(META.c.key == "commit").values(value=sa.bindparam("mark"))
_FIRST_MARK = META.insert().values(key="commit", value=sa.bindparam("mark"))
# A server may still be working on the commit whose reply was lost: its row is locked until then.
_MARKED = sa.select(META.c.value).where(META.c.key == "commit").with_for_update()


class Backlog(NamedTuple):
    """The changes that have not reached the disk yet.

    Attributes:
        results: how many matches that count are among them.
        waited_s: for how long the next commit has been tried.
        why: what keeps the changes from the disk, in a line; empty if nothing does.
        failure: why nothing can ever be written again; None while writing is possible.
    """

    results: int
    waited_s: float
    why: str
    failure: StoreFailed | None = None


class _Queued(NamedTuple):
    change: Change
    results: int


class Writer:
    """A database's only writer in this process, with a thread of its own.

    Inserts are gathered over many changes and executed in the order of `statements`. A change with
    an update is executed row by row, after all changes before it. Error messages call the database
    `where`. The lock is checked before each commit.
    """

    def __init__(
        self,
        engine: sa.Engine,
        statements: Mapping[str, sa.Insert | sa.Update],
        where: str,
        lock: Lock | None = None,
    ) -> None:
        self._engine = engine
        self._lock = lock
        self._statements = statements
        self._inserts = {
            name: isinstance(statement, sa.Insert) for name, statement in statements.items()
        }
        self._where = where
        self._queue = queue.SimpleQueue[_Queued | Future[None] | None]()
        self._results = 0  # matches that were queued
        self._written = 0  # matches of these that are on the disk
        self._began: float | None = None  # when the current commit was first tried, monotonic
        self._why = ""
        self._mark, self._is_again = "", False  # of the current commit; whether this is a retry
        self._give_up_at = float("inf")
        self._failure: Exception | None = None
        self._closed = False
        self._awaited = threading.Event()  # somebody waits for what is queued
        self._begin_at = 0.0  # when the next commit may begin if nobody waits
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def put(self, change: Change, results: int = 0) -> None:
        """Queue a change; `results` is how many of its matches count.

        Raises StoreFailed if an earlier change could not be written, UsageError after `close`.
        """
        self._check()
        self._results += results
        self._queue.put(_Queued(change, results))

    @property
    def backlog(self) -> Backlog:
        began = self._began
        waited_s = 0.0 if began is None else time.monotonic() - began
        failure = None if self._failure is None else self._failed(self._failure)
        return Backlog(self._results - self._written, waited_s, self._why, failure)

    def barrier(self) -> Future[None]:
        """Return a future that is done once all queued changes are durable.

        It fails with `StoreFailed` if they cannot be written. Raises what `put` raises.
        """
        self._check()
        barrier = Future[None]()
        self._queue.put(barrier)
        self._awaited.set()
        return barrier

    def close(self) -> None:
        """Write the remaining changes; a second call does nothing.

        Raises StoreFailed, with the number of lost matches, if `CLOSING_S` is not enough.
        """
        if not self._closed:
            self._closed = True
            self._give_up_at = time.monotonic() + CLOSING_S
            self._queue.put(None)
            self._awaited.set()
            self._thread.join()
            if self._failure is not None:
                raise self._failed(self._failure) from self._failure

    def _check(self) -> None:
        if self._closed:
            raise UsageError(f"the database {self._where} is closed")
        if self._failure is not None:
            raise self._failed(self._failure) from self._failure

    def _failed(self, error: Exception) -> StoreFailed:
        lost = self._results - self._written
        of_matches = (
            "1 match that was over is" if lost == 1 else f"{lost:,} matches that were over are"
        )
        told = failed("write", self._where, error)
        return StoreFailed(f"{told}; {of_matches} lost") if lost else told

    # --- in the thread ---

    def _run(self) -> None:
        more = True
        while more:
            group, barriers, more = self._gather()
            if group and self._failure is None:
                self._failure = self._write_all([queued.change for queued in group])
                if self._failure is None:
                    self._written += sum(queued.results for queued in group)
            for barrier in barriers:
                if barrier.set_running_or_notify_cancel():
                    self._resolve(barrier)

    def _write_all(self, changes: list[Change]) -> Exception | None:
        self._began = time.monotonic()
        try:
            made = [change() if callable(change) else change for change in changes]
            self._write(made)
        except (StoreFailed, SQLAlchemyError) as error:  # those who wait get it in one line
            return error
        except Exception as error:  # no error may end the thread unseen, not even in encoding
            log.exception("cannot write the database %s", self._where)
            return error
        return None

    def _write(self, changes: list[Rows]) -> None:
        """Commit the changes, and retry errors that can pass until the writer is closed."""
        self._mark, self._is_again = secrets.token_hex(8), False
        while True:
            try:
                self._commit(changes)
                break
            except SQLAlchemyError as error:
                if not can_pass(error) or time.monotonic() >= self._give_up_at:
                    raise
                self._why = str(failed("write", self._where, error))
            self._is_again = True
            time.sleep(RETRY_S)
        self._began, self._why = None, ""

    def _resolve(self, barrier: Future[None]) -> None:
        if self._failure is None:
            barrier.set_result(None)
        else:
            barrier.set_exception(self._failed(self._failure))

    def _gather(self) -> tuple[list[_Queued], list[Future[None]], bool]:
        """Wait for an item, and take up to `GROUP` changes; the flag is False on closing."""
        changes: list[_Queued] = []
        barriers: list[Future[None]] = []
        item = self._queue.get()
        self._awaited.wait(self._begin_at - time.monotonic())
        self._awaited.clear()  # a later barrier sets it again
        self._begin_at = time.monotonic() + PAUSE_S
        while item is not None:
            if isinstance(item, Future):
                barriers.append(item)
            else:
                changes.append(item)
            if len(changes) == GROUP:
                self._begin_at = 0.0  # more changes are waiting
                return changes, barriers, True
            if self._queue.empty():
                return changes, barriers, True
            item = self._queue.get()  # does not block: no other thread takes items
        return changes, barriers, False

    def _commit(self, changes: list[Rows]) -> None:
        if self._lock is not None:
            self._lock.keep()
        with changing(self._engine, BUSY_S) as connection:
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = {round(BUSY_S * 1000)}")
            if self._is_again and connection.execute(_MARKED).scalar() == self._mark:
                return
            if not connection.execute(_MARK, {"mark": self._mark}).rowcount:
                connection.execute(_FIRST_MARK, {"mark": self._mark})
            gathered: list[Row] = []
            for change in changes:
                if all(self._inserts[name] for name, _ in change):
                    gathered += change
                else:
                    self._insert(connection, gathered)
                    gathered = []
                    for name, row in change:
                        connection.execute(self._statements[name], row)
            self._insert(connection, gathered)

    def _insert(self, connection: sa.Connection, rows: list[Row]) -> None:
        values: dict[str, list[dict[str, Any]]] = {}
        for name, row in rows:
            values.setdefault(name, []).append(row)
        for name, statement in self._statements.items():
            if name in values:
                connection.execute(statement, values[name])


def can_pass(error: BaseException | None) -> bool:
    """Return whether somebody may clear the error: free space, end a program, start a server.

    The cause of a `StoreFailed` decides.
    """
    if isinstance(error, StoreFailed):
        error = error.__cause__
    if isinstance(error, sa.exc.TimeoutError):  # all connections are in use
        return True
    if not isinstance(error, DBAPIError):
        return False
    if isinstance(error.orig, sqlite3.OperationalError):
        # The low byte of SQLITE_ERROR, such as for a missing table, is 1.
        return getattr(error.orig, "sqlite_errorcode", 0) & 0xFF != 1
    return isinstance(error, OperationalError) or error.connection_invalidated


def failed(verb: str, where: str, error: Exception) -> StoreFailed:
    """Make the error, in one line, for a database that cannot be read or written."""
    reason = " ".join(str(getattr(error, "orig", None) or error).split())
    return StoreFailed(f"cannot {verb} the database {where}: {one_line(reason)}")


@contextmanager
def reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Open a connection for reading; raises StoreFailed if the database cannot be read."""
    try:
        with engine.connect() as connection:
            yield connection
    except SQLAlchemyError as error:
        raise failed("read", shown(engine.url), error) from error


@contextmanager
def writing(engine: sa.Engine, revision: str | None = None) -> Iterator[sa.Connection]:
    """Run one transaction; raises StoreFailed if it fails, or if a row cannot be decoded.

    With `revision`, a key of the table `meta`, it also raises that revision (`raise_revision`).
    """
    try:
        with changing(engine) as connection:
            if revision is not None:
                raise_revision(connection, revision)
            yield connection
    except (SQLAlchemyError, msgspec.DecodeError) as error:
        raise failed("write", shown(engine.url), error) from error


def raise_revision(connection: sa.Connection, key: str) -> None:
    """Increase a revision, and lock its row: changes by several processes wait for each other."""
    is_it = META.c.key == key
    row = connection.execute(sa.select(META.c.value).where(is_it).with_for_update()).one()
    connection.execute(META.update().where(is_it).values(value=str(int(row.value) + 1)))
