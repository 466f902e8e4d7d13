"""Group commit: one thread writes what all others queue, and a caller may wait for the disk.

The changes that are queued between two commits go into the next one, so that a commit, which takes
a disk milliseconds, serves many of them: two begin at least `PAUSE_S` apart unless somebody waits
for the disk. A change that takes time to encode is queued as a function and encoded in that thread.
What an error that can pass keeps from the disk (it is full, another program holds the write lock,
the server is away) is tried again for as long as the writer is open. A commit may have been made
though its reply was lost, so each leaves a mark, which is looked for before it is repeated. After a
commit has failed for good, nothing more is written or accepted, as later changes may build on the
missing ones; every match played then is void (J5).
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

CLOSING_S = 5.0  # for what is left, where an error that can pass keeps it from the disk
RETRY_S = 0.5
BUSY_S = 0.5  # in SQLite, where another program holds its write lock
PAUSE_S = 0.05  # with commits one after another, a short match costs the writer three times as much
GROUP = 1000  # most changes in one transaction, so that readers never wait long for news

Row: TypeAlias = tuple[str, dict[str, Any]]
"""The name of a statement, and its values."""
Rows: TypeAlias = tuple[Row, ...]
Change: TypeAlias = Rows | Callable[[], Rows]
"""The rows of one transaction, or a function that makes them in the writer's thread."""

_MARK = META.update().where(META.c.key == "commit").values(value=sa.bindparam("mark"))
_FIRST_MARK = META.insert().values(key="commit", value=sa.bindparam("mark"))
# On a server the commit whose reply was lost may still be going on: its row is locked until then.
_MARKED = sa.select(META.c.value).where(META.c.key == "commit").with_for_update()


class Backlog(NamedTuple):
    """What has not reached the disk yet.

    Attributes:
        results: how many matches that count.
        waited_s: for how long the changes that come next have been tried.
        why: what keeps them from the disk, in a line; empty while nothing does.
        failure: why nothing can ever be written again; None while it can.
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

    The inserts among `statements` are gathered over many changes and executed in this order; a
    change with an update is executed after all before it, row by row. Messages call the database
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
        self._results = 0  # that were queued
        self._written = 0  # of them
        self._began: float | None = None  # the commit that is tried now, in monotonic seconds
        self._why = ""
        self._mark, self._is_again = "", False  # of that commit, and whether it was tried before
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
        """A future that is done when all queued changes are durable, or fails with `StoreFailed`.

        Raises what `put` raises.
        """
        self._check()
        barrier = Future[None]()
        self._queue.put(barrier)
        self._awaited.set()
        return barrier

    def close(self) -> None:
        """Write what is left; a second call does nothing.

        Raises StoreFailed if that is not possible within `CLOSING_S`, with how much is lost.
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
        except (StoreFailed, SQLAlchemyError) as error:  # who waits is told, in one line
            return error
        except Exception as error:  # no error may end the thread unseen, a failed encoding neither
            log.exception("cannot write the database %s", self._where)
            return error
        return None

    def _write(self, changes: list[Rows]) -> None:
        """Commit; where an error can pass, again and again until the writer is closed."""
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
        """Wait for an item, and take up to `GROUP` changes; False when the writer closes."""
        changes: list[_Queued] = []
        barriers: list[Future[None]] = []
        item = self._queue.get()
        self._awaited.wait(self._begin_at - time.monotonic())
        self._awaited.clear()  # who waits for what is queued later sets it again
        self._begin_at = time.monotonic() + PAUSE_S
        while item is not None:
            if isinstance(item, Future):
                barriers.append(item)
            else:
                changes.append(item)
            if len(changes) == GROUP:
                self._begin_at = 0.0  # more waits
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
    """Whether somebody may mend it: make room, end a program, start a server.

    For a `StoreFailed`, its cause decides.
    """
    if isinstance(error, StoreFailed):
        error = error.__cause__
    if isinstance(error, sa.exc.TimeoutError):  # all connections are in use
        return True
    if not isinstance(error, DBAPIError):
        return False
    if isinstance(error.orig, sqlite3.OperationalError):
        # The low byte of SQLITE_ERROR, of a missing table for one, is 1.
        return getattr(error.orig, "sqlite_errorcode", 0) & 0xFF != 1
    return isinstance(error, OperationalError) or error.connection_invalidated


def failed(verb: str, where: str, error: Exception) -> StoreFailed:
    """The error for a database that cannot be read or written, in one line."""
    reason = " ".join(str(getattr(error, "orig", None) or error).split())
    return StoreFailed(f"cannot {verb} the database {where}: {one_line(reason)}")


@contextmanager
def reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection for reading; raises StoreFailed if the database cannot be read."""
    try:
        with engine.connect() as connection:
            yield connection
    except SQLAlchemyError as error:
        raise failed("read", shown(engine.url), error) from error


@contextmanager
def writing(engine: sa.Engine, revision: str | None = None) -> Iterator[sa.Connection]:
    """One transaction; raises StoreFailed if it fails, or if a row cannot be decoded.

    With `revision`, a key of the table `meta`, it raises that, as `raise_revision` does.
    """
    try:
        with changing(engine) as connection:
            if revision is not None:
                raise_revision(connection, revision)
            yield connection
    except (SQLAlchemyError, msgspec.DecodeError) as error:
        raise failed("write", shown(engine.url), error) from error


def raise_revision(connection: sa.Connection, key: str) -> None:
    """Raise a revision, whose row is locked: changes of several processes wait for each other."""
    is_it = META.c.key == key
    row = connection.execute(sa.select(META.c.value).where(is_it).with_for_update()).one()
    connection.execute(META.update().where(is_it).values(value=str(int(row.value) + 1)))
