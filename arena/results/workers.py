"""Checks the records of many matches (`arena/records/verify.py`) in order, if need be on all cores.

A few are checked in this process, as the start of others takes longer. Others are spawned, not
forked, as a store has threads; so the main module must do nothing when it is imported.
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
_ALONE_BYTES = 1024 * 1024  # of records: more are worth the start of other processes
_MOST_WORKERS = 8

Stored: TypeAlias = tuple[MatchRow, bytes]  # a match of the database, and its record
_Running: TypeAlias = deque[tuple[list[Stored], Future[list[RecordCheck]]]]


class CheckWorkers:
    """Checks stored matches, many at once in processes, which end with its `with` block."""

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
        """Each match with the outcome of its check; ArenaError if a process was killed."""
        running: _Running = deque()
        for chunk in _chunks(stored):
            if self._works_alone(chunk):
                yield from _with_matches(chunk, _check_chunk(chunk, expected))
                continue
            assert self._pool is not None, "it was started when there were many"
            running.append((chunk, self._pool.submit(_check_chunk, chunk, expected)))
            if len(running) > 2 * self._workers:
                yield from _first_result(running)
        while running:
            yield from _first_result(running)

    def _works_alone(self, chunk: Sequence[Stored]) -> bool:
        if self._pool is not None:
            return False
        self._alone += sum(len(record) for _, record in chunk)
        if self._alone <= _ALONE_BYTES or self._workers == 1:
            return True
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(self._workers, context, _ignore_interrupts)
        return False


def _ignore_interrupts() -> None:
    # Ctrl-C reaches all processes of a terminal; the one that has started us ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _check_chunk(chunk: Sequence[Stored], expected: PlannedMatch) -> list[RecordCheck]:
    return [check(document_of(played, record), expected) for played, record in chunk]


def _first_result(running: _Running) -> Iterator[tuple[MatchRow, RecordCheck]]:
    chunk, future = running.popleft()
    try:
        checks = future.result()
    except BrokenProcessPool:
        raise ArenaError(
            "a process that checked matches was ended from outside; is there enough memory"
        ) from None
    yield from _with_matches(chunk, checks)


def _with_matches(
    chunk: Sequence[Stored], checks: Sequence[RecordCheck]
) -> Iterator[tuple[MatchRow, RecordCheck]]:
    return zip((played for played, _ in chunk), checks, strict=True)


def _chunks(stored: Iterable[Stored]) -> Iterator[list[Stored]]:
    chunk: list[Stored] = []
    size = 0
    for played, record in stored:
        chunk.append((played, record))
        size += len(record)
        if size >= _CHUNK_BYTES or len(chunk) >= _CHUNK_MATCHES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
