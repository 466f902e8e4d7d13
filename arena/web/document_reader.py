"""Gets the page's documents from a process that reads the database, and caches them.

A document that a whole class requests in the same second is read once.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TypeAlias

from arena.records.visibility import Viewer
from arena.storage.store import Store
from arena.web.documents import error
from arena.web.questions import PageAnswer, SideQuestion
from arena.web.side_process import Failure, SideProcess
from arena.web.sized_cache import SizedCache

__all__ = ["DocumentReader"]

_FRESH_S = 1.0  # how long a document is cached
_CACHED_BYTES = 32 << 20
_LEAST_BYTES = _CACHED_BYTES // 200  # smaller ones count as this many: at most 200 are cached
_MOST_WAITING = 1_000

_BUSY = PageAnswer(503, error("too much is asked at once; try again in some seconds"))
_FAILED = {
    Failure.DIED: (
        500,
        "reading this has ended the process that reads for the page; "
        "it starts again with the next question",
    ),
    Failure.NOT_THERE: (
        503,
        "the process that reads for the page does not start, the arena's log says why; "
        "try again in some seconds",
    ),
    Failure.TOO_SLOW: (503, "this took too long to read; try again when less is played"),
    Failure.FAULT: (500, "the arena failed at this question; its log says why"),
    Failure.CLOSED: (503, "the arena is closing"),
}

_Key: TypeAlias = tuple[str, tuple[tuple[str, str], ...], Viewer, bool]


class DocumentReader:
    """Gets documents from the database of `store` by a process, and caches each for `fresh_s`."""

    def __init__(self, store: Store, *, fresh_s: float = _FRESH_S) -> None:
        self.process = SideProcess(store)
        self._fresh_s = fresh_s
        self._clock = asyncio.get_running_loop().time
        # The values are the time until which an answer is fresh, and the answer.
        self._cache = SizedCache[_Key, tuple[float, PageAnswer]](
            _CACHED_BYTES, lambda cached: max(len(cached[1].body), _LEAST_BYTES)
        )

    async def ask(self, address: str, question: SideQuestion) -> PageAnswer:
        """Return a document, or an error as `{"error": …}`. Never raises. Addresses take turns."""
        query = tuple(sorted(question.query.items()))
        key = (question.path, query, question.viewer, question.packs)
        cached = self._cache.get(key)
        if cached is not None and self._clock() < cached[0]:
            return cached[1]
        job = self.process.pending(key)
        if job is None:
            if len(self.process.waiting) >= _MOST_WAITING:
                return _BUSY
            job = self.process.ask(address, key, question)
            job.answer.add_done_callback(partial(self._answered, key))
        answer = await self.process.answer_of(job)
        if isinstance(answer, PageAnswer):
            return answer
        status, text = _FAILED[answer]
        return PageAnswer(status, error(text))

    # --- internal ---

    def _answered(self, key: _Key, answer: asyncio.Future[PageAnswer | Failure]) -> None:
        """Cache an answer for a short time, unless it is a failure or too large."""
        found = None if answer.cancelled() else answer.result()
        if not isinstance(found, PageAnswer) or found.status >= 500:
            return
        if len(found.body) <= _CACHED_BYTES:
            self._cache.put(key, (self._clock() + self._fresh_s, found))
