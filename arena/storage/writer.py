"""Group commit: one thread writes what all others put in, and whoever wants to can wait for the disk.

What has gathered while the last transaction was being committed goes into the next, so that a commit, which takes a disk
milliseconds, serves as many changes as there happen to be. What takes time to encode is handed in as a function and encoded in
that thread, too. A disk that is full, or held by another, is tried again for a minute: somebody may make room. When a commit has
failed for good nothing more is written or accepted, as what comes later may build on what is missing; whatever is played then is
void (J5).
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

PATIENCE_S = 60.0  # for an instructor to make room on a disk
RETRY_S = 1.0
GROUP = 1000  # changes in one transaction at most, so that readers never wait long for news

Row: TypeAlias = tuple[str, dict[str, Any]]
"""The name of a statement, and its values."""
Rows: TypeAlias = tuple[Row, ...]
Change: TypeAlias = Rows | Callable[[], Rows]
"""What belongs into one transaction, or what makes it when it is to be written."""


class Writer:
    """A database's only writer in this process, with a thread of its own.

    Args:
        engine: the database.
        statements: by name. Those that insert are gathered over many changes and carried out in this order; a change that has
            any other is carried out after all before it, row by row.
        where: the database's name for messages.
        lock: what must be held by whoever writes.
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
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def put(self, change: Change) -> None:
        """Have a change written soon.

        Raises:
            StoreFailed: an earlier one could not be written.
            UsageError: the writer is closed.
        """
        self._put(change)

    def barrier(self) -> Future[None]:
        """Done when all that was put in so far is durable, or with `StoreFailed`; itself it raises what `put` raises."""
        barrier = Future[None]()
        self._put(barrier)
        return barrier

    def close(self) -> None:
        """Write what is left, and wait for it; once more does nothing.

        Raises:
            StoreFailed: something could not be written.
        """
        if not self._closed:
            self._closed = True
            self._closing.set()
            self._queue.put(None)
            self._thread.join()
            self._check()

    def _put(self, item: Change | Future[None]) -> None:
        if self._closed:
            raise UsageError(f"expected an open database, {self._where} is closed")
        self._check()
        self._queue.put(item)

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
        except Exception as error:  # what cannot be encoded must not end the thread
            log.exception("cannot write the database %s", self._where)
            return error
        return self._write(made)

    def _write(self, changes: list[Rows]) -> Exception | None:
        """Commit, again and again if that may help; why it could not be done, if so."""
        give_up_at = time.monotonic() + PATIENCE_S
        told = False
        while True:
            try:
                self._commit(changes)
                return None
            except OperationalError as error:  # full, locked, out of reach
                if self._closing.is_set() or time.monotonic() >= give_up_at:
                    return error  # which is told to whoever writes next
                if not told:
                    told = True
                    reason = failed("write", self._where, error)
                    text = "%s; trying again for %.0f s"
                    log.warning(text, reason, PATIENCE_S)
                self._closing.wait(RETRY_S)
            except StoreFailed as error:  # the lock was lost, which it says in one line
                return error
            except Exception as error:  # of any kind: it must not end the thread unseen
                log.exception("cannot write the database %s", self._where)
                return error

    def _resolve(self, barrier: Future[None]) -> None:
        if self._failure is None:
            barrier.set_result(None)
        else:
            barrier.set_exception(failed("write", self._where, self._failure))

    def _gather(self) -> tuple[list[Change], list[Future[None]], bool]:
        """Wait for something to do, and take what else is there; False once the writer is being closed."""
        changes: list[Change] = []
        barriers: list[Future[None]] = []
        item = self._queue.get()
        while item is not None:
            if isinstance(item, Future):
                barriers.append(item)
            else:
                changes.append(item)
            if len(changes) == GROUP or self._queue.empty():
                return changes, barriers, True
            item = self._queue.get()  # nobody else takes, so it is still there
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
    """What to say when the database cannot be read or written, in one line."""
    reason = " ".join(str(getattr(error, "orig", None) or error).split())
    return StoreFailed(f"cannot {verb} the database {where}: {one_line(reason)}")


@contextmanager
def reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection to read by.

    Raises:
        StoreFailed: the database cannot be read.
    """
    try:
        with engine.connect() as connection:
            yield connection
    except SQLAlchemyError as error:
        raise failed("read", shown(engine.url), error) from error


@contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """One transaction; changes of one process wait for those of another.

    Raises:
        StoreFailed: the database cannot be written, or holds what nobody of ours has written.
    """
    try:
        with changing(engine) as connection:
            yield connection
    except (SQLAlchemyError, msgspec.DecodeError) as error:
        raise failed("write", shown(engine.url), error) from error
