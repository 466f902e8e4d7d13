"""Checks the records of many matches (`arena/records/verify.py`) in order, if need be on all cores.

A few are checked in this process, as the start of others takes longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias

from arena.records.verify import PlannedMatch, RecordCheck, check
from arena.sandbox.worker_pool import WorkerPool, startable, usable_cores
from arena.storage.models import MatchRow
from arena.storage.reader import document_of

__all__ = ["CheckWorkers", "Stored"]

_CHUNK_BYTES = 256 * 1024  # of records that are checked in one go
_CHUNK_MATCHES = 100
_ALONE_BYTES = 1024 * 1024  # of records: more are worth the start of other processes
_MOST_WORKERS = 8

Stored: TypeAlias = tuple[MatchRow, bytes]  # a match of the database, and its record
_Chunk: TypeAlias = tuple[list[Stored], PlannedMatch]


class CheckWorkers:
    """Checks stored matches, many at once in processes, which end with its `with` block."""

    def __init__(self) -> None:
        self._workers = startable(min(usable_cores(), _MOST_WORKERS))
        self._pool: WorkerPool[_Chunk, list[RecordCheck]]
        self._pool = WorkerPool(_check_chunk, self._workers, "checked matches")
        self._alone = 0

    def __enter__(self) -> CheckWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def check(
        self, stored: Iterable[Stored], expected: PlannedMatch
    ) -> Iterator[tuple[MatchRow, RecordCheck]]:
        """Each match with the outcome of its check; ArenaError if a process was killed."""
        chunks = ((chunk, expected) for chunk in _chunks(stored))
        for chunk in chunks:
            if not self._works_alone(chunk[0]):
                for shared, checks in self._pool.run(chain([chunk], chunks)):
                    yield from _with_matches(shared, checks)
                return
            yield from _with_matches(chunk, _check_chunk(chunk))

    def _works_alone(self, chunk: Sequence[Stored]) -> bool:
        self._alone += sum(len(record) for _, record in chunk)
        return self._alone <= _ALONE_BYTES or self._workers == 1


def _check_chunk(chunk: _Chunk, tick: Callable[[], None] = lambda: None) -> list[RecordCheck]:
    stored, expected = chunk
    return [check(document_of(played, record), expected) for played, record in stored]


def _with_matches(
    chunk: _Chunk, checks: Sequence[RecordCheck]
) -> Iterator[tuple[MatchRow, RecordCheck]]:
    return zip((played for played, _ in chunk[0]), checks, strict=True)


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
