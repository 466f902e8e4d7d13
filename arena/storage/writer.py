"""Group commit: one thread writes what all others queue, and a caller may wait for the disk.

The changes that are queued between two commits go into the next one, so that a commit, which takes
a disk milliseconds, serves many of them: two begin at least `PAUSE_S` apart unless somebody waits
for the disk. A change that takes time to encode is queued as a function and encoded in that thread.
A commit is retried for a minute if the disk is full or the database locked: somebody may make room.
After a commit has failed for good, nothing more is written or accepted, as later changes may build
on the missing ones; every match played then is void (J5).
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeAlias

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from arena.storage.lock import Lock
from arena.storage.schema import changing, shown
from protocol.errors import StoreFailed, UsageError, one_line

__all__ = ["Change", "Row", "Rows", "Writer", "failed", "reading", "writing"]

log = logging.getLogger(__name__)

PATIENCE_S = 60.0  # time for an instructor to make room on a disk
RETRY_S = 1.0
PAUSE_S = 0.05  # with commits one after another, a short match costs the writer three times as much
GROUP = 1000  # most changes in one transaction, so that readers never wait long for news

Row: TypeAlias = tuple[str, dict[str, Any]]
"""The name of a statement, and its values."""
Rows: TypeAlias = tuple[Row, ...]
Change: TypeAlias = Rows | Callable[[], Rows]
"""The rows of one transaction, or a function that makes them in the writer's thread."""


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
        self._queue = queue.SimpleQueue[Change | Future[None] | None]()
        self._failure: Exception | None = None
        self._closed = False
        self._closing = threading.Event()
        self._awaited = threading.Event()  # somebody waits for what is queued
        self._begin_at = 0.0  # when the next commit may begin if nobody waits
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def put(self, change: Change | Future[None]) -> None:
        """Queue a change, or the future of a `barrier`.

        Raises StoreFailed if an earlier change could not be written, UsageError after `close`.
        """
        if self._closed:
            raise UsageError(f"the database {self._where} is closed")
        self._check()
        self._queue.put(change)

    def barrier(self) -> Future[None]:
        """A future that is done when all queued changes are durable, or fails with `StoreFailed`.

        Raises what `put` raises.
        """
        barrier = Future[None]()
        self.put(barrier)
        self._awaited.set()
        return barrier

    def close(self) -> None:
        """Write what is left, or raise StoreFailed; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self._closing.set()
            self._queue.put(None)
            self._awaited.set()
            self._thread.join()
            self._check()

    def _check(self) -> None:
        if self._failure is not None:
            raise failed("write", self._where, self._failure) from self._failure

    # --- in the thread ---

    def _run(self) -> None:
        more = True
        while more:
            changes, barriers, more = self._gather()
            if changes and self._failure is None:
                self._failure = self._write_all(changes)
            for barrier in barriers:
                if barrier.set_running_or_notify_cancel():
                    self._resolve(barrier)

    def _write_all(self, changes: list[Change]) -> Exception | None:
        try:
            made = [change() if callable(change) else change for change in changes]
        except Exception as error:  # a failed encoding must not end the thread
            log.exception("cannot write the database %s", self._where)
            return error
        return self._write(made)

    def _write(self, changes: list[Rows]) -> Exception | None:
        """Commit, with retries where they may help; return the error if all failed."""
        give_up_at = time.monotonic() + PATIENCE_S
        is_logged = False
        while True:
            try:
                self._commit(changes)
                return None
            except OperationalError as error:  # full, locked, unreachable
                if self._closing.is_set() or time.monotonic() >= give_up_at:
                    return error  # the next `put` raises it
                if not is_logged:
                    is_logged = True
                    reason = failed("write", self._where, error)
                    log.warning("%s; trying again for %.0f s", reason, PATIENCE_S)
                self._closing.wait(RETRY_S)
            except StoreFailed as error:  # the lock was lost
                return error
            except Exception as error:  # no error may end the thread unseen
                log.exception("cannot write the database %s", self._where)
                return error

    def _resolve(self, barrier: Future[None]) -> None:
        if self._failure is None:
            barrier.set_result(None)
        else:
            barrier.set_exception(failed("write", self._where, self._failure))

    def _gather(self) -> tuple[list[Change], list[Future[None]], bool]:
        """Wait for an item, and take up to `GROUP` changes; False when the writer closes."""
        changes: list[Change] = []
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
        with changing(self._engine) as connection:
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
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """One transaction; raises StoreFailed if it fails, or if a row cannot be decoded."""
    try:
        with changing(engine) as connection:
            yield connection
    except (SQLAlchemyError, msgspec.DecodeError) as error:
        raise failed("write", shown(engine.url), error) from error
