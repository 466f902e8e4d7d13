"""Processes stored records a few at a time, and on all cores if there are many.

The first records are processed here, as starting other processes would take longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from arena.sandbox.worker_pool import WorkerPool, startable, usable_cores

__all__ = ["RecordChunk", "chunked", "on_all_cores"]

_CHUNK_BYTES = 256 * 1024  # of records that are processed in one go
_CHUNK_MATCHES = 100
_ALONE_BYTES = 1024 * 1024  # of records: for more than this, other processes are started
_MOST_WORKERS = 8

About = TypeVar("About")
Match = TypeVar("Match")
Result = TypeVar("Result")


class RecordChunk(NamedTuple, Generic[About, Match]):
    """Some matches with their stored records, and `about`, the context that they share."""

    about: About
    stored: list[tuple[Match, bytes]]


_Task: TypeAlias = Callable[[RecordChunk[About, Match], Callable[[], None]], Result]


def chunked(
    about: About, stored: Iterable[tuple[Match, object]]
) -> Iterator[RecordChunk[About, Match]]:
    """Split matches into chunks, at least one; a damaged record that is no blob is encoded."""
    chunk: list[tuple[Match, bytes]] = []
    size = 0
    for match, record in stored:
        data = record if isinstance(record, bytes) else str(record).encode()
        chunk.append((match, data))
        size += len(data)
        if size >= _CHUNK_BYTES or len(chunk) >= _CHUNK_MATCHES:
            yield RecordChunk(about, chunk)
            chunk, size = [], 0
    yield RecordChunk(about, chunk)


def on_all_cores(
    task: _Task[About, Match, Result], chunks: Iterable[RecordChunk[About, Match]], work: str
) -> Iterator[tuple[RecordChunk[About, Match], Result]]:
    """Yield each chunk with its result, in order; errors name the processes' `work`.

    Raises ArenaError if a process was killed.
    """
    workers = startable(min(usable_cores(), _MOST_WORKERS))
    chunks, size = iter(chunks), 0
    for chunk in chunks:
        size += sum(len(record) for _, record in chunk.stored)
        if size > _ALONE_BYTES and workers > 1:
            with WorkerPool(task, workers, work) as pool:
                yield from pool.run(chain([chunk], chunks))
            return
        yield chunk, task(chunk, lambda: None)
