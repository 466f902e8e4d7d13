"""Checks the records of many matches (`arena/records/verify.py`), in the order in which they come; if there are many, on all cores.

A few are done in this process, as starting others takes longer. The others are started anew and not forked, as whoever checks a
database has threads; so a module that calls this must be one that can be imported without doing anything.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeAlias

from arena.records.verify import PlannedMatch, RecordCheck, check
from arena.storage.models import MatchRow
from arena.storage.reader import document_of
from protocol.errors import ArenaError

__all__ = ["CheckWorkers", "Stored"]

_CHUNK_BYTES = 256 * 1024  # of records that are checked in one go
_CHUNK_MATCHES = 100
_ALONE_BYTES = 1024 * 1024  # what is checked before other processes are worth their start
_MOST_WORKERS = 8

Stored: TypeAlias = tuple[MatchRow, bytes]
"""A match from the database, and the bytes of its record."""


class CheckWorkers:
    """Use it as a context: it ends the processes that it has started."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._workers = min(os.cpu_count() or 1, _MOST_WORKERS)
        self._alone = 0

    def __enter__(self) -> CheckWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def check(
        self, stored: Iterable[Stored], expected: PlannedMatch
    ) -> Iterator[tuple[MatchRow, RecordCheck]]:
        """Each match with what became of it.

        Raises:
            ArenaError: one of the processes was ended from outside.
        """
        running: deque[tuple[list[Stored], Future[list[RecordCheck]]]] = deque()
        for chunk in _chunks(stored):
            if self._works_alone(chunk):
                yield from _together(chunk, _check_chunk(chunk, expected))
                continue
            assert self._pool is not None, "it was started when there were many"
            future = self._pool.submit(_check_chunk, chunk, expected)
            running.append((chunk, future))
            if len(running) > 2 * self._workers:
                yield from _waited_for(running)
        while running:
            yield from _waited_for(running)

    def _works_alone(self, chunk: Sequence[Stored]) -> bool:
        if self._pool is not None:
            return False
        self._alone += sum(len(record) for _, record in chunk)
        if self._alone <= _ALONE_BYTES or self._workers == 1:
            return True
        # Not by fork: the store has threads.
        self._pool = ProcessPoolExecutor(
            self._workers, multiprocessing.get_context("spawn"), _leave_interrupts
        )
        return False


def _leave_interrupts() -> None:
    """Ctrl-C reaches all processes of a terminal; who has started us sees to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _check_chunk(chunk: Sequence[Stored], expected: PlannedMatch) -> list[RecordCheck]:
    return [check(document_of(played, record), expected) for played, record in chunk]


def _waited_for(
    running: deque[tuple[list[Stored], Future[list[RecordCheck]]]],
) -> Iterator[tuple[MatchRow, RecordCheck]]:
    chunk, future = running.popleft()
    try:
        done = future.result()
    except BrokenProcessPool:
        raise ArenaError(
            "a process that checked matches was ended from outside; is there enough memory"
        ) from None
    yield from _together(chunk, done)


def _together(
    chunk: Sequence[Stored], done: Sequence[RecordCheck]
) -> Iterator[tuple[MatchRow, RecordCheck]]:
    for (played, _), checked in zip(chunk, done, strict=True):
        yield played, checked


def _chunks(stored: Iterable[Stored]) -> Iterator[list[Stored]]:
    chunk: list[Stored] = []
    size = 0
    for one in stored:
        chunk.append(one)
        size += len(one[1])
        if size >= _CHUNK_BYTES or len(chunk) >= _CHUNK_MATCHES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
