"""Works through stored records, a few at a time, and if there are many on all cores.

The first ones are worked on in this process, as the start of others takes longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from arena.sandbox.worker_pool import WorkerPool, startable, usable_cores

__all__ = ["RecordChunk", "chunked", "on_all_cores"]

_CHUNK_BYTES = 256 * 1024  # of records that are worked on in one go
_CHUNK_MATCHES = 100
_ALONE_BYTES = 1024 * 1024  # of records: more are worth the start of other processes
_MOST_WORKERS = 8

About = TypeVar("About")
Match = TypeVar("Match")
Result = TypeVar("Result")


class RecordChunk(NamedTuple, Generic[About, Match]):
    """Some matches with their stored records, and what is known of all of them."""

    about: About
    stored: list[tuple[Match, bytes]]


_Task: TypeAlias = Callable[[RecordChunk[About, Match], Callable[[], None]], Result]


def chunked(
    about: About, stored: Iterable[tuple[Match, object]]
) -> Iterator[RecordChunk[About, Match]]:
    """Matches as chunks, at least one; a damaged record that is no blob any more is encoded."""
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
    """Each chunk with its result, in order; `work` says in an error what the processes did.

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
